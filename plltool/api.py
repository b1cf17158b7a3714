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
from functools import partial
from typing import Any

import numpy as np

from plltool.alignment.alignment import Alignment, without_duplicates
from plltool.alignment.patterns import Patterns, compress
from plltool.constants import DEFAULT_BRANCH_LENGTH, DEFAULT_SEED
from plltool.engine.base import Engine
from plltool.errors import InputError
from plltool.hardware import Hardware
from plltool.live import Likelihood
from plltool.model.model import Model
from plltool.results import EvaluationResult, SearchResult, check_outgroup, write_rooted
from plltool.search.difficulty import assess_difficulty
from plltool.search.effort import Plan, SearchOptions
from plltool.search.parsimony import stepwise_addition
from plltool.search.progress import Listener, Progress, StopSearch, ignore
from plltool.search.starts import Found, search_starts
from plltool.session import (
    DIFFICULTY,
    PERTURBATIONS,
    STARTS,
    AlignmentLike,
    ModelLike,
    TreeLike,
    as_alignment,
    as_model,
    as_tree,
    generator,
    open_engine,
    search_slots,
)
from plltool.tree.duplicates import restore_duplicates, restrict_tree
from plltool.tree.random_tree import random_tree
from plltool.tree.topology import Tree

__all__ = [
    "EvaluationResult",
    "Likelihood",
    "Progress",
    "SearchOptions",
    "SearchResult",
    "StopSearch",
    "evaluate",
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
    device: str = "auto",
    precision: str = "double",
    vw: int | None = None,
    threads: int | None = None,
    memory: int | None = None,
    options: SearchOptions | None = None,
    profile: bool = False,
    listener: Listener = ignore,
) -> SearchResult:
    """Find a maximum-likelihood tree.

    Identical sequences are searched once and put back beside their twins with branches of the least length; the
    result's lnL is that of the whole tree.

    Parameters
    ----------
    alignment : file, mapping of names to sequences, dendropy matrix, or Alignment
    model : string such as "GTR+F+G4", file (see `read_model`), ModelSpec or Model; by default GTR+F+G4 for DNA and
        LG+G4 for proteins. Values in braces are never optimised
    seed : of start trees and perturbations, 0 or more; the same seed, device and layout give the same tree
    start : "parsimony" (randomised stepwise addition), "random", or a tree: file, Newick string, dendropy tree, Tree
    starts, effort : the same as in `options`, which they override
    outgroup : names of taxa that the Newick text shows as one clade
    device, precision, vw, threads, memory : see `plltool.hardware.Hardware`
    options : how hard to search
    profile : measure how long the device was busy, for `SearchResult.profile`; changes no digit
    listener : hears of every round of the search; if it raises StopSearch, the best tree so far is the result

    Raises
    ------
    InputError
        If alignment, model, start tree or outgroup cannot be used.
    DeviceError
        If the device cannot be used.
    """
    began = time.perf_counter()
    data = as_alignment(alignment)
    check_outgroup(outgroup, data.names)
    wishes = options or SearchOptions()
    if starts is not None:
        wishes = replace(wishes, starts=starts)
    if effort is not None:
        wishes = replace(wishes, effort=effort)
    problem = _pose(data, model, start, wishes.starts, seed)
    _announce(data, problem.patterns)
    hardware = Hardware(device, precision, vw, threads, memory)
    slots = search_slots(problem.patterns.n_taxa)
    engine, reason = open_engine(problem.patterns, problem.model, slots, hardware, profile)
    with engine:
        _announce_engine(engine, reason)
        plan = _plan(problem, wishes)
        trees = [partial(_start_tree, problem, number) for number in range(plan.starts)]
        rng = generator(seed, PERTURBATIONS)
        found = search_starts(trees, problem.model, engine, plan, rng, listener)
    tree, lnl = _restore(found, data, problem.groups, hardware)
    newick, remarks = write_rooted(tree, outgroup)
    if found.interrupted:
        remarks.append("the search was interrupted: the tree is the best so far")
    return SearchResult(
        lnl=lnl,
        tree=tree,
        newick=newick,
        seed=seed,
        start_lnls=found.lnls,
        **_facts(data, found.model, engine, reason),
        seconds=time.perf_counter() - began,
        warnings=_warn(data, remarks),
        interrupted=found.interrupted,
    )


