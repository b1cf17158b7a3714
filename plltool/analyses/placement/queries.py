"""Queries that are placed on a reference tree: as they are read, batch by batch on an engine, and the places found."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from plltool.alignment.alignment import Sequences
from plltool.alignment.patterns import Patterns, compress, encode
from plltool.alignment.states import DNA, CodeArray
from plltool.analyses.placement.branches import Places, free_branches, optimise_places, score_branches
from plltool.arrays import BoolArray, FloatArray, IndexArray, likelihood_weights, slices
from plltool.engine.requests import Counters, Holder, work_of
from plltool.engine.storage import Slots
from plltool.errors import InputError, count, show_name
from plltool.hardware import Hardware
from plltool.model.model import Model
from plltool.model.partition import Dataset
from plltool.optimise.likelihood import TreeLikelihood
from plltool.progress import announce
from plltool.run.memory import ask_engine
from plltool.tree.operations import directed_slots
from plltool.tree.topology import Tree

PLACE_BATCH = 64  # queries that an engine holds at a time; with similar ones it lacks the columns that none of them has
PLACE_TIE = 0.5  # lnL between two best places of a query, up to which they are judged with the branch's length free
# branches that are optimised for a query: with many sites one score takes all weight, and may be off by 40 lnL
LEAST_BRANCHES = 5
Finder: TypeAlias = Callable[[TreeLikelihood, IndexArray], Places]


@dataclass(frozen=True, eq=False)
class Queries:
    """Different sequences to place, aligned to a reference."""

    names: tuple[tuple[str, ...], ...]  # for each sequence the names of all queries that have it
    codes: tuple[CodeArray, ...]  # for each part of the reference (n, n_sites), in the order of the sites of the part
    without_data: tuple[str, ...]  # names of the queries that have nothing but gaps; they are not among `names`
    warnings: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.names)


def encode_queries(files: Sequence[Sequences], data: Dataset) -> Queries:
    """The queries of some files, in their order; a sequence of the reference under its own name is none.

    Raises InputError for a query that is not as long as the reference, has the name of a reference taxon with another
    sequence, or a character that the data of the reference do not know; and if no query has data.
    """
    for given in files:
        if given.n_sites != data.n_columns:
            found = f"{given.source}: {given.describe_taxon(0)} has {given.n_sites} sites"
            expected = f"expected {data.n_columns} as in the reference {data.source}"
            raise InputError(f"{found}, {expected} (are the queries aligned to it?)")
    if data.constant_sites:
        files = [replace(given, states=DNA).with_constant_sites(data.constant_sites) for given in files]
    blocks, warnings = zip(*(_encode_file(given, data) for given in files), strict=True)
    codes = [np.concatenate(own) for own in zip(*blocks, strict=True)]
    is_given = np.concatenate([part.sites < data.n_columns for part in data.parts])  # not an added constant site
    known = (np.concatenate(_known_cells(codes, data), axis=1) & is_given).any(axis=1)
    names = [name for given in files for name in given.names]
    repeated = _find_repeated([(given, k) for given in files for k in range(len(given.names))], codes, data)
    known &= ~repeated
    groups: dict[bytes, list[int]] = {}
    for query in np.flatnonzero(known).tolist():
        groups.setdefault(b"".join(own[query].tobytes() for own in codes), []).append(query)
    if not groups:
        source = ", ".join(given.source for given in files)
        raise InputError(f"{source}: found nothing but gaps and undetermined characters, expected a query with data")
    first = [members[0] for members in groups.values()]
    empty = tuple(names[query] for query in np.flatnonzero(~known & ~repeated).tolist())
    remarks = [line for own in warnings for line in own]
    if repeated.any():
        remarks.append(f"{count(int(repeated.sum()), 'sequence')} of the reference left out of the queries")
    if empty:
        number = count(len(empty), "query", "queries")
        remarks.append(f"{number} without data (only gaps) not placed, first {show_name(empty[0])}")
    return Queries(
        tuple(tuple(names[query] for query in members) for members in groups.values()),
        tuple(own[first] for own in codes),
        empty,
        tuple(remarks),
    )


def _find_repeated(queries: Sequence[tuple[Sequences, int]], codes: Sequence[CodeArray], data: Dataset) -> BoolArray:
    """Which queries, each a row of a file, are taxa of the reference; InputError if the sequence is another one."""
    number_of = {name: taxon for taxon, name in enumerate(data.names)}
    taxa = [number_of.get(given.names[row]) for given, row in queries]
    for query, (given, row) in enumerate(queries):
        pairs = zip(codes, data.parts, strict=True)
        if (taxon := taxa[query]) is not None and any(
            (own[query] != part.alignment.codes[taxon]).any() for own, part in pairs
        ):
            found = f"{given.source}: {given.describe_taxon(row)} has the name of a taxon of the reference"
            raise InputError(f"{found} {data.source}, but another sequence; rename it")
    return np.array([taxon is not None for taxon in taxa])


def _encode_file(given: Sequences, data: Dataset) -> tuple[list[CodeArray], list[str]]:
    """The codes of the queries of a file in each part, and warnings."""
    given.refuse_table("queries")
    if given.sets:
        raise InputError(f"{given.source}: found sets of states in brackets, expected letters such as R")
    codes: list[CodeArray] = []
    warnings = [*given.warnings]
    for part in data.parts:
        own = encode(given, part.alignment.states, part.columns.ravel())
        if own.n_sites != len(part.columns):
            raise InputError(f"{given.source}: found a stop codon, expected a codon of the reference {data.source}")
        codes.append(own.codes)
        warnings += own.warnings
    return codes, warnings


def _known_cells(codes: Sequence[CodeArray], data: Dataset) -> list[BoolArray]:
    """Whether something is known of each cell of some queries, part by part."""
    pairs = zip(codes, data.parts, strict=True)
    return [np.asarray(own != part.alignment.states.all_states_code) for own, part in pairs]


def count_known(codes: Sequence[CodeArray], data: Dataset) -> IndexArray:
    """(n,) the number of cells of each query of which something is known."""
    return np.asarray(sum(own.sum(axis=1) for own in _known_cells(codes, data)))


@dataclass(frozen=True, eq=False)
class Placer:
    """Places queries on a tree, a batch at a time, each on a new engine.

    An engine holds the columns in which some query of the batch has data. So queries come in the order of their
    columns, and those of a batch share most of them. Where the length of the branch is optimised, an engine holds all
    columns: at each place with `raxml_blo`; if that is None, for queries whose two best places are within PLACE_TIE.
    """

    data: Dataset
    queries: Queries
    tree: Tree
    models: Sequence[Model]
    hardware: Hardware
    heuristic: float  # the share of the likelihood weights of all scores that the branches have that are optimised
    raxml_blo: bool | None
    work: Counters = field(default_factory=Counters)  # of all engines

    def place(self, lnl: float) -> list[Places]:
        """The places of each query that are worth a look, in no order; the reference has `lnl`."""
        found: dict[int, Places] = {}

        def free(likelihood: TreeLikelihood, some: IndexArray) -> Places:
            of_some = [found[query] for query in some.tolist()]
            numbers = np.repeat(np.arange(len(some)), [len(own.queries) for own in of_some])
            rest = (np.concatenate([getattr(own, name) for own in of_some]) for name in ("branches", "lengths", "lnl"))
            return free_branches(likelihood, Places(numbers, *rest))

        order, codes = self._order(), self.queries.codes
        for some in _batches(order):
            announce(f"placing queries, {len(found)} of {len(self.queries)} placed")
            cells = _known_cells([own[some] for own in codes], self.data)
            known = [np.asarray(own.any(axis=0)) for own in cells]
            found |= self._on_engine(some, known, lnl, self.slide)
        tied = {query: int(np.count_nonzero(own.lnl >= own.lnl.max() - PLACE_TIE)) > 1 for query, own in found.items()}
        # at whose places the length of the branch is to be optimised, too
        unsure = [query for query in order.tolist() if (tied[query] if self.raxml_blo is None else self.raxml_blo)]
        for some in _batches(np.array(unsure, dtype=np.int64)):
            announce("placing queries, the length of the branch is free")
            whole = [np.ones(own.shape[1], dtype=bool) for own in codes]
            found |= self._on_engine(some, whole, lnl, free)
        return [found[query] for query in range(len(self.queries))]

    def slide(self, likelihood: TreeLikelihood, some: IndexArray) -> Places:
        """The places of the first queries of an engine, as many as `some`, optimised where scores are best."""
        pendant = float(np.mean(self.tree.lengths))
        scores = score_branches(likelihood, len(some), pendant)
        return optimise_places(likelihood, *choose_branches(scores, self.heuristic), pendant)

    def _order(self) -> IndexArray:
        """Queries in the order of the first and the last column in which they have data."""
        columns = np.concatenate([part.sites for part in self.data.parts])
        known = np.concatenate(_known_cells(self.queries.codes, self.data), axis=1)[:, np.argsort(columns)]
        return np.lexsort([-np.argmax(known[:, ::-1], axis=1), np.argmax(known, axis=1)])

    def _on_engine(self, some: IndexArray, known: Sequence[BoolArray], lnl: float, find: Finder) -> dict[int, Places]:
        """The places that `find` finds for some queries on an engine that holds the known columns alone."""
        used = [part for part, own in enumerate(known) if own.any()]
        patterns = [self.with_queries(part, some, known[part]) for part in used]
        models = [self.models[part] for part in used]
        slots = Slots(directed_slots(self.tree.n_taxa) + 1)

        def ask(engine: Holder) -> Places:
            likelihood = TreeLikelihood(self.tree, models, engine)
            elsewhere = lnl - likelihood.lnl()  # of the columns that the engine lacks
            places = find(likelihood, some)
            self.work.add_closed(work_of(engine))
            return replace(places, lnl=places.lnl + elsewhere)

        places = ask_engine(ask, patterns, models, slots, self.hardware)
        return {query: places[places.queries == number] for number, query in enumerate(some.tolist())}

    def with_queries(self, part: int, some: IndexArray, columns: BoolArray) -> Patterns:
        """The patterns of some columns of a part, the rows of some queries behind the taxa."""
        reference = self.data.parts[part].alignment
        rows = np.concatenate([reference.codes, self.queries.codes[part][some]])[:, columns]
        weights = None if reference.weights is None else reference.weights[columns]
        return compress(replace(reference, codes=rows, weights=weights))


def _batches(queries: IndexArray) -> list[IndexArray]:
    return [queries[some] for some in slices(len(queries), PLACE_BATCH)]


def choose_branches(scores: FloatArray, heuristic: float) -> tuple[IndexArray, IndexArray]:
    """Queries and branches, pair by pair: the best scores of each query that together have a share of the weights.

    There are at least LEAST_BRANCHES of each query. `scores` are lnL (n_queries, n_branches). With a share of 1 all
    branches are chosen.
    """
    if heuristic >= 1:
        everything = np.nonzero(np.isfinite(scores))
        return everything[0], everything[1]
    order = np.argsort(-scores, axis=1, kind="stable")
    weights = likelihood_weights(np.take_along_axis(scores, order, axis=1))
    before = np.cumsum(weights, axis=1) - weights
    queries, ranks = np.nonzero((before < heuristic) | (np.arange(scores.shape[1]) < LEAST_BRANCHES))
    return queries, order[queries, ranks]
