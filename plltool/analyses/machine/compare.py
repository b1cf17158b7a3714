"""Two searches side by side, and where they diverge: one search on two devices, or two records."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

from plltool.analyses.machine.compare_likelihoods import COMPARED, ComparedLikelihoods, compare_likelihoods
from plltool.analyses.search.analysis import search
from plltool.analyses.selection.analysis import choose_if_asked
from plltool.analyses.supports.bootstrap import bootstrap as make_replicates
from plltool.constants import COMPARE_TOLERANCE, DEFAULT_LINKAGE, DEFAULT_SEED, FUSE, PERTURB, WHOLE
from plltool.errors import InputError, PlltoolError, check_kind, explained, shorten
from plltool.hardware import Hardware
from plltool.io.alignment_formats import NAMES_HINT
from plltool.io.alignment_reader import looks_like_alignment, read_alignment
from plltool.io.files import FileName, Recorded, read_record, source_name
from plltool.io.newick import parse_newick
from plltool.progress import Listener, Move, Progress, StopHere, ignore, log
from plltool.registry import ANALYSES
from plltool.reports.blocks import Row
from plltool.reports.search_sections import tell_moves
from plltool.reports.shown import Shown
from plltool.run.inputs import AlignmentLike, ModelLike, TreeLike, resolve_inputs
from plltool.run.memory import plan_memory
from plltool.run.results import SearchResult
from plltool.schema import Keys
from plltool.tree.splits import branch_score_distance, rf_distance
from plltool.tree.topology import Tree
from plltool.tree_search.effort import SearchOptions

NO_ROUND = "-"
# keys of a record: searches that differ in one of them are not the same search
SETTINGS = ("n_taxa", "n_sites", "n_patterns", "brlen", "seed", "version")


@dataclass(frozen=True, eq=False)
class ComparedRun:
    """One of the two searches, labelled by its hardware or its file; the trace has every round, if it is known."""

    label: str
    tree: Tree
    trace: tuple[Progress, ...]
    record: dict[str, Any]

    @classmethod
    def of_record(cls, path: FileName) -> ComparedRun:
        """A run by its JSON record; InputError if it cannot be read."""
        source = source_name(path)
        record = read_record(path)
        tree, lnl = record["tree"], record["lnl"]
        if not isinstance(tree, str) or not isinstance(lnl, (int, float)):
            raise InputError(f"{source}: the record is not valid: `tree` must be text and `lnl` a number")
        return cls(source, parse_newick(tree, f"{source}: tree"), _read_trace(record.get("trace", []), source), record)

    def __repr__(self) -> str:
        return f"<Run: {self.label}, lnL {self.lnl:.3f}, {self.tree.n_taxa} taxa>"

    @property
    def lnl(self) -> float:
        return float(self.record["lnl"])

    @property
    def seconds(self) -> float:
        return float(self.record["seconds"])


@dataclass(frozen=True, eq=False)
class Comparison(Recorded, Shown):
    """Two searches, and the largest difference of lnL that counts as agreement.

    The columns of its table are stage, radius, round, lnl_a and lnl_b, of each round.

    Attributes
    ----------
    a, b : the searches
    tolerance : the largest difference of lnL that counts as agreement
    before : both devices on the tree of a before the first round in which the searches differ; None if they do not
        differ, or the devices are not at hand
    replicates : (n_replicates,) Robinson-Foulds distances between the trees of both devices for each resampled
        alignment; empty if none were asked for
    """

    a: ComparedRun
    b: ComparedRun
    tolerance: float
    before: ComparedLikelihoods | None = None
    replicates: tuple[int, ...] = ()

    def __repr__(self) -> str:
        found = "agree" if self.agree else "differ"
        return f"<Comparison: {self.a.label} and {self.b.label} {found}, RF {self.rf}, lnL {self.difference:+.4f}>"

    def _rows(self) -> Sequence[Row]:
        return [
            {name: getattr(a or b, name) for name in ("stage", "radius", "round")}
            | {"lnl_a": a.lnl if a else None, "lnl_b": b.lnl if b else None}
            for a, b in self.rows()
        ]

    @property
    def rf(self) -> int:
        """Robinson-Foulds distance of the final trees."""
        return rf_distance(self.a.tree, self.b.tree)

    @property
    def branch_score(self) -> float:
        """Branch score distance of the final trees (Kuhner & Felsenstein 1994), in substitutions per site."""
        return branch_score_distance(self.a.tree, self.b.tree)

    @property
    def difference(self) -> float:
        """Final lnL of b minus final lnL of a."""
        return self.b.lnl - self.a.lnl

    @property
    def agree(self) -> bool:
        """Whether all topologies are the same and the final lnL differs by at most the tolerance."""
        return self.rf == 0 and abs(self.difference) <= self.tolerance and not any(self.replicates)

    @property
    def other_settings(self) -> list[str]:
        """What differs of SETTINGS and of model, start, options and constraint, as ``seed 1 and 2``.

        Such runs may find different trees.
        """
        records = self.a.record, self.b.record
        a, b = ({**own.get("settings", {}), **{name: own[name] for name in SETTINGS}} for own in records)
        if a.get("model") != b.get("model"):
            a, b = ({**own, "model values": None} for own in (a, b))  # they differ with it
        differing = [name for name in dict.fromkeys((*SETTINGS, *a)) if name in b and a[name] != b[name]]
        told = [["none" if own[name] is None else shorten(str(own[name])) for own in (a, b)] for name in differing]
        return [f"{name} {' and '.join(values)}" for name, values in zip(differing, told, strict=True)]

    def rows(self) -> Iterator[tuple[Progress | None, Progress | None]]:
        """The rounds of both searches side by side; None where one has ended."""
        return zip_longest(self.a.trace, self.b.trace)

    def rounds_differ(self, a: Progress | None, b: Progress | None) -> bool:
        """Whether two rounds are of different kinds, moved different subtrees, or differ in lnL by too much."""
        if a is None or b is None:
            return True
        is_other_round = (a.stage, a.round, a.radius) != (b.stage, b.round, b.radius)
        if is_other_round or abs(a.lnl - b.lnl) > self.tolerance:
            return True
        return {move.nodes for move in a.chosen} != {move.nodes for move in b.chosen}

    @property
    def first_difference(self) -> int | None:
        """The index of the first row in which the searches differ; None if there is none."""
        return next((index for index, row in enumerate(self.rows()) if self.rounds_differ(*row)), None)

    def own_moves(self) -> tuple[list[Move], list[Move]]:
        """The moves that only a, and only b, made in the first round in which they differ; the best first."""
        if self.first_difference is None:
            return [], []
        a, b = list(self.rows())[self.first_difference]
        first, second = [sorted(event.chosen, key=lambda move: -move.gain) if event else [] for event in (a, b)]
        nodes = [{move.nodes for move in moves} for moves in (second, first)]
        return [m for m in first if m.nodes not in nodes[0]], [m for m in second if m.nodes not in nodes[1]]

    @Keys(
        "agree rf branch_score difference tolerance first_difference other_settings moves_of_a moves_of_b before"
        " replicates label_a:str label_b:str b",
        {"trace": [Progress]},
        like=SearchResult,
        before=(None, COMPARED),
        **{"moves_of_a": [Move], "moves_of_b": [Move], "b": SearchResult},
    )
    def as_record(self, command: str | None = None) -> dict[str, Any]:
        """The comparison as strings, numbers, lists and dictionaries, in the record of `a`; `b` is the other's.

        Hence it is the record of a run for a report; see `Result`.
        """
        moves_a, moves_b = self.own_moves()
        return {
            **self.a.record,
            "command": command,
            "moves_of_a": [asdict(move) for move in moves_a],
            "moves_of_b": [asdict(move) for move in moves_b],
            "before": None if self.before is None else self.before.as_record()["comparison"],
            "label_a": self.a.label,
            "label_b": self.b.label,
            "b": self.b.record,
        }

    def describe(self) -> list[str]:
        """Lines for people: the two traces side by side, and what the comparison found."""
        a, b = self.a, self.b
        lines = [f"note: the settings differ: {'; '.join(self.other_settings)}"] * bool(self.other_settings)
        lines += [f"{name}: {run.label}: {run.record['reason']}" for name, run in (("a", a), ("b", b))]
        if a.trace or b.trace:
            rows = [("round", "lnL of a", "lnL of b", "difference", "")]
            rows += [_describe_row(self, *own) for own in self.rows()]
            width = max(22, *(len(row[0]) for row in rows))
            lines += ["", *(f"{r[0]:<{width}} {r[1]:>18} {r[2]:>18} {r[3]:>12}{r[4]}" for r in rows)]
        first, distances = self.first_difference, self.replicates
        where = f"difference in moves, or in lnL above {self.tolerance:g}"
        same = f"replicates with the same topology: {distances.count(0)} of {len(distances)}"
        same += f", largest Robinson-Foulds distance {max(distances)}" if any(distances) else ""
        return [
            *lines,
            "",
            f"no {where}" if first is None else f"first {where}: row {first + 1} of the table",
            *_describe_parting(self),
            *([same] if distances else []),
            f"final lnL: {a.lnl:.6f} and {b.lnl:.6f}, difference {self.difference:z.6f}",
            f"Robinson-Foulds distance: {self.rf}",
            f"branch score distance: {self.branch_score:.6f}",
            f"seconds: {a.seconds:.1f} and {b.seconds:.1f}",
            "the results agree" if self.agree else "the results DIFFER",
        ]


def _describe_row(comparison: Comparison, a: Progress | None, b: Progress | None) -> tuple[str, str, str, str, str]:
    labels = dict.fromkeys(NO_ROUND if event is None else f"{event.name} {event.round}" for event in (a, b))
    first, second = [NO_ROUND if event is None else f"{event.lnl:.6f}" for event in (a, b)]
    difference = NO_ROUND if a is None or b is None else f"{b.lnl - a.lnl:z.6f}"
    return " / ".join(labels), first, second, difference, "  <" if comparison.rounds_differ(a, b) else ""


def _describe_parting(comparison: Comparison) -> list[str]:
    """What each search moved, and the other did not, in the first round in which they differ."""
    at, before = comparison.first_difference, comparison.before
    if at is None:
        return []
    lines = [f"  {line}" for line in tell_moves(*([asdict(move) for move in own] for own in comparison.own_moves()))]
    if before is None:
        return lines
    kinds = {None if own is None else own.name for own in list(comparison.rows())[at]}
    is_decision = lines or kinds & {FUSE, PERTURB} or (len(kinds) > 1 and kinds != {None, "polish"})
    cause = "so that the decisions differ" if is_decision else "so that only rounding, or optimised values, differ"
    told = f"agree, {cause}" if before.agree else "differ"
    lines.append(f"  the likelihoods of the tree of a {'before' if at else 'after'} this round {told}:")
    return [*lines, *(f"    {line}" for line in before.largest())]


def _read_trace(given: Any, source: str) -> tuple[Progress, ...]:
    """The trace of a record; InputError if it cannot be read."""
    events = []
    try:
        for event in given:
            moves = tuple(
                Move(tuple(move["subtree"]), tuple(move["branch"]), float(move["gain"]), tuple(move["nodes"]))
                for move in event["chosen"]
            )
            values = {field.name: event[field.name] for field in fields(Progress)}
            events.append(Progress(**values | {"lnl": float(event["lnl"]), "chosen": moves}))
    except (AttributeError, KeyError, TypeError, ValueError):
        raise InputError(f"{source}: cannot read the trace of the search, expected a list of its rounds") from None
    return tuple(events)


def compare_records(a: FileName, b: FileName, tolerance: float = COMPARE_TOLERANCE) -> Comparison:
    """Compare two runs by their JSON records; InputError if one cannot be read, or they are of other data."""
    comparison = Comparison(ComparedRun.of_record(a), ComparedRun.of_record(b), tolerance)
    if set(comparison.a.tree.names) != set(comparison.b.tree.names):
        raise InputError(f"{comparison.b.label}: found a tree of other taxa than in {comparison.a.label}")
    digests = [run.record.get("data", {}).get("digest") for run in (comparison.a, comparison.b)]
    if None not in digests and digests[0] != digests[1]:
        found = f"found a run of another alignment than in {comparison.a.label}"
        raise InputError(f"{comparison.b.label}: {found}, expected runs of the same data")
    return comparison


def compare(
    alignment: AlignmentLike,
    a: Hardware,
    b: Hardware,
    *,
    model: ModelLike | None = None,
    partitions: FileName | None = None,
    brlen: str = DEFAULT_LINKAGE,
    constraint: TreeLike | None = None,
    start: TreeLike = "parsimony",
    seed: int = DEFAULT_SEED,
    tolerance: float = COMPARE_TOLERANCE,
    options: SearchOptions | None = None,
    replicates: int = 0,
    listener: Listener = ignore,
    labels: tuple[str, str] = ("a", "b"),
) -> Comparison:
    """Run one search on two devices or engines.

    Where the searches part, a goes once more to the round before, and both devices compute the likelihood of its tree:
    this tells whether the likelihoods differ, or only what the searches made of them.

    Parameters
    ----------
    a, b : the hardware of the two runs; a chooses the model if that is asked for
    tolerance : see `Comparison`
    replicates : how many bootstrap replicates both make
    labels : the names of the two runs
    alignment, model, partitions, brlen, constraint, start, seed, options, listener : as for `plltool.search`, also for
        errors
    """
    for label, own in zip(labels, (a, b), strict=True):
        check_kind(label, own, Hardware, "a plltool.Hardware")
    model, _ = choose_if_asked(alignment, model, partitions, start, brlen, seed, asdict(a))  # type: ignore[arg-type]
    data, models = resolve_inputs(alignment, model, brlen, rooted=True)
    for hardware in (a, b):  # a missing device is refused before anything runs
        plan_memory(data.patterns, models, hardware)
    how: dict[str, Any] = {"seed": seed, "brlen": brlen, "constraint": constraint, "options": options}
    results = [search(data, models, start=start, listener=listener, **how, **asdict(own)) for own in (a, b)]
    pairs = zip(labels, results, strict=True)
    runs = [ComparedRun(label, one.tree, one.trace, one.as_record()) for label, one in pairs]
    trees = [
        make_replicates(data, results[0].models, replicates=replicates, listener=listener, **how, **asdict(own)).trees
        for own in ((a, b) if replicates else ())
    ]
    distances = tuple(rf_distance(*pair) for pair in zip(*trees, strict=True))
    found = Comparison(runs[0], runs[1], tolerance, replicates=distances)
    if found.first_difference is None:
        return found
    stop = partial(_stop_after, iter(range(max(1, found.first_difference) - 1)))
    log.info("the searches differ: a searches once more to the round before, for the likelihoods of its tree")
    log.disabled = True  # that it is interrupted, and has no values but those of this round, is known
    try:
        early = search(data, models, start=start, listener=stop, workers=1, **how, **asdict(a))
        how = {"model": list(early.models), "brlen": brlen, "fixed": True, "tolerance": tolerance}
        return replace(found, before=compare_likelihoods(data, early.tree, {"a": a, "b": b}, **how))
    finally:
        log.disabled = False


def _stop_after(earlier: Iterator[int], _: Progress) -> None:
    """A listener that stops a search after the round that follows these."""
    if next(earlier, None) is None:
        raise StopHere


def compare_record_folders(
    a: FileName, b: FileName, tolerance: float = COMPARE_TOLERANCE
) -> Iterator[tuple[str, Comparison | PlltoolError]]:
    """`compare_records` of the records of searches with the same name in two folders, in the order of names.

    Yields each name and its comparison; an error takes its place where one of them is missing or cannot be compared.
    Raises InputError if a folder cannot be read, or both have no such record.
    """
    # the record of a search is called PREFIX.json, not PREFIX.evaluate.json
    others = tuple(f".{row.ending}" for own in ANALYSES.values() for row in own.files if row.ending.endswith(".json"))
    records = [[path.name for path in _files_of(folder) if path.suffix == ".json"] for folder in (a, b)]
    found = [{name for name in names if not name.endswith(others)} for names in records]
    if not (found[0] or found[1]):
        raise InputError(f"{os.fspath(a)}: found no records of searches, expected files such as NAME.json")
    for name in sorted(found[0] | found[1]):
        try:
            for own, folder in zip(found, (a, b), strict=True):
                if name not in own:
                    raise InputError(f"{Path(folder, name)}: no such record, expected one as in the other folder")
            yield name, compare_records(Path(a, name), Path(b, name), tolerance)
        except PlltoolError as problem:
            yield name, problem


def _files_of(folder: FileName) -> list[Path]:
    """The files of a folder; InputError if it cannot be read."""
    with explained(f"{os.fspath(folder)}: cannot read the folder"):
        return sorted(path for path in Path(folder).iterdir() if path.is_file())


def compare_folder(
    folder: FileName, a: Hardware, b: Hardware, *, names: str | None = None, **how: Any
) -> Iterator[tuple[str, Comparison | PlltoolError]]:
    """`compare` on all alignments of a folder, one after another; an error takes the place of its comparison.

    Parameters
    ----------
    folder : files in it that do not look like alignments are left out
    a, b, how : as for `compare`; the start trees are made, not given
    names : of the files, see `plltool.read_alignment`

    Yields the name of each file, and its comparison. Raises InputError if the folder cannot be read.
    """
    for path in filter(looks_like_alignment, _files_of(folder)):
        try:
            data = read_alignment(path, names=names)
            if any(NAMES_HINT in warning for warning in data.warnings):
                names = WHOLE  # one note is enough
            yield os.fspath(path), compare(data, a, b, **how)
        except PlltoolError as problem:
            yield os.fspath(path), problem
