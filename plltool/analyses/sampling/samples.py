"""What chains have sampled: trees and numbers of the cold chain of each run, and whether runs agree.

Effective sizes and R-hat are those of Vehtari, Gelman, Simpson, Carpenter & Bürkner 2021, Rank-normalization, folding,
and localization: an improved R-hat, Bayesian Analysis 16:667. Values are (n_runs, n_samples): each run is halved, and
values are replaced by normal scores of their ranks among all.
"""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plltool.analyses.sampling.state import State, StateSpace
from plltool.analyses.sampling.tree import Topology, format_newick, to_tree
from plltool.arrays import FloatArray
from plltool.codec import saved
from plltool.io.newick import parse_nodes
from plltool.io.newick_writer import write_newick, write_nodes, written_label
from plltool.io.tree_files import write_splits
from plltool.run.rooting import root_by_outgroup
from plltool.tree.splits import TreeSet, branch_splits, make_tree_set
from plltool.tree.supports import make_consensus
from plltool.tree.topology import Tree

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
    return max(_plain_r_hat(_normal_scores(x)) for x in (halves, np.abs(halves - np.median(halves))))


def split_deviation(shares: Sequence[dict[int, float]]) -> float:
    """The average standard deviation of split frequencies (Lakner et al. 2008), from the shares of splits by run.

    Splits count that one of the runs has in COMMON_SHARE of its trees; NaN if there are none, or one run only.
    """
    if len(shares) < 2:
        return float("nan")
    splits = {split for own in shares for split, share in own.items() if share >= COMMON_SHARE}
    table = [[own.get(split, 0.0) for own in shares] for split in splits]
    return float(np.std(table, axis=1, ddof=1).mean()) if table else float("nan")


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


def _plain_r_hat(scores: FloatArray) -> float:
    """sqrt((between + within (n - 1) / n) / within)"""
    n = scores.shape[1]
    within = scores.var(axis=1, ddof=1).mean()
    if within == 0:
        return float("inf")
    return float(np.sqrt((n - 1) / n + scores.mean(axis=1).var(ddof=1) / within))


COLUMNS = "LnL", "LnPr", "TL"  # as in the files of MrBayes, in front of the parameters
FIRST_ROWS = 64  # for which there is room at first


class Sample(NamedTuple):
    """What is kept of the state of a chain: the numbers of all columns, and the tree, see `StateSpace.sampled_tree`."""

    numbers: list[float]
    topology: Topology
    lengths: list[float]
    rates: Sequence[float] = ()


def take_sample(state: State, space: StateSpace) -> Sample:
    """A sample of a state."""
    numbers = [state.lnl, state.log_prior, sum(state.lengths), *space.shown(state)]
    return Sample(numbers, *space.sampled_tree(state))


@saved("n_runs", "columns", "generations", "has_root", "_n_taxa", "_rows", "_splits")
class Samples:
    """Samples of several runs, generation by generation.

    With a clock, trees have a root, one tip more, and heights in place of lengths; see `StateSpace.sampled_tree`.
    """

    def __init__(self, space: StateSpace, n_runs: int):
        self.n_runs, self._n_taxa = n_runs, space.n_tips
        self.has_root = space.n_tips > len(space.names)  # whether trees have one
        self.columns = (*COLUMNS, *space.columns)  # names of the numbers of a sample
        self.generations: list[int] = []
        n_nodes = 2 * self._n_taxa - 2
        node, shape = np.min_scalar_type(-n_nodes), (n_runs, FIRST_ROWS, n_nodes)
        self._rows: dict[str, npt.NDArray[Any]] = {  # (n_runs, n, width), with room for further samples
            "numbers": np.empty((n_runs, FIRST_ROWS, len(self.columns))),
            "lengths": np.empty(shape),
            "left": np.empty(shape, node),  # the topology, see `Topology`
            "right": np.empty(shape, node),
            "splits": np.empty(shape, np.int32),  # at the branches, by their numbers
            **({"rates": np.empty(shape)} if space.has_rates else {}),  # of branches, see `StateSpace.sampled_tree`
        }
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
        if number == self._rows["numbers"].shape[1]:
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

    def number(self, run: int, sample: int, name: str) -> float:
        """A number of a sample, by its column."""
        return float(self._rows["numbers"][run, sample, self.columns.index(name)])

    def splits(self, run: int, number: int) -> list[int]:
        """(n_nodes,) the split of the branch above each node of a tree."""
        return [self._splits[own] for own in self._rows["splits"][run, number].tolist()]

    def tree(self, run: int, number: int) -> tuple[Topology, list[float]]:
        """The tree of one sample, with the lengths (n_nodes,) of its branches."""
        left, right, lengths = (self._rows[name][run, : len(self)][number] for name in ("left", "right", "lengths"))
        parent = np.full_like(left, -1)
        for below in (left, right):
            parent[below[below >= 0]] = np.flatnonzero(below >= 0)
        return Topology(self._n_taxa, parent.tolist(), left.tolist(), right.tolist()), lengths.tolist()

    def split_lengths(self, run: int, number: int) -> dict[int, float]:
        """The branch lengths of a tree by split, tips included, see `plltool.tree.splits`."""
        rows = (self._rows[name][run, number].tolist() for name in ("splits", "lengths"))
        return {split: length for own, length in zip(*rows, strict=True) if (split := self._splits[own])}

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
        numbers = self.numbers(first)
        return {
            name: (effective_size(numbers[:, :, k]), r_hat(numbers[:, :, k])) for k, name in enumerate(self.columns)
        }


