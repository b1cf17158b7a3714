"""The sections on the dates of a tree, on ancestral states, and on sequences that are placed on a tree."""

import math
from statistics import median

from plltool.constants import SURE_WEIGHT
from plltool.errors import count
from plltool.io.jplace import Jplace, JplaceRow
from plltool.io.newick import parse_nodes
from plltool.reports.blocks import Block, Content, Plot, Section, Table
from plltool.reports.methods import Methods, tell
from plltool.reports.picture import Mark, TimeScale
from plltool.reports.plots import draw_histogram, draw_points
from plltool.reports.records import Record, Records
from plltool.reports.tree_blocks import MarkedTree
from plltool.tree.rooted_nodes import RootedNodes

MOST_LISTED = 30  # mutations of a branch
WIDEST = 10.0  # points, of the band behind the branch with most placements
MOST_QUERIES, MOST_BRANCHES = 500, 200  # rows of tables


def describe_dates(records: Records, methods: Methods) -> list[Section]:
    run, name = records.runs["date"], records.prefix.name
    dating = run["dating"]
    clock, root, tips = dating["clock"], dating["nodes"][0], dating["root_to_tip"]
    source = methods.cite("Sagulenko, Puller & Neher 2018")
    methods.say(tell("dates", dating=dating, source=source, dates=count(len(tips), "sampling date")))
    level = _share(dating)
    rate = f"{clock['rate']:.4g} substitutions per site and year{_range(clock['interval'], level, '.4g')}"
    facts = {
        "Clock rate": rate,
        "Root": f"{root['year']:.2f}{_range(root['interval'], level, '.2f')}, {root['day']}",
        "Tips with a date": str(len(tips)),
        "R2 of the regression": f"{clock['r_squared']:.3f}",
    }
    if clock["coalescent_time"] is not None:
        facts["Coalescent time"] = f"{clock['coalescent_time']:.4g} years"
    points = [(tip["year"], tip["distance"], tip["name"]) for tip in tips]
    ends = [(tip["year"], tip["expected"]) for tip in sorted(tips, key=lambda tip: tip["year"])]
    axes = ("date of the tip", "distance from the root")
    plot = draw_points(points, [ends[0], ends[-1]], axes, "Root-to-tip regression")
    drawn = mark_dated(dating, run["dated_tree"]), Plot(plot, tell("dates.plot"))
    return [Section("dates", "Dates", [facts, *drawn, tell("dates.files", name=name)])]


def mark_dated(dating: Record, newick: str) -> MarkedTree:
    """The tree in time, with bars over the years between which its nodes lie."""
    level = _share(dating)
    nodes = parse_nodes(newick, "the record")
    dates = {node["name"]: node for node in dating["nodes"]}
    ranges = tuple(dates[label]["interval"] for label in nodes.labels)
    time = TimeScale(max(node["year"] for node in dates.values()), ranges)
    bars = f" Bars are {level} intervals of node dates." if any(ranges) else ""
    legend = f"The axis has calendar years.{bars}"
    marks = [Mark()] * len(nodes.parents)
    return MarkedTree.of(nodes, marks, tell("dates.tree"), legend=legend, keeps_root=True, time=time)


def _share(dating: Record) -> str:
    return f"{100 * dating['level']:g} %"


def _range(interval: list[float] | None, level: str, form: str) -> str:
    return "" if interval is None else f" ({level}: {interval[0]:{form}} to {interval[1]:{form}})"


# --- ancestral states -------------------------------------------------------------------------------------


def describe_ancestors(records: Records, methods: Methods) -> list[Section]:
    ancestors, mutations, name = records.runs["ancestral"]["ancestors"], records.mutations, records.prefix.name
    marginal, joint_source = methods.cite("Yang, Kumar & Nei 1995"), methods.cite("Pupko et al. 2000")
    methods.say(tell("ancestors", marginal=marginal, joint=joint_source))
    nodes = parse_nodes(ancestors["tree"], "the record")
    joint: dict[str, list[str]] = {}
    for row in mutations:
        if row["Joint"] == "1":
            joint.setdefault(row["Node"], []).append(f"{row['From']}{row['Site']}{row['To']}")
    facts = {
        "Internal nodes": str(len(ancestors["sequences"])),
        "Log-probability of the joint states": f"{ancestors['joint_lnl']:.4f}",
        "Mutations by joint states": str(sum(map(len, joint.values()))),
        "Mutations by marginal states": str(sum(row["Marginal"] == "1" for row in mutations)),
    }
    tips = [not below for below in nodes.children()]
    numbers = [len(joint.get(label, ())) for label in nodes.labels]
    marks = [
        Mark(str(number) if tip else f"{label}: {number}")
        for label, number, tip in zip(nodes.labels, numbers, tips, strict=True)
    ]
    parent_of = dict(zip(nodes.labels[1:], (nodes.labels[parent] for parent in nodes.parents[1:]), strict=True))
    order = sorted(joint, key=lambda node: -len(joint[node]))
    rows = []
    for node in order:
        labels, n = joint[node][:MOST_LISTED], len(joint[node])
        labels += [f"and {n - MOST_LISTED} more"] if n > MOST_LISTED else []
        rows.append((node, " ".join(labels), str(n), parent_of.get(node, "")))
    columns = ("Branch to", "Mutations", "Number", "From")
    table = Table("Mutations by joint reconstruction, sorted by number", columns, rows, is_text=True)
    picture = MarkedTree.of(nodes, marks, tell("ancestors.tree"), keeps_root=True)
    return [Section("ancestors", "Ancestral states", [facts, picture, table, tell("ancestors.files", name=name)])]


