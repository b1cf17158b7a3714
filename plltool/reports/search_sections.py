"""The sections on a search, lnL against time and where the start trees ended, and on two devices or searches."""

from collections.abc import Sequence
from itertools import zip_longest

from plltool.errors import count, show_name
from plltool.io.newick import parse_nodes
from plltool.progress import name_stage
from plltool.reports.blocks import Cell, Content, Folded, Items, Plot, Section, Table, duration
from plltool.reports.methods import Methods, list_words, read_table, tell, tell_model
from plltool.reports.picture import POOR_COLOUR, Mark
from plltool.reports.plots import Markup, draw_path
from plltool.reports.records import Record, Records, number_taxa, splits_above
from plltool.reports.tree_blocks import MarkedTree

STAGES = read_table("terms.txt", "stage")  # in the order of a search, and what they are
LARGEST_MATRIX = 12  # trees, more are too many for the width of a page
VERDICTS = {True: Cell("agree", "good"), False: Cell("differ", "bad")}
SHOWN_MOVES = 5  # of either search, in the first round in which they differ
PAIR_COLUMNS = "Devices", "lnL", "lnL of a site", "Site", "Slope", "Slope in", "Verdict"


def describe_search(records: Records, methods: Methods) -> list[Section]:
    run = records.runs["search"]
    methods.say(_tell_run(run, methods))
    lnls, trace = run["start_lnls"], run.get("trace", [])
    facts = {
        "Start trees": str(len(lnls)),
        "Seed": str(run["seed"]),
        "Rounds": str(len(trace)),
        "Subtrees moved": str(sum(event["moves"] for event in trace)),
        "Time": duration(run["seconds"]),
    }
    content: list[Content] = [facts]
    if trace:
        content.append(Plot(_plot_trace(trace), tell("search.trace")))
    distances = run.get("start_distances") or ["-"] * len(lnls)
    ended = [
        (f"{number}", f"{lnl:.4f}", f"{lnl - run['lnl']:.4f}", str(distance))
        for number, (lnl, distance) in enumerate(zip(lnls, distances, strict=True), start=1)
    ]
    columns = ("Start tree", "Final lnL", "Difference from the best tree", "Robinson-Foulds distance to the best tree")
    content.append(Table("Final tree from each starting tree", columns, ended))
    between = run.get("climb_distances") or []
    if 2 <= len(between) <= LARGEST_MATRIX:
        matrix = [(str(number), *map(str, row)) for number, row in enumerate(between, start=1)]
        heads = [number for number, *_ in matrix]
        content.append(Table("Robinson-Foulds distances between these trees", ("Start tree", *heads), matrix))
    stages = []
    for stage in dict.fromkeys(event["stage"] for event in trace):
        events = [event for event in trace if event["stage"] == stage]
        moves, best = sum(event["moves"] for event in events), max(event["lnl"] for event in events)
        stages.append((STAGES.get(stage, stage), str(len(events)), str(moves), f"{best:.4f}"))
    if stages:
        content.append(Table("Stages of the search", ("Stage", "Rounds", "Subtrees moved", "Best lnL"), stages))
    return [Section("search", "Search", content)]


def _plot_trace(trace: list[Record]) -> Markup:
    """A line for each climb: the climbs of several processes have numbers, others begin with a start tree."""
    found = dict.fromkeys(event["stage"] for event in trace)
    order = [stage for stage in STAGES if stage in found] + [stage for stage in found if stage not in STAGES]
    lines: list[list[Record]] = []
    for event in trace:
        if not lines or event["stage"] == "start" or event["start"] != lines[-1][-1]["start"]:
            lines.append([])
        lines[-1].append(event)
    points = [[(event["seconds"], event["lnl"]) for event in line] for line in lines]
    kinds = [[order.index(event["stage"]) for event in line] for line in lines]
    legend = [str(STAGES.get(stage, stage)) for stage in order]
    return draw_path(points, kinds, legend, ("seconds since the search began", "lnL"), "Log-likelihood against time")


