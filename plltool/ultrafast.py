"""The ultrafast bootstrap (Minh et al. 2013) from Python.

    from plltool.api import search
    from plltool.ultrafast import ultrafast_bootstrap
    best = search("primates.phy", "GTR+F+G4")
    supports = ultrafast_bootstrap("primates.phy", best.tree, best.models)
    print(supports.newick("ufboot"))
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from plltool.alignment.patterns import compress
from plltool.constants import (
    DEFAULT_LINKAGE,
    DEFAULT_SEED,
    UFBOOT_CORRELATION,
    UFBOOT_LEAST,
    UFBOOT_MOST,
    UFBOOT_RADIUS,
    UFBOOT_SETS,
    UFBOOT_STEP,
    UNLINKED,
)
from plltool.hardware import Hardware
from plltool.optimise.likelihood import TreeLikelihood
from plltool.search.parsimony import stepwise_addition
from plltool.search.progress import ULTRAFAST_STAGE, Listener, Progress, StopSearch, announce, ignore
from plltool.search.rell import RellPool, draw_weights, sample_trees
from plltool.session import (
    ULTRAFAST,
    AlignmentLike,
    ModelLike,
    TreeLike,
    as_constraint,
    as_tree,
    check_obedience,
    generator,
    leave_out_duplicates,
    link_lengths,
    open_engine,
    pose,
    search_slots,
)
from plltool.supports import UFBOOT, Supports, count_supports
from plltool.tree.bootstop import correlate
from plltool.tree.duplicates import restore_duplicates, restrict_tree
from plltool.tree.supports import frequencies
from plltool.tree.topology import FloatArray, Tree
from plltool.tree.tree_set import TreeSet, make_tree_set, splits_of

_log = logging.getLogger("plltool")


def ultrafast_bootstrap(
    alignment: AlignmentLike,
    tree: TreeLike,
    model: ModelLike,
    *,
    replicates: int = UFBOOT_SETS,
    seed: int = DEFAULT_SEED,
    constraint: TreeLike | None = None,
    brlen: str = DEFAULT_LINKAGE,
    device: str = "auto",
    precision: str = "double",
    vw: int | None = None,
    threads: int | None = None,
    memory: int | None = None,
    listener: Listener = ignore,
) -> Supports:
    """Supports of a tree's branches by resampled alignments, each of which keeps the best of the trees met.

    The numbers tend to be higher than those of whole searches, see README: not all good trees are met.
    Branch lengths are optimised, the model's parameters are held. Excursions from the tree go on until the supports
    of its branches settle: those after UFBOOT_STEP more have a correlation of UFBOOT_CORRELATION with those before.

    Parameters
    ----------
    alignment, constraint, brlen, device, precision, vw, threads, memory : as for `plltool.api.search`
    tree : of a search
    model : of a search, `SearchResult.models`, or anything that `plltool.api.evaluate` takes
    replicates : resampled alignments
    seed : of resampling and excursions
    listener : hears of every excursion; if it raises StopSearch, the trees met so far must do

    Raises
    ------
    InputError
        If alignment, tree, model or constraint cannot be used, or the tree breaks the constraint.
    DeviceError
        If the device cannot be used.
    """
    data, models = pose(alignment, model, brlen)
    binding = None if constraint is None else as_constraint(constraint, data.names)
    reduced, groups, restricted = leave_out_duplicates(data, binding)
    parts = [compress(part) for part in reduced.alignments]
    n_lengths = len(parts) if brlen == UNLINKED and len(parts) > 1 else 1
    target = as_tree(tree, data.names)
    if binding is not None:
        check_obedience(target, binding, "the tree given")
    start = link_lengths(restrict_tree(target, reduced.names), n_lengths)
    hardware = Hardware(device, precision, vw, threads, memory)
    rng = generator(seed, ULTRAFAST)
    weights = draw_weights([part.site_pattern for part in parts], replicates, rng)
    engine, _ = open_engine(parts, models, search_slots(reduced.n_taxa), hardware)
    with engine:
        likelihood = TreeLikelihood(start.copy(), models, engine)
        pool = RellPool(weights, rng)
        masks = np.concatenate([part.masks for part in parts], axis=1)

        def fresh(column: FloatArray) -> Tree:
            tree = stepwise_addition(masks, column, reduced.names, rng, restricted)
            return tree.unlink(n_lengths) if n_lengths > 1 else tree

        excursions = sample_trees(likelihood, pool, weights, UFBOOT_RADIUS, rng, fresh, restricted)
        _until_settled(excursions, pool, start, listener)
    if data.n_taxa == reduced.n_taxa:
        return count_supports(target, _tree_set(pool), UFBOOT)
    chosen = [_restore(pool.trees[number], data.names, groups, rng) for number in pool.chosen.tolist()]
    return count_supports(target, make_tree_set(data.names, map(splits_of, chosen)), UFBOOT)


def _until_settled(excursions: Iterator[float], pool: RellPool, start: Tree, listener: Listener) -> None:
    """Make excursions until the supports of `start` settle."""
    began = time.perf_counter()
    before: FloatArray | None = None
    announce(ULTRAFAST_STAGE)
    try:
        for number, lnl in enumerate(islice(excursions, UFBOOT_MOST), start=1):
            listener(Progress(ULTRAFAST_STAGE, number, lnl, 0, 0, time.perf_counter() - began, UFBOOT_MOST))
            if number % UFBOOT_STEP:
                continue
            now = _inner(frequencies(start, _tree_set(pool)))
            agreement = 0.0 if before is None else correlate(now, before)
            _log.info("ultrafast bootstrap: %d trees met, correlation of supports %.4f", len(pool.trees), agreement)
            if number >= UFBOOT_LEAST and agreement >= UFBOOT_CORRELATION:
                break
            before = now
        else:
            _log.warning("ultrafast bootstrap: supports have not settled after %d excursions", UFBOOT_MOST)
    except StopSearch:
        _log.warning("the ultrafast bootstrap was interrupted after %d trees met", len(pool.trees))


def _tree_set(pool: RellPool) -> TreeSet:
    """The tree of each resampled alignment."""
    splits = {number: splits_of(pool.trees[number]) for number in set(pool.chosen.tolist())}
    return make_tree_set(pool.trees[0].names, [splits[number] for number in pool.chosen.tolist()])


def _inner(values: FloatArray) -> FloatArray:
    return values[~np.isnan(values)]


def _restore(tree: Tree, names: Sequence[str], groups: Sequence[Sequence[int]], rng: np.random.Generator) -> Tree:
    """Put identical sequences back; which of three are closest is nobody's finding."""
    return restore_duplicates(tree, names, [rng.permutation(group).tolist() for group in groups])
