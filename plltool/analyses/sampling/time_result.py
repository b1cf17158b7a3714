"""What samples of time trees say: a summary tree with heights and their intervals, and files of trees with a root.

Clades are sets of bits as in `plltool.tree.splits`; the samples have the stem as tip 0, so taxon k has bit k + 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from plltool.analyses.sampling.clock import ClockChoice
from plltool.analyses.sampling.samples import (
    CREDIBLE_SHARE,
    DIGITS,
    CredibleTree,
    Posterior,
    Samples,
    shortest_interval,
    summarise_numbers,
)
from plltool.analyses.sampling.time_state import TimeSpace
from plltool.analyses.sampling.tree import Topology
from plltool.constants import NO_NODE
from plltool.io.newick_writer import write_nexus, write_nodes, written_label
from plltool.schema import Keys
from plltool.tree.rooted_nodes import RootedNodes
from plltool.tree.splits import members_of


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
    clock, tree_prior : as they were given
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
    for run, number in chosen:
        splits, own = samples.splits(run, number), samples.tree(run, number)[1]
        of_tree = samples.rates(run, number) or [samples.number(run, number, space.numbers[0].name)] * len(splits)
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
        tuple(_credible(histories, found, space.names)),
        {split: len(own) / found.n_trees for split, own in heights.items()},
    )
    nexus = write_nexus(write_nodes(mcc, [_annotation(own) for own in clades]), "mcc", is_rooted=True)
    how = chosen_clock.clock, chosen_clock.tree_prior, chosen_clock.used
    return posterior, TimeSummary(*how, space.latest, tuple(clades), nexus)


def _clade_tree(splits: Iterable[int], found: _Found, names: Sequence[str]) -> tuple[RootedNodes, list[Clade]]:
    """The tree of some clades, tips included, with mean heights; no node is shown above its parent."""
    order = sorted(splits, key=lambda split: (-split.bit_count(), split))
    below: Mapping[int, list[int]] = {split: [] for split in order}
    holder = dict.fromkeys(members_of(order[0]), order[0])  # of each taxon, the smallest clade so far that has it
    for split in order[1:]:
        below[holder[next(members_of(split))]].append(split)
        holder.update(dict.fromkeys(members_of(split), split))
    nodes, clades = RootedNodes(), []
    shown: list[float] = []
    stack = [(order[0], NO_NODE)]
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
    if len(own.taxa) > 1:
        told += [f"height_95%_HPD={{{low:.{DIGITS}g},{high:.{DIGITS}g}}}", f"posterior={own.posterior:.4g}"]
    if own.rate is not None:
        told.append(f"rate={own.rate:.{DIGITS}g}")
    return f"[&{','.join(told)}]"


def _credible(histories: Sequence[tuple[int, ...]], found: _Found, names: Sequence[str]) -> Iterable[CredibleTree]:
    """The fewest topologies that hold 95 % of the posterior probability."""
    total = 0
    for clades, count in Counter(histories).most_common():
        if total >= CREDIBLE_SHARE * len(histories):
            break
        total += count
        nodes, _ = _clade_tree({*clades, *(1 << (taxon + 1) for taxon in range(len(names)))}, found, names)
        inner = set(nodes.parents)
        labels = ["" if node in inner else label for node, label in enumerate(nodes.labels)]
        bare = RootedNodes(nodes.parents, [float("nan")] * len(labels), labels)
        yield CredibleTree(write_nodes(bare), count / len(histories), total / len(histories))


def format_time_trees(samples: Samples, run: int, seed: int, names: Sequence[str]) -> str:
    """The trees of a run as NEXUS, with a root, lengths in years, and rates as BEAST writes them, if there are any."""
    table = ",\n".join(f"{number:>8} {written_label(name)}" for number, name in enumerate(names, start=1))
    lines = ["#NEXUS", f"[ID: {seed}]", "begin trees;", "   translate", table + ";"]
    for number, generation in enumerate(samples.generations):
        text = _time_newick(*samples.tree(run, number), samples.rates(run, number))
        lines.append(f"   tree gen.{generation} = [&R] {text}")
    return "\n".join([*lines, "end;"]) + "\n"


def _time_newick(rooted: Topology, heights: Sequence[float], rates: Sequence[float]) -> str:
    top = rooted.top
    marks = [f"[&rate={rate:.{DIGITS}e}]" for rate in rates] or [""] * rooted.n_nodes
    gaps = [heights[above] - heights[node] for node, above in enumerate(rooted.parent)]
    tails = [f"{mark}:{gap:.{DIGITS}e}" for mark, gap in zip(marks, gaps, strict=True)]
    tails[top] = ";"
    texts = [f"{node}{tails[node]}" for node in range(rooted.n_taxa)] + [""] * (rooted.n_taxa - 2)
    for node in rooted.postorder():
        texts[node] = f"({texts[rooted.left[node]]},{texts[rooted.right[node]]}){tails[node]}"
    return texts[top]
