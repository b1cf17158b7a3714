"""Runs of chains that advance: all of them in this process, or each in one of several others.

What a run does depends on nothing but the run, see `plltool.analyses.sampling.chains`. So a process that gets the state
of a run goes on with it bit for bit, whichever process had it before.
"""

import math
import os
import platform
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from plltool.alignment.patterns import Patterns
from plltool.analyses.sampling.chains import Chains, Heated, RunState
from plltool.analyses.sampling.joint_moves import Directions
from plltool.analyses.sampling.likelihoods import EngineLikelihoods, Likelihoods
from plltool.analyses.sampling.moves import TABLE, Move, make_group
from plltool.analyses.sampling.parameters import FACTORS, SHARES
from plltool.analyses.sampling.settings import SampleOptions
from plltool.analyses.sampling.state import Sample, StateSpace, sampling_slots
from plltool.analyses.sampling.time_mass import UsualTimes
from plltool.analyses.sampling.time_moves import TimeNumberMove
from plltool.analyses.sampling.time_state import TimeSpace
from plltool.analyses.sampling.topology_moves import FitchSets, SplitWeights
from plltool.analyses.sampling.tree import Topology
from plltool.engine.requests import Counters, Holder, work_of
from plltool.engine.storage import Slots
from plltool.hardware import Hardware
from plltool.processes.workers import Workers
from plltool.progress import announce
from plltool.run.engines import open_engine
from plltool.run.memory import open_workers
from plltool.seeds import SAMPLING, generator

TIME_VALUES_FACTOR = 4.0  # of the weights of parameters, which no joint move has beside a clock


def make_time_moves(space: TimeSpace, n_sites: float = 0.0) -> list[Move]:
    """The moves of time trees; trajectories are made for data of some sites."""
    made, n = make_group("time", space), len(space.numbers)
    for number in range(n):
        made.append(TimeNumberMove(space, TABLE["time_moves.TimeNumberMove"]["weight"] / n, number))
    if space.loose_tips:
        made += make_group("tips", space)
    if space.is_relaxed:
        made += make_group("rates", space)
    return [*made, *make_group("times", space, UsualTimes(n_sites))]


def make_moves(space: StateSpace, parts: Sequence[Patterns], prior_only: bool = False) -> list[Move]:
    """The moves of trees and of each parameter; `parts` are the data by which some are informed."""
    factor, of_values = TIME_VALUES_FACTOR if isinstance(space, TimeSpace) else 1.0, []
    for number, parameter in enumerate(space.parameters):
        group = "shares" if parameter.kind in SHARES else "factors" if parameter.kind in FACTORS else parameter.kind
        of_values += make_group(group, space, number, factor=factor)
    if isinstance(space, TimeSpace):
        n_sites = 0.0 if prior_only else float(sum(part.weights.sum() for part in parts))
        return [*make_time_moves(space, n_sites), *of_values]
    made = make_group("lengths", space)
    if len(space.names) > 3:
        made += [*make_group("splits", space, SplitWeights.of_taxa(len(space.names))), *make_group("topology", space)]
        made += make_group("parsimony", space, FitchSets(parts))
    made += of_values
    if space.parameters:
        directions = Directions.of_size(space.n_coordinates)
        made += make_group("joint", space, directions)
        shapes = [model.components() for model in space.models]
        if len({(own.n_states, own.n_components) for own in shapes}) == 1:  # a program makes as many slopes of each
            made += make_group("joint slopes", space, directions)
    return made


WORKER_SECONDS = 1.0  # between two words of a worker, if a sample does not take longer
MOST_WORDS = 60  # of a worker that is faster than others, before it waits for them


class DeviceUse(NamedTuple):
    """Where chains advance; of several processes, one of them."""

    device_name: str  # what does the arithmetic
    driver: str
    reason: str  # why it was chosen
    layout: dict[str, object]  # see `Layout.describe`; empty if the prior is sampled
    n_patterns: int  # number of patterns
    launch_share: float = 1.0  # the share of the patterns that are taken through a program at a time


