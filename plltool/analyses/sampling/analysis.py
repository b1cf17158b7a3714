"""`sample` draws trees and parameters from their posterior distribution.

For example:

    import plltool
    found = plltool.sample("primates.phy", model="GTR+FO+G4", options=plltool.SampleOptions(generations=100_000))
    print(found.posterior.consensus, found.posterior.numbers["TL"])
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from os import PathLike
from typing import Any, NamedTuple, Unpack

import numpy as np

from plltool import constants
from plltool.alignment.patterns import Patterns
from plltool.analyses.sampling.chains import RunState, temperature_of
from plltool.analyses.sampling.clock_choice import ClockChoice, choose_clock
from plltool.analyses.sampling.parameters import find_parameters
from plltool.analyses.sampling.result import SampleResult, sample_texts, swap_rates
from plltool.analyses.sampling.runs import ChainRuns, DeviceUse, RunSetup, open_runs
from plltool.analyses.sampling.samples import FEWEST_SAMPLES, Samples
from plltool.analyses.sampling.settings import ClockPriors, Priors, SampleOptions
from plltool.analyses.sampling.state import Sample, StateSpace, sampling_slots
from plltool.analyses.sampling.summaries import summarise, summarise_times
from plltool.analyses.sampling.time_state import TimeSpace
from plltool.analyses.sampling.topology_moves import FitchSets
from plltool.analyses.sampling.tree import Topology, from_tree
from plltool.codec import saved
from plltool.engine.requests import Counters
from plltool.engine.storage import Slots
from plltool.errors import InputError, check_one_of
from plltool.hardware import Hardware, HardwareSettings
from plltool.io.checkpoint import Checkpoint, recorded_item
from plltool.io.files import FileName
from plltool.io.table_reader import DatesLike
from plltool.progress import Listener, Progress, StopSearch, announce, ignore, log
from plltool.run.inputs import AlignmentLike, ModelLike, TreeLike, as_tree, link_lengths, resolve_inputs
from plltool.run.memory import share_hardware
from plltool.run.messages import remarks_on_data
from plltool.run.rooting import OutgroupLike
from plltool.run.run import Run
from plltool.run.task import describe_start
from plltool.settings import takes_keywords
from plltool.tree.topology import Tree

AUTO_GENERATIONS = 100_000_000  # after which a run that has not converged ends
FIRST_CHECK, CHECK_GROWTH = 100, 1.1  # samples before the first look at convergence, and their growth until the next
REPORT_SECONDS = 1.0  # between two progress reports, apart from those on convergence
SAVE_SECONDS = 1.0  # between two times that samples and state are saved, at least
STATE_NAME = "chains"
TUNING = "tuning"  # an item of the identity of a run


@saved()
@dataclass(frozen=True, eq=False)
class Snapshot:
    """What a checkpoint keeps between two generations."""

    next_check: int  # number of samples at which they are judged next
    enough: bool  # whether they were enough at the last time
    runs: Sequence[RunState]
    samples: Samples


@dataclass(eq=False)
class SampleCourse:
    """Lets runs advance, from where a checkpoint has them if there is one; arguments are as for `sample`."""

    setup: RunSetup
    runs: ChainRuns
    listener: Listener
    taken: Callable[[dict[str, str]], None] | None
    store: Checkpoint | None
    interrupted: bool = False  # whether the listener has ended it
    converged: bool | None = None  # whether there were enough samples at the last look; None for one run
    _enough: bool = False  # likewise, and the runs end then
    _looked: bool = False  # whether the last sample was looked at
    _next_save: float = 0.0  # the first sample is saved at once, so that other data are refused from then on

    def __post_init__(self) -> None:
        options = self.setup.options
        self._missing: list[str] = []  # what was not enough at the last look
        self.samples = Samples(self.setup.space, options.runs)
        self._is_auto = isinstance(options.generations, str)
        self._last = AUTO_GENERATIONS if isinstance(options.generations, str) else options.generations
        self._next_check = max(FIRST_CHECK, self.setup.tuning // options.sample_every + FEWEST_SAMPLES + 1)
        if self.store is not None and (snapshot := self.store.load(STATE_NAME, Snapshot)) is not None:
            self.samples, self._next_check = snapshot.samples, snapshot.next_check
            self._enough = self._is_auto and snapshot.enough
            self.runs.restore(snapshot.runs)
            log.info("resuming from generation %d", self.generation)
            if self.generation > self._last:
                wanted = f"expected at least {self.generation}, which {self.store.folder} keeps already"
                raise InputError(f"generations: found {self._last}, {wanted}; --redo starts over")

    @property
    def generation(self) -> int:
        """The generation of the last sample."""
        return self.samples.generations[-1]

    @property
    def first(self) -> int:
        """The number of the first sample behind the burn-in."""
        return self.samples.first_after(self.setup.tuning, self.setup.options.burnin)

    def go(self, began: float) -> None:
        """Sample to the end, or until the listener ends it."""
        announce(constants.SAMPLE_STAGE)
        if self.setup.tuning and not len(self.samples):
            log.info("step sizes are tuned until generation %d; samples before it are discarded", self.setup.tuning)
        self._began, self._resumed = began, time.perf_counter()
        self._reported, self._n_before = self._resumed, len(self.samples)
        try:
            while not self._enough and (generations := self._generations_left()):
                if self._is_auto:
                    generations = generations[: max(1, self._next_check - len(self.samples))]
                self.runs.advance(generations, self._pace, self._take)
        except StopSearch:
            self.interrupted = True
            self._save()
        if not self._looked:
            self._look()

    def _generations_left(self) -> range:
        """Those that are still to be sampled; the chains go no further than the last one."""
        every = self.setup.options.sample_every
        return range(self.generation + every if len(self.samples) else 0, self._last + 1, every)

    @property
    def _pace(self) -> float:
        """The seconds that a sample takes; infinite before there is one."""
        n = len(self.samples) - self._n_before
        return (time.perf_counter() - self._resumed) / n if n else math.inf

    def _take(self, generations: range, taken: Sequence[Sequence[Sample]]) -> None:
        """Take the samples of all runs at some generations, and see what has to be done after them."""
        looks = False
        for generation, own in zip(generations, taken, strict=True):
            self.samples.add(generation, own)
            self._looked = len(self.samples) >= self._next_check
            if self._looked:
                self._enough = self._look() and self._is_auto
                looks = True
        now, n_left = time.perf_counter(), len(self._generations_left())
        if self._enough or not n_left or now >= self._next_save:
            self._save()
        if looks or not n_left or now - self._reported >= REPORT_SECONDS:
            n, left = (0, None) if self._is_auto else (self._last, self._pace * n_left)
            lnl, seconds = self.samples.latest(0).numbers[0], now - self._began
            self.listener(Progress(constants.SAMPLE_STAGE, self.generation, lnl, 0, 0, seconds, n, left, left))
            self._reported = now

    def _look(self) -> bool:
        """Whether the samples so far are enough."""
        self._next_check = max(self._next_check + 1, int(CHECK_GROWTH * len(self.samples)))
        found, self._missing, several = [], [], self.setup.options.runs > 1
        if several:
            deviation = self.samples.deviation(self.first)
            found.append(f"ASDSF {deviation:.4f}" if math.isfinite(deviation) else "too few samples for ASDSF")
            if deviation >= constants.ENOUGH_DEVIATION:
                self._missing.append(f"{found[-1]}, expected below {constants.ENOUGH_DEVIATION}")
        convergence = self.samples.convergence(self.first)
        if known := [(size, name) for name, (size, _) in convergence.items() if math.isfinite(size)]:
            least, name = min(known)
            found.append(f"smallest ESS {least:.0f} ({name})")
            if not least > constants.ENOUGH_SIZE:
                self._missing.append(f"{found[-1]}, expected above {constants.ENOUGH_SIZE}")
        else:
            found.append("too few samples for an ESS")
            self._missing.append(found[-1])
        log.info("generation %d: %s", self.generation, ", ".join(found))
        if several:
            self.converged = not self._missing
        return bool(self.converged)

    def _save(self) -> None:
        """Write the samples and save the state, which takes a small share of the time."""
        began = time.perf_counter()
        names = self.setup.space.names
        if self.taken is not None:
            self.taken(sample_texts(self.samples, names, self.setup.seed))
        if self.store is not None:
            kept = Snapshot(self._next_check, self._enough, self.runs.save(), self.samples.copy())
            self.store.save(STATE_NAME, kept)
        ended = time.perf_counter()
        self._next_save = ended + max(SAVE_SECONDS, constants.CHECKPOINT_PATIENCE * (ended - began))

    def rates(self) -> dict[str, Any]:
        """The shares of proposals and exchanges that were accepted, in the cold chains of all runs."""
        states = self.runs.save()
        tried = np.sum([own.tried[:, 0] for own in states], axis=0)
        accepted = np.sum([own.accepted[:, 0] for own in states], axis=0)
        moves = zip(self.setup.move_weights, accepted, tried, strict=True)
        return {
            "acceptance": {name: float(a / n) if n else None for name, a, n in moves},
            "swaps": swap_rates(states),
        } | {"temperatures": tuple(temperature_of(own.heats) for own in states)}

    def remarks(self) -> list[str]:
        """What a user should know of the samples."""
        told = []
        if self.interrupted:
            further = "" if self.store is None else "; the same command resumes from here"
            told.append(f"the run was interrupted: the results are from the samples taken so far{further}")
        if self._missing and not self.interrupted:
            told.append(f"not enough generations yet: {'; '.join(self._missing)}")
        options, tuning = self.setup.options, self.setup.tuning
        if tuning < options.tuning:
            told.append(
                f"step sizes were tuned for only {tuning} generations, because the run began with fewer; a new run"
                f" (--redo) tunes for {options.tuning} and may need fewer samples"
            )
        elif tuning == 0:
            told.append("step sizes were not tuned, because there is no burn-in: more samples may be needed")
        if self.store is not None and self.store.problem:
            told.append(f"the last steps could not be saved: {self.store.problem}")
        return told


@takes_keywords(HardwareSettings)
def sample(
    alignment: AlignmentLike,
    model: ModelLike | None = None,
    *,
    options: SampleOptions | None = None,
    priors: Priors | None = None,
    start: TreeLike | None = None,
    seed: int = constants.DEFAULT_SEED,
    workers: int | None = None,
    outgroup: OutgroupLike | None = None,
    brlen: str = constants.LINKED,
    clock: str | None = None,
    dates: DatesLike | None = None,
    calibrations: FileName | None = None,
    tree_prior: str = constants.TREE_PRIORS[0],
    clock_priors: ClockPriors | None = None,
    listener: Listener = ignore,
    taken: Callable[[dict[str, str]], None] | None = None,
    checkpoint: str | PathLike[str] | None = None,
    **hardware: Unpack[HardwareSettings],
) -> SampleResult:
    """Sample trees, branch lengths and model parameters from their posterior distribution.

    Metropolis-coupled Markov chains of several runs advance, see `plltool.analyses.sampling.chains`. Parameters of the
    model are sampled unless they have values in braces or are counted in the alignment (+F).

    Parameters
    ----------
    alignment, model : as for `plltool.search`; a time-reversible model
    options : numbers of generations, runs and chains, and when to sample
    priors : by default those of MrBayes 3.2
    start : "random" or "parsimony", another tree for each chain, or one tree for all, as for `plltool.search`; by
        default random trees, with a clock parsimony trees, whose changes show where the root is
    seed : of all random choices; the same seed, device and layout give the same samples
    workers : number of runs that advance at the same time, each in a process of its own; by default as many as threads,
        on a GPU 1. It changes no bit
    outgroup : taxa that the written trees show as one clade
    brlen : whether parts share the branch lengths ("linked"), each multiplies them by a rate of its own ("scaled"), or
        has its own ("unlinked")
    clock : "strict" or "relaxed" (uncorrelated, log-normal) for trees in time, which have a root and heights in years
    dates : of all taxa, with a clock, as for `plltool.date`; one that is a range or unknown is sampled
    calibrations : file of a table of ages of clades, with a clock
    tree_prior : of a tree in time: a coalescent with a "constant" or "exponential" population, or "skygrid", also as
        "skygrid(SIZES,YEARS)"; see `plltool.analyses.sampling.priors`
    clock_priors : of the numbers of clock and tree prior
    listener : is called about once a second; if it raises StopSearch, the samples so far are the result
    taken : is called now and then with the files of samples so far, by the ends of their names
    checkpoint : folder that keeps all samples. The same call, for as many generations or more, continues from there and
        ends with the same bits. None keeps nothing
    device, precision, vw, threads, memory : see `plltool.Hardware`

    Raises InputError if alignment, model, priors, options or start tree cannot be used, or the checkpoint is that of
    another run, and DeviceError if the device cannot be used.
    """
    began, asked = time.perf_counter(), Hardware.of(**hardware)
    options, priors = options or SampleOptions(), (priors or Priors()).canonical()
    options.check()
    chosen = choose_clock(clock, dates, calibrations, tree_prior, clock_priors, outgroup)
    how: dict[str, Any] = {"seed": seed, "outgroup": outgroup, "brlen": brlen, "checkpoint": checkpoint}
    given = prepare(alignment, model, priors, start, asked, began, options, chosen, **how)
    run, data, setup, space = given.run, given.run.data, given.setup, given.setup.space

    def attempt(hardware: Hardware) -> tuple[SampleCourse, dict[str, Any]]:
        slots = Slots(sampling_slots(len(space.names), options.chains))
        most = 1 if options.prior_only else options.runs  # without data a run costs less than a process
        with open_runs(setup, share_hardware(workers, most, setup.parts, list(space.models), hardware, slots)) as runs:
            use = runs.device
            if use.layout:
                run.engine_opened(use, use.reason, hardware)
            with run.open_checkpoint(given.identity | run.place(use.device_name, use.layout)) or nullcontext() as store:
                course = SampleCourse(setup, runs, listener, taken, store)
                course.go(began)
            return course, given.describe(use, runs.work) | course.rates()

    course, known = run.ask(attempt)
    times = None
    if isinstance(space, TimeSpace) and chosen is not None:
        posterior, times = summarise_times(course.samples, space, course.first, chosen)
    else:
        posterior = summarise(course.samples, data.names, course.first, run.outgroup)
    asked_for = dict(asdict(priors).items() - asdict(Priors().canonical()).items())
    idle = sorted(asked_for.keys() - given.priors.keys())
    remarks = [*remarks_on_data(data, run.task.models, brlen), *course.remarks(), *posterior.warnings]
    remarks += [f"prior of {name}: the model has no such parameter to sample" for name in idle]
    return SampleResult(
        posterior=posterior,
        samples=course.samples,
        first=course.first,
        generations=course.generation,
        **known,
        names=data.names,
        priors=priors,
        sampled=frozenset(given.priors),
        options=options,
        tuning=setup.tuning,
        converged=course.converged,
        time=times,
        seconds=run.seconds,
        warnings=run.warn(remarks),
        interrupted=course.interrupted,
    )


LONGEST_START = 10.0  # of a given tree, in `least_length`; a longer one beside a clock may be in years, and is scaled


def least_length(parts: Sequence[Patterns]) -> float:
    """The changes per site that any tree needs: one less than the states that a site shows, ambiguous ones left out."""
    changes = 0.0
    for part in parts:
        seen = np.bitwise_or.reduce(np.where(part.masks & (part.masks - 1), 0, part.masks), axis=0)
        changes += float(np.maximum(np.bitwise_count(seen) - 1.0, 0.0) @ part.weights)
    return changes / sum(float(part.weights.sum()) for part in parts)


def _lengths_for_clock(
    starts: Sequence[tuple[Topology, list[float]]], is_given: bool, parts: Sequence[Patterns]
) -> list[tuple[Topology, list[float]]]:
    """Start trees with lengths in substitutions per site, from which a clock can be estimated."""
    if not is_given:
        sets, n_sites = FitchSets(parts, variable=True), sum(float(part.weights.sum()) for part in parts)
        return [(topology, [n / n_sites for n in sets.changes(topology)]) for topology, _ in starts]
    whole = least_length(parts)
    return [
        (topology, [length * whole / total for length in own] if (total := sum(own)) > LONGEST_START * whole else own)
        for topology, own in starts
    ]


class Prepared(NamedTuple):
    """A run, what its chains are made of, the priors in use, and what a checkpoint recognises all this by."""

    run: Run
    setup: RunSetup
    priors: dict[str, str]
    identity: dict[str, Any]

    def describe(self, use: DeviceUse, work: Counters) -> dict[str, Any]:
        """The fields of a result that tell of the data, the models and the device."""
        task = self.run.task
        size = {"data": self.run.data, "n_patterns": use.n_patterns, "seed": task.seed}
        device = {"device": use.device_name, "driver": use.driver, "reason": use.reason, "layout": use.layout}
        models = tuple(str(model.spec) for model in task.models)
        return {**size, **device, "models": models, "brlen": self.run.brlen, "counters": work.as_dict()}


def prepare(
    alignment: AlignmentLike,
    model: ModelLike | None,
    priors: Priors,
    start: TreeLike | None,
    hardware: Hardware,
    began: float,
    options: SampleOptions,
    clock: ClockChoice | None = None,
    powers: Sequence[float] = (),
    brlen: str = constants.LINKED,
    **how: Any,
) -> Prepared:
    """What chains need; `how` is as for `Run`. A run that goes on was perhaps tuned for fewer generations."""
    check_one_of("brlen", brlen, constants.LINKAGES)
    if clock is not None and brlen == constants.UNLINKED:
        raise InputError(f"brlen: found {brlen} with a clock, expected {constants.LINKED} or {constants.SCALED}")
    data, models = resolve_inputs(alignment, model, brlen)
    run = Run(data, models, brlen, hardware, began, all_taxa=True, **how)
    distributions = priors.parsed()
    n_sites = [float(part.n_sites) for part in data.parts]
    parameters = tuple(find_parameters(models, distributions, n_sites))
    shares = tuple(own / sum(n_sites) for own in n_sites) if run.task.unlinked else (1.0,)
    space = StateSpace(data.names, tuple(models), parameters, distributions["lengths"], shares=shares)
    of_clock: dict[str, Any] = {}
    of_priors: dict[str, str] = {}
    if clock is not None:
        space = clock.make_space(data.names, models, parameters)
        of_priors = clock.used(space)
        of_clock = clock.identity(space)
    if start is None:
        start = "random" if clock is None else "parsimony"
    if isinstance(start, str) and start in constants.START_KINDS:
        first: str | Tree = start
    else:
        first = link_lengths(as_tree(start, data.names, run.task.unlinked), run.task.n_lengths)
    run.announce_data(models if model is None else ())
    used = priors.of_kinds({*(() if clock else ("lengths",)), *(own.kind for own in parameters)})
    told = used | of_priors
    for name, text in told.items():
        log.info("prior of %s: %s", name, text)
    numbers = range(options.runs * options.chains)
    trees = [first if isinstance(first, Tree) else run.task.start_tree(first, number) for number in numbers]
    recorded = recorded_item(run.checkpoint, TUNING)
    tuning = options.tuning if recorded is None else int(recorded)
    starts = list(map(from_tree, trees))
    if clock is not None:
        starts = _lengths_for_clock(starts, isinstance(first, Tree), run.task.parts)
    setup = RunSetup(space, run.task.parts, starts, options, tuning, run.task.seed, powers)
    names = "runs", "chains", "temperature", "sample_every", "prior_only"
    identity = {
        **run.identity,
        "start": describe_start(first),
        **of_clock,
        **{f"prior of {name}": text for name, text in told.items()},
        "random streams": "of each run",
        **{name: getattr(options, name) for name in names},
        TUNING: tuning,
        "moves": setup.move_weights,
    }
    return Prepared(run, setup, used, identity)
