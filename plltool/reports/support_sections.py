"""The sections on supports of branches, on tests of trees, and on the concordance of genes and sites."""

from collections.abc import Sequence
from statistics import median

from plltool.constants import GCF, SCF, SCFL, SUPPORT_KINDS, TEST_LEVEL
from plltool.errors import count
from plltool.io.newick import parse_nodes
from plltool.reports.blocks import Cell, Content, Items, Plot, Section, Table, share
from plltool.reports.methods import Methods, list_words, read_table, tell
from plltool.reports.picture import FAIR_COLOUR, GOOD_COLOUR, POOR_COLOUR, Mark
from plltool.reports.plots import draw_histogram, draw_path, draw_points
from plltool.reports.records import Record, Records, drop_braces, number_taxa, split_of, splits_above
from plltool.reports.tree_blocks import MarkedTree

STRONG = 0.95  # of the largest support: branches from here on are counted
MEANS = read_table("terms.txt", "halves")  # by which halves of the replicates are compared
CONVERGED = {True: ("yes", "good"), False: ("no", "bad")}
_KINDS = read_table("supports.txt").items()  # meaning, unit, of what there is a number; name in a text, source
SUPPORT_SOURCES = {kind: text.split(" | ")[3:] for kind, text in _KINDS if kind in SUPPORT_KINDS}
TEST_SOURCES = read_table("terms.txt", "test")
TESTS = ("kh", "sh", "wkh", "wsh", "au")
LABELLED = {GCF: "gCF", SCF: "sCF", SCFL: "sCFL"}  # the factors on the tree, and their columns
COLUMNS = (
    "gCF", "gDF1", "gDF2", "gDFP", "gN", "sCF", "sDF1", "sDF2", "sN", "sCFL", "sDFL1", "sDFL2", "sNL", "qCF", "IC",
)  # fmt: skip
DIGITS = {"gN": 0, "IC": 3}  # behind the point; others, per cent and numbers of sites, have one
COLOURS = ((50.0, GOOD_COLOUR), (100.0 / 3.0, FAIR_COLOUR))  # from which per cent on


def describe_supports(records: Records, methods: Methods) -> list[Section]:
    content: list[Content] = []
    supports = records.supports
    if supports is not None:
        if records.supports_are_of_main_tree:
            methods.say(_tell_supports(supports, methods))
        else:
            content.append(tell("supports.of_other"))
        rows, plots = [], []
        for kind, own in supports["kinds"].items():
            values = [branch[kind] for branch in supports["branches"]]
            largest = 1.0 if own["unit"] == "0 to 1" else 100.0
            strong = sum(value >= STRONG * largest for value in values)
            middle = f"{median(values):.4g}" if values else "-"
            replicates = "-" if own["replicates"] is None else str(own["replicates"])
            rows.append((kind, own["meaning"], own["unit"], replicates, middle, f"{strong} of {len(values)}"))
            if values:
                plot = draw_histogram(values, largest, (kind, "branches"), f"Histogram of {kind}")
                plots.append(Plot(plot, tell("supports.plot", kind=kind)))
        columns = ("Kind", "Meaning", "Unit", "Replicates", "Median", "Branches with 95 % or more")
        content += [Table("Supports", columns, rows, is_text=True), *plots]
        content += _describe_convergence(supports.get("convergence", ()))
    if records.n_bootstraps:
        name = f"{records.prefix.name}.bootstraps.nwk"
        content.append(f"{name} contains {count(records.n_bootstraps, 'bootstrap tree')}.")
    return [Section("supports", "Supports", content)] if content else []


def _describe_convergence(tests: Sequence[Record]) -> list[Content]:
    """Whether there are enough bootstrap replicates, if their number was to be found."""
    if not tests:
        return []
    criterion = tests[0]["criterion"]
    what = MEANS[criterion]
    rows = [
        (str(test["n_trees"]), f"{test['mean']:.4f}", share(test["agreeing"]), Cell(*CONVERGED[test["converged"]]))
        for test in tests
    ]
    columns = ("Replicates", f"Mean {what}", "Halves that agree", "Enough")
    table = Table("Convergence of the bootstrap", columns, rows)
    content: list[Content] = [table, tell("supports.convergence", criterion=criterion)]
    if len(tests) > 1:
        points = [(test["n_trees"], test["mean"]) for test in tests]
        names = "replicates", what
        plot = draw_path([points], [[0] * len(points)], [criterion], names, "Convergence of the bootstrap")
        content.append(Plot(plot, tell("supports.halves", what=what)))
    return content


