"""`search` finds a maximum-likelihood tree.

Progress goes to the logger "plltool"; nothing is printed or written to files.
"""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Real
from os import PathLike
from time import perf_counter
from typing import Any, Unpack

import numpy as np

from plltool.alignment.patterns import Patterns
from plltool.analyses.selection.analysis import choose_if_asked
from plltool.arrays import FloatArray
from plltool.constants import DEFAULT_LINKAGE, DEFAULT_SEED, MAX_RADIUS, START_KINDS
from plltool.engine.requests import Counters, Holder, work_of
from plltool.errors import InputError, check_least, check_one_of
from plltool.hardware import Hardware, HardwareSettings
from plltool.io.checkpoint import Checkpoint
from plltool.io.newick_writer import write_newick
from plltool.optimise.likelihood import TreeLikelihood
from plltool.processes.ranks import current
from plltool.progress import Forecast, Listener, Progress, StopSearch, announce, ignore, log
from plltool.run.engines import open_engine
from plltool.run.evaluation import optimise_all
from plltool.run.inputs import AlignmentLike, ModelLike, TreeLike, resolve_inputs
from plltool.run.likelihood import Likelihood
from plltool.run.memory import open_workers, search_slots, share_hardware
from plltool.run.messages import remarks_on_data, remarks_on_optima
from plltool.run.results import SearchResult
from plltool.run.rooting import OutgroupLike, mean_tree
from plltool.run.run import Run
from plltool.run.site_rates import to_gamma
from plltool.run.task import RECORDED_APART, Task, describe_plan, describe_start
from plltool.seeds import DIFFICULTY, PERTURBATIONS, generator
from plltool.settings import takes_keywords
from plltool.tree.topology import Tree
from plltool.tree_search.difficulty import assess_difficulty
from plltool.tree_search.effort import SearchOptions, SearchPlan
from plltool.tree_search.multistart import Climbing, Pool, SearchOutcome, Watch
from plltool.tree_search.stages import planned_stages, stages_of_a_climb
from plltool.tree_search.state import ClimbStarts, ClimbState, Deadline

SMALL_SEARCH = 100_000  # taxa times patterns times start trees; a smaller one ends before other processes have begun
ENDLESS = 10**9  # perturbations of a search with a limited time


