"""Bootstrap replicates: a search on each resampled alignment, one after another or at the same time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from plltool.alignment.alignment import IndexArray
from plltool.alignment.patterns import Patterns
from plltool.alignment.resample import draw_sites, take_sites
from plltool.engine.opencl.environment import child_environment, prepare_child
from plltool.hardware import Hardware
from plltool.io.checkpoint import Checkpoint
from plltool.model.model import Model
from plltool.optimise.likelihood import TreeLikelihood
from plltool.search.driver import TreeSearch, planned_stages
from plltool.search.effort import Plan
from plltool.search.parsimony import stepwise_addition
from plltool.search.progress import Forecast, ignore
from plltool.search.state import Arrays, Cursor, State, pack_tree, unpack_tree
from plltool.session import BOOTSTRAP, generator, open_engine, search_slots, until_memory_suffices
from plltool.tree.duplicates import restore_duplicates
from plltool.tree.topology import Tree
from plltool.workers import Workers

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
    seed: int
    unlinked: bool
    hardware: Hardware

    def draw(self, number: int) -> tuple[list[IndexArray], np.random.Generator]:
        """The sites of replicate `number`, from 0, and the source of its further choices."""
        rng = generator(self.seed, BOOTSTRAP, number)
        return draw_sites([len(part.site_pattern) for part in self.parts], rng), rng


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


class Replicator:
    """Makes replicates; what comes of one depends on the resampling and its number only."""

    def __init__(self, resampling: Resampling):
        prepare_child()
        self._resampling = resampling

    def __call__(self, number: int, report: Callable[[Any], bool] | None = None) -> Replicate:
        """Search the tree of replicate `number`, from 0: a parsimony tree of the resampled sites, then a climb.

        Patterns that were not drawn are left out. The last polish of a search is left out as well: it changes no
        topology.
        """
        asked = self._resampling
        sites, rng = asked.draw(number)
        parts = [take_sites(part, own) for part, own in zip(asked.parts, sites, strict=True)]
        masks = np.concatenate([part.masks for part in parts], axis=1)
        weights = np.concatenate([part.weights for part in parts])
        start = stepwise_addition(masks, weights, asked.names, rng, asked.plan.constraint)
        found = self._search(parts, start.unlink(len(parts)) if asked.unlinked else start, rng)
        tree = found.tree
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


def resume_replicates(
    make: Callable[[Iterable[int]], Replicates], most: int, names: Sequence[str], store: Checkpoint
) -> Replicates:
    """The first `most` replicates: those that the store has, and then those of the other numbers as `make` makes them.

    They are saved as they come.
    """
    with store:
        done = 0
        while done < most and (saved := store.load(f"replicate-{done + 1}")) is not None:
            yield Replicate.unpack(saved, names)
            done += 1
        with closing(make(range(done, most))) as made:
            for number, replicate in enumerate(made, start=done + 1):
                store.save(f"replicate-{number}", replicate)
                yield replicate


def replicate_in_turn(resampling: Resampling, numbers: Iterable[int]) -> Replicates:
    """The replicates of these numbers."""
    make = Replicator(resampling)
    yield from map(make, numbers)


def replicate_at_once(resampling: Resampling, numbers: Iterable[int], n_workers: int) -> Replicates:
    """What `replicate_in_turn` yields, bit for bit, from so many processes."""
    threads = resampling.hardware.threads or 1
    _log.info("replicates: %d at the same time, threads of each: %d", n_workers, threads)
    with Workers(n_workers, Replicator, (resampling,), child_environment(threads)) as workers:
        yield from workers.map(((number,) for number in numbers), lambda *_: None)
