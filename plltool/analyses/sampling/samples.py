"""What chains have sampled: trees and numbers of the cold chain of each run, and whether runs agree.

Effective sizes and R-hat are those of Vehtari, Gelman, Simpson, Carpenter & Bürkner 2021, Rank-normalization, folding,
and localization: an improved R-hat, Bayesian Analysis 16:667. Values are (n_runs, n_samples): each run is halved, and
values are replaced by normal scores of their ranks among all.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from plltool.analyses.sampling.state import Sample, StateSpace
from plltool.analyses.sampling.tree import Topology
from plltool.arrays import FloatArray
from plltool.codec import saved
from plltool.io.newick_writer import written_label

FEWEST_SAMPLES = 8  # of a run; with fewer nothing can be said
COMMON_SHARE = 0.1  # of the trees of a run, from which on a split counts for ASDSF, as in MrBayes


def effective_size(values: FloatArray) -> float:
    """The bulk effective sample size (section 3.2, with Geyer's initial monotone sequence); NaN if it is unknown."""
    halves = _halves(values)
    if halves is None:
        return float("nan")
    scores = _normal_scores(halves)
    n_runs, n = scores.shape
    transform = np.fft.rfft(scores - scores.mean(axis=1, keepdims=True), 2 * n)
    covariances = np.fft.irfft(transform * transform.conj())[:, :n] / n  # at each lag
    within = covariances[:, 0].mean() * n / (n - 1)
    total = within * (n - 1) / n + (np.var(scores.mean(axis=1), ddof=1) if n_runs > 1 else 0.0)
    correlations = 1.0 - (within - covariances.mean(axis=0) * n / (n - 1)) / total
    correlations[0] = 1.0
    pairs = correlations[: n // 2 * 2].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs < 0)
    pairs = np.minimum.accumulate(pairs[: negative[0] if len(negative) else None])
    time = max(2.0 * pairs.sum() - 1.0, 1.0 / np.log10(n_runs * n))
    return float(n_runs * n / time)


def r_hat(values: FloatArray) -> float:
    """The larger one of rank-normalised split R-hat of values and of folded values (section 3.1); NaN if unknown."""
    halves = _halves(values)
    if halves is None:
        return float("nan")
    found = []
    for scores in map(_normal_scores, (halves, np.abs(halves - np.median(halves)))):
        n, within = scores.shape[1], scores.var(axis=1, ddof=1).mean()
        between = scores.mean(axis=1).var(ddof=1)
        found.append(float(np.sqrt((n - 1) / n + between / within)) if within else float("inf"))
    return max(found)


def split_deviation(shares: Sequence[dict[int, float]]) -> float:
    """The average standard deviation of split frequencies (Lakner et al. 2008), from the shares of splits by run.

    Splits count that one of the runs has in COMMON_SHARE of its trees; NaN if there are none, or one run only.
    """
    table = list(common_shares(shares).values()) if len(shares) > 1 else []
    return float(np.std(table, axis=1, ddof=1).mean()) if table else float("nan")


def common_shares(shares: Sequence[dict[int, float]]) -> dict[int, list[float]]:
    """The shares by run of the splits that one of the runs has in COMMON_SHARE of its trees."""
    splits = {split for own in shares for split, share in own.items() if share >= COMMON_SHARE}
    return {split: [own.get(split, 0.0) for own in shares] for split in splits}


def _halves(values: FloatArray) -> FloatArray | None:
    """(2 n_runs, n_samples // 2); None if there are too few values, or all are equal."""
    n = values.shape[1] // 2
    if values.shape[1] < FEWEST_SAMPLES or np.ptp(values) == 0:
        return None
    return np.concatenate([values[:, :n], values[:, -n:]])


def _normal_scores(values: FloatArray) -> FloatArray:
    """Normal quantiles of (rank - 3/8) / (number + 1/4); equal values share the mean of their ranks."""
    _, number, counts = np.unique(values.ravel(), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks = (last - (counts - 1) / 2)[number]
    inverse = NormalDist().inv_cdf
    scores = {rank: inverse((rank - 0.375) / (values.size + 0.25)) for rank in set(ranks.tolist())}
    return np.array([scores[rank] for rank in ranks.tolist()]).reshape(values.shape)


DIGITS = 6  # behind the point of numbers in files of samples, as in those of MrBayes
FIRST_ROWS = 64  # for which there is room at first


@saved("n_runs", "columns", "generations", "has_root", "shares", "_n_taxa", "_rows", "_splits")
class Samples:
    """Samples of several runs, generation by generation.

    With a clock, trees have a root, one tip more, and heights in place of lengths; see `Sample`. If parts have branch
    lengths of their own, those of a tree are their means over all sites, unless a part is named.
    """

    def __init__(self, space: StateSpace, n_runs: int):
        self.n_runs, self._n_taxa = n_runs, space.n_tips
        self.has_root = space.n_tips > len(space.names)  # whether trees have one
        self.shares = space.shares  # of the parts in the sites, if they have branch lengths of their own
        self.columns = space.columns  # names of the numbers of a sample
        self.generations: list[int] = []
        self._rows: dict[str, npt.NDArray[Any]] = {}  # (n_runs, n, width), with room for further samples
        self._splits: list[int] = []  # by number

    @cached_property
    def _split_numbers(self) -> dict[int, int]:
        return {split: number for number, split in enumerate(self._splits)}

    def copy(self) -> Samples:
        """A copy that does not change when more samples are taken, to be saved; the two share the rows."""
        other = copy.copy(self)
        other.generations, other._splits = self.generations.copy(), self._splits.copy()
        other._rows = {name: rows[:, : len(self)] for name, rows in self._rows.items()}
        return other

    def add(self, generation: int, samples: Sequence[Sample]) -> None:
        """Those of the cold chains of all runs."""
        number = len(self)
        if not self._rows:
            n_nodes = 2 * self._n_taxa - 2
            node, shape = np.min_scalar_type(-n_nodes), (self.n_runs, FIRST_ROWS, n_nodes)
            self._rows = {
                "numbers": np.empty((*shape[:2], len(self.columns))),
                "lengths": np.empty((*shape[:2], len(samples[0].lengths))),
                "left": np.empty(shape, node),  # the topology, see `Topology`
                "right": np.empty(shape, node),
                "splits": np.empty(shape, np.int32),  # at the branches, by their numbers
                **({"rates": np.empty(shape)} if samples[0].rates else {}),
            }
        elif number == self._rows["numbers"].shape[1]:
            self._rows = {name: np.concatenate([own, np.empty_like(own)], axis=1) for name, own in self._rows.items()}
        self.generations.append(generation)
        for run, (numbers, topology, lengths, rates) in enumerate(samples):
            splits = topology.splits()
            for split in splits:
                if split not in self._split_numbers:
                    self._split_numbers[split] = len(self._splits)
                    self._splits.append(split)
            numbers_of = [self._split_numbers[split] for split in splits]
            rows = numbers, lengths, topology.left, topology.right, numbers_of, *([rates] if rates else [])
            for kept, row in zip(self._rows.values(), rows, strict=True):
                kept[run, number] = row

    def __len__(self) -> int:
        """The number of samples of each run."""
        return len(self.generations)

    def first_after(self, generation: int, share: float, end: int | None = None) -> int:
        """The number of samples to discard of the first `end`: a share of them, and at least those up to a generation.

        The last one is always kept.
        """
        number = len(self) if end is None else end
        early = int(np.searchsorted(self.generations[:number], generation, side="right"))
        return min(max(int(share * number), early), number - 1)

    def numbers(self, first: int = 0) -> FloatArray:
        """(n_runs, n_samples, n_columns) of samples from number `first` on."""
        return self._rows["numbers"][:, first : len(self)]

    def latest(self, run: int) -> Sample:
        """The last sample of a run."""
        return Sample(self._rows["numbers"][run, len(self) - 1].tolist(), *self.tree(run, -1))

    def rates(self, run: int, number: int) -> list[float]:
        """(n_nodes,) the rates of the branches of a tree; none if there is no relaxed clock."""
        return self._rows["rates"][run, number].tolist() if "rates" in self._rows else []

    def splits(self, run: int, number: int) -> list[int]:
        """(n_nodes,) the split of the branch above each node of a tree."""
        return [self._splits[own] for own in self._rows["splits"][run, number].tolist()]

    def tree(self, run: int, number: int, part: int | None = None) -> tuple[Topology, list[float]]:
        """The tree of one sample, with the lengths (n_nodes,) of its branches."""
        left, right = (self._rows[name][run, : len(self)][number] for name in ("left", "right"))
        parent = np.full_like(left, -1)
        for below in (left, right):
            parent[below[below >= 0]] = np.flatnonzero(below >= 0)
        return Topology(self._n_taxa, parent.tolist(), left.tolist(), right.tolist()), self._lengths(run, number, part)

    def _lengths(self, run: int, number: int, part: int | None = None) -> list[float]:
        row = self._rows["lengths"][run, : len(self)][number]
        if len(self.shares) > 1:
            of_parts = row[1:].reshape(len(self.shares), -1)
            row = np.append(0.0, np.array(self.shares) @ of_parts if part is None else of_parts[part])
        return row.tolist()

    def split_lengths(self, run: int, number: int) -> dict[int, float]:
        """The branch lengths of a tree by split, tips included, see `plltool.tree.splits`."""
        pairs = zip(self.splits(run, number), self._lengths(run, number), strict=True)
        return {split: length for split, length in pairs if split}

    def split_shares(self, run: int, first: int, end: int | None = None) -> dict[int, float]:
        """The share of the trees of a run, from number `first` to `end`, that have each split of an inner branch."""
        inner = self._rows["splits"][run, : len(self)][first:end, self._n_taxa :]
        counts = np.bincount(inner.ravel(), minlength=len(self._splits))
        everything = (1 << self._n_taxa) - 2  # all but tip 0: the branch of tip 0, which is no inner one
        found = {self._splits[own]: int(counts[own]) / len(inner) for own in np.flatnonzero(counts).tolist()}
        return {split: share for split, share in found.items() if split != everything}

    def deviation(self, first: int, end: int | None = None) -> float:
        """The average standard deviation of split frequencies of the runs, from sample `first` to `end`."""
        return split_deviation([self.split_shares(run, first, end) for run in range(self.n_runs)])

    def convergence(self, first: int) -> dict[str, tuple[float, float]]:
        """The effective size and R-hat of each column, from sample `first` on."""
        columns = zip(self.columns, np.moveaxis(self.numbers(first), 2, 0), strict=True)
        return {name: (effective_size(values), r_hat(values)) for name, values in columns}


def format_numbers(samples: Samples, run: int, seed: int) -> str:
    """The numbers of a run as MrBayes' files of parameters have them, with tabs, for Tracer and MrBayes."""
    rows = samples.numbers()[run].tolist()
    lines = [f"[ID: {seed}]", "\t".join(("Gen", *samples.columns))]
    for generation, row in zip(samples.generations, rows, strict=True):
        lines.append("\t".join((str(generation), *(f"{value:.{DIGITS}e}" for value in row))))
    return "\n".join(lines) + "\n"


def format_trees(samples: Samples, run: int, seed: int, names: Sequence[str], part: int | None = None) -> str:
    """The trees of a run, with the lengths of a part, as MrBayes' files have them: NEXUS, with numbers for taxa.

    Trees in time have a root, lengths in years, and rates as BEAST writes them, if there are any.
    """
    table = ",\n".join(f"{number:>8} {written_label(name)}" for number, name in enumerate(names, start=1))
    which = "" if part is None else f"{{{part + 1}}}"
    kind, more = ("R", []) if samples.has_root else ("U", [f"[Param: tree{which}]"])
    lines = ["#NEXUS", f"[ID: {seed}]", *more, "begin trees;", "   translate", table + ";"]
    for number, generation in enumerate(samples.generations):
        lines.append(f"   tree gen.{generation} = [&{kind}] {_format_tree(samples, run, number, part)}")
    return "\n".join([*lines, "end;"]) + "\n"


def _format_tree(samples: Samples, run: int, number: int, part: int | None) -> str:
    """Newick text with the numbers of the taxa from 1 on; without a root three branches at the top, taxon 1 last."""
    topology, lengths = samples.tree(run, number, part)
    left, right, top, n_tips = topology.left, topology.right, topology.top, topology.n_taxa
    marks = [f"[&rate={rate:.{DIGITS}e}]" for rate in samples.rates(run, number)] or [""] * topology.n_nodes
    if samples.has_root:
        lengths = [lengths[above] - height for above, height in zip(topology.parent, lengths, strict=True)]
    tails = [f"{mark}:{length:.{DIGITS}e}" for mark, length in zip(marks, lengths, strict=True)]
    first = 0 if samples.has_root else 1
    texts = [f"{node + first}{tails[node]}" for node in range(n_tips)] + [""] * (n_tips - 2)
    for node in topology.postorder():
        texts[node] = f"({texts[left[node]]},{texts[right[node]]}){tails[node]}"
    beside = "" if samples.has_root else f",1{tails[top]}"
    return f"({texts[left[top]]},{texts[right[top]]}{beside});"
