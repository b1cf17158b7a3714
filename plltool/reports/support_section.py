"""The sections on supports of branches and on tests of trees."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from plltool.constants import SUPPORT_KINDS, TEST_LEVEL
from plltool.reports.blocks import Block, Cell, Picture, Prose, Section, Table, count, share
from plltool.reports.methods import Cited, list_words, read_table
from plltool.reports.plots import draw_histogram, draw_path
from plltool.reports.records import Record, Records

BINS = 10
STRONG = 0.95  # of the largest support: branches from here on are counted
MEANS = {"autoMRE": "weighted RF distance", "autoFC": "correlation"}  # by which halves of the replicates are compared
CONVERGED = {True: ("yes", "good"), False: ("no", "bad")}
_KINDS = read_table("supports.txt").items()  # meaning, unit, of what there is a number; name in a text, source
SUPPORT_SOURCES = {kind: text.split(" | ")[3:] for kind, text in _KINDS if kind in SUPPORT_KINDS}
TEST_SOURCES = {
    "the KH test": "Kishino & Hasegawa 1989",
    "the SH test": "Shimodaira & Hasegawa 1999",
    "the weighted KH and SH tests and the AU test": "Shimodaira 2002",
    "expected likelihood weights": "Strimmer & Rambaut 2002",
}
TESTS = ("kh", "sh", "wkh", "wsh", "au")


def describe(records: Records) -> list[Section]:
    tests = [_describe_tests(records.runs["test"])] if "test" in records.runs else []
    return _describe_supports(records) + tests


def _describe_supports(records: Records) -> list[Section]:
    blocks: list[Block] = []
    supports = records.supports
    if supports is not None:
        if not records.supports_are_of_main_tree:
            blocks.append(Prose("These support values belong to a different tree from the one above."))
        rows = []
        for kind, own in supports["kinds"].items():
            values, largest = [branch[kind] for branch in supports["branches"]], _largest(own)
            strong = sum(value >= STRONG * largest for value in values)
            of = f"{strong} of {len(values)}"
            middle = f"{median(values):.4g}" if values else "-"
            replicates = "-" if own["replicates"] is None else str(own["replicates"])
            rows.append((kind, own["meaning"], own["unit"], replicates, middle, of))
        columns = ("Kind", "Meaning", "Unit", "Replicates", "Median", "Branches with 95 % or more")
        blocks.append(Table("Supports", columns, tuple(rows), is_text=True))
        for kind, own in supports["kinds"].items():
            if values := [branch[kind] for branch in supports["branches"]]:
                plot = draw_histogram(values, _largest(own), (kind, "branches"), f"Histogram of {kind}")
                caption = f"Supports by {kind}: the number of branches in each tenth of the scale."
                blocks.append(Picture(plot, caption))
        blocks += _describe_convergence(supports.get("convergence", ()))
    if records.n_bootstraps:
        name = f"{records.prefix.name}.bootstraps.nwk"
        blocks.append(Prose(f"{name} contains {count(records.n_bootstraps, 'bootstrap tree')}."))
    return [Section("supports", "Supports", tuple(blocks))] if blocks else []


def _describe_convergence(tests: Sequence[Record]) -> list[Block]:
    """Whether there are enough bootstrap replicates, if their number was to be found."""
    if not tests:
        return []
    criterion = tests[0]["criterion"]
    what = MEANS[criterion]
    cells = [Cell(*CONVERGED[test["converged"]]) for test in tests]
    numbers = [(str(test["n_trees"]), f"{test['mean']:.4f}", share(test["agreeing"])) for test in tests]
    rows = tuple((*own, cell) for own, cell in zip(numbers, cells, strict=True))
    text = (
        f"The replicates were split into random halves. There are enough if nearly all halves agree by {criterion}"
        " (Pattengale et al. 2010)."
    )
    columns = ("Replicates", f"Mean {what}", "Halves that agree", "Enough")
    blocks: list[Block] = [Table("Convergence of the bootstrap", columns, rows), Prose(text)]
    if len(tests) > 1:
        points = [(test["n_trees"], test["mean"]) for test in tests]
        names = "replicates", what
        plot = draw_path([points], [[0] * len(points)], [criterion], names, "Convergence of the bootstrap")
        blocks.append(Picture(plot, f"Mean {what} of random halves of the replicates."))
    return blocks


def _describe_tests(run: Record) -> Section:
    tests = run["tests"]
    columns = ("Tree", "lnL", "Difference", "bp", "p-KH", "p-SH", "p-WKH", "p-WSH", "p-AU", "ELW")
    rows = []
    for number, tree in enumerate(tests["trees"], start=1):
        cells: list[str | Cell] = [str(number), f"{tree['lnl']:.4f}", f"{tree['delta']:.4f}", f"{tree['bp']:.4f}"]
        for name in TESTS:
            p = tree[name]
            if name == "au" and tree.get("au_undetermined"):
                cells.append(Cell(f"{p:.4f} ?", ""))
            else:
                cells.append("-" if p is None else _judged(p, p >= TEST_LEVEL))
        rows.append((*cells, _judged(tree["elw"], tree["in_elw_set"])))
    text = (
        f"A tree marked + is not rejected, a tree marked - is rejected: p < {TEST_LEVEL:g}, or (ELW) outside the set of"
        f" the largest weights that sum to {1 - TEST_LEVEL:g}. Replicates (RELL): {tests['n_replicates']}, seed"
        f" {tests['seed']}."
    )
    if any(tree.get("au_undetermined") for tree in tests["trees"]):
        text += " A ? marks an AU p-value that cannot be determined, because the tree is hardly ever the best."
    return Section("tests", "Tests of trees", (Table("Tests of trees", columns, tuple(rows)), Prose(text)))


def _judged(value: float, is_kept: bool) -> Cell:
    return Cell.judged(f"{value:.4f} {'+' if is_kept else '-'}", is_kept)


def _largest(kind: Record) -> float:
    """The largest support of a kind, in its unit."""
    return 1.0 if kind["unit"] == "0 to 1" else 100.0


def tell(records: Records, cited: Cited) -> list[str]:
    told = []
    if records.supports is not None and records.supports_are_of_main_tree:
        kinds = []
        for kind, own in records.supports["kinds"].items():
            name, source = SUPPORT_SOURCES[kind]
            number = "" if own["replicates"] is None else count(own["replicates"], "replicate")
            kinds.append(name + cited.cite(source, also=number))
        text = f"Branch support was assessed with {list_words(kinds)}."
        if records.supports.get("convergence"):
            criterion = records.supports["convergence"][-1]["criterion"]
            source = cited.cite("Pattengale et al. 2010")
            text += f" The {criterion} criterion{source} determined the number of bootstrap replicates."
        told.append(text)
    if "test" in records.runs:
        tests = records.runs["test"]["tests"]
        names = [name + cited.cite(source) for name, source in TEST_SOURCES.items()]
        number = f"{tests['n_replicates']:,} RELL replicates"
        told.append(f"We compared {len(tests['trees'])} trees with {list_words(names)}, using {number}.")
    return told
