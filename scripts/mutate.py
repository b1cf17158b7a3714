#!/usr/bin/env python3
"""Breaks one line at a time and checks that a test fails: the fifth leg of the project's correctness.

Each mutant is applied to a copy of the repository, against which a few fast tests run. A mutant that survives, or whose
line is no longer there exactly once, makes the exit status 1.

    scripts/mutate.py                 all mutants
    scripts/mutate.py kernels/ pi     those whose file or description contains one of the words
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
TIMEOUT = 300  # seconds for one mutant; a kernel that loops for ever counts as caught

ENGINES = "tests/engine/test_engines.py"
DERIVATIVES = "tests/engine/test_derivatives.py"
SCALING = "tests/engine/test_scaling.py"
PMATRICES = "tests/engine/test_pmatrices.py"
ERRORS = "tests/engine/test_errors.py"
LAYOUT = "tests/engine/test_layout.py"
GRADIENTS = "tests/engine/test_gradients.py"
MOVES = "tests/tree/test_moves.py"
OPERATIONS = "tests/tree/test_operations.py"
LENGTHS = "tests/optimise/test_lengths.py"
SCAN = "tests/search/test_scan.py"
INSERTIONS = "tests/search/test_insertions.py"
CLIMB = "tests/search/test_climb.py"

TRAVERSE = "kernels/traverse.cl"
INSTRUCTIONS = "kernels/instructions.h"
ARITHMETIC = "kernels/arithmetic.h"
KERNEL_P = "kernels/pmatrices.cl"
NUMPY = "plltool/engine/numpy_engine.py"
LAYOUT_PY = "plltool/engine/layout.py"
OPENCL_PY = "plltool/engine/opencl/engine.py"

VECTOR = "vector-vw4-tile3-groups64"  # one kind of OpenCL engine, so that few kernels are built
LANES = "lanes-vw32-tile1-groups64"


@dataclass(frozen=True)
class Mutant:
    """`old` stands in `file` exactly once; `tests` are pytest's arguments, "-k" and its expression last."""

    what: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


def on_vector(file: str, expression: str = "") -> tuple[str, ...]:
    return file, "-k", f"{expression} and {VECTOR}" if expression else VECTOR


JOINED = on_vector(ENGINES, "joined")
IS_NUMPY = on_vector(ENGINES, "opencl_is_numpy")
DEEP = (SCALING, "-k", "deep and vector-vw4")
DEEP_NUMPY = (SCALING, "-k", "deep and numpy-vw4")
BRUTE = (ENGINES, "-k", "brute_force and numpy-vw2")

