"""An engine for models in which each pattern has one component: patterns sorted by their category.

Under +PSR a category is a rate, and in a screen (`optimise.screening`) it is the component that suits a pattern best. A
block of lanes shares its P matrices, so patterns of different categories cannot share a block. Here the patterns of a
category are a *part* of an engine: they are consecutive, padded to whole blocks, and have a P set with one component.
So the kernels are those of any engine with parts, and a CLA has one component. From the outside there are the parts of
the alignment, with the patterns in their own order. If patterns change their category, they are sorted again, into a
new engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from plltool.arrays import FloatArray, IndexArray, IntArray
from plltool.engine.base import EngineData
from plltool.engine.group import EngineGroup
from plltool.engine.layout import Layout
from plltool.engine.program import Request
from plltool.engine.requests import Answer, Parts, Requests, ShapedAnswer, of_parts
from plltool.engine.shards import ClasOfPatterns, PatternEngine
from plltool.errors import EngineError
from plltool.model.components import Components


@dataclass(frozen=True, eq=False)
class Sorting:
    """How patterns are sorted into *groups*: those of one part and one category.

    Attributes
    ----------
    order : (n_patterns,) the patterns, group by group, in their own order within a group
    part, category : (n_groups,) of each group, ascending; every part has a group
    sizes : patterns of each group
    """

    order: IndexArray
    part: IndexArray
    category: IndexArray
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, part_patterns: Sequence[int], category_of: IndexArray) -> Sorting:
        """Sort patterns of parts of these sizes by the category (n_patterns,) of each."""
        part_of = np.repeat(np.arange(len(part_patterns)), part_patterns)
        n_categories = int(category_of.max()) + 1
        groups, sizes = np.unique(part_of * n_categories + category_of, return_counts=True)
        order = np.lexsort([category_of, part_of])
        return cls(order, groups // n_categories, groups % n_categories, tuple(sizes.tolist()))

    @property
    def n_parts(self) -> int:
        return int(self.part[-1]) + 1

    def models(self, parts: Parts) -> list[Components]:
        """The model of each group, from those of the parts."""
        groups = zip(self.part.tolist(), self.category.tolist(), strict=True)
        return [parts[part].category(category) for part, category in groups]

    def lengths(self, lengths: FloatArray) -> FloatArray:
        """Lengths (n_branches,) of all parts or (n_parts, n_branches) as those of the groups."""
        lengths = np.asarray(lengths, dtype=np.float64)
        if lengths.ndim == 2 and len(lengths) == 1:
            return lengths[0]
        return of_parts(lengths, self.part)

    def add_up(self, values: FloatArray) -> FloatArray:
        """Values (n_groups, ...) as those of the parts (n_parts, ...)."""
        first = np.flatnonzero(np.diff(self.part, prepend=-1))
        return np.add.reduceat(values, first, axis=0)

    def unsort(self, values: FloatArray) -> FloatArray:
        """Values (n, n_patterns) of sorted patterns in the order of the patterns."""
        own = np.empty_like(values)
        own[:, self.order] = values
        return own


class SortedPatterns(Requests):
    """Requests about parts whose patterns are sorted; the groups are the parts of what is within."""

    _sorting: Sorting
    _within: PatternEngine | ClasOfPatterns

    def ask(self, request: Request, lengths: FloatArray) -> Answer:
        """Sums over the patterns of each part (n_parts, n_values); see `Requests.execute`."""
        sorting = self._sorting
        answer = self._within.ask(request.of_parts(sorting.part), sorting.lengths(lengths))
        return lambda: sorting.add_up(answer())

    def ask_sites(self, request: Request, lengths: FloatArray) -> Answer:
        """Values of patterns in their own order; see `Requests.execute_sites`."""
        sorting = self._sorting
        answer = self._within.ask_sites(request.of_parts(sorting.part), sorting.lengths(lengths))
        return lambda: sorting.unsort(answer())


class CategoryClas(SortedPatterns):
    """CLAs of patterns that are sorted by category; see `PreparedClas`."""

    def __init__(self, prepared: ClasOfPatterns, sorting: Sorting, lengths: FloatArray):
        self._within: ClasOfPatterns = prepared
        self._sorting = sorting
        self.n_parts = sorting.n_parts
        self.lengths = np.array(lengths, dtype=np.float64)

    def extend(self, program: IntArray, lengths: FloatArray) -> CategoryClas:
        """See `PreparedClas.extend`."""
        extended = self._within.extend(program, self._sorting.lengths(lengths))
        return CategoryClas(extended, self._sorting, self.lengths)


class CategoryEngine(SortedPatterns, EngineGroup[PatternEngine]):
    """Parts whose models have a component for each category; requests and errors are those of `Engine`.

    Parameters
    ----------
    make : makes an engine from data and the number of patterns of each part
    data : the patterns of all parts in their own order
    part_patterns : number of patterns of each part
    category_of : (n_patterns,) the first category of each pattern; by default all have category 0

    Attributes
    ----------
    n_parts : parts of the alignment
    part_patterns : as given
    weights : float64 (n_patterns,), in use
    """

    _within: PatternEngine

    def __init__(
        self,
        make: Callable[[EngineData, tuple[int, ...]], PatternEngine],
        data: EngineData,
        part_patterns: tuple[int, ...],
        category_of: IndexArray | None = None,
    ):
        self._make = make
        self._data = data
        self.n_parts = len(part_patterns)
        self.part_patterns = part_patterns
        self.weights = data.weights
        all_equal = np.zeros(len(data.weights), dtype=np.intp)
        super().__init__([self._sort(all_equal if category_of is None else category_of)])

    def _sort(self, category_of: IndexArray) -> PatternEngine:
        """Open the engine within, in which the patterns are sorted."""
        self._category_of = category_of
        self._sorting = Sorting.of(self.part_patterns, category_of)
        order = self._sorting.order
        codes = np.ascontiguousarray(self._data.codes[:, order])
        data = replace(self._data, codes=codes, weights=self.weights[order])
        self._within = self._make(data, self._sorting.sizes)
        return self._within

    def describe(self) -> dict[str, object]:
        """What a result file records of the layout."""
        return self._within.describe()

    # --- model and weights ----------------------------------------------------------------------------------

    def set_model(self, parts: Parts) -> None:
        """Use another model from now on; where it has other categories, the patterns are sorted again."""
        category_of = self._categories(parts)
        if not np.array_equal(category_of, self._category_of):
            before = self._within
            before.close()
            self.engines = [self._sort(category_of)]
            self._within.add_earlier(before.counters)
        self._n_components = [part.n_components for part in parts]
        self._within.set_model(self._sorting.models(parts))

    def _categories(self, parts: Parts) -> IndexArray:
        """(n_patterns,) the component of each pattern; the only one of a part if its model does not say."""
        categories = []
        for model, size in zip(parts, self.part_patterns, strict=True):
            category_of = np.zeros(size, dtype=np.intp) if model.category_of is None else model.category_of
            if len(category_of) != size:
                raise EngineError(f"the model has categories of {len(category_of)} patterns, expected {size}")
            categories.append(category_of)
        return np.concatenate(categories)

    def set_weights(self, weights: FloatArray) -> None:
        """Use other pattern weights from now on, float64 (n_patterns,)."""
        self._within.set_weights(weights[self._sorting.order])
        self.weights = np.array(weights, dtype=np.float64)

    # --- further requests -----------------------------------------------------------------------------------

    def ask_shaped(self, make: Callable[[Layout], Request], lengths: FloatArray) -> ShapedAnswer:
        """See `Holder.execute_shaped`; the request is a gradient: lnL, and what belongs to single components.

        The answer is for each part lnL, then (C, S, S) and (C, S) of its components; those without patterns get 0.
        """
        part = self._sorting.part
        answer = self._within.ask_shaped(lambda layout: make(layout).of_parts(part), self._sorting.lengths(lengths))
        return lambda: self._by_component(np.array(answer()))

    def _by_component(self, rows: FloatArray) -> list[FloatArray]:
        """Gradients (n_groups, ...) as those of the parts with all their components."""
        sorting, n_states = self._sorting, self._within.layout.n_states
        values = []
        for part, n_components in enumerate(self._n_components):
            own = sorting.part == part
            by_component = np.zeros((n_components, rows.shape[1] - 1))
            by_component[sorting.category[own]] = rows[own, 1:]
            matrices, masses = np.split(by_component, [n_states**2], axis=1)
            values.append(np.concatenate([rows[own, 0].sum(keepdims=True), matrices.ravel(), masses.ravel()]))
        return values

    def ask_likelihoods(self, program: IntArray, lengths: FloatArray, models: Sequence[Parts]) -> Answer:
        """lnL (n_models, n_parts) under each of several models with the categories in use; see `Holder.likelihoods`."""
        if any(not np.array_equal(self._categories(parts), self._category_of) for parts in models):
            raise EngineError("the models have different rate categories of sites")
        sorting = self._sorting
        own = [sorting.models(parts) for parts in models]
        answer = self._within.ask_likelihoods(program, sorting.lengths(lengths), own)
        return lambda: sorting.add_up(answer().T).T

    def prepare(self, operations: IntArray, lengths: FloatArray) -> CategoryClas:
        """CLAs for later requests; see `Engine.prepare`."""
        prepared = self._within.prepare(operations, self._sorting.lengths(lengths))
        return CategoryClas(prepared, self._sorting, lengths)
