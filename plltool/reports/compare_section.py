"""The section on two devices, or two searches, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from plltool.errors import show_name
from plltool.io.newick import parse_nodes
from plltool.progress import name_stage
from plltool.reports.blocks import Block, Cell, Facts, Folded, Items, MarkedTree, Prose, Section, Table
from plltool.reports.methods import Cited
from plltool.reports.picture import POOR_COLOUR, Mark
from plltool.reports.records import Record, Records, split_keys
from plltool.reports.search_section import tell_search
from plltool.reports.tree_section import mark_tree

COMMAND = "compare"
VERDICTS = {True: Cell("agree", "good"), False: Cell("differ", "bad")}
SHOWN_MOVES = 5  # of either search, in the first round in which they differ
PAIR_COLUMNS = "Devices", "lnL", "lnL of a site", "Site", "Slope", "Slope in", "Verdict"


def describe(records: Records) -> list[Section]:
    run = records.runs[COMMAND]
    blocks = _describe_likelihoods(run["comparison"]) if "comparison" in run else _describe_searches(run)
    return [Section("compare", "Comparison", tuple(blocks))]


def tell(records: Records, cited: Cited) -> list[str]:
    run = records.runs[COMMAND]
    if "comparison" not in run:
        devices = f"{run['device']} and {run['b']['device']}"
        distance = f"the Robinson-Foulds distance of the final trees is {run['rf']}"
        return [*tell_search(run, cited), f"The search was run twice, on {devices}; {distance}."]
    number = len(run["comparison"]["devices"])
    return [f"The likelihood of the tree and its derivatives were compared on {number} devices or precisions."]


def _describe_likelihoods(found: Record, tree: str = "the tree") -> list[Block]:
    """The answers of all devices, and how each pair differs."""
    answers = tuple((own["label"], own["device"], own["precision"], f"{own['lnl']:.6f}") for own in found["devices"])
    rows = []
    for pair in found["pairs"]:
        lnl, site_lnl, slope = (f"{pair[name]:.1e}" for name in ("lnl", "site_lnl", "slope"))
        site = f"{pair['a']} and {pair['b']}", lnl, site_lnl, str(pair["site"])
        rows.append((*site, slope, pair["slope_in"], VERDICTS[pair["agree"]]))
    text = (
        "Slopes are derivatives of lnL by the logarithms of branch lengths and model parameters. Devices agree if lnL,"
        f" the lnL of each site and each slope differ by at most {found['tolerance']:g}, or by 1e-6 of lnL in mixed and"
        " single precision."
    )
    return [
        Facts(((f"Likelihoods of {tree}", "agree" if found["agree"] else "differ"),)),
        Table(f"lnL of {tree}", ("Device", "Name", "Precision", "lnL"), answers),
        Table("Largest differences", PAIR_COLUMNS, tuple(rows)),
        *(Prose(failure) for failure in found["failures"]),
        Prose(text),
    ]


def _describe_searches(run: Record) -> list[Block]:
    """How two searches ended, where they part, and both trees if they differ."""
    a, b = run, run["b"]
    first, distances = run["first_difference"], run["replicates"]
    rounds = [_describe_round(*pair) for pair in zip_longest(run.get("trace", []), b.get("trace", []))]
    rows = [
        ("Search a", f"{run['label_a']}: {a['device']}"),
        ("Search b", f"{run['label_b']}: {b['device']}"),
        ("Final lnL", f"{a['lnl']:.6f} and {b['lnl']:.6f}, difference {run['difference']:z.6f}"),
        ("Robinson-Foulds distance", str(run["rf"])),
        ("Branch score distance", f"{run['branch_score']:.6f}"),
        ("First round that differs", "none" if first is None else rounds[first][0]),
    ]
    if distances:
        rows.append(("Replicates with the same topology", f"{distances.count(0)} of {len(distances)}"))
    rows.append(("Result", "the searches agree" if run["agree"] else "the searches differ"))
    blocks: list[Block] = [Facts(tuple(rows)), *(Prose(f"Settings differ: {text}.") for text in run["other_settings"])]
    if rounds:
        table = Table("Rounds of both searches", ("Round", "lnL of a", "lnL of b", "Difference"), tuple(rounds))
        blocks.append(Folded("Rounds of both searches", (table,)))
    if moves := tell_moves(run["moves_of_a"], run["moves_of_b"]):
        blocks += [Prose("In the first round that differs:"), Items(tuple(moves))]
    if run["before"] is not None:
        blocks += _describe_likelihoods(run["before"], "the tree of search a before they part")
    same = Prose("Both searches end at the same topology.")
    return [*blocks, *(_mark_both(a["tree"], b["tree"]) if run["rf"] else [same])]


def _describe_round(a: Record | None, b: Record | None) -> tuple[str, str, str, str]:
    """The row of a round of both searches; a search that has ended has none."""
    both = [own for own in (a, b) if own is not None]
    names = [f"{name_stage(own['stage'], own['radius'])} {own['round']}" for own in both]
    lnls = ["-" if own is None else f"{own['lnl']:.6f}" for own in (a, b)]
    difference = "-" if a is None or b is None else f"{b['lnl'] - a['lnl']:z.6f}"
    return " / ".join(dict.fromkeys(names)), lnls[0], lnls[1], difference


def tell_moves(*searches: Sequence[Record]) -> list[str]:
    """A line for each of the first moves that only one of two searches made."""
    lines = []
    for name, moves in zip("ab", searches, strict=True):
        lines += [f"only {name} moved {_tell_move(move)}" for move in moves[:SHOWN_MOVES]]
        lines += [f"and {len(moves) - SHOWN_MOVES} more"] * (len(moves) > SHOWN_MOVES)
    return lines


def _tell_move(move: Record) -> str:
    subtree, branch = (" and ".join(map(show_name, move[end])) for end in ("subtree", "branch"))
    root = "" if len(move["subtree"]) == 1 else "the subtree rooted between "
    return f"{root}{subtree} to between {branch}, promising {move['gain']:.4f}"


def _mark_both(*newicks: str) -> list[MarkedTree]:
    """Both trees, with dots at the branches that the other one lacks."""
    trees = [parse_nodes(newick, "the record") for newick in newicks]
    keys = [split_keys(nodes) for nodes in trees]
    made = []
    for name, nodes, own, other in zip("ab", trees, keys, reversed(keys), strict=True):
        lacking = set(own) - set(other)
        marks = [Mark(dot=POOR_COLOUR) if key in lacking else Mark() for key in own]
        caption = f"Tree of search {name}: dots (in text stars) mark the {len(lacking)} branches that the other lacks."
        made.append(mark_tree(nodes, marks, caption))
    return made
