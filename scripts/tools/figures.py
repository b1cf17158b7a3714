"""The figures of tables: what docs/figures.toml says of their cells, read from the JSON that holds them.

The comment ``<!-- figures: NAME -->`` above a table of a page names a table of that file. It has the name of a file in
``scripts/benchmarks/results/``, and says for each column where its cells come from::

    [NAME]
    file = "2026-11-21-rivals-intel.json"
    rows = ["dna59", "dna101"]
    columns = ["-", "median sets/{row}/plltool:intel/*/seconds"]

A "-" is a column that holds no figure. ``{row}`` is the text of that row. ``cells`` in place of ``rows`` and
``columns`` lists the columns of every row after the first, which holds no figure. A path consists of keys, numbers of
list items, ``*`` for all items, and ``[key=value,key=value]`` for the item that has these values; ``FILE.json#``
before it names another file. Words before a path change the number: "median" of all, "percent", "milli", "mega",
"giga", "gibi". A cell whose path leads nowhere must be empty.
"""

import json
import re
import statistics
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
FIGURES = REPOSITORY / "docs" / "figures.toml"
RESULTS = REPOSITORY / "scripts" / "benchmarks" / "results"
FACTORS = {"percent": 100.0, "milli": 1e3, "mega": 1e-6, "giga": 1e-9, "gibi": 2.0**-30}
TABLE = re.compile(r"<!-- figures: (\S+) -->\n\n((?:\|[^\n]*\n)+)")


@cache
def load(name):
    """The content of a file in ``scripts/benchmarks/results/``."""
    return json.loads((RESULTS / name).read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Figures:
    """Where the cells of a table come from."""

    file: str
    rows: Sequence[str] = ()
    columns: Sequence[str] = ()
    cells: Sequence[Sequence[str]] = ()

    def row(self, number):
        """The expressions of a row, None for a cell that holds no figure."""
        if self.cells:
            found = ["-", *self.cells[number]]
        else:
            found = [column.format(row=self.rows[number]) for column in self.columns]
        return [None if text == "-" else f"{self.file} {text}" for text in found]


@cache
def read_figures():
    """The Figures of every table by their names."""
    return {name: Figures(**entry) for name, entry in tomllib.loads(FIGURES.read_text(encoding="utf-8")).items()}


def split_path(path):
    """The steps of a path; a step in square brackets may hold slashes."""
    return re.findall(r"\[[^]]*\]|[^/]+", path)


def follow(value, steps):
    """All that a path leads to, as a list; empty if it leads nowhere."""
    if not steps:
        return [value]
    step, *rest = steps
    if step == "*":
        return [found for item in value for found in follow(item, rest)]
    if step.startswith("["):
        wanted = dict(pair.split("=", 1) for pair in step[1:-1].split(","))
        items = [item for item in value if all(str(item.get(key)) == text for key, text in wanted.items())]
        return [found for item in items for found in follow(item, rest)]
    if isinstance(value, list):
        return follow(value[int(step)], rest) if int(step) < len(value) else []
    return follow(value[step], rest) if isinstance(value, dict) and step in value else []


def evaluate(expression):
    """The number that an expression gives, None if its path leads nowhere."""
    source, word, path = re.fullmatch(r"(\S+) (?:(median|percent|milli|mega|giga|gibi) )?(.*)", expression).groups()
    if "#" in path:
        source, path = path.split("#", 1)
    numbers = follow(load(source), split_path(path))
    if not numbers:
        return None
    if word == "median":
        return statistics.median(numbers)
    assert len(numbers) == 1, f"{expression}: found {len(numbers)} numbers, expected one"
    return numbers[0] * FACTORS.get(word, 1.0)


def tables(text):
    """The (Figures, rows of cells) of every table of a page that has a comment."""
    for name, table in TABLE.findall(text):
        rows = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in table.splitlines()[2:]]
        yield read_figures()[name], rows
