#!/usr/bin/env python3
"""Time the likelihood of a fixed tree with plltool, its `Instance` and BEAGLE: 4, 20 and 61 states, one thread each.

    python scripts/benchmarks/compare_beagle.py [--device auto] [--library libhmsbeagle.so.1] [--output FILE.json]

All get the same data as `plltool bench`, with four rates and a single state at each tip; they must agree on lnL.
`Instance` (plltool.beagle) answers BEAGLE's calls. The script times a post-order traversal with lnL at one branch, and
the same with P matrices of new lengths. Seconds are processor time, and the shortest repetition counts, because other
processes disturb it least. plltool always checks for underflow and rescales where needed; the others are timed without
and with scaling at every node. GFLOP/s count two operations per multiply-add of P with a CLA and one per product, and
none for tips, which all look up. Nanoseconds are those of one pattern of one inner node, all rates.

Needs BEAGLE's library, such as Debian's package libhmsbeagle1v5. BEAGLE is Ayres et al. 2019, Systematic Biology 68.
"""

import argparse
import ctypes
import platform
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from beagle_library import Library, load_library
from rivals import commit, least_seconds, make_parser, save, today

from plltool import __version__
from plltool.analyses.machine.bench.items import FixedModel, Shape, encode_states, make_data
from plltool.beagle import Flag, Instance
from plltool.engine import program as prog
from plltool.engine.base import EngineData
from plltool.engine.layout import DataShape
from plltool.engine.select import make_engine
from plltool.engine.storage import Slots
from plltool.hardware import Hardware
from plltool.model.components import Components
from plltool.optimise.likelihood import TreeLikelihood
from plltool.tree.operations import ROOT, directed_slots

SHAPES = ((4, 4_000), (20, 1_000), (20, 4_000), (61, 1_000), (61, 4_000))  # states, patterns
N_TAXA = 32
SAME_LNL = 1e-9  # relative; both double
BEAGLE_RUNS = ("beagle", "beagle scaled")
KINDS = {"auto": Flag(0), "numpy": Flag.FRAMEWORK_CPU}  # what `Instance` requires of its resource, by --device
CPU = Flag.PRECISION_DOUBLE | Flag.SCALING_MANUAL | Flag.PROCESSOR_CPU  # what BEAGLE must be
FAST = Flag.VECTOR_AVX | Flag.VECTOR_SSE | Flag.THREADING_NONE  # and should be


class Rival:
    """An instance of a kind: buffers 0 .. n_taxa-1 are tips, slots follow; a P matrix a branch and a scaler a slot."""

    def __init__(self, make: Callable[..., Any], codes: np.ndarray, model: Components, n_branches: int):
        self._n_taxa, n_patterns = codes.shape
        n_slots = directed_slots(self._n_taxa)
        sizes = self._n_taxa, n_slots, self._n_taxa, model.n_states, n_patterns, 1, n_branches, model.n_components
        self.instance = make(*sizes, n_slots + 1)
        for tip, states in enumerate(codes):
            self.instance.set_tip_states(tip, states)
        self.instance.set_pattern_weights(np.ones(n_patterns))
        self.instance.set_category_rates(model.rates)
        self.instance.set_category_weights(0, model.weights)
        self.instance.set_state_frequencies(0, model.frequencies[0])
        self.instance.set_eigen_decomposition(0, model.right[0], model.left[0], model.eigenvalues[0])
        self._branches = np.arange(n_branches, dtype=np.int32)

    def make_matrices(self, lengths: np.ndarray) -> None:
        self.instance.update_transition_matrices(0, self._branches, None, None, lengths)

    def lnl(self, newviews: np.ndarray, edge: tuple[int, int, int], scaling: bool) -> float:
        """Run plltool's newviews, then compute lnL across `edge` (tip, other operand, branch)."""
        operations, total = make_operations(newviews, self._n_taxa, scaling)
        if scaling:
            self.instance.reset_scale_factors(total)
        self.instance.update_partials(operations, total)
        tip, other, branch = edge
        ends = int(buffers(np.int32(other), self._n_taxa)), ~tip, branch  # parent, child and matrix
        return self.instance.calculate_edge_log_likelihoods(*ends, None, None, [0], [0], [total])[0]


def make_operations(newviews: np.ndarray, n_taxa: int, scaling: bool) -> tuple[np.ndarray, int]:
    """plltool's newviews as BEAGLE's operations, and the scale buffer that they add to."""
    slots = newviews[:, 1]
    operations = np.full((len(newviews), 7), Instance.NONE, dtype=np.int32)
    operations[:, 0] = n_taxa + slots
    for own, operand in ((3, 2), (5, 4)):
        operations[:, own] = buffers(newviews[:, operand], n_taxa)
        operations[:, own + 1] = newviews[:, operand + 1]
    if scaling:
        operations[:, 1] = slots
    return operations, directed_slots(n_taxa) if scaling else Instance.NONE


