"""An engine for models in which each pattern has few of the components: patterns sorted by their category.

Under +PSR a category is a rate, in a screen (`TreeLikelihood.screen`) the component that suits a pattern best, and
under +SSF frequencies of states, with a component for each rate. A block of lanes shares its P matrices, so patterns of
different categories cannot share a block. Here the patterns of a category are a *part* of an engine: they are
consecutive, padded to whole blocks, and have a P set with the components of the category. So the kernels are those of
any engine with parts, and a CLA has no other components. From the outside there are the parts of the alignment, with
the patterns in their own order. If patterns change their category, they are sorted again, into a new engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from plltool.arrays import FloatArray, IndexArray, IntArray
from plltool.engine.base import EngineData
from plltool.engine.composite import Composite, Shard
from plltool.engine.requests import Answer, Holder, Parts
from plltool.errors import EngineError


def sort_patterns(part_patterns: Sequence[int], category_of: IndexArray) -> tuple[Shard, tuple[int, ...]]:
    """Sort patterns of parts of these sizes into groups of one part and one category (n_patterns,) each.

    Returns the groups as the parts of an engine, and their sizes. Within a group patterns keep their order.
    """
    part_of = np.repeat(np.arange(len(part_patterns)), part_patterns)
    n_categories = int(category_of.max()) + 1
    groups, sizes = np.unique(part_of * n_categories + category_of, return_counts=True)
    order = np.lexsort([category_of, part_of])
    return Shard(groups // n_categories, order, groups % n_categories), tuple(sizes.tolist())


class CategoryEngine(Composite):
    """Parts whose models have components for each category; requests and errors as for `Engine`.

    `make` makes an engine from data and the number of patterns of each part. `category_of` (n_patterns,) are the first
    categories, by default 0.
    """

    def __init__(
        self,
        make: Callable[[EngineData, tuple[int, ...]], Holder],
        data: EngineData,
        part_patterns: tuple[int, ...],
        category_of: IndexArray | None = None,
    ):
        super().__init__([], [], data.weights, part_patterns)
        self._make = make
        self._data = data
        self._sort(np.zeros(len(data.weights), dtype=np.intp) if category_of is None else category_of)

    def _sort(self, category_of: IndexArray) -> None:
        """Open the engine within, in which the patterns are sorted."""
        self._category_of = category_of
        shard, sizes = sort_patterns(self.part_patterns, category_of)
        codes = np.ascontiguousarray(self._data.codes[:, shard.patterns])
        data = replace(self._data, codes=codes, weights=self.weights[shard.patterns])
        self.engines, self.shards = [self._make(data, sizes)], [shard]

    def describe(self) -> dict[str, object]:
        return self.engines[0].describe()

    def set_model(self, parts: Parts) -> None:
        """Use another model from now on; where it has other categories, the patterns are sorted again."""
        category_of = self._categories(parts)
        if not np.array_equal(category_of, self._category_of):
            (before,) = self.engines
            before.close()
            self._sort(category_of)
            self.add_earlier(before.counters)
        super().set_model(parts)

    def _categories(self, parts: Parts) -> IndexArray:
        """(n_patterns,) the category of each pattern; the only one of a part if its model does not say."""
        categories = []
        for model, size in zip(parts, self.part_patterns, strict=True):
            category_of = np.zeros(size, dtype=np.intp) if model.category_of is None else model.category_of
            if len(category_of) != size:
                raise EngineError(f"the model has categories of {len(category_of)} patterns, expected {size}")
            categories.append(category_of)
        return np.concatenate(categories)

    def ask_likelihoods(self, program: IntArray, lengths: FloatArray, models: Sequence[Parts]) -> Answer:
        """All models have the categories in use."""
        if any(not np.array_equal(self._categories(parts), self._category_of) for parts in models):
            raise EngineError("the models have different rate categories of sites")
        return super().ask_likelihoods(program, lengths, models)

    def _add_rows(self, answers: Sequence[list[FloatArray]]) -> list[FloatArray]:
        """For each part lnL, then (C, S, S) and (C, S) of its components; those without patterns get 0."""
        (shard,), n_states, rows = self.shards, self.layout.n_states, np.array(answers[0])
        assert shard.categories is not None
        values = []
        for part, model in enumerate(self._models):
            own = shard.parts == part
            by_category = np.zeros((model.n_categories, rows.shape[1] - 1))
            by_category[shard.categories[own]] = rows[own, 1:]
            matrices, masses = np.split(by_category, [model.n_each * n_states**2], axis=1)
            values.append(np.concatenate([rows[own, 0].sum(keepdims=True), matrices.ravel(), masses.ravel()]))
        return values
