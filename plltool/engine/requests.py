"""What engines, shards and prepared CLAs have in common: requests, how work is counted, and how they are closed.

Every request has two halves: it is asked, and its answer is fetched. Several engines so work at the same time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from plltool.arrays import FloatArray, IndexArray, IntArray, slices
from plltool.engine import program as prog
from plltool.engine.contract import DERIVATIVE_VALUES, TRIPLET_VALUES, InstructionWord, Opcode
from plltool.engine.layout import Layout
from plltool.engine.program import Request, Step, Track, slots_written
from plltool.errors import DeviceMemoryError, EngineError
from plltool.model.components import Components

Parts: TypeAlias = Sequence[Components]  # one model per part
Answer: TypeAlias = Callable[[], FloatArray]  # waits for what was asked, and returns it
ShapedAnswer: TypeAlias = Callable[[], list[FloatArray]]


@dataclass
class Counters:
    """The work done so far. CLAs stay on the device, so they are never among the bytes."""

    launches: int = 0  # kernels enqueued
    instructions: int = 0  # executed; one counts once, whatever the number of patterns
    newviews: int = 0  # likewise
    bytes_to_device: int = 0  # bytes copied
    bytes_from_device: int = 0
    exchanges: int = 0  # sums over the ranks of an MPI job
    bytes_exchanged: int = 0  # that this rank sent for them
    requests: dict[str, int] = field(default_factory=dict)  # number of requests of each kind
    # instructions in all requests of each kind; divided by `requests`, the mean batch
    request_instructions: dict[str, int] = field(default_factory=dict)
    device_seconds: float | None = None  # run time of the kernels by the device's clock; None where it is not measured
    bytes_held: int = 0  # memory of all arrays on the device now
    peak_bytes: int = 0  # and at most

    def hold(self, n_bytes: int) -> None:
        """Count memory taken on the device, or given back where negative."""
        self.bytes_held += n_bytes
        self.peak_bytes = max(self.peak_bytes, self.bytes_held)

    def count(self, request: str, program: IntArray) -> None:
        """Count one request."""
        self.instructions += len(program)
        self.newviews += int(np.count_nonzero(program[:, InstructionWord.OPCODE] == Opcode.NEWVIEW))
        self.requests[request] = self.requests.get(request, 0) + 1
        self.request_instructions[request] = self.request_instructions.get(request, 0) + len(program)

    def add_closed(self, other: Counters, beside: bool = False) -> None:
        """Add the work of engines that are closed by now, before this one was opened or `beside` what is held now."""
        held, peak = self.bytes_held, max(self.peak_bytes, other.peak_bytes + beside * self.bytes_held)
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

    @classmethod
    def sum_of(cls, all_work: Iterable[Counters]) -> Counters:
        """The work and the memory of several engines."""
        total = cls()
        for work in all_work:
            total.add(work)
        return total

    def as_dict(self) -> dict[str, Any]:
        """The attributes by name."""
        return asdict(self)


class Walkers(NamedTuple):
    """Chains that walk through trees on the device, see `kernels/walks.cl`; a walk changes what these arrays hold."""

    trees: IntArray  # int32 (n_walkers, WALK_ROWS, n_nodes)
    lengths: FloatArray  # float64 (n_walkers, n_sets, 2, n_nodes) by sides in `trees`; parts share a set, or none do
    numbers: FloatArray  # float64 (n_walkers, WALK_WORDS)
    seeds: npt.NDArray[np.uint64]  # (n_walkers,)
    split_weights: FloatArray  # float64 (n_tables, N_SPLIT_KEYS), each of as many walkers, one after another


class Requests(ABC):
    """Answers programs; batches of the same instruction are made here, on top of `execute`."""

    n_parts: int

    @abstractmethod
    def ask(self, request: Request, lengths: FloatArray) -> Answer:
        """The first half of `execute`. The answer must be fetched before the same engine gets another request."""

    def execute(self, request: Request, lengths: FloatArray) -> FloatArray:
        """Run a program in one launch (one for each run of tiles), at lengths (n_branches,) or (n_parts, n_branches).

        Returns float64 (n_parts, n_values), sums over the patterns of each part; as `execute_sites` if the request says
        so. Raises EngineError if a pattern's likelihood is not positive and finite, with the pattern, the part and the
        lengths of the branches involved, or if the program writes to a slot that the engine does not have.
        """
        return self.ask(request, lengths)()

    def execute_sites(self, request: Request, lengths: FloatArray) -> FloatArray:
        """lnL (n_values, n_patterns) of a program of EVALUATEs, not weighted; -inf where the request allows it."""
        return self.execute(replace(request, of_sites=True), lengths)

    def derivatives(self, edges: npt.ArrayLike, lengths: FloatArray) -> FloatArray:
        """lnL, d1, d2 in the length of each edge. `edges` is int (n, 3): a, b, branch. Returns (n, n_parts, 3)."""
        rows = np.reshape(edges, (-1, 3))
        return self._each(prog.derivative, rows, DERIVATIVE_VALUES, lengths, "derivatives")

    def triplets(self, joins: npt.ArrayLike, lengths: FloatArray) -> FloatArray:
        """lnL, gradient and Hessian (n, n_parts, 10) in the lengths around joins (n, 6): a, pa, b, pb, c, pc."""
        return self._each(prog.triplet, np.reshape(joins, (-1, 6)), TRIPLET_VALUES, lengths, "triplets")

    def _each(
        self, build: Callable[..., IntArray], rows: IntArray, n_values: int, lengths: FloatArray, kind: str
    ) -> FloatArray:
        """(n, n_parts, n_values) what instructions of these words make, one after another."""
        n = len(rows)
        program = build(n_values * np.arange(n), *rows.T)
        request = Request(program, n_values * n, kind, pieces=np.arange(n, dtype=np.int32))
        return self.execute(request, lengths).reshape(self.n_parts, n, n_values).transpose(1, 0, 2)


class Clas(Requests):
    """CLAs that later requests read; see `Holder.prepare`. A step may read what earlier ones make."""

    def __init__(self, holder: Holder, steps: tuple[Step, ...]):
        self._holder, self._steps = holder, steps
        self.n_parts, self.lengths = holder.n_parts, steps[0].lengths
        holder.make_clas(steps)

    def extend(self, program: IntArray, lengths: FloatArray) -> Clas:
        """These CLAs and the ones that `program` makes from them in other slots, at separate lengths."""
        return Clas(self._holder, (*self._steps, Step(program, np.array(lengths, dtype=np.float64))))

    def ask(self, request: Request, lengths: FloatArray) -> Answer:
        return self._holder.ask(replace(request, after=self._steps), lengths)


class Holder(Requests):
    """An engine, or several that answer as one: it holds memory on a device, freed at the end of a ``with`` block.

    It may have a *screen*: a holder of the same patterns, of which each has one component, for rough answers.
    """

    part_patterns: tuple[int, ...]  # patterns of each part
    weights: FloatArray  # float64 (n_patterns,), in use; see `set_weights`
    layout: Layout
    n_slots: int  # CLA slots that there are for every pattern
    n_groups: int  # number of work-groups, each of which makes sums
    has_double: bool  # whether sums over patterns are double, or two floats on some device
    resident: bool  # whether CLAs outlive the launch that makes them
    launch_share: float  # the share of the patterns that are taken through a program at a time; 1 if all are
    cla_bytes: int  # of all CLAs and scaling counts
    device_name: str  # the hardware that does the arithmetic
    driver: str  # the software between the engine and the hardware, with its version
    counters: Counters  # the work done so far
    screen: Holder | None = None  # once it is open
    can_walk = False  # whether it has `walk`
    # from the component (n_patterns,) of each pattern; None where there is no screen
    make_screen: Callable[[IndexArray], Holder] | None = None

    @property
    def n_patterns(self) -> int:
        """Patterns of all parts."""
        return sum(self.part_patterns)

    @abstractmethod
    def describe(self) -> dict[str, object]:
        """What a result file records of the layout."""

    @abstractmethod
    def set_model(self, parts: Parts) -> None:
        """Use one model per part from now on; CLAs are stale. EngineError for other parts, states or components."""

    @abstractmethod
    def set_weights(self, weights: FloatArray) -> None:
        """Use other pattern weights from now on, float64 (n_patterns,) or EngineError; CLAs stay valid."""

    @property
    def own_counters(self) -> Counters:
        """The counters to which the work of other engines is added."""
        return self.counters

    def prepare(self, operations: IntArray, lengths: FloatArray) -> Clas:
        """CLAs for later requests, at lengths (n_branches,) or (n_parts, n_branches).

        They are made now if they outlive the launch, else again in front of each request. They are valid until the
        engine gets another model or runs a program that uses the same slots.
        """
        return Clas(self, (Step(operations, np.array(lengths, dtype=np.float64)),))

    @abstractmethod
    def make_clas(self, steps: Sequence[Step]) -> None:
        """Make the CLAs of steps that are not there yet, if they outlive the launch."""

    @abstractmethod
    def pack_models(self, models: Sequence[Parts]) -> list[Any]:
        """One model per part for each track; of the same kinds as those in use, which is not checked again."""

    @abstractmethod
    def ask_tracks(self, tracks: Sequence[Track]) -> Answer:
        """The values of several programs, float64 (n_values of all, n_parts), track by track, all in one launch.

        CLAs stay in the slots that the programs name, unless the engine streams patterns; a program must then make all
        that it reads. The engine's own model stays in use. Errors are those of `execute`.
        """

    def walk(self, walkers: Walkers, models: Sequence[Any], n_slots: int, n_steps: int) -> None:
        """Let each walker make some moves under its model, of `pack_models`; their CLAs are in `n_slots` slots each.

        A likelihood that is not finite ends no walk: a move that leads to it is rejected.
        """
        raise EngineError("this engine has no walks")

    def ask_shaped(self, make: Callable[[Layout], Request], lengths: FloatArray) -> ShapedAnswer:
        """The first half of `execute_shaped`."""
        answer = self.ask(make(self.layout), lengths)
        return lambda: list(answer())

    @abstractmethod
    def ask_likelihoods(self, program: IntArray, lengths: FloatArray, models: Sequence[Parts]) -> Answer:
        """The value of a program that makes one, under each model: (n_models, n_parts).

        lengths (n_models, n_parts, n_branches); there are slots for all models. CLAs are lost, the own model stays.
        """

    def execute_shaped(self, make: Callable[[Layout], Request], lengths: FloatArray) -> list[FloatArray]:
        """The values (n_values,) of each part by the program that `make` builds for the layout of its kind."""
        return self.ask_shaped(make, lengths)()

    def likelihoods(
        self, operations: IntArray, edge: tuple[int, int, int], lengths: FloatArray, models: Sequence[Parts]
    ) -> FloatArray:
        """lnL (n_models, n_parts) under each of several models, as many in one launch as the slots have room for.

        `operations` are newviews that lead to `edge` (a, b, branch), in slots from 0; all CLAs are stale afterwards.
        Lengths are (n_branches,), (n_parts, n_branches) or (n_models, n_parts, n_branches). The engine's own model
        stays in use. Raises EngineError as `execute`, and if a model does not fit the layout.
        """
        program = np.concatenate([operations, prog.evaluate(0, *edge)])
        lengths = np.asarray(lengths, dtype=np.float64)
        lengths = np.broadcast_to(lengths, (len(models), self.n_parts, lengths.shape[-1]))
        at_once = max(1, self.n_slots // max(1, slots_written(program)))
        values = np.empty((len(models), self.n_parts))
        for some in slices(len(models), at_once):
            values[some] = self.ask_likelihoods(program, lengths[some], models[some])()
        return values

    @abstractmethod
    def _release_clas(self) -> None: ...

    @abstractmethod
    def _close(self) -> None: ...

    def open_screen(self, category_of: IndexArray) -> Holder:
        """The screen. It is made with the first call, whose `category_of` it has until it gets another model."""
        if self.make_screen is None:
            raise EngineError("this engine has no screen")
        if self.screen is None:
            self.screen = self.make_screen(category_of)
        return self.screen

    def release_clas(self) -> None:
        """Give back the memory of CLAs until the next request; the CLAs made so far are lost."""
        self._release_clas()
        if self.screen is not None:
            self.screen.release_clas()

    def close(self) -> None:
        """Free everything that is held on the device."""
        self._close()
        if self.screen is not None:
            self.screen.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, DeviceMemoryError):
            error.cla_bytes = self.cla_bytes + (self.screen.cla_bytes if self.screen is not None else 0)
        self.close()


def work_of(engine: Holder) -> Counters:
    """The work of an engine and its screen."""
    return Counters.sum_of(one.counters for one in (engine, engine.screen) if one is not None)