def _tell_run(run: Record, methods: Methods) -> str:
    kind = run.get("settings", {}).get("start", "")
    made = f"{kind} " if kind in ("parsimony", "random") else ""
    starts = count(len(run["start_lnls"]), f"{made}starting tree")
    stages = {event["stage"] for event in run.get("trace", ())}
    moves = [words for stage, words in read_table("terms.txt", "moves").items() if stage in stages]
    if "perturb" in stages:
        moves.append(f"perturbations as in the parsimony ratchet{methods.cite('Nixon 1999')}")
    by = f" and used {list_words(moves)}" if moves else ", and no subtrees were moved" if "start" in stages else ""
    source, model = methods.cite("Felsenstein 1981"), tell_model(run, methods)
    told = [tell("search", source=source, model=model, starts=starts, run=run, by=by)]
    if run.get("settings", {}).get("constraint"):
        told.append(tell("search.constraint"))
    if "psr" in run:
        told.append(tell("search.psr", source=methods.cite("Stamatakis 2006")))
    return " ".join(told)


# --- comparisons ------------------------------------------------------------------------------------------


def describe_compare(records: Records, methods: Methods) -> list[Section]:
    run = records.runs["compare"]
    if "comparison" in run:
        methods.say(tell("compare.likelihoods", number=len(run["comparison"]["devices"])))
        return [Section("compare", "Comparison", _describe_likelihoods(run["comparison"]))]
    methods.say(_tell_run(run, methods), tell("compare.searches", run=run))
    return [Section("compare", "Comparison", _describe_searches(run))]


def _describe_likelihoods(found: Record, tree: str = "the tree") -> list[Content]:
    """The answers of all devices, and how each pair differs."""
    answers = [(own["label"], own["device"], own["precision"], f"{own['lnl']:.6f}") for own in found["devices"]]
    rows = []
    for pair in found["pairs"]:
        lnl, site_lnl, slope = (f"{pair[name]:.1e}" for name in ("lnl", "site_lnl", "slope"))
        site = f"{pair['a']} and {pair['b']}", lnl, site_lnl, str(pair["site"])
        rows.append((*site, slope, pair["slope_in"], VERDICTS[pair["agree"]]))
    return [
        {f"Likelihoods of {tree}": VERDICTS[found["agree"]].text},
        Table(f"lnL of {tree}", ("Device", "Name", "Precision", "lnL"), answers),
        Table("Largest differences", PAIR_COLUMNS, rows),
        *found["failures"],
        tell("compare.slopes", found=found),
    ]


def _describe_searches(run: Record) -> list[Content]:
    """How two searches ended, where they part, and both trees if they differ."""
    a, b = run, run["b"]
    first, distances = run["first_difference"], run["replicates"]
    rounds = [_describe_round(*pair) for pair in zip_longest(run.get("trace", []), b.get("trace", []))]
    facts = {
        "Search a": f"{run['label_a']}: {a['device']}",
        "Search b": f"{run['label_b']}: {b['device']}",
        "Final lnL": f"{a['lnl']:.6f} and {b['lnl']:.6f}, difference {run['difference']:z.6f}",
        "Robinson-Foulds distance": str(run["rf"]),
        "Branch score distance": f"{run['branch_score']:.6f}",
        "First round that differs": "none" if first is None else rounds[first][0],
    }
    if distances:
        facts["Replicates with the same topology"] = f"{distances.count(0)} of {len(distances)}"
    facts["Result"] = f"the searches {VERDICTS[run['agree']].text}"
    content: list[Content] = [facts, *(f"Settings differ: {text}." for text in run["other_settings"])]
    if rounds:
        table = Table("Rounds of both searches", ("Round", "lnL of a", "lnL of b", "Difference"), rounds)
        content.append(Folded("Rounds of both searches", [table]))
    if moves := tell_moves(run["moves_of_a"], run["moves_of_b"]):
        content += ["In the first round that differs:", Items(moves)]
    if run["before"] is not None:
        content += _describe_likelihoods(run["before"], "the tree of search a before they part")
    return [*content, *(_mark_both(a["tree"], b["tree"]) if run["rf"] else ["Both searches end at the same topology."])]


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
    splits = [splits_above(nodes, number_taxa(nodes)) for nodes in trees]
    made = []
    for name, nodes, own, other in zip("ab", trees, splits, reversed(splits), strict=True):
        lacking = set(own.values()) - set(other.values())
        marks = [Mark(dot=POOR_COLOUR) if own.get(node) in lacking else Mark() for node in range(len(nodes.parents))]
        made.append(MarkedTree.of(nodes, marks, tell("compare.tree", name=name, number=len(lacking))))
    return made
