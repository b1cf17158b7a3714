"""`search` finds a maximum-likelihood tree.

    import plltool
    result = plltool.search("primates.phy", model="GTR+F+G4")
    print(result.lnl, result.newick)

Progress goes to the logger "plltool"; nothing is printed or written to files.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from os import PathLike
from time import perf_counter
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from plltool.alignment.partition import Dataset
from plltool.alignment.patterns import Patterns, compress
from plltool.analyses.auto_model import choose_if_asked
from plltool.analyses.likelihood import Likelihood
from plltool.analyses.site_rates import end_search, has_site_rates
from plltool.arrays import FloatArray
from plltool.constants import DEFAULT_LINKAGE, DEFAULT_SEED, ENDLESS, SMALL_SEARCH, START_KINDS, UNLINKED
from plltool.engine.kinds import AnyEngine
from plltool.errors import InputError, check_least
from plltool.hardware import Hardware, HardwareSettings
from plltool.io.checkpoint import Checkpoint
from plltool.model.model import Model
from plltool.optimise.likelihood import TreeLikelihood
from plltool.processes.ranks import current
from plltool.run.climbers import climb_at_once, share_hardware
from plltool.run.data_tests import remarks_on_data
from plltool.run.engines import open_engine, settle_share
from plltool.run.identity import RECORDED_APART, describe_place, identify_search, open_checkpoint
from plltool.run.inputs import (
    AlignmentLike,
    ModelLike,
    TreeLike,
    as_constraint,
    as_tree,
    check_obedience,
    leave_out_duplicates,
    link_lengths,
    resolve_inputs,
)
from plltool.run.keywords import takes_keywords
from plltool.run.memory import search_slots, until_memory_suffices
from plltool.run.messages import announce_data, announce_engine, remarks_on_optima, warn
from plltool.run.results import SearchResult, describe_run, describe_tree
from plltool.run.rooting import OutgroupLike, as_outgroup
from plltool.run.seeds import DIFFICULTY, PERTURBATIONS, STARTS, generator
from plltool.tree.constraint import Constraint
from plltool.tree.duplicates import restore_duplicates, restrict_tree
from plltool.tree.random_tree import random_tree
from plltool.tree.topology import Tree
from plltool.tree_search.difficulty import assess_difficulty
from plltool.tree_search.effort import SearchOptions, SearchPlan
from plltool.tree_search.multistart import Climbing, Pool, SearchOutcome, Watch
from plltool.tree_search.parsimony import parsimony_tree
from plltool.tree_search.progress import Forecast, Listener, Trace, announce, ignore
from plltool.tree_search.scan import MAX_RADIUS
from plltool.tree_search.stages import planned_stages
from plltool.tree_search.state import ClimbStarts
from plltool.tree_search.stopping import Deadline

_log = logging.getLogger("plltool")


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
    device, precision, vw, threads, memory : see `plltool.hardware.Hardware`
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

    Raises
    ------
    InputError
        If alignment, model, start tree, constraint or outgroup cannot be used, the start tree breaks the constraint,
        the checkpoint is that of another run, or `time` is over before the first round of moves.
    DeviceError
        If the device cannot be used, or fails during the search. If its memory is too small for a request, the search
        continues with less for conditional likelihoods, from the checkpoint if there is one.
    """
    began = perf_counter()
    asked = Hardware.of(**hardware)
    if time is not None and not 0 < time < math.inf:
        raise InputError(f"time: found {time}, expected a positive number of seconds")
    if time is not None and current() is not None:
        raise InputError(f"time: found {time:g}, expected none: the clocks of ranks would let them decide differently")
    deadline = None if time is None else Deadline(time, began)
    trace = Trace(listener)
    model, choice = choose_if_asked(alignment, model, partitions, start, brlen, seed, hardware)
    data, models = resolve_inputs(alignment, model, brlen, rooted=True)
    outgroup = as_outgroup(outgroup, data.names)
    options = options or SearchOptions()
    if starts is not None:
        options = replace(options, starts=starts)
    if effort is not None:
        options = replace(options, effort=effort)
    parsed = None if constraint is None else as_constraint(constraint, data.names)
    problem = _reduce(data, start, options.starts, seed, brlen == UNLINKED and len(models) > 1, parsed)
    announce_data(data, problem.parts, models if model is None else ())
    asked = settle_share(problem.parts, models, asked, checkpoint)
    _announce_constraint(parsed)

    settings: dict[str, Any] = {"timed": deadline is not None}

    def attempt(hardware: Hardware) -> tuple[SearchOutcome, FloatArray, dict[str, Any], list[str], str]:
        announce("opening the device")
        slots = search_slots(len(problem.names))
        engine, reason = open_engine(problem.parts, models, slots, hardware, profile, screening=True)
        with engine:
            fallback = announce_engine(engine, reason, hardware)
            plan = _plan(problem, options)
            settings.update(identify_search(data, models, plan, problem.start, seed, brlen))
            identity = settings | {"share": hardware.share} | describe_place(engine.device_name, engine.describe())
            with open_checkpoint(checkpoint, identity, data, problem.groups, outgroup) as store:
                n_workers = 1 if profile else workers
                found = _find(problem, models, plan, engine, hardware, n_workers, store, Watch(trace.hear, deadline))
            part_lnls = TreeLikelihood(found.tree, found.models, engine).part_lnl()
        unsaved = store.problem if store is not None else ""
        return found, part_lnls, describe_run(data, engine, reason), fallback, unsaved

    found, part_lnls, known, fallback, unsaved = until_memory_suffices(attempt, asked)
    tree, lnl, found_models, psr = found.tree, found.lnl, found.models, None
    changed = tree.n_taxa < data.n_taxa
    if changed:
        tree = restore_duplicates(tree, data.names, problem.groups)
    if has_site_rates(found_models):
        psr, tree, found_models = end_search(data, tree, found, problem.parts, brlen, asked)
    ask_whole = partial(_ask_whole, data=data, models=found_models, brlen=brlen, hardware=asked)
    if changed or psr is not None:
        part_lnls = ask_whole(Likelihood.part_lnl, tree)
        lnl = float(part_lnls.sum())
    described, remarks = describe_tree(data, problem.parts, found_models, tree, part_lnls, outgroup)
    remarks += [*problem.remarks, *remarks_on_data(data, models, brlen)]
    if constraint is not None and parsed is None:
        hint = "a clade needs taxa outside of it, as in ((A,B),C,D);"
        remarks.append(f"the constraint has no internal branch, so that every tree obeys it; {hint}")
    remarks += remarks_on_optima(found.lnl, found.tree, found.other)
    if found.interrupted:
        remarks.append("the search was interrupted: the tree is the best so far")
    if time is not None:
        remarks.append(
            f"the search was given {time:g} s: the speed of the machine decides, so the tree may differ next time"
        )
    if unsaved:
        remarks.append(f"the last steps of the search could not be saved: {unsaved}")
    return SearchResult(
        lnl=lnl,
        **described,
        seed=seed,
        start_lnls=found.lnls,
        start_distances=found.distances[found.best],
        climb_distances=found.distances,
        brlen=brlen,
        **known,
        seconds=perf_counter() - began,
        warnings=warn(data, fallback, remarks),
        interrupted=found.interrupted,
        site_lnl=ask_whole(Likelihood.site_lnl, tree) if site_lnl else None,
        trace=trace.in_order(),
        constraint=constraint,
        options=options,
        choice=choice,
        psr=psr,
        other=found.other,
        settings={name: value for name, value in settings.items() if name not in RECORDED_APART},
    )