@dataclass(frozen=True, eq=False)
class RunSetup:
    """What runs are made of."""

    space: StateSpace  # what is sampled
    parts: Sequence[Patterns]  # the data
    # the tree with which each chain begins, those of the first run first
    starts: Sequence[tuple[Topology, list[float]]]
    options: SampleOptions  # as `plltool.sample` has them
    tuning: int  # number of generations in which steps are tuned
    seed: int  # likewise
    powers: Sequence[float] = ()  # of the likelihood, of the chains of stepping stones

    @property
    def move_weights(self) -> dict[str, float]:
        """By the names of the moves, in the order of the counts of chains."""
        return {move.name: move.weight for move in self._moves()}

    def _moves(self) -> list[Move]:
        return make_moves(self.space, self.parts, self.options.prior_only)

    def open(self, n_runs: int, hardware: Hardware) -> tuple[DeviceUse, Likelihoods, Holder | None]:
        """An engine with room for the chains of some runs, unless the prior is sampled."""
        if self.options.prior_only:
            n_patterns = sum(part.n_patterns for part in self.parts)
            return DeviceUse("none: the prior is sampled", "", "", {}, n_patterns), Likelihoods(), None
        announce("opening the device")
        n_chains = n_runs * self.options.chains
        slots = Slots(sampling_slots(len(self.space.names), n_chains))
        engine, reason = open_engine(self.parts, self.space.models, slots, hardware)
        device = engine.device_name, engine.driver, reason, engine.describe()
        use = DeviceUse(*device, engine.n_patterns, engine.launch_share)
        return use, EngineLikelihoods(self.space, engine, n_chains), engine

    def begin(self, likelihoods: Likelihoods, runs: Sequence[int]) -> Chains:
        """The chains of some runs, where they begin."""
        n, options = self.options.chains, self.options
        return Chains(
            [self._moves() for _ in runs],
            likelihoods,
            [self.space.start(*start) for run in runs for start in self.starts[run * n : (run + 1) * n]],
            Heated(options.temperature, n, self.powers),
            generator(self.seed, SAMPLING),
            [generator(self.seed, SAMPLING, run + 1) for run in runs],
            self.tuning,
        )

    def advance(self, chains: Chains, generations: Sequence[int]) -> Iterator[list[Sample]]:
        """The samples of all runs of some chains at each of the generations, to which they advance."""
        for generation in generations:
            while chains.generation < generation:
                chains.advance()
            yield [self.space.sample(chains.cold(run)) for run in range(len(chains.runs))]


Taken: TypeAlias = Callable[[range, Sequence[Sequence[Sample]]], None]


class RunsHere:
    """Runs that advance in this process, on an engine if they have data; their chains are tracks of one launch."""

    def __init__(self, setup: RunSetup, device: DeviceUse, likelihoods: Likelihoods, engine: Holder | None):
        self.device = device
        self._setup, self._engine = setup, engine
        self._chains = setup.begin(likelihoods, range(setup.options.runs))

    def advance(self, generations: range, pace: float, taken: Taken) -> None:
        """Advance to some of the generations, the first ones, and at least to one.

        A sample takes about `pace` seconds, infinite if it is not known. `taken` is called with some generations after
        others, and the samples of all runs at each of them.
        """
        for number in range(len(generations)):
            own = generations[number : number + 1]
            taken(own, list(self._setup.advance(self._chains, own)))

    def save(self) -> Sequence[RunState]:
        """The state of each run after the generations that were taken."""
        return [self._chains.save(run) for run in range(self._setup.options.runs)]

    def restore(self, states: Sequence[RunState]) -> None:
        """Go on from states that were saved."""
        self._chains.restore(states)

    @property
    def work(self) -> Counters:
        """What all devices have done so far."""
        return Counters() if self._engine is None else work_of(self._engine)


