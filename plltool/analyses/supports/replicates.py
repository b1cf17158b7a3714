"""Bootstrap replicates: a search on each resampled alignment, one after another or at the same time.

In the rapid bootstrap (Stamatakis, Hoover & Rougemont 2008) a search starts from the tree of an earlier replicate,
which is close to where it ends, and the model is held. RAPID_CHAINS such chains run side by side. After RAPID_LENGTH
replicates a chain starts again from a parsimony tree, so that no start tree influences all of its replicates.

Branches about which the sites of a replicate say nothing are drawn at random, so that they do not depend on the tree
from which the search started.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from itertools import chain, starmap
from typing import Any, TypeAlias

import numpy as np

from plltool.alignment.patterns import Patterns, Urn, take_patterns
from plltool.codec import saved
from plltool.constants import RAPID_CHAINS, START_EPSILON
from plltool.engine.requests import Holder
from plltool.errors import CheckpointError
from plltool.hardware import Hardware
from plltool.io.checkpoint import Checkpoint
from plltool.model.model import Model
from plltool.optimise.lengths import smooth
from plltool.optimise.likelihood import TreeLikelihood
from plltool.optimise.models import optimise_model
from plltool.progress import Forecast, ignore, log
from plltool.run.memory import ask_engine, open_workers, search_slots
from plltool.run.task import Task
from plltool.seeds import BOOTSTRAP, RAPID, generator
from plltool.tree.moves import randomise_short_branches
from plltool.tree.topology import Tree, restrict_tree
from plltool.tree_search.climb import explore_roots
from plltool.tree_search.effort import SearchPlan
from plltool.tree_search.stages import TreeSearch, planned_stages
from plltool.tree_search.state import ClimbState, Cursor

REPLICATE_UNDECIDED = 0.1  # substitutions on a branch that carries no information; one supporting site gives about 1
RAPID_LENGTH = 10  # replicates of a chain before it starts again (Stamatakis, Hoover & Rougemont 2008)
NAME = "replicate-"  # and the number, from 1: what a replicate is called in a checkpoint


@saved()
@dataclass(frozen=True, eq=False)
class Replicate:
    """The tree of all taxa of one replicate, its lnL on the resampled alignment, and whether a checkpoint kept it."""

    tree: Tree
    lnl: float
    kept: bool = False


Replicates: TypeAlias = Generator[Replicate, None, None]
Order: TypeAlias = tuple[int, Tree | None]  # the arguments of a Replicator


@dataclass(frozen=True, eq=False)
class Replicator:
    """Makes replicates; each depends only on these fields, its number, and the tree that it starts from.

    The plan has one start tree and the task's constraint.
    """

    task: Task
    plan: SearchPlan
    rapid: bool
    hardware: Hardware

    def __call__(self, number: int, before: Tree | None, report: Callable[[Any], bool] | None = None) -> Replicate:
        """Search the tree of replicate `number`, counted from 0.

        The climb starts from the tree `before`, or else from a parsimony tree of the resampled sites. Patterns that
        were not drawn are left out, and so is the polish at the end of a search, which changes no topology, unless the
        tree has a root, which the polish may move.
        """
        task, rng = self.task, generator(self.task.seed, BOOTSTRAP, number)
        urns = [Urn(part.weights) for part in task.parts]
        weights = [urn.draw(urn.size, rng) for urn in urns]
        parts = [take_patterns(part, own) for part, own in zip(task.parts, weights, strict=True)]
        start = task.parsimony_tree(rng, parts) if before is None else restrict_tree(before, task.names)
        models = [model.of_patterns(np.flatnonzero(own)) for model, own in zip(task.models, weights, strict=True)]
        found = self._search(parts, models, start, rng)
        return Replicate(self._randomise_undecided(task.whole(found.tree), rng), found.lnl)

    def most_at_once(self, most: int) -> int:
        """The number of replicates, of `most` in all, that can be made at the same time."""
        return min(most, RAPID_CHAINS) if self.rapid else most

    def tree_before(self, number: int, made: Sequence[Tree]) -> Tree | None:
        """The tree that the search of replicate `number` starts from, out of the trees of replicates 0, 1, ...

        None if it starts from a parsimony tree.
        """
        is_first = not self.rapid or number // RAPID_CHAINS % RAPID_LENGTH == 0
        return None if is_first else made[number - RAPID_CHAINS]

    def _search(self, parts: list[Patterns], given: list[Model], start: Tree, rng: np.random.Generator) -> ClimbState:
        plan, drawn = self.plan, rng.bit_generator.state

        def climb(engine: Holder) -> ClimbState:
            rng.bit_generator.state = drawn
            likelihood = TreeLikelihood(start.copy(), [model.copy() for model in given], engine, plan.constraint)
            search = TreeSearch(likelihood, plan, Forecast(planned_stages(plan)), ignore, Cursor())
            found = search.climb()
            if plan.perturbations:
                found = search.perturb(rng)
            return search.polish() if likelihood.is_rooted else found

        return ask_engine(climb, parts, given, search_slots(start.n_taxa), self.hardware, screening=True)

    def _randomise_undecided(self, tree: Tree, rng: np.random.Generator) -> Tree:
        """The tree of all taxa with random branches where the drawn sites say nothing.

        Otherwise these branches would be those of the start tree: of an earlier replicate, whose sites may have
        supported them, or of a parsimony tree, which does not have all resolutions with the same probability. Sequences
        that are identical in the alignment would stay together even where the drawn sites do not tell them from others.
        If the new tree breaks the constraint, the old one is returned.
        """
        task = self.task
        n_sites = np.array([part.weights.sum() for part in task.parts])
        least = REPLICATE_UNDECIDED / (n_sites if task.unlinked else n_sites.sum())
        drawn = randomise_short_branches(tree, least, rng)
        return drawn if task.whole_constraint is None or task.whole_constraint.is_obeyed_by(drawn) else tree


def hold_models(make: Replicator) -> Replicator:
    """Makes replicates with models that are optimised once, on a parsimony tree of all sites, and then held."""
    task = make.task
    start = task.parsimony_tree(generator(task.seed, RAPID))

    def optimise(engine: Holder) -> list[Model]:
        models = [model.copy() for model in task.models]
        likelihood = TreeLikelihood(start.copy(), models, engine)
        lnl = smooth(likelihood, START_EPSILON)
        if likelihood.is_rooted:
            explore_roots(likelihood, lnl)
        optimise_model(likelihood, epsilon=START_EPSILON)
        return models

    models = ask_engine(optimise, task.parts, task.models, search_slots(start.n_taxa), make.hardware)
    return replace(make, task=replace(task, models=models), plan=replace(make.plan, optimise_parameters=False))


def count_kept(store: Checkpoint | None) -> int:
    """The number of replicates that a checkpoint keeps, including any that are missing or damaged before the last."""
    numbers = [name.removeprefix(NAME) for name in store.saved_names()] if store else []
    return max((int(number) for number in numbers if number.isdecimal()), default=0)


def make_replicates(make: Replicator, most: int, shares: Sequence[Hardware], store: Checkpoint | None) -> Replicates:
    """The first `most` replicates, in order: those that the store keeps, then new ones, which are saved there.

    There is a process for each of `shares` of the hardware; on one device their number changes no bit. A kept replicate
    that is missing or damaged is made again.
    """
    made: list[Tree] = []
    orders = ((number, make.tree_before(number, made)) for number in range(min(most, count_kept(store)), most))
    with store or nullcontext(), closing(_make_at_once(make, orders, shares)) as new:
        for replicate in chain(_restore(make, min(most, count_kept(store)), store, made), new):
            if store and not replicate.kept:
                store.save(f"{NAME}{len(made) + 1}", replicate)
            made.append(replicate.tree)
            yield replicate


def _restore(make: Replicator, number: int, store: Checkpoint | None, made: Sequence[Tree]) -> Iterator[Replicate]:
    """The first `number` replicates from the store; `made` are the trees of those before each."""
    for k in range(number):
        assert store is not None, "there are no kept replicates without it"
        try:
            saved = store.load(f"{NAME}{k + 1}", Replicate)
        except CheckpointError:  # a warning has said what is wrong
            saved = None
        if saved is None:
            log.warning("%s: replicate %d is missing or damaged and is computed again", store.folder, k + 1)
        yield replace(saved, kept=True) if saved else make(k, make.tree_before(k, made))


def _make_at_once(make: Replicator, orders: Iterable[Order], shares: Sequence[Hardware]) -> Replicates:
    """New replicates, by a process for each of the shares if there are several."""
    if len(shares) == 1:
        yield from starmap(make, orders)
        return
    arguments = [(make.task, make.plan, make.rapid, own) for own in shares]
    with open_workers("replicates", Replicator, arguments, shares) as workers:
        yield from workers.map(orders, lambda *_: None, RAPID_CHAINS if make.rapid else None)
