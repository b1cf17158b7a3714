"""What samples say: summaries of numbers, summary trees, the topologies of the credible set; of trees in time too.

Clades are sets of bits as in `plltool.tree.splits`; samples of trees in time have the stem as tip 0, so taxon k has bit
k + 1.
"""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from plltool.analyses.sampling.clock_choice import ClockChoice
from plltool.analyses.sampling.samples import DIGITS, Samples
from plltool.analyses.sampling.time_state import TimeSpace
from plltool.analyses.sampling.tree import to_tree
from plltool.analyses.sampling.tree_priors import Skygrid
from plltool.arrays import FloatArray
from plltool.constants import NO_NODE
from plltool.io.newick import parse_nodes
from plltool.io.newick_writer import write_newick, write_nexus, write_nodes
from plltool.io.tree_files import write_splits
from plltool.run.rooting import root_by_outgroup
from plltool.schema import Keys
from plltool.tree.rooted_nodes import RootedNodes
from plltool.tree.splits import branch_splits, make_tree_set, members_of, nest
from plltool.tree.supports import make_consensus
from plltool.tree.topology import Tree

H = TypeVar("H", bound=Hashable)

CREDIBLE_SHARE = 0.95  # of the posterior probability


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
    tree, shares = to_tree(*samples.tree(*chosen[best]), names), trees.shares
    splits, ends = branch_splits(tree), tree.ends.min(axis=1).tolist()
    sums = np.bincount(trees.members, weights=trees.lengths, minlength=len(trees.splits))
    means, pendants = dict(zip(trees.splits, (sums / trees.counts).tolist(), strict=True)), trees.pendants.mean(axis=0)
    pairs = zip(splits, ends, strict=True)  # each branch gets its mean length in the trees that have it
    tree = tree.with_lengths(np.array([pendants[k] if k < tree.n_taxa else means[split] for split, k in pairs]))
    labels = [f"{shares.get(split, 1.0):.4g}" for split in splits]
    consensus, of_consensus = _with_outgroup(consensus, "majority-rule tree", outgroup)
    keys = [trees.of_tree(number).tobytes() for number in range(trees.n_trees)]
    example = dict(zip(reversed(keys), reversed(chosen), strict=True))  # of equal topologies the first one
    mcc, of_mcc = _with_outgroup(write_newick(tree, labels=labels), "MCC tree", outgroup)
    return Posterior(
        len(samples) - first,
        summarise_numbers(samples, first),
        samples.deviation(first),
        consensus,
        mcc,
        tree,
        _credible(keys, lambda key: write_newick(to_tree(*samples.tree(*example[key]), names), lengths=False)),
        shares,
        (*of_consensus, *of_mcc),
    )


def _with_outgroup(newick: str, name: str, outgroup: Sequence[str] | None) -> tuple[str, list[str]]:
    """A tree of this name with the outgroup, if there is one, on one side of its root; and warnings."""
    if outgroup is None:
        return newick, []
    rooted, remarks = root_by_outgroup(parse_nodes(newick, f"the {name}"), outgroup)
    return write_nodes(rooted), [f"{name}: {remark}" for remark in remarks]


def _credible(histories: Sequence[H], write: Callable[[H], str]) -> tuple[CredibleTree, ...]:
    """The topologies of the credible set, from what tells the sampled ones apart; `write` makes the text of one."""
    total, found = 0, []
    for history, count in Counter(histories).most_common():
        if total >= CREDIBLE_SHARE * len(histories):
            break
        total += count
        found.append(CredibleTree(write(history), count / len(histories), total / len(histories)))
    return tuple(found)


def summarise_numbers(samples: Samples, first: int) -> dict[str, Summary]:
    """The summaries of all columns, from sample `first` on."""
    numbers, convergence, found = samples.numbers(first), samples.convergence(first), {}
    for k, name in enumerate(samples.columns):
        values = np.sort(numbers[:, :, k].ravel())
        deviation = float(values.std(ddof=1)) if len(values) > 1 else 0.0
        middle = float(values.mean()), deviation, float(np.median(values))
        found[name] = Summary(*middle, *shortest_interval(values), *convergence[name])
    return found


def shortest_interval(values: FloatArray) -> tuple[float, float]:
    """The shortest interval between two of the values (n,), sorted, that holds 95 % of them."""
    within = min(len(values) - 1, int(np.ceil(CREDIBLE_SHARE * len(values))) - 1)
    widths = values[within:] - values[: len(values) - within]
    start = int(np.argmin(widths))
    return float(values[start]), float(values[start + within])


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


class Clade(NamedTuple):
    """A clade of the samples, or a taxon.

    Attributes
    ----------
    taxa : its names
    posterior : the share of the trees that have it
    height : the mean in these, in years before the latest taxon
    interval : the shortest interval with 95 % of the heights
    rate : the mean rate of the branch above, in substitutions per site and year; None for the root
    """

    taxa: tuple[str, ...]
    posterior: float
    height: float
    interval: tuple[float, float]
    rate: float | None


