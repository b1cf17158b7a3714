"""The section on sequences that are placed on a tree."""

from __future__ import annotations

import math
from statistics import median

from plltool.constants import SURE_WEIGHT
from plltool.io.jplace import Jplace, JplaceRow
from plltool.reports.blocks import Block, Facts, Picture, Prose, Section, Table, count
from plltool.reports.methods import Cited
from plltool.reports.picture import Mark
from plltool.reports.plots import draw_histogram
from plltool.reports.records import Record, Records
from plltool.reports.tree_section import mark_tree, name_branches

WIDEST = 10.0  # points, of the band behind the branch with most placements
MOST_QUERIES, MOST_BRANCHES = 500, 200  # rows of tables


def describe(records: Records) -> list[Section]:
    if records.placements is None:
        return []
    name, blocks = records.prefix.name, _describe_placements(records.placements)
    blocks.append(Prose(f"{name}.jplace has all places of all queries, for gappa, guppy, iTOL and others."))
    if grafted := _find_grafted(records):
        text = f"{name}.grafted.nwk is the reference tree with all queries placed. Its lnL is {grafted['lnl']:.4f}."
        blocks.append(Prose(text))
    return [Section("placements", "Placements", tuple(blocks))]


def _find_grafted(records: Records) -> Record | None:
    """The tree with all queries, if one was asked for."""
    grafted: Record | None = records.runs.get("place", {}).get("placement", {}).get("grafted")
    return grafted


Best = list[tuple[str, JplaceRow]]  # each query, and its best place


def _describe_placements(found: Jplace) -> list[Block]:
    n_nodes = len(found.nodes.parents)
    weights, numbers = [0.0] * n_nodes, [0] * n_nodes  # of all places, and queries that have their best place there
    best: Best = []
    for names, places in found.queries:
        for place in places:
            weights[found.node_of[place.edge_num]] += len(names) * place.like_weight_ratio
        first = max(places, key=lambda place: place.like_weight_ratio)
        numbers[found.node_of[first.edge_num]] += len(names)
        best += [(own, first) for own in names]
    shares = [place.like_weight_ratio for _, place in best]
    facts = Facts((
        ("Query sequences placed", str(len(best))),
        ("Distinct sequences", str(len(found.queries))),
        ("Weight of the best placement", f"median {median(shares):.3f}" if shares else "-"),
        (f"Queries with a weight of at least {SURE_WEIGHT:g}", str(sum(share >= SURE_WEIGHT for share in shares))),
        ("Branches with a best placement", str(sum(number > 0 for number in numbers))),
    ))  # fmt: skip
    blocks: list[Block] = [facts, _draw_tree(found, weights, numbers)]
    if best:
        names = "weight of the best placement", "queries"
        text = "The likelihood weight of the best placement of each query; 1 means that no other placement is likely."
        blocks.append(Picture(draw_histogram(shares, 1.0, names, "Weights of best placements"), text))
    return [*blocks, *_tabulate(found, weights, numbers, best)]


def _draw_tree(found: Jplace, weights: list[float], numbers: list[int]) -> Block:
    """The tree, with a band behind each branch as wide as its weight says."""
    largest = max(*weights, 1e-300)
    marks = [
        Mark(str(number or ""), band=WIDEST * math.sqrt(weight / largest))
        for number, weight in zip(numbers, weights, strict=True)
    ]
    caption = (
        "The reference tree. Numbers are the queries whose best placement is on the branch or in the collapsed clade."
    )
    legend = "The width of the band behind a branch shows the sum of the weights of all placements on it."
    return mark_tree(found.nodes, marks, caption, legend=legend, widest=WIDEST)


def _tabulate(found: Jplace, weights: list[float], numbers: list[int], best: Best) -> tuple[Block, Block]:
    """The branches with the largest weights, and the best placement of each query."""
    edge_of = {node: edge for edge, node in found.node_of.items()}
    names_of = name_branches(found.nodes)
    order = sorted((node for node in edge_of if weights[node] > 0), key=lambda node: (-weights[node], edge_of[node]))
    rows = tuple(
        (names_of[node], str(edge_of[node]), str(numbers[node]), f"{weights[node]:.3f}")
        for node in order[:MOST_BRANCHES]
    )
    header = ("Branch", "Edge number in jplace", "Queries with best placement", "Sum of weights")
    listed = []
    for query, place in best[:MOST_QUERIES]:
        found_at = f"{place.like_weight_ratio:.4f}", f"{place.pendant_length:.5f}", f"{place.likelihood:.4f}"
        listed.append((query, names_of[found.node_of[place.edge_num]], *found_at))
    columns = ("Query", "Branch", "Weight", "Pendant branch length", "lnL of the tree with it")
    return (
        Table(_caption("Branches with the most placements", len(order), MOST_BRANCHES), header, rows),
        Table(_caption("Best placements of queries", len(best), MOST_QUERIES), columns, tuple(listed)),
    )


def _caption(text: str, n_rows: int, most: int) -> str:
    return text if n_rows <= most else f"{text}, the first {most} of {n_rows}"


def tell(records: Records, cited: Cited) -> list[str]:
    if "place" not in records.runs:
        return []
    run = records.runs["place"]
    number = count(run["placement"]["n_placed"], "query sequence")
    source = cited.cite("Berger, Krompass & Stamatakis 2011")
    told = f"We placed {number} on the branches of the reference tree by maximum likelihood{source}."
    if _find_grafted(records):
        told += " We then attached them to it one after another, each where the likelihood was highest."
    return [told]
