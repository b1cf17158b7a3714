"""The section on two devices, or two searches, side by side."""

from __future__ import annotations

from plltool.io.newick import parse_nodes
from plltool.reports.blocks import Block, Cell, Facts, MarkedTree, Prose, Section, Table
from plltool.reports.methods import Cited
from plltool.reports.picture import POOR_COLOUR, Mark
from plltool.reports.records import Record, Records, split_keys
from plltool.reports.tree_section import mark_tree

COMMAND = "compare"
VERDICTS = {True: Cell("agree", "good"), False: Cell("differ", "bad")}
PAIR_COLUMNS = "Devices", "lnL", "lnL of a site", "Site", "Slope", "Slope in", "Verdict"


def describe(records: Records) -> list[Section]:
    run = records.runs[COMMAND]
    blocks = _describe_likelihoods(run["comparison"]) if "comparison" in run else _describe_searches(run)
    return [Section("compare", "Comparison", tuple(blocks))]


def tell(records: Records, _: Cited) -> list[str]:
    run = records.runs[COMMAND]
    if "comparison" not in run:
        devices = f"{run['device']} and {run['b']['device']}"
        distance = f"the Robinson-Foulds distance of the final trees is {run['rf']}"
        return [f"The search was run twice, on {devices}; {distance}."]
    number = len(run["comparison"]["devices"])
    return [f"The likelihood of the tree and its derivatives were compared on {number} devices or precisions."]


def _describe_likelihoods(found: Record, tree: str = "the tree") -> list[Block]:
    """The answers of all devices, and how each pair differs."""
    answers = tuple((own["label"], own["device"], own["precision"], f"{own['lnl']:.6f}") for own in found["devices"])
    rows = tuple(
        (
            *(f"{pair['a']} and {pair['b']}", f"{pair['lnl']:.1e}", f"{pair['site_lnl']:.1e}", str(pair["site"])),
            *(f"{pair['slope']:.1e}", pair["slope_in"], VERDICTS[pair["agree"]]),
        )
        for pair in found["pairs"]
    )
    text = (
        "Slopes are derivatives of lnL by the logarithms of branch lengths and model parameters. Devices agree if lnL,"
        f" the lnL of each site and each slope differ by at most {found['tolerance']:g}, or by 1e-6 of lnL in mixed and"
        " single precision."
    )
    return [
        Table(f"lnL of {tree}", ("Device", "Name", "Precision", "lnL"), answers),
        Table("Largest differences", PAIR_COLUMNS, rows),
        *(Prose(failure) for failure in found["failures"]),
        Prose(text),
    ]


def _describe_searches(run: Record) -> list[Block]:
    """How two searches ended, where they part, and both trees if they differ."""
    a, b = run, run["b"]
    first, distances = run["first_difference"], run["replicates"]
    rows = [
        ("Search a", f"{run['label_a']}: {a['device']}"),
        ("Search b", f"{run['label_b']}: {b['device']}"),
        ("Final lnL", f"{a['lnl']:.6f} and {b['lnl']:.6f}, difference {run['difference']:z.6f}"),
        ("Robinson-Foulds distance", str(run["rf"])),
        ("Branch score distance", f"{run['branch_score']:.6f}"),
        ("First round that differs", "none" if first is None else str(first + 1)),
    ]
    if distances:
        rows.append(("Replicates with the same topology", f"{distances.count(0)} of {len(distances)}"))
    rows.append(("Result", "the searches agree" if run["agree"] else "the searches differ"))
    blocks: list[Block] = [Facts(tuple(rows)), *(Prose(f"Settings differ: {text}.") for text in run["other_settings"])]
    if run["before"] is not None:
        blocks += _describe_likelihoods(run["before"], "the tree of search a before they part")
    same = Prose("Both searches end at the same topology.")
    return [*blocks, *(_mark_both(a["tree"], b["tree"]) if run["rf"] else [same])]


def _mark_both(*newicks: str) -> list[MarkedTree]:
    """Both trees, with dots at the branches that the other one lacks."""
    trees = [parse_nodes(newick, "the record") for newick in newicks]
    keys = [split_keys(nodes) for nodes in trees]
    made = []
    for name, nodes, own, other in zip("ab", trees, keys, reversed(keys), strict=True):
        lacking = set(own) - set(other)
        marks = [Mark(dot=POOR_COLOUR) if key in lacking else Mark() for key in own]
        caption = f"Tree of search {name}: dots mark the {len(lacking)} branches that the other tree lacks."
        made.append(mark_tree(nodes, marks, caption))
    return made
