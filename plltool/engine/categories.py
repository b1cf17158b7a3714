"""Engines with other parts than the alignment: patterns sorted by category, and invariable sites behind the patterns.

Under +PSR a category is a rate, in a screen (`TreeLikelihood.screen`) the component that suits a pattern best, and
under +SSF frequencies of states, with a component for each rate. A block of lanes shares its P matrices, so patterns of
different categories cannot share a block. Here the patterns of a category are a *part* of an engine: they are
consecutive, padded to whole blocks, and have a P set with the components of the category. So the kernels are those of
any engine with parts, and a CLA has no other components. From the outside there are the parts of the alignment, with
the patterns in their own order. If patterns change their category, they are sorted again, into a new engine.

A correction for ascertainment bias, see `plltool.model.checks`, is another such engine. It needs the likelihood
of an invariable site of each state. The engine within holds these sites as further *parts* of one pattern each, behind
the parts of the alignment, with the model and the lengths of the part that they belong to. Every request so returns lnL
of each invariable site beside the sums of the parts, with the same derivatives, and the chain rule makes the correction
and its derivatives of them: exactly, in every kind of request, and without a kernel of its own. From the outside there
are the parts of the alignment only.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from plltool.arrays import FloatArray, IndexArray, IntArray
from plltool.engine.base import EngineData
from plltool.engine.composite import Composite, Shard
from plltool.engine.contract import InstructionWord, Opcode
from plltool.engine.program import Request
from plltool.engine.requests import Answer, Holder, Parts
from plltool.errors import EngineError
from plltool.model.checks import Ascertainment


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
        shard, sizes = Shard.of(self.part_patterns, np.arange(self.n_patterns), category_of)
        data = replace(self._data, weights=self.weights).of_patterns(shard.patterns)
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
            self.own_counters.add_closed(before.counters)
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


_LENGTHS = {Opcode.EVALUATE: 0, Opcode.INSERT: 0, Opcode.DERIVATIVE: 1, Opcode.TRIPLET: 3}  # in which values are slopes
_GRADIENTS = (Opcode.RATE_MATRIX_GRADIENT, Opcode.MASS_GRADIENT)


class AscertainedEngine(Composite):
    """Parts of an alignment, some with a correction; requests and errors as for `Engine`.

    engine : holds the parts of the alignment, and then for each part with a correction the invariable sites, one part
        for each state in the order of states
    corrections : of each part of the alignment, None for no correction
    """

    only_adds = False

    def __init__(self, engine: Holder, corrections: Sequence[Ascertainment | None]):
        n_parts = len(corrections)
        n_corrected = sum(correction is not None for correction in corrections)
        n_states = (engine.n_parts - n_parts) // max(n_corrected, 1)
        parts = list(range(n_parts))
        self._corrections: list[tuple[int, Ascertainment, slice]] = []  # of a part, with its invariable sites within
        for part, correction in enumerate(corrections):
            if correction is not None:
                self._corrections.append((part, correction, slice(len(parts), len(parts) + n_states)))
                parts += [part] * n_states
        sizes = engine.part_patterns[:n_parts]
        shard = Shard(np.array(parts, dtype=np.intp), np.arange(sum(sizes)))
        super().__init__([engine], [shard], engine.weights[: sum(sizes)], sizes)

    def describe(self) -> dict[str, object]:
        return self.engines[0].describe()

    @property
    def _part_sites(self) -> FloatArray:
        """(n_parts,) number of sites of each part: the sum of its weights."""
        return np.add.reduceat(self.weights, np.cumsum((0, *self.part_patterns[:-1])))

    def _sums(self, answers: Sequence[FloatArray], request: Request) -> FloatArray:
        (values,), n_sites = answers, self._part_sites
        sums = values[: self.n_parts].copy()
        for part, correction, sites in self._corrections:
            if request.wants(part):
                sums[part] += _corrections_of(correction, n_sites[part], request.program, values[sites])
        return sums

    def _side_by_side(self, answers: Sequence[FloatArray], request: Request) -> FloatArray:
        """lnL with an equal share of the correction for each site; values that may be impossible are not corrected."""
        (values,), n_sites = answers, self._part_sites
        lnl = values[:, : self.n_patterns].copy()
        if request.impossible:
            return lnl
        of_parts = np.split(lnl, np.cumsum(self.part_patterns)[:-1], axis=1)
        by_part = values[:, self.n_patterns - self.n_parts :].T  # an invariable site at the number of its part
        for part, correction, sites in self._corrections:
            if request.wants(part):
                share = correction.correct(by_part[sites], n_sites[part]).value / n_sites[part]
                of_parts[part] += share[:, None]
        return lnl


def _corrections_of(correction: Ascertainment, n_sites: float, program: IntArray, values: FloatArray) -> FloatArray:
    """What a correction adds to every value of a program (n_values,), from values of invariable sites (n_states, n).

    A gradient in the model goes with the only EVALUATE of its program, and all other values belong to it.
    """
    added = np.zeros(values.shape[1])
    opcodes, results = program[:, InstructionWord.OPCODE], program[:, InstructionWord.RESULT]
    if np.isin(opcodes, _GRADIENTS).any():
        (at,) = results[opcodes == Opcode.EVALUATE]
        found = correction.correct(values[:, [at]], n_sites)
        added[:] = (found.shares * values).sum(axis=0)
        added[at] = found.value[0]
        return added
    for opcode, n in _LENGTHS.items():
        at = results[opcodes == opcode]
        if not len(at):
            continue
        has_lnl = (program[opcodes == opcode, InstructionWord.C] == 0) | (opcode != Opcode.DERIVATIVE)
        latest = np.maximum.accumulate(np.where(has_lnl, np.arange(len(at)), 0))  # with lnL, which is the same
        found = correction.correct(values[:, at[latest]], n_sites)
        added[at] = np.where(has_lnl, found.value, 0.0)
        slopes = [values[:, at + 1 + a] for a in range(n)]
        sums = [(found.shares * slope).sum(axis=0) for slope in slopes]
        for a in range(n):
            added[at + 1 + a] = sums[a]
        for k, (a, b) in enumerate([*((a, a) for a in range(n)), *combinations(range(n), 2)]):
            curves = values[:, at + 1 + n + k] + found.squares * slopes[a] * slopes[b]
            added[at + 1 + n + k] = (found.shares * curves).sum(axis=0) + found.products * sums[a] * sums[b]
    return added
