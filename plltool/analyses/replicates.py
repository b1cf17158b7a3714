"""Bootstrap replicates: a search on each resampled alignment, one after another or at the same time.

The rapid bootstrap (Stamatakis, Hoover & Rougemont 2008) lets a search begin with the tree of an earlier replicate,
which is near to where it ends, and holds the model. RAPID_CHAINS of such chains run side by side; every RAPID_LENGTH
replicates a chain begins anew, lest one start tree have a say in all of them.

What its own sites leave open a replicate draws by chance, lest the tree that its search began with decide it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from plltool.alignment.alignment import IndexArray
from plltool.alignment.patterns import Patterns
from plltool.alignment.resample import draw_sites, take_sites
from plltool.constants import RAPID_CHAINS, RAPID_LENGTH, REPLICATE_UNDECIDED, START_EPSILON
from plltool.engine.opencl.environment import child_environment
from plltool.hardware import Hardware
from plltool.io.checkpoint import Checkpoint
from plltool.model.model import Model
from plltool.optimise.lengths import smooth
from plltool.optimise.likelihood import TreeLikelihood
from plltool.optimise.parameters import optimise_model
from plltool.run.engines import open_engine
from plltool.run.memory import search_slots, until_memory_suffices
from plltool.run.seeds import BOOTSTRAP, RAPID, generator
from plltool.run.workers import Workers
from plltool.tree.duplicates import restore_duplicates, restrict_tree
from plltool.tree.random_tree import resolve_anew
from plltool.tree.topology import Tree
from plltool.tree_search.driver import TreeSearch, planned_stages
from plltool.tree_search.effort import Plan
from plltool.tree_search.parsimony import stepwise_addition
from plltool.tree_search.progress import Forecast, ignore
from plltool.tree_search.state import Arrays, Cursor, State, pack_tree, unpack_tree

_log = logging.getLogger("plltool")


@dataclass(frozen=True, eq=False)
class Resampling:
    """All that a replicate depends on besides its number.

    Attributes
    ----------
    all_names, names : of all taxa, and of those that are searched: identical sequences once
    groups : the taxa of `all_names` that each of `names` stands for, see `without_duplicates`
    parts : the patterns of each part
    models : of each part; a replicate's search begins with their values
    plan : of a replicate's search, with one start tree and the constraint on `names`
    rapid : whether searches begin with the trees of earlier replicates
    seed : of all replicates
    unlinked : whether each part has branch lengths of its own
    hardware : of a replicate's search
    """

    all_names: tuple[str, ...]
    names: tuple[str, ...]
    groups: list[list[int]]
    parts: list[Patterns]
    models: list[Model]
    plan: Plan
    rapid: bool
    seed: int
    unlinked: bool
    hardware: Hardware

    def draw(self, number: int) -> tuple[list[IndexArray], np.random.Generator]:
        """The sites of replicate `number`, from 0, and the source of its further choices."""
        rng = generator(self.seed, BOOTSTRAP, number)
        return draw_sites([len(part.site_pattern) for part in self.parts], rng), rng

    def parsimony_tree(self, parts: Sequence[Patterns], rng: np.random.Generator) -> Tree:
        """A start tree for these patterns of each part."""
        masks = np.concatenate([part.masks for part in parts], axis=1)
        weights = np.concatenate([part.weights for part in parts])
        tree = stepwise_addition(masks, weights, self.names, rng, self.plan.constraint)
        return tree.unlink(len(parts)) if self.unlinked else tree

    def tree_before(self, number: int, made: Sequence[Tree]) -> Tree | None:
        """The one of the trees `made`, from replicate 0 on, that replicate `number` begins with; None for none."""
        begins = not self.rapid or number // RAPID_CHAINS % RAPID_LENGTH == 0
        return None if begins else made[number - RAPID_CHAINS]


@dataclass(frozen=True, eq=False)
class Replicate:
    """What one replicate led to: the tree of all taxa, and its lnL on the resampled alignment."""

    tree: Tree
    lnl: float

    @property
    def best(self) -> Tree:
        """The tree."""
        return self.tree

    def pack(self) -> Arrays:
        """The replicate as arrays, of which `unpack` makes it again, bit for bit."""
        return pack_tree("tree", self.tree) | {"lnl": np.array(self.lnl)}

    @classmethod
    def unpack(cls, packed: Mapping[str, npt.NDArray[Any]], names: Sequence[str]) -> Replicate:
        """The replicate that was packed, its taxa being `names`."""
        return cls(unpack_tree("tree", packed, names), float(packed["lnl"]))


Replicates: TypeAlias = Generator[Replicate, None, None]
Task: TypeAlias = tuple[int, Tree | None]  # the arguments of a Replicator


class Replicator:
    """Makes replicates; what comes of one depends on the resampling, its number, and the tree before it."""

    def __init__(self, resampling: Resampling):
        self._resampling = resampling

    def __call__(
        self, number: int, before: Tree | None, report: Callable[[Any], bool] | None = None
    ) -> Replicate:
        """Search the tree of replicate `number`, from 0: a parsimony tree of the resampled sites, then a climb.

        The climb begins with the tree `before` instead, where there is one. Patterns that were not drawn are left out.
        The last polish of a search is left out as well: it changes no topology.
        """
        asked = self._resampling
        sites, rng = asked.draw(number)
        parts = [take_sites(part, own) for part, own in zip(asked.parts, sites, strict=True)]
        start = asked.parsimony_tree(parts, rng) if before is None else restrict_tree(before, asked.names)
        found = self._search(parts, start, rng)
        tree = self._forget_the_undecided(found.tree, rng)
        if len(asked.all_names) > len(asked.names):  # which of three identical ones are closest is nobody's finding
            groups = [rng.permutation(group).tolist() for group in asked.groups]
            tree = restore_duplicates(tree, asked.all_names, groups)
        return Replicate(tree, found.lnl)

    def _search(self, parts: list[Patterns], start: Tree, rng: np.random.Generator) -> State:
        """Climb from a start tree."""
        asked, drawn = self._resampling, rng.bit_generator.state

        def attempt(hardware: Hardware) -> State:
            rng.bit_generator.state = drawn
            models = [model.copy() for model in asked.models]
            engine, _ = open_engine(parts, models, search_slots(len(asked.names)), hardware)
            with engine:
                likelihood = TreeLikelihood(start.copy(), models, engine)
                search = TreeSearch(likelihood, asked.plan, Forecast(planned_stages(asked.plan)), ignore, Cursor())
                found = search.climb()
                if asked.plan.perturbations:
                    found, _ = search.perturb(rng)
                return found

        return until_memory_suffices(attempt, asked.hardware)

    def _forget_the_undecided(self, tree: Tree, rng: np.random.Generator) -> Tree:
        """The tree with branches by chance where the drawn sites say nothing.

        It has those of the tree that the search began with otherwise: an earlier replicate's, whose sites may have said
        something, or a parsimony tree's, which not all resolutions are as likely to come from. A tree that would break
        the constraint stays as it is.
        """
        asked = self._resampling
        n_sites = np.array([len(part.site_pattern) for part in asked.parts])
        least = REPLICATE_UNDECIDED / (n_sites if asked.unlinked else n_sites.sum())
        anew = resolve_anew(tree, least, rng)
        binding = asked.plan.constraint
        return anew if binding is None or binding.is_obeyed_by(anew) else tree


def hold_models(resampling: Resampling, hardware: Hardware) -> Resampling:
    """The same, with model parameters that are optimised once, on a parsimony tree of all sites, by that hardware."""
    start = resampling.parsimony_tree(resampling.parts, generator(resampling.seed, RAPID))

    def attempt(hardware: Hardware) -> list[Model]:
        models = [model.copy() for model in resampling.models]
        engine, _ = open_engine(resampling.parts, models, search_slots(len(resampling.names)), hardware)
        with engine:
            likelihood = TreeLikelihood(start.copy(), models, engine)
            smooth(likelihood, START_EPSILON)
            optimise_model(likelihood, epsilon=START_EPSILON)
        return models

    models = until_memory_suffices(attempt, hardware)
    return replace(resampling, models=models, plan=replace(resampling.plan, optimise_parameters=False))


def most_at_once(most: int, rapid: bool) -> int:
    """How many of `most` replicates can be made at the same time."""
    return min(most, RAPID_CHAINS) if rapid else most


def make_replicates(resampling: Resampling, most: int, n_workers: int, store: Checkpoint | None) -> Replicates:
    """The first `most` replicates: those that the store has, then others, so many at the same time; bits are the same.

    They are saved as they come.
    """
    made: list[Tree] = []
    with store or nullcontext():
        while store and len(made) < most and (saved := store.load(_name(len(made)))) is not None:
            replicate = Replicate.unpack(saved, resampling.all_names)
            made.append(replicate.tree)
            yield replicate
        tasks = ((number, resampling.tree_before(number, made)) for number in range(len(made), most))
        make = partial(_make_at_once, n_workers=n_workers) if n_workers > 1 else _make_in_turn
        with closing(make(resampling, tasks)) as new:
            for replicate in new:
                if store:
                    store.save(_name(len(made)), replicate)
                made.append(replicate.tree)
                yield replicate


def _name(number: int) -> str:
    return f"replicate-{number + 1}"


def _make_in_turn(resampling: Resampling, tasks: Iterable[Task]) -> Replicates:
    make = Replicator(resampling)
    for number, before in tasks:
        yield make(number, before)


def _make_at_once(resampling: Resampling, tasks: Iterable[Task], n_workers: int) -> Replicates:
    threads = resampling.hardware.threads or 1
    _log.info("replicates: %d at the same time, threads of each: %d", n_workers, threads)
    ahead = RAPID_CHAINS if resampling.rapid else None
    with Workers(n_workers, Replicator, (resampling,), child_environment(threads)) as workers:
        yield from workers.map(tasks, lambda *_: None, ahead)