CREDIBLE_SHARE = 0.95  # of the posterior probability
DIGITS = 6  # behind the point of numbers in files of samples, as in those of MrBayes


class Summary(NamedTuple):
    """The posterior distribution of a number.

    Attributes
    ----------
    mean, deviation, median : of the samples of all runs
    low, high : the shortest interval that holds 95 % of them
    size : effective sample size
    r_hat : 1 if runs agree
    """

    mean: float
    deviation: float
    median: float
    low: float
    high: float
    size: float
    r_hat: float


@dataclass(frozen=True, eq=False)
class CredibleTree:
    """A topology of the credible set, with its posterior probability and the sum of all up to it."""

    newick: str
    probability: float
    cumulative: float


@dataclass(frozen=True, eq=False)
class Posterior:
    """Summaries of samples, without the burn-in.

    Attributes
    ----------
    n_samples : number of samples of each run
    numbers : by column
    deviation : average standard deviation of split frequencies (ASDSF); NaN for one run
    consensus : majority-rule tree; labels are posterior probabilities, lengths are means
    mcc : the sampled tree with the largest product of its clades' posterior probabilities, likewise
    tree : the same as an object
    credible : the fewest topologies that hold 95 % of the posterior probability, the most probable first
    splits : the posterior probability of each split of an inner branch, see `plltool.tree.splits`
    warnings : of an outgroup that is not one clade of a tree
    """

    n_samples: int
    numbers: dict[str, Summary]
    deviation: float
    consensus: str
    mcc: str
    tree: Tree
    credible: tuple[CredibleTree, ...]
    splits: dict[int, float]
    warnings: tuple[str, ...] = ()


def summarise(samples: Samples, names: Sequence[str], first: int, outgroup: Sequence[str] | None) -> Posterior:
    """Summaries of the samples from number `first` on."""
    chosen = [(run, number) for run in range(samples.n_runs) for number in range(first, len(samples))]
    trees = make_tree_set(names, (samples.split_lengths(*which) for which in chosen))
    found = make_consensus(trees)
    labels = [f"{share:.4g}" for share in found.shares.tolist()]
    consensus = write_splits(names, found.splits, found.lengths.tolist(), labels, found.pendants.tolist())
    # the tree whose splits have the largest product of shares
    logs = np.log(trees.counts)[trees.members]
    best = int(np.argmax(np.add.reduceat(np.append(logs, 0.0), trees.starts[:-1]))) if len(logs) else 0
    tree = _with_means(to_tree(*samples.tree(*chosen[best]), names), trees)
    shares = trees.shares
    labels = [f"{shares.get(split, 1.0):.4g}" for split in branch_splits(tree)]
    consensus, of_consensus = _with_outgroup(consensus, "majority-rule tree", outgroup)
    mcc, of_mcc = _with_outgroup(write_newick(tree, labels=labels), "MCC tree", outgroup)
    return Posterior(
        len(samples) - first,
        summarise_numbers(samples, first),
        samples.deviation(first),
        consensus,
        mcc,
        tree,
        tuple(_credible(trees, samples, chosen, names)),
        shares,
        (*of_consensus, *of_mcc),
    )


def _with_outgroup(newick: str, name: str, outgroup: Sequence[str] | None) -> tuple[str, list[str]]:
    """A tree of this name with the outgroup, if there is one, on one side of its root; and warnings."""
    if outgroup is None:
        return newick, []
    rooted, remarks = root_by_outgroup(parse_nodes(newick, f"the {name}"), outgroup)
    return write_nodes(rooted), [f"{name}: {remark}" for remark in remarks]