@dataclass(frozen=True, eq=False)
class _Problem:
    """What is searched: the patterns of each part without duplicates, and where to start.

    ``groups[i]`` holds the taxa of the whole alignment that taxon i stands for; `start` is a kind of start tree or the
    one start tree; `unlinked` says that each part has branch lengths of its own; `constraint` is that of these taxa;
    `remarks` are warnings of the start tree as it was read.
    """

    names: tuple[str, ...]
    parts: list[Patterns]
    groups: list[list[int]]
    start: str | Tree
    seed: int
    unlinked: bool
    constraint: Constraint | None
    remarks: tuple[str, ...]

    @cached_property
    def masks(self) -> npt.NDArray[np.unsignedinteger]:
        """The sets of states of all parts, side by side (n_taxa, n_patterns)."""
        return np.concatenate([part.masks for part in self.parts], axis=1)

    @cached_property
    def weights(self) -> FloatArray:
        return np.concatenate([part.weights for part in self.parts])


def _reduce(
    data: Dataset, start: TreeLike, starts: int | None, seed: int, unlinked: bool, constraint: Constraint | None
) -> _Problem:
    """Check what was asked for, and leave out the duplicates, except those that a constraint separates."""
    check_least("seed", seed, 0)
    reduced, groups, restricted = leave_out_duplicates(data, constraint)
    first: str | Tree
    remarks: tuple[str, ...] = ()
    if isinstance(start, str) and start in START_KINDS:
        first = start
    elif starts is not None and starts > 1:
        raise InputError(f"found {starts} starts from one given tree, expected 1: all would be the same")
    else:
        given = as_tree(start, data.names, unlinked)
        remarks = given.warnings
        given = link_lengths(given, len(data.parts) if unlinked else 1)
        if constraint is not None:
            check_obedience(given, constraint, "the start tree")
        first = restrict_tree(given, reduced.names)
    parts = [compress(alignment) for alignment in reduced.alignments]
    return _Problem(reduced.names, parts, groups, first, seed, unlinked, restricted, remarks)


