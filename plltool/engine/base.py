"""The protocol of the likelihood engines.

An engine owns tip codes, pattern weights, a model per part and a set of CLA slots. It knows no tree and no search:
it executes programs (`program.py`) over branch lengths that come with them. Subclasses implement `_execute`,
`_likelihoods`, `_site_values` and the setters; the requests here and in `prepared.py` are thin batches on top, for
all engines.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plltool.engine import program as prog
from plltool.engine.codes import encode_tips
from plltool.engine.layout import Layout
from plltool.engine.prepared import PreparedClas, Requests
from plltool.engine.program import Request
from plltool.engine.storage import plan_storage
from plltool.errors import DeviceMemoryError, EngineError
from plltool.model.components import Components

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int32]
Parts = Sequence[Components]  # one model per part


class NotFiniteError(EngineError):
    """A likelihood that is no number, of a part, and which value of the request it spoils."""

    def __init__(self, message: str, part: int = 0, value: int = 0):
        super().__init__(message)
        self.part = part
        self.value = value


@dataclass
class Counters:
    """Work done so far; no CLA is ever among the bytes.

    Attributes
    ----------
    launches : kernels enqueued
    instructions, newviews : executed, over all patterns at once
    bytes_to_device, bytes_from_device : over the bus
    requests : how often each kind of request was made
    request_instructions : instructions in all requests of each kind; over `requests`, the mean batch
    device_seconds : that kernels ran, by the device's clock; None where nobody measures it
    bytes_held, peak_bytes : memory of all arrays on the device, now and at most
    """

    launches: int = 0
    instructions: int = 0
    newviews: int = 0
    bytes_to_device: int = 0
    bytes_from_device: int = 0
    requests: dict[str, int] = field(default_factory=dict)
    request_instructions: dict[str, int] = field(default_factory=dict)
    device_seconds: float | None = None
    bytes_held: int = 0
    peak_bytes: int = 0

    def hold(self, n_bytes: int) -> None:
        """Note memory taken on the device, or given back where negative."""
        self.bytes_held += n_bytes
        self.peak_bytes = max(self.peak_bytes, self.bytes_held)

    def count(self, request: str, program: IntArray) -> None:
        """Add one request."""
        self.instructions += len(program)
        self.newviews += int(np.count_nonzero(program[:, 0] == prog.NEWVIEW))
        self.requests[request] = self.requests.get(request, 0) + 1
        self.request_instructions[request] = self.request_instructions.get(request, 0) + len(program)

    def add_closed(self, other: Counters) -> None:
        """Add the work of engines that are closed, and held their memory beside what is held now."""
        held, peak = self.bytes_held, max(self.peak_bytes, self.bytes_held + other.peak_bytes)
        self.add(other)
        self.bytes_held, self.peak_bytes = held, peak

    def add(self, other: Counters) -> None:
        """Add the work and the memory of another engine."""
        for name, value in vars(other).items():
            mine = getattr(self, name)
            if isinstance(value, dict):
                for kind, number in value.items():
                    mine[kind] = mine.get(kind, 0) + number
            elif value is not None:
                setattr(self, name, value if mine is None else mine + value)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class Tables(NamedTuple):
    """What a program reads of each branch besides its P matrix."""

    decays: bool = False
    slopes: bool = False
    responses: bool = False

    def cover(self, other: Tables) -> bool:
        """Whether these are all that `other` asks for."""
        return all(mine >= asked for mine, asked in zip(self, other, strict=True))


def slots_written(program: IntArray) -> int:
    """One more than the last slot that a program writes to."""
    return int(program[program[:, 0] <= prog.NEWVIEW, 1].max(initial=-1)) + 1


class Peak(NamedTuple):
    """Something that the hardware does as fast as it can: `run` does `amount` of it and returns when it is done."""

    run: Callable[[], None]
    amount: float


class Engine(Requests):
    """Base of the numpy and the OpenCL engine.

    Parameters
    ----------
    layout : shapes and padding
    n_slots : number of CLA slots to hold
    codes : integers (n_taxa, n_patterns), parts one after another; bit masks of states, or rows of `state_sets`
    weights : float64 (n_patterns,) or (n_weight_sets, n_patterns)
    state_sets : 0 or 1 (layout.n_codes, n_states); None up to 8 states, where codes are bit masks
    memory : bytes that CLAs may take; None for no limit
    max_allocation : bytes of the largest buffer; None for no limit

    Attributes
    ----------
    storage : where CLAs are kept
    n_parts : parts of the layout
    weights : float64 (n_weight_sets, n_patterns), in use; see `set_weights`

    Raises
    ------
    EngineError
        If arrays do not fit the layout or each other, or if a code names no state.
    DeviceError
        If `memory` does not hold the CLAs of one tile.
    """

    name = ""

    def __init__(
        self,
        layout: Layout,
        n_slots: int,
        codes: npt.NDArray[np.integer],
        weights: FloatArray,
        state_sets: npt.ArrayLike | None = None,
        memory: int | None = None,
        max_allocation: int | None = None,
    ):
        if codes.shape != (layout.n_taxa, layout.n_patterns):
            raise EngineError(f"codes have shape {codes.shape}, the layout {(layout.n_taxa, layout.n_patterns)}")
        weights = np.atleast_2d(np.array(weights, dtype=np.float64))
        if weights.shape[1] != layout.n_patterns:
            raise EngineError(f"{weights.shape[1]} weights for {layout.n_patterns} patterns")
        n_codes = 0 if state_sets is None else len(np.asarray(state_sets))
        if n_codes != layout.n_codes:
            raise EngineError(f"{n_codes} state sets, the layout has {layout.n_codes}")
        codes, self._state_sets = encode_tips(layout.n_states, codes, state_sets)
        self._codes = layout.pad_codes(codes)
        self.layout = layout
        self.n_slots = n_slots
        self.n_parts = layout.n_parts
        self.storage = plan_storage(layout, n_slots, memory, max_allocation)
        self.weights = weights
        self.n_weight_sets = len(weights)
        self.counters = Counters()

    @property
    def resident(self) -> bool:
        """Whether CLAs outlive the launch that makes them."""
        return self.storage.resident

    @property
    def n_patterns(self) -> int:
        """Patterns of all parts."""
        return self.layout.n_patterns

    def part_sites(self) -> FloatArray:
        """(n_parts,) the sum of the weights of each part's patterns, by the first weight set."""
        return np.add.reduceat(self.weights[0], np.cumsum((0, *self.layout.part_patterns[:-1])))

    @property
    def part_patterns(self) -> tuple[int, ...]:
        """Patterns of each part."""
        return self.layout.part_patterns

    @property
    def n_groups(self) -> int:
        """Work-groups, each of which makes sums of its own."""
        return len(self.layout.groups)

    @property
    def cla_bytes(self) -> int:
        """Memory of CLAs and scaling counts."""
        return self.storage.n_bytes(self.layout)

    @property
    def held_share(self) -> float:
        """The share of the patterns whose CLAs are held at a time; 1 if all are."""
        return 1.0 if self.resident else max(self.storage.buffer_tiles) / self.layout.n_tiles

    def describe(self) -> dict[str, object]:
        """What a result file records of the layout."""
        return self.layout.describe()

    @property
    @abstractmethod
    def device_name(self) -> str:
        """The hardware that does the arithmetic."""

    @property
    @abstractmethod
    def driver(self) -> str:
        """What lies between the engine and the hardware, with its version."""

    def peaks(self) -> dict[str, Peak]:
        """What to measure an engine's speed against, where that is known.

        "copy" moves bytes, each counted when read and when written; "multiply_adds" does them in registers, lane by
        lane, at the layout's vector width and precision.
        """
        return {}

    @abstractmethod
    def set_model(self, parts: Parts) -> None:
        """Use one model per part from now on; CLAs made before are stale.

        Raises EngineError if the number of parts, states or components differs from the layout's.
        """

    def set_weights(self, weights: FloatArray) -> None:
        """Use other pattern weights from now on, float64 (n_weight_sets, n_patterns); CLAs stay as they are.

        Raises EngineError if the shape is not that of the weights in use.
        """
        if weights.shape != self.weights.shape:
            raise EngineError(f"weights of shape {weights.shape} cannot replace {self.weights.shape}")
        self.weights = np.array(weights, dtype=np.float64)
        self._send_weights(self.layout.pad_weights(self.weights))

    @abstractmethod
    def _send_weights(self, padded: FloatArray) -> None:
        """Replace the weights where they are used by those of every lane (n_weight_sets, n_lanes)."""

    @abstractmethod
    def _execute(self, request: Request, lengths: FloatArray, tables: Tables) -> FloatArray:
        """Run the request's program; lengths (n_parts, n_branches); returns sums per part (n_parts, n_values)."""

    @abstractmethod
    def _likelihoods(self, program: IntArray, lengths: FloatArray, models: Sequence[Parts]) -> FloatArray:
        """Values of a program that makes one, (n_models, n_parts), under each model; CLAs are lost, the model is kept.

        lengths (n_models, n_parts, n_branches).
        """

    @abstractmethod
    def _site_values(self, request: Request, lengths: FloatArray) -> FloatArray:
        """Run a program of which every value is an EVALUATE; returns them per pattern (n_values, n_patterns).

        lengths (n_parts, n_branches). Where a likelihood is not positive the value is not finite.
        """

    def add_closed(self, work: Counters) -> None:
        """Count the work of engines elsewhere, see `Counters.add_closed`."""
        self.counters.add_closed(work)

    @abstractmethod
    def rest(self) -> None:
        """Give the memory of CLAs back until the next request; those made so far are lost."""

    def close(self) -> None:
        """Free what the engine holds on its device."""

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, DeviceMemoryError):
            error.cla_bytes = self.cla_bytes
        self.close()

    def execute(self, request: Request, lengths: FloatArray) -> FloatArray:
        """Run a program in one launch (one per run of tiles).

        Parameters
        ----------
        request : the program and what is wanted of it
        lengths : (n_branches,) or (n_parts, n_branches), expected substitutions per site

        Returns
        -------
        float64 (n_parts, n_values), sums over the patterns of each part.

        Raises
        ------
        EngineError
            If a pattern's likelihood is not positive and finite; names pattern, part and the lengths of the branches
            across which it was asked. If the program writes to a slot that the engine does not have.
        """
        self._check_slots(request.program)
        self.counters.count(request.kind, request.program)
        kinds = np.bincount(request.program[:, 0], minlength=prog.ROOT + 1)
        in_eigenbasis = kinds[[prog.DERIVATIVE, prog.GRADIENT, prog.ROOT]].any()
        tables = Tables(bool(in_eigenbasis), bool(kinds[prog.TRIPLET]), bool(kinds[prog.GRADIENT]))
        lengths = self._per_part(lengths)
        try:
            return self._execute(request, lengths, tables)
        except NotFiniteError as error:
            found = ", ".join(f"{length:g}" for length in lengths[error.part, _branches(request.program, error.value)])
            raise EngineError(f"{error}, across branches of length {found}") from error

    def execute_shaped(self, make: Callable[[Layout], Request], lengths: FloatArray) -> list[FloatArray]:
        """Run the program that `make` builds for the layout; returns the values of each part, (n_values,) each.

        For programs whose number of values depends on states and components, in which shards differ (`Shards`).
        """
        return list(self.execute(make(self.layout), lengths))

    def likelihoods(
        self, operations: IntArray, edge: tuple[int, int, int], lengths: FloatArray, models: Sequence[Parts]
    ) -> FloatArray:
        """lnL of each part under each of several models, as many in one launch as the slots have room for.

        Parameters
        ----------
        operations : newviews that lead to `edge`, in slots from 0; all CLAs are stale afterwards
        edge : a, b, branch
        lengths : (n_branches,), (n_parts, n_branches) or (n_models, n_parts, n_branches)
        models : one model per part each; the engine's own model stays what it is

        Returns
        -------
        float64 (n_models, n_parts), by the first weight set.
        """
        for model in models:
            self._check_parts(model)
        program = np.concatenate([operations, prog.evaluate(0, *edge)])
        self._check_slots(program)
        lengths = np.asarray(lengths, dtype=np.float64)
        lengths = np.broadcast_to(lengths, (len(models), self.n_parts, lengths.shape[-1]))
        at_once = max(1, self.n_slots // max(1, slots_written(program)))
        values = np.empty((len(models), self.n_parts))
        for start in range(0, len(models), at_once):
            some = slice(start, start + at_once)
            for _ in models[some]:
                self.counters.count("likelihoods", program)
            values[some] = self._likelihoods(program, lengths[some], models[some])
        return values

    def run(self, operations: IntArray, lengths: FloatArray) -> None:
        """Make CLAs: `operations` are PROPAGATE and NEWVIEW instructions.

        Raises EngineError if they would not outlive the launch; `prepare` is for both kinds of engine.
        """
        if not self.resident:
            raise EngineError("CLAs do not outlive a launch of an engine that streams patterns")
        self.execute(Request(operations), lengths)

    def prepare(self, operations: IntArray, lengths: FloatArray) -> PreparedClas:
        """CLAs for later requests: made now if they outlive the launch, else in front of each request."""
        if self.resident:
            self.run(operations, lengths)
        return PreparedClas(self, operations, lengths)

    def evaluate(self, edges: npt.ArrayLike, lengths: FloatArray) -> FloatArray:
        """lnL across each edge.

        `edges` is int (n, 3): a, b, branch. Returns (n, n_parts, n_weight_sets).
        """
        rows = np.asarray(edges).reshape(-1, 3)
        n_sets = self.n_weight_sets
        program = prog.evaluate(n_sets * np.arange(len(rows)), rows[:, 0], rows[:, 1], rows[:, 2])
        pieces = np.arange(len(rows), dtype=np.int32)
        request = Request(program, n_sets * len(rows), "evaluate", range(n_sets), pieces=pieces)
        values = self.execute(request, lengths)
        return values.reshape(self.layout.n_parts, len(rows), n_sets).transpose(1, 0, 2)

    def execute_sites(self, request: Request, lengths: FloatArray) -> FloatArray:
        self._check_slots(request.program)
        self.counters.count(request.kind, request.program)
        values = self._site_values(request, self._per_part(lengths))
        if request.impossible:
            return np.where(np.isfinite(values), values, -np.inf)
        bad = np.flatnonzero(~np.isfinite(values).all(axis=0))
        self._check_finite(values, int(self.layout.lane_of_pattern[bad[0]]) if len(bad) else None)
        return values

    def _per_part(self, lengths: npt.ArrayLike) -> FloatArray:
        lengths = np.asarray(lengths, dtype=np.float64)
        return np.broadcast_to(lengths, (self.n_parts, lengths.shape[-1]))

    def _check_slots(self, program: IntArray) -> None:
        written = slots_written(program)
        if written > self.n_slots:
            raise EngineError(f"the program writes to slot {written - 1}, the engine has {self.n_slots}")

    def _check_parts(self, parts: Parts) -> None:
        shapes = {(part.n_states, part.n_components) for part in parts}
        if len(parts) != self.layout.n_parts or shapes != {(self.layout.n_states, self.layout.n_components)}:
            raise EngineError(
                f"the layout holds {self.layout.n_parts} parts of {self.layout.n_states} states and "
                f"{self.layout.n_components} components, the models are {sorted(shapes)} for {len(parts)} parts"
            )
        if any(np.any(part.eigenvalues[:, -1] != 0.0) for part in parts):
            raise EngineError("the last eigenvalue of every component must be exactly 0")

    def _check_finite(self, values: FloatArray, bad_lane: int | None, value: int = 0) -> None:
        """Raise NotFiniteError if a sum is not finite.

        Parameters
        ----------
        values : (k,) or (n_parts, k), or of single lanes (k, blocks, lanes)
        bad_lane : the padded index of a pattern that caused it, if known
        value : number of the first one among those of the request
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


def _branches(program: IntArray, value: int) -> IntArray:
    """The branches that the instruction reads which makes that value."""
    rows = program[(program[:, 0] >= prog.EVALUATE) & (program[:, 1] <= value)]
    row = rows[np.argmax(rows[:, 1])]
    return row[{prog.INSERT: [3, 5], prog.TRIPLET: [3, 5, 7]}.get(int(row[0]), [5])]