def evaluate(
    alignment: AlignmentLike,
    tree: TreeLike,
    model: ModelLike | None = None,
    *,
    fixed: bool = False,
    site_lnl: bool = False,
    outgroup: Sequence[str] | None = None,
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
    alignment, model, outgroup, device, precision, vw, threads, memory, listener : as for `search`
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
    data = as_alignment(alignment)
    check_outgroup(outgroup, data.names)
    hardware = Hardware(device, precision, vw, threads, memory)
    with Likelihood(data, tree, model, lnl_only=fixed, **asdict(hardware)) as likelihood:
        _announce(data, likelihood.patterns)
        _announce_engine(likelihood.engine, likelihood.reason)
        remarks = [*likelihood.warnings, *(_remarks_on_fixed(likelihood) if fixed else ())]
        lnl = start_lnl = likelihood.lnl()
        if not fixed:
            lnl = likelihood.optimise(listener=listener)
        sites = likelihood.site_lnl() if site_lnl else None
    newick, rooting = write_rooted(likelihood.tree, outgroup)
    return EvaluationResult(
        lnl=lnl,
        tree=likelihood.tree,
        newick=newick,
        seed=None,
        start_lnls=(start_lnl,),
        **_facts(data, likelihood.model, likelihood.engine, likelihood.reason),
        seconds=time.perf_counter() - began,
        warnings=_warn(data, [*remarks, *rooting]),
        site_lnl=sites,
    )


@dataclass(frozen=True, eq=False)
class _Problem:
    """What is searched: an alignment without duplicates, a model, and where to start.

    ``groups[i]`` holds the taxa of the whole alignment that taxon i stands for; `start` is a kind of start tree or the
    one start tree.
    """

    names: tuple[str, ...]
    patterns: Patterns
    groups: list[list[int]]
    model: Model
    start: str | Tree
    seed: int


def _pose(data: Alignment, model: ModelLike | None, start: TreeLike, starts: int | None, seed: int) -> _Problem:
    """Check what was asked for and leave the duplicates out."""
    if seed < 0:
        raise InputError(f"seed: found {seed}, expected at least 0")
    reduced, groups = without_duplicates(data)
    first: str | Tree
    if isinstance(start, str) and start in START_KINDS:
        first = start
    elif starts is not None and starts > 1:
        raise InputError(f"found {starts} starts from one given tree, expected 1: all would be the same")
    else:
        first = restrict_tree(as_tree(start, data.names), reduced.names)
    return _Problem(reduced.names, compress(reduced), groups, as_model(model, data), first, seed)


def _announce(data: Alignment, patterns: Patterns) -> None:
    """Log what is about to be computed."""
    for warning in data.warnings:
        _log.warning(warning)
    size = f"{data.n_taxa} taxa, {data.n_sites} sites, {patterns.n_patterns} patterns"
    _log.info("alignment: %s: %s", data.source, size)
    n_duplicates = data.n_taxa - patterns.n_taxa
    if n_duplicates:
        _log.info("%d duplicates of other sequences are left out and put back at the end", n_duplicates)


def _announce_engine(engine: Engine, reason: str) -> None:
    """Log what computes it, and whether its memory is short."""
    _log.info("device: %s", reason)
    if not engine.resident:
        share = 100 * max(engine.storage.buffer_tiles) / engine.layout.n_tiles
        _log.info("memory: holds the conditional likelihoods of %.2g %% of the patterns at a time", share)


def _start_tree(problem: _Problem, number: int) -> Tree:
    """Start tree `number`, from 0."""
    if isinstance(problem.start, Tree):
        return problem.start.copy()
    rng = generator(problem.seed, STARTS, number)
    if problem.start == "random":
        return random_tree(problem.names, rng)
    return stepwise_addition(problem.patterns.masks, problem.patterns.weights, problem.names, rng)


def _plan(problem: _Problem, options: SearchOptions) -> Plan:
    """How hard to search, after a look at the data where that matters."""
    score, reason = 0.0, ""
    if options.depends_on_difficulty:
        rng = generator(problem.seed, DIFFICULTY)
        difficulty = assess_difficulty(problem.patterns.masks, problem.patterns.weights, problem.names, rng)
        score, reason = difficulty.score, f"; difficulty {difficulty}"
    plan = options.plan(score, problem.patterns.codes.size)
    if isinstance(problem.start, Tree) and options.starts is None:
        plan = replace(plan, starts=1)
    numbers = f"start trees: {plan.starts}, perturbations: at most {plan.perturbations}, stop rule: {plan.stop}"
    _log.info("effort %s: %s%s", options.effort, numbers, reason)
    return plan


def _restore(found: Found, data: Alignment, groups: list[list[int]], hardware: Hardware) -> tuple[Tree, float]:
    """The tree of all taxa, and its lnL."""
    if found.tree.n_taxa == data.n_taxa:
        return found.tree, found.lnl
    tree = restore_duplicates(found.tree, data.names, groups)
    with Likelihood(data, tree, found.model, lnl_only=True, **asdict(hardware)) as whole:
        return tree, whole.lnl()


def _remarks_on_fixed(likelihood: Likelihood) -> list[str]:
    """What "as they are" leaves open: parameters without a value, a tree without lengths."""
    remarks = []
    model = likelihood.model
    if model.free_parameters:
        listed = " and ".join(model.free_parameters)
        remarks.append(f"{str(model.spec)!r} has no values for {listed}, used as they are: {model.to_string()}")
    if np.all(likelihood.lengths == DEFAULT_BRANCH_LENGTH):
        remarks.append(f"all branch lengths are {DEFAULT_BRANCH_LENGTH}; does the tree have none?")
    return remarks


def _warn(data: Alignment, remarks: Sequence[str]) -> tuple[str, ...]:
    """Log the remarks made during a run and return all warnings."""
    for remark in remarks:
        _log.warning(remark)
    return (*data.warnings, *remarks)


def _facts(data: Alignment, model: Model, engine: Engine, reason: str) -> dict[str, Any]:
    """The fields that every result takes from its alignment, model and engine."""
    return {
        "model": model.to_string(),
        "parameters": model.describe(),
        "n_taxa": data.n_taxa,
        "n_sites": data.n_sites,
        "n_patterns": engine.layout.n_patterns,
        "device": engine.device_name,
        "reason": reason,
        "layout": engine.layout.describe(),
        "counters": engine.counters.as_dict(),
    }
