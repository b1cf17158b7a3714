"""The section on the search: lnL against time, and where the start trees ended."""

from __future__ import annotations

from plltool.reports.blocks import Block, Facts, Picture, Section, Table
from plltool.reports.figures import duration
from plltool.reports.markup import Markup
from plltool.reports.plots import draw_path
from plltool.reports.records import Record

STAGES = {  # in the order of a search, and what they are
    "start": "start tree",
    "nni": "NNI",
    "spr": "SPR",
    "model": "model",
    "fuse": "fusing",
    "perturb": "perturbation",
    "polish": "polish",
}
LARGEST_MATRIX = 12  # trees, more are too many for the width of a page


def describe_search(run: Record) -> Section:
    """How the tree was found."""
    lnls, trace = run["start_lnls"], run.get("trace", [])
    moves = sum(event["moves"] for event in trace)
    rows = [
        ("Start trees", str(len(lnls))),
        ("Seed", str(run["seed"])),
        ("Rounds", str(len(trace))),
        ("Subtrees moved", str(moves)),
        ("Time", duration(run["seconds"])),
    ]
    blocks: list[Block] = [Facts(tuple(rows))]
    if trace:
        plot = _plot_trace(trace)
        blocks.append(
            Picture(plot, "Log-likelihood against time: each dot is a round of the search, coloured by stage")
        )
    distances = run.get("start_distances") or ["-"] * len(lnls)
    ended = tuple(
        (f"{number}", f"{lnl:.4f}", f"{lnl - run['lnl']:.4f}", str(distance))
        for number, (lnl, distance) in enumerate(zip(lnls, distances, strict=True), start=1)
    )
    columns = ("Start tree", "Final lnL", "Difference from the best tree", "Robinson-Foulds distance to the best tree")
    blocks.append(Table("Final tree from each starting tree", columns, ended))
    between = run.get("climb_distances") or []
    if 2 <= len(between) <= LARGEST_MATRIX:
        numbers = tuple(str(number) for number in range(1, len(between) + 1))
        matrix = tuple((number, *map(str, row)) for number, row in zip(numbers, between, strict=True))
        blocks.append(Table("Robinson-Foulds distances between these trees", ("Start tree", *numbers), matrix))
    rounds: dict[str, list[Record]] = {}
    for event in trace:
        rounds.setdefault(event["stage"], []).append(event)
    stages = tuple(
        (
            STAGES.get(stage, stage),
            str(len(events)),
            str(sum(event["moves"] for event in events)),
            f"{max(event['lnl'] for event in events):.4f}",
        )
        for stage, events in rounds.items()
    )
    if stages:
        blocks.append(Table("Stages of the search", ("Stage", "Rounds", "Subtrees moved", "Best lnL"), stages))
    return Section("search", "Search", tuple(blocks))


def _plot_trace(trace: list[Record]) -> Markup:
    """A line for each climb: the climbs of several processes have numbers, others begin with a start tree."""
    found = dict.fromkeys(event["stage"] for event in trace)
    order = [stage for stage in STAGES if stage in found] + [stage for stage in found if stage not in STAGES]
    lines: list[list[Record]] = []
    for event in trace:
        if not lines or event["stage"] == "start" or event["start"] != lines[-1][-1]["start"]:
            lines.append([])
        lines[-1].append(event)
    points = [[(event["seconds"], event["lnl"]) for event in line] for line in lines]
    kinds = [[order.index(event["stage"]) for event in line] for line in lines]
    legend = [str(STAGES.get(stage, stage)) for stage in order]
    return draw_path(points, kinds, legend, ("seconds since the search began", "lnL"), "Log-likelihood against time")
