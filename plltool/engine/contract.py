"""The contract between the host and the kernels: opcodes, records and kernel arguments, each declared once.

The kernels get the numbers as `-D` macros (`macros`). The OpenCL wrapper passes arguments in the order of `KERNELS` and
checks every array against its declaration (`plltool/engine/opencl/kernels.py`). The parameter lists of the kernels stay
written out in C, so that a kernel can be read on its own; `tests/engine/test_contract.py` compares them with the
declarations. Opcodes and words are plain integers in classes rather than enumerations, whose members cost half a
microsecond at every use in Python 3.11.

A shape is a tuple of dimensions. A dimension is a number, an attribute of `Layout`, or one of `LAUNCH_SIZES`. One that
is called ``want_...`` is 0 or 1: where it is 0, the kernel does not touch the array.
"""

from __future__ import annotations

from dataclasses import dataclass


class Opcode:
    """What an instruction does; `kernels/traverse.cl` gives the formulas. Those before EVALUATE make a CLA."""

    PROPAGATE, NEWVIEW, EVALUATE, DERIVATIVE, INSERT, TRIPLET, RATE_MATRIX_GRADIENT, MASS_GRADIENT = range(8)


_CLAS = frozenset({Opcode.PROPAGATE, Opcode.NEWVIEW})
# What `traverse` is compiled for on a GPU, where a work-item takes the registers of the greediest instruction of a
# program: each launch takes the first set that has all its instructions. EVALUATE is the first step of the gradients.
OPCODE_SETS: dict[str, frozenset[int]] = {
    "likelihoods": _CLAS | {Opcode.EVALUATE, Opcode.DERIVATIVE},
    "insertions": _CLAS | {Opcode.INSERT},
    "triplets": _CLAS | {Opcode.TRIPLET},
    "gradients": _CLAS | {Opcode.EVALUATE, Opcode.RATE_MATRIX_GRADIENT, Opcode.MASS_GRADIENT},
    "all": frozenset(range(Opcode.MASS_GRADIENT + 1)),
}
DERIVATIVE_VALUES = 3  # lnL, d1, d2
TRIPLET_VALUES = 10  # lnL, gradient (3), Hessian aa bb cc ab ac bc
PEAK_CHAINS = 12  # independent multiply-adds in `peaks.cl`: each takes 4 cycles and a core starts 2 per cycle


class InstructionWord:
    """The words of an instruction, a row of a program.

    A, B and C are operands: a CLA slot (>= 0) or a tip (~taxon). PA, PB and PC are the branches below them. RESULT is a
    slot, or the index of the first value. In RATE_MATRIX_GRADIENT, C is 1 where the sum begins and 0 where it goes on.
    """

    OPCODE, RESULT, A, PA, B, PB, C, PC = range(8)


class SpanWord:
    """The words of a span: consecutive tiles that one work-group takes through the program.

    FIRST_TILE counts among all tiles, PLACE among those held in memory. BEGINS is 1 where the span is the first of its
    group, which starts the group's sums.
    """

    GROUP, FIRST_TILE, N_TILES, PART, PLACE, BEGINS = range(6)


class TrackWord:
    """The words of a track: instructions BEGIN to END - 1, which run beside other tracks on the same patterns.

    The shifts are added to the slots, P sets and values that the instructions name.
    """

    BEGIN, END, SLOT_SHIFT, PSET_SHIFT, VALUE_SHIFT = range(5)


class StepWord:
    """The words of a step of `note_scales`, see `kernels/buffers.cl`: rows of `logs` or -1; A of LARGEST is a slot."""

    KIND, TO, A, B = range(4)


class Step:
    """What a step does."""

    ADD, SUBTRACT, LARGEST = range(3)


class QueryWord:
    """The words of a query of `add_sites`, see `kernels/buffers.cl`: two operands, a slot, and rows of `logs` or -1.

    An operand is a slot, a tip (~taxon), or ONES. B is y_0, and the slots from MORE on are y_1 and y_2.
    """

    A, B, MORE, LESS, LESS_TOO, PLUS = range(6)


