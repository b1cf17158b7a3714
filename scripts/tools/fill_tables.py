#!/usr/bin/env python3
"""Fill the tables of a page of the documentation with their figures.

    python scripts/tools/fill_tables.py docs/experiments.md

Every cell for which docs/figures.toml gives a path (see figures.py) gets the number that `scripts/benchmarks/results/`
has there: with as many decimals as it has now, or with three significant digits if it is empty. A cell whose path leads
nowhere becomes empty.
"""

import argparse
from pathlib import Path

from figures import TABLE, evaluate, read_figures

SIGNIFICANT = 3


def show(value: float, cell: str) -> str:
    """A number as the cell shows it now."""
    number = cell.removesuffix(" %").partition("e")[0]
    if "e" in cell:
        return f"{value:.{len(number.partition('.')[2])}e}"
    if cell:
        decimals = len(number.partition(".")[2])
    else:
        decimals = max(0, SIGNIFICANT - len(f"{abs(value):.0f}")) if abs(value) >= 1 else SIGNIFICANT
    separator = "," if "," in cell or not cell else ""
    return f"{value:z{separator}.{decimals}f}" + (" %" if cell.endswith("%") else "")


def fill(text: str) -> str:
    """A page with its tables filled."""
    for name, table in TABLE.findall(text):
        figures = read_figures()[name]
        head, ruler, *rows = table.splitlines()
        filled = []
        for number, line in enumerate(rows):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            for place, expression in enumerate(figures.row(number)):
                if expression is not None:
                    value = evaluate(expression)
                    cells[place] = "" if value is None else show(value, cells[place])
            filled.append("| " + " | ".join(cells) + " |")
        before = f"<!-- figures: {name} -->\n\n"  # two tables may look alike
        text = text.replace(before + table, before + "\n".join([head, ruler, *filled]) + "\n")
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="+", type=Path)
    for page in parser.parse_args().pages:
        page.write_text(fill(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
