"""The section on the search: lnL against time, and where the start trees ended."""

from __future__ import annotations

from plltool.reports.blocks import Block, Facts, Picture, Section, Table, count, duration
from plltool.reports.methods import Cited, list_words, tell_model
from plltool.reports.plots import Markup, draw_path
from plltool.reports.records import Record, Records

COMMAND = "search"
STAGES = {  # in the order of a search, and what they are
    "start": "start tree",
    "nni": "NNI",
    "spr": "SPR",
    "model": "model",
    "fuse": "fusing",
    "perturb": "perturbation",
    "polish": "polish",
}
MOVES = (  # the stages that move subtrees
    ("nni", "nearest-neighbour interchanges (NNI)"),
    ("spr", "subtree pruning and regrafting (SPR)"),
)
LARGEST_MATRIX = 12  # trees, more are too many for the width of a page


def describe(records: Records) -> list[Section]:
    run = records.runs[COMMAND]
    lnls, trace = run["start_lnls"], run.get("trace", [])
    facts = Facts((
        ("Start trees", str(len(lnls))),
        ("Seed", str(run["seed"])),
        ("Rounds", str(len(trace))),
        ("Subtrees moved", str(sum(event["moves"] for event in trace))),
        ("Time", duration(run["seconds"])),
    ))  # fmt: skip
    blocks: list[Block] = [facts]
    if trace:
        caption = "Log-likelihood against time: each dot is a round of the search, coloured by stage"
        blocks.append(Picture(_plot_trace(trace), caption))
    distances = run.get("start_distances") or ["-"] * len(lnls)
    ended = tuple(
        (f"{number}", f"{lnl:.4f}", f"{lnl - run['lnl']:.4f}", str(distance))
        for number, (lnl, distance) in enumerate(zip(lnls, distances, strict=True), start=1)
    )
    columns = ("Start tree", "Final lnL", "Difference from the best tree", "Robinson-Foulds distance to the best tree")
    blocks.append(Table("Final tree from each starting tree", columns, ended))
    between = run.get("climb_distances") or []
    if 2 <= len(between) <= LARGEST_MATRIX:
        numbers = tuple(str(number) for number in range(1, len(between) + 1))
        matrix = tuple((number, *map(str, row)) for number, row in zip(numbers, between, strict=True))
        blocks.append(Table("Robinson-Foulds distances between these trees", ("Start tree", *numbers), matrix))
    rounds: dict[str, list[Record]] = {}
    for event in trace:
        rounds.setdefault(event["stage"], []).append(event)
    stages = []
    for stage, events in rounds.items():
        moves, best = sum(event["moves"] for event in events), max(event["lnl"] for event in events)
        stages.append((STAGES.get(stage, stage), str(len(events)), str(moves), f"{best:.4f}"))
    if stages:
        blocks.append(Table("Stages of the search", ("Stage", "Rounds", "Subtrees moved", "Best lnL"), tuple(stages)))
    return [Section("search", "Search", tuple(blocks))]


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


def tell(records: Records, cited: Cited) -> list[str]:
    return tell_search(records.runs[COMMAND], cited)


def tell_search(run: Record, cited: Cited) -> list[str]:
    """The methods of a search."""
    kind = run.get("settings", {}).get("start", "")
    made = f"{kind} " if kind in ("parsimony", "random") else ""
    starts = count(len(run["start_lnls"]), f"{made}starting tree")
    stages = {event["stage"] for event in run.get("trace", ())}
    moves = [words for stage, words in MOVES if stage in stages]
    if "perturb" in stages:
        moves.append(f"perturbations as in the parsimony ratchet{cited.cite('Nixon 1999')}")
    by = f" and used {list_words(moves)}" if moves else ", and no subtrees were moved" if "start" in stages else ""
    method = cited.cite("Felsenstein 1981")
    text = (
        f"The maximum-likelihood tree{method} was inferred under {tell_model(run, cited)}."
        f" The search began from {starts} (random seed {run['seed']}){by}."
        f" Model parameters and branch lengths were optimised; the best tree has a log-likelihood of {run['lnl']:.4f}."
    )
    if run.get("settings", {}).get("constraint"):
        text += " The tree was constrained to contain the splits of a given tree."
    if "psr" in run:
        rates = cited.cite("Stamatakis 2006")
        text += f" Most of the search used per-site rates{rates}; the log-likelihood is under gamma-distributed rates."
    return [text]
