"""Every figure of the pages with tables is what the JSON in scripts/benchmarks/results/ gives."""

import re

import compare_plans
import compare_rivals
import draw_chains
import pytest
from figures import RESULTS, TABLE, evaluate, load, read_figures, tables
from pages import REPOSITORY

PAGE = (REPOSITORY / "docs" / "benchmarks.md").read_text(encoding="utf-8")
EXPERIMENTS = (REPOSITORY / "docs" / "experiments.md").read_text(encoding="utf-8")
GPUS = (REPOSITORY / "docs" / "gpu.md").read_text(encoding="utf-8")
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
SEARCHES = (REPOSITORY / "docs" / "guide" / "search.md").read_text(encoding="utf-8")
BEAGLE = (REPOSITORY / "docs" / "guide" / "beagle.md").read_text(encoding="utf-8")
PAGES = (README, PAGE, EXPERIMENTS, GPUS, BEAGLE)
HEAD = re.compile(r"^\|[-:|]+\|$", re.MULTILINE)


def rows_of(text):
    """(expressions, cells) of every row of the tables with a comment."""
    for figures, rows in tables(text):
        assert len(rows) == len(figures.cells or figures.rows)
        for number, cells in enumerate(rows):
            yield pytest.param(figures.row(number), cells, id=f"{figures.file}-{cells[0]}")


def read_cell(cell):
    """The number in a cell, and half a unit of its last digit."""
    text = cell.removesuffix(" %").replace(",", "")
    mantissa, _, power = text.partition("e")
    decimals = len(mantissa.partition(".")[2])
    return float(text), 0.5 * 10.0 ** (int(power or 0) - decimals)


@pytest.mark.parametrize(("expressions", "cells"), [case for page in PAGES for case in rows_of(page)])
def test_every_cell_is_what_the_results_hold(expressions, cells):
    assert len(expressions) == len(cells)
    for expression, cell in zip(expressions, cells, strict=True):
        if expression is None:
            continue
        value = evaluate(expression)
        if value is None:
            assert cell == "", expression
            continue
        printed, half = read_cell(cell)
        assert abs(printed - value) <= half * 1.000001, f"{expression}: found {cell}, expected {value}"


def test_every_table_says_where_its_figures_come_from():
    assert len([*tables(PAGE)]) == len(HEAD.findall(PAGE)) > 10
    assert len([*tables(EXPERIMENTS)]) == len(HEAD.findall(EXPERIMENTS)) > 3
    assert len([*tables(README)]) == 1
    assert {name for page in PAGES for name, _ in TABLE.findall(page)} == read_figures().keys()
    assert len([*tables(BEAGLE)]) == len(HEAD.findall(BEAGLE)) == 2


def test_every_table_names_its_files_where_a_reader_sees_them():
    sections = re.split(r"<!--.*?-->", PAGE, flags=re.DOTALL)
    for (figures, rows), section in zip(tables(PAGE), sections, strict=False):
        shown = section.rsplit("\n\n", 3)[-2:]
        expressions = [text for number in range(len(rows)) for text in figures.row(number) if text]
        for name in {figures.file, *re.findall(r"\S+\.json(?=#)", " ".join(expressions))}:
            assert (RESULTS / name).is_file()
            assert f"`scripts/benchmarks/results/{name}`" in "".join(shown) or "The same files" in "".join(shown), name


def test_every_named_file_exists():
    for page in PAGES:
        for name in re.findall(r"scripts/benchmarks/results/([\w.-]+\.json)", page):
            assert (RESULTS / name).is_file(), name


def test_the_chart_of_chains_shows_its_figures():
    chart = (REPOSITORY / "docs" / "static" / "chains.svg").read_text(encoding="utf-8")
    assert chart == draw_chains.draw(load("2026-11-24-chains-intel.json")["chains"])


def test_the_chart_of_rivals_shows_its_figures():
    chart = (REPOSITORY / "docs" / "static" / "rivals.svg").read_text(encoding="utf-8")
    totals = load("2026-11-28-rivals-treebase.json")["totals"]
    assert chart == compare_rivals.draw([row for row in totals if row["kind"] == "dna"])


def test_the_tables_and_the_chart_of_plans_show_their_figures():
    """A comment gives what the names of the sets hold, and the plans."""
    rows = load("2026-11-27-plans.json")
    found = re.findall(r"<!-- plans of (\w*): (.*?) -->\n\n(\S.*?)\n\n", SEARCHES, re.DOTALL)
    assert len(found) == 8
    for sets, plans, shown in found:
        counted = [row for row in rows if sets in row["set"]]
        if shown.startswith("|"):
            assert shown == compare_plans.table(counted, plans.split("; "))
        else:
            chart = (REPOSITORY / "docs" / "static" / "plans.svg").read_text(encoding="utf-8")
            assert chart == compare_plans.draw(counted, plans.split("; "))


def test_no_figure_stands_outside_a_table():
    prose = re.sub(r"<!--.*?-->", "", PAGE, flags=re.DOTALL)
    prose = "\n".join(line for line in prose.splitlines() if not line.startswith("|"))
    prose = re.sub(r"`[^`]*`|with alpha 0\.3", "", prose)
    measured = re.findall(r"(?<![\d.])\d+\.\d+(?![\d.])|\d+ %|\d+ s\b", prose)
    assert measured == []
