"""The sections on a tree: supports, tests, concordance, dates, ancestral states, and sequences placed on it."""

import math
from collections.abc import Sequence
from statistics import median

from plltool.constants import GCF, SCF, SCFL, SUPPORT_KINDS, SURE_WEIGHT, TEST_LEVEL
from plltool.errors import count
from plltool.io.jplace import Jplace, JplaceRow
from plltool.io.newick import parse_nodes
from plltool.reports.blocks import Block, Cell, Content, Items, Plot, Section, Table, share
from plltool.reports.methods import Methods, list_words, read_table, tell
from plltool.reports.picture import FAIR_COLOUR, GOOD_COLOUR, POOR_COLOUR, Mark, TimeScale
from plltool.reports.plots import draw_histogram, draw_path, draw_points
from plltool.reports.records import Record, Records, drop_braces, number_taxa, split_of, splits_above
from plltool.reports.tree_blocks import MarkedTree
from plltool.tree.rooted_nodes import RootedNodes

STRONG = 0.95  # of the largest support: branches from here on are counted
MEANS = read_table("terms.txt", "halves")  # by which halves of the replicates are compared
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
    rows = []
    for test in tests:
        enough = Cell.judged("yes" if test["converged"] else "no", test["converged"])
        rows.append((str(test["n_trees"]), f"{test['mean']:.4f}", share(test["agreeing"]), enough))
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
        if None not in map(branch["columns"].get, ("gCF", "sCF"))
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


# --- dates ------------------------------------------------------------------------------------------------

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