class Advanced(NamedTuple):
    """What a worker says: the samples of a run, its state after them, and the process with all its work so far."""

    samples: list[Sample]
    state: RunState
    process: tuple[str, int]
    work: Counters


class RunAdvancer:
    """The task of a worker: to advance a run; without one, to say where it works."""

    def __init__(self, setup: RunSetup, hardware: Hardware):
        self._setup = setup
        self._device, self._likelihoods, self._engine = setup.open(1, hardware)
        self._held: tuple[int, Chains] | None = None  # the last run

    def __call__(
        self, run: int | None, state: RunState | None, pieces: Sequence[range], report: Callable[[Advanced], bool]
    ) -> DeviceUse:
        """Go on with a run from a state, None at the beginning; say what it has after each piece of generations."""
        assert self._engine is not None, "only likelihoods are worth a process"
        if run is not None:
            generation = 0 if state is None else state.generation
            if self._held is None or self._held[0] != run or self._held[1].generation != generation:
                self._held = run, self._setup.begin(self._likelihoods, [run])
                if state is not None:
                    self._held[1].restore([state])
            for piece in pieces:
                chains = self._held[1]
                samples = [own for (own,) in self._setup.advance(chains, piece)]
                process = platform.node(), os.getpid()
                if not report(Advanced(samples, chains.save(0), process, work_of(self._engine))):
                    break
        return self._device


class RunsInWorkers:
    """As `RunsHere`, but in several processes, each of which has one of the runs at a time.

    If each run has a process, it seldom waits for others.
    """

    seconds = WORKER_SECONDS

    def __init__(self, n_runs: int, workers: Workers, n_workers: int):
        self._workers, self._n_workers = workers, n_workers
        self._states: list[RunState | None] = [None] * n_runs
        self._work: dict[tuple[str, int], Counters] = {}
        self.device: DeviceUse
        (self.device,) = workers.map([(None, None, ())], lambda *_: None)

    def advance(self, generations: range, pace: float, taken: Taken) -> None:
        size = max(1, int(self.seconds / pace))
        is_short = math.isinf(pace) or self._n_workers < len(self._states)
        pieces = [generations[k : k + size] for k in range(0, len(generations), size)][: 1 if is_short else MOST_WORDS]
        stretches = [(run, state, pieces) for run, state in enumerate(self._states)]
        upcoming = iter(pieces)
        waiting: list[deque[Advanced]] = [deque() for _ in stretches]  # of each run, what others have not reached

        def hear(run: int, said: Advanced) -> None:
            waiting[run].append(said)
            while all(waiting):
                reached = [own.popleft() for own in waiting]
                self._states = [own.state for own in reached]
                self._work |= {own.process: own.work for own in reached}
                taken(next(upcoming), list(zip(*(own.samples for own in reached), strict=True)))

        for _ in self._workers.map(stretches, hear):
            pass

    def save(self) -> Sequence[RunState]:
        return [state for state in self._states if state is not None]

    def restore(self, states: Sequence[RunState]) -> None:
        self._states = list(states)

    @property
    def work(self) -> Counters:
        total = Counters()
        for own in self._work.values():
            total.add(own)
        return total


ChainRuns: TypeAlias = RunsHere | RunsInWorkers


@contextmanager
def open_runs(setup: RunSetup, shares: Sequence[Hardware]) -> Iterator[ChainRuns]:
    """All runs of a sampler, in as many processes as there are shares of the hardware."""
    if len(shares) > 1:
        with open_workers("runs", RunAdvancer, [(setup, own) for own in shares], shares) as workers:
            yield RunsInWorkers(setup.options.runs, workers, len(shares))
        return
    device, likelihoods, engine = setup.open(setup.options.runs, shares[0])
    with engine or nullcontext():
        yield RunsHere(setup, device, likelihoods, engine)