# --- placements -------------------------------------------------------------------------------------------


def describe_placements(records: Records, methods: Methods) -> list[Section]:
    placed = records.runs.get("place", {}).get("placement", {})  # with the tree of all queries, if it was asked for
    grafted: Record | None = placed.get("grafted")
    if placed:
        number, source = count(placed["n_placed"], "query sequence"), methods.cite("Berger, Krompass & Stamatakis 2011")
        methods.say(tell("placements", number=number, source=source), *([tell("placements.also")] if grafted else []))
    if records.placements is None:
        return []
    name, content = records.prefix.name, _describe_places(records.placements)
    content.append(tell("placements.files", name=name))
    if grafted:
        content.append(tell("placements.grafted", name=name, grafted=grafted))
    return [Section("placements", "Placements", content)]


Best = list[tuple[str, JplaceRow]]  # each query, and its best place


def _describe_places(found: Jplace) -> list[Content]:
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
    facts = {
        "Query sequences placed": str(len(best)),
        "Distinct sequences": str(len(found.queries)),
        "Weight of the best placement": f"median {median(shares):.3f}" if shares else "-",
        f"Queries with a weight of at least {SURE_WEIGHT:g}": str(sum(share >= SURE_WEIGHT for share in shares)),
        "Branches with a best placement": str(sum(number > 0 for number in numbers)),
    }
    content: list[Content] = [facts, _draw_tree(found, weights, numbers)]
    if best:
        names = "weight of the best placement", "queries"
        plot = draw_histogram(shares, 1.0, names, "Weights of best placements")
        content.append(Plot(plot, tell("placements.weights")))
    return [*content, *_tabulate(found, weights, numbers, best)]


def _draw_tree(found: Jplace, weights: list[float], numbers: list[int]) -> Block:
    """The tree, with a band behind each branch as wide as its weight says."""
    largest = max(*weights, 1e-300)
    marks = [
        Mark(str(number or ""), band=WIDEST * math.sqrt(weight / largest))
        for number, weight in zip(numbers, weights, strict=True)
    ]
    caption, legend = tell("placements.tree"), tell("placements.bands")
    return MarkedTree.of(found.nodes, marks, caption, legend=legend, widest=WIDEST)


def _tabulate(found: Jplace, weights: list[float], numbers: list[int], best: Best) -> tuple[Block, Block]:
    """The branches with the largest weights, and the best placement of each query."""
    edge_of = {node: edge for edge, node in found.node_of.items()}
    names_of = _name_branches(found.nodes)
    order = sorted((node for node in edge_of if weights[node] > 0), key=lambda node: (-weights[node], edge_of[node]))
    shown = order[:MOST_BRANCHES]
    rows = [(names_of[node], str(edge_of[node]), str(numbers[node]), f"{weights[node]:.3f}") for node in shown]
    header = ("Branch", "Edge number in jplace", "Queries with best placement", "Sum of weights")
    listed = []
    for query, place in best[:MOST_QUERIES]:
        found_at = f"{place.like_weight_ratio:.4f}", f"{place.pendant_length:.5f}", f"{place.likelihood:.4f}"
        listed.append((query, names_of[found.node_of[place.edge_num]], *found_at))
    columns = ("Query", "Branch", "Weight", "Pendant branch length", "lnL of the tree with it")
    return (
        Table(_caption("Branches with the most placements", len(order), MOST_BRANCHES), header, rows),
        Table(_caption("Best placements of queries", len(best), MOST_QUERIES), columns, listed),
    )


def _caption(text: str, n_rows: int, most: int) -> str:
    return text if n_rows <= most else f"{text}, the first {most} of {n_rows}"


def _name_branches(nodes: RootedNodes) -> list[str]:
    """What people call the branch above each node: its taxon, or the first and the last of the clade below it."""
    children, sizes = nodes.children(), nodes.clade_sizes()
    first, last = list(nodes.labels), list(nodes.labels)
    for node in range(len(children) - 1, -1, -1):
        if children[node]:
            first[node], last[node] = first[children[node][0]], last[children[node][-1]]
    ends = zip(first, last, sizes, children, strict=True)
    return [f"{a} … {b} ({size} taxa)" if below else a for a, b, size, below in ends]
