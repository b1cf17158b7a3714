"""The protocol of the likelihood engines.

An engine owns tip codes, pattern weights, a model for each part and a set of CLA slots. It knows no tree and no search:
it runs programs (`program.py`) over branch lengths that come with them. Subclasses implement `_ask`, `_ask_tracks` and
the setters; everything else is shared.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakSet

import numpy as np
import numpy.typing as npt

from plltool.arrays import FloatArray, IndexArray, IntArray
from plltool.engine import program as prog
from plltool.engine.codes import encode_tips
from plltool.engine.contract import BUILT_FROM, OPCODES, InstructionWord, Opcode
from plltool.engine.layout import Layout
from plltool.engine.program import Request, Step, Track, slots_written
from plltool.engine.requests import Answer, Counters, Holder, Parts
from plltool.engine.storage import Storage
from plltool.errors import EngineError
from plltool.model.components import Components

BALANCE_ROUNDING = 1e-6  # of flows between states, relative to the largest; far above the rounding of an eigensystem
_IN_EIGENBASIS = [Opcode.DERIVATIVE, Opcode.RATE_MATRIX_GRADIENT, Opcode.MASS_GRADIENT]


class NotFiniteError(EngineError):
    """A likelihood that is not a number, with the part and the value of the request that it spoils."""

    def __init__(self, message: str, part: int = 0, value: int = 0):
        super().__init__(message)
        self.part = part
        self.value = value


class Peak(NamedTuple):
    """Something that the hardware does as fast as it can: `run` does `amount` of it and returns when it is done."""

    run: Callable[[], None]
    amount: float


@dataclass(frozen=True, eq=False)
class EngineData:
    """The patterns of all parts, one part after another."""

    codes: npt.NDArray[np.integer]  # integers (n_taxa, n_patterns); bit masks of states, or rows of `state_sets`
    weights: FloatArray  # float64 (n_patterns,), how often each pattern occurs
    # likelihoods of states, 0 or 1 for sets, (n_codes, n_states); None for masks, which sets of up to 8 states are
    state_sets: npt.ArrayLike | None = None

    @property
    def n_codes(self) -> int:
        """Rows of the table of state sets; 0 where there is none."""
        return 0 if self.state_sets is None else len(np.asarray(self.state_sets))

    def of_patterns(self, patterns: IndexArray) -> EngineData:
        """The data of some patterns, in this order."""
        return EngineData(np.ascontiguousarray(self.codes[:, patterns]), self.weights[patterns], self.state_sets)


class Engine(Holder):
    """Base of the numpy and the OpenCL engine; its `storage`, see `plan_storage`, says where CLAs are kept.

    Raises EngineError if arrays do not fit the layout or each other, or if a code names no state.
    """

    name = ""

    def __init__(self, layout: Layout, storage: Storage, data: EngineData):
        if data.codes.shape != (layout.n_taxa, layout.n_patterns):
            raise EngineError(f"codes have shape {data.codes.shape}, the layout {(layout.n_taxa, layout.n_patterns)}")
        weights = np.array(data.weights, dtype=np.float64)
        if weights.shape != (layout.n_patterns,):
            raise EngineError(f"weights have shape {weights.shape}, expected ({layout.n_patterns},)")
        if data.n_codes != layout.n_codes:
            raise EngineError(f"{data.n_codes} state sets, the layout has {layout.n_codes}")
        codes, state_sets = encode_tips(layout.n_states, data.codes, data.state_sets)
        self._state_sets = state_sets.astype(layout.real)
        self._codes = layout.pad_codes(codes)
        self.layout, self.has_double = layout, layout.double_sums
        self.n_parts = layout.n_parts
        self.part_patterns = layout.part_patterns
        self.n_groups = len(layout.groups)
        self.storage = storage
        self.n_slots, self.resident = storage.n_slots, storage.resident
        self.launch_share, self.cla_bytes = storage.launch_share, storage.n_bytes(layout)
        self.weights = weights
        self.counters = Counters()
        self._made_steps: WeakSet[Step] = WeakSet()

    def describe(self) -> dict[str, object]:
        return self.layout.describe()

    def peaks(self) -> dict[str, Peak]:
        """The peak rates to compare an engine's speed with, where they are known.

        "copy" moves bytes, each counted as read and as written. "multiply_adds" works in registers, lane by lane.
        """
        return {}

    def set_weights(self, weights: FloatArray) -> None:
        if weights.shape != self.weights.shape:
            raise EngineError(f"weights of shape {weights.shape} cannot replace {self.weights.shape}")
        self.weights = np.array(weights, dtype=np.float64)
        self._send_weights(self.layout.pad_weights(self.weights))

    @abstractmethod
    def _send_weights(self, padded: FloatArray) -> None:
        """Replace the weights, where they are used, by weights (n_lanes,) of lanes."""

    @abstractmethod
    def _ask(self, request: Request, lengths: FloatArray) -> Answer:
        """Begin a program; lengths (n_parts, n_branches); the answer is sums of each part (n_parts, n_values).

        If the request is of sites, lnL (n_values, n_patterns), which may not be finite.
        """

    @abstractmethod
    def _ask_tracks(self, request: Request, lengths: FloatArray, models: Sequence[Any], tracks: IntArray) -> Answer:
        """Begin the program of each of `tracks` (n, TRACK_WORDS) under its model, as `pack_models` returns it.

        lengths (n_tracks * n_parts, n_branches); the answer is (n_parts, n_values) of all tracks.
        """

    def ask(self, request: Request, lengths: FloatArray) -> Answer:
        if request.parts is not None and not request.parts.any():
            return lambda: np.zeros(request.answer_shape(self.n_parts, self.n_patterns))
        lengths = np.asarray(lengths, dtype=np.float64)
        self.make_clas(request.after)
        if not self.resident:
            request, lengths = self._behind_steps(replace(request, keep=False), lengths)
        self._check_slots(request.program)
        self.counters.count(request.kind, request.program)
        request, lengths = prog.with_directions(request, lengths)
        lengths = np.broadcast_to(lengths, (self.n_parts, lengths.shape[-1]))
        answer = self._ask(request, lengths)

        def get() -> FloatArray:
            try:
                values = answer()
            except NotFiniteError as error:
                across = np.abs(lengths[error.part, _branches(request.program, error.value)])
                found = ", ".join(f"{length:g}" for length in across)
                raise NotFiniteError(f"{error}, across branches of length {found}", error.part, error.value) from error
            return self._checked_sites(request, values) if request.of_sites else values

        return get

    def _behind_steps(self, request: Request, lengths: FloatArray) -> tuple[Request, FloatArray]:
        """A request that makes the CLAs that it reads before all else, and its lengths: the given ones first."""
        if not request.after:
            return request, lengths
        program = request.program
        for step in reversed(request.after):
            own, first = step.lengths, np.int32(lengths.shape[-1])
            if lengths.ndim != own.ndim:
                lengths, own = (np.broadcast_to(x, (self.n_parts, x.shape[-1])) for x in (lengths, own))
            program = np.concatenate([prog.renumber_branches(step.program, partial(np.add, first)), program])
            lengths = np.concatenate([lengths, own], axis=-1)
        program = prog.without_unread(program)
        return replace(request, program=program, pieces=prog.one_piece(), scratch=range(0), after=()), lengths

    def _tables(self, program: IntArray) -> frozenset[str]:
        """The arrays of the contract that a program reads for each branch, besides its P matrix."""
        kinds = np.bincount(program[:, InstructionWord.OPCODE], minlength=len(OPCODES))
        are_read = {
            "decays": kinds[_IN_EIGENBASIS].any() and self.layout.reversible,
            "slopes": kinds[Opcode.TRIPLET] or (kinds[Opcode.DERIVATIVE] and not self.layout.reversible),
            "divided_differences": kinds[Opcode.RATE_MATRIX_GRADIENT],
        }
        return frozenset(name for name, is_read in are_read.items() if is_read)

    def ask_likelihoods(self, program: IntArray, lengths: FloatArray, models: Sequence[Parts]) -> Answer:
        for model in models:
            self._check_parts(model)
            self.counters.count("likelihoods", program)
        self._check_slots(program)
        used, n_models = slots_written(program), len(models)
        request = Request(program, n_models, keep=False, scratch=range(used))
        numbers = np.arange(n_models)
        tracks = prog.make_tracks(0, len(program), used * numbers, self.n_parts * numbers, numbers)
        answer = self._ask_tracks(request, lengths.reshape(-1, lengths.shape[-1]), self.pack_models(models), tracks)
        return lambda: answer().T

    def ask_tracks(self, tracks: Sequence[Track]) -> Answer:
        program, lengths, words = prog.join_tracks(tracks, self.n_parts)
        self._check_slots(program)
        self.counters.count("tracks", program)
        request = Request(program, sum(track.n_values for track in tracks), keep=self.resident)
        answer = self._ask_tracks(request, lengths, [track.model for track in tracks], words)
        return lambda: answer().T

    def run(self, operations: IntArray, lengths: FloatArray) -> None:
        """Make CLAs by PROPAGATE and NEWVIEW instructions; EngineError if they would not outlive the launch."""
        if not self.resident:
            raise EngineError("CLAs do not outlive a launch of an engine that streams patterns")
        self.execute(Request(operations), lengths)

    def make_clas(self, steps: Sequence[Step]) -> None:
        for step in steps if self.resident else ():
            if (step.origin or step) not in self._made_steps:
                self.run(step.program, step.lengths)
                self._made_steps.add(step.origin or step)

    def _checked_sites(self, request: Request, values: FloatArray) -> FloatArray:
        """The values of patterns as `execute_sites` returns them."""
        if request.parts is not None:
            values[:, np.repeat(~request.parts, self.part_patterns)] = 0.0
        if request.impossible:
            return np.where(np.isfinite(values), values, -np.inf)
        bad = np.flatnonzero(~np.isfinite(values).all(axis=0))
        self._check_finite(values, int(self.layout.lane_of_pattern[bad[0]]) if len(bad) else None)
        return values

    def _check_slots(self, program: IntArray) -> None:
        written = slots_written(program)
        if written > self.n_slots:
            hint = "a Likelihood holds more without lnl_only, and with neighbours, states or roots"
            raise EngineError(f"the program writes to slot {written - 1}, the engine has {self.n_slots}; {hint}")

    def _check_parts(self, parts: Parts) -> None:
        shapes = {(part.n_states, part.n_components) for part in parts}
        if len(parts) != self.layout.n_parts or shapes != {(self.layout.n_states, self.layout.n_components)}:
            raise EngineError(
                f"the layout holds {self.layout.n_parts} parts of {self.layout.n_states} states and "
                f"{self.layout.n_components} components, the models are {sorted(shapes)} for {len(parts)} parts"
            )
        if any(np.any(part.eigenvalues[:, -1] != 0.0) for part in parts):
            raise EngineError("the last eigenvalue of every component must be exactly 0")
        if any(part.is_reversible != self.layout.reversible for part in parts):
            wanted, found = ("reversible", "not reversible")[:: 1 if self.layout.reversible else -1]
            raise EngineError(f"the layout is for {wanted} processes, found {found} ones")
        for number, part in enumerate(parts):
            if self.layout.reversible and not _is_balanced(part):
                raise EngineError(f"part {number}: processes are said to be reversible, found pi_i Q_ij != pi_j Q_ji")

    def _check_finite(self, values: FloatArray, bad_lane: int | None, value: int = 0) -> None:
        """Raise NotFiniteError if one of `values` (k,), (n_parts, k) or (k, blocks, lanes) is not finite.

        `bad_lane` is the padded index of a pattern that caused it; `value` the number of the first of these values.
        """
        if np.all(np.isfinite(values)):
            return
        bad = np.argwhere(~np.isfinite(values))
        value += int(bad[:, 0 if values.ndim == 3 else -1].min())
        part, where = int(bad[0, 0]) if values.ndim == 2 else 0, "an unknown pattern"
        if bad_lane is not None:
            hits = np.flatnonzero(self.layout.lane_of_pattern == bad_lane)
            where = f"padding lane {bad_lane}"
            if len(hits):
                part = int(np.searchsorted(np.cumsum(self.layout.part_patterns), hits[0], side="right"))
                where = f"pattern {int(hits[0])}"
        of_part = f" of part {part}" if self.n_parts > 1 else ""
        raise NotFiniteError(f"the likelihood of {where} is not positive and finite{of_part}", part, value)


def _is_balanced(part: Components) -> bool:
    """Whether all components are in detailed balance, up to the rounding of eigensystems; at rate 0 nothing flows."""
    flow = (part.rates[:, None] * part.frequencies)[:, :, None] * part.rate_matrices()
    excess, largest = np.abs(flow - flow.swapaxes(1, 2)), np.abs(flow).max(axis=(1, 2), keepdims=True)
    return bool(np.all(excess <= BALANCE_ROUNDING * largest))


def _branches(program: IntArray, value: int) -> IntArray:
    """The branches read by the instruction that makes this value."""
    makes_value = program[:, InstructionWord.OPCODE] >= Opcode.EVALUATE
    rows = program[makes_value & (program[:, InstructionWord.RESULT] <= value)]
    row = rows[np.argmax(rows[:, InstructionWord.RESULT])]
    words = BUILT_FROM[int(row[InstructionWord.OPCODE])]
    return row[[getattr(InstructionWord, word) for word in words if word.startswith("P")]]
