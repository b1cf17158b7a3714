"""Excursions of the ultrafast bootstrap: one after another in this process, or several at a time in others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import starmap
from typing import Any, TypeAlias

import numpy as np

from plltool.arrays import FloatArray
from plltool.engine.requests import Holder
from plltool.hardware import Hardware
from plltool.optimise.likelihood import TreeLikelihood
from plltool.run.engines import open_engine
from plltool.run.memory import search_slots
from plltool.run.sharing import open_workers
from plltool.run.task import Task
from plltool.seeds import ULTRAFAST, generator
from plltool.tree.topology import Tree
from plltool.tree_search.rell import WeightArray
from plltool.tree_search.ufboot_search import Excursion, UfbootSearch

Order: TypeAlias = tuple[int | None, Sequence[Tree], Set[bytes]]  # the arguments of an ExcursionMaker
Make: TypeAlias = Callable[[Iterable[Order]], Iterator[Excursion]]


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

    def random(self, number: int) -> np.random.Generator:
        """The generator of an excursion; number 0 of this purpose draws the resampled alignments."""
        return generator(self.task.seed, ULTRAFAST, number + 1)

    def fresh(self, weights: FloatArray, rng: np.random.Generator) -> Tree:
        return self.task.parsimony_tree(rng, weights=weights)


class ExcursionMaker:
    def __init__(self, setup: ExcursionSetup, engine: Holder):
        likelihood = TreeLikelihood(setup.start.copy(), setup.task.models, engine)
        self._search = UfbootSearch(likelihood, setup.weights, setup.random, setup.fresh, setup.task.constraint)

    def __call__(
        self,
        number: int | None,
        starts: Sequence[Tree],
        known: Set[bytes],
        report: Callable[[Any], bool] | None = None,
    ) -> Excursion:
        """See `UfbootSearch.make`; without a number the first of `starts` is met, an optimum."""
        return self._search.meet(starts[0]) if number is None else self._search.make(number, starts, known)


def begin_worker(setup: ExcursionSetup, hardware: Hardware) -> ExcursionMaker:
    return ExcursionMaker(setup, setup.open_engine(hardware))


@contextmanager
def open_excursions(setup: ExcursionSetup, shares: Sequence[Hardware]) -> Iterator[Make]:
    """A function that makes excursions in the order of what is asked for.

    There is a process for each of `shares` of the hardware; on one device their number changes no bit.
    """
    if len(shares) == 1:
        with setup.open_engine(shares[0]) as engine:
            yield partial(starmap, ExcursionMaker(setup, engine))
        return
    with open_workers("excursions", begin_worker, [(setup, own) for own in shares], shares) as workers:
        yield partial(workers.map, heard=lambda *_: None)