class Combination:
    """What `combine_matrices` makes."""

    PRODUCT_OF_TWO, SUM_OF_TWO, TRANSPOSE = range(3)


ONES = -(2**31)  # the operand of a query that is 1 everywhere


def _numbers(names: type) -> dict[str, int]:
    return {name: number for name, number in vars(names).items() if name.isupper()}


OPCODES = _numbers(Opcode)
_RECORDS = (InstructionWord, SpanWord, TrackWord, StepWord, QueryWord)
RECORDS = {record.__name__.removesuffix("Word").upper(): _numbers(record) for record in _RECORDS}
INSTRUCTION_WORDS, SPAN_WORDS, TRACK_WORDS, STEP_WORDS, QUERY_WORDS = (len(words) for words in RECORDS.values())


def macros() -> dict[str, int]:
    """The numbers above by the names that the kernels use: NEWVIEW, SPAN_WORDS, SPAN_N_TILES, ..."""
    values = OPCODES | _numbers(Step) | _numbers(Combination)
    for record, words in RECORDS.items():
        values[f"{record}_WORDS"] = len(words)
        values |= {f"{record}_{name}": number for name, number in words.items()}
    values |= {"DERIVATIVE_VALUES": DERIVATIVE_VALUES, "TRIPLET_VALUES": TRIPLET_VALUES, "PEAK_CHAINS": PEAK_CHAINS}
    return values


@dataclass(frozen=True)
class KernelArgument:
    """One argument of a kernel."""

    name: str  # of the parameter in C
    ctype: str  # type of a number or an element in OpenCL C; those in capitals depend on the layout
    shape: tuple[str | int, ...] | None  # dimensions of an array, see above; None for a number
    meaning: str  # what it holds


@dataclass(frozen=True)
class KernelDeclaration:
    """The arguments of a kernel in order, and the names of the arrays that it writes."""

    name: str
    arguments: tuple[KernelArgument, ...]
    writes: frozenset[str]


LAUNCH_SIZES = {
    "n_psets": "P sets: parts, times models where several are asked for at once",
    "n_branches": "branch lengths that go with the program",
    "n_instructions": "instructions of the program",
    "n_tracks": "tracks of the schedule",
    "n_values": "numbers that the program makes",
    "n_slots": "CLA slots of each tile",
    "n_held_tiles": "tiles of the run whose CLAs are held at a time",
    "n_spans": "spans of all runs",
    "n_sum_rows": "rows of partial sums: work-groups first, then those made of them",
    "n_made_rows": "rows of partial sums that `add_rows` makes",
    "n_state_sets": "rows of the table of state sets",
    "n_made": "matrices that are made at a time",
    "n_matrices": "matrices that a client of buffers has",
    "n_steps": "steps of `note_scales`",
    "n_log_rows": "rows of logarithms",
    "n_queries": "queries of `add_sites`",
    "n_site_rows": "values of each pattern that `add_sites` keeps",
    "n_peak_blocks": "blocks that `copy` moves",
    "n_peak_groups": "work-groups of `multiply_adds`",
    "want_site": "1 to store the lnL of each pattern",
    "want_decays": "1 to make decays",
    "want_slopes": "1 to make slopes",
    "want_differences": "1 to make divided differences",
}

_OF_TILES = ("n_held_tiles", "n_slots", "tile_blocks", "n_components")
_OF_BRANCHES = ("n_psets", "n_branches")

