"""Sequences on the branches of a reference tree: `place`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from numbers import Real
from os import PathLike
from typing import Any, TypeAlias, Unpack

import numpy as np

from plltool import constants
from plltool.alignment.alignment import Sequences
from plltool.analyses.placement.branches import PENDANT, Places, free_branches
from plltool.analyses.placement.queries import PLACE_BATCH, Placer, count_known, encode_queries
from plltool.arrays import FloatArray, IndexArray, likelihood_weights
from plltool.engine.requests import Holder, work_of
from plltool.engine.storage import Slots
from plltool.errors import InputError, check_kind, check_least
from plltool.io.alignment_reader import read_queries
from plltool.io.bridge import alignment_from_object
from plltool.io.jplace import EdgeNumbers, JplaceRow, format_jplace
from plltool.io.newick_writer import write_newick
from plltool.optimise.lengths import smooth
from plltool.optimise.likelihood import TreeLikelihood
from plltool.progress import announce
from plltool.reports.blocks import Row
from plltool.run.evaluation import EvaluationSettings, evaluate_and_ask
from plltool.run.inputs import AlignmentLike, ModelLike, TreeLike, as_tree, resolve_inputs
from plltool.run.likelihood import Likelihood
from plltool.run.memory import ask_engine
from plltool.run.results import Result
from plltool.run.rooting import usable_outgroup
from plltool.schema import Keys
from plltool.settings import takes_keywords
from plltool.tree.operations import directed_slots
from plltool.tree.rooted import add_root, place_outgroup
from plltool.tree.rooted_nodes import UnrootedNodes
from plltool.tree.topology import Tree, restore_duplicates

QueriesLike: TypeAlias = AlignmentLike | Sequence[str | PathLike[str] | Sequences]


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

    accumulated: float = constants.FILTER_WEIGHT
    least_weight: float = 0.0
    most: int = constants.FILTER_MOST

    def __post_init__(self) -> None:
        for name, value in (("filter_acc_lwr", self.accumulated), ("filter_min_lwr", self.least_weight)):
            check_kind(name, value, Real, "0 .. 1")
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
        sure = int(np.count_nonzero(weights >= constants.SURE_WEIGHT))
        identical = self.n_placed - len(self.placements)
        told = f", {identical} of them identical to another" if identical else ""
        empty = f"; {len(self.without_data)} without data not placed" if self.without_data else ""
        lines = [
            f"placed: {self.n_placed} queries{told}{empty}",
            f"weight of the best place: median {np.median(weights):.3f}, {sure} of at least {constants.SURE_WEIGHT:g}",
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
        software = {"software": f"plltool {constants.VERSION}", "model": self.model}
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
    heuristic: float = constants.PLACE_HEURISTIC,
    raxml_blo: bool | None = None,
    filter_acc_lwr: float = constants.FILTER_WEIGHT,
    filter_min_lwr: float = 0.0,
    filter_max: int = constants.FILTER_MOST,
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
    queries : a file, an alignment in any form that `plltool.search` takes, or a list of files or `Sequences`; aligned
        to the reference: with the same columns
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
    check_kind("heuristic", heuristic, Real, "a number above 0, up to 1")
    if not 0 < heuristic <= 1:
        raise InputError(f"heuristic: found {heuristic:g}, expected a number above 0, up to 1")
    brlen, fixed = settings.get("brlen", constants.DEFAULT_LINKAGE), settings.get("fixed", False)
    data, models = resolve_inputs(alignment, model, brlen)
    if brlen == constants.UNLINKED:
        raise InputError(f"brlen: found {brlen!r}, expected a reference tree with one length for each branch")
    for own in models:
        if own.spec.ascertainment is not None:
            found = f"model {own.spec.shown}: placement cannot correct for ascertainment bias"
            raise InputError(f"{found}, expected a model without it")
    given, start = encode_queries(_read_queries(queries, names), data), as_tree(tree, data.names)

    def ask(likelihood: Likelihood) -> dict[str, Any]:
        lnl = likelihood.lnl()
        likelihood.engine.release_clas()
        tree, models = likelihood.tree, likelihood.models
        placer = Placer(data, given, tree, models, likelihood.hardware, heuristic, raxml_blo)
        found = placer.place(lnl)
        outgroup = usable_outgroup(tree, settings.get("outgroup"))[0]
        root = find_root_branch(start, outgroup)
        grafted = graft_queries(placer, found, fixed, root) if graft else None
        likelihood.engine.own_counters.add_closed(placer.work, beside=True)
        distal = EdgeNumbers(tree, outgroup).distal
        described = [_describe(places, tree, distal) for places in found]
        kept = tuple(map(QueryPlacements, given.names, map(passes.keep, described)))
        return {"placements": kept, "without_data": given.without_data, "grafted": grafted}

    told = replace(data, warnings=(*data.warnings, *given.warnings))
    return evaluate_and_ask(ask, PlacementResult, told, start, models, {}, **settings)


def _read_queries(given: QueriesLike, names: str | None) -> tuple[Sequences, ...]:
    """The queries of a file, an alignment, or several files or `Sequences`; errors as of `place`."""
    given = list(given) if isinstance(given, Iterator) else given
    several: list[Any] = list(given) if isinstance(given, (list, tuple, set)) else [given]
    are_files = all(isinstance(item, (str, PathLike, Sequences)) for item in several)
    return read_queries(several if are_files else [alignment_from_object(given, least=1)], names=names)


def _describe(places: Places, tree: Tree, distal: IndexArray) -> list[Placement]:
    """The places of a query, best first; `distal` (n_edges,) is the node at the lower end of each branch."""
    weights = likelihood_weights(places.lnl)
    lower = (tree.ends[places.branches, 0] != distal[places.branches]).astype(int)
    scale = tree.lengths[places.branches] / places.lengths[:, :PENDANT].sum(axis=1)
    lengths = places.lengths[np.arange(len(lower)), lower] * scale
    rows = zip(places.branches, places.lnl, weights, lengths, places.lengths[:, PENDANT], strict=True)
    found = [Placement(int(branch), *map(float, numbers)) for branch, *numbers in rows]
    return sorted(found, key=lambda place: (-place.lnl, place.branch))


# --- a tree of the reference and all queries ----------------------------------------------------------------

GRAFT_EPSILON = 0.001  # lnL that a last step of all lengths must promise


@dataclass(frozen=True)
class Grafted:
    """The reference tree with all queries that have data."""

    tree: Tree  # the taxa of the reference, then the queries in the order of their files
    newick: str  # the tree as text, with the root where the reference has it
    lnl: float  # log-likelihood of the reference and the queries on it, under the models of the reference


def graft_queries(placer: Placer, found: Sequence[Places], fixed: bool, root: tuple[int, float] | None) -> Grafted:
    """All queries on the tree of `placer`, which has `found` the places of each: one at a time, where lnL is highest.

    Every split of the reference is kept: a query only adds a node to a branch. Each query, those with most data first,
    is placed on the tree with the queries before it, so that queries from a clade that the reference lacks can form it.
    In the end all lengths are optimised; if `fixed`, the queries divide the branches of the reference and no more.
    `root` is the branch of the reference with the root, and the root's share of its length from its first end.
    """
    reference, queries, n_queries = placer.tree, placer.queries, len(placer.queries)
    first = np.array([places.branches[np.argmax(places.lnl)] for places in found])
    turn = np.zeros(n_queries, dtype=np.int64)  # of each query among those of its branch
    known = count_known(queries.codes, placer.data)
    for branch in np.unique(first):
        own = np.flatnonzero(first == branch)
        turn[own[np.argsort(-known[own], kind="stable")]] = np.arange(len(own))
    order = np.lexsort([-known, turn])
    turn = turn[order]
    tips = (*reference.names, *(queries.names[query][0] for query in order.tolist()))

    def grow(engine: Holder) -> tuple[Tree, float]:
        likelihood = TreeLikelihood(reference, placer.models, engine)
        while (at := likelihood.tree.n_taxa - reference.n_taxa) < n_queries:
            announce(f"grafting queries, {at} of {n_queries} grafted")
            places = placer.slide(likelihood, np.flatnonzero(turn[at:] == turn[at])[:PLACE_BATCH])
            best = _best_apart(likelihood.tree, places if fixed else free_branches(likelihood, places))
            likelihood.tree = insert_tips(likelihood.tree, tips[at + reference.n_taxa :], best.branches, best.lengths)
            likelihood.topology_changed()
        lnl = likelihood.lnl() if fixed else smooth(likelihood, GRAFT_EPSILON)
        placer.work.add_closed(work_of(engine))
        return likelihood.tree, lnl

    rows = [np.ones(own.shape[1], dtype=bool) for own in queries.codes]
    patterns = [placer.with_queries(part, order, own) for part, own in enumerate(rows)]
    tree, lnl = ask_engine(grow, patterns, placer.models, Slots(directed_slots(len(tips)) + 1), placer.hardware)
    # queries that are identical are beside each other
    starts = reference.n_taxa + np.cumsum([0, *map(len, queries.names)])
    groups = [list(range(starts[query], starts[query + 1])) for query in order.tolist()]
    names = (*reference.names, *(name for own in queries.names for name in own))
    tree = restore_duplicates(tree, names, [*([taxon] for taxon in range(reference.n_taxa)), *groups])
    return Grafted(tree, write_newick(tree if root is None else _rooted(tree, reference, *root)), lnl)


def _best_apart(tree: Tree, places: Places) -> Places:
    """The best place of each query, up to the first query whose branch has a node in common with one before it."""
    order = np.lexsort([-places.lnl, places.queries])
    best = order[np.unique(places.queries[order], return_index=True)[1]]
    used: set[int] = set()
    for number, branch in enumerate(places.branches[best]):
        ends = set(tree.ends[branch].tolist())
        if used & ends:
            best = best[:number]
            break
        used |= ends
    return places[best]


def insert_tips(tree: Tree, names: Sequence[str], branches: IndexArray, lengths: FloatArray) -> Tree:
    """The tree with further tips, as many of `names` as there are `branches`, all different, each in one of these.

    The lengths (n, 3) are those from the new node to the first and to the second end of the branch, and to the tip.
    Branches keep their numbers and first ends; the rest of each comes behind them, then the branches of the tips.
    """
    n, k = tree.n_taxa, len(branches)
    ends = tree.ends + k * (tree.ends >= n)
    joints, far = tree.n_nodes + k + np.arange(k), ends[branches, 1]
    ends[branches, 1] = joints
    own = tree.lengths.copy()
    own[branches] = lengths[:, 0]
    ends = np.concatenate([ends, np.column_stack([joints, far]), np.column_stack([joints, n + np.arange(k)])])
    return Tree.from_edges((*tree.names, *names[:k]), ends, np.concatenate([own, lengths[:, 1], lengths[:, 2]]))


def _rooted(tree: Tree, reference: Tree, branch: int, share: float) -> Tree:
    """The tree with a root where a branch of the reference has it; both number the reference's nodes in one order."""
    shift = tree.n_taxa - reference.n_taxa
    first, at = (reference.ends[branch] + shift * (reference.ends[branch] >= reference.n_taxa)).tolist()
    above = {node: (parent, own) for node, parent, own in tree.directed_from(first)}
    path = []
    while at != first:
        path.append((at, above[at][1]))
        at = above[at][0]
    left = share * sum(tree.lengths[own] for _, own in path)
    for node, own in reversed(path):
        length = tree.lengths[own]
        if left <= length or (node, own) == path[0]:
            break
        left -= length
    part = min(left / length, 1.0)
    return add_root(tree, own, part if tree.ends[own, 1] == node else 1.0 - part)


def find_root_branch(tree: Tree, outgroup: Sequence[str] | None) -> tuple[int, float] | None:
    """The branch between an outgroup and the rest, or that with the root with which the tree was read, and where."""
    if outgroup is None:
        return tree.root_place
    names = dict(enumerate(tree.names))
    return place_outgroup(UnrootedNodes(tree.ends, tree.lengths, ("",) * tree.n_edges, names), outgroup)
