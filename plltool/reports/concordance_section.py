"""The sections on the concordance of genes and sites, and on the genes."""

from __future__ import annotations

from plltool.constants import GCF, SCF, SCFL
from plltool.io.newick import parse_nodes
from plltool.reports.blocks import Block, Items, Picture, Prose, Section, Table, count
from plltool.reports.methods import Cited, list_words
from plltool.reports.picture import FAIR_COLOUR, GOOD_COLOUR, POOR_COLOUR, Mark
from plltool.reports.plots import draw_points
from plltool.reports.records import Record, Records, split_keys, split_of
from plltool.reports.tree_section import mark_tree

LABELLED = {GCF: "gCF", SCF: "sCF", SCFL: "sCFL"}  # the factors on the tree, and their columns
COLUMNS = (
    "gCF", "gDF1", "gDF2", "gDFP", "gN", "sCF", "sDF1", "sDF2", "sN", "sCFL", "sDFL1", "sDFL2", "sNL", "qCF", "IC",
)  # fmt: skip
DIGITS = {"gN": 0, "IC": 3}  # behind the point; others, per cent and numbers of sites, have one
COLOURS = ((50.0, GOOD_COLOUR), (100.0 / 3.0, FAIR_COLOUR))  # from which per cent on


def describe(records: Records) -> list[Section]:
    name, sections = records.prefix.name, []
    if records.genes:
        columns = ("Gene", "Taxa", "Sites", "Patterns", "lnL", "Model")
        rows = tuple(tuple(_shorten(row[column]) for column in columns) for row in records.genes)
        remark = f"{name}.genes.nwk has their trees, {name}.genes.tsv their files and the values of all parameters."
        sections.append(Section("genes", "Genes", (Table("Genes", columns, rows), Prose(remark))))
    return sections if records.concordance is None else [*sections, _describe_concordance(records.concordance, name)]


def _describe_concordance(found: Record, name: str) -> Section:
    nodes, branches = parse_nodes(found["tree"], "the record"), found["branches"]
    columns = [column for kind, column in LABELLED.items() if kind in found["kinds"]]
    by_split = {split_of(branch["taxa"], nodes): branch for branch in branches}
    marks = []
    for key, below in zip(split_keys(nodes), nodes.children(), strict=True):
        branch = by_split.get(key) if below else None
        marks.append(Mark() if branch is None else _mark(branch, columns))
    caption = f"The number of the branch in the table: {' / '.join(columns)}."
    legend = ""
    if columns:
        legend = f"The colour of a dot shows {columns[0]}: green from 50 % on, yellow from a third, red below."
    blocks: list[Block] = [mark_tree(nodes, marks, caption, legend=legend)]
    listed = [column for column in COLUMNS if column in found["columns"]]
    rows = tuple((str(branch["id"]), *(_write(branch["columns"][own], own) for own in listed)) for branch in branches)
    blocks.append(Table("Branches", ("Branch", *listed), rows))
    blocks.append(Items(tuple(f"{column}: {found['columns'][column]}" for column in listed)))
    points = [
        (branch["columns"]["gCF"], branch["columns"]["sCF"], f"branch {branch['id']}")
        for branch in branches
        if {"gCF", "sCF"} <= branch["columns"].keys() and None not in map(branch["columns"].get, ("gCF", "sCF"))
    ]
    if points:
        plot = draw_points(points, [(0.0, 0.0), (100.0, 100.0)], ("gCF", "sCF"), "Genes and sites")
        blocks.append(Picture(plot, "Gene and site concordance factors of each branch; on the line they are equal."))
    remark = (
        "If the data support the three resolutions of a branch equally, each has about 33 %. The branch itself is"
        f" AB|CD; DF1 stands for AC|BD, DF2 for AD|BC. {name}.cf.stat contains all columns; open {name}.cf.nex in"
        " FigTree."
    )
    return Section("concordance", "Concordance", (*blocks, Prose(remark)))


def _mark(branch: Record, columns: list[str]) -> Mark:
    values = [branch["columns"][column] for column in columns]
    text = f"{branch['id']}: {'/'.join(map(_write, values, columns))}"
    if not values or values[0] is None:
        return Mark(text)
    return Mark(text, next((colour for least, colour in COLOURS if values[0] >= least), POOR_COLOUR))


def _write(value: float | None, column: str) -> str:
    return "-" if value is None else f"{value:.{DIGITS.get(column, 1)}f}"


def _shorten(text: str) -> str:
    """A model without the values of its parameters; other texts as they are."""
    kept, depth = "", 0
    for letter in text:
        depth += letter == "{"
        kept += letter if depth == 0 else ""
        depth -= letter == "}"
    return kept


def tell(records: Records, cited: Cited) -> list[str]:
    found = records.concordance
    if found is None:
        return []
    kinds, told = found["kinds"], []
    by = cited.cite("Minh, Hahn & Lanfear 2020") if kinds.keys() & {GCF, SCF} else ""
    if GCF in kinds:
        told.append(f"gene concordance factors{by} from {count(kinds[GCF]['replicates'], 'gene tree')}")
    if SCF in kinds:
        told.append(f"site concordance factors{by} from {kinds[SCF]['replicates']} quartets per branch")
    if SCFL in kinds:
        told.append(f"likelihood-based site concordance factors{cited.cite('Mo et al. 2023')}")
    return [f"Concordance was assessed with {list_words(told)}."] if told else []