MUTANTS = [
    # --- kernels: P matrices
    Mutant("P transposed", KERNEL_P, "p[i * S + j] = (REAL)(value > 0", "p[j * S + i] = (REAL)(value > 0",
           on_vector(PMATRICES)),
    Mutant("expm1 of the wrong sign", KERNEL_P, "expm1(e[k] * t)", "expm1(-e[k] * t)", on_vector(PMATRICES)),
    Mutant("expm1 replaced by exp - 1", KERNEL_P, "expm1(e[k] * t)", "exp(e[k] * t) - 1.0", on_vector(PMATRICES)),
    Mutant("identity left out of P", KERNEL_P, "i == j ? 1.0 : 0.0", "0.0", on_vector(PMATRICES)),
    Mutant("component of the eigensystem", KERNEL_P, "((size_t)pset * N_COMPONENTS + component) * EIGEN_DOUBLES",
           "((size_t)pset * N_COMPONENTS) * EIGEN_DOUBLES", on_vector(PMATRICES)),
    Mutant("P set of the eigensystem", KERNEL_P, "((size_t)pset * N_COMPONENTS + component) * EIGEN_DOUBLES",
           "((size_t)component) * EIGEN_DOUBLES", IS_NUMPY),
    Mutant("P' of the wrong order", KERNEL_P, "p1[i * S + j] = (REAL)value1", "p1[i * S + j] = (REAL)value2",
           on_vector(DERIVATIVES, "triplet")),
    Mutant("second decay is the first", KERNEL_P, "d[2 * S + k] = (REAL)curve[k]", "d[2 * S + k] = (REAL)slope[k]",
           on_vector(DERIVATIVES, "every_branch")),
    # --- kernels: one block
    Mutant("P indices swapped", ARITHMETIC, "sum = p[i * N_STATES + j] * x[j]", "sum = p[j * N_STATES + i] * x[j]",
           JOINED),
    Mutant("tip code shifted by one", ARITHMETIC, "TO_REALV((bits >> j) & 1)", "TO_REALV((bits >> (j + 1)) & 1)",
           JOINED),
    Mutant("tip code shifted by one, lanes", ARITHMETIC, "(REAL)((bits >> j) & 1u)", "(REAL)((bits >> (j + 1)) & 1u)",
           (PMATRICES, "-k", LANES)),
    Mutant("tip of the wrong block", ARITHMETIC, "o->code + (size_t)block * VW", "o->code", IS_NUMPY),
    Mutant("CLA of the wrong component", ARITHMETIC, "BLOCK_REALS + component * N_STATES) * STRIDE",
           "BLOCK_REALS) * STRIDE", JOINED),
    Mutant("sign of the scaling count", ARITHMETIC, "((__global int *)scale)[l] += exponent",
           "((__global int *)scale)[l] -= exponent", DEEP),
    Mutant("sign of the scaling factor", ARITHMETIC, "ldexp(*value, -exponent)", "ldexp(*value, exponent)", DEEP),
    Mutant("threshold never reached", ARITHMETIC, "ldexp((REAL)1, -SCALE_BITS)", "ldexp((REAL)1, -SCALE_BITS * 4)",
           DEEP),
    Mutant("only the first lane rescaled", ARITHMETIC, "const int lane_end = VW;", "const int lane_end = 1;", DEEP),
    Mutant("tips have the scale of a slot", ARITHMETIC, "o->is_tip ? (INTV)(0)", "0 ? (INTV)(0)", DEEP),
    Mutant("response to a rate matrix without its length", KERNEL_P, "(REAL)(t * (fmax(", "(REAL)((fmax(",
           on_vector(GRADIENTS)),
    Mutant("response from the faster decay", KERNEL_P, "fmax(grow[k], grow[l])", "fmin(grow[k], grow[l])",
           on_vector(GRADIENTS)),
    # --- kernels: instructions
    Mutant("GRADIENT of the wrong row", INSTRUCTIONS, "TO_DOUBLEV(sa[row + k])", "TO_DOUBLEV(sa[row])",
           on_vector(GRADIENTS)),
    Mutant("ROOT without the masses", INSTRUCTIONS, "TO_DOUBLEV((m[i] * xa[i]) * y[i])", "TO_DOUBLEV(xa[i] * y[i])",
           on_vector(GRADIENTS)),
    Mutant("gradients without weights", INSTRUCTIONS, "shares[block] = load_weights(job, block) /",
           "shares[block] = (DOUBLEV)(1.0) /", on_vector(GRADIENTS)),
    Mutant("every branch starts the sum of the gradient", TRAVERSE, "(op != GRADIENT || word[6])", "1",
           on_vector(GRADIENTS)),
    Mutant("NEWVIEW drops the scale of its second source", INSTRUCTIONS,
           "*out_scale = load_scale(&a, block) + load_scale(&b, block)", "*out_scale = load_scale(&a, block)", DEEP),
    Mutant("NEWVIEW uses one P for both", INSTRUCTIONS,
           "multiply(pb + c * N_STATES * N_STATES, x, yb);\n            #pragma",
           "multiply(pa + c * N_STATES * N_STATES, x, yb);\n            #pragma", JOINED),
    Mutant("NEWVIEW uses the P of the first component", INSTRUCTIONS, "multiply(pa + c * N_STATES * N_STATES, x, ya)",
           "multiply(pa, x, ya)", JOINED),
    Mutant("NEWVIEW's maximum is a minimum", INSTRUCTIONS, "maximum = z > maximum ? z : maximum",
           "maximum = z < maximum ? z : maximum", DEEP),
    Mutant("PROPAGATE loses the scale", INSTRUCTIONS,
           "(size_t)block * STRIDE + LANE) = load_scale(&job->a, block)", "(size_t)block * STRIDE + LANE) = (INTV)(0)",
           DEEP),
    Mutant("EVALUATE without pi", INSTRUCTIONS, "likelihood = (m[i] * xa[i]) * y[i] + likelihood",
           "likelihood = xa[i] * y[i] + likelihood", on_vector(PMATRICES)),
    Mutant("EVALUATE takes pi at the first component", INSTRUCTIONS,
           "multiply(job->pb + c * N_STATES * N_STATES, xb, y);\n            for (int i = 0; i < N_STATES; i++)\n"
           "                likelihood = (m[i] * xa[i])",
           "multiply(job->pb + c * N_STATES * N_STATES, xb, y);\n            for (int i = 0; i < N_STATES; i++)\n"
           "                likelihood = (job->model[i] * xa[i])", on_vector(PMATRICES)),
    Mutant("scale undone with the wrong logarithm", INSTRUCTIONS, "TO_DOUBLEV(scale) * M_LN2",
           "TO_DOUBLEV(scale) * M_LN10", DEEP),
    Mutant("weight ignored by EVALUATE", INSTRUCTIONS, "values[0] += load_weights(job, block) * lnl",
           "values[0] += lnl", on_vector(ENGINES, "weight")),
    Mutant("weight of the first block", INSTRUCTIONS, "(const __global DOUBLEV *)job->weights + (size_t)block * STRIDE",
           "(const __global DOUBLEV *)job->weights", IS_NUMPY),
    Mutant("DERIVATIVE without -d1^2", INSTRUCTIONS, "(TO_DOUBLEV(second) * inverse - d1 * d1)",
           "(TO_DOUBLEV(second) * inverse)", on_vector(DERIVATIVES, "every_branch")),
    Mutant("DERIVATIVE takes the first decay twice", INSTRUCTIONS, "first = d[N_STATES + k] * s", "first = d[k] * s",
           on_vector(DERIVATIVES, "every_branch")),
    Mutant("DERIVATIVE leaves out an eigenvalue", INSTRUCTIONS, "k < N_STATES - 1; k++) {", "k < N_STATES - 2; k++) {",
           on_vector(DERIVATIVES, "every_branch")),
    Mutant("DERIVATIVE takes the decay of the first component", INSTRUCTIONS,
           "job->decay + c * 3 * N_STATES;\n            REALV sa[N_STATES], sb[N_STATES];\n"
           "            likelihood += to_eigenbasis(job, tip_a, tip_b, block, c, sa, sb);\n"
           "            for (int k = 0; k < N_STATES - 1; k++) {",
           "job->decay;\n            REALV sa[N_STATES], sb[N_STATES];\n"
           "            likelihood += to_eigenbasis(job, tip_a, tip_b, block, c, sa, sb);\n"
           "            for (int k = 0; k < N_STATES - 1; k++) {",
           on_vector(DERIVATIVES, "every_branch")),
    Mutant("INSERT loses the scale of the subtree", INSTRUCTIONS,
           "load_scale(&job->b, block) + load_scale(&job->c, block);\n        values[0] += load_weights",
           "load_scale(&job->b, block);\n        values[0] += load_weights", DEEP),
    Mutant("TRIPLET swaps entries of the Hessian", INSTRUCTIONS,
           "values[8] += weight * (TO_DOUBLEV(sum[8]) * inverse - g[0] * g[2])",
           "values[8] += weight * (TO_DOUBLEV(sum[9]) * inverse - g[0] * g[2])", on_vector(DERIVATIVES, "triplet")),
    Mutant("TRIPLET mixes P' and P''", INSTRUCTIONS, "(size_t)(order - 1) * N_COMPONENTS * S2",
           "(size_t)(2 - order) * N_COMPONENTS * S2", on_vector(DERIVATIVES, "triplet")),
    Mutant("TRIPLET reads the slopes of another branch", TRAVERSE, "job.qb = q_base + (size_t)word[5]",
           "job.qb = q_base + (size_t)word[3]", on_vector(DERIVATIVES, "triplet")),
    Mutant("TRIPLET: product of the wrong gradients", INSTRUCTIONS, "inverse - g[1] * g[2]", "inverse - g[0] * g[2]",
           on_vector(DERIVATIVES, "triplet")),
    # --- kernels: tiles and groups
    Mutant("every tile overwrites the sum", TRAVERSE,
           "partial[v] = first_tile ? sum : partial[v] + sum;\n    }\n#endif",
           "partial[v] = sum;\n    }\n#endif", (ENGINES, "-k", "number_of_groups and vector-vw2")),
    Mutant("the first tile adds to what was there", TRAVERSE,
           "partial[v] = first_tile ? sum : partial[v] + sum;\n    }\n#endif",
           "partial[v] = partial[v] + sum;\n    }\n#endif", (ENGINES, "-k", "same_bits and vector-vw4")),
    Mutant("a vector's last lane not summed", TRAVERSE, "((const double *)&values[v])[l]",
           "(l == VW - 1 ? 0.0 : ((const double *)&values[v])[l])", JOINED),
    Mutant("lane reduction leaves out the last lane", TRAVERSE,
           "l < VW; l++)\n            sum += shared", "l < VW - 1; l++)\n            sum += shared",
           (ENGINES, "-k", "other_models and 4-1-lanes")),
    Mutant("lanes of different values mixed", TRAVERSE, "shared[v * VW + LANE] = values[v]",
           "shared[v * VW + LANE] = values[0]", (PMATRICES, "-k", LANES)),
    Mutant("slot stride ignored by the result", TRAVERSE, "storage + (size_t)result * slot_stride",
           "storage + (size_t)result * TILE_BLOCKS * 2", JOINED),
    Mutant("tile of a chunk counted from the first of all", TRAVERSE, "(size_t)(tile - span[3]) * tile_stride",
           "(size_t)(tile - span[0]) * tile_stride", on_vector(ENGINES, "growing_program")),
    Mutant("tips of the first tile", TRAVERSE,
           "job.a = find_operand(word[2], clas, scales, tips + lanes * n_taxa",
           "job.a = find_operand(word[2], clas, scales, tips", IS_NUMPY),
    Mutant("matrices of the first part", TRAVERSE, "matrices + (size_t)pset * n_branches * MATRIX_REALS", "matrices",
           IS_NUMPY),
    Mutant("model of the first part", TRAVERSE, "model + (size_t)pset * MODEL_REALS", "model", IS_NUMPY),
    Mutant("bad pattern counted within its tile", TRAVERSE, "job.first_pattern = (int)lanes",
           "job.first_pattern = 0", on_vector(ERRORS, "names_the_pattern")),
    # --- host side of the OpenCL engine
    Mutant("matrices kept when the model changes", OPENCL_PY,
           "        self._tables = None\n", "", on_vector(ENGINES, "set_model")),
    Mutant("slopes not made when the lengths are known", OPENCL_PY,
           "self._tables[1].cover(tables) and ", "",
           on_vector(DERIVATIVES, "triplet_gradient")),
    Mutant("a bad pattern is remembered", OPENCL_PY,
           "cl.enqueue_copy(self._queue, self._bad_pattern, np.array([NO_BAD_PATTERN]))", "pass",
           on_vector(ERRORS, "goes_on")),
    Mutant("U not transposed for sumGAMMA", OPENCL_PY, "(mass[c][:, None] * right).T.ravel()",
           "(mass[c][:, None] * right).ravel()", on_vector(DERIVATIVES, "every_branch")),
    # --- layout
    Mutant("padding has weight", LAYOUT_PY, "np.zeros((*weights.shape[:-1], self.n_lanes))",
           "np.ones((*weights.shape[:-1], self.n_lanes))", (LAYOUT,)),
    Mutant("padding tips are empty", LAYOUT_PY, "(1 << self.n_states) - 1, dtype=self.code",
           "0, dtype=self.code", (LAYOUT,)),
    Mutant("parts share a block", LAYOUT_PY, "tuple(-(-n // self.vw) for n in self.part_patterns)",
           "tuple(n // self.vw for n in self.part_patterns)", (LAYOUT,)),
    Mutant("strides swapped", LAYOUT_PY, "return self.tile_blocks, n_tiles * self.tile_blocks",
           "return n_tiles * self.tile_blocks, self.tile_blocks", (LAYOUT,)),
    # --- numpy engine
    Mutant("numpy: P transposed", NUMPY, "return table[self.layout.block_part, branch] @ x",
           "return table[self.layout.block_part, branch].swapaxes(-1, -2) @ x", BRUTE),
    Mutant("numpy: sign of the scaling count", NUMPY, "scale = scale + scale_b + exponent",
           "scale = scale + scale_b - exponent", DEEP_NUMPY),
    Mutant("numpy: scale of the second source dropped", NUMPY, "scale = scale + scale_b + exponent",
           "scale = scale + exponent", DEEP_NUMPY),
    Mutant("numpy: threshold never reached", NUMPY, "2.0**-self.layout.scale_bits", "0.0", DEEP_NUMPY),
    Mutant("pi dropped from the masses", "plltool/model/components.py", "self.weights[:, None] * self.frequencies",
           "self.weights[:, None] + 0 * self.frequencies", BRUTE),
    Mutant("component weights dropped", "plltool/model/components.py", "self.weights[:, None] * self.frequencies",
           "self.frequencies", BRUTE),
    Mutant("numpy: rates ignored", NUMPY, "part.eigenvalues * part.rates[:, None]", "part.eigenvalues * 1.0", BRUTE),
    Mutant("numpy: d2 without -d1^2", NUMPY, "sums[2] / likelihood - d1 * d1", "sums[2] / likelihood",
           (DERIVATIVES, "-k", "every_branch and numpy-vw4")),
    Mutant("numpy: Hessian swapped", NUMPY, "((1, 0, 1), 0, 2)", "((0, 1, 1), 0, 2)",
           (DERIVATIVES, "-k", "triplet and numpy-vw4")),
    Mutant("numpy: weights of the first set", NUMPY, "self._weights[weight_set]", "self._weights[0]",
           (ENGINES, "-k", "weight_sets and numpy")),
    Mutant("numpy: log scale factor", NUMPY, "np.asarray(scale) * np.log(2.0)", "np.asarray(scale) * np.log(4.0)",
           DEEP_NUMPY),
    # --- tree, optimisers, search
    Mutant("move: lengths of both ends swapped", "plltool/tree/moves.py",
           "tree.lengths[[near_edge, target, far_edge, subtree_edge]]",
           "tree.lengths[[near_edge, far_edge, target, subtree_edge]]", (MOVES,)),
    Mutant("move: into its own subtree", "plltool/tree/moves.py",
           "or subtree_contains(tree, subtree, joint, target)", "", (MOVES,)),
    Mutant("move: one end not reconnected", "plltool/tree/moves.py",
           "_reconnect(tree, second, target, joint, far_edge)", "_reconnect(tree, second, target, joint, target)",
           (MOVES,)),
    Mutant("move: lengths not restored", "plltool/tree/moves.py", "tree.lengths[self.edges] = self.lengths", "pass",
           (MOVES,)),
    Mutant("operations: the wrong sibling", "plltool/tree/operations.py",
           "k1, k2 = (columns + 1) % 3, (columns + 2) % 3", "k1, k2 = (columns + 1) % 3, (columns + 1) % 3",
           (OPERATIONS,)),
    Mutant("steps: Newton downhill", "plltool/optimise/steps.py", "np.where(concave, -d1 /", "np.where(concave, d1 /",
           (LENGTHS,)),
    Mutant("steps: wrong way where convex", "plltool/optimise/steps.py", "np.sign(d1) * MAX", "-np.sign(d1) * MAX",
           (LENGTHS,)),
    Mutant("lengths: worse rounds are kept", "plltool/optimise/lengths.py", "if lnl <= best_lnl:", "if False:",
           (LENGTHS,)),
    Mutant("scan: whole instead of half lengths", "plltool/search/scan.py",
           "half = tree.n_edges + columns[\"branch\"]", "half = columns[\"branch\"]", (SCAN,)),
    Mutant("scan: walks into the wrong side", "plltool/search/scan.py",
           "(at[\"entry\"] + turn) % 3, (at[\"entry\"] + 3 - turn) % 3",
           "(at[\"entry\"] + turn) % 3, (at[\"entry\"] + turn) % 3", (SCAN,)),
    Mutant("scan: starts from the near side of the gap", "plltool/search/scan.py", "view.facing[joints, far]",
           "view.facing[joints, near]", (SCAN,)),
    Mutant("scan: gap not healed", "plltool/search/scan.py", "2 * tree.n_edges + prune", "0 * tree.n_edges + prune",
           (SCAN,)),
    Mutant("scan: siblings before children", "plltool/search/scan.py",
           "np.lexsort([columns[\"key\"][order], columns[\"prune\"][order]])",
           "np.lexsort([columns[\"depth\"][order], columns[\"prune\"][order]])", (SCAN,)),
    Mutant("insertions: ends confused", "plltool/search/insertions.py", "first_end != far_node",
           "first_end == far_node", (INSERTIONS,)),
    Mutant("insertions: Hessian entry", "plltool/search/insertions.py", "(0, 1), (0, 2), (1, 2)]):\n        hessian",
           "(0, 1), (1, 2), (0, 2)]):\n        hessian", (INSERTIONS,)),
    Mutant("climb: conflicts are not looked for", "plltool/search/climb.py", "if touched & nodes:", "if False:",
           (CLIMB,)),
    Mutant("climb: failed moves stay", "plltool/search/climb.py", "undo.restore(tree)", "pass", (CLIMB,)),
]  # fmt: skip


