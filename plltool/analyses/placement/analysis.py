"""Sequences on the branches of a reference tree: `place`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from os import PathLike
from typing import Any, TypeAlias, Unpack

import numpy as np

from plltool.alignment.alignment import Sequences
from plltool.analyses.placement.branches import PENDANT, Places
from plltool.analyses.placement.grafting import Grafted, find_root_branch, graft_queries
from plltool.analyses.placement.queries import Placer, encode_queries
from plltool.arrays import IndexArray, likelihood_weights
from plltool.constants import (
    DEFAULT_LINKAGE,
    FILTER_MOST,
    FILTER_WEIGHT,
    PLACE_HEURISTIC,
    SURE_WEIGHT,
    UNLINKED,
    VERSION,
)
from plltool.errors import InputError, check_least
from plltool.io.alignment_reader import read_queries
from plltool.io.jplace import EdgeNumbers, JplaceRow, format_jplace
from plltool.reports.blocks import Row
from plltool.run.evaluation import EvaluationSettings, evaluate_and_ask
from plltool.run.inputs import AlignmentLike, ModelLike, TreeLike, as_tree, resolve_inputs
from plltool.run.likelihood import Likelihood
from plltool.run.results import Result
from plltool.run.rooting import usable_outgroup
from plltool.schema import Keys
from plltool.settings import takes_keywords
from plltool.tree.topology import Tree

PathName: TypeAlias = str | PathLike[str]
QueriesLike: TypeAlias = PathName | Sequences | Collection[PathName]


@dataclass(frozen=True)
class Placement:
    """A place of a query on the reference tree.

    Attributes
    ----------
    branch : as numbered in ``result.tree.ends``
    lnl : log-likelihood of the reference tree with the query
    weight : likelihood weight ratio: the likelihood over the sum of those of all places of the query
    distal : length from the place to the end of the branch that is away from the root of ``result.newick``
    pendant : length of the branch to the query
    """

    branch: int
    lnl: float
    weight: float
    distal: float
    pendant: float


@dataclass(frozen=True)
class QueryPlacements:
    """The places of all queries that have the same sequence, best first, as far as they pass the filters."""

    names: tuple[str, ...]
    places: tuple[Placement, ...]


@dataclass(frozen=True)
class PlacementFilter:
    """Which places are reported: at least one, the best ones until one of the limits is reached.

    They are the sum of the weights, of which 1 is no limit, the weight of a place, and the number of places.
    """

    accumulated: float = FILTER_WEIGHT
    least_weight: float = 0.0
    most: int = FILTER_MOST

    def __post_init__(self) -> None:
        for name, value in (("filter_acc_lwr", self.accumulated), ("filter_min_lwr", self.least_weight)):
            if not 0 <= value <= 1:
                raise InputError(f"{name}: found {value:g}, expected 0 .. 1")
        check_least("filter_max", self.most, 1)

    def keep(self, places: list[Placement]) -> tuple[Placement, ...]:
        """Those of the places, best first, that pass."""
        total = 0.0
        for number, place in enumerate(places[: self.most]):
            if number and (total >= self.accumulated < 1 or place.weight < self.least_weight):
                return tuple(places[:number])
            total += place.weight
        return tuple(places[: self.most])


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PlacementResult(Result):
    """The places of queries on a reference tree; lnL, tree and model belong to the reference.

    The columns of its table are query, place (1 is the best), and those of `Placement`.

    Attributes
    ----------
    placements : of each query that has data, in the order of the files
    without_data : names of the queries that have nothing but gaps and are placed nowhere
    grafted : a tree of the reference and all queries placed, if asked for
    """

    placements: tuple[QueryPlacements, ...]
    without_data: tuple[str, ...]
    grafted: Grafted | None = None

    def _rows(self) -> Sequence[Row]:
        return [
            {"query": name, "place": number, **asdict(place)}
            for query in self.placements
            for name in query.names
            for number, place in enumerate(query.places, start=1)
        ]

    @property
    def n_placed(self) -> int:
        return sum(len(query.names) for query in self.placements)

    def best(self) -> dict[str, Placement]:
        """The best place of each query by its name."""
        return {name: query.places[0] for query in self.placements for name in query.names}

    def describe_placements(self) -> list[str]:
        """How many queries are placed, and how sure: the weights of their best places."""
        weights = np.array([place.weight for place in self.best().values()])
        sure = int(np.count_nonzero(weights >= SURE_WEIGHT))
        identical = self.n_placed - len(self.placements)
        told = f", {identical} of them identical to another" if identical else ""
        empty = f"; {len(self.without_data)} without data not placed" if self.without_data else ""
        lines = [
            f"placed: {self.n_placed} queries{told}{empty}",
            f"weight of the best place: median {np.median(weights):.3f}, {sure} of at least {SURE_WEIGHT:g}",
        ]
        return lines if self.grafted is None else [*lines, f"lnL of the tree with all queries: {self.grafted.lnl:.6f}"]

    def jplace(self, command: str | None = None) -> str:
        """The placements in the format jplace, version 3; `command` is the command line that made them, if any did."""
        edges = EdgeNumbers(self.tree, usable_outgroup(self.tree, self.outgroup)[0])
        numbers = edges.number.tolist()
        rows = [
            (query.names, [JplaceRow(numbers[branch], *rest) for branch, *rest in map(astuple, query.places)])
            for query in self.placements
        ]
        software = {"software": f"plltool {VERSION}", "model": self.model}
        return format_jplace(edges.tree, rows, software | ({"invocation": command} if command else {}))

    @Keys(placement=Keys("n_placed:int n_distinct:int without_data:str[]", {"grafted": Keys("lnl:float tree:str")}))
    def as_record(self, command: str | None = None) -> dict[str, Any]:
        """The record of any result, and the numbers of queries; their places are in `jplace`."""
        distinct, without_data = len(self.placements), list(self.without_data)
        numbers = {"n_placed": self.n_placed, "n_distinct": distinct, "without_data": without_data}
        grafted = {} if self.grafted is None else {"grafted": {"lnl": self.grafted.lnl, "tree": self.grafted.newick}}
        return super().as_record(command) | {"placement": numbers | grafted}

    def texts(self, command: str | None = None) -> dict[str, str]:
        """The files that `plltool place` writes, by the ends of their names; `command` as for `as_record`."""
        grafted = {} if self.grafted is None else {"grafted.nwk": self.grafted.newick + "\n"}
        return {"jplace": self.jplace(command), **grafted, "place.json": self.to_json(command) + "\n"}


@takes_keywords(EvaluationSettings)
def place(
    alignment: AlignmentLike,
    tree: TreeLike,
    queries: QueriesLike,
    model: ModelLike | None = None,
    *,
    heuristic: float = PLACE_HEURISTIC,
    raxml_blo: bool | None = None,
    filter_acc_lwr: float = FILTER_WEIGHT,
    filter_min_lwr: float = 0.0,
    filter_max: int = FILTER_MOST,
    graft: bool = False,
    names: str | None = None,
    **settings: Unpack[EvaluationSettings],
) -> PlacementResult:
    """Place sequences on the branches of a reference tree, each for itself.

    Branch lengths and model parameters are optimised on the reference. Each query is then scored at three points of
    every branch. On the branches with the best scores, its place along the branch and its pendant length are optimised.
    If two places are almost equally good, all places of the query are judged with the length of the branch optimised,
    too. The reference tree stays as it is. See `plltool.analyses.placement.branches`.

    Parameters
    ----------
    alignment, tree, model, settings : the reference; see `evaluate`, also for errors
    queries : a file, several files, or `Sequences`, aligned to the reference: with the same columns
    heuristic : share of the likelihood weights of all scores that the branches have that are optimised, the best ones
        first; 1 optimises all branches
    raxml_blo : also optimise the length of the branch at each place, as RAxML does, of all queries or of none; if None,
        of those whose two best places are within 0.5 lnL units. `Placement.lnl` is then with that length, and
        `Placement.distal` is scaled to the branch as it is
    filter_acc_lwr : the places of a query are reported, best first, until their weights sum to this; 1 is no limit
    filter_min_lwr, filter_max : least weight of a place, and most places of a query, that are reported
    graft : also make a tree of the reference and all queries, see `PlacementResult.grafted`. Queries are placed again,
        one after another, on the tree that grows; then all lengths are optimised, unless `fixed`
    names : of queries in files, see `plltool.read_alignment`

    Raises InputError if queries cannot be read, are not as long as the reference, have the name of one of its taxa or
    occur twice, or none has data; if a model is not time-reversible or has a correction for ascertainment bias, if
    branch lengths are unlinked, or if a limit is out of its range.
    """
    passes = PlacementFilter(filter_acc_lwr, filter_min_lwr, filter_max)
    if not 0 < heuristic <= 1:
        raise InputError(f"heuristic: found {heuristic:g}, expected a number above 0, up to 1")
    brlen, fixed = settings.get("brlen", DEFAULT_LINKAGE), settings.get("fixed", False)
    data, models = resolve_inputs(alignment, model, brlen)
    if brlen == UNLINKED:
        raise InputError(f"brlen: found {brlen!r}, expected a reference tree with one length for each branch")
    for own in models:
        if own.spec.ascertainment is not None:
            found = f"model {own.spec.shown}: placement cannot correct for ascertainment bias"
            raise InputError(f"{found}, expected a model without it")
    if isinstance(queries, Sequences):
        files: tuple[Sequences, ...] = (queries,)
    elif isinstance(queries, (str, PathLike, Iterable)):
        files = read_queries([queries] if isinstance(queries, (str, PathLike)) else list(queries), names=names)
    else:
        raise InputError(f"queries: found an object of type {type(queries).__name__}, expected sequences or files")
    given, start = encode_queries(files, data), as_tree(tree, data.names)

    def ask(likelihood: Likelihood) -> dict[str, Any]:
        lnl = likelihood.lnl()
        likelihood.engine.release_clas()
        tree, models = likelihood.tree, likelihood.models
        placer = Placer(data, given, tree, models, likelihood.hardware, heuristic, raxml_blo)
        found = placer.place(lnl)
        outgroup = usable_outgroup(tree, settings.get("outgroup"))[0]
        root = find_root_branch(start, outgroup)
        grafted = graft_queries(placer, found, fixed, root) if graft else None
        likelihood.engine.own_counters.add_closed(placer.work)
        distal = EdgeNumbers(tree, outgroup).distal
        described = [_describe(places, tree, distal) for places in found]
        kept = tuple(map(QueryPlacements, given.names, map(passes.keep, described)))
        return {"placements": kept, "without_data": given.without_data, "grafted": grafted}

    told = replace(data, warnings=(*data.warnings, *given.warnings))
    return evaluate_and_ask(ask, PlacementResult, told, start, models, {}, **settings)


def _describe(places: Places, tree: Tree, distal: IndexArray) -> list[Placement]:
    """The places of a query, best first; `distal` (n_edges,) is the node at the lower end of each branch."""
    weights = likelihood_weights(places.lnl)
    lower = (tree.ends[places.branches, 0] != distal[places.branches]).astype(int)
    scale = tree.lengths[places.branches] / places.lengths[:, :PENDANT].sum(axis=1)
    lengths = places.lengths[np.arange(len(lower)), lower] * scale
    rows = zip(places.branches, places.lnl, weights, lengths, places.lengths[:, PENDANT], strict=True)
    found = [Placement(int(branch), *map(float, numbers)) for branch, *numbers in rows]
    return sorted(found, key=lambda place: (-place.lnl, place.branch))
