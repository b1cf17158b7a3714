"""The bootstrap (Felsenstein 1985): trees of resampled alignments, each the result of a whole search.

    from plltool.analyses.search import search
    from plltool.analyses.bootstrap import bootstrap
    from plltool.analyses.support import supports
    best = search("primates.phy", "GTR+F+G4")
    found = bootstrap("primates.phy", "GTR+F+G4", replicates=100)
    print(supports(best.tree, found.trees, ("fbp", "tbe")).newick("fbp"))
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice
from os import PathLike
from typing import Unpack

import numpy as np

from plltool.alignment.alignment import Sequences
from plltool.alignment.partition import Dataset
from plltool.alignment.patterns import compress
from plltool.alignment.resample import draw_sites
from plltool.analyses.replicates import Replicates, Resampling, hold_models, make_replicates, most_at_once
from plltool.constants import (
    BOOTSTOP_MOST,
    BOOTSTOP_STEP,
    DEFAULT_LINKAGE,
    DEFAULT_SEED,
    RAPID_RADII,
    REPLICATE_EFFORT,
    REPLICATE_RADII,
    REPLICATE_STAGE,
    UNLINKED,
)
from plltool.errors import InputError
from plltool.hardware import Hardware, HardwareSettings
from plltool.io.checkpoint import Checkpoint
from plltool.run.climbers import share_hardware
from plltool.run.identity import identify_replicates
from plltool.run.inputs import AlignmentLike, ModelLike, TreeLike, as_constraint, leave_out_duplicates, resolve_inputs
from plltool.run.memory import plan_memory
from plltool.run.seeds import BOOTSTOP, BOOTSTRAP, generator
from plltool.tree.bootstop import CRITERIA, MRE, Convergence, check_convergence
from plltool.tree.topology import Tree
from plltool.tree.tree_set import Splits, make_tree_set, splits_of
from plltool.tree_search.effort import SearchOptions
from plltool.tree_search.progress import Listener, Progress, StopSearch, announce, ignore

AUTO = "auto"

_log = logging.getLogger("plltool")


@dataclass(frozen=True, eq=False)
class BootstrapResult:
    """The replicates.

    Attributes
    ----------
    trees : of the resampled alignments, with all taxa
    lnls : (n_replicates,) of the trees on their alignments
    seed : of the resampling; replicate k depends on it and on k only, whatever their number
    convergence : what the tests said of how many are enough, where that was to be found out
    seconds : wall time
    interrupted : whether the listener ended it early
    """

    trees: tuple[Tree, ...]
    lnls: tuple[float, ...]
    seed: int
    convergence: tuple[Convergence, ...]
    seconds: float
    interrupted: bool


def bootstrap(
    alignment: AlignmentLike,
    model: ModelLike | None = None,
    *,
    replicates: int | str = AUTO,
    seed: int = DEFAULT_SEED,
    rapid: bool = False,
    options: SearchOptions | None = None,
    constraint: TreeLike | None = None,
    brlen: str = DEFAULT_LINKAGE,
    workers: int | None = None,
    listener: Listener = ignore,
    taken: Callable[[Tree], None] | None = None,
    checkpoint: str | PathLike[str] | None = None,
    **hardware: Unpack[HardwareSettings],
) -> BootstrapResult:
    """Trees of resampled alignments.

    Each part is resampled by itself. A replicate's search starts at a parsimony tree of its own sites; model parameters
    begin with the values that `model` has and are optimised for each replicate anew, unless given in braces, or
    ``options.optimise_parameters`` is False.

    Parameters
    ----------
    alignment, model, constraint, brlen, device, precision, vw, threads, memory : as for `plltool.search`; models
        that a search has optimised, `SearchResult.models`, save time
    replicates : how many, or "autoMRE" or "autoFC" to find that out by a test after every BOOTSTOP_STEP, see
        `tree.bootstop`; "auto" is "autoMRE"
    seed : of everything random; replicate k depends on it and on k only
    rapid : let searches begin with the trees of earlier replicates (Stamatakis, Hoover & Rougemont 2008) instead, with
        model parameters that were optimised once, on a parsimony tree of all sites
    options : of each search; by default `replicate_options(rapid=rapid)`. There is one start tree
    workers : replicates that are made at the same time, each in a process of its own; by default as many as there are
        threads, on a GPU 1; of rapid ones no more than RAPID_CHAINS. Changes no digit
    listener : hears of every replicate; if it raises StopSearch, those made so far are the result
    taken : called with each tree, in order, as soon as it is there
    checkpoint : folder in which replicates are kept; the same call, for as many or more, begins with those. Remove it
        with `plltool.remove_checkpoint`. None for none

    Raises
    ------
    InputError
        If alignment, model or constraint cannot be used, or the number of replicates is less than 1 or unknown.
    DeviceError
        If the device cannot be used.
    """
    began = time.perf_counter()
    asked = Hardware(**hardware)
    most, criterion = _read_number(replicates)
    if seed < 0:
        raise InputError(f"seed: found {seed}, expected at least 0")
    data, models = resolve_inputs(alignment, model, brlen)
    binding = None if constraint is None else as_constraint(constraint, data.names)
    reduced, groups, restricted = leave_out_duplicates(data, binding)
    parts = [compress(part) for part in reduced.alignments]
    n_workers, share = share_hardware(workers, most_at_once(most, rapid), parts, models, asked)
    wishes = options or replicate_options(rapid=rapid)
    plan = replace(wishes.plan(0.0, sum(part.codes.size for part in parts)), starts=1, constraint=restricted)
    unlinked = brlen == UNLINKED and len(models) > 1
    resampling = Resampling(
        data.names, reduced.names, groups, parts, models, plan, rapid, seed, unlinked, share
    )
    store = None
    if checkpoint is not None:
        place = plan_memory(parts, models, asked)
        store = Checkpoint(checkpoint, identify_replicates(data, models, plan, rapid, seed, brlen, place))
    if rapid and plan.optimise_parameters:
        resampling = hold_models(resampling, asked)
    made = make_replicates(resampling, most, n_workers, store)
    return _collect(_tell(made, taken), most, criterion, seed, listener, began)


def replicate_options(effort: str | None = None, rapid: bool = False) -> SearchOptions:
    """How hard to search a replicate's tree: by an effort; by default REPLICATE_EFFORT with radii of their own."""
    if effort is not None:
        return SearchOptions(effort)
    return SearchOptions(REPLICATE_EFFORT, radii=RAPID_RADII if rapid else REPLICATE_RADII)


