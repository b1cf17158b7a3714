"""The ultrafast bootstrap (Minh et al. 2013)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import starmap
from os import PathLike
from typing import TypeAlias, Unpack

import numpy as np

from plltool.arrays import FloatArray
from plltool.constants import DEFAULT_LINKAGE, DEFAULT_SEED, UFBOOT, UFBOOT_SETS, ULTRAFAST_STAGE
from plltool.engine.requests import Holder
from plltool.errors import check_least
from plltool.hardware import Hardware, HardwareSettings
from plltool.optimise.likelihood import TreeLikelihood
from plltool.progress import Listener, Progress, StopSearch, announce, ignore, log
from plltool.run.engines import open_engine
from plltool.run.inputs import AlignmentLike, ModelLike, TreeLike, resolve_inputs
from plltool.run.memory import open_workers, search_slots, share_hardware
from plltool.run.run import Run
from plltool.run.site_rates import refuse_site_rates
from plltool.run.supports import BetterTree, Supports
from plltool.run.task import Task, describe_constraint, describe_start
from plltool.seeds import ULTRAFAST, generator
from plltool.settings import takes_keywords
from plltool.tree.rooted import drop_root, spread_over_branches
from plltool.tree.splits import TreeSet, make_tree_set, splits_of
from plltool.tree.supports import correlate, frequencies
from plltool.tree.topology import Tree
from plltool.tree_search.ufboot_search import Excursion, RellPool, UfbootSearch, UfbootState, WeightArray, draw_weights

UFBOOT_STEP = 10  # excursions between two convergence tests
UFBOOT_LEAST = 20  # excursions at least
UFBOOT_MOST = 200  # and at most
UFBOOT_CORRELATION = 0.99  # of the supports at two tests in a row, from which on they have converged (Minh et al. 2013)
UFBOOT_DIFFERENCE = 0.015  # mean absolute difference up to which they have converged, too: the error of shares of 1000
STATE = "ufboot"  # its name in a checkpoint
Order: TypeAlias = tuple[int | None, Sequence[Tree], Set[bytes]]  # the arguments of a UfbootSearch
Make: TypeAlias = Callable[[Iterable[Order]], Iterator[Excursion]]


@takes_keywords(HardwareSettings)
def ultrafast_bootstrap(
    alignment: AlignmentLike,
    tree: TreeLike,
    model: ModelLike,
    *,
    replicates: int = UFBOOT_SETS,
    seed: int = DEFAULT_SEED,
    constraint: TreeLike | None = None,
    brlen: str = DEFAULT_LINKAGE,
    listener: Listener = ignore,
    checkpoint: str | PathLike[str] | None = None,
    climb: Callable[[Tree], Tree | None] | None = None,
    workers: int | None = None,
    **hardware: Unpack[HardwareSettings],
) -> Supports:
    """Supports of a tree's branches by resampled alignments, each of which keeps the best of the trees that are met.

    The supports tend to be higher than those of whole searches, because not all good trees are met. Branch lengths are
    optimised, the model parameters are held. Excursions from the tree go on until its supports settle: after
    UFBOOT_STEP more excursions their correlation with those before is UFBOOT_CORRELATION, or their mean difference
    UFBOOT_DIFFERENCE. The second test is for trees without signal, whose supports are noise that does not correlate.

    Parameters
    ----------
    alignment, constraint, brlen : as for `plltool.search`
    tree : the tree that a search found
    model : the models that a search found, `SearchResult.models`, or anything that `plltool.evaluate` takes
    replicates : number of resampled alignments
    seed : seed of the resampling and of the excursions
    listener : is called after every excursion; if it raises StopSearch, the supports come from the trees met so far
    checkpoint : folder that keeps the state of the excursions; the same call continues from there. Remove it with
        `plltool.remove_checkpoint`. None keeps nothing
    climb : is called, once the supports have settled, with the best tree that was met, if it is better than `tree`. The
        tree that it returns takes the place of `tree`, and more excursions are made until its supports settle, too. If
        it returns None, it was interrupted, and the supports are those of the tree before. It must be deterministic: a
        run that is resumed calls it again. Without it `tree` stays
    workers : number of excursions that are made at the same time, each in a process of its own; by default the number
        of threads, on a GPU 1; at most UFBOOT_STEP. Changes no digit
    device, precision, vw, threads, memory : see `plltool.Hardware`

    Returns
    -------
    Supports of the kind "ufboot"; `Supports.better` is a better tree, if one was met

    Raises InputError if alignment, tree, model or constraint cannot be used, the tree breaks the constraint, there are
    no replicates, or the checkpoint is damaged or belongs to another run, and DeviceError if the device cannot be used.
    """
    began = time.perf_counter()
    check_least("replicates", replicates, 1)
    data, models = resolve_inputs(alignment, model, brlen, rooted=True)
    refuse_site_rates(models, "the ultrafast bootstrap")
    asked = Hardware.of(**hardware)
    run = Run(data, models, brlen, asked, began, seed=seed, constraint=constraint, checkpoint=checkpoint)
    whole = run.task.read_tree(tree, "the tree given")
    supports = run.ask(_Ultrafast(run, whole, replicates, climb, workers, listener).attempt)
    if climb is None and supports.better is not None:
        log.warning("%s; a search that starts from it may find better ones yet", supports.better)
    return supports


@dataclass(eq=False)
class _Ultrafast:
    """The ultrafast bootstrap of a tree of all taxa, `whole`, with all that it was asked for."""

    run: Run
    whole: Tree
    replicates: int
    climb: Callable[[Tree], Tree | None] | None
    workers: int | None
    listener: Listener

    def attempt(self, hardware: Hardware) -> Supports:
        """The supports, made with this hardware, from the checkpoint on if there is one."""
        task, climb, target = self.run.task, self.climb, self.whole
        start, rng = task.reduce(target), generator(task.seed, ULTRAFAST)
        weights = draw_weights([part.weights for part in task.parts], self.replicates, rng)
        shares = share_hardware(self.workers, UFBOOT_STEP, task.parts, task.models, hardware)
        self._open = partial(open_excursions, ExcursionSetup(task, start, weights), shares)
        identity = {"adopts better trees": climb is not None, "batch": UFBOOT_STEP} | self.run.identity
        identity |= {"tree": describe_start(start), **describe_constraint(task.constraint)}
        identity |= {"replicates": self.replicates, **self.run.planned_place}
        self._store = store = self.run.open_checkpoint(identity)
        with store or nullcontext():
            saved = store.load(STATE, UfbootState) if store else None
            if saved is not None:
                log.info("resuming the ultrafast bootstrap after %d excursions", saved.n_made)
            self._at = at = saved or UfbootState(RellPool(self.replicates, rng))
            if climb is not None and at.adopted is not None:
                climbed = climb(task.whole(at.adopted))
                if climbed is None:
                    return self._count(target)
                target = climbed
            while self._settle(task.reduce(target)) and climb and at.has_better:
                log.info("%s", self._better())
                climbed = climb(task.whole(at.best))
                if climbed is None:
                    break
                target = climbed
                at.adopt()
        return replace(self._count(target), better=self._better() if at.has_better else None)

    def _better(self) -> BetterTree:
        return BetterTree(self._at.lnl, self._at.target_lnl, self.run.task.whole(self._at.best))

    def _count(self, target: Tree) -> Supports:
        """The supports of a tree of all taxa; identical sequences are put back in random order: no data prefer one."""
        task, pool = self.run.task, self._at.pool
        found = _tree_set(pool)
        if len(task.all_names) > len(task.names):
            whole = []
            for number in pool.chosen.tolist():
                groups = [pool.rng.permutation(group).tolist() for group in task.groups]
                whole.append(splits_of(drop_root(task.whole(pool.trees[number], groups))))
            found = make_tree_set(drop_root(target).names, whole)
        shares = spread_over_branches(target, frequencies(drop_root(target), found))
        return Supports(target, {UFBOOT: 100 * shares}, {UFBOOT: found.n_trees}, replicates=found)

    def _save(self) -> None:
        if self._store is not None:
            self._store.save(STATE, self._at.copy())

    def _settle(self, target: Tree) -> bool:
        """Make excursions until the supports of `target` settle, or cannot; False if the listener has ended the run."""
        at = self._at
        if at.is_over:
            return True
        with self._open() as make:
            if math.isinf(at.target_lnl):
                # one that was adopted has supports at once, from the trees met before
                for found in make([(None, [target], at.pool.keys)]):
                    at.take(found)
                    at.target_lnl = at.lnl
                if at.adopted is not None:
                    at.supports = self._inner_supports(target)
                    at.is_over = at.n_made >= UFBOOT_MOST
                    self._save()
            announce(ULTRAFAST_STAGE)
            try:
                self._go(target, make)
            except StopSearch:
                log.warning("the ultrafast bootstrap was interrupted after %d trees met", at.pool.n_met)
                return False
        return True

    def _go(self, target: Tree, make: Make) -> None:
        """Make batch after batch; each ends with a test."""
        began = time.perf_counter()
        at = self._at
        while not at.is_over:
            if at.n_made % UFBOOT_STEP == 0:
                at.starts = [tree for _, tree in at.optima]
            known, end = at.pool.keys, (at.n_made // UFBOOT_STEP + 1) * UFBOOT_STEP
            for found in make([(number, at.starts, known) for number in range(at.n_made, end)]):
                at.take(found)
                at.n_made += 1
                if at.n_made == end:
                    self._test(target)
                self._save()
                seconds = time.perf_counter() - began
                self.listener(Progress(ULTRAFAST_STAGE, at.n_made, at.lnl, 0, 0, seconds, UFBOOT_MOST))

    def _inner_supports(self, target: Tree) -> FloatArray:
        """(n_inner_branches,) the supports of the inner branches of a tree, from 0 to 1."""
        values = frequencies(drop_root(target), _tree_set(self._at.pool))
        return values[~np.isnan(values)]

    def _test(self, target: Tree) -> None:
        """Store the supports of the inner branches of `target`, and whether they have settled since the last test."""
        at, before, now = self._at, self._at.supports, self._inner_supports(target)
        at.supports = now
        if before is None or not len(now):
            at.is_over = not len(now)  # three taxa have no inner branch
            return
        agreement, difference = correlate(now, before), float(np.abs(now - before).mean())
        told = "ultrafast bootstrap: %d trees met, correlation of supports %.4f, mean difference %.2f %%"
        log.info(told, at.pool.n_met, agreement, 100 * difference)
        settled = agreement >= UFBOOT_CORRELATION or difference <= UFBOOT_DIFFERENCE
        at.is_over = at.n_made >= UFBOOT_MOST or (settled and at.n_made >= UFBOOT_LEAST)
        if not settled and at.is_over:
            log.warning("ultrafast bootstrap: supports have not settled after %d excursions", at.n_made)


def _tree_set(pool: RellPool) -> TreeSet:
    trees = {number: drop_root(tree) for number, tree in pool.trees.items()}
    splits = {number: splits_of(tree) for number, tree in trees.items()}
    names = next(iter(trees.values())).names
    return make_tree_set(names, [splits[number] for number in pool.chosen.tolist()])


@dataclass(frozen=True, eq=False)
class ExcursionSetup:
    """All that an excursion depends on, apart from its number and where it may start.

    The `start` tree decides which component of a mixture each pattern has in the screen; the `weights` are those of the
    resampled alignments, see `draw_weights`.
    """

    task: Task
    start: Tree
    weights: WeightArray

    def open_engine(self, hardware: Hardware) -> Holder:
        slots = search_slots(self.start.n_taxa)
        return open_engine(self.task.parts, self.task.models, slots, hardware, screening=True)[0]

    def begin(self, engine: Holder) -> UfbootSearch:
        task, random = self.task, partial(generator, self.task.seed, ULTRAFAST)
        likelihood = TreeLikelihood(self.start.copy(), task.models, engine, task.constraint)
        return UfbootSearch(likelihood, self.weights, random, task.parsimony_tree)


def begin_worker(setup: ExcursionSetup, hardware: Hardware) -> UfbootSearch:
    return setup.begin(setup.open_engine(hardware))


@contextmanager
def open_excursions(setup: ExcursionSetup, shares: Sequence[Hardware]) -> Iterator[Make]:
    """A function that makes excursions in the order of what is asked for.

    There is a process for each of `shares` of the hardware; on one device their number changes no bit.
    """
    if len(shares) == 1:
        with setup.open_engine(shares[0]) as engine:
            yield partial(starmap, setup.begin(engine))
        return
    with open_workers("excursions", begin_worker, [(setup, own) for own in shares], shares) as workers:
        yield partial(workers.map, heard=lambda *_: None)