def _with_means(tree: Tree, trees: TreeSet) -> Tree:
    """The tree with the mean length of each branch in the trees that have it."""
    sums = np.bincount(trees.members, weights=trees.lengths, minlength=len(trees.splits))
    means = dict(zip(trees.splits, (sums / trees.counts).tolist(), strict=True))
    pendants = trees.pendants.mean(axis=0)
    pairs = zip(branch_splits(tree), tree.ends.min(axis=1).tolist(), strict=True)
    return tree.with_lengths(np.array([pendants[k] if k < tree.n_taxa else means[split] for split, k in pairs]))


def _credible(
    trees: TreeSet, samples: Samples, chosen: list[tuple[int, int]], names: Sequence[str]
) -> list[CredibleTree]:
    """The topologies of the credible set; of equal ones the one that was sampled first."""
    keys = [trees.of_tree(number).tobytes() for number in range(trees.n_trees)]
    example = dict(zip(reversed(keys), reversed(chosen), strict=True))
    total, found = 0, []
    for key, count in Counter(keys).most_common():
        if total >= CREDIBLE_SHARE * trees.n_trees:
            break
        total += count
        newick = write_newick(to_tree(*samples.tree(*example[key]), names), lengths=False)
        found.append(CredibleTree(newick, count / trees.n_trees, total / trees.n_trees))
    return found


def summarise_numbers(samples: Samples, first: int) -> dict[str, Summary]:
    """The summaries of all columns, from sample `first` on."""
    numbers, convergence, found = samples.numbers(first), samples.convergence(first), {}
    for k, name in enumerate(samples.columns):
        values = np.sort(numbers[:, :, k].ravel())
        deviation = float(values.std(ddof=1)) if len(values) > 1 else 0.0
        middle = float(values.mean()), deviation, float(np.median(values))
        found[name] = Summary(*middle, *shortest_interval(values), *convergence[name])
    return found


def shortest_interval(values: FloatArray, share: float = CREDIBLE_SHARE) -> tuple[float, float]:
    """The shortest interval between two of the values (n,), sorted, that holds a share of them."""
    within = min(len(values) - 1, int(np.ceil(share * len(values))) - 1)
    widths = values[within:] - values[: len(values) - within]
    start = int(np.argmin(widths))
    return float(values[start]), float(values[start + within])


def format_numbers(samples: Samples, run: int, seed: int) -> str:
    """The numbers of a run as MrBayes' files of parameters have them, with tabs, for Tracer and MrBayes."""
    rows = samples.numbers()[run].tolist()
    lines = [f"[ID: {seed}]", "\t".join(("Gen", *samples.columns))]
    for generation, row in zip(samples.generations, rows, strict=True):
        lines.append("\t".join((str(generation), *(f"{value:.{DIGITS}e}" for value in row))))
    return "\n".join(lines) + "\n"


def format_trees(samples: Samples, run: int, seed: int, names: Sequence[str]) -> str:
    """The trees of a run as MrBayes' files of trees have them: NEXUS, with numbers for taxa."""
    table = ",\n".join(f"{number:>8} {written_label(name)}" for number, name in enumerate(names, start=1))
    lines = ["#NEXUS", f"[ID: {seed}]", "[Param: tree]", "begin trees;", "   translate", table + ";"]
    for number, generation in enumerate(samples.generations):
        lines.append(f"   tree gen.{generation} = [&U] {format_newick(*samples.tree(run, number), DIGITS)}")
    return "\n".join([*lines, "end;"]) + "\n"


def format_credible(trees: Sequence[CredibleTree]) -> str:
    """The credible set as a table with tabs."""
    lines = ["probability\tcumulative\ttree"]
    lines += [f"{own.probability:.6f}\t{own.cumulative:.6f}\t{own.newick}" for own in trees]
    return "\n".join(lines) + "\n"


def describe_numbers(numbers: dict[str, Summary]) -> list[str]:
    """The summaries as lines of a table for people."""
    rows: list[tuple[str, ...]] = [("", "mean", "median", "95 % from", "to", "ESS", "R-hat")]
    for name, own in numbers.items():
        values = (f"{value:.6g}" for value in (own.mean, own.median, own.low, own.high))
        rows.append((name, *values, _show(own.size, ".0f"), _show(own.r_hat, ".3f")))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows]


def _show(value: float, form: str) -> str:
    """A number, or a dash if it is unknown."""
    return format(value, form) if math.isfinite(value) else "-"