_ARRAYS = (
    KernelArgument("clas", "REAL", (*_OF_TILES, "n_states", "vw"), "CLAs; strides as in `Layout.strides`"),
    KernelArgument("scales", "int", (*_OF_TILES, "vw"), "powers of two taken out of CLAs; the same strides"),
    KernelArgument("tips", "CODE", ("n_tiles", "n_taxa", "tile_blocks", "vw"), "tip codes"),
    KernelArgument("state_sets", "REAL", ("n_state_sets", "n_states"), "likelihoods of states; read with MANY_STATES"),
    KernelArgument("weights", "WIDE", ("n_lanes",), "pattern weights, 0 in padding lanes"),
    KernelArgument(
        "model",
        "REAL",
        ("n_psets", "n_components", "model_values"),
        "m_i | m_i U_ik as [k][i] | U^-1 as [k][j] | rate, where m_i = component weight * frequency",
    ),
    KernelArgument(
        "eigen",
        "double",
        ("n_psets", "n_components", "eigen_values"),
        "eigenvalue * rate | U as [k][i] | U^-1 as [k][j] | without REVERSIBLE, imaginary parts of eigenvalue * rate",
    ),
    KernelArgument("lengths", "double", _OF_BRANCHES, "expected substitutions per site; negative: against time"),
    KernelArgument(
        "at_tips", "uchar", ("n_branches",), "1 for branches with a tip below, whose tables for tips are made"
    ),
    KernelArgument("matrices", "REAL", (*_OF_BRANCHES, "branch_values"), "P(t), and its tables for tips"),
    KernelArgument(
        "slopes", "REAL", ("want_slopes", *_OF_BRANCHES, 2, "n_components", "matrix_values"), "P'(t), P''(t)"
    ),
    KernelArgument(
        "decays",
        "REAL",
        ("want_decays", *_OF_BRANCHES, "n_components", 3, "n_states"),
        "expm1(l t), l exp(l t), l^2 exp(l t), where l = eigenvalue * rate",
    ),
    KernelArgument(
        "divided_differences",
        "REAL",
        ("want_differences", *_OF_BRANCHES, "difference_tables", "n_components", "n_states", "n_states"),
        "F(t)_kl, how P(t) changes with the rate matrix, see `pmatrices.cl`",
    ),
    KernelArgument("program", "int", ("n_instructions", INSTRUCTION_WORDS), "instructions"),
    KernelArgument("tracks", "int", ("n_tracks", TRACK_WORDS), "what runs at the same time"),
    KernelArgument("spans", "int", ("n_spans", SPAN_WORDS), "tiles of each work-group"),
    KernelArgument("used_blocks", "int", ("n_tiles",), "blocks of each tile that hold patterns"),
    KernelArgument("partial", "WIDE_SUM", ("n_sum_rows", "n_values"), "sums over the patterns of a work-group"),
    KernelArgument("bad_pattern", "int", (1,), "the smallest lane whose likelihood is not positive"),
    KernelArgument("site", "WIDE", ("want_site", "n_values", "n_lanes"), "lnL of each pattern, not weighted"),
    KernelArgument("sum_tree", "int", ("n_made_rows", 2), "for each made row, the first row it adds and the one after"),
    KernelArgument("made", "REAL", ("n_made", "branch_values"), "matrices before they get their places"),
    KernelArgument("pairs", "int", (2, "n_made"), "matrices that are combined"),
    KernelArgument("places", "int", (3, "n_made"), "where P, P' and P'' go, -1: nowhere"),
    KernelArgument("steps", "int", ("n_steps", STEP_WORDS), "sums and differences of rows of logarithms"),
    KernelArgument("logs", "double", ("n_log_rows", "n_lanes"), "what has been taken out of buffers; scale factors"),
    KernelArgument("masses", "double", ("n_queries", "n_components", "n_states"), "component weight * frequency"),
    KernelArgument("queries", "int", ("n_queries", QUERY_WORDS), "operands and rows of logarithms"),
    KernelArgument("site_rows", "double", ("n_site_rows", "n_lanes"), "values of patterns, not weighted"),
    KernelArgument("source", "REAL", ("n_peak_blocks", "vw"), "what is copied"),
    KernelArgument("target", "REAL", ("n_peak_blocks", "vw"), "where it is copied to"),
    KernelArgument("out", "REAL", ("n_peak_groups", "vw"), "results, so that the compiler keeps the work"),
)
_SIZES = ("n_branches", "n_psets", "n_values", "want_decays", "want_slopes", "want_differences", "want_site")
_NUMBERS = (
    *(KernelArgument(name, "int", None, LAUNCH_SIZES[name]) for name in _SIZES),
    KernelArgument("keep", "int", None, "1: every tile has slots of its own; 0: the tiles of a span share them"),
    KernelArgument("first_span", "int", None, "first span of this launch"),
    KernelArgument("launch_spans", "int", None, "number of spans of this launch"),
    KernelArgument("first_track", "int", None, "first track of this launch"),
    KernelArgument("launch_tracks", "int", None, "number of tracks of this launch"),
    KernelArgument("first_shifted", "int", None, "from this slot on, slots are shifted by the track's SLOT_SHIFT"),
    KernelArgument("n_taxa", "int", None, "tips of each tile"),
    KernelArgument("tile_blocks", "int", None, "blocks of a tile"),
    KernelArgument("n_lanes", "ulong", None, "patterns with padding"),
    KernelArgument("tile_stride", "ulong", None, "from one tile's CLAs to the next, in blocks"),
    KernelArgument("slot_stride", "ulong", None, "from one slot to the next, in blocks"),
    KernelArgument("n_groups", "int", None, "rows of partial sums that `traverse` makes"),
    KernelArgument("first_made", "int", None, "first row that this launch makes, counted among the made ones"),
    KernelArgument("combination", "int", None, "what is made of two matrices"),
    KernelArgument("n_made", "int", None, LAUNCH_SIZES["n_made"]),
    KernelArgument("n_steps", "int", None, LAUNCH_SIZES["n_steps"]),
    KernelArgument("n_products", "int", None, "products of a query"),
    KernelArgument("n_sets", "int", None, "queries of an answer, whose likelihoods are added up"),
    KernelArgument("of_ratios", "int", None, "1: values are ratios and their squares"),
    KernelArgument("first_value", "int", None, "the first value of this launch"),
    KernelArgument("n_queries", "int", None, LAUNCH_SIZES["n_queries"]),
    KernelArgument("group_blocks", "ulong", None, "blocks that each work-group takes"),
    KernelArgument("factor", "REAL", None, "of the multiply-adds"),
    KernelArgument("term", "REAL", None, "of the multiply-adds"),
    KernelArgument("rounds", "int", None, "multiply-adds of each chain"),
)
ARRAYS = {argument.name: argument for argument in _ARRAYS}
_ARGUMENTS = ARRAYS | {argument.name: argument for argument in _NUMBERS}