def resample_alignment(sequences: Sequences, data: Dataset, seed: int, number: int) -> dict[str, bytes]:
    """The sequences of replicate `number`, from 0.

    Columns of a part take the places of its columns, so that a partition file stays good; those of no part are left
    as they are.
    """
    columns = np.arange(sequences.n_sites)
    drawn = draw_sites([len(part.sites) for part in data.parts], generator(seed, BOOTSTRAP, number))
    for part, sites in zip(data.parts, drawn, strict=True):
        columns[part.sites] = part.sites[sites]
    return dict(zip(sequences.names, sequences.columns(columns), strict=True))


def _read_number(replicates: int | str) -> tuple[int, str | None]:
    """How many replicates at most, and the criterion of enough."""
    if isinstance(replicates, int):
        if replicates < 1:
            raise InputError(f"replicates: found {replicates}, expected at least 1")
        return replicates, None
    if replicates not in (AUTO, *CRITERIA):
        raise InputError(f"replicates: found {replicates!r}, expected a number, {AUTO}, {' or '.join(CRITERIA)}")
    return BOOTSTOP_MOST, MRE if replicates == AUTO else replicates


def _tell(made: Replicates, taken: Callable[[Tree], None] | None) -> Replicates:
    """The same replicates, each once `taken` knows of its tree."""
    with closing(made):  # which ends the processes that make them
        for replicate in made:
            if taken is not None:
                taken(replicate.tree)
            yield replicate


def _collect(
    made: Replicates, most: int, criterion: str | None, seed: int, listener: Listener, began: float
) -> BootstrapResult:
    """Take replicates until there are enough."""
    trees: list[Tree] = []
    lnls: list[float] = []
    splits: list[Splits] = []
    tests: list[Convergence] = []
    interrupted = False
    announce(REPLICATE_STAGE)
    try:
        for number, replicate in enumerate(islice(made, most), start=1):
            trees.append(replicate.tree)
            lnls.append(replicate.lnl)
            seconds = time.perf_counter() - began
            left = seconds / number * (most - number) if criterion is None else None
            listener(Progress(REPLICATE_STAGE, number, replicate.lnl, 0, 0, seconds, most, left, left))
            if criterion is None:
                continue
            splits.append(splits_of(replicate.tree))
            if number % BOOTSTOP_STEP == 0:
                rng = generator(seed, BOOTSTOP, number)
                tests.append(check_convergence(make_tree_set(replicate.tree.names, splits), criterion, rng))
                _log.info("%s", tests[-1])
                if tests[-1].converged:
                    break
    except StopSearch:
        interrupted = True
    finally:
        made.close()
    if interrupted:
        _log.warning("the bootstrap was interrupted after %d replicates", len(trees))
    elif tests and not tests[-1].converged:
        _log.warning("%d replicates are not enough by %s", len(trees), criterion)
    return BootstrapResult(
        tuple(trees), tuple(lnls), seed, tuple(tests), time.perf_counter() - began, interrupted
    )
