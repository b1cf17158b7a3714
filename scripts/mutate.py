#!/usr/bin/env python3
"""Break one line at a time and check that a test fails.

Each mutant is applied to a copy of the repository, in which a few fast tests run. The exit status is 1 if a mutant
survives, or if its line is not there exactly once.

    scripts/mutate.py                 all mutants
    scripts/mutate.py kernels/ pi     those whose file or description contains one of the words
    scripts/mutate.py --check         only check that every mutant's line is there exactly once; takes no time

Tests run with the interpreter that runs this script. Mutants called "wide" are in code that is compiled only for
vectors of 8 lanes or more: they need a driver for those, such as Intel's from pip. Without one their tests are skipped,
and they count as not run.
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
TIMEOUT = 300  # seconds for one mutant; an endless loop counts as caught

ENGINES = "tests/engine/test_engines.py"
CONSTRAINT, CONSTRAINED = "tests/tree/test_constraint.py", "tests/tree_search/test_constrained.py"
DERIVATIVES = "tests/engine/test_derivatives.py"
SCALING = "tests/engine/test_scaling.py"
DEEP_TREES = "tests/engine/test_deep_trees.py"
INVARIABLE = "tests/engine/test_invariable.py"
PMATRICES = "tests/engine/test_pmatrices.py"
ERRORS = "tests/engine/test_errors.py"
LAYOUT = "tests/engine/test_layout.py"
GRADIENTS = "tests/engine/test_gradients.py"
MANY_STATES = "tests/engine/test_many_states.py"
STREAMING = "tests/engine/test_streaming.py"
STORAGE_TESTS = "tests/engine/test_storage.py"
MOVES = "tests/tree/test_moves.py"
OPERATIONS = "tests/tree/test_operations.py"
LENGTHS = "tests/optimise/test_lengths.py"
COVARION = "tests/optimise/test_covarion.py"
COUPLING = "tests/optimise/test_coupling.py"
PEAKS = "tests/engine/test_peaks.py"
SCHEDULE = "tests/engine/test_schedule.py"
SUMS = "tests/engine/test_sums.py"
SELECT = "tests/engine/test_select.py"
SHARED_STATES = "tests/engine/test_shared_states.py"
PROFILE = "tests/engine/test_profile.py"
BENCH = "tests/analyses/test_bench.py"
SCAN = "tests/tree_search/test_scan.py"
DATA_TESTS = "tests/analyses/test_data_tests.py"
SCHEME = "tests/analyses/test_select_scheme.py"
SCREENING = "tests/optimise/test_screening.py"
PSR_PARTS = "tests/analyses/test_psr_partitions.py"
INSERTIONS = "tests/tree_search/test_insertions.py"
CLIMB = "tests/tree_search/test_climb.py"
DRIVER = "tests/tree_search/test_stages.py"
REPORT, METHODS = ("tests/pages/test_report.py",), ("tests/pages/test_methods.py",)
DESCRIPTION = ("tests/statistics/test_description.py",)
ROOTING, DRAWING = ("tests/tree/test_rooting.py",), ("tests/drawing/test_drawing.py",)
ROOTED_NODES_PY, ROOTING_PY = "plltool/tree/rooted_nodes.py", "plltool/tree/rooting.py"
GAMMA, RIDGE = "tests/model/test_gamma.py", "tests/optimise/test_ridge.py"
RATCHET = "tests/tree_search/test_ratchet.py"
FUSING = "tests/tree_search/test_fusing.py"
STARTS = "tests/tree_search/test_multistart.py"
STOPPING = "tests/tree_search/test_stopping.py"
SUPPORTS, CONSENSUS_TESTS = "tests/tree/test_supports.py", "tests/tree/test_consensus.py"
TREE_SETS, SITE_RATES = "tests/tree/test_tree_set.py", "tests/analyses/test_site_rates.py"
BOOTSTRAP, REPLICATES = "tests/analyses/test_bootstrap.py", "plltool/analyses/replicates.py"
CONCORDANCE, GENE_CONCORDANCE = "tests/analyses/test_concordance.py", "plltool/tree/concordance.py"
JOINT = "tests/optimise/test_joint.py"
GENES = "tests/analyses/test_genes.py"
SITE_CONCORDANCE = "plltool/statistics/site_concordance.py"
TREE_SUPPORTS, CONSENSUS = "plltool/tree/supports.py", "plltool/tree/consensus.py"
TREE_SET, LENGTH_ERRORS = "plltool/tree/tree_set.py", "plltool/optimise/standard_errors.py"
PLACE = "tests/analyses/test_place.py"
RESUME = "tests/tree_search/test_resume.py"
RELL = "tests/tree_search/test_rell.py"
ULTRAFAST = "tests/analyses/test_ultrafast.py"
PARTITIONS = "tests/analyses/test_partitions.py"
PART_FILES = "tests/io/test_partition_reader.py"
CODONS_PY, CODON_SPACES = "plltool/alignment/codons.py", "tests/alignment/test_codons.py"
CODON_MODELS_PY, CODON_MODELS = "plltool/model/codons.py", "tests/model/test_codon_models.py"
FILE_ORDER, TIMED = "tests/analyses/test_file_order.py", "tests/tree_search/test_timed.py"
SEARCH_SUPPORTS = "tests/analyses/test_search_supports.py"

TRAVERSE = "kernels/traverse.cl"
INSTRUCTIONS = "kernels/instructions.h"
JOB = "kernels/job.h"
SHARED = "kernels/shared_states.h"
ARITHMETIC = "kernels/arithmetic.h"
MANY_H = "kernels/many_states.h"
CODES_PY = "plltool/engine/codes.py"
CONTRACT_PY, CONTRACT = "plltool/engine/contract.py", "tests/engine/test_contract.py"
KERNEL_P = "kernels/pmatrices.cl"
KERNEL_PEAKS = "kernels/peaks.cl"
SUMS_CL = "kernels/sums.cl"
LAYOUT_CHOICE_PY = "plltool/engine/layout_choice.py"
NUMPY = "plltool/engine/numpy_engine.py"
LAYOUT_PY = "plltool/engine/layout.py"
OPENCL_PY = "plltool/engine/opencl/engine.py"
ARRAYS_PY = "plltool/engine/opencl/arrays.py"
KERNELS_PY = "plltool/engine/opencl/kernels.py"
SCHEDULE_PY = "plltool/engine/opencl/schedule.py"
CLOCK_PY = "plltool/engine/opencl/clock.py"
BENCH_ITEMS = "plltool/analyses/bench/items.py"
BENCH_RUN = "plltool/analyses/bench/run.py"
STORAGE_PY = "plltool/engine/storage.py"
PREPARED_PY = "plltool/engine/prepared.py"
SHARDS = "plltool/engine/shards.py"
LIKELIHOOD_PY = "plltool/optimise/likelihood.py"
MODELS_PY, BOUNDED_PY = "plltool/optimise/models.py", "plltool/optimise/bounded.py"
PARTS, BOUNDED = "tests/optimise/test_parts.py", "tests/optimise/test_bounded.py"

COMPONENTS_PY, NONREVERSIBLE_PY = "plltool/model/components.py", "plltool/model/nonreversible.py"
PROGRAM_PY, PARAMETERS_PY = "plltool/engine/program.py", "plltool/optimise/parameters.py"
SCAN_PY, INSERTIONS_PY = "plltool/tree_search/scan.py", "plltool/tree_search/insertions.py"
ROOT_SCAN_PY = "plltool/tree_search/root_scan.py"
LIE_MARKOV_PY, NAMED_PY = "plltool/model/lie_markov.py", "plltool/model/named.py"
LIE_MARKOV = ("tests/model/test_lie_markov.py",)
LIE_MARKOV_RUNS = ("tests/analyses/test_lie_markov_runs.py", "-k", "another_program and numpy")
ROOTED_ANCESTORS = ("tests/analyses/test_rooted_ancestors.py", "-k", "numpy")
REVIVAL_PY, REVIVAL = "plltool/optimise/revival.py", ("tests/optimise/test_revival.py",)
TOPOLOGY_PY = "plltool/tree/topology.py"
ASCERTAINED, ASCERTAINED_PY = "tests/engine/test_ascertained.py", "plltool/engine/ascertained.py"
ASCERTAINMENT_PY = "plltool/model/ascertainment.py"
MULTISTATE, SPLIT = "tests/alignment/test_multistate.py", "tests/alignment/test_split.py"
VCF = ("tests/io/test_vcf.py",)
MATRIX_FILES, GENOTYPES = "tests/io/test_matrix_reader.py", "tests/model/test_genotypes.py"
TABLES = "tests/io/test_table_reader.py"
DOUBLETS_PY, DOUBLETS = "plltool/model/doublets.py", "tests/model/test_doublets.py"
MULTISTATE_RUNS, NEXUS_STANDARD = "tests/analyses/test_multistate_runs.py", "tests/io/test_nexus_standard.py"

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


ROOTED = "tests/engine/test_nonreversible.py"
ROOTED_NUMPY = (ROOTED, "-k", "numpy and 5x2")
ROOTED_VECTOR = (ROOTED, "-k", f"{VECTOR} and 5x2")
ROOTED_LANES = (ROOTED, "-k", f"{LANES} and 20x2 and rate_matrices")
ROOT_SCAN = ("tests/tree_search/test_root_scan.py",)
ROOTED_SLOPES = ("tests/optimise/test_parameter_gradients.py", "-k", "with_a_root")
ROOTED_RUNS = ("tests/analyses/test_rooted.py", "-k", "another_program and numpy")
JOINED = on_vector(ENGINES, "joined")
IS_NUMPY = on_vector(ENGINES, "opencl_is_numpy")
DEEP = (SCALING, "-k", "deep and vector-vw4")
STEEP = (DEEP_TREES, "-k", "(from_any_root or at_a_node) and steep and vector-vw4")
STEEP_NUMPY = (DEEP_TREES, "-k", "from_any_root and steep and numpy and double")
DEEP_GRADIENTS = (DEEP_TREES, "-k", "gradients and vector-vw4")
DEEP_NUMPY = (SCALING, "-k", "deep and numpy-vw4")
MANY = (MANY_STATES, "-k", "every_request and vector-vw4-tile4-groups64-61x2")
MANY_DEEP = (MANY_STATES, "-k", "deep_trees and vector-vw4 and single")
STILL = (INVARIABLE, "-k", "every_request and vector-vw4 and double")
WEIGHTS = on_vector(ENGINES, "weights_of_parts")
SINGLE = on_vector(ENGINES, "single_clas")
PIECES = (SCHEDULE, "-k", "scratch_of_their_own and vector-vw4")
LIKELIHOODS = (SCHEDULE, "-k", "brute_force and vector-vw4-tile3 and all_at_once")
WIDE = (ENGINES, "-k", "opencl_is_numpy and vector-vw8 and not 201")
WIDEST = (ENGINES, "-k", "single_clas and vector-vw16")
BRUTE = (ENGINES, "-k", "brute_force and numpy-vw2")
LEVELS = (SCHEDULE, "-k", "by_levels")
STAGED = (ENGINES, "-k", "opencl_is_numpy and lanes-vw32")
TOGETHER = (SHARED_STATES, "-k", "every_request and 20x4")
TOGETHER_GRADIENTS = (SHARED_STATES, "-k", "gradients and 9-lanes-vw32")
TOGETHER_TIPS = (SHARED_STATES, "-k", "three_tips and lanes-vw32")
TOGETHER_DEEP = (SHARED_STATES, "-k", "deep_trees and lanes-vw32")
TOGETHER_STILL = (INVARIABLE, "-k", "every_request and 20-lanes and double")
TOGETHER_WEIGHTS = (SHARED_STATES, "-k", "test_weights")
TOGETHER_RULE = (SELECT, "-k", "share_the_states or smaller_device")

MUTANTS = [
    # --- kernels: P matrices
    Mutant("P transposed", KERNEL_P, "#define ENTRY(i, j) ((i) * N_STATES + (j))",
           "#define ENTRY(i, j) ((j) * N_STATES + (i))", on_vector(PMATRICES)),
    Mutant("P of many states transposed", KERNEL_P, "#define ENTRY(i, j) ((j) * N_STATES + (i))",
           "#define ENTRY(i, j) ((i) * N_STATES + (j))", MANY),
    Mutant("last rows of P left out", KERNEL_P, "row < N_STATES; row += ROW_WIDTH",
           "row + ROW_WIDTH <= N_STATES; row += ROW_WIDTH", MANY),
    Mutant("an undetermined tip is improbable", KERNEL_P, "make_row_sums(first, n, 1, p);",
           "make_row_sums(first, n, 0, p);", MANY),
    Mutant("expm1 of the wrong sign", KERNEL_P, "expm1(e[k] * t)", "expm1(-e[k] * t)", on_vector(PMATRICES)),
    Mutant("expm1 replaced by exp - 1", KERNEL_P, "expm1(e[k] * t)", "exp(e[k] * t) - 1.0", on_vector(PMATRICES)),
    Mutant("identity left out of P", KERNEL_P, "i + r == first + c ? identity : 0.0", "0.0", on_vector(PMATRICES)),
    Mutant("component of the eigensystem", KERNEL_P, "((size_t)pset * N_COMPONENTS + component) * EIGEN_VALUES",
           "((size_t)pset * N_COMPONENTS) * EIGEN_VALUES", on_vector(PMATRICES)),
    Mutant("P set of the eigensystem", KERNEL_P, "((size_t)pset * N_COMPONENTS + component) * EIGEN_VALUES",
           "((size_t)component) * EIGEN_VALUES", IS_NUMPY),
    Mutant("P' of the wrong order", KERNEL_P, "make_columns(right, left, slope,", "make_columns(right, left, curve,",
           on_vector(DERIVATIVES, "triplet")),
    Mutant("second decay is the first", KERNEL_P, "(REAL)PART_OF(curve[k], b)", "(REAL)PART_OF(slope[k], b)",
           on_vector(DERIVATIVES, "every_branch")),
    # --- kernels: one block
    Mutant("tip of the wrong block", ARITHMETIC, "o->code + (size_t)block * VW", "o->code", IS_NUMPY),
    Mutant("CLA of the wrong component", ARITHMETIC, "BLOCK_REALS + component * N_STATES + state)",
           "BLOCK_REALS + state)", JOINED),
    Mutant("threshold never reached", ARITHMETIC, "ldexp((REAL)1, -SCALE_BITS)", "ldexp((REAL)1, -SCALE_BITS * 4)",
           DEEP),
    Mutant("tips have the scale of a slot", ARITHMETIC, "o->is_tip ? (INTV)(0)", "0 ? (INTV)(0)", DEEP),
    Mutant("divided difference without its length", KERNEL_P, "difference = t * ((grow", "difference = ((grow",
           on_vector(GRADIENTS)),
    Mutant("divided difference from the faster decay", KERNEL_P, "grow[k] > grow[l] ?", "grow[k] < grow[l] ?",
           on_vector(GRADIENTS)),
    Mutant("a row of P is the first one", ARITHMETIC, "component * MATRIX_VALUES + i * N_STATES;",
           "component * MATRIX_VALUES;", JOINED),
    Mutant("a row of a table is the first one", ARITHMETIC, "dot_sums(product->table + i * N_STATES, product->x)",
           "dot_sums(product->table, product->x)", JOINED),
    Mutant("the first state left out of rows of P", ARITHMETIC, "REALV sum = p[0] * x[0];", "REALV sum = 0 * x[0];",
           JOINED),
    Mutant("tip code shifted by one", ARITHMETIC, "(codes >> state) & 1", "(codes >> (state + 1)) & 1", JOINED),
    Mutant("all lanes have the first one's tip", ARITHMETIC, "return (int)code[LANE];", "return (int)code[0];",
           (PMATRICES, "-k", LANES)),
    Mutant("sign of the scaling count", ARITHMETIC, "scale[c * STRIDE] += CONVERT(int, taken)",
           "scale[c * STRIDE] -= CONVERT(int, taken)", DEEP),
    Mutant("sign of the scaling factor", ARITHMETIC, "power_of_two(-taken)", "power_of_two(taken)", DEEP),
    Mutant("only the first component rescaled", ARITHMETIC,
           "for (int c = 0; c < N_COMPONENTS; c++) {\n        __global REALV *x",
           "for (int c = 0; c < 1; c++) {\n        __global REALV *x", DEEP),
    Mutant("only the first component's entries rescaled", ARITHMETIC, "x = cla + c * N_STATES * STRIDE;", "x = cla;",
           DEEP),
    Mutant("large components rescaled, not small ones", ARITHMETIC, "largest < THRESHOLD && largest > 0",
           "largest > THRESHOLD && largest > 0", DEEP),
    Mutant("a component rescaled by half of what is counted", ARITHMETIC, "exponent + EXPONENT_BIAS;",
           "exponent + (EXPONENT_BIAS - 1);", DEEP),
    Mutant("powers of two that are too small wrap", ARITHMETIC, "(biased > 0 ? biased : (BITSV)(0)) << MANTISSA_BITS",
           "biased << MANTISSA_BITS", STEEP),
    Mutant("scale of the first component", ARITHMETIC, "((size_t)block * N_COMPONENTS + component) * STRIDE + LANE",
           "((size_t)block * N_COMPONENTS) * STRIDE + LANE", STEEP),
    Mutant("scale of the first block", ARITHMETIC, "((size_t)block * N_COMPONENTS + component) * STRIDE + LANE",
           "((size_t)component) * STRIDE + LANE", DEEP),
    Mutant("components aligned the wrong way", INSTRUCTIONS, "count - largest", "largest - count", STEEP),
    Mutant("components aligned to the smallest", INSTRUCTIONS, "largest = count > largest ? count : largest",
           "largest = c && count > largest ? largest : count", STEEP),
    Mutant("components aligned to the last", INSTRUCTIONS, "largest = count > largest ? count : largest",
           "largest = count", STEEP),
    Mutant("only the first component aligned", INSTRUCTIONS, "count - largest", "(count - largest) * (component ? 0 : 1)",
           STEEP),
    Mutant("only the last component aligned", INSTRUCTIONS, "count - largest",
           "(count - largest) * (component < N_COMPONENTS - 1 ? 0 : 1)", STEEP),
    Mutant("first operand's count lost", INSTRUCTIONS,
           "load_scale(&job->a, block, component) + load_scale(&job->b, block, component)",
           "load_scale(&job->b, block, component)", DEEP),
    Mutant("second operand's count lost", INSTRUCTIONS,
           "load_scale(&job->a, block, component) + load_scale(&job->b, block, component)",
           "load_scale(&job->a, block, component)", DEEP),
    Mutant("third operand's count lost", INSTRUCTIONS, "count += load_scale(&job->c, block, component);", ";", DEEP),
    Mutant("an invariable component counts where its ends disagree", INSTRUCTIONS,
           "share_a_state(job, tip_a, tip_b, tip_c, block, component) ? count", "1 ? count", STILL),
    Mutant("sums of mixed precision are single", LAYOUT_PY, "\"mixed\": (np.dtype(np.float32), np.dtype(np.float64))",
           "\"mixed\": (np.dtype(np.float32), np.dtype(np.float32))", SINGLE),
    Mutant("INSERT takes a tip for a slot", INSTRUCTIONS, "known.b.is_tip = 1;", "known.b.is_tip = 0;", JOINED),
    Mutant("a slot keeps the states of a tip", ARITHMETIC, "load_codes(o, block) & -o->is_tip", "load_codes(o, block)", JOINED),
    Mutant("no component has rate 0", TRAVERSE, "_VALUES - 1] == 0;", "_VALUES - 1] < 0;", STILL),
    Mutant("log: a term of the series is wrong", JOB, "zz + 1.0 / 9)", "zz + 1.0 / 8)", IS_NUMPY),
    Mutant("log of a likelihood of 0 is a number", JOB, "bad ? (DOUBLEV)((double)NAN) : log_of(x)", "log_of(x)",
           (ERRORS, "-k", "weighs_nothing and vector-vw4")),
    # --- kernels: tables of tips, where vectors have 4 lanes
    Mutant("sets: a table made for other sets", KERNEL_P, "set >> j & 1)", "set >> (j ^ 1) & 1)", IS_NUMPY),
    Mutant("sets: rows of P in the table", KERNEL_P, "p[ENTRY(min(i, N_STATES - 1), j)]", "p[ENTRY(j, min(i, N_STATES - 1))]",
           IS_NUMPY),
    Mutant("sets: the table of the first component", ARITHMETIC, "(branch + TABLES_START) + component * TABLE_ROWS",
           "(branch + TABLES_START)", IS_NUMPY),
    Mutant("sets: lane 3 has the tip of lane 2", ARITHMETIC, "sums[tip->set[3]]", "sums[tip->set[2]]", IS_NUMPY),
    # --- kernels: tables of tips, where vectors have 8 lanes
    Mutant("wide: tables begin a row too early", ARITHMETIC,
           "branch + TABLES_START + (", "branch + TABLES_START - VW + (",
           WIDE),
    Mutant("wide: row of the first state", ARITHMETIC,
           "(component * N_STATES + i) * VW", "component * N_STATES * VW", WIDE),
    Mutant("wide: table of the first component", ARITHMETIC, "(component * N_STATES + i) * VW", "i * VW", WIDE),
    Mutant("wide: table made a set too late", KERNEL_P,
           "((int *)&set)[e] = e;", "((int *)&set)[e] = (e + 1) % VW;", WIDE),
    Mutant("wide: the state beyond the table counted twice", ARITHMETIC, "+= CONVERT(REAL, set == 0)", "+= 0", WIDE),
    Mutant("wide: the empty set holds nothing", KERNEL_P,
           "sum -= p[ENTRY(i, TABLE_STATES)]", "sum -= 0", WIDE),
    Mutant("wide: a state left out of the table", KERNEL_P, "j < TABLE_STATES; j++", "j < TABLE_STATES - 1; j++", WIDE),
    Mutant("wide: columns of P in the table", KERNEL_P, "sum = p[ENTRY(i, j)] *", "sum = p[ENTRY(j, i)] *", WIDE),
    Mutant("wide: a state masked out of the set", ARITHMETIC, "codes & ((1 << TABLE_STATES) - 1)",
           "codes & ((1 << (TABLE_STATES - 1)) - 1)", WIDE),
    Mutant("wide: a state beyond the table skipped", ARITHMETIC,
           "for (int j = TABLE_STATES; j < N_STATES; j++)\n            sum =",
           "for (int j = TABLE_STATES + 1; j < N_STATES; j++)\n            sum =", WIDE),
    Mutant("wide: states beyond the table are their neighbours", ARITHMETIC, "tip->member[j] = has_state(codes, j)",
           "tip->member[j] = has_state(codes, j - 1)", WIDE),
    Mutant("wide: a state beyond the table has its neighbour's P", ARITHMETIC,
           "? sums[0] : p[j])", "? sums[0] : p[j - 1])",
           WIDE),
    Mutant("wide: lane 7 picks as lane 6", ARITHMETIC, "t[i[6]], t[i[7]]))\n#elif", "t[i[6]], t[i[6]]))\n#elif", WIDE),
    Mutant("wide: lane 15 picks as lane 14", ARITHMETIC, "t[i[15]]))", "t[i[14]]))", WIDEST),
    Mutant("wide: 16 lanes, lane 7 picks as lane 6", ARITHMETIC, "t[i[6]], t[i[7]], \\\n", "t[i[6]], t[i[6]], \\\n",
           WIDEST),
    # --- kernels: one block of many states
    Mutant("many: rows of the last tile left out", MANY_H, "min(tile * ROWS, N_STATES - ROWS)",
           "min(tile * ROWS, N_STATES - 2 * ROWS)", MANY),
    Mutant("many: the last state left out", MANY_H, "for (int j = 1; j < N_STATES; j++) {",
           "for (int j = 1; j < N_STATES - 1; j++) {", MANY),
    Mutant("many: ambiguous tips looked up like columns", MANY_H,
           "    if (largest > N_STATES)\n        return 0;\n", "", MANY),
    Mutant("many: only the first lane asked for ambiguity", MANY_H, "largest = max(largest, (int)code[l]);",
           "largest = (int)code[0];", MANY),
    Mutant("many: all lanes look up the first lane's tip", MANY_H, "table + (size_t)code[l] * N_STATES",
           "table + (size_t)code[0] * N_STATES", MANY),
    Mutant("many: ambiguous sets in another order", CODES_PY, "given[other]]", "given[other][::-1]]",
           (MANY_STATES, "-k", "brute_force and numpy and 20-4")),
    Mutant("many: row sums of the model's tables", OPENCL_PY, "matrix.sum(axis=1)]", "matrix.sum(axis=0)]", MANY),
    Mutant("many: the last component decides on rescaling", INSTRUCTIONS, "c ? least[block] : (REALV)(1)", "(REALV)(1)",
           MANY_DEEP),
    Mutant("many: NEWVIEW drops the scale of its second source", INSTRUCTIONS,
           "load_scale(&job->a, block, c) + load_scale(&job->b, block, c);", "load_scale(&job->a, block, c) ;",
           MANY_DEEP),
    # --- kernels: instructions
    Mutant("every branch starts the sum of the gradient", TRAVERSE, "(op != RATE_MATRIX_GRADIENT || c)", "1",
           on_vector(GRADIENTS)),
    Mutant("DERIVATIVE takes the first decay twice", INSTRUCTIONS, "first = d[N_STATES + k] * s", "first = d[k] * s",
           on_vector(DERIVATIVES, "every_branch")),
    Mutant("DERIVATIVE leaves out an eigenvalue", INSTRUCTIONS, "k < N_STATES - 1; k++) {", "k < N_STATES - 2; k++) {",
           on_vector(DERIVATIVES, "every_branch")),
    Mutant("TRIPLET reads the slopes of another branch", TRAVERSE, "job.qb = q_base + (size_t)pb",
           "job.qb = q_base + (size_t)pa", on_vector(DERIVATIVES, "triplet")),
    Mutant("TRIPLET: product of the wrong gradients", JOB, "inverse - value[2] * value[3]",
           "inverse - value[1] * value[3]", on_vector(DERIVATIVES, "triplet")),
    Mutant("RATE_MATRIX_GRADIENT keeps the ends of another block", INSTRUCTIONS,
           "SUMV *of_block = ends + block * 2 * N_STATES;", "SUMV *of_block = ends;",
           on_vector(GRADIENTS)),
    Mutant("RATE_MATRIX_GRADIENT of the wrong row", INSTRUCTIONS, "CONVERT(double, sa[row + k])", "CONVERT(double, sa[row])",
           on_vector(GRADIENTS)),
    Mutant("RATE_MATRIX_GRADIENT without its component's factor", INSTRUCTIONS, "of_block[k] = product_row(&sa, k) * factor;",
           "of_block[k] = product_row(&sa, k);", DEEP_GRADIENTS),
    Mutant("MASS_GRADIENT without the masses", INSTRUCTIONS, "CONVERT(double, (m[i] * (factor * xa[i]))",
           "CONVERT(double, (factor * xa[i])", on_vector(GRADIENTS)),
    Mutant("MASS_GRADIENT without its component's factor", INSTRUCTIONS, "CONVERT(double, (m[i] * (factor * xa[i]))",
           "CONVERT(double, (m[i] * xa[i])", DEEP_GRADIENTS),
    Mutant("gradients without weights", INSTRUCTIONS, "shares[block] = load_weights(job, block) /",
           "shares[block] = (DOUBLEV)(1.0) /", on_vector(GRADIENTS)),
    Mutant("NEWVIEW drops the scale of its first source", INSTRUCTIONS,
           "(a_is_tip ? (INTV)(0) : load_scale(&a, block, c))", "(INTV)(0)", DEEP),
    Mutant("NEWVIEW drops the scale of its second source", INSTRUCTIONS,
           "(b_is_tip ? (INTV)(0) : load_scale(&b, block, c))", "(INTV)(0)", DEEP),
    Mutant("NEWVIEW uses one P for both", INSTRUCTIONS,
           "row_product(pb, c, i, b_is_tip", "row_product(pa, c, i, b_is_tip",
           JOINED),
    Mutant("NEWVIEW uses the P of the first component", INSTRUCTIONS,
           "row_product(pa, c, i", "row_product(pa, 0, i", JOINED),
    Mutant("NEWVIEW of two tips uses the first one twice", INSTRUCTIONS, "load_tip_block(&b, block, &tip_b)",
           "load_tip_block(&a, block, &tip_b)", IS_NUMPY),
    Mutant("NEWVIEW with a tip in front swaps the matrices", INSTRUCTIONS, "job->a, 1, pa, job->b, 0, pb,",
           "job->a, 1, pb, job->b, 0, pa,", IS_NUMPY),
    Mutant("NEWVIEW with a tip behind swaps the matrices", INSTRUCTIONS, "job->b, 1, pb, job->a, 0, pa,",
           "job->b, 1, pa, job->a, 0, pb,", IS_NUMPY),
    Mutant("the largest component decides on rescaling", INSTRUCTIONS, "largest < least ? largest : least;",
           "largest > least ? largest : least;", DEEP),
    Mutant("the last component decides on rescaling", INSTRUCTIONS, "largest < least ? largest : least;",
           "largest;", STEEP),
    Mutant("PROPAGATE loses the scale", INSTRUCTIONS, "load_scale(&job->a, block, c);", "(INTV)(0);", DEEP),
    Mutant("EVALUATE without pi", INSTRUCTIONS, "sum = (m[i] * xa[i]) * product_row", "sum = xa[i] * product_row",
           on_vector(PMATRICES)),
    Mutant("EVALUATE takes pi at the first component", INSTRUCTIONS, "sum = (m[i] * xa[i]) * product_row",
           "sum = (job->model[i] * xa[i]) * product_row", on_vector(PMATRICES)),
    Mutant("EVALUATE does not align components", INSTRUCTIONS,
           "likelihood = align_component(job, &tip_a, &tip_b, 0, block, c, scale) * sum + likelihood",
           "likelihood = sum + likelihood", STEEP),
    Mutant("scale undone with the wrong logarithm", JOB, "CONVERT(double, scale) * M_LN2",
           "CONVERT(double, scale) * M_LN10", DEEP),
    Mutant("EVALUATE ignores weights", INSTRUCTIONS, "load_weights(job, block) * lnl[block]", "lnl[block]", WEIGHTS),
    Mutant("weight of the first block", JOB, "job->weights + (size_t)block * STRIDE + LANE", "job->weights + LANE",
           IS_NUMPY),
    Mutant("weights of the first tile", TRAVERSE, "job.weights = weights + lanes;", "job.weights = weights;", IS_NUMPY),
    Mutant("passes store in the same place", INSTRUCTIONS, "partial + pass * n_made", "partial", on_vector(GRADIENTS)),
    Mutant("DERIVATIVE without -d1^2", JOB, "CONVERT(double, second) * inverse - d1 * d1",
           "CONVERT(double, second) * inverse", on_vector(DERIVATIVES, "every_branch")),
    Mutant("DERIVATIVE takes the decay of the first component", INSTRUCTIONS,
           "job->decay + c * 3 * N_STATES;\n            Product sa, sb;\n"
           "            likelihood += factor * to_eigenbasis(job, &tip_a, &tip_b, block, c, &sa, &sb);\n"
           "            UNROLL\n            for (int k = 0; k < N_STATES - 1; k++) {",
           "job->decay;\n            Product sa, sb;\n"
           "            likelihood += factor * to_eigenbasis(job, &tip_a, &tip_b, block, c, &sa, &sb);\n"
           "            UNROLL\n            for (int k = 0; k < N_STATES - 1; k++) {",
           on_vector(DERIVATIVES, "every_branch")),
    Mutant("likelihood at length 0 is not aligned", INSTRUCTIONS, "            likelihood += factor * to_eigenbasis(job, &tip_a, &tip_b, block, c, &sa, &sb);\n"
           "            UNROLL\n            for (int k = 0; k < N_STATES - 1; k++) {",
           "            likelihood += to_eigenbasis(job, &tip_a, &tip_b, block, c, &sa, &sb);\n"
           "            UNROLL\n            for (int k = 0; k < N_STATES - 1; k++) {", STEEP),
    Mutant("ends of a branch are not aligned", INSTRUCTIONS, "const SUMV s = (product_row(&sa, k) * factor)",
           "const SUMV s = product_row(&sa, k)", STEEP),
    Mutant("INSERT loses the scale of the subtree", INSTRUCTIONS,
           "largest_scale(job, &tip_a, &tip_b, &tip_c, block);\n        LOOP",
           "largest_scale(job, &tip_a, &tip_b, 0, block);\n        LOOP", DEEP),
    Mutant("INSERT does not align components", INSTRUCTIONS,
           "likelihood = align_component(job, &tip_a, &tip_b, &tip_c, block, c, scale) * sum + likelihood",
           "likelihood = sum + likelihood", STEEP),
    Mutant("TRIPLET loses the scale of an operand", INSTRUCTIONS,
           "largest_scale(job, &tip_a, &tip_b, &tip_c, block);\n        UNROLL",
           "largest_scale(job, &tip_a, &tip_b, 0, block);\n        UNROLL", DEEP),
    Mutant("TRIPLET does not align components", INSTRUCTIONS, "(m[i] * factor, ai", "((SUMV)(m[i]), ai", STEEP),
    Mutant("TRIPLET swaps entries of the Hessian", JOB, "CONVERT(double, sum[8]) * inverse",
           "CONVERT(double, sum[9]) * inverse", on_vector(DERIVATIVES, "triplet")),
    Mutant("TRIPLET mixes P' and P''", INSTRUCTIONS, "product(slopes + component * MATRIX_VALUES",
           "product(slopes + MATRIX_REALS + component * MATRIX_VALUES", on_vector(DERIVATIVES, "triplet")),
    # --- kernels: matrices staged in local memory
    Mutant("staged: both sources go along the same branch", INSTRUCTIONS, "pb[e] = job->pb[e]", "pb[e] = job->pa[e]",
           STAGED),
    Mutant("staged: the last components left out", INSTRUCTIONS, "IS(op, NEWVIEW) ? MATRIX_REALS",
           "IS(op, NEWVIEW) ? MATRIX_VALUES", STAGED),
    Mutant("staged: matrices overlap", INSTRUCTIONS, "*pb = pa + MATRIX_REALS", "*pb = pa + MATRIX_VALUES", STAGED),
    Mutant("staged: more than local memory holds", LAYOUT_CHOICE_PY, "staged_matrices=matrices <=",
           "staged_matrices=matrices // 2 <=", (SELECT, "-k", "staged_where")),
    # --- kernels: states shared by work-items
    Mutant("together: every tile of a table is the first one", SHARED, "j = first + e / PADDED_STATES",
           "j = e / PADDED_STATES", TOGETHER),
    Mutant("together: every tile of a CLA is the first one", SHARED, "component, first + e / VW, e % VW",
           "component, e / VW, e % VW", TOGETHER),
    Mutant("together: a table read by rows", SHARED, "table[j * N_STATES + i]", "table[i * N_STATES + j]", TOGETHER),
    Mutant("together: padding states take part", SHARED, "i < N_STATES ? table", "i < PADDED_STATES ? table", TOGETHER),
    Mutant("together: padding states are looked up", SHARED,
           "FIRST_STATE + r < N_STATES ? table[code * N_STATES + FIRST_STATE + r] : 0",
           "table[code * N_STATES + FIRST_STATE + r]", TOGETHER_TIPS),
    Mutant("together: padding states of a CLA are stored", SHARED,
           "        if (FIRST_STATE + r < N_STATES)\n            cla", "            cla", TOGETHER),
    Mutant("together: every worker has the first one's rows", SHARED, "j * PADDED_STATES + FIRST_STATE + r",
           "j * PADDED_STATES + r", TOGETHER),
    Mutant("together: every lane has the first one's CLA", SHARED, "x[j * VW + LANE]", "x[j * VW]", TOGETHER),
    Mutant("together: the last columns left out", SHARED, "j < n_columns; j += COLUMN_TILE",
           "j + COLUMN_TILE < n_columns; j += COLUMN_TILE", TOGETHER),
    Mutant("together: the last tile as long as the others", SHARED, "min(COLUMN_TILE, N_STATES - j)", "COLUMN_TILE",
           (SHARED_STATES, "-k", "every_request and 61x2")),
    Mutant("together: ambiguous tips are looked up", SHARED, "o->is_tip && largest <= N_STATES ? 0", "o->is_tip ? 0", TOGETHER),
    Mutant("together: the last lane's tip is not asked", SHARED, "l < VW; l++)\n            largest = max",
           "l < VW - 1; l++)\n            largest = max", TOGETHER_TIPS),
    Mutant("together: the last worker's sums left out", SHARED, "w < STATE_WORKERS; w++", "w < STATE_WORKERS - 1; w++",
           TOGETHER),
    Mutant("together: sums of the first lane", SHARED, "terms[w * VW + LANE]", "terms[w * VW]", TOGETHER),
    Mutant("together: the sum is the largest term", SHARED, "IS(task, NEWVIEW) ? (term", "1 ? (term", TOGETHER),
    Mutant("together: small components are not scaled", SHARED, "IS(op, NEWVIEW) ? power_to_take(largest) : 0", "0",
           TOGETHER_DEEP),
    Mutant("together: scaling of the wrong sign", SHARED, "factor = power_of_two(-taken)",
           "factor = power_of_two(taken)", TOGETHER_DEEP),
    Mutant("together: scale of the second source dropped", SHARED,
           "(IS(op, NEWVIEW) ? load_scale(&job->b, block, component) : 0)", "0", TOGETHER_DEEP),
    Mutant("together: sums keep the scale of an earlier component", SHARED, "pattern->sum[v] * before +",
           "pattern->sum[v] +", TOGETHER_DEEP),
    Mutant("together: components are not aligned", SHARED, "sum[v] * factor;", "sum[v];", TOGETHER_DEEP),
    Mutant("together: what cannot be counts", SHARED, "count = IMPOSSIBLE;", ";", TOGETHER_STILL),
    Mutant("together: TRIPLET mixes P' and P''", SHARED, "(order - 1) * MATRIX_REALS", "(2 - order) * MATRIX_REALS",
           TOGETHER),
    Mutant("together: decay of the first component", SHARED, "job->decay + component * 3 * N_STATES", "job->decay",
           TOGETHER),
    Mutant("together: terms without pi", SHARED, "(m[i] * own_entry(&job->c", "(own_entry(&job->c", TOGETHER),
    Mutant("together: ends of a branch not aligned", SHARED, "(double)(PRODUCT(2, 0)[r] * factor)", "(double)PRODUCT(2, 0)[r]",
           TOGETHER_DEEP),
    Mutant("together: every tile of a gradient is the first one", SHARED, "FIRST_STATE + r - first", "FIRST_STATE + r",
           (SHARED_STATES, "-k", "gradients and 61-lanes-vw32")),
    Mutant("together: gradient of the first component", SHARED, "partial + (size_t)made * n_left * n_right", "partial",
           TOGETHER_GRADIENTS),
    Mutant("together: divided differences of the first component", SHARED,
           "job->differences + (size_t)made * N_STATES * N_STATES", "job->differences", TOGETHER_GRADIENTS),
    Mutant("together: gradients without divided differences", SHARED,
           "sum *= (double)difference[a * N_STATES + b];", ";",
           TOGETHER_GRADIENTS),
    Mutant("together: the last lane not summed", SHARED, "l < VW; l++)\n            sum = left",
           "l < VW - 1; l++)\n            sum = left", TOGETHER),
    Mutant("together: every block overwrites the sum", SHARED, "first && block == 0, sums", "first, sums", TOGETHER),
    Mutant("together: values in rows of states", SHARED, "partial[a * n_right + b] = first", "partial[a + b] = first",
           TOGETHER_GRADIENTS),
    Mutant("together: weights of the first block", SHARED, "left[LANE] = load_weights(job, block)",
           "left[LANE] = load_weights(job, 0)", TOGETHER),
    Mutant("together: values not weighted", SHARED, "left[LANE] = load_weights(job, block)", "left[LANE] = 1",
           TOGETHER_WEIGHTS),
    Mutant("more work-items than a group can have", LAYOUT_CHOICE_PY, "min(-(-layout.n_states // GPU_OWN_STATES), max_items",
           "min(-(-layout.n_states // GPU_OWN_STATES), 2 * max_items", TOGETHER_RULE),
    Mutant("more local memory than a group can have", LAYOUT_CHOICE_PY, "shared.local_bytes <= local_memory",
           "shared.local_bytes <= 2 * local_memory", TOGETHER_RULE),
    Mutant("local memory without the CLA's tile", LAYOUT_PY, "self.column_tile * (padded + self.vw)",
           "self.column_tile * padded", TOGETHER_RULE),
    # --- kernels: tiles and groups
    Mutant("every tile overwrites the sum", INSTRUCTIONS,
           "partial[v] = first_tile ? sum : partial[v] + sum;\n    }\n#endif",
           "partial[v] = sum;\n    }\n#endif", (ENGINES, "-k", "number_of_groups and vector-vw2")),
    Mutant("the first tile adds to what was there", INSTRUCTIONS,
           "partial[v] = first_tile ? sum : partial[v] + sum;\n    }\n#endif",
           "partial[v] = partial[v] + sum;\n    }\n#endif", (ENGINES, "-k", "same_bits and vector-vw4")),
    Mutant("a vector's last lane not summed", INSTRUCTIONS, "((const double *)&values[v])[l]",
           "(l == VW - 1 ? 0.0 : ((const double *)&values[v])[l])", JOINED),
    Mutant("lane reduction leaves out the last lane", INSTRUCTIONS,
           "l < RUN_LANES; l++)", "l < RUN_LANES - 1; l++)",
           (ENGINES, "-k", "other_models and 4-1-lanes")),
    Mutant("lanes of different values mixed", INSTRUCTIONS, "shared[v * VW + LANE] = values[v]",
           "shared[v * VW + LANE] = values[0]", (PMATRICES, "-k", LANES)),
    Mutant("slot stride ignored by the result", TRAVERSE, "storage + find_slot(result, first_shifted, shift) * slot",
           "storage + (size_t)result * TILE_BLOCKS * 2 + 0 * slot", JOINED),
    Mutant("every track runs to the end", TRAVERSE, "n < track[TRACK_END]", "n < tracks[TRACK_WORDS * (get_num_groups(1) - 1) + TRACK_END]", PIECES),
    Mutant("tracks share their scratch", TRAVERSE, "slot < first_shifted ? slot : slot + shift", "slot", PIECES),
    Mutant("tracks shift every slot", TRAVERSE, "slot < first_shifted ? slot : slot + shift", "slot + shift", PIECES),
    Mutant("every model is the first one", TRAVERSE, "span[SPAN_PART] + track[TRACK_PSET_SHIFT]", "span[SPAN_PART]", LIKELIHOODS),
    Mutant("every model's lnL in the same place", TRAVERSE, "* n_values + track[TRACK_VALUE_SHIFT]", "* n_values", LIKELIHOODS),
    Mutant("the proposal stays", OPENCL_PY, "                self._send_model(self._parts)", "                pass",
           LIKELIHOODS),
    Mutant("more tracks than slots", SCHEDULE_PY, "(n_slots - request.scratch.start)", "n_slots",
           (SCHEDULE,)),
    Mutant("spans stored in the same place", TRAVERSE, "(size_t)(span[SPAN_PLACE] + (keep ? t : 0))", "(size_t)(keep ? t : 0)",
           on_vector(ENGINES, "growing_program")),
    Mutant("tiles that are kept stored in the same place", TRAVERSE, "(keep ? t : 0)", "0",
           (ENGINES, "-k", "not_kept and vector-vw2")),
    Mutant("every span begins its group", TRAVERSE, "span[SPAN_BEGINS] && t == 0", "t == 0", (STREAMING, "-k", "vector-vw2")),
    Mutant("sums of a span in the place of another group", TRAVERSE, "(size_t)span[SPAN_GROUP] * n_values",
           "(size_t)(first_span + (int)get_group_id(0)) * n_values", (STREAMING, "-k", "vector-vw2")),
    # --- levels
    Mutant("levels: with any number of spans below the wanted groups", SCHEDULE_PY, "GPU_LEVEL_SPANS * wanted_groups",
           "wanted_groups", (SCHEDULE, "-k", "as_are_wanted")),
    Mutant("a set that lacks an instruction of the program", KERNELS_PY, "if opcodes <= known", "if opcodes & known",
           ("tests/engine/test_opcode_sets.py", "-k", "first_set")),
    Mutant("kernels cut on every device", LAYOUT_CHOICE_PY, "cut_kernels=device.kind == \"gpu\"", "cut_kernels=True",
           (SELECT, "-k", "cut_on_gpus or shape_of_a_gpu")),
    Mutant("levels: what is read may be overwritten at the same time", SCHEDULE_PY, "read.get(target, -1)]", "-1]",
           (SCHEDULE, "-k", "levels_of_random")),
    Mutant("levels: what is made may be overwritten at the same time", SCHEDULE_PY, "[made.get(target, -1),", "[-1,",
           (SCHEDULE, "-k", "levels_of_random")),
    Mutant("levels: what is read may be made at the same time", SCHEDULE_PY, "made.get(slot, -1) for", "-1 for",
           (SCHEDULE, "-k", "levels_of_random")),
    Mutant("levels: more CLAs than slots", SCHEDULE_PY, "n_made <= n_slots", "True", (SCHEDULE, "-k", "slot_of_its_own")),
    Mutant("levels: an operand in its old slot", SCHEDULE_PY, "row[word] = place[row[word]]", "pass",
           (SCHEDULE, "-k", "slot_of_its_own")),
    Mutant("levels: CLAs that are kept are moved", OPENCL_PY, "request.program if request.keep else spread",
           "spread", (SCHEDULE, "-k", "stay_in_their_slots")),
    Mutant("levels: the third operand is not waited for", SCHEDULE_PY, "in (Opcode.INSERT, Opcode.TRIPLET)", "in (Opcode.TRIPLET,)",
           (SCHEDULE, "-k", "levels_of_random")),
    Mutant("levels: only the last reader is waited for", SCHEDULE_PY, "max(read.get(slot, -1), level)", "level",
           (SCHEDULE, "-k", "levels_of_random")),
    Mutant("levels: a level in no order", SCHEDULE_PY, 'program[np.argsort(levels, kind="stable")]', "program",
           (SCHEDULE, "-k", "tracks_of_a_level")),
    Mutant("levels: every launch takes the first tracks", TRAVERSE, "first_track + get_group_id(1)", "get_group_id(1)",
           LEVELS),
    Mutant("levels: of tiles in the same slots", OPENCL_PY, "(request.keep or self._tiles_apart)", "True",
           (SCHEDULE, "-k", "tiles_in_the_same")),
    Mutant("levels: those of the last program", OPENCL_PY, "self._planned[0] != name", "False", LEVELS),
    # --- memory
    Mutant("runs overlap by a tile", STORAGE_PY, "range(0, int(counts.max()), share)",
           "range(0, int(counts.max()), max(1, share - 1))", (STORAGE_TESTS,)),
    Mutant("runs larger than the memory", STORAGE_PY, 'np.searchsorted(totals, capacity, side="right"))',
           'np.searchsorted(totals, capacity, side="right") + 1)', (STORAGE_TESTS,)),
    Mutant("a group begins with every run", STORAGE_PY, "start == 0)", "True)", (STORAGE_TESTS,)),
    Mutant("prefix at the request's own lengths", PREPARED_PY, "branches + np.int32(first)", "branches",
           (STREAMING, "-k", "is_resident and numpy")),
    Mutant("only one branch of the prefix moved", PROGRAM_PY,
           "program[:, BRANCHES] = np.where(against, ~new, new)",
           "program[:, BRANCHES[:1]] = np.where(against, ~new, new)[:, :1]",
           (STREAMING, "-k", "is_resident and numpy")),
    Mutant("stale CLAs are kept when lengths change", LIKELIHOOD_PY,
           "self._prepared is None or not np.array_equal(self._prepared.lengths, lengths)",
           "self._prepared is None", (STREAMING, "-k", "are_noticed and numpy")),
    Mutant("stale CLAs are kept when slots are taken", LIKELIHOOD_PY,
           "        self._prepared = None\n        request =", "        request =",
           (STREAMING, "-k", "are_noticed and numpy")),
    Mutant("the stack counts the larger subtree", "plltool/tree/operations.py", "(size[below] < size[other])",
           "(size[below] > size[other])", (OPERATIONS,)),
    Mutant("the larger subtree first", "plltool/tree/operations.py", "np.where(smaller[below], 0, 2 * size[other] - 1)",
           "np.where(smaller[below], 2 * size[other] - 1, 0)", (OPERATIONS,)),
    Mutant("pre-order CLA of the wrong neighbour", LIKELIHOOD_PY, "np.where(parent == top, ~ROOT, stack[parent])",
           "stack[parent]", (LENGTHS,)),
    Mutant("numpy: a run reads the tips of the first one", NUMPY, "self._tips[~index][self._blocks]",
           "self._tips[~index][: len(self._block_part)]", (STREAMING, "-k", "is_resident and numpy")),
    Mutant("tips of the first tile", TRAVERSE,
           "tile_tips = tips + lanes * n_taxa", "tile_tips = tips", IS_NUMPY),
    Mutant("matrices of the first part", TRAVERSE, "matrices + (size_t)pset * n_branches * BRANCH_VALUES", "matrices",
           IS_NUMPY),
    Mutant("model of the first part", TRAVERSE, "model + (size_t)pset * MODEL_REALS", "model", IS_NUMPY),
    Mutant("bad pattern counted within its tile", TRAVERSE, "job.first_pattern = (int)lanes",
           "job.first_pattern = 0", on_vector(ERRORS, "names_the_pattern")),
    Mutant("every level makes the same rows", SUMS_CL, "made = first_made + get_global_id(1)", "made = get_global_id(1)",
           (SUMS, "-k", "lanes-vw32")),
    Mutant("the last group is not added", SUMS_CL, "row < end;", "row < end - 1;", (SUMS, "-k", "lanes-vw32")),
    # --- host side of the OpenCL engine
    Mutant("the groups' values instead of the parts'", OPENCL_PY,
           'self._arrays.receive(values, "partial", first)', 'self._arrays.receive(values, "partial")', (SUMS, "-k", "lanes-vw32")),
    Mutant("a program is not sent again", ARRAYS_PY, "if self._sent.get(name) != content:", "if name not in self._sent:",
           (SUMS, "-k", "vector")),
    Mutant("matrices kept when the model changes", OPENCL_PY,
           "        self._made = None\n", "", on_vector(ENGINES, "set_model")),
    Mutant("slopes not made when the lengths are known", OPENCL_PY,
           "self._made[1].cover(tables) and ", "",
           on_vector(DERIVATIVES, "triplet_gradient")),
    Mutant("a bad pattern is remembered", OPENCL_PY,
           'self._arrays.overwrite("bad_pattern", np.array([NO_BAD_PATTERN]))', "pass",
           on_vector(ERRORS, "goes_on")),
    Mutant("U not transposed for sumGAMMA", OPENCL_PY, "self._table((mass[c][:, None] * right).T)",
           "self._table(mass[c][:, None] * right)", on_vector(DERIVATIVES, "every_branch")),
    # --- the contract
    Mutant("contract: two opcodes swapped", CONTRACT_PY, "INSERT = 4\n    TRIPLET = 5", "INSERT = 5\n    TRIPLET = 4",
           (CONTRACT, "-k", "without_gaps")),
    Mutant("contract: two arguments swapped", CONTRACT_PY, '"clas scales tips state_sets', '"scales clas tips state_sets',
           (CONTRACT, "-k", "parameter_lists")),
    Mutant("contract: an argument of another type", CONTRACT_PY, '("scales", "int"', '("scales", "REAL"',
           (CONTRACT, "-k", "parameter_lists")),
    Mutant("contract: what is written is const", CONTRACT_PY, 'writes="partial"', 'writes=""',
           (CONTRACT, "-k", "parameter_lists")),
    Mutant("contract: types are not checked", ARRAYS_PY, "array.dtype != declared.dtype or ", "",
           (CONTRACT, "-k", "wrong_type")),
    Mutant("contract: shapes are not checked", ARRAYS_PY, " or array.shape != declared.shape(sizes)", "",
           (CONTRACT, "-k", "wrong_type or few_words")),
    Mutant("contract: sizes are not checked", KERNELS_PY, "array.n_bytes < needed", "False",
           (CONTRACT, "-k", "too_small")),
    Mutant("contract: sizes of the launch are left out", KERNELS_PY, "needed *= numbers[size]", "pass",
           (CONTRACT, "-k", "too_small")),
    # --- layout
    Mutant("padding has weight", LAYOUT_PY, "np.zeros(self.n_lanes)",
           "np.ones(self.n_lanes)", (LAYOUT,)),
    Mutant("padding tips are empty", LAYOUT_PY, "self.padding_code, dtype=self.code",
           "0, dtype=self.code", (LAYOUT,)),
    Mutant("parts share a block", LAYOUT_PY, "tuple(-(-n // self.vw) for n in self.part_patterns)",
           "tuple(n // self.vw for n in self.part_patterns)", (LAYOUT,)),
    Mutant("strides swapped", LAYOUT_PY, "return self.tile_blocks, n_tiles * self.tile_blocks",
           "return n_tiles * self.tile_blocks, self.tile_blocks", (LAYOUT,)),
    # --- numpy engine
    Mutant("numpy: P transposed", NUMPY, "return table[self._block_part, branch] @ x",
           "return table[self._block_part, branch].swapaxes(-1, -2) @ x", BRUTE),
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
    Mutant("numpy: weights of the first run", NUMPY, "per_lane, self._weights[self._blocks]",
           "per_lane, self._weights[: per_lane.shape[1]]", (STREAMING, "-k", "is_resident and numpy")),
    Mutant("numpy: components not aligned", NUMPY, "np.maximum(counts - largest[:, None], -1023)", "0 * counts",
           STEEP_NUMPY),
    Mutant("numpy: components aligned to the smallest", NUMPY, "largest = np.max(counts, axis=1)",
           "largest = np.min(counts, axis=1)", STEEP_NUMPY),
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
    Mutant("lengths: worse rounds are kept", "plltool/optimise/lengths.py", "better = lnl > best_lnl",
           "better = lnl > -np.inf",
           (LENGTHS,)),
    Mutant("lengths: no common steps", "plltool/optimise/lengths.py", "np.where(is_coupled, apply_step(best, coupled),",
           "np.where(False, apply_step(best, coupled),", (LENGTHS, "-k", "common")),
    Mutant("coupling: steps far from the maximum count", "plltool/optimise/coupling.py",
           "np.where(is_near, step, 0.0), np.where(is_near, turn, 0.0)", "step, turn", (COUPLING,)),
    Mutant("coupling: all parts forget", "plltool/optimise/coupling.py", "(np.where(parts, 0.0, step), np.where(parts, 0.0, turn))",
           "(0.0 * step, 0.0 * turn)", (COUPLING,)),
    Mutant("coupling: lengths at a bound count", "plltool/optimise/coupling.py",
           "moves = (steps != 0.0) & (slopes != 0.0)", "moves = slopes != 0.0", (COUPLING,)),
    Mutant("coupling: convex steps count", "plltool/optimise/coupling.py", "is_concave = curvature > 0.0",
           "is_concave = curvature != 0.0", (COUPLING,)),
    Mutant("coupling: the second loop runs backwards", "plltool/optimise/coupling.py",
           "in reversed(used):", "in used:", (COUPLING,)),
    Mutant("scan: whole instead of half lengths", "plltool/tree_search/scan.py",
           "half, upward = tree.n_edges + columns", "half, upward = columns", (SCAN,)),
    Mutant("scan: walks into the wrong side", "plltool/tree_search/scan.py",
           "(at[\"entry\"] + turn) % 3, (at[\"entry\"] + 3 - turn) % 3",
           "(at[\"entry\"] + turn) % 3, (at[\"entry\"] + turn) % 3", (SCAN,)),
    Mutant("scan: starts from the near side of the gap", "plltool/tree_search/scan.py", "view.incoming[joints, far]",
           "view.incoming[joints, near]", (SCAN,)),
    Mutant("scan: gap not healed", "plltool/tree_search/scan.py", "2 * tree.n_edges + prune", "0 * tree.n_edges + prune",
           (SCAN,)),
    Mutant("scan: siblings before children", "plltool/tree_search/scan.py",
           "np.lexsort([columns[\"key\"][order], columns[\"prune\"][order]])",
           "np.lexsort([columns[\"depth\"][order], columns[\"prune\"][order]])", (SCAN,)),
    Mutant("insertions: ends confused", "plltool/tree_search/insertions.py", "first_end != far_node",
           "first_end == far_node", (INSERTIONS,)),
    Mutant("insertions: Hessian entry", "plltool/tree_search/insertions.py", "(0, 1), (0, 2), (1, 2)]):\n        hessian",
           "(0, 1), (1, 2), (0, 2)]):\n        hessian", (INSERTIONS,)),
    Mutant("climb: conflicts are not looked for", "plltool/tree_search/climb.py", "if touched & nodes:", "if False:",
           (CLIMB,)),
    Mutant("climb: failed moves stay", "plltool/tree_search/climb.py", "undo.restore(likelihood.tree)", "pass", (CLIMB,)),
    Mutant("constraint: free sides are not seen", "plltool/tree/constraint.py", "is_free | is_tip[self.homes]",
           "is_tip[self.homes]", (CONSTRAINT, "-k", "insertion")),
    Mutant("constraint: a complete region stays itself", "plltool/tree/constraint.py",
           "parents[low[v]] if counts[v] == sizes[low[v]] else low[v]", "low[v]", (CONSTRAINT, "-k", "obeys")),
    Mutant("constraint: the other split is named", "plltool/tree/constraint.py",
           "b if a < b < constraint.last[a] else a", "a if a < b < constraint.last[a] else b",
           (CONSTRAINT, "-k", "obeys")),
    Mutant("constraint: free branches forget where they hang", "plltool/tree/constraint.py",
           "low[node] = low[parent]\n", "pass\n", (CONSTRAINT, "-k", "insertion")),
    Mutant("constraint: growth looks at ends only", "plltool/tree/constraint.py",
           "(upper <= node) & (node <= lower)", "((upper == node) | (node == lower))", (CONSTRAINT, "-k", "growing")),
    Mutant("constraint: the walk goes anywhere", "plltool/tree_search/scan.py", "if admits is not None:", "if False:",
           (CONSTRAINED, "-k", "crowded")),
    Mutant("constraint: moves are not looked at together", "plltool/tree_search/climb.py",
           "and not constraint.is_obeyed_by(tree):", "and False:", (CONSTRAINED, "-k", "together")),
    Mutant("constraint: twins are one wherever they belong", "plltool/alignment/duplicates.py",
           "placed[first, place] if place >= 0 else any_placed.get(first, first)", "any_placed.get(first, first)",
           ("tests/analyses/test_constraints.py", "-k", "twins")),
    Mutant("lengths: no rival is out of reach", "plltool/optimise/lengths.py", "missing > 0 and (returns or", "False and (returns or",
           ("tests/optimise/test_lengths.py", "-k", "rival")),
    Mutant("lengths: nothing is foreseen", "plltool/optimise/lengths.py", "FORESIGHT * gains.sum() <= missing", "0.0 <= missing",
           ("tests/optimise/test_lengths.py", "-k", "rival")),
    Mutant("lengths: none return to a rival", "plltool/optimise/lengths.py", "(returns or FORESIGHT", "(FORESIGHT",
           ("tests/optimise/test_lengths.py", "-k", "rival")),
    Mutant("lengths: far from a maximum they return", "plltool/optimise/lengths.py", "returns = is_near and", "returns =",
           ("tests/optimise/test_lengths.py", "-k", "rival")),
    Mutant("lengths: those that return lead elsewhere", "plltool/optimise/lengths.py",
           "d1 * (self.lengths - lengths) < 0", "d1 * (self.lengths - lengths) > 0",
           ("tests/optimise/test_lengths.py", "-k", "rival")),
    Mutant("lengths: a rival that is beaten is returned to", "plltool/optimise/lengths.py", "missing > 0 and (returns", "(returns",
           ("tests/optimise/test_lengths.py", "-k", "rival")),
    Mutant("driver: radii always widen", "plltool/tree_search/stages.py", "wide_enough = at.lnl - at.marks[-1] <",
           "wide_enough = at.lnl - at.marks[-1] > 1e300 +", (DRIVER,)),
    Mutant("driver: the first radius may be the last", "plltool/tree_search/stages.py",
           "stage.radius > self.plan.radii[0]", "stage.radius > 0", (DRIVER,)),
    Mutant("scan: patience begins at the gap", "plltool/tree_search/scan.py", "at >= first", "at >= 0", (SCAN,)),
    Mutant("scan: no patience", "plltool/tree_search/scan.py", "if patient else scores[last]", "if False else scores[last]",
           (SCAN,)),
    Mutant("driver: rounds go on without moves", "plltool/tree_search/stages.py", " or not done.n_moves", "", (DRIVER,)),
    Mutant("gamma: series begins late", "plltool/model/gamma.py", "term *= x / shape", "term *= x / (shape + 1e-9)",
           (GAMMA,)),
    Mutant("gamma: steps too long", "plltool/model/gamma.py", "* series / shape", "* series", (GAMMA,)),
    Mutant("gamma: wrong term in the expansion of quantiles", "plltool/model/gamma.py", "(z**3 - 7 * z) / 36",
           "(z**3 - 5 * z) / 36", (GAMMA,)),
    Mutant("gamma: a term of Stirling's series is missing", "plltool/model/gamma.py", "1 / (12 * shape) - ", "-", (GAMMA,)),
    Mutant("gamma: slopes in the logarithm of a share that is almost 0", "plltool/optimise/parameters.py",
           "by_masses * (up_masses - down_masses)", "masses * np.log(up_masses / down_masses)",
           ("tests/optimise/test_parameter_gradients.py",)),
    Mutant("lengths: another start is kept though it is worse", "plltool/optimise/lengths.py",
           "if reached > lnl:", "if True:", ("tests/optimise/test_lengths.py", "-k", "another")),
    Mutant("driver: the least gain has no bound", "plltool/tree_search/stages.py", "min(self.most, self.share * abs(lnl))",
           "self.share * abs(lnl)", (DRIVER, "-k", "bound")),
    Mutant("climb: lengths are too precise", "plltool/tree_search/climb.py", "max(epsilon, ROUND_SHARE * abs(lnl))",
           "epsilon", (CLIMB, "-k", "precise")),
    Mutant("lengths: scales that gain almost nothing", "plltool/optimise/lengths.py", "lnls[best] < lnl + epsilon", "lnls[best] <= lnl",
           ("tests/optimise/test_lengths.py", "-k", "almost_the_same")),
    Mutant("lengths: the wrong scale is kept", "plltool/optimise/lengths.py", "if lnls[best] < lnl + epsilon:", "if True:",
           (LENGTHS, "-k", "scale")),
    Mutant("polish: scales are not tried", "plltool/optimise/polish.py",
           "lnl = try_scales(likelihood, lnl, done.precision)", "pass", (LENGTHS, "-k", "scale")),
    Mutant("driver: scales are not tried", "plltool/tree_search/stages.py",
           "before, lnl = lnl, try_scales(likelihood, lnl, epsilon)", "before = lnl", (DRIVER, "-k", "scale")),
    Mutant("ridge: lengths run away", "plltool/optimise/ridge.py", "response[:, k] = -change", "response[:, k] = change",
           (RIDGE, "-k", "follow")),
    Mutant("ridge: slopes leave out the lengths", "plltool/optimise/ridge.py",
           "np.append(own + (self._response * by_length[:, self._factor]).sum(axis=0)", "np.append(own", (RIDGE,)),
    Mutant("ridge: a bad step stays", "plltool/optimise/ridge.py", "model.assign(before)", "pass",
           (RIDGE, "-k", "undone")),
    Mutant("ridge: not climbed", "plltool/optimise/polish.py", "lnl = climb_ridge(likelihood, chosen, lnl)", "pass",
           ("tests/optimise/test_nested.py", "-k", "primates")),
    Mutant("gamma: rates between wrong quantiles", "plltool/model/rates.py", "gamma_probability(alpha + 1.0, bound)",
           "gamma_probability(alpha, bound)", ("tests/model/test_rates.py",)),
    Mutant("ratchet: weights do not come back", "plltool/optimise/likelihood.py",
           "self._set_weights(own)", "pass",
           (RATCHET, "-k", "never_lead_down")),
    Mutant("fusing: an exchange may lose anything", "plltool/tree_search/fusing.py", ">= -FUSING_LOSS", ">= -1e9",
           (FUSING, "-k", "too_much")),
    Mutant("fusing: nothing is regretted", "plltool/tree_search/fusing.py", "back.gains > 0", "back.gains > 1e9",
           (FUSING, "-k", "different_places")),
    Mutant("fusing: small gains are lost", "plltool/tree_search/fusing.py", "if lnl - ROUND_EPSILON < fused < lnl:",
           "if False:", (FUSING, "-k", "small_gain")),
    Mutant("ratchet: parts are reweighted like one", "plltool/tree_search/ratchet.py", "== 1 else resample",
           ">= 1 else resample", (RATCHET, "-k", "several_parts")),
    Mutant("difficulty: parts agree", "plltool/tree_search/difficulty.py", "conflict = _disagreement(alone)",
           "conflict = 0.0", ("tests/tree_search/test_difficulty.py",)),
    Mutant("fusing: a worse tree is kept", "plltool/tree_search/fusing.py", "if fused < lnl:", "if False:",
           (FUSING, "-k", "after_all")),
    Mutant("fusing: lengths of the tree, not of the donor", "plltool/tree_search/fusing.py",
           "branch = tree.n_edges + other.branch", "branch = other.branch", (FUSING, "-k", "alone")),
    Mutant("fusing: borders are seen from below", "plltool/tree_search/fusing.py",
           "np.where(is_border, view.outgoing[twin, own.column[twin]], slot)", "slot", (FUSING, "-k", "alone")),
    Mutant("ratchet: the perturbed tree stays", "plltool/tree_search/ratchet.py", "likelihood.tree.assign(base)", "pass",
           (RATCHET, "-k", "never_lead_down")),
    Mutant("ratchet: what fusing gained is not told", "plltool/tree_search/ratchet.py", "if fused <= lnl:", "if True:",
           (RATCHET, "-k", "never_lead_down")),
    Mutant("perturbations of large trees are as few", "plltool/tree_search/effort.py", "n_taxa / MANY_TAXA", "1.0",
           ("tests/tree_search/test_effort.py", "-k", "large_trees")),
    Mutant("starts: nothing is allowed besides", "plltool/tree_search/state.py", " + ABANDON_MARGIN <", " <",
           (STARTS, "-k", "hope")),
    Mutant("stopping: variance of the mean", "plltool/tree_search/stopping.py", "math.sqrt(n_sites * variance)",
           "math.sqrt(variance)", (STOPPING, "-k", "errors")),
    # --- resuming
    Mutant("resuming: the stop rule forgets", "plltool/tree_search/stages.py", "at.memory = rule.memory", "pass",
           (RESUME, "-k", "every_event and (rf or kh)")),
    Mutant("resuming: other perturbations", "plltool/tree_search/stages.py",
           "rng.bit_generator.state = at.generator", "pass",
           (RESUME, "-k", "every_event and dna")),
    Mutant("resuming: the polish starts over", "plltool/tree_search/stages.py",
           "done = None if at.polish is None else PolishRound.unpack(at.polish)", "done = None",
           (RESUME, "-k", "any_event")),
    Mutant("resuming: the polish forgets what it has learnt", "plltool/optimise/polish.py",
           "Curvatures.unpack(packed[5:])", "Curvatures.unpack(0 * packed[5:])", (PARTS, "-k", "goes_on and scaled")),
    Mutant("resuming: rounds look at the whole tree", "plltool/tree_search/stages.py",
           "at.lnl, at.joints, moves = done.lnl, done.joints, done.chosen",
           "at.lnl, moves = done.lnl, done.chosen", (DRIVER, "-k", "widen")),
    Mutant("resuming: failures are forgotten", "plltool/tree_search/state.py", "failures: int = 0",
           "failures: int = field(default=0, init=False)", (RESUME, "-k", "every_event and dna")),
    Mutant("resuming: frequencies of the start", "plltool/model/model.py",
           'self._rates, self._frequencies = values["exchangeabilities"], values["frequencies"]',
           'self._rates = values["exchangeabilities"]', (RESUME, "-k", "every_event and dna")),
    Mutant("resuming: the tree's order", "plltool/tree_search/state.py", 'getattr(tree, array) for array in TREE_ARRAYS}',
           'getattr(Tree.from_edges(tree.names, tree.ends, tree.lengths), array) for array in TREE_ARRAYS}',
           (RESUME, "-k", "every_event")),
    Mutant("resuming: damage goes unnoticed", "plltool/io/checkpoint.py", 'if header["sha256"] !=',
           'if None and header["sha256"] !=', ("tests/cli/test_cli_resume.py", "-k", "damaged")),
    # --- the ultrafast bootstrap
    Mutant("splits: branches of tips count as inner", "plltool/tree/topology.py", "(self.ends >= self.n_taxa).all(axis=1)",
           "(self.ends >= self.n_taxa).any(axis=1)", ("tests/tree/test_splits.py",)),
    Mutant("splits: bits ignore the names asked for", "plltool/tree/splits.py", "return [positions[name] for name in tree.names]",
           "return list(range(tree.n_taxa))", ("tests/tree/test_splits.py",)),
    Mutant("splits: the larger side", "plltool/tree/splits.py", "2 * split.bit_count() > tree.n_taxa",
           "2 * split.bit_count() < tree.n_taxa", ("tests/cli/test_cli_alrt.py",)),
    Mutant("splits: a lacking branch has length 0", "plltool/tree/splits.py", "differences.get(split, 0.0) - length",
           "differences.get(split, length) - length", ("tests/tree/test_splits.py",)),
    Mutant("vector: a value beyond its bound", "plltool/model/vector.py", "np.clip(np.exp(part), low, high)", "np.exp(part)",
           ("tests/model/test_model.py",)),
    Mutant("vector: groups in the order asked for", "plltool/model/vector.py",
           "tuple(group for group in model.free_parameters if group in wanted and group != CATEGORIES)",
           "tuple(group for group in wanted if group in model.free_parameters)", ("tests/model/test_model.py",)),
    # --- placement
    Mutant("placement: ends swapped", "plltool/tree_search/placement.py",
           "_sides(likelihood)[branches], _tips", "_sides(likelihood)[branches][:, ::-1], _tips",
           (PLACE, "-k", "every_place")),
    Mutant("placement: no step along the branch", "plltool/tree_search/placement.py", "lengths[:, 0] + step[:, 0], least",
           "lengths[:, 0], least", (PLACE, "-k", "every_place or identical")),
    Mutant("placement: the slope along the branch", "plltool/tree_search/placement.py", "values[:, 1] - values[:, 2], values[:, 3]",
           "values[:, 1] + values[:, 2], values[:, 3]", (PLACE, "-k", "every_place or identical")),
    Mutant("placement: lnL of missing columns", "plltool/run/placement.py", "lnl=places.lnl + elsewhere", "lnl=places.lnl",
           (PLACE, "-k", "batches")),
    Mutant("placement: the upper end is the lower one", "plltool/analyses/place.py", "!= distal[places.branches]",
           "== distal[places.branches]", (PLACE, "-k", "dendropy or every_place")),
    Mutant("placement: edges are numbered as branches", "plltool/io/jplace.py", "self.number[order] = np.arange(tree.n_edges)",
           "self.number[:] = np.arange(tree.n_edges)", (PLACE, "-k", "dendropy")),
    Mutant("placement: one branch too few", "plltool/run/placement.py", "axis=1) - weights", "axis=1)",
           (PLACE, "-k", "chosen")),
    Mutant("placement: the length of the branch is not free", "plltool/run/placement.py", "if self._raxml_blo:",
           "if False:", (PLACE, "-k", "is_free")),
    Mutant("placement: a place beyond the sum of weights", "plltool/analyses/place.py", "total >= self.accumulated < 1",
           "total > self.accumulated < 1", (PLACE, "-k", "filters")),
    # --- the choice of a model
    Mutant("BIC: lnL counts once", "plltool/statistics/criteria.py", "math.log(n_sites) - 2 * lnl", "math.log(n_sites) - lnl",
           ("tests/analyses/test_select_model.py", "-k", "by_hand")),
    Mutant("AICc: a parameter less", "plltool/statistics/criteria.py", "left = n_sites - n_parameters - 1",
           "left = n_sites - n_parameters", ("tests/analyses/test_select_model.py", "-k", "by_hand")),
    Mutant("nested: more classes are fewer", "plltool/model/candidates.py", "return len(pairs) == wide", "return len(pairs) >= wide",
           ("tests/analyses/test_select_model.py", "-k", "nested")),
    Mutant("nested: invariable sites are no rate", "plltool/model/candidates.py",
           "inner.n_categories + inner.invariable <= outer", "inner.n_categories <= outer",
           ("tests/analyses/test_select_model.py", "-k", "nested")),
    Mutant("carry: lengths keep their scale", "plltool/model/carry.py", "weights=tuple(weights[order].tolist())), mean",
           "weights=tuple(weights[order].tolist())), 1.0", ("tests/model/test_carry.py",)),
    Mutant("carry: rates without frequencies", "plltool/model/carry.py",
           "flow = source.exchangeabilities * np.outer(source.frequencies, source.frequencies)[upper]",
           "flow = source.exchangeabilities", ("tests/model/test_carry.py",)),
    Mutant("choice: lengths are no parameters", "plltool/run/model_fits.py",
           "UNLINKED: tree.n_edges}[linkage]", "UNLINKED: 0}[linkage]",
           ("tests/analyses/test_select_model.py", "-k", "iqtree and numpy")),
    Mutant("choice: free rates all the same", "plltool/run/selection.py",
           "kinds = (*SIMPLE_RATES, *(FREE_RATES if free_rates else ()))", "kinds = (*SIMPLE_RATES, *FREE_RATES)",
           ("tests/analyses/test_select_model.py", "-k", "same_digits")),
    Mutant("nested: published rates are equal", "plltool/model/candidates.py",
           "design.n_parameters == 0 and np.all(design.base == design.base[0])", "design.n_parameters == 0",
           ("tests/analyses/test_select_model.py", "-k", "nested")),
    Mutant("candidates: GTR of any number of states", "plltool/model/candidates.py", "if n_states <= SELECTION_GTR_STATES:", "if True:",
           ("tests/analyses/test_select_model.py", "-k", "candidates_of_multistate")),
    Mutant("carry: rates beyond their bounds", "plltool/model/carry.py",
           "np.clip(relative / relative[-1], MIN_EXCHANGEABILITY, MAX_EXCHANGEABILITY)", "relative / relative[-1]",
           ("tests/model/test_carry.py",)),
    Mutant("choice: invariable columns under +ASC", "plltool/analyses/select_model.py",
           "refuse_invariable(parse_candidate(possible.substitutions[0], GAMMA), data.parts[0])", "pass",
           ("tests/analyses/test_select_model.py", "-k", "do_not_vary")),
    Mutant("choice: no word takes +ASC", "plltool/analyses/auto_model.py", "ascertainment=bool(suffix),", "ascertainment=False,",
           ("tests/analyses/test_select_model.py", "-k", "words")),
    Mutant("carry: a parameter without a source is forgotten", "plltool/model/carry.py",
           "source.rate_parameters.get(name, 1.0)", "source.rate_parameters.get(name, 2.0)", ("tests/model/test_carry.py",)),
    Mutant("nested: MG within GY", "plltool/model/candidates.py", "narrow.named.of_bases == wide.named.of_bases and _fixes",
           "_fixes", ("tests/analyses/test_select_model.py", "-k", "nested")),
    Mutant("parts: a scaler counts twice", "plltool/run/model_fits.py",
           "- (SCALER in self.model.free_parameters) + self.n_lengths", "+ self.n_lengths", (SCHEME, "-k", "iqtree")),
    Mutant("parts: all scalers are free", "plltool/analyses/select_scheme.py", "SCALED: tree.n_edges - 1", "SCALED: tree.n_edges",
           (SCHEME, "-k", "iqtree")),
    Mutant("parts: rates of parts are lost", "plltool/analyses/select_scheme.py", "if self.brlen == SCALED:", "if False:",
           (SCHEME, "-k", "iqtree")),
    Mutant("merging: the worst pair", "plltool/run/merging.py", "ranked = sorted((score, number)", "ranked = sorted((-score, number)",
           (SCHEME, "-k", "greedy")),
    Mutant("merging: whatever the score", "plltool/run/merging.py", "if score < before)", "if True)", (SCHEME, "-k", "costs_more")),
    Mutant("merging: shared parts in one round", "plltool/run/merging.py", "if not members & taken:", "if True:",
           (SCHEME, "-k", "disjoint")),
    Mutant("merging: one pair a round", "plltool/run/merging.py", "for _, number in ranked if algorithm == RCLUSTERF else ranked[:1]:",
           "for _, number in ranked[:1]:", (SCHEME, "-k", "disjoint")),
    Mutant("merging: pairs that differ most", "plltool/run/merging.py", "for number in sorted(order[:n])]",
           "for number in sorted(order[-n:])]", (SCHEME, "-k", "similar")),
    Mutant("merging: unseen sites of one part only", "plltool/run/merging.py", "if not _has_own_unseen(group.fit.spec)]", "]",
           (SCHEME, "-k", "apart")),
    # --- tests of data
    Mutant("symmetry: no difference squared", "plltool/statistics/homogeneity.py", "np.divide(gaps**2, sums", "np.divide(abs(gaps), sums",
           (DATA_TESTS, "-k", "by_hand")),
    Mutant("symmetry: marginal sums of one sequence", "plltool/statistics/homogeneity.py", "(rows + columns - 2 *", "(2 * rows - 2 *",
           (DATA_TESTS, "-k", "iqtree")),
    Mutant("symmetry: internal degrees", "plltool/statistics/homogeneity.py", "= degrees[both, 0] - degrees[both, 1]", "= degrees[both, 0]",
           (DATA_TESTS, "-k", "by_hand")),
    Mutant("symmetry: the pair that differs least", "plltool/run/data_tests.py", "np.nanargmax(shares)", "np.nanargmin(shares)",
           (DATA_TESTS, "-k", "iqtree")),
    Mutant("composition: gaps are not shared out", "plltool/statistics/composition.py", "where=totals > 0) @ shares", "where=totals > 2) @ shares",
           (DATA_TESTS, "-k", "iqtree")),
    Mutant("composition: each taxon at 5 %", "plltool/run/data_tests.py", "1 - SIGNIFICANCE / alignment.n_taxa", "1 - SIGNIFICANCE",
           (DATA_TESTS, "-k", "corrected")),
    Mutant("parameters: as many as sites are too many", "plltool/run/data_tests.py", "if n_parameters > n_sites:", "if n_parameters >= n_sites:",
           (DATA_TESTS, "-k", "more_parameters")),
    # --- screening
    Mutant("screen: lengths of the first parts", "plltool/engine/categories.py", "else lengths[self.part]",
           "else lengths[np.minimum(self.part, 0)]", (SCREENING, "-k", "unlinked")),
    Mutant("screen: sums of other parts", "plltool/engine/categories.py", "np.flatnonzero(np.diff(self.part, prepend=-1))",
           "np.arange(self.n_parts)", (SCREENING, "-k", "lnl_of")),
    Mutant("screen: keeps old models", LIKELIHOOD_PY, "self._screen.is_stale = True", "pass", (SCREENING, "-k", "lnl_of")),
    Mutant("screen: keeps old weights", LIKELIHOOD_PY, "self._screen.engine.set_weights(weights)", "pass",
           (SCREENING, "-k", "lnl_of")),
    Mutant("screen: keeps the old topology", LIKELIHOOD_PY, "if self.view is not of.view:", "if False:",
           (SCREENING, "-k", "lnl_of")),
    Mutant("screen: components with their weights", "plltool/model/components.py",
           "weights=np.ones(self.n_components), category_of", "category_of", (SCREENING, "-k", "lnl_of")),
    Mutant("screen: the least share", LIKELIHOOD_PY, "[np.argmax(lnl, axis=0) for", "[np.argmin(lnl, axis=0) for",
           (SCREENING, "-k", "largest")),
    Mutant("screen: moves keep its gaps", "plltool/tree_search/climb.py", "healed[gaps] = heal(", "heal(",
           (SCREENING, "-k", "moves")),
    Mutant("screen: its lnL counts", "plltool/tree_search/climb.py",
           "return optimise_insertions(likelihood, prunes, steps, chosen, lnl, start)",
           "return optimise_insertions(screen, prunes, steps, chosen, lnl, start)", (SCREENING, "-k", "moves")),
    # --- ascertainment bias
    Mutant("ascertainment: sites are divided by the wrong probability", ASCERTAINMENT_PY, "varying = 1.0 - likelihoods.sum(axis=0)",
           "varying = 1.0 - likelihoods.max(axis=0)", (ASCERTAINED, "-k", "numpy and lnl and LEWIS")),
    Mutant("ascertainment: the number of sites is not heeded", ASCERTAINMENT_PY, "-n_sites * np.log(varying)",
           "-np.log(varying)", (ASCERTAINED, "-k", "numpy and weight")),
    Mutant("ascertainment: shares of states, not of all of them", ASCERTAINMENT_PY, "number * relative / total",
           "number * relative", (ASCERTAINED, "-k", "numpy and lnl and FELS")),
    Mutant("ascertainment: no slope times slope", ASCERTAINMENT_PY, "likelihoods / varying, 1.0, 1.0 / n_sites)",
           "likelihoods / varying, 1.0, 0.0)", (ASCERTAINED, "-k", "numpy and lnl and LEWIS")),
    Mutant("ascertainment: the sign of slope times slope", ASCERTAINMENT_PY, "1.0, -1.0 / number)", "1.0, 1.0 / number)",
           (ASCERTAINED, "-k", "numpy and lnl and FELS")),
    Mutant("ascertainment: short trees are let through", ASCERTAINMENT_PY, "if np.any(varying <= 0.0):", "if False:",
           (ASCERTAINED, "-k", "without_length")),
    Mutant("ascertainment: second derivatives without squares", ASCERTAINED_PY, "+ found.squares * slopes[a] * slopes[b]", "",
           (ASCERTAINED, "-k", "numpy and lnl")),
    Mutant("ascertainment: mixed derivatives in another order", ASCERTAINED_PY, "*combinations(range(n), 2)]",
           "*reversed(list(combinations(range(n), 2)))]", (ASCERTAINED, "-k", "numpy and triplets")),
    Mutant("ascertainment: the correction of unwanted parts", ASCERTAINED_PY, "if request.wants(part):\n                sums",
           "if True:\n                sums", (ASCERTAINED, "-k", "numpy and not_wanted")),
    Mutant("ascertainment: weights of invariable sites are lost", ASCERTAINED_PY, "np.append(weights, self._engine.weights[self.n_patterns :])",
           "np.append(weights, 0 * self._engine.weights[self.n_patterns :])", (ASCERTAINED, "-k", "numpy and share")),
    Mutant("ascertainment: every site has the whole correction", ASCERTAINED_PY, ".value / n_sites[part]", ".value",
           (ASCERTAINED, "-k", "numpy and share")),
    Mutant("ascertainment: shares of a state are corrected", ASCERTAINED_PY, "if request.impossible:", "if False:",
           (ASCERTAINED, "-k", "numpy and share")),
    Mutant("ascertainment: invariable sites of the first part's model", ASCERTAINED_PY, "[parts[part] for part in self._owner]",
           "[parts[min(part, 0)] for part in self._owner]", (ASCERTAINED, "-k", "numpy and side")),
    Mutant("ascertainment: gradients without the correction", ASCERTAINED_PY, "added[:] = (found.shares * values).sum(axis=0)",
           "added[:] = 0", ("tests/optimise/test_ascertained_optima.py", "-k", "numpy and parameter")),
    Mutant("ascertainment: taxa without data have states", "plltool/alignment/patterns.py", "has_data[:, None], part.states.state_codes",
           "has_data[:, None] | True, part.states.state_codes", ("tests/optimise/test_ascertained_optima.py", "-k", "numpy and parameter")),
    Mutant("ascertainment: a screen all the same", "plltool/run/engines.py", "screening &= not is_corrected and", "screening &=",
           ("tests/analyses/test_ascertainment.py", "-k", "screen")),
    Mutant("ascertainment: ambiguous cells vary", "plltool/alignment/alignment.py", "allowed &= alignment.states.state_sets[row]",
           "allowed &= np.eye(len(allowed.T), dtype=bool)[np.argmax(alignment.states.state_sets[row], axis=1)]",
           ("tests/analyses/test_ascertainment.py", "-k", "invariable")),
    Mutant("ascertainment: the last invariable column is named", "plltool/run/inputs.py", "first column {columns.min() + 1}",
           "first column {columns.max() + 1}", ("tests/analyses/test_ascertainment.py", "-k", "invariable")),
    # --- per-site rates
    Mutant("categories: patterns stay sorted", "plltool/engine/categories.py", "own[:, self.order] = values", "own[:] = values",
           ("tests/engine/test_categories.py", "-k", "numpy")),
    Mutant("categories: weights in the old order", "plltool/engine/categories.py", "self._within.set_weights(weights[self._sorting.order])",
           "self._within.set_weights(weights)", ("tests/engine/test_categories.py", "-k", "numpy")),
    Mutant("categories: those without patterns are not skipped", "plltool/engine/categories.py", "by_component[sorting.category[own]] = rows[own, 1:]",
           "by_component[: own.sum()] = rows[own, 1:]", ("tests/engine/test_categories.py", "-k", "numpy or gradients")),
    Mutant("categories: never sorted again", "plltool/engine/categories.py", "if not np.array_equal(category_of, self._category_of):",
           "if False:", ("tests/engine/test_categories.py", "-k", "numpy")),
    Mutant("categories: patterns above a rate", "plltool/optimise/categories.py", "lnl[a, ends[a] :].sum()",
           "lnl[a, ends[a + 1] :].sum()", ("tests/optimise/test_site_categories.py",)),
    Mutant("categories: weights are ignored", "plltool/optimise/categories.py",
           "lnl = (lnl * weights)[:, order]", "lnl = lnl[:, order]",
           ("tests/optimise/test_site_categories.py",)),
    Mutant("categories: lengths keep their scale", "plltool/optimise/categories.py", "        lengths *= mean",
           "        pass", ("tests/optimise/test_site_categories.py",)),
    Mutant("categories: unlinked lengths keep their scale", "plltool/optimise/categories.py", "lengths[:, number] *= factor",
           "pass", (PSR_PARTS, "-k", "factors_leave")),
    Mutant("categories: scalers keep their values", "plltool/optimise/categories.py", "np.clip([before * mean],",
           "np.clip([before],", (PSR_PARTS, "-k", "mean_1")),
    Mutant("categories: the mean beside other rates", "plltool/optimise/categories.py", "elif len(parts) == len(models) and not any",
           "elif not any", (PSR_PARTS, "-k", "factors_leave")),
    Mutant("categories: a scaler is left out of the grid", "plltool/optimise/categories.py",
           " * likelihood.models[number].scaler", "", (PSR_PARTS, "-k", "brute_force")),
    Mutant("categories: all parts have the first rates", "plltool/optimise/categories.py",
           "_assign_rates(models[number], rates[number], found, weights[number])",
           "_assign_rates(models[number], rates[number], found, weights[min(rates)])", (PSR_PARTS, "-k", "as_single")),
    Mutant("categories: given rates are chosen again", "plltool/optimise/categories.py",
           "given is not None and model.sites.category_of is None", "True", (PSR_PARTS, "-k", "mean_1")),
    Mutant("categories: the screen has rates of its own", LIKELIHOOD_PY, "part if part.category_of is not None else part.one",
           "part.one", (PSR_PARTS, "-k", "screen_of")),
    Mutant("categories: replicates keep those of all patterns", "plltool/model/rates.py", "self.category_of[kept]",
           "self.category_of[: len(kept)]", ("tests/model/test_model.py", "-k", "some_of_the_patterns")),
    Mutant("the last of equal trees", "plltool/tree_search/rell.py", "draws * self._equals < 1", "draws < 2",
           (RELL, "-k", "evenly")),
    Mutant("resuming: other excursions", "plltool/tree_search/ufboot_search.py", "rng.bit_generator.state = generator", "pass",
           (ULTRAFAST, "-k", "every_excursion")),
    Mutant("resuming: supports at the last test", "plltool/tree_search/ufboot_search.py",
           'supports=packed.get("supports")', "supports=None", (ULTRAFAST, "-k", "every_excursion and twins")),
    Mutant("resuming: what an excursion has changed by then", "plltool/tree_search/rell.py", "self._seen.copy()",
           "self._seen", (RELL, "-k", "stay_known")),
    # --- what is asked of a finished tree
    Mutant("site values in one row", TRAVERSE, "site + (size_t)result * n_lanes + lanes", "site + lanes",
           on_vector("tests/engine/test_site_values.py", "every_edge")),
    Mutant("interchanges of the wrong subtrees", "plltool/tree_search/neighbours.py", "(0, 3, 1, 2)", "(0, 1, 2, 3)",
           ("tests/tree_search/test_branch_supports.py", "-k", "oracle and 0")),
    Mutant("replicates are not centred", "plltool/tree_search/branch_supports.py", "drawn - gains], axis=2",
           "drawn], axis=2", ("tests/tree_search/test_branch_supports.py", "-k", "replicate_by_replicate")),
    Mutant("trees as good as they are, not as each other", "plltool/statistics/topologies.py",
           "centred = drawn - gains", "centred = drawn", ("tests/statistics/test_topologies.py", "-k", "kh_and_sh")),
    Mutant("curvature adds to the distance", "plltool/statistics/topologies.py", "d[tree] - c[tree]",
           "d[tree] + c[tree]", ("tests/statistics/test_topologies.py", "-k", "follow_its_law")),
    Mutant("a state's tip at a distance", "plltool/optimise/ancestral.py", "np.zeros((1,", "0.01 + np.zeros((1,",
           ("tests/optimise/test_ancestral.py", "-k", "sum_over")),
    Mutant("columns change by the parent's component alone", "plltool/tree/evolution.py",
           "component * components.n_states + states[parent]", "states[parent]",
           ("tests/tree/test_evolution.py", "-k", "as_it_is_likely")),
    Mutant("weights of components left out of site rates", LIKELIHOOD_PY, "own + np.log(part.weights[:n])[:, None]", "own",
           ("tests/analyses/test_site_rates.py", "-k", "histories")),
    # --- measuring
    Mutant("work-groups copy the same", KERNEL_PEAKS, "get_group_id(0) * group_blocks", "0", (PEAKS, "-k", "say")),
    Mutant("a chain left out of the sum", KERNEL_PEAKS, "int k = 1; k < PEAK_CHAINS", "int k = 2; k < PEAK_CHAINS",
           (PEAKS, "-k", "say")),
    Mutant("nanoseconds of a kernel as microseconds", CLOCK_PY, "NANOSECOND = 1e-9", "NANOSECOND = 1e-6",
           (PROFILE, "-k", "device_seconds")),
    Mutant("kernels counted again and again", CLOCK_PY, "self._running.clear()", "pass",
           (PROFILE, "-k", "device_seconds")),
    Mutant("CLAs that are written do not count", BENCH_ITEMS, "reads + writes", "reads", (BENCH, "-k", "four_taxa")),
    Mutant("tips count as CLAs", BENCH_ITEMS, "columns] >= 0", "columns] >= -99", (BENCH, "-k", "four_taxa")),
    Mutant("one category instead of all", BENCH_ITEMS, "flops * engine.layout.n_components", "flops",
           (BENCH, "-k", "four_taxa")),
    Mutant("bound without the maxima", BENCH_RUN, "2 * n_states**2 + 2 * n_states", "2 * n_states**2 + n_states",
           (BENCH, "-k", "twentieth")),
    Mutant("a margin that makes rescaling up", BENCH_ITEMS, "RESCALED_MARGIN) * math", "RESCALED_MARGIN) * 0.1 * math",
           (BENCH, "-k", "rescaled_patterns")),
    Mutant("shards: parts in the order of the shards", SHARDS, "values[parts] = engine.execute(request",
           "values[sorted(parts)[::-1]] = engine.execute(request", (PARTITIONS, "-k", "lnl_and and numpy")),
    Mutant("shards: lengths of other parts", "plltool/engine/requests.py", "lengths[..., parts, :]", "lengths[..., : len(parts), :]",
           (PARTITIONS, "-k", "lnl_and and numpy")),
    Mutant("shards: patterns not put back", SHARDS, "np.arange(ends[part] - sizes[part], ends[part]) for part in parts",
           "np.arange(ends[part] - sizes[part], ends[part]) for part in parts[::-1]",
           (PARTITIONS, "-k", "lnl_and and numpy")),
    Mutant("scalers lose their mean", MODELS_PY,
           "factors[:] = sites / sites.sum() @ [model.scaler for model in models]", "pass",
           (PARTITIONS, "-k", "factors_come")),
    Mutant("factors of lengths have no slope", MODELS_PY,
           "slopes[number][size:] = -scale_slope(model, matrices[number])", "pass", (PARTITIONS, "-k", "gradient")),
    Mutant("other optima are not kept", MODELS_PY, "np.flatnonzero(reached > lnls)", "np.flatnonzero(reached < -np.inf)",
           (PARTS, "-k", "either_side and numpy")),
    Mutant("other optima are not looked for", "plltool/optimise/polish.py",
           "lnl, has_explored = optimiser.explore(), True", "has_explored = True",
           (PARTS, "-k", "either_side and numpy")),
    Mutant("parts of a sum: shared variables each for itself", BOUNDED_PY,
           "left[np.ix_(into, np.append(into, len(shared)))] +=", "left[np.ix_(into, np.append(into, len(shared)))] =",
           (BOUNDED, "-k", "common_variable")),
    Mutant("parts of a sum: all stop together", BOUNDED_PY, "[block for block in blocks if not block.is_done]",
           "blocks * any(not block.is_done for block in blocks)", (BOUNDED, "-k", "own_way")),
    Mutant("curvatures of hills", BOUNDED_PY, "if found < LEAST_CURVATURE * expected:", "if False:",
           (BOUNDED, "-k", "hill or valley")),
    Mutant("OpenCL: the other parts", "plltool/engine/opencl/engine.py", "chunk.spans[parts[chunk.spans",
           "chunk.spans[~parts[chunk.spans", (PARTS, "-k", "some_parts")),
    Mutant("shards: the wanted parts of others", SHARDS, "make(layout).of_parts(parts)",
           "make(layout).of_parts(parts[::-1])", (PARTS, "-k", "some_parts")),
    Mutant("invariable to scalers", "plltool/model/model.py", "self._scaler * rates", "rates",
           (PARTITIONS, "-k", "lnl_and and numpy")),
    Mutant("one factor for all parts' own lengths", MODELS_PY,
           "factors[0] if lengths.ndim == 1 else factors", "factors[0]", (PARTS, "-k", "unlinked and numpy")),
    Mutant("rounding sends lengths away", "plltool/optimise/steps.py",
           "np.where(np.abs(slopes) < FLAT_SLOPE, 0.0, slopes)",
           "slopes", (PARTITIONS, "-k", "nothing_is_known")),
    Mutant("unlinked: insertions mix parts", "plltool/tree_search/insertions.py",
           "np.moveaxis(lengths, -1, 1).reshape", "lengths.reshape", (PARTITIONS, "-k", "promise")),
    Mutant("unlinked: healed by all parts", "plltool/tree_search/climb.py", "moves.lengths[k].T",
           "moves.lengths[k].T[..., ::-1]",
           (PARTITIONS, "-k", "promise")),
    Mutant("parts: last column missing", "plltool/alignment/partition.py",
           "np.arange(self.start - 1, self.stop or n_sites, self.stride)",
           "np.arange(self.start - 1, (self.stop or n_sites) - 1, self.stride)", (PART_FILES,)),
    Mutant("parts: overlaps pass", "plltool/alignment/partition.py", "columns[owner[columns] >= 0]", "columns[:0]",
           (PART_FILES,)),
    # --- what people do with trees: supports, consensus, distances, tests, simulation, length errors
    Mutant("supports: transfers over p", TREE_SUPPORTS, "np.minimum(sizes, tree.n_taxa - sizes) - 1",
           "np.minimum(sizes, tree.n_taxa - sizes)", (SUPPORTS,)),
    Mutant("supports: transfers without the other side", TREE_SUPPORTS, "np.minimum(moved, sides.shape[1] - moved)",
           "moved", (SUPPORTS,)),
    Mutant("supports: no least transfer", TREE_SUPPORTS, "np.minimum(nearest, most[lacking])", "nearest", (SUPPORTS,)),
    Mutant("supports: branches of tips have some", TREE_SUPPORTS, "values[~tree.is_inner_branch] = np.nan", "pass",
           (SUPPORTS,)),
    Mutant("supports: added branches are the tree's", "plltool/analyses/support.py", "[split not in own for split",
           "[False for split", (SUPPORTS,)),
    Mutant("supports: shares in place of per cent", "plltool/analyses/support.py",
           "100 * shares if KINDS[kind].unit == PERCENT else shares", "shares", (SUPPORTS,)),
    Mutant("supports: a made-up clade is an outgroup", "plltool/run/rooting.py",
           "not _is_clade_of(tree, set(outgroup), left_out)", "True", (SUPPORTS,)),
    Mutant("concordance: a tree is decisive with one subtree at an end", GENE_CONCORDANCE, "for end in around.ends):",
           "for end in around.ends[:1]):", (CONCORDANCE, "-k", "by_definition")),
    Mutant("concordance: splits of a gene tree that lacks taxa", GENE_CONCORDANCE, "side &= self.taxa\n", "pass\n",
           (CONCORDANCE, "-k", "by_definition")),
    Mutant("concordance: quartets counted where two ways part", GENE_CONCORDANCE,
           "(at - side[:, 0] * side[:, b])", "at", (CONCORDANCE, "-k", "by_definition")),
    Mutant("concordance: certainty without a sign", GENE_CONCORDANCE, "else -value", "else value",
           (CONCORDANCE, "-k", "by_hand or by_definition")),
    Mutant("concordance: rivals that do not contradict each other", GENE_CONCORDANCE,
           "all(contradict(other, known) for known, _ in rivals)", "True", (CONCORDANCE, "-k", "raxml")),
    Mutant("concordance: ends of a branch in any order", "plltool/tree/surroundings.py",
           "sorted(ends, key=lambda end: end[0].taxa & -end[0].taxa)", "ends", ("tests/tree/test_surroundings.py",)),
    Mutant("concordance: added branches end the walk", "plltool/tree/surroundings.py",
           "waiting.append((int(other), int(edge)))", "pass", (CONCORDANCE,)),
    Mutant("concordance: unknown states agree", SITE_CONCORDANCE, "(agree & known) @", "agree @", (CONCORDANCE,)),
    Mutant("concordance: quartets without sites count", SITE_CONCORDANCE, "has_any = totals > 0",
           "has_any, totals = totals >= 0, np.maximum(totals, 1)", (CONCORDANCE, "-k", "do_not_count")),
    Mutant("concordance: four equal states are two pairs", SITE_CONCORDANCE, "axis=1) - same for", "axis=1) for",
           (CONCORDANCE, "-k", "by_likelihood")),
    Mutant("concordance: sites without data in a subtree", "plltool/analyses/concordance.py",
           "part.weights * known[four].all(axis=0)", "part.weights", (CONCORDANCE, "-k", "by_likelihood")),
    Mutant("concordance: the whole tree tells the states of a subtree", "plltool/optimise/ancestral.py",
           "(state, nothing) if outer is None", "(~np.zeros_like(state), nothing) if outer is None",
           (CONCORDANCE, "-k", "by_likelihood")),
    Mutant("genes: kept ones are made again", "plltool/analyses/genes.py", "gene = kept.get(name) or next(made)",
           "gene = next(made)", (GENES, "-k", "goes_on")),
    Mutant("genes: columns of the next gene", "plltool/io/alignment_folder.py", "first + own.n_sites - 1))",
           "first + own.n_sites))", (GENES, "-k", "gaps")),
    Mutant("genes: rows without gaps", "plltool/io/alignment_folder.py", "rows.get(name, GAP * own.n_sites)",
           'rows.get(name, b"")', (GENES, "-k", "gaps")),
    Mutant("genes: all of the kind of the first", "plltool/io/alignment_folder.py",
           "some.states if is_one_kind else None", "some.states", (GENES, "-k", "proteins")),
    Mutant("joint states: a category without its weight", "plltool/optimise/joint.py", "np.log(components.masses())",
           "np.log(components.frequencies)", (JOINT,)),
    Mutant("joint states: sums in place of maxima", "plltool/optimise/joint.py", "+= options.max(axis=1)",
           "+= np.logaddexp.reduce(options, axis=1)", (JOINT,)),
    Mutant("joint states: the state of another parent", "plltool/optimise/joint.py",
           "choices[node, np.arange(n_patterns), found[parent]]", "choices[node, np.arange(n_patterns), found[root]]",
           (JOINT,)),
    Mutant("mutations: ambiguous tips always mutate", "plltool/run/mutations.py",
           "~space.state_sets[patterns.codes[node], above]", "space.state_codes[above] != patterns.codes[node]",
           ("tests/cli/test_cli_ancestral.py", "-k", "ambiguous")),
    Mutant("mutations: patterns for sites", "plltool/run/mutations.py", "differs[order])", "differs)",
           ("tests/cli/test_cli_ancestral.py", "-k", "mutations or ambiguous")),
    Mutant("replicates: more are kept than asked for", "plltool/analyses/bootstrap.py", "if n_kept > self.most:",
           "if False:", (BOOTSTRAP, "-k", "added_to")),
    Mutant("replicates: a test forgets kept ones", "plltool/analyses/bootstrap.py", "and number >= wanted.least",
           "", (BOOTSTRAP, "-k", "counts_all")),
    Mutant("supports: a node of many branches left half resolved", "plltool/tree/topology.py",
           "kept[node] = kept[parent]", "kept[node] = parent", (SUPPORTS,)),
    Mutant("replicates: the start tree decides what sites leave open", REPLICATES,
           "self._randomise_undecided(found.tree, rng)", "found.tree", (BOOTSTRAP, "-k", "sites_say")),
    Mutant("replicates: a branch drawn at random may break the constraint", REPLICATES,
           "drawn if constraint is None or constraint.is_obeyed_by(drawn) else tree", "drawn",
           (BOOTSTRAP, "-k", "sites_say")),
    Mutant("rapid: one chain for all", REPLICATES, "made[number - RAPID_CHAINS]", "made[-1]",
           (BOOTSTRAP, "-k", "begin_where")),
    Mutant("rapid: a branch is short where one part has it short", "plltool/tree/random_tree.py",
           "reshape(tree.n_edges, -1).max(axis=1)", "reshape(tree.n_edges, -1).min(axis=1)",
           ("tests/tree/test_random_tree.py", "-k", "short")),
    Mutant("consensus: half is a majority", CONSENSUS, "counts > threshold * trees.n_trees",
           "counts >= threshold * trees.n_trees", (CONSENSUS_TESTS,)),
    Mutant("consensus: splits that overlap fit", CONSENSUS, "not in (split, other)",
           "not in (split, other, split & other)", (CONSENSUS_TESTS,)),
    Mutant("consensus: lengths over all trees", CONSENSUS, "[chosen] / counts[chosen]\n", "[chosen] / trees.n_trees\n",
           (CONSENSUS_TESTS,)),
    Mutant("distances: lengths of tips left out", TREE_SET, "shared[i] - shared) + tips", "shared[i] - shared)",
           (TREE_SETS,)),
    Mutant("distances: branches of one tree only left out", TREE_SET, "both + (shared[i] - shared) + tips",
           "both + tips", (TREE_SETS,)),
    Mutant("tree files: halves of the root's branch", "plltool/io/tree_files.py",
           "length = sum(parts) if parts else math.nan", "pass", (TREE_SETS,)),
    Mutant("length errors: each alone", LENGTH_ERRORS, "hessian = (hessian + hessian.swapaxes(0, 1)) / 2",
           "hessian *= 0", (SITE_RATES,)),
    Mutant("length errors: unknown ones are told", LENGTH_ERRORS, "np.where(unknown, np.nan,",
           "np.where(False, np.nan,", (SITE_RATES,)),
    Mutant("length errors: those of another part", LENGTH_ERRORS, "np.ix_(own, own)][..., part]",
           "np.ix_(own, own)][..., 0]", (SITE_RATES,)),
    Mutant("simulation: every component is the first", "plltool/tree/evolution.py",
           "component * components.n_states + states[parent]", "states[parent]", ("tests/tree/test_evolution.py",)),
    Mutant("simulation: states change along the root's branch only", "plltool/tree/evolution.py", "+ states[parent]",
           "+ states[ROOT]", ("tests/tree/test_evolution.py",)),
    Mutant("ancestors: the outgroup is not heeded", "plltool/analyses/ancestral.py",
           "find_root(tree, usable_outgroup(tree, outgroup)[0])", "find_root(tree, None)",
           ("tests/cli/test_cli_ancestral.py",)),
    Mutant("codons: a stop codon is a state", CODONS_PY, ".items() if acid != STOP)", ".items() if acid)", (CODON_SPACES,)),
    Mutant("codons: a last stop codon is kept", CODONS_PY, "codes[:, :-1]", "codes[:, :]", (CODON_SPACES,)),
    Mutant("codons: letters in the wrong place", "plltool/alignment/words.py", "np.arange(self.width)[::-1]",
           "np.arange(self.width)", (CODON_SPACES,)),
    Mutant("codons: columns sorted by their low bytes", "plltool/alignment/alignment.py",
           'codes.dtype.newbyteorder(">")', 'codes.dtype.newbyteorder("<")', (CODON_SPACES,)),
    Mutant("codons: transitions are transversions", CODON_MODELS_PY, "(x in _PURINES) == (y in _PURINES)",
           "(x in _PURINES) != (y in _PURINES)", (CODON_MODELS,)),
    Mutant("codons: two bases change at once", CODON_MODELS_PY, "len(bases) == 1", "len(bases) <= 2", (CODON_MODELS,)),
    Mutant("codons: F3X4 is F1X4", CODON_MODELS_PY, "counts if per_position else", "counts if False else",
           (CODON_MODELS,)),
    Mutant("codons: MG multiplies by the other bases", CODON_MODELS_PY, "axis=1) ** -1)", "axis=1) ** 1)",
           (CODON_MODELS,)),
    Mutant("codons: classes have the same rate", "plltool/model/model.py",
           "self._frequencies @ exchangeability_matrix(row) @ self._frequencies for row in rows", "1.0 for row in rows",
           (CODON_MODELS,)),
    Mutant("codons: omega of a class without bounds", "plltool/model/vector.py", "design.limits is not None", "False",
           (CODON_MODELS,)),
    Mutant("codons: classes share the slopes of one matrix", "plltool/optimise/parameters.py",
           "    if model.spec.is_mixture:\n        return ()\n", "",
           ("tests/optimise/test_codon_gradients.py", "-k", "numpy")),
    Mutant("codons: published figures in another order", CODON_MODELS_PY, '["TCAG".index', '["TACG".index', (CODON_MODELS,)),
    Mutant("codons: one kappa is 1 where three bases change", CODON_MODELS_PY, " and not base[single == 0].any()", "",
           (CODON_MODELS, "-k", "numbers")),
    Mutant("codons: published figures under other codes", CODON_MODELS_PY,
           " or (genetic_code != STANDARD_CODE and name.startswith(EMPIRICAL))", "", (CODON_MODELS, "-k", "refused")),
    Mutant("lists of 13 values are shown", "plltool/model/describe.py", "number <= MAX_SHOWN_VALUES",
           "number <= MAX_SHOWN_VALUES + 1", ("tests/model/test_model.py", "-k", "long_lists")),
    Mutant("profiles: frequencies are those of all classes", "plltool/optimise/parameters.py",
           '("rates",) if model.spec.profiles is not None else', "",
           ("tests/optimise/test_parameter_gradients.py", "-k", "C10")),
    Mutant("profiles: the class of its own comes last", "plltool/model/proteins.py",
           "np.vstack([own, frequencies])", "np.vstack([frequencies, own])", ("tests/model/test_proteins.py",)),
    Mutant("a partition's remainder has taken columns", "plltool/alignment/partition.py",
           "owner[owner < 0] = number", "owner[:] = number", ("tests/io/test_partition_reader.py",)),
    Mutant("members of charsets have no limit", "plltool/io/partition_reader.py",
           "        _check_size(total, where, name)\n", "", ("tests/io/test_partition_reader.py", "-k", "members_of")),
    Mutant("set partition chooses the first one", "plltool/io/partition_reader.py",
           " if _split_set(c, source)[0] == wanted] if wanted", "][:1] if wanted", ("tests/io/test_partition_reader.py",)),
    Mutant("a model's lines end at a plus sign", "plltool/io/partition_reader.py",
           ' or lines[-1][1][-1].endswith("+")', "", ("tests/io/test_partition_reader.py",)),
    Mutant("covarion: branch lengths are those of sites that are on", "plltool/model/covarion.py",
           "rates[:, None] * eigenvalues / p - s10", "rates[:, None] * eigenvalues - s10", (COVARION, "-k", "JC")),
    Mutant("covarion: eigenvalues of the upper half lose their sign", "plltool/model/covarion.py",
           "upper = -rates", "upper = rates", (COVARION, "-k", "JC")),
    Mutant("covarion: slopes of frequencies where sites are on only", "plltool/model/covarion.py",
           " + masses[:, n_states:]", "", (COVARION, "-k", "TN93")),
    Mutant("covarion: slopes without the share that is on", "plltool/model/covarion.py",
           "(rates / on_share(switching))", "rates", (COVARION, "-k", "TN93")),
    Mutant("covarion: tips are on", "plltool/run/engines.py",
           "sets = np.tile(states.state_sets, n_states // states.n_states)",
           "sets = np.hstack([states.state_sets, np.zeros_like(states.state_sets)])", (COVARION, "-k", "JC")),
    Mutant("covarion: parts with and without it share an engine", "plltool/run/engines.py",
           "states.n_states, own.n_states, n,", "states.n_states, 0, n,", (COVARION, "-k", "parts_with")),
    Mutant("covarion: invariable sites of hidden states", "plltool/engine/ascertained.py",
           "(engine.n_parts - self.n_parts) // max(n_corrected, 1)", "engine.layout.n_states", (COVARION, "-k", "ascert")),
    Mutant("covarion: simulated states are hidden ones", "plltool/analyses/simulate.py",
           "spell(states % space.n_states,", "spell(np.minimum(states, space.n_states - 1),",
           (COVARION, "-k", "simulation")),
    Mutant("+IC: counted sites are none", "plltool/run/inputs.py",
           "float(may_be_invariable(part.alignment).mean())", "0.0", ("tests/analyses/test_inputs.py", "-k", "counted")),
    Mutant("codons: parts forget the second and third base", "plltool/analyses/bootstrap.py",
           "columns[part.columns] = part.columns[sites]", "columns[part.sites] = part.sites[sites]",
           ("tests/analyses/test_codon_runs.py", "-k", "resampled")),
    Mutant("taxa in the order of the file", "plltool/alignment/partition.py",
           "sorted(range(len(names)), key=names.__getitem__)", "list(range(len(names)))", (FILE_ORDER, "-k", "numpy")),
    Mutant("columns in the order of the file", "plltool/alignment/partition.py",
           "order = sort_columns(codes)", "order = np.arange(codes.shape[1])", (FILE_ORDER, "-k", "replicates")),
    Mutant("sites in the order of the columns' contents", "plltool/alignment/partition.py",
           "sorted_sites.append(own[order])", "sorted_sites.append(own)", (FILE_ORDER, "-k", "sites")),
    Mutant("states of sites in another order", "plltool/analyses/ancestral.py",
           "order = np.argsort(part.sites)", "order = np.arange(len(part.sites))", (FILE_ORDER, "-k", "ancestral")),
    Mutant("constraint numbered as it is written", "plltool/tree/constraint.py",
           "sorted(others, key=first.__getitem__)", "others", (FILE_ORDER, "-k", "constraint")),
    Mutant("a better tree is left alone", "plltool/tree_search/ufboot_search.py",
           "return self.lnl > self.target_lnl + SEARCH_EPSILON", "return False", (SEARCH_SUPPORTS, "-k", "adopted")),
    Mutant("an adopted tree is not saved", "plltool/tree_search/ufboot_search.py",
           'packed |= pack_tree("adopted", self.adopted)', "pass", (SEARCH_SUPPORTS, "-k", "resumed")),
    Mutant("a climb that was stopped is adopted", "plltool/analyses/search_supports.py",
           "if found.interrupted:", "if False:", (SEARCH_SUPPORTS, "-k", "interrupted_adoption")),
    Mutant("no room for the polish", "plltool/tree_search/stopping.py",
           "self.seconds_left <= self._step + self._polish", "self.seconds_left <= self._step", (TIMED, "-k", "deadline_leaves")),
    Mutant("the time of this process counts twice", "plltool/tree_search/stopping.py",
           "max(0.0, used - self._elapsed)", "used", (TIMED, "-k", "deadline_leaves")),
    Mutant("a step of two states under ORDERED", "plltool/model/multistate.py",
           "kind == ORDERED and b - a > 1", "kind == ORDERED and b - a > 2", (MULTISTATE_RUNS, "-k", "another")),
    Mutant("MK has optimised frequencies", "plltool/model/multistate.py",
           '"optimised" if kind == GTR else "equal"', '"optimised"', ("tests/model/test_model_string.py", "-k", "multistate")),
    Mutant("the largest symbol itself does not count", "plltool/alignment/multistate.py",
           "1 + max(places, default=-1)", "max(places, default=-1)", (MULTISTATE, "-k", "largest_symbol")),
    Mutant("members of a set do not count", "plltool/alignment/multistate.py",
           "*(sets[byte] for byte in found if byte in sets)", "*()", (MULTISTATE, "-k", "largest_symbol")),
    Mutant("a set with an illegal member is legal", "plltool/alignment/states.py",
           "if len(codes) and np.all(codes", "if len(codes) and np.any(codes", (MULTISTATE, "-k", "test_sets")),
    Mutant("a set keeps the code of an illegal character", "plltool/alignment/states.py",
           "code_of[byte] = known", "pass", (MULTISTATE, "-k", "test_sets")),
    Mutant("columns get the states of their smallest symbol", "plltool/alignment/split.py",
           "numbers[rows].max(axis=0)", "numbers[rows].min(axis=0)", (SPLIT,)),
    Mutant("a range ends before its last column", "plltool/alignment/partition.py",
           "SiteRange(int(run[0]) + 1, int(run[-1]) + 1)", "SiteRange(int(run[0]) + 1, int(run[-1]))", (SPLIT,)),
    Mutant("a column after a declared block belongs to it", "plltool/alignment/alignment.py",
           "sites.max() < kind.last)", "sites.max() <= kind.last)", (NEXUS_STANDARD, "-k", "mixed")),
    Mutant("parts of different numbers of states share an engine", "plltool/run/engines.py",
           "states.n_states, own.n_states, n, own", "0, 0, n, own",
           (MULTISTATE_RUNS, "-k", "different_numbers")),
    Mutant("symbols keep their own numbers", "plltool/io/nexus_symbols.py",
           "ord(SYMBOLS[place]))", "ord(symbol))", (NEXUS_STANDARD, "-k", "numbered")),
    Mutant("a few letters make digits a protein", "plltool/alignment/spaces.py",
           "digits >= letters", "digits > 9 * letters", (MULTISTATE, "-k", "digits")),
    Mutant("what flows back does not count", "plltool/io/matrix_reader.py",
           "np.abs(flow - flow.T)", "np.abs(flow - flow)", (MATRIX_FILES, "-k", "not_reversible")),
    Mutant("a way of two steps is none", "plltool/model/user.py",
           "leads = leads @ leads", "pass", (MATRIX_FILES, "-k", "not_reversible")),
    Mutant("rates are taken for exchangeabilities", "plltool/io/matrix_reader.py",
           "(rates / frequencies)[upper]", "rates[upper]", (MATRIX_FILES, "-k", "values or oracles")),
    Mutant("frequencies of the transposed matrix", "plltool/io/matrix_reader.py",
           "balance = rates.T - np.diag", "balance = rates - np.diag", (MATRIX_FILES, "-k", "values or oracles")),
    Mutant("both cases of a letter are one state", "plltool/alignment/spaces.py",
           "dict(sorted(sets.items()))", "dict(sorted(sets.items(), reverse=True))", (MATRIX_FILES, "-k", "both_cases")),
    Mutant("masks of many states lose the last one", "plltool/alignment/states.py",
           "[1 << state for state in range(self.n_states)]", "[1 << min(state, 126) for state in range(self.n_states)]",
           (TABLES, "-k", "many_state_masks")),
    Mutant("planes of states beyond a word are empty", "plltool/tree_search/parsimony.py",
           "(padded >> state & 1).astype(bool)", "(padded >> min(state, 63) & 1).astype(bool)",
           ("tests/tree_search/test_parsimony.py", "-k", "bits_of_a_word")),
    Mutant("either state of a cell is the first one", "plltool/alignment/states.py",
           "row[[place[member] for member in members]] = True", "row[place[members[0]]] = True",
           (TABLES, "-k", "cells_are_sets")),
    Mutant("an empty cell is a state without a name", "plltool/io/table_reader.py",
           " or UNKNOWN_CELL", "", (TABLES, "-k", "cells_are_sets")),
    Mutant("line breaks in quotes do not count", "plltool/io/table_reader.py",
           "last = reader.line_num + skipped", "last += 1", (TABLES, "-k", "lines_of")),
    Mutant("short rows of a table pass", "plltool/io/table_reader.py",
           "if len(fields) != len(header):", "if len(fields) > len(header):", (TABLES, "-k", "errors")),
    Mutant("a table takes any model", "plltool/alignment/alignment.py",
           "given.table is not None and states.name.startswith(OWN_STATES)", "given.table is not None",
           (TABLES, "-k", "needs_a_model")),
    Mutant("names are written side by side", "plltool/alignment/states.py",
           'b"" if cells.dtype.itemsize == 1 else b"\\t"', 'b""', (TABLES, "-k", "simulated or ancestors")),
    Mutant("genotypes without an allele in common", "plltool/model/genotypes.py",
           "if one[a] == other[b]:", "if True:", (GENOTYPES,)),
    Mutant("the allele that stays is exchanged", "plltool/model/genotypes.py",
           "one[1 - a] + other[1 - b]", "one[a] + other[1 - b]", (GENOTYPES,)),
    Mutant("alleles of phased genotypes change places", "plltool/model/genotypes.py",
           "((0, 0), (1, 1)) if has_phase", "((0, 0), (1, 1), (0, 1)) if has_phase", (GENOTYPES, "-k", "with_phase")),
    Mutant("a heterozygote has one phase", "plltool/alignment/genotypes.py",
           "PHASED[pair] + PHASED[pair[::-1]]", "PHASED[pair]", (GENOTYPES, "-k", "with_phase")),
    Mutant("VCF: the phase is lost", "plltool/io/vcf.py", 'if match[2] == "|"', "if False", VCF),
    Mutant("VCF: one allele is enough", "plltool/io/vcf.py", "if len(numbers) < 2:", "if not numbers:", VCF),
    Mutant("VCF: the first base of an indel", "plltool/io/vcf.py",
           "all(allele in DNA.symbols for allele", "all(allele[0] in DNA.symbols for allele", VCF),
    Mutant("doublets: a double change may involve a mismatch", DOUBLETS_PY, "if len(changes) > 1:", "if len(changes) > 2:",
           (DOUBLETS, "-k", "kinds")),
    Mutant("doublets: transversions are transitions", DOUBLETS_PY, "if all(changes)", "if True", (DOUBLETS, "-k", "kinds")),
    Mutant("doublets: the columns of a pair are exchanged", "plltool/alignment/partition.py",
           "np.array([self.start - 1, (self.stop or n_sites) - 1])", "np.array([(self.stop or n_sites) - 1, self.start - 1])",
           (DOUBLETS, "-k", "counted or simulated")),
    Mutant("doublets: columns in ascending order", "plltool/alignment/partition.py",
           "in_pairs.get(number, np.flatnonzero(owner == number))", "np.flatnonzero(owner == number)", (DOUBLETS, "-k", "counted or simulated")),
    Mutant("structure: the first opening bracket is closed first", "plltool/io/structure_reader.py",
           "waiting.pop()", "waiting.pop(0)", ("tests/io/test_structure_reader.py", "-k", "cross")),
    # processes that are not time-reversible
    Mutant("P* without frequencies", NUMPY,
        "* pi[..., None, :] / pi[..., :, None]",
        "", ROOTED_NUMPY),
    Mutant("P* for branches in time", NUMPY,
        "np.where((lengths < 0)[",
        "np.where((lengths > 0)[", ROOTED_NUMPY),
    Mutant("tables of rotating differences", NUMPY,
        "total.imag, -rest.imag",
        "-rest.imag, total.imag", ROOTED_NUMPY),
    Mutant("pairs turn the other way", COMPONENTS_PY,
        "(grow + 1.0) * np.sin(angles)",
        "(grow + 1.0) * np.sin(-angles)", ROOTED_NUMPY),
    Mutant("kernel: P* with frequencies exchanged", KERNEL_P,
        "entry * pi[i + r] / pi[first + c]",
        "entry * pi[first + c] / pi[i + r]", ROOTED_VECTOR),
    Mutant("kernel: a table of differences", KERNEL_P,
        "0.5 * (mirrored[1] - plain[1])",
        "0.5 * (plain[1] - mirrored[1])", ROOTED_VECTOR),
    Mutant("kernel: partner in P", KERNEL_P,
        "+ beside[k] * left[PARTNER(k)",
        "+ beside[k] * left[(k)", ROOTED_VECTOR),
    Mutant("kernel: slope of a turn", KERNEL_P,
        "- b * turn[k];",
        "+ b * turn[k];", ROOTED_VECTOR),
    Mutant("shared states: component of a step", SHARED,
        "begin = made % N_COMPONENTS",
        "begin = made / DIFFERENCE_TABLES", ROOTED_LANES),
    Mutant("pre-order in time", LIKELIHOOD_PY,
        "self.against(descent.branch[parent], True)",
        "self.against(descent.branch[parent], False)", ROOTED_NUMPY),
    Mutant("directed CLAs in time", LIKELIHOOD_PY,
        "self.against(branch_b, up_b)",
        "branch_b", ROOTED_NUMPY),
    Mutant("numbers of branches without direction", PROGRAM_PY,
        "np.where(against, ~new, new)",
        "new", ROOTED_NUMPY),
    Mutant("scan: a side against time", SCAN_PY,
        "view.toward_root[node, side]),",
        "~view.toward_root[node, side]),", ROOT_SCAN),
    Mutant("scan: a source against time", SCAN_PY,
        "likelihood.against(branch, ~upward)",
        "likelihood.against(branch, upward)", ROOT_SCAN),
    Mutant("scan: the root moves with a subtree", SCAN_PY,
        "kept = ~likelihood.view.toward_root[nodes, columns]",
        "kept = nodes >= 0", ROOT_SCAN),
    Mutant("insertions: directions", INSERTIONS_PY,
        "np.column_stack([~upward, upward,",
        "np.column_stack([upward, ~upward,", ROOT_SCAN),
    Mutant("root scan: sides of the own branch", ROOT_SCAN_PY,
        "near = np.append(view.incoming[top, left],",
        "near = np.append(view.incoming[top, right],", ROOT_SCAN),
    Mutant("a tree without a root is taken for one that has it", "plltool/analyses/likelihood.py",
        "self.root_is_given = tree.root_is_given",
        "self.root_is_given = True", ("tests/analyses/test_rooted.py", "-k", "hypotheses")),
    Mutant("Lie Markov: a basis matrix of the wrong sign", LIE_MARKOV_PY,
        '"C": (-1, 0, 1,',
        '"C": (1, 0, -1,', LIE_MARKOV),
    Mutant("Lie Markov: the members of pairs change places", LIE_MARKOV_PY,
        '"WS": "ACTG"',
        '"WS": "TGAC"', LIE_MARKOV_RUNS),
    Mutant("Lie Markov: weights reach the wall too early", LIE_MARKOV_PY,
        "np.abs(weights).max(initial=0.0)",
        "np.abs(weights).sum()", LIE_MARKOV),
    Mutant("rays: weights that are not those of the rates", NAMED_PY,
        "return self.relative(np.exp(logs))",
        "return self.relative(np.exp(-logs))", LIE_MARKOV),
    Mutant("rays: slopes without the shares of rays", NAMED_PY,
        "by_pair = (by_pair / (self.rays @ products)) @ self.rays * products",
        "by_pair = by_pair @ self.rays * products", ROOTED_SLOPES),
    Mutant("revival: slopes in logarithms, which are 0 where rates are", REVIVAL_PY,
        "* rates.mean() / rates) @ rays",
        ") @ rays", REVIVAL),
    Mutant("revival: rays that are not of mean 1", NAMED_PY,
        "extremes / extremes.mean(axis=0)",
        "extremes", REVIVAL),
    Mutant("revival: values in braces change", REVIVAL_PY,
        "RATES in groups and RATES in model.free_parameters",
        "RATES in groups", REVIVAL),
    Mutant("revival is never asked for", "plltool/optimise/polish.py",
        "lnl = revive_rates(likelihood, chosen, lnl)",
        "pass", REVIVAL),
    Mutant("states of ancestors: the side of the root comes second", "plltool/optimise/ancestral.py",
        "beyond, scratch, branch)",
        "scratch, beyond, branch)", ROOTED_ANCESTORS),
    Mutant("states of ancestors: branches that lead elsewhere", "plltool/optimise/ancestral.py",
        "outer = (view.incoming[nodes, columns], tree.edges[nodes, columns])",
        "outer = (view.incoming[nodes, 0], tree.edges[nodes, 0])", ROOTED_ANCESTORS),
    Mutant("joint states: the root is another node", "plltool/optimise/joint.py",
        "root = int(tree.neighbours[0, 0])",
        "root = n_taxa + (tree.neighbours[0, 0] == n_taxa)", ROOTED_ANCESTORS),
    Mutant("frequencies stay when rates change", NONREVERSIBLE_PY,
        "moved - moved[:, None] - shared",
        "0 * moved - shared", ROOTED_SLOPES),
    Mutant("factor of turning eigenvalues", PARAMETERS_PY,
        "slope += np.sum(beside",
        "slope -= np.sum(beside", ROOTED_SLOPES),
    Mutant("share of the root's branch", ROOTED_NODES_PY,
        "place = first, add_lengths",
        "place = first, 1 - add_lengths", ROOTED_RUNS),
    Mutant("the rest of a divided branch", ROOTED_NODES_PY, "(1.0 - place.share) * whole", "place.share * whole", ROOTING),
    Mutant("no label for half of a divided branch", ROOTED_NODES_PY,
        "(*self.labels, self.labels[place.branch])", '(*self.labels, "")', ROOTING),
    Mutant("large clades first", ROOTED_NODES_PY, "key=sizes.__getitem__)", "key=sizes.__getitem__, reverse=True)", DRAWING),
    Mutant("midpoint of the wrong end", ROOTING_PY, "node = max(survey.tips", "node = min(survey.tips", ROOTING),
    Mutant("the share from the other end", ROOTING_PY, "share if tree.ends[branch, 0] == node", "share if tree.ends[branch, 0] != node",
        ROOTING),
    Mutant("deviations above a branch forgotten", ROOTING_PY, "siblings + outside.get(parent, 0.0)", "siblings", ROOTING),
    Mutant("deviations across a node forgotten", ROOTING_PY, "outside[node] = without[node] + ", "outside[node] = ", ROOTING),
    Mutant("a root beyond its branch", ROOTING_PY, "(2.0 * curvature), 0.0, length)", "(2.0 * curvature), -9.0, 9.0)", ROOTING),
    Mutant("pairs at distance 0 count", ROOTING_PY, "np.count_nonzero(survey.distances) / 2", "survey.distances.size / 2", ROOTING),
    Mutant("registered drivers are advised on", "plltool/engine/opencl/drivers.py",
        "if name in drivers and not any(own.startswith(name) for own in known)", "if name in drivers", ("tests/engine/test_drivers.py",)),
    Mutant("a driver is found once per folder", "plltool/engine/opencl/drivers.py",
        "found.setdefault(name, Path(root) / name)", "found[str(Path(root) / name)] = Path(root) / name", ("tests/engine/test_drivers.py",)),
    Mutant("rows of inner nodes", "plltool/drawing/shape.py", "rows[children[node][-1]]) / 2.0", "rows[children[node][-1]])", DRAWING),
    Mutant("gaps as informative", "plltool/statistics/description.py", "(counts[:, block.states.state_codes] >= 2)", "(counts >= 2)", DESCRIPTION),
    Mutant("one taxon makes a site informative", "plltool/statistics/description.py", ">= 2).sum(axis=1) >= 2", ">= 1).sum(axis=1) >= 2", DESCRIPTION),
    Mutant("the root among identical sequences", "plltool/statistics/description.py", "if name != ROOT_NAME", "if name", DESCRIPTION),
    Mutant("text as HTML", "plltool/pages/markup.py", "else xml_text(piece)", "else piece", REPORT),
    Mutant("quotes in attributes", "plltool/pages/markup.py", '.replace(chr(34), "&quot;")', "", REPORT),
    Mutant("a script that names can end", "plltool/pages/page.py", '.replace("<", "\\\\u003c")', "", REPORT),
    Mutant("a policy that lets pages load", "plltool/pages/page.py", "default-src 'none'; style", "style", REPORT),
    Mutant("other files replaced", "plltool/analyses/report.py", "if path.exists() and not", "if False and not", REPORT),
    Mutant("supports of another tree", "plltool/pages/records.py", '_topology(self.supports["tree"]) == _topology(self.main["tree"])', "True", REPORT),
    Mutant("splits with a direction", "plltool/pages/records.py", "min(value, value ^ hashes[0])", "value", REPORT),
    Mutant("branches not counted", "plltool/pages/model_section.py", "+ n_trees * n_branches", "", REPORT),
    Mutant("clades too many", "plltool/pages/tree_section.py", "n_rows += len(children[node]) - 1", "n_rows += 1 - 1", REPORT),
    Mutant("shares as per cent", "plltool/pages/support_section.py", 'return 1.0 if kind["unit"] == "0 to 1" else 100.0', "return 1.0", REPORT),
    Mutant("rejected trees as kept", "plltool/pages/support_section.py", "_judged(p, p >= TEST_LEVEL)", "_judged(p, p < TEST_LEVEL)", REPORT),
    Mutant("+I within other words", "plltool/pages/methods.py", r"\+I[OUC]?(?=[+{]|$)", r"\+I[OUC]+(?=[+{]|$)", METHODS),
    Mutant("the code before a codon model", "plltool/pages/methods.py", 'r"^CODON\\d*_"', 'r"^CODON_"', METHODS),
    Mutant("labels longer than branches", "plltool/drawing/characters.py", "len(text) + 1 for", "1 for", DRAWING),
    Mutant("sectors of all clades start at one angle", "plltool/drawing/shape.py", "start += sector", "pass", DRAWING),
    Mutant("markup in names", "plltool/drawing/svg.py", "escape(_NOT_XML", "str(_NOT_XML", DRAWING),
    Mutant("the root's place in a renumbered tree", TOPOLOGY_PY,
        "self.ends[branch, 0] == parents[place]",
        "self.ends[branch, 0] != parents[place]", ROOTED_RUNS),
    Mutant("the time before a power cut is forgotten", "plltool/tree_search/state.py",
           "state.cursor.seconds = self.deadline.seconds", "pass", (TIMED, "-k", "power_cut")),
    Mutant("only as many starts as planned", "plltool/tree_search/multistart.py",
           "if self._climbing.starts.single or", "if True or", (TIMED, "-k", "more_starts")),
    Mutant("further climbs are not fused", "plltool/tree_search/multistart.py",
           "self._fuse(number, [other for other in ranked if other != number][:POOL_SIZE])", "pass",
           (TIMED, "-k", "more_starts")),
    Mutant("a search that has ended begins again", "plltool/tree_search/multistart.py",
           "if deadline is None or not any(one.cursor.polished for one in self._climbs):", "if True:",
           (TIMED, "-k", "power_cut")),
]  # fmt: skip


def copy_repository(folder: Path) -> None:
    """Copy what the tests need, with the kernels inside the package, where the copy finds them first."""
    ignore = shutil.ignore_patterns("__pycache__")
    for name in ("plltool", "kernels", "tests", "data"):
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


def find_staleness(mutant: Mutant, text: str) -> str:
    """Why a mutant cannot be applied to the `text` of its file; empty if it can."""
    count = text.count(mutant.old)
    return "" if count == 1 else f"STALE: {mutant.old!r} is {count} times in {mutant.file}"


def check_mutants(mutants: list[Mutant]) -> list[str]:
    """What is wrong with mutants as they stand in the repository: their lines, and the files of their tests."""
    problems = []
    for mutant in mutants:
        file = REPOSITORY / mutant.file
        problem = find_staleness(mutant, file.read_text(encoding="utf-8")) if file.exists() else "the file is gone"
        lost = [name for name in mutant.tests if name.endswith(".py") and not (REPOSITORY / name).exists()]
        problems += [
            f"{mutant.file}: {mutant.what}: {found}" for found in (problem, *map("no {}".format, lost)) if found
        ]
    return problems


def try_mutant(mutant: Mutant, folder: Path) -> str:
    """ "caught", or why not. The copy is as before afterwards."""
    file = folder / mutant.file
    original = file.read_text(encoding="utf-8")
    if problem := find_staleness(mutant, original):
        return problem
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
    parser.add_argument("words", nargs="*", help="only mutants whose file or description contains one of these")
    parser.add_argument("--list", action="store_true", help="only list them")
    parser.add_argument("--check", action="store_true", help="only check that each line is there exactly once")
    parser.add_argument("--no-baseline", action="store_true", help="do not check first that the tests pass unbroken")
    options = parser.parse_args()
    words = options.words or [""]
    chosen = [m for m in MUTANTS if any(word in m.file or word in m.what for word in words)]
    if options.list:
        print("\n".join(f"{m.file}: {m.what}" for m in chosen))
        return 0
    if options.check:
        problems = check_mutants(chosen)
        print("\n".join([*problems, f"{len(chosen)} mutants, {len(problems)} problems"]))
        return 1 if problems else 0
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        copy_repository(folder)
        check_import(folder)
        unusable = set()
        if not options.no_baseline:
            for tests in dict.fromkeys(mutant.tests for mutant in chosen):
                status, output = run_tests(folder, tests)
                if status != 0 or "skipped" in output:
                    unusable.add(tests)
                    print(f"unbroken code fails or skips {' '.join(tests)}: {output}", flush=True)
        for mutant in chosen:
            start = time.perf_counter()
            verdict = "NOT RUN, see above" if mutant.tests in unusable else try_mutant(mutant, folder)
            failed += verdict != "caught"
            print(f"{time.perf_counter() - start:5.1f} s  {mutant.file}: {mutant.what}: {verdict}", flush=True)
    print(f"{len(chosen)} mutants, {failed} problems")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