def buffers(operands: np.ndarray | np.int32, n_taxa: int) -> np.ndarray:
    return np.where(operands < 0, ~operands, n_taxa + operands)


def measure(n_states: int, n_patterns: int, library: ctypes.CDLL, options: argparse.Namespace) -> dict[str, Any]:
    """One row of the table."""
    rng = np.random.default_rng([n_states, n_patterns])
    model, tree, states = make_data(Shape(N_TAXA, n_patterns), n_states, rng)
    codes, state_sets = encode_states(states, n_states)
    data = EngineData(codes, np.ones(n_patterns), state_sets)
    shape = DataShape(n_states, model.n_components, N_TAXA, (n_patterns,), data.n_codes)
    hardware = Hardware(options.device, vw=options.vw, threads=1)
    engine, _ = make_engine(data, shape, Slots(directed_slots(N_TAXA)), hardware)
    makers = {
        "beagle": partial(Library, library, preferred=FAST, required=CPU),
        "instance": partial(Instance, requirement_flags=KINDS[options.device], threads=1),
    }
    rivals = {name: Rival(make, states, model, tree.n_edges) for name, make in makers.items()}
    lengths = tree.lengths.copy()

    def change_lengths() -> None:
        tree.lengths[:] = lengths * rng.uniform(1, 1.001)

    def with_matrices(rival: Rival, scaling: bool) -> None:
        change_lengths()
        rival.make_matrices(tree.lengths)
        rival.lnl(newviews, edge, scaling)

    with engine:
        likelihood = TreeLikelihood(tree, [FixedModel(model)], engine)
        newviews = prog.newview(*likelihood.view.sources(*likelihood.view.preorder[::-1].T))
        edge = ~ROOT, int(likelihood.view.incoming[ROOT, 0]), int(tree.edges[ROOT, 0])
        found = [likelihood.lnl()]
        work: dict[str, Callable[[], object]] = {
            "plltool": likelihood.lnl,
            "plltool with P": lambda: (change_lengths(), likelihood.lnl()),
        }
        for name, rival in rivals.items():
            rival.make_matrices(tree.lengths)
            for scaling, ending in ((False, ""), (True, " scaled")):
                found.append(rival.lnl(newviews, edge, scaling))
                work[name + ending] = partial(rival.lnl, newviews, edge, scaling)
                work[f"{name}{ending} with P"] = partial(with_matrices, rival, scaling)
        if not np.allclose(found, found[0], rtol=SAME_LNL, atol=0):
            raise SystemExit(f"lnL of {n_states} states differs: plltool, BEAGLE and Instance, scaled or not: {found}")
        seconds = dict(zip(work, least_seconds(list(work.values()), options.repetitions), strict=True))
        for rival in rivals.values():
            rival.instance.finalize()
        products = (np.count_nonzero(newviews[:, [2, 4]] >= 0) + 1) * 2 * n_states**2 + len(newviews) * n_states
        operations = products * model.n_components * n_patterns
        return {
            "states": n_states,
            "patterns": n_patterns,
            "taxa": N_TAXA,
            "device": engine.device_name,
            "layout": engine.layout.describe(),
            "beagle": f"{rivals['beagle'].instance.implementation_name} {library.beagleGetVersion().decode()}",
            "lnl": found[0],
            "seconds": seconds,
            "nanoseconds": {name: 1e9 * second / len(newviews) / n_patterns for name, second in seconds.items()},
            "gflops": {name: operations / second / 1e9 for name, second in seconds.items() if "P" not in name},
        }


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--device", default="auto", choices=KINDS)
    parser.add_argument("--vw", type=int)
    parser.add_argument("--library", default="libhmsbeagle.so.1", help="BEAGLE's shared library")
    parser.add_argument("--repetitions", type=int, default=9)
    options = parser.parse_args()
    library = load_library(options.library)
    if library is None:
        parser.error(f"cannot load BEAGLE's library {options.library}; Debian has it as libhmsbeagle1v5")
    rows = []
    heads = "plltool ms", "BEAGLE ms", "scaled ms", "Instance ms", "scaled ms"
    print(f"{'states':>6} {'patterns':>9} " + " ".join(f"{head:>11}" for head in heads))
    for n_states, n_patterns in SHAPES:
        row = measure(n_states, n_patterns, library, options)
        rows.append(row)
        seconds = row["seconds"]
        shown = [1e3 * seconds[name] for name in ("plltool", *BEAGLE_RUNS, "instance", "instance scaled")]
        numbers = " ".join(f"{number:11.2f}" for number in shown)
        print(f"{n_states:6d} {n_patterns:9d} {numbers}   {row['device']}; {row['beagle']}", flush=True)
    made = {"date": today(), "commit": commit(), "version": __version__, "machine": platform.machine()}
    save(options.output, made | {"rows": rows})


if __name__ == "__main__":
    main()