@takes_keywords(HardwareSettings)
def search(
    alignment: AlignmentLike,
    model: ModelLike | None = None,
    *,
    partitions: str | PathLike[str] | None = None,
    seed: int = DEFAULT_SEED,
    start: TreeLike = "parsimony",
    starts: int | None = None,
    effort: str | None = None,
    time: float | None = None,
    outgroup: OutgroupLike | None = None,
    constraint: TreeLike | None = None,
    brlen: str = DEFAULT_LINKAGE,
    workers: int | None = None,
    options: SearchOptions | None = None,
    profile: bool = False,
    listener: Listener = ignore,
    site_lnl: bool = False,
    checkpoint: str | PathLike[str] | None = None,
    **hardware: Unpack[HardwareSettings],
) -> SearchResult:
    """Find a maximum-likelihood tree.

    Identical sequences are searched once and put back beside their twins with branches of the least length; the
    result's lnL is that of the whole tree.

    Parameters
    ----------
    alignment : file, mapping of names to sequences, (name, sequence) pairs, (names, 2-D array of characters), pandas
        Series or DataFrame, alignment of Biopython or dendropy, or what `read_alignment` returns
    model : string such as "GTR+F+G4", or the models of a result; by default GTR+F+G4 for DNA and LG+G4 for proteins.
        Or a file that holds a model, or one for each part of the alignment: the record of a run, a partition file, or
        NEXUS with charsets. Values in braces are never optimised. "auto" chooses a model by BIC, see
        `plltool.select_model`, and "AIC" or "AICc" by that criterion; "TEST" leaves out free rates
    partitions : a file with the parts. Without a model theirs are those in the file; "auto" and the like choose one
        for each, and "auto+MERGE" also merges parts that may share one, see `plltool.select_scheme`
    seed : of start trees and perturbations, 0 or more; the same seed, device and layout give the same tree
    start : "parsimony" (randomised stepwise addition, then SPR rounds), "random", or a tree: file, Newick string, Tree,
        or tree of dendropy, Biopython or ete; if `brlen` is "unlinked" a file may hold one for each part
    starts, effort : the same as in `options`, which they override
    time : seconds that the search may take, without those in which kernels are compiled; it goes on with more start
        trees and perturbations as long as time is left, one after another. The result then depends on the speed of the
        machine. Supports are made later
    outgroup : taxa that the Newick text shows as one clade: a name, a list of names, or names separated by commas
    constraint : a tree over all or some of the taxa, as for `start`, with nodes of any degree, whose splits the tree
        must have among these taxa
    brlen : how the parts share branch lengths: all of them ("linked"), up to a factor for each part, of mean 1 over
        sites ("scaled"), or none ("unlinked")
    device, precision, vw, threads, memory : see `plltool.Hardware`
    workers : climbs from several start trees at the same time, each in a process of its own; by default as many as
        there are threads, on a GPU or for a small alignment 1. Changes no digit
    options : how hard to search
    site_lnl : also return the lnL of each site
    profile : measure how long the device was busy, for `SearchResult.profile`; changes no digit, but leaves it to one
        process
    listener : is called after every round of the search; if it raises StopSearch, the best tree so far is the result
    checkpoint : folder that keeps the state of the search. The same call continues from there and ends with the same
        bits, whatever stopped it before. After the search has ended, it returns the result at once, until
        `plltool.remove_checkpoint` is called. None keeps nothing

    Raises InputError if alignment, model, start tree, constraint or outgroup cannot be used, the start tree breaks the
    constraint, the checkpoint is that of another run, or `time` is over before the first round of moves, and
    DeviceError if the device cannot be used, or fails during the search; unless it was asked for by name, the search
    continues on the next one, from the checkpoint if there is one. If its memory is too small for a request, the search
    continues with less for conditional likelihoods, from the checkpoint if there is one.
    """
    began = perf_counter()
    asked = Hardware.of(**hardware)
    watch = Watch(listener, _set_deadline(time, began))
    model, choice = choose_if_asked(alignment, model, partitions, start, brlen, seed, hardware)
    data, models = resolve_inputs(alignment, model, brlen, rooted=True)
    run = Run(
        data, models, brlen, asked, began, seed=seed, constraint=constraint, outgroup=outgroup, checkpoint=checkpoint
    )
    options = options or SearchOptions()
    options = replace(options, starts=options.starts if starts is None else starts, effort=effort or options.effort)
    first, told = _read_start(run.task, start, options.starts)
    run.announce_data(models if model is None else ())
    if (tree := run.task.whole_constraint) is not None:
        log.info("constraint: %d splits of %d of the %d taxa", tree.n_splits, tree.n_members, len(tree.names))
    course = _Search(run, first, options, 1 if profile else workers, profile, watch)
    found, weights = run.ask(course.attempt), np.array([part.n_sites for part in data.parts])
    told = (*told, *remarks_on_data(data, models, brlen), *course.remarks(found, constraint is not None))
    return SearchResult(
        **course.describe(found, site_lnl, told),
        seed=seed,
        start_lnls=found.lnls,
        start_distances=found.distances[found.best],
        climbs=tuple(write_newick(mean_tree(run.task.whole(tree), weights)) for tree in found.trees),
        climb_distances=found.distances,
        interrupted=found.interrupted,
        trace=watch.trace,
        constraint=constraint,
        options=options,
        choice=choice,
        other=found.other,
        settings={name: value for name, value in course.settings.items() if name not in RECORDED_APART},
    )


def start_trees(
    alignment: AlignmentLike,
    kind: str = START_KINDS[0],
    number: int = 1,
    seed: int = DEFAULT_SEED,
    constraint: TreeLike | None = None,
) -> list[str]:
    """The trees from which searches with this seed start, as Newick without branch lengths.

    `kind` is "parsimony" or "random", `number` that of the trees; the rest as for `search`, also for errors.
    """
    check_one_of("kind", kind, START_KINDS)
    check_least("number", number, 1)
    task = Task.of(*resolve_inputs(alignment, None), seed, constraint=constraint)
    return [write_newick(task.whole(task.start_tree(kind, k)), lengths=False) for k in range(number)]