def _announce_constraint(constraint: Constraint | None) -> None:
    """Log the size of the constraint, if there is one."""
    if constraint is not None:
        n_members, n_taxa = constraint.n_members, len(constraint.names)
        _log.info("constraint: %d splits of %d of the %d taxa", constraint.n_splits, n_members, n_taxa)


def _start_tree(problem: _Problem, number: int) -> Tree:
    """Start tree `number`, from 0."""
    rng = generator(problem.seed, STARTS, number)
    if isinstance(problem.start, Tree):
        tree = problem.start.copy()
    elif problem.start == "random":
        bound = problem.constraint
        tree = random_tree(problem.names, rng) if bound is None else bound.random_tree(rng)
    else:
        announce(f"parsimony start tree {number + 1}")
        tree = parsimony_tree(problem.masks, problem.weights, problem.names, rng, problem.constraint)
    return tree.unlink(len(problem.parts)) if problem.unlinked and tree.lengths.ndim == 1 else tree


def _plan(problem: _Problem, options: SearchOptions) -> SearchPlan:
    """How hard to search; if that depends on the difficulty of the data, it is assessed here."""
    score, gaps, reason = 0.0, 0.0, ""
    if options.depends_on_difficulty:
        announce("parsimony trees that tell how difficult the data are")
        rng = generator(problem.seed, DIFFICULTY)
        difficulty = assess_difficulty(problem.parts, problem.names, rng, problem.constraint, problem.unlinked)
        score, gaps, reason = difficulty.score, difficulty.gaps, f"; difficulty {difficulty}"
    n_taxa, n_patterns = problem.masks.shape
    plan = options.plan(score, n_taxa, n_patterns, len(problem.parts), problem.unlinked, gaps)
    plan = replace(plan, constraint=problem.constraint)
    if problem.constraint is not None and problem.constraint.n_members < n_taxa and options.radii is None:
        plan = replace(plan, radii=(*plan.radii, MAX_RADIUS))
    if isinstance(problem.start, Tree) and options.starts is None:
        plan = replace(plan, starts=1)
    numbers = f"start trees: {plan.starts}, perturbations: at most {plan.perturbations}, stop rule: {plan.stop}"
    _log.info("effort %s: %s%s", options.effort, numbers, reason)
    _log.info("seed: %d", problem.seed)
    return plan


def _find(
    problem: _Problem,
    models: Sequence[Model],
    plan: SearchPlan,
    engine: AnyEngine,
    hardware: Hardware,
    workers: int | None,
    store: Checkpoint | None,
    watch: Watch,
) -> SearchOutcome:
    """The search itself, by one process or several; only by one if there is a deadline."""
    deadline = watch.deadline
    make_tree, make_rng = partial(_start_tree, problem), partial(generator, problem.seed, PERTURBATIONS)
    starts = ClimbStarts(make_tree, make_rng, models, store, deadline, isinstance(problem.start, Tree))
    if deadline is not None:
        _log.info("time: %g s; how many start trees and perturbations fit depends on the machine", deadline.limit)
        workers, plan = 1, replace(plan, perturbations=ENDLESS)
    elif workers is None and plan.starts * problem.masks.size < SMALL_SEARCH:
        workers = 1
    shares = share_hardware(workers, plan.starts, problem.parts, models, hardware)
    forecast = deadline or Forecast(planned_stages(plan))
    climbing = Climbing(starts, engine, plan, forecast, watch)
    pool = Pool(climbing, watch)
    if len(shares) == 1:
        return pool.search()
    engine.release_clas()  # the children may take all of the memory
    elsewhere = (shares, starts, problem.parts, plan, forecast, watch, engine.add_closed)
    return pool.search(climb_at_once(*elsewhere))


def _ask_whole(
    ask: Callable[[Likelihood], FloatArray],
    tree: Tree,
    data: Dataset,
    models: Sequence[Model],
    brlen: str,
    hardware: Hardware,
) -> FloatArray:
    """The answer of the likelihood of a tree of all taxa, duplicates included."""

    def attempt(hardware: Hardware) -> FloatArray:
        with Likelihood(data, tree, models, brlen=brlen, lnl_only=True, **asdict(hardware)) as whole:
            return ask(whole)

    return until_memory_suffices(attempt, hardware)