@dataclass(frozen=True, eq=False)
class TimeSummary:
    """What only samples with a clock have.

    Attributes
    ----------
    clock, tree_prior : as they were given; a skygrid with its numbers
    priors : of the tree and of all numbers
    latest : the date of the latest taxon, in years
    nodes : of the maximum clade credibility tree, in the order of its Newick text from the root on, parents first
    nexus : this tree with heights, intervals and rates
    """

    clock: str
    tree_prior: str
    priors: dict[str, str]
    latest: float
    nodes: tuple[Clade, ...]
    nexus: str

    @Keys("clock tree_prior latest nodes")
    def as_record(self) -> dict[str, Any]:
        """All but the tree and the priors, as strings, numbers, lists and dictionaries."""
        return {}


class _Found(NamedTuple):
    """What the samples have of each clade."""

    heights: dict[int, list[float]]
    rates: dict[int, list[float]]
    n_trees: int


def summarise_times(
    samples: Samples, space: TimeSpace, first: int, chosen_clock: ClockChoice
) -> tuple[Posterior, TimeSummary]:
    """Summaries of the samples from number `first` on; lengths of trees are years, and their roots are there."""
    chosen = [(run, number) for run in range(samples.n_runs) for number in range(first, len(samples))]
    heights: dict[int, list[float]] = {}
    rates: dict[int, list[float]] = {}
    histories: list[tuple[int, ...]] = []
    clock = samples.columns.index(space.numbers[0].name)
    for run, number in chosen:
        splits, own = samples.splits(run, number), samples.tree(run, number)[1]
        of_tree = samples.rates(run, number) or [samples.numbers()[run, number, clock].item()] * len(splits)
        for split, height, rate in zip(splits[1:], own[1:], of_tree[1:], strict=True):
            heights.setdefault(split, []).append(height)
            rates.setdefault(split, []).append(rate)
        histories.append(tuple(sorted(splits[space.n_tips :])))
    found = _Found(heights, rates, len(chosen))
    logs = {split: np.log(len(own) / found.n_trees) for split, own in heights.items()}
    best = max(range(len(chosen)), key=lambda number: sum(logs[split] for split in histories[number]))
    common = [split for split, own in heights.items() if 2 * len(own) > found.n_trees]
    tips = [1 << (taxon + 1) for taxon in range(len(space.names))]
    mcc, clades = _clade_tree({*histories[best], *tips}, found, space.names)
    consensus, _ = _clade_tree({*common, *tips}, found, space.names)
    posterior = Posterior(
        len(samples) - first,
        summarise_numbers(samples, first),
        samples.deviation(first),
        write_nodes(consensus),
        write_nodes(mcc),
        space.tree_of(*samples.tree(*chosen[best])),
        _credible(histories, lambda clades: _write_topology({*clades, *tips}, found, space.names)),
        {split: len(own) / found.n_trees for split, own in heights.items()},
    )
    nexus = write_nexus(write_nodes(mcc, [_annotation(own) for own in clades]), "mcc", is_rooted=True)
    prior, text = space.tree_prior, chosen_clock.tree_prior
    text += f"({prior.n_sizes},{prior.cutoff!r})" if isinstance(prior, Skygrid) and "(" not in text else ""
    how = chosen_clock.clock, text, chosen_clock.used(space)
    return posterior, TimeSummary(*how, space.latest, tuple(clades), nexus)


def _clade_tree(splits: Iterable[int], found: _Found, names: Sequence[str]) -> tuple[RootedNodes, list[Clade]]:
    """The tree of some clades, tips included, with mean heights; no node is shown above its parent."""
    below = nest(splits)
    nodes, clades = RootedNodes(), []
    shown: list[float] = []
    stack = [(next(iter(below)), NO_NODE)]  # the root comes first
    while stack:
        split, parent = stack.pop()
        own = np.sort(found.heights[split])
        mean, is_root = float(own.mean()), parent == NO_NODE
        shown.append(mean if is_root else min(mean, shown[parent]))
        taxa = tuple(names[bit - 1] for bit in members_of(split))
        share = len(own) / found.n_trees
        rate = None if is_root else float(np.mean(found.rates[split]))
        clades.append(Clade(taxa, share, mean, shortest_interval(own), rate))
        label = taxa[0] if len(taxa) == 1 else f"{share:.4g}"
        node = nodes.add(parent, float("nan") if is_root else shown[parent] - shown[-1], label)
        stack += ((child, node) for child in reversed(below[split]))
    return nodes, clades


def _annotation(own: Clade) -> str:
    """What FigTree shows of a node, by the names that TreeAnnotator gives."""
    low, high = own.interval
    told = [f"height={own.height:.{DIGITS}g}"]
    if len(own.taxa) > 1 or low < high:
        told.append(f"height_95%_HPD={{{low:.{DIGITS}g},{high:.{DIGITS}g}}}")
    if len(own.taxa) > 1:
        told.append(f"posterior={own.posterior:.4g}")
    if own.rate is not None:
        told.append(f"rate={own.rate:.{DIGITS}g}")
    return f"[&{','.join(told)}]"


def _write_topology(splits: Iterable[int], found: _Found, names: Sequence[str]) -> str:
    """The Newick text of some clades, tips included, without lengths and supports."""
    nodes, _ = _clade_tree(splits, found, names)
    inner = set(nodes.parents)
    labels = ["" if node in inner else label for node, label in enumerate(nodes.labels)]
    return write_nodes(RootedNodes(nodes.parents, [float("nan")] * len(labels), labels))
