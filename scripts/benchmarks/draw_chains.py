"""Draw the chart of chains in docs/experiments.md: the time of a generation against the number of chains.

    cd scripts/benchmarks; python draw_chains.py results/2026-11-24-chains-intel.json ../../docs/static/chains.svg

A line is a shape, and its y is the processor time of a generation relative to that with one chain.
"""

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from plltool.reports.plots import draw_path

STYLE = """<style>
text { fill: #666; font: 12px sans-serif; } .tick { font-size: 11px; }
.axis, .line { stroke: #888; fill: none; } .line { stroke-width: 0.8; }
.kind0 { fill: #7f7f7f; } .kind1 { fill: #1f77b4; } .kind2 { fill: #2ca02c; } .kind3 { fill: #ff7f0e; }
.kind4 { fill: #d62728; }
</style>"""


def draw(rows: list[dict[str, Any]]) -> str:
    """The chart of the rows of `experiments.py chains` as an SVG document."""
    shapes = list(dict.fromkeys((row["taxa"], row["patterns"]) for row in rows))
    lines = []
    for shape in shapes:
        own = [row for row in rows if (row["taxa"], row["patterns"]) == shape]
        lines.append([(row["chains"], row["processor_seconds"] / own[0]["processor_seconds"]) for row in own])
    legend = [f"{taxa} x {patterns:,}" for taxa, patterns in shapes]
    kinds = [[number] * len(line) for number, line in enumerate(lines)]
    title = "Time of a generation against the number of chains"
    return as_document(draw_path(lines, kinds, legend, ("chains", "time, that of one chain = 1"), title))


def draw_ends(ends: Iterable[tuple[str, float, float]], seconds: str) -> str:
    """Mean losses of lnL against `seconds`, as an SVG document: (program, time, loss), with a line for each program."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for program, time, loss in ends:
        lines.setdefault(program, []).append((time, -loss))
    kinds = [[number] * len(line) for number, line in enumerate(lines.values())]
    names = seconds, "lnL against the best, mean"
    return as_document(draw_path(list(lines.values()), kinds, list(lines), names, "Ends of searches against time"))


def as_document(plot: str) -> str:
    """A chart of a page as an SVG document of its own."""
    return plot.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1).replace(">", f">{STYLE}", 1) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("chart", type=Path)
    options = parser.parse_args()
    options.chart.write_text(draw(json.loads(options.results.read_text())["chains"]))


if __name__ == "__main__":
    main()