def copy_repository(folder: Path) -> None:
    """What tests need, the kernels inside the package, where an import of the copy finds them first."""
    ignore = shutil.ignore_patterns("__pycache__")
    for name in ("plltool", "kernels", "tests"):
        shutil.copytree(REPOSITORY / name, folder / name, ignore=ignore)
    shutil.copy(REPOSITORY / "pyproject.toml", folder)
    (folder / "plltool" / "kernels").symlink_to(folder / "kernels")


def run(folder: Path, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=TIMEOUT
    )


def check_import(folder: Path) -> None:
    """The copy is what Python imports there, whatever is installed."""
    code = "import plltool, plltool.kernels; print(plltool.__file__, plltool.kernels.__file__, sep='\\n')"
    found = run(folder, ["-c", code]).stdout.split()
    if len(found) != 2 or not all(Path(path).is_relative_to(folder) for path in found):
        raise SystemExit(f"Python imports {found}, not the copy in {folder}")


def run_tests(folder: Path, tests: tuple[str, ...]) -> tuple[int, str]:
    """pytest's exit status (1: a test failed) and the last lines of its output."""
    options = ["-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-o", "pythonpath=tests"]
    try:
        done = run(folder, ["-m", "pytest", *options, *tests])
    except subprocess.TimeoutExpired:
        return 1, "timed out"
    return done.returncode, " | ".join(done.stdout.strip().splitlines()[-2:])


