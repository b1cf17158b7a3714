"""Parts of an alignment that are better described by a common model are merged.

    greedy       in each round all pairs of parts are tried, and the best one is merged (Lanfear et al. 2012)
    rcluster     likewise, but only those pairs are tried whose parts are most similar in their overall rate: a share of
                 all pairs (relaxed clustering, Lanfear et al. 2014, with the rate as the only measure)
    rclusterf    as rcluster, but in each round all good pairs that share no part are merged, the best ones first

Parts are merged as long as the score of the whole scheme falls, under the default model of their data. It is that of
the sum of lnL on the branch lengths of the scheme before any merge. Parts with numbers of unseen sites (+ASC_FELS,
+ASC_STAM) stay apart, and so do parts of codons if a codon of one has columns between those of a codon of the other.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from plltool.alignment.patterns import compress
from plltool.analyses.selection.model_fits import Carry, Fit, Improve, ModelFitter, PartData
from plltool.constants import GREEDY, RCLUSTERF
from plltool.model.candidates import information_score
from plltool.model.partition import Part
from plltool.progress import announce, log
from plltool.run.model_choice import Merge

MERGE_PRECISION = 0.1  # lnL, of two parts that may share a model


@dataclass(frozen=True, eq=False)
class PartGroup:
    """Parts that share a model, in the order of the scheme, and the fit of the model to all of them."""

    parts: tuple[Part, ...]
    fit: Fit

    @property
    def name(self) -> str:
        return "_".join(part.name for part in self.parts)

    @property
    def ranges(self) -> str:
        return ", ".join(part.ranges for part in self.parts)

    @property
    def n_sites(self) -> int:
        return sum(len(part.sites) for part in self.parts)

    @property
    def rate(self) -> float:
        """The logarithm of the mean branch length."""
        return math.log(self.fit.overall_rate)


class Grouping:
    """Groups of parts, as merged so far, in the order of their first parts, and the score of all of them.

    `n_shared` is the number of free branch lengths that the groups share.
    """

    def __init__(self, groups: Sequence[PartGroup], criterion: str, n_shared: int):
        self.groups = list(groups)
        self.merges: list[Merge] = []
        self.n_sites = sum(group.n_sites for group in groups)
        self._criterion = criterion
        self.n_shared = n_shared
        self._order = {part.name: number for number, group in enumerate(groups) for part in group.parts}
        self._tried: dict[frozenset[str], PartGroup] = {}

    @property
    def n_parameters(self) -> int:
        return self._count(self.groups)

    def score(self, groups: Sequence[PartGroup] | None = None) -> float:
        """The score of a scheme, by default of this one; lower is better."""
        groups = self.groups if groups is None else groups
        lnl = sum(group.fit.lnl for group in groups)
        return information_score(self._criterion, lnl, self._count(groups), self.n_sites)

    def _count(self, groups: Sequence[PartGroup]) -> int:
        return self.n_shared + sum(group.fit.n_parameters for group in groups)

    def merge(self, fitter: ModelFitter, algorithm: str, percent: float) -> None:
        while len(self.groups) > 1:
            announce(f"merging {len(self.groups)} parts")
            pairs = self._pairs()
            if algorithm != GREEDY:
                # the share of the pairs whose overall rates differ least, at least one pair
                n = math.ceil(len(pairs) * percent / 100)
                order = sorted(range(len(pairs)), key=lambda number: abs(pairs[number][0].rate - pairs[number][1].rate))
                pairs = [pairs[number] for number in sorted(order[:n])]
            self._try(pairs, fitter)
            before = self.score()
            scores = [self.score(self._with(self._tried[_members(pair)])) for pair in pairs]
            ranked = sorted((score, number) for number, score in enumerate(scores) if score < before)
            if not ranked:
                break
            taken: set[str] = set()
            for _, number in ranked if algorithm == RCLUSTERF else ranked[:1]:
                members = _members(pairs[number])
                if not members & taken:
                    taken |= members
                    self.groups = self._with(self._tried[members])
                    first, second = (group.name for group in pairs[number])
                    self.merges.append(Merge(first, second, self.score()))
                    log.info("merged %s and %s: %s %.3f", first, second, self._criterion, self.merges[-1].score)

    def _pairs(self) -> list[tuple[PartGroup, PartGroup]]:
        """All pairs of groups that the same model can describe."""
        corrections = [(group, group.fit.spec.ascertainment) for group in self.groups]
        able = [group for group, own in corrections if own is None or not own.unseen]  # those are of one part
        pairs = [pair for pair in itertools.combinations(able, 2) if pair[0].fit.spec == pair[1].fit.spec]
        return [pair for pair in pairs if _keeps_codons(pair)]

    def _try(self, pairs: Sequence[tuple[PartGroup, PartGroup]], fitter: ModelFitter) -> None:
        """Fit the model to the pairs that have not been tried yet, from the values of either group."""
        new = [pair for pair in pairs if _members(pair) not in self._tried]
        if not new:
            return
        datasets = [_join(pair) for pair in new]
        carries = []
        for pair, data in zip(new, datasets, strict=True):
            own = [fitter.fit_of(data, group.fit.model, group.fit.tree, -math.inf) for group in pair]
            carries.append(Carry((pair[0].fit.spec,), own, exact=True))
        starts = [start for (start,) in fitter.run(carries)]
        fits = fitter.run([Improve(start, MERGE_PRECISION) for start in starts])
        for pair, fit in zip(new, fits, strict=True):
            parts = sorted((*pair[0].parts, *pair[1].parts), key=lambda part: self._order[part.name])
            self._tried[_members(pair)] = PartGroup(tuple(parts), fit)

    def _with(self, merged: PartGroup) -> list[PartGroup]:
        """The groups, with one in place of those that it joins."""
        own = {part.name for part in merged.parts}
        kept = [group for group in self.groups if group.parts[0].name not in own]
        return sorted([*kept, merged], key=lambda group: self._order[group.parts[0].name])


def distinct_names(groups: Sequence[PartGroup]) -> list[str]:
    """The name of each group, with a number where another group has it: of parts a, b and a_b two may be called a_b."""
    names: list[str] = []
    for group in groups:
        numbered = (f"{group.name}_{number}" for number in itertools.count(2))
        taken = {*names, *(other.name for other in groups if len(other.parts) < len(group.parts))}
        names.append(next(name for name in itertools.chain([group.name], numbered) if name not in taken))
    return names


def _keeps_codons(pair: tuple[PartGroup, PartGroup]) -> bool:
    """Whether both groups as one part, whose columns are read from left to right, have the same codons."""
    columns = np.concatenate([part.columns for group in pair for part in group.parts])
    return bool(np.array_equal(np.sort(columns.ravel()).reshape(columns.shape), columns[np.argsort(columns[:, 0])]))


def _members(pair: tuple[PartGroup, PartGroup]) -> frozenset[str]:
    return frozenset(part.name for group in pair for part in group.parts)


def _join(pair: tuple[PartGroup, PartGroup]) -> PartData:
    """The data of both groups, which have the same states."""
    parts = [part for group in pair for part in group.parts]
    codes = np.concatenate([part.alignment.codes for part in parts], axis=1)
    return PartData(compress(replace(parts[0].alignment, codes=codes)))