def _tell_supports(supports: Record, methods: Methods) -> str:
    kinds = []
    for kind, own in supports["kinds"].items():
        name, source = SUPPORT_SOURCES[kind]
        number = "" if own["replicates"] is None else count(own["replicates"], "replicate")
        kinds.append(name + methods.cite(source, also=number))
    told = [tell("supports", kinds=list_words(kinds))]
    if supports.get("convergence"):
        criterion, source = supports["convergence"][-1]["criterion"], methods.cite("Pattengale et al. 2010")
        told.append(tell("supports.criterion", criterion=criterion, source=source))
    return " ".join(told)


# --- tests of trees ---------------------------------------------------------------------------------------


def describe_tests(records: Records, methods: Methods) -> list[Section]:
    tests = records.runs["test"]["tests"]
    names = [name + methods.cite(source) for name, source in TEST_SOURCES.items()]
    methods.say(tell("tests", number=len(tests["trees"]), names=list_words(names), tests=tests))
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
    told = [tell("tests.marks", level=TEST_LEVEL, weights=1 - TEST_LEVEL, tests=tests)]
    if any(tree.get("au_undetermined") for tree in tests["trees"]):
        told.append(tell("tests.undetermined"))
    return [Section("tests", "Tests of trees", [Table("Tests of trees", columns, rows), " ".join(told)])]


def _judged(value: float, is_kept: bool) -> Cell:
    return Cell.judged(f"{value:.4f} {'+' if is_kept else '-'}", is_kept)


# --- concordance ------------------------------------------------------------------------------------------


def describe_concordance(records: Records, methods: Methods) -> list[Section]:
    name, sections, found = records.prefix.name, [], records.concordance
    if records.genes:
        columns = ("Gene", "Taxa", "Sites", "Patterns", "lnL", "Model")
        rows = [[drop_braces(row[column]) for column in columns] for row in records.genes]
        sections.append(Section("genes", "Genes", [Table("Genes", columns, rows), tell("genes", name=name)]))
    if found is None:
        return sections
    kinds, told = found["kinds"], []
    by = methods.cite("Minh, Hahn & Lanfear 2020") if kinds.keys() & {GCF, SCF} else ""
    if GCF in kinds:
        told.append(f"gene concordance factors{by} from {count(kinds[GCF]['replicates'], 'gene tree')}")
    if SCF in kinds:
        told.append(f"site concordance factors{by} from {kinds[SCF]['replicates']} quartets per branch")
    if SCFL in kinds:
        told.append(f"likelihood-based site concordance factors{methods.cite('Mo et al. 2023')}")
    methods.say(*([f"Concordance was assessed with {list_words(told)}."] if told else []))
    return [*sections, _describe_factors(found, name)]


def _describe_factors(found: Record, name: str) -> Section:
    nodes, branches = parse_nodes(found["tree"], "the record"), found["branches"]
    columns = [column for kind, column in LABELLED.items() if kind in found["kinds"]]
    numbers = number_taxa(nodes)
    by_split, splits = {split_of(branch["taxa"], numbers): branch for branch in branches}, splits_above(nodes, numbers)
    marks = []
    for node, below in enumerate(nodes.children()):
        branch = by_split.get(splits.get(node, 0)) if below else None
        marks.append(Mark() if branch is None else _mark(branch, columns))
    caption = f"The number of the branch in the table: {' / '.join(columns)}."
    legend = tell("concordance.dots", first=columns[0]) if columns else ""
    content: list[Content] = [MarkedTree.of(nodes, marks, caption, legend=legend)]
    listed = [column for column in COLUMNS if column in found["columns"]]
    rows = [(str(branch["id"]), *(_write(branch["columns"][own], own) for own in listed)) for branch in branches]
    content.append(Table("Branches", ("Branch", *listed), rows))
    content.append(Items([f"{column}: {found['columns'][column]}" for column in listed]))
    points = [
        (branch["columns"]["gCF"], branch["columns"]["sCF"], f"branch {branch['id']}")
        for branch in branches
        if {"gCF", "sCF"} <= branch["columns"].keys() and None not in map(branch["columns"].get, ("gCF", "sCF"))
    ]
    if points:
        plot = draw_points(points, [(0.0, 0.0), (100.0, 100.0)], ("gCF", "sCF"), "Genes and sites")
        content.append(Plot(plot, tell("concordance.plot")))
    return Section("concordance", "Concordance", [*content, tell("concordance", name=name)])


def _mark(branch: Record, columns: list[str]) -> Mark:
    values = [branch["columns"][column] for column in columns]
    text = f"{branch['id']}: {'/'.join(map(_write, values, columns))}"
    if not values or values[0] is None:
        return Mark(text)
    return Mark(text, next((colour for least, colour in COLOURS if values[0] >= least), POOR_COLOUR))


def _write(value: float | None, column: str) -> str:
    return "-" if value is None else f"{value:.{DIGITS.get(column, 1)}f}"