def try_mutant(mutant: Mutant, folder: Path) -> str:
    """"caught", or why not. The copy is as before afterwards."""
    file = folder / mutant.file
    original = file.read_text(encoding="utf-8")
    if original.count(mutant.old) != 1:
        return f"STALE: {mutant.old!r} is {original.count(mutant.old)} times in {mutant.file}"
    file.write_text(original.replace(mutant.old, mutant.new), encoding="utf-8")
    try:
        status, output = run_tests(folder, mutant.tests)
    finally:
        file.write_text(original, encoding="utf-8")
    if status < 0:
        return "caught"  # a crash
    return {0: f"SURVIVED: {output}", 1: "caught"}.get(status, f"NOT RUN: {output}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="run mutants whose file or description contains one of these")
    parser.add_argument("--list", action="store_true", help="only list them")
    parser.add_argument("--no-baseline", action="store_true", help="do not check first that the tests pass unbroken")
    options = parser.parse_args()
    words = options.words or [""]
    chosen = [m for m in MUTANTS if any(word in m.file or word in m.what for word in words)]
    if options.list:
        print("\n".join(f"{m.file}: {m.what}" for m in chosen))
        return 0
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        copy_repository(folder)
        check_import(folder)
        if not options.no_baseline:
            for tests in dict.fromkeys(mutant.tests for mutant in chosen):
                status, output = run_tests(folder, tests)
                if status != 0 or "skipped" in output:
                    failed += 1
                    print(f"unbroken code fails or skips {' '.join(tests)}: {output}", flush=True)
        for mutant in chosen:
            start = time.perf_counter()
            verdict = try_mutant(mutant, folder)
            failed += verdict != "caught"
            print(f"{time.perf_counter() - start:5.1f} s  {mutant.file}: {mutant.what}: {verdict}", flush=True)
    print(f"{len(chosen)} mutants, {failed} problems")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