@dataclass(eq=False)
class _Search:
    """A search with all that it was asked for.

    The `start` is a kind of start tree, or the one start tree, without identical sequences. The `settings` are what the
    result depends on besides the place, once the plan is known. In the end there are lnL of the parts, and why the last
    steps could not be saved, if so.
    """

    run: Run
    start: str | Tree
    options: SearchOptions
    workers: int | None
    profile: bool
    watch: Watch
    settings: dict[str, Any] = field(default_factory=dict)
    part_lnls: FloatArray = field(init=False)
    unsaved: str = ""

    def attempt(self, hardware: Hardware) -> SearchOutcome:
        """Search with this hardware, from the checkpoint on if there is one."""
        run, task = self.run, self.run.task
        announce("opening the device")
        slots = search_slots(len(task.names))
        engine, reason = open_engine(task.parts, task.models, slots, hardware, self.profile, screening=True)
        with engine:
            run.engine_opened(engine, reason, hardware)
            plan = self.plan()
            self.settings = {"timed": self.watch.deadline is not None} | run.identity | describe_plan(plan)
            self.settings |= {"start": describe_start(self.start)}
            place = run.place(engine.device_name, engine.describe())
            store = run.open_checkpoint(self.settings | place, shows_best=True)
            if store is not None and store.resumed:
                log.info("resuming the search from %s", store.folder)
            with store or nullcontext():
                found = self.find(plan, engine, hardware, store)
            self.part_lnls = TreeLikelihood(found.tree, found.models, engine).part_lnl()
        run.engine_used(engine)
        self.unsaved = "" if store is None else store.problem
        return found

    def plan(self) -> SearchPlan:
        """How hard to search; if that depends on the difficulty of the data, it is assessed here."""
        task, options, score, gaps, reason = self.run.task, self.options, 0.0, 0.0, ""
        if options.depends_on_difficulty:
            announce("parsimony trees to estimate the difficulty")
            rng = generator(task.seed, DIFFICULTY)
            difficulty = assess_difficulty(task.parts, task.names, rng, task.constraint, task.unlinked)
            score, gaps, reason = difficulty.score, difficulty.gaps, f"; difficulty {difficulty}"
        n_taxa = len(task.names)
        if isinstance(self.start, Tree) and options.starts is None:
            options = replace(options, starts=1)
        plan = options.plan(score, n_taxa, task.n_patterns, len(task.parts), task.unlinked, gaps)
        plan = replace(plan, constraint=task.constraint)
        if task.constraint is not None and task.constraint.n_members < n_taxa and options.radii is None:
            plan = replace(plan, radii=(*plan.radii, MAX_RADIUS))
        numbers = f"start trees: {plan.starts}, perturbations: at most {plan.perturbations}, stop rule: {plan.stop}"
        log.info("effort %s: %s%s", options.effort, numbers, reason)
        log.info("seed: %d", task.seed)
        return plan

    def find(self, plan: SearchPlan, engine: Holder, hardware: Hardware, store: Checkpoint | None) -> SearchOutcome:
        """The search itself, by one process or several; only by one if there is a deadline."""
        task, deadline, workers = self.run.task, self.watch.deadline, self.workers
        make_tree, make_rng = partial(task.start_tree, self.start), partial(generator, task.seed, PERTURBATIONS)
        starts = ClimbStarts(make_tree, make_rng, task.models, store, deadline, isinstance(self.start, Tree))
        if deadline is not None:
            log.info("time: %g s; how many start trees and perturbations fit depends on the machine", deadline.limit)
            workers, plan = 1, replace(plan, perturbations=ENDLESS)
        elif workers is None and plan.starts * len(task.names) * task.n_patterns < SMALL_SEARCH:
            workers = 1
        shares = share_hardware(workers, plan.starts, task.parts, task.models, hardware)
        forecast = deadline or Forecast(planned_stages(plan))
        climbing = Climbing(starts, engine, plan, forecast, self.watch)
        if len(shares) == 1:
            return Pool(climbing, self.watch).search()
        engine.release_clas()  # the children may take all of the memory
        return Pool(climbing, self.watch).search(climb_at_once(climbing, task.parts, shares))

    def describe(self, found: SearchOutcome, site_lnl: bool, remarks: Sequence[str]) -> dict[str, Any]:
        """The fields of the result that tell of its tree, with all taxa, and of the run, whose remarks are logged."""
        run, task, lnl, psr = self.run, self.run.task, found.lnl, None
        tree, models, part_lnls, by_site = task.whole(found.tree), found.models, self.part_lnls, None
        if any(model.has_site_rates for model in models):
            models, psr = to_gamma(run.data, models, lnl, task.parts)
            tree, models, _ = run.ask_likelihood(optimise_all, tree, models)
        if psr is not None or tree.n_taxa > len(task.names):
            part_lnls = run.ask_likelihood(Likelihood.part_lnl, tree, models, lnl_only=True)
            lnl = float(part_lnls.sum())
        if site_lnl:
            by_site = run.ask_likelihood(Likelihood.site_lnl, tree, models, lnl_only=True)
        described = run.describe(tree, models, part_lnls, then=remarks)
        return {"lnl": lnl, "psr": psr, "site_lnl": by_site} | described

    def remarks(self, found: SearchOutcome, is_constrained: bool) -> list[str]:
        """Warnings of how the search ended, and of a constraint that asks for nothing."""
        deadline, remarks = self.watch.deadline, []
        if is_constrained and self.run.task.whole_constraint is None:
            hint = "a clade needs taxa outside of it, as in ((A,B),C,D);"
            remarks.append(f"the constraint has no internal branch, so that every tree obeys it; {hint}")
        remarks += remarks_on_optima(found.lnl, found.tree, found.other)
        if found.interrupted:
            remarks.append("the search was interrupted: the tree is the best so far")
        if deadline is not None:
            given = f"the search was given {deadline.limit:g} s"
            remarks.append(f"{given}: the speed of the machine decides, so the tree may differ next time")
        if self.unsaved:
            remarks.append(f"the last steps of the search could not be saved: {self.unsaved}")
        return remarks


