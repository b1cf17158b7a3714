"""An engine for models in which each pattern has one rate (+PSR): patterns sorted by their rate category.

A block of lanes shares its P matrices, so patterns of different rates cannot share a block. Here the patterns of a
category are a *part* of an engine: they are consecutive, padded to whole blocks, and have a P set with one component.
So the kernels are those of any engine with parts, and a CLA has one component. From the outside there is one part,
with the patterns in their own order. If patterns change their category, they are sorted again, into a new engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from plltool.arrays import FloatArray, IndexArray, IntArray
from plltool.engine.base import Engine, EngineData, Parts
from plltool.engine.counters import Counters
from plltool.engine.group import EngineGroup
from plltool.engine.layout import Layout
from plltool.engine.prepared import PreparedClas
from plltool.engine.program import Request
from plltool.engine.requests import Requests
from plltool.errors import EngineError
from plltool.model.components import Components


class CategoryEngine(EngineGroup):
    """One part, whose model has a component for each rate category; requests and errors are those of `Engine`.

    Parameters
    ----------
    make : makes an engine from data and the number of patterns of each part
    data : the patterns in their own order

    Attributes
    ----------
    n_parts : 1
    weights : float64 (n_patterns,), in use
    """

    n_parts = 1

    def __init__(self, make: Callable[[EngineData, tuple[int, ...]], Engine], data: EngineData):
        self._make = make
        self._data = data
        self.weights = data.weights
        self._done = Counters()  # the work of engines before this one
        super().__init__([self._sort(np.zeros(len(data.weights), dtype=np.intp))])

    def _sort(self, category_of: IndexArray) -> Engine:
        """An engine in which the patterns are sorted by category, in their own order within it."""
        self._category_of = category_of
        self._used, sizes = np.unique(category_of, return_counts=True)
        self._order = np.argsort(category_of, kind="stable")
        codes = np.ascontiguousarray(self._data.codes[:, self._order])
        return self._make(replace(self._data, codes=codes, weights=self.weights[self._order]), tuple(sizes.tolist()))

    # --- what it is -----------------------------------------------------------------------------------------

    @property
    def _engine(self) -> Engine:
        """The only one."""
        return self.engines[0]

    @property
    def part_patterns(self) -> tuple[int, ...]:
        """Patterns of the part."""
        return (self.n_patterns,)

    def describe(self) -> dict[str, object]:
        """What a result file records of the layout."""
        return self._engine.describe()

    @property
    def counters(self) -> Counters:
        """The work of all engines so far, of which only one holds memory at a time."""
        total, now = Counters(), super().counters
        total.add(self._done)
        total.add(now)
        total.bytes_held, total.peak_bytes = now.bytes_held, max(self._done.peak_bytes, now.peak_bytes)
        return total

    # --- model and weights ----------------------------------------------------------------------------------

    def part_sites(self) -> FloatArray:
        """(1,) the sum of the weights."""
        return self.weights.sum(keepdims=True)

    def set_model(self, parts: Parts) -> None:
        """Use another model from now on; where it has other categories, the patterns are sorted again."""
        category_of = self._categories(parts[0])
        if not np.array_equal(category_of, self._category_of):
            self._done = self.counters
            self.close()
            self.engines = [self._sort(category_of)]
        self._n_components = parts[0].n_components
        self._engine.set_model(self._split(parts))

    def _categories(self, model: Components) -> IndexArray:
        """(n_patterns,) the component of each pattern; the only one if the model does not say."""
        category_of = model.category_of
        if category_of is None:
            category_of = np.zeros(self.n_patterns, dtype=np.intp)
        if len(category_of) != self.n_patterns:
            raise EngineError(f"the model has categories of {len(category_of)} patterns, expected {self.n_patterns}")
        return category_of

    def _split(self, parts: Parts) -> list[Components]:
        """The model of each category that has patterns."""
        return [parts[0].category(number) for number in self._used]

    def set_weights(self, weights: FloatArray) -> None:
        """Use other pattern weights from now on, float64 (n_patterns,)."""
        self._engine.set_weights(weights[self._order])
        self.weights = np.array(weights, dtype=np.float64)

    # --- requests -------------------------------------------------------------------------------------------

    def execute(self, request: Request, lengths: FloatArray) -> FloatArray:
        """Sums over all patterns (1, n_values); see `Requests.execute`."""
        return _add_up(self._engine.execute(_of_all(request), _shared(lengths)))

    def execute_shaped(self, make: Callable[[Layout], Request], lengths: FloatArray) -> list[FloatArray]:
        """See `Engine.execute_shaped`; the request is a gradient: lnL, and what belongs to single components.

        Returns lnL, then (C, S, S) and (C, S) of all components; those without patterns get 0.
        """
        rows = np.array(self._engine.execute_shaped(lambda layout: _of_all(make(layout)), _shared(lengths)))
        n_states = self._engine.layout.n_states
        by_component = np.zeros((self._n_components, rows.shape[1] - 1))
        by_component[self._used] = rows[:, 1:]
        matrices, masses = np.split(by_component, [n_states**2], axis=1)
        return [np.concatenate([rows[:, 0].sum(keepdims=True), matrices.ravel(), masses.ravel()])]

    def likelihoods(
        self, operations: IntArray, edge: tuple[int, int, int], lengths: FloatArray, models: Sequence[Parts]
    ) -> FloatArray:
        """lnL (n_models, 1) under each of several models with the categories in use; see `Engine.likelihoods`."""
        if any(not np.array_equal(self._categories(parts[0]), self._category_of) for parts in models):
            raise EngineError("the models have different rate categories of sites")
        own = [self._split(parts) for parts in models]
        return self._engine.likelihoods(operations, edge, lengths, own).sum(axis=1, keepdims=True)

    def execute_sites(self, request: Request, lengths: FloatArray) -> FloatArray:
        return _unsort(self._engine.execute_sites(request, _shared(lengths)), self._order)

    def prepare(self, operations: IntArray, lengths: FloatArray) -> CategoryClas:
        """CLAs for later requests; see `Engine.prepare`."""
        return CategoryClas(self._engine.prepare(operations, _shared(lengths)), self._order, lengths)


class CategoryClas(Requests):
    """CLAs of patterns that are sorted by category; see `PreparedClas`."""

    n_parts = 1

    def __init__(self, prepared: PreparedClas, order: IndexArray, lengths: FloatArray):
        self._prepared = prepared
        self._order = order
        self.lengths = np.array(lengths, dtype=np.float64)

    def extend(self, program: IntArray, lengths: FloatArray) -> CategoryClas:
        """See `PreparedClas.extend`."""
        return CategoryClas(self._prepared.extend(program, _shared(lengths)), self._order, self.lengths)

    def execute(self, request: Request, lengths: FloatArray) -> FloatArray:
        """Run a program that reads the CLAs; see `Requests.execute`."""
        return _add_up(self._prepared.execute(request, _shared(lengths)))

    def execute_sites(self, request: Request, lengths: FloatArray) -> FloatArray:
        return _unsort(self._prepared.execute_sites(request, _shared(lengths)), self._order)


def _of_all(request: Request) -> Request:
    """The request for all categories, which are the parts of the engine within."""
    return replace(request, parts=None)


def _shared(lengths: FloatArray) -> FloatArray:
    """Lengths (n_branches,) or (1, n_branches) of the one part, as those that all categories share."""
    return np.asarray(lengths, dtype=np.float64).reshape(-1)


def _add_up(values: FloatArray) -> FloatArray:
    """Values of each category as those of the one part."""
    return values.sum(axis=0, keepdims=True)


def _unsort(values: FloatArray, order: IndexArray) -> FloatArray:
    """Values (n, n_patterns) of sorted patterns in the order of the patterns."""
    own = np.empty_like(values)
    own[:, order] = values
    return own
