"""What a script calls and the command line wraps: `search`, `evaluate` and `Likelihood`.

    from plltool.api import search
    result = search("primates.phy", model="GTR+F+G4")
    print(result.lnl, result.newick)

What goes on is logged to the logger "plltool"; nothing is printed or written to files.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from plltool.alignment.partition import Dataset, without_duplicates
from plltool.alignment.patterns import Patterns, compress
from plltool.climbers import climb_at_once, share_hardware
from plltool.constants import DEFAULT_BRANCH_LENGTH, DEFAULT_LINKAGE, DEFAULT_SEED, UNLINKED
from plltool.engine.shards import AnyEngine
from plltool.errors import InputError
from plltool.hardware import Hardware
from plltool.io.checkpoint import remove_checkpoint
from plltool.live import Likelihood
from plltool.model.model import SCALER, Model
from plltool.optimise.likelihood import TreeLikelihood
from plltool.results import (
    EvaluationResult,
    PartResult,
    SearchResult,
    check_outgroup,
    describe_parameters,
    format_scheme,
    mean_tree,
    write_rooted,
)
from plltool.resume import identify_search, open_checkpoint
from plltool.search.difficulty import assess_difficulty
from plltool.search.driver import planned_stages
from plltool.search.effort import Plan, SearchOptions
from plltool.search.parsimony import stepwise_addition
from plltool.search.progress import Forecast, Listener, Progress, StopSearch, Trace, announce, ignore
from plltool.search.starts import Found, climb_in_turn, search_starts
from plltool.search.state import Starts
from plltool.session import (
    DIFFICULTY,
    PERTURBATIONS,
    STARTS,
    AlignmentLike,
    ModelLike,
    TreeLike,
    as_constraint,
    as_tree,
    check_obedience,
    generator,
    link_lengths,
    open_engine,
    pose,
    search_slots,
)
from plltool.tree.constraint import Constraint
from plltool.tree.duplicates import restore_duplicates, restrict_tree
from plltool.tree.random_tree import random_tree
from plltool.tree.topology import FloatArray, Tree

__all__ = [
    "EvaluationResult",
    "Likelihood",
    "Progress",
    "SearchOptions",
    "SearchResult",
    "StopSearch",
    "evaluate",
    "remove_checkpoint",
    "search",
]

START_KINDS = ("parsimony", "random")

_log = logging.getLogger("plltool")


def search(
    alignment: AlignmentLike,
    model: ModelLike | None = None,
    *,
    seed: int = DEFAULT_SEED,
    start: TreeLike = "parsimony",
    starts: int | None = None,
    effort: str | None = None,
    outgroup: Sequence[str] | None = None,
    constraint: TreeLike | None = None,
    brlen: str = DEFAULT_LINKAGE,
    device: str = "auto",
    precision: str = "double",
    vw: int | None = None,
    threads: int | None = None,
    memory: int | None = None,
    workers: int | None = None,
    options: SearchOptions | None = None,
    profile: bool = False,
    listener: Listener = ignore,
    site_lnl: bool = False,
    checkpoint: str | PathLike[str] | None = None,
) -> SearchResult:
    """Find a maximum-likelihood tree.

    Identical sequences are searched once and put back beside their twins with branches of the least length; the
    result's lnL is that of the whole tree.

    Parameters
    ----------
    alignment : file, mapping of names to sequences, dendropy matrix, or Alignment
    model : string such as "GTR+F+G4", ModelSpec or Model; by default GTR+F+G4 for DNA and LG+G4 for proteins. A file
        that holds a model, or one for each part of the alignment, see `read_scheme`. Values in braces are never
        optimised
    seed : of start trees and perturbations, 0 or more; the same seed, device and layout give the same tree
    start : "parsimony" (randomised stepwise addition), "random", or a tree: file, Newick string, dendropy tree, Tree;
        where `brlen` is "unlinked" a file may hold one for each part
    starts, effort : the same as in `options`, which they override
    outgroup : names of taxa that the Newick text shows as one clade
    constraint : a tree over all or some of the taxa, as for `start`, with nodes of any degree, whose splits the tree
        must have, as far as its taxa go
    brlen : how the branch lengths of parts hang together: "linked" are the same, "scaled" the same up to a factor for
        each part, of mean 1 over sites, "unlinked" each part's own
    device, precision, vw, threads, memory : see `plltool.hardware.Hardware`
    workers : climbs from several start trees at the same time, each in a process of its own; by default as many as
        there are threads, on a GPU 1. Changes no digit
    options : how hard to search
    site_lnl : also return the lnL of each site
    profile : measure how long the device was busy, for `SearchResult.profile`; changes no digit, but leaves it to one
        process
    listener : hears of every round of the search; if it raises StopSearch, the best tree so far is the result
    checkpoint : folder in which the search keeps where it stands. The same call goes on from there and ends with the
        same bits, whatever stopped it before; once it has ended, it returns the result at once, until
        `remove_checkpoint` is called. None for none

    Raises
    ------
    InputError
        If alignment, model, start tree, constraint or outgroup cannot be used, the start tree breaks the constraint, or
        the checkpoint is that of another run.
    DeviceError
        If the device cannot be used.
    """
    began = time.perf_counter()
    trace = Trace(listener)
    data, models = pose(alignment, model, brlen)
    check_outgroup(outgroup, data.names)
    wishes = options or SearchOptions()
    if starts is not None:
        wishes = replace(wishes, starts=starts)
    if effort is not None:
        wishes = replace(wishes, effort=effort)
    binding = None if constraint is None else as_constraint(constraint, data.names)
    problem = _reduce(data, start, wishes.starts, seed, brlen == UNLINKED and len(models) > 1, binding)
    _announce(data, problem.parts)
    _announce_constraint(binding)
    hardware = Hardware(device, precision, vw, threads, memory)
    slots = search_slots(len(problem.names))
    announce("opening the device")
    engine, reason = open_engine(problem.parts, models, slots, hardware, profile)
    with engine:
        _announce_engine(engine, reason)
        plan = _plan(problem, wishes)
        n_workers, share = share_hardware(1 if profile else workers, plan.starts, problem.parts, models, hardware)
        identity = identify_search(data, models, engine, plan, problem.start, seed, brlen)
        forecast = Forecast(planned_stages(plan))
        with open_checkpoint(checkpoint, identity, data, problem.groups, outgroup) as store:
            starts_ = Starts(partial(_start_tree, problem), models, store)
            if n_workers > 1:
                elsewhere = (n_workers, starts_, problem.parts, share, plan, forecast, trace.hear, engine.counters)
                climbs = climb_at_once(*elsewhere)
            else:
                climbs = climb_in_turn(starts_, engine, plan, forecast, trace.hear)
            rng = generator(seed, PERTURBATIONS)
            found = search_starts(climbs, starts_, engine, plan, rng, forecast, trace.hear)
        tree, lnl, part_lnls = _restore(found, data, problem.groups, brlen, engine, hardware)
    described, remarks = _describe(data, problem.parts, found.models, tree, part_lnls, outgroup)
    if constraint is not None and binding is None:
        hint = "a clade needs taxa outside of it, as in ((A,B),C,D);"
        remarks.append(f"the constraint has no inner branch, so that every tree obeys it; {hint}")
    if found.interrupted:
        remarks.append("the search was interrupted: the tree is the best so far")
    if store is not None and store.problem:
        remarks.append(f"not all of the search was saved: {store.problem}")
    return SearchResult(
        lnl=lnl,
        **described,
        seed=seed,
        start_lnls=found.lnls,
        brlen=brlen,
        **_facts(data, engine, reason),
        seconds=time.perf_counter() - began,
        warnings=_warn(data, remarks),
        interrupted=found.interrupted,
        site_lnl=_site_lnl(data, tree, found.models, brlen, hardware) if site_lnl else None,
        trace=trace.in_order(),
    )


def evaluate(
    alignment: AlignmentLike,
    tree: TreeLike,
    model: ModelLike | None = None,
    *,
    fixed: bool = False,
    site_lnl: bool = False,
    outgroup: Sequence[str] | None = None,
    brlen: str = DEFAULT_LINKAGE,
    device: str = "auto",
    precision: str = "double",
    vw: int | None = None,
    threads: int | None = None,
    memory: int | None = None,
    listener: Listener = ignore,
) -> EvaluationResult:
    """The likelihood of a fixed topology, branch lengths and free model parameters optimised.

    Parameters
    ----------
    alignment, model, outgroup, brlen, device, precision, vw, threads, memory, listener : as for `search`
    tree : file, Newick string, dendropy tree, or Tree
    fixed : take lengths and parameters as they are; parameters without a value keep their start values, and a warning
        says so
    site_lnl : also return the lnL of each site

    Raises
    ------
    InputError
        If alignment, tree, model or outgroup cannot be used.
    DeviceError
        If the device cannot be used.
    """
    began = time.perf_counter()
    data, models = pose(alignment, model, brlen)
    check_outgroup(outgroup, data.names)
    hardware = Hardware(device, precision, vw, threads, memory)
    with Likelihood(data, tree, models, brlen=brlen, lnl_only=fixed, **asdict(hardware)) as likelihood:
        _announce(data, likelihood.patterns)
        _announce_engine(likelihood.engine, likelihood.reason)
        remarks = [*likelihood.warnings, *(_remarks_on_fixed(likelihood) if fixed else ())]
        lnl = start_lnl = likelihood.lnl()
        announce("lengths and model")
        if not fixed:
            lnl = likelihood.optimise(listener=listener)
        sites = likelihood.site_lnl() if site_lnl else None
        part_lnls = likelihood.part_lnl()
    described, rooting = _describe(
        data, likelihood.patterns, likelihood.models, likelihood.tree, part_lnls, outgroup
    )
    return EvaluationResult(
        lnl=lnl,
        **described,
        seed=None,
        start_lnls=(start_lnl,),
        brlen=brlen,
        **_facts(data, likelihood.engine, likelihood.reason),
        seconds=time.perf_counter() - began,
        warnings=_warn(data, [*remarks, *rooting]),
        site_lnl=sites,
    )


@dataclass(frozen=True, eq=False)
class _Problem:
    """What is searched: the patterns of each part without duplicates, and where to start.

    ``groups[i]`` holds the taxa of the whole alignment that taxon i stands for; `start` is a kind of start tree or the
    one start tree; `unlinked` says that each part has branch lengths of its own; `constraint` is that of these taxa.
    """

    names: tuple[str, ...]
    parts: list[Patterns]
    groups: list[list[int]]
    start: str | Tree
    seed: int
    unlinked: bool
    constraint: Constraint | None

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
    """Check what was asked for and leave the duplicates out, but for those that a constraint keeps apart."""
    if seed < 0:
        raise InputError(f"seed: found {seed}, expected at least 0")
    reduced, groups = without_duplicates(data, None if constraint is None else constraint.attachments.tolist())
    first: str | Tree
    if isinstance(start, str) and start in START_KINDS:
        first = start
    elif starts is not None and starts > 1:
        raise InputError(f"found {starts} starts from one given tree, expected 1: all would be the same")
    else:
        given = link_lengths(as_tree(start, data.names, unlinked), len(data.parts) if unlinked else 1)
        if constraint is not None:
            check_obedience(given, constraint)
        first = restrict_tree(given, reduced.names)
    parts = [compress(alignment) for alignment in reduced.alignments]
    restricted = None if constraint is None else constraint.restrict(reduced.names)
    return _Problem(reduced.names, parts, groups, first, seed, unlinked, restricted)


def _announce(data: Dataset, parts: Sequence[Patterns]) -> None:
    """Log what is about to be computed."""
    for warning in data.warnings:
        _log.warning(warning)
    n_patterns = sum(part.n_patterns for part in parts)
    several = f", {len(parts)} parts" if len(parts) > 1 else ""
    size = f"{data.n_taxa} taxa, {data.n_sites} sites, {n_patterns} patterns{several}"
    _log.info("alignment: %s: %s", data.source, size)
    n_duplicates = data.n_taxa - parts[0].n_taxa
    if n_duplicates:
        _log.info("%d duplicates of other sequences are left out and put back at the end", n_duplicates)


def _announce_constraint(constraint: Constraint | None) -> None:
    """Log what the search is held to."""
    if constraint is not None:
        n_members, n_taxa = constraint.n_members, len(constraint.names)
        _log.info("constraint: %d splits of %d of the %d taxa", constraint.n_splits, n_members, n_taxa)


def _announce_engine(engine: AnyEngine, reason: str) -> None:
    """Log what computes it, and whether its memory is short."""
    _log.info("device: %s", reason)
    if not engine.resident:
        share = 100 * engine.held_share
        _log.info("memory: holds the conditional likelihoods of %.2g %% of the patterns at a time", share)


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
        tree = stepwise_addition(problem.masks, problem.weights, problem.names, rng, problem.constraint)
    return tree.unlink(len(problem.parts)) if problem.unlinked and tree.lengths.ndim == 1 else tree


def _plan(problem: _Problem, options: SearchOptions) -> Plan:
    """How hard to search, after a look at the data where that matters."""
    score, reason = 0.0, ""
    if options.depends_on_difficulty:
        announce("parsimony trees that tell how difficult the data are")
        rng = generator(problem.seed, DIFFICULTY)
        difficulty = assess_difficulty(problem.masks, problem.weights, problem.names, rng, problem.constraint)
        score, reason = difficulty.score, f"; difficulty {difficulty}"
    plan = replace(options.plan(score, problem.masks.size), constraint=problem.constraint)
    if isinstance(problem.start, Tree) and options.starts is None:
        plan = replace(plan, starts=1)
    numbers = f"start trees: {plan.starts}, perturbations: at most {plan.perturbations}, stop rule: {plan.stop}"
    _log.info("effort %s: %s%s", options.effort, numbers, reason)
    _log.info("seed: %d", problem.seed)
    return plan


def _restore(
    found: Found, data: Dataset, groups: list[list[int]], brlen: str, engine: AnyEngine, hardware: Hardware
) -> tuple[Tree, float, FloatArray]:
    """The tree of all taxa, its lnL and that of each part."""
    if found.tree.n_taxa == data.n_taxa:
        return found.tree, found.lnl, TreeLikelihood(found.tree, found.models, engine).part_lnl()
    tree = restore_duplicates(found.tree, data.names, groups)
    with Likelihood(data, tree, found.models, brlen=brlen, lnl_only=True, **asdict(hardware)) as whole:
        part_lnls = whole.part_lnl()
    return tree, float(part_lnls.sum()), part_lnls


def _site_lnl(data: Dataset, tree: Tree, models: Sequence[Model], brlen: str, hardware: Hardware) -> FloatArray:
    """lnL of each site (n_sites,) on a tree of all taxa."""
    with Likelihood(data, tree, models, brlen=brlen, lnl_only=True, **asdict(hardware)) as whole:
        return whole.site_lnl()


def _remarks_on_fixed(likelihood: Likelihood) -> list[str]:
    """What "as they are" leaves open: parameters without a value, a tree without lengths."""
    remarks = []
    for model in likelihood.models:
        free = [group for group in model.free_parameters if group != SCALER]
        if free:
            listed = " and ".join(free)
            remarks.append(f"{str(model.spec)!r} has no values for {listed}, used as they are: {model.to_string()}")
    if any(SCALER in model.free_parameters for model in likelihood.models):
        remarks.append("scalers of the branch lengths of parts have no values, used as 1")
    if np.all(likelihood.lengths == DEFAULT_BRANCH_LENGTH):
        remarks.append(f"all branch lengths are {DEFAULT_BRANCH_LENGTH}; does the tree have none?")
    return list(dict.fromkeys(remarks))


def _warn(data: Dataset, remarks: Sequence[str]) -> tuple[str, ...]:
    """Log the remarks made during a run and return all warnings."""
    for remark in remarks:
        _log.warning(remark)
    return (*data.warnings, *remarks)


def _describe(
    data: Dataset,
    patterns: Sequence[Patterns],
    models: Sequence[Model],
    tree: Tree,
    lnls: FloatArray,
    outgroup: Sequence[str] | None,
) -> tuple[dict[str, Any], list[str]]:
    """The fields of a result that tell of its tree, models and parts, and warnings."""
    unlinked = tree.lengths.ndim > 1
    shown = mean_tree(tree, np.array([len(part.sites) for part in data.parts]))
    newick, remarks = write_rooted(shown, outgroup)
    parts = tuple(
        PartResult(
            name=part.name,
            sites=part.ranges,
            n_sites=len(part.sites),
            n_patterns=own.n_patterns,
            model=model.to_string(),
            scaler=model.scaler,
            lnl=lnl,
            parameters=model.describe(),
            newick=write_rooted(tree.with_lengths(tree.lengths[:, number]), outgroup)[0] if unlinked else None,
        )
        for number, (part, own, model, lnl) in enumerate(zip(data.parts, patterns, models, lnls.tolist(), strict=True))
    )
    fields = {"tree": shown, "newick": newick, "model": format_scheme(data, models), "parts": parts}
    return fields | {"parameters": describe_parameters(models)}, remarks


def _facts(data: Dataset, engine: AnyEngine, reason: str) -> dict[str, Any]:
    """The fields that every result takes from its alignment and engine."""
    return {
        "n_taxa": data.n_taxa,
        "n_sites": data.n_sites,
        "n_patterns": engine.n_patterns,
        "device": engine.device_name,
        "driver": engine.driver,
        "reason": reason,
        "layout": engine.describe(),
        "counters": engine.counters.as_dict(),
    }