def _set_deadline(limit: float | None, began: float) -> Deadline | None:
    """The deadline of a search with a limited time; InputError if the time cannot be used."""
    if limit is None:
        return None
    if not (isinstance(limit, Real) and 0 < limit < math.inf):
        raise InputError(f"time: found {limit!r}, expected a positive number of seconds")
    if current() is not None:
        raise InputError(f"time: found {limit:g}, expected none: the clocks of ranks would let them decide differently")
    return Deadline(limit, began)


def _read_start(task: Task, start: TreeLike, starts: int | None) -> tuple[str | Tree, tuple[str, ...]]:
    """The kind of start tree, or the one given, without identical sequences; and warnings of it."""
    if isinstance(start, str) and start in START_KINDS:
        return start, ()
    if starts is not None and starts > 1:
        raise InputError(f"found {starts} starts from one given tree, expected 1: all would be the same")
    given = task.read_tree(start, "the start tree")
    return task.reduce(given), given.warnings


class Climber:
    """The task of a worker: the climb from start tree `number`, see `climb_at_once`."""

    def __init__(self, starts: ClimbStarts, parts: Sequence[Patterns], hardware: Hardware, plan: SearchPlan):
        self._starts, self._plan = starts, plan
        self._engine, _ = open_engine(parts, starts.models, search_slots(parts[0].n_taxa), hardware, screening=True)

    def __call__(
        self, number: int, rivals: Sequence[Sequence[float]], report: Callable[[Progress], bool]
    ) -> tuple[ClimbState, tuple[str, int], Counters]:
        """The climb, the machine and process that made it, and the work of all climbs of this process so far."""

        def listen(event: Progress) -> None:
            if not report(event):
                raise StopSearch

        starts, forecast = self._starts, Forecast([*stages_of_a_climb(self._plan), ("polish", 0)])
        climbing = Climbing(starts, self._engine, self._plan, forecast, listen)
        climbed = climbing.climb(number, starts.begin(number), rivals)
        if starts.store:
            starts.store.flush()
        return climbed, (platform.node(), os.getpid()), work_of(self._engine)


def climb_at_once(climbing: Climbing, parts: Sequence[Patterns], shares: Sequence[Hardware]) -> Iterator[ClimbState]:
    """The climbs that one process would make one after the other, bit for bit on one device, from several processes.

    A climb is judged by those before it in the order of the start trees, whichever is faster. It is given up early if
    the climbs that have ended suffice for that. In the end the engine counts the work of all processes.
    """
    plan, forecast = climbing.plan, climbing.forecast
    rivals: list[Sequence[float]] = []
    done: dict[tuple[str, int], Counters] = {}
    interrupted = False

    def heard(number: int, event: Progress) -> None:
        nonlocal interrupted
        try:
            climbing.report(_place(event, number, plan, n_workers, forecast.seconds))
        except StopSearch:
            interrupted = True
            workers.stop()

    n_workers = len(shares)
    tasks = ((number, tuple(rivals)) for number in range(plan.starts))
    arguments = [(climbing.starts, parts, hardware, plan) for hardware in shares]
    with open_workers("start trees", Climber, arguments, shares) as workers:
        for climbed, process, work in workers.map(tasks, heard):
            done[process] = work
            if climbed.interrupted or interrupted:
                yield replace(climbed, interrupted=True)
                continue
            judged = climbed.judge(rivals)
            if not judged.cursor.given_up:
                rivals.append(judged.cursor.marks)
            yield judged
    forecast.made_elsewhere(plan.starts * len(stages_of_a_climb(plan)), n_workers)
    elsewhere = Counters()
    for work in done.values():
        elsewhere.add(work)
    climbing.engine.own_counters.add_closed(elsewhere, beside=True)


def _place(event: Progress, number: int, plan: SearchPlan, n_workers: int, seconds: float) -> Progress:
    """An event of one climb among the events of the whole search."""
    left = None
    if event.left is not None:
        climb = event.seconds + event.left
        waves = (plan.starts - 1 - number) // n_workers
        after = Forecast.cost_of(planned_stages(plan)[-2:]) / Forecast.cost_of(stages_of_a_climb(plan))
        left = event.left + climb * waves + climb * after * (plan.perturbations > 0)
    return replace(event, start=number + 1, seconds=seconds, left=left)
