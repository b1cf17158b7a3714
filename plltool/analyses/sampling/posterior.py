"""What samples say: summaries of numbers, trees and topologies, and the files that hold them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from plltool.analyses.sampling.samples import Samples
from plltool.analyses.sampling.tree import format_newick, to_tree
from plltool.arrays import FloatArray
from plltool.io.newick import parse_nodes
from plltool.io.newick_writer import write_newick, write_nodes, written_label
from plltool.io.tree_files import write_splits
from plltool.run.rooting import root_by_outgroup
from plltool.tree.consensus import make_consensus
from plltool.tree.splits import TreeSet, branch_splits, make_tree_set
from plltool.tree.topology import Tree

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
        _summarise_numbers(samples, first),
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


def _summarise_numbers(samples: Samples, first: int) -> dict[str, Summary]:
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
