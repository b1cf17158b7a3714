"""The section on the dates of a tree."""

from __future__ import annotations

from plltool.io.newick import parse_nodes
from plltool.reports.blocks import Facts, MarkedTree, Picture, Prose, Section, count
from plltool.reports.methods import Cited
from plltool.reports.picture import Mark, TimeScale
from plltool.reports.plots import draw_points
from plltool.reports.records import Record, Records
from plltool.reports.tree_section import mark_tree

COMMAND = "date"


def describe(records: Records) -> list[Section]:
    run, name = records.runs[COMMAND], records.prefix.name
    dating = run["dating"]
    clock, root, tips = dating["clock"], dating["nodes"][0], dating["root_to_tip"]
    level = _share(dating)
    rows = [
        ("Clock rate", f"{clock['rate']:.4g} substitutions per site and year{_range(clock['interval'], level, '.4g')}"),
        ("Root", f"{root['year']:.2f}{_range(root['interval'], level, '.2f')}, {root['day']}"),
        ("Tips with a date", str(len(tips))),
        ("R2 of the regression", f"{clock['r_squared']:.3f}"),
    ]
    if clock["coalescent_time"] is not None:
        rows.append(("Coalescent time", f"{clock['coalescent_time']:.4g} years"))
    picture = mark_dated(dating, run["dated_tree"])
    points = [(tip["year"], tip["distance"], tip["name"]) for tip in tips]
    ends = [(tip["year"], tip["expected"]) for tip in sorted(tips, key=lambda tip: tip["year"])]
    axes = ("date of the tip", "distance from the root")
    plot = draw_points(points, [ends[0], ends[-1]], axes, "Root-to-tip regression")
    caption = "Distances of the tips from the root, in substitutions per site, over their dates; the line is the clock."
    remark = f"{name}.date.tsv lists the dates of all nodes; open {name}.date.nex in FigTree to see them on the tree."
    return [Section("dates", "Dates", (Facts(tuple(rows)), picture, Picture(plot, caption), Prose(remark)))]


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
    caption = "The time-scaled tree: branch lengths are in years."
    return mark_tree(nodes, marks, caption, legend=legend, keeps_root=True, time=time)


def _share(dating: Record) -> str:
    return f"{100 * dating['level']:g} %"


def _range(interval: list[float] | None, level: str, form: str) -> str:
    return "" if interval is None else f" ({level}: {interval[0]:{form}} to {interval[1]:{form}})"


def tell(records: Records, cited: Cited) -> list[str]:
    run = records.runs[COMMAND]
    tips = count(len(run["dating"]["root_to_tip"]), "sampling date")
    treetime = run["dating"]["treetime"] + cited.cite("Sagulenko, Puller & Neher 2018")
    return [f"Internal nodes were dated with TreeTime {treetime}, using {tips}."]
