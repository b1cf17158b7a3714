"""The contract between the host and the kernels: opcodes, records and kernel arguments, each declared once.

The kernels get the numbers as `-D` macros (`macros`). What they take is in `contract.txt`. The OpenCL wrapper passes
arguments in the order of `KERNELS` and checks every array against its declaration (`plltool/engine/opencl/kernels.py`).
The parameter lists of the kernels stay written out in C, so that a kernel can be read on its own;
`tests/engine/test_contract.py` compares them with the declarations. Opcodes and words are plain integers in classes
rather than enumerations, whose members cost half a microsecond at every use in Python 3.11.
"""

from dataclasses import dataclass
from pathlib import Path


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


class WalkRow:
    """The rows of a walker's tree, see `kernels/walks.cl`; columns are nodes.

    PARENT, LEFT and RIGHT are those of `plltool.analyses.sampling.tree`. SLOT_SIDE says which of its two slots has the
    CLA below an inner node, PLACE_SIDE which of two places has the length of the branch above, KEY stands for a taxon,
    see `SplitWeights`; walks find those of inner nodes. The others are room.
    """

    PARENT, LEFT, RIGHT, OLD_PARENT, OLD_LEFT, OLD_RIGHT, SLOT_SIDE, PLACE_SIDE, KEY, ORDER = range(10)


class WalkMove:
    """The moves that walks are made of."""

    MULTIPLY_BRANCH, SLIDE_NODE, MULTIPLY_TREE, INTERCHANGE, EXTEND = range(5)


N_WALK_MOVES = WalkMove.EXTEND + 1


class WalkWord:
    """The numbers of a walker.

    It walks through exp(LNL_POWER lnL + PRIOR_POWER log p), where lnL is LNL at first and log p, up to a constant, the
    sum of a power times log b over all branches, TIP_POWER or INNER_POWER, plus TREE_POWER log T - RATE T, where T is
    the length of the tree. STEP, BOUND (sums of weights), PROBABILITY (sums of probabilities that proposals are
    accepted), TRIED and ACCEPTED (their numbers) are one for each move. NEWVIEWS and EVALUATES count instructions.
    """

    LNL, LNL_POWER, PRIOR_POWER, TIP_POWER, INNER_POWER, TREE_POWER, RATE = range(7)
    LEAST_LENGTH, LARGEST_LENGTH, EXTENSION, NEWVIEWS, EVALUATES = range(7, 12)
    STEP, BOUND, PROBABILITY, TRIED, ACCEPTED = range(12, 12 + 5 * N_WALK_MOVES, N_WALK_MOVES)


WALK_ROWS, WALK_WORDS = WalkRow.ORDER + 1, WalkWord.ACCEPTED + N_WALK_MOVES
N_SPLIT_KEYS = 4096  # a power of 2
ONES = -(2**31)  # the operand of a query that is 1 everywhere


def _numbers(names: type) -> dict[str, int]:
    return {name: number for name, number in vars(names).items() if name.isupper()}


OPCODES = _numbers(Opcode)
_RECORDS = (InstructionWord, SpanWord, TrackWord, StepWord, QueryWord)
RECORDS = {record.__name__.removesuffix("Word").upper(): _numbers(record) for record in _RECORDS}
INSTRUCTION_WORDS, SPAN_WORDS, TRACK_WORDS, STEP_WORDS, QUERY_WORDS = (len(words) for words in RECORDS.values())


def macros() -> dict[str, int]:
    """The numbers above by the names that the kernels use: NEWVIEW, SPAN_WORDS, SPAN_N_TILES, ..."""
    values = OPCODES | _numbers(Step) | _numbers(Combination) | _numbers(WalkMove)
    values |= {
        "N_WALK_MOVES": N_WALK_MOVES,
        "N_SPLIT_KEYS": N_SPLIT_KEYS,
        "WALK_ROWS": WALK_ROWS,
        "WALK_WORDS": WALK_WORDS,
    }
    values |= {f"WALK_{name}": number for name, number in (_numbers(WalkRow) | _numbers(WalkWord)).items()}
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
    shape: tuple[str | int, ...] | None  # dimensions of an array, see `contract.txt`; None for a number
    meaning: str  # what it holds


def _read_sections() -> dict[str, list[list[str]]]:
    """The rows of `contract.txt` by section, each as its cells; the last cell may have bars."""
    text = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").replace("\n    ", " ")
    _, *blocks = text.split("\n== ")
    sections: dict[str, list[list[str]]] = {}
    for head, *rows in (block.strip().splitlines() for block in blocks):
        name, _, columns = head.partition(":")
        sections[name] = [list(map(str.strip, row.split("|", columns.count("|")))) for row in rows]
    return sections


_SECTIONS, _MACROS = _read_sections(), macros()
BUILT_FROM = {OPCODES[name]: tuple(words.split()) for name, words, _ in _SECTIONS["instructions"]}  # words by opcode
LAUNCH_SIZES: dict[str, str] = dict(_SECTIONS["sizes"])
ARRAYS = {
    name: KernelArgument(
        name, ctype, tuple(int(d) if d.isdecimal() else _MACROS.get(d, d) for d in dimensions.split()), meaning
    )
    for name, ctype, dimensions, meaning in _SECTIONS["arrays"]
}
_ARGUMENTS = ARRAYS | {
    name: KernelArgument(name, ctype, None, meaning or LAUNCH_SIZES[name])
    for name, ctype, meaning in _SECTIONS["numbers"]
}
KERNELS = {name: tuple(map(_ARGUMENTS.__getitem__, words.split())) for name, _, words in _SECTIONS["kernels"]}
WRITTEN = {name: frozenset(writes.split()) for name, writes, _ in _SECTIONS["kernels"]}  # arrays, by kernel