_OF_BLOCKS = "tile_blocks group_blocks n_lanes tile_stride slot_stride"


def _declare(name: str, arguments: str, writes: str) -> KernelDeclaration:
    return KernelDeclaration(name, tuple(_ARGUMENTS[word] for word in arguments.split()), frozenset(writes.split()))


KERNELS = {
    kernel.name: kernel
    for kernel in (
        _declare(
            "pmatrices",
            "eigen lengths at_tips matrices slopes decays divided_differences "
            "n_branches n_psets want_decays want_slopes want_differences",
            writes="matrices slopes decays divided_differences",
        ),
        _declare(
            "traverse",
            "clas scales tips state_sets weights model matrices slopes decays divided_differences "
            "program tracks spans used_blocks partial bad_pattern site "
            "want_site keep first_span launch_spans first_track launch_tracks first_shifted n_values n_taxa n_branches "
            "tile_blocks n_lanes tile_stride slot_stride",
            writes="clas scales partial bad_pattern site",
        ),
        _declare("add_rows", "partial sum_tree n_groups first_made n_values", writes="partial"),
        _declare("combine_matrices", "matrices pairs made combination n_made", writes="made"),
        _declare("place_matrices", "made slopes places matrices n_made", writes="matrices"),
        _declare("note_scales", f"clas scales steps logs n_steps {_OF_BLOCKS}", writes="logs"),
        _declare(
            "add_sites",
            "clas scales tips weights masses logs queries site_rows partial "
            f"n_products n_sets of_ratios want_site first_value n_values n_taxa {_OF_BLOCKS}",
            writes="site_rows partial",
        ),
        _declare(
            "add_products",
            f"clas scales tips weights masses queries site_rows partial n_queries n_values n_taxa {_OF_BLOCKS}",
            writes="partial",
        ),
        _declare("copy", "source target group_blocks", writes="target"),
        _declare("multiply_adds", "out factor term rounds", writes="out"),
    )
}
