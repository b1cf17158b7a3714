"""Programs: lists of instructions that an engine runs in one launch, and requests to run them.

An instruction is a row of int32, see `contract.InstructionWord`: opcode, result, a, pa, b, pb, c, pc. ``a``, ``b`` and
``c`` name CLAs: a slot (>= 0) or a tip (``~taxon``). ``pa``, ``pb`` and ``pc`` are branches: indices into the lengths
that go with the program. ``result`` is a slot for instructions that make a CLA, and an index into the answer for those
that make numbers. ``~branch`` in place of a branch says that a likelihood passes it against time, from its lower to its
upper end as seen from the root; this matters only under processes that are not time-reversible. The builders
`propagate` to `mass_gradient` take the words that `contract.txt` lists, broadcast them, and return int32 arrays
(n, INSTRUCTION_WORDS), to be joined with ``np.concatenate``. `kernels/traverse.cl` gives the formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from plltool.arrays import BoolArray, ByteArray, FloatArray, IndexArray, IntArray
from plltool.engine.contract import BUILT_FROM, INSTRUCTION_WORDS, TRACK_WORDS, InstructionWord, Opcode

PACKED_LENGTH = 1.0  # of branches that a track does not read, where others read more
BRANCHES = [InstructionWord.PA, InstructionWord.PB]  # all branches of every instruction but TRIPLET
_ALL_BRANCHES = [*BRANCHES, InstructionWord.PC]
_READS = np.array([[word in BUILT_FROM[opcode] for word in "ABC"] for opcode in sorted(BUILT_FROM)])  # by opcode


def one_piece() -> IntArray:
    """The pieces of a program that cannot be cut."""
    return np.zeros(1, dtype=np.int32)


@dataclass(frozen=True, eq=False)
class Step:
    """A program that makes CLAs, for requests to come."""

    program: IntArray  # int32 (n, INSTRUCTION_WORDS)
    lengths: FloatArray  # float64 (n_branches,) or (n_parts, n_branches)
    origin: Step | None = None  # the step of all parts, if these are some of them

    def of_parts(self, members: IndexArray) -> Step:
        """The same for an engine that holds only some parts."""
        return Step(self.program, rows_of(self.lengths, members), self.origin or self)


def rows_of(lengths: FloatArray, members: IndexArray) -> FloatArray:
    """The rows of some parts of lengths (..., n_parts, n_branches), or the lengths (n_branches,) of all parts."""
    lengths = np.asarray(lengths, dtype=np.float64)
    return lengths if lengths.ndim == 1 else lengths[..., members, :]


@dataclass(frozen=True, eq=False)
class Request:
    """A program, and what the caller wants from it."""

    program: IntArray  # int32 (n, INSTRUCTION_WORDS)
    n_values: int = 0  # how many numbers the program makes
    kind: str = "run"  # the name under which the counters file the request
    # whether the caller reads the CLAs afterwards; if not, all CLAs are stale afterwards, and the engine may work in
    # memory that stays in cache
    keep: bool = True
    # int32 (n_pieces,) the first instruction of each piece; the first is 0. Pieces do not read what another piece
    # makes, so they may run at the same time
    pieces: IntArray = field(default_factory=one_piece)
    scratch: range = range(0)  # the slots that pieces write to; a piece may shift them by a multiple of their number
    # whether patterns may have likelihood 0, because the values are joint with a component or a state; for requests of
    # site values only, which are then not corrected for ascertainment bias
    impossible: bool = False
    parts: BoolArray | None = None  # (n_parts,) whose values are wanted; None for all. Others may be anything finite
    of_sites: bool = False  # whether values of patterns are wanted, not their sums; every value is then an EVALUATE
    after: tuple[Step, ...] = ()  # what makes the CLAs that the program reads, each step from those of the ones before

    def answer_shape(self, n_parts: int, n_patterns: int) -> tuple[int, int]:
        """The shape of the answer of an engine with these numbers of parts and patterns."""
        return (self.n_values, n_patterns) if self.of_sites else (n_parts, self.n_values)

    def wants(self, part: int) -> bool:
        """Whether the values of a part are wanted."""
        return self.parts is None or bool(self.parts[part])

    def of_parts(self, members: IndexArray) -> Request:
        """The same request to an engine that holds only some parts."""
        steps = tuple(step.of_parts(members) for step in self.after)
        return replace(self, parts=None if self.parts is None else self.parts[members], after=steps)


def with_directions(request: Request, lengths: FloatArray) -> tuple[Request, FloatArray]:
    """The request without ``~branch``: branches passed against time come once more, behind all others.

    Their lengths have a minus sign, which is how engines tell them apart. `lengths` is (..., n_branches).
    """
    branches = request.program[:, _ALL_BRANCHES]
    if branches.min(initial=0) >= 0:
        return request, lengths
    program = request.program.copy()
    program[:, _ALL_BRANCHES] = np.where(branches < 0, lengths.shape[-1] + ~branches, branches)
    return replace(request, program=program), np.concatenate([lengths, -lengths], axis=-1)


def renumber_branches(program: IntArray, number: Callable[[IntArray], IntArray]) -> IntArray:
    """A copy with other numbers of branches, which stay those that are passed against time; no TRIPLET."""
    program = program.copy()
    branches = program[:, BRANCHES]
    against = branches < 0
    new = number(np.where(against, ~branches, branches) if against.any() else branches)
    program[:, BRANCHES] = np.where(against, ~new, new)
    return program


def without_unread(program: IntArray) -> IntArray:
    """The program without the CLAs that none of its values need."""
    results = program[:, InstructionWord.RESULT].tolist()
    makes_cla = (program[:, InstructionWord.OPCODE] < Opcode.EVALUATE).tolist()
    slots = slots_read(program).tolist()
    is_needed = np.zeros(len(program), dtype=bool)
    wanted: set[int] = set()  # slots that a later instruction reads; tips among them do no harm
    for number in range(len(program) - 1, -1, -1):
        if makes_cla[number]:
            if results[number] not in wanted:
                continue
            wanted.remove(results[number])
        is_needed[number] = True
        wanted.update(slots[number])
    return program[is_needed]


def slots_read(program: IntArray) -> IntArray:
    """(n, 3) the slots that each instruction reads; negative for tips, and where it reads fewer."""
    words = program[:, [InstructionWord.A, InstructionWord.B, InstructionWord.C]]
    return np.where(_READS[program[:, InstructionWord.OPCODE]], words, np.int32(-1))


def slots_written(program: IntArray) -> int:
    """One more than the last slot that a program writes to."""
    makes_cla = program[:, InstructionWord.OPCODE] < Opcode.EVALUATE
    return int(program[makes_cla, InstructionWord.RESULT].max(initial=-1)) + 1


def branches_at_tips(program: IntArray, n_branches: int) -> ByteArray:
    """uint8 (n_branches,): 1 for each branch through which a NEWVIEW reads a tip, else 0."""
    found = np.zeros(n_branches, dtype=np.uint8)
    is_newview = program[:, InstructionWord.OPCODE] == Opcode.NEWVIEW
    for operand, branch in ((InstructionWord.A, InstructionWord.PA), (InstructionWord.B, InstructionWord.PB)):
        found[program[:, branch][is_newview & (program[:, operand] < 0)]] = 1
    return found


def _builder(opcode: int) -> Callable[..., IntArray]:
    """What makes instructions from their words, see `contract.txt`: each of one instruction, or of several."""
    places = [getattr(InstructionWord, word) for word in BUILT_FROM[opcode]]

    def build(*words: npt.ArrayLike) -> IntArray:
        columns = np.broadcast_arrays(*(np.asarray(word, dtype=np.int32) for word in words))
        program = np.zeros((columns[0].size, INSTRUCTION_WORDS), dtype=np.int32)
        program[:, InstructionWord.OPCODE] = opcode
        for place, column in zip(places, columns, strict=True):
            program[:, place] = column.ravel()
        if opcode == Opcode.RATE_MATRIX_GRADIENT:
            program[0, InstructionWord.C] = 1  # the sum begins here
        return program

    return build


propagate = _builder(Opcode.PROPAGATE)
newview = _builder(Opcode.NEWVIEW)
evaluate = _builder(Opcode.EVALUATE)
derivative = _builder(Opcode.DERIVATIVE)
insert = _builder(Opcode.INSERT)
triplet = _builder(Opcode.TRIPLET)
rate_matrix_gradient = _builder(Opcode.RATE_MATRIX_GRADIENT)
mass_gradient = _builder(Opcode.MASS_GRADIENT)


def slopes(*words: npt.ArrayLike) -> IntArray:
    """`derivative` across branches of one tree; only the first makes lnL, whose logarithm takes a fifth of the time."""
    program = derivative(*words)
    program[1:, InstructionWord.C] = 1
    return program


# --- tracks ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Track:
    """A program that makes values, numbered from 0 on, and runs beside others with separate lengths and model.

    The chains of a sampler differ in topology, lengths and parameters and share nothing but the tips. The CLAs of each
    outlive the launch, so that the next one makes only those that a proposal changed; P matrices are those that it
    reads.
    """

    # (n, INSTRUCTION_WORDS), the words of each instruction; no other track of the launch may use the slots that it
    # writes to
    program: Sequence[Sequence[int]]
    # (n_parts, n_branches), expected substitutions per site; one row if all parts share them
    lengths: Sequence[Sequence[float]]
    model: Any  # what `Engine.pack_models` made of the models of the parts
    n_values: int = 1  # how many numbers the program makes

    def of_shard(self, number: int, members: IndexArray) -> Track:
        """The same for one of several engines, which holds only some parts."""
        lengths = self.lengths if len(self.lengths) == 1 else [self.lengths[part] for part in members]
        return replace(self, lengths=lengths, model=self.model[number])


def make_tracks(*words: npt.ArrayLike) -> IntArray:
    """int32 (n, TRACK_WORDS) tracks of words in the order of `TrackWord`, of all or of each; the last ones may be 0."""
    given = [np.asarray(word, dtype=np.int32) for word in (*words, *[0] * (TRACK_WORDS - len(words)))]
    return np.stack(np.broadcast_arrays(*given), axis=1)


def join_tracks(tracks: Sequence[Track], n_parts: int) -> tuple[IntArray, FloatArray, IntArray]:
    """The programs of tracks, one after another; lengths (n_tracks * n_parts, n_branches); (n_tracks, TRACK_WORDS).

    There are as many branches as the longest has. Each track has separate P sets and values.
    """
    n = max(len(track.lengths[0]) for track in tracks)
    rows: list[list[float]] = []
    for track in tracks:
        own = [[*lengths, *[PACKED_LENGTH] * (n - len(lengths))] for lengths in track.lengths]
        rows += own * (n_parts // len(own))
    program = np.array([row for track in tracks for row in track.program], dtype=np.int32)
    ends = np.cumsum([0, *(len(track.program) for track in tracks)])
    values = np.cumsum([0, *(track.n_values for track in tracks)])
    words = make_tracks(ends[:-1], ends[1:], 0, n_parts * np.arange(len(tracks)), values[:-1])
    return program, np.array(rows, dtype=np.float64), words
