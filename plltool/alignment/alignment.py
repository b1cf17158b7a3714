"""Alignments: as text, and as arrays of codes; both are checked when they are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, NoReturn

import numpy as np

from plltool.alignment.states import DNA, EITHER, ILLEGAL_CODE, CodeArray, GradedSpace, StateSpace
from plltool.arrays import BoolArray, FloatArray, IndexArray
from plltool.constants import BASES, CONSTANT_SITES, MAX_CONSTANT_SITES, WHOLE
from plltool.errors import InputError, count, show_name

_MAX_LISTED = 5  # states in one message


class CellTable(NamedTuple):
    """The names of a table's columns, and the cell that each byte of its rows stands for."""

    columns: tuple[str, ...]
    cells: tuple[str, ...]


class CellLikelihoods(NamedTuple):
    """Cells with likelihoods of states: which of some vectors each has."""

    numbers: IndexArray  # (n_taxa, n_sites) rows of `vectors`
    vectors: FloatArray  # (n, n_states) from 0 to 1, none of them all 0


MIN_TAXA = 3  # fewer have no unrooted tree
_SORT_CHUNK = 4096  # columns that are turned together
# Of characters that DNA or proteins do not have
_HINTS = dict.fromkeys(b"0123456789", "digits are states of morphological data (--data-type multi)")
_HINTS |= dict.fromkeys(b"{}()", "sets of states in brackets are read in NEXUS files only, elsewhere letters such as R")
_ACID = "it is an amino acid: --data-type protein if all letters are, --partitions FILE if some columns are"
_HINTS |= dict.fromkeys(b"EFILPQZefilpqz", _ACID)


@dataclass(frozen=True, eq=False)
class Alignment:
    """Aligned sequences."""

    names: tuple[str, ...]  # of taxa; bytes that are not UTF-8 are kept as surrogates (``surrogateescape``)
    codes: CodeArray  # (n_taxa, n_sites) of `states`, none of them illegal; read-only. A site of codons is a codon
    states: StateSpace
    source: str  # the file, for messages
    warnings: tuple[str, ...] = ()  # what a user should know about the data, one line each
    weights: FloatArray | None = None  # (n_sites,) the number of sites that each column stands for; 1 with None
    # (n_sites,) equal columns are separate patterns where these numbers differ, see `with_site_frequencies`
    labels: IndexArray | None = None

    def __repr__(self) -> str:
        return f"<Alignment: {self.n_taxa} taxa, {self.n_sites} sites, {self.states.name}, {self.source}>"

    @property
    def n_taxa(self) -> int:
        return self.codes.shape[0]

    @property
    def n_sites(self) -> int:
        return self.codes.shape[1]

    def count_sites(self, columns: BoolArray | None = None) -> int:
        """The number of sites that all columns, or some of them (n_sites,), stand for."""
        if self.weights is None:
            return self.n_sites if columns is None else int(columns.sum())
        return int(self.weights.sum() if columns is None else self.weights[columns].sum())

    @cached_property
    def called(self) -> Alignment:
        """The alignment with the most likely states in place of likelihoods of states."""
        if not isinstance(self.states, GradedSpace):
            return self
        return replace(self, codes=self.states.plain_codes[self.codes], states=self.states.plain)

    @cached_property
    def code_counts(self) -> IndexArray:
        """(n_taxa, n_codes) how often each taxon has each code of `called`."""
        called = self.called
        counts = [np.bincount(row, self.weights, called.states.n_codes) for row in called.codes]
        return np.stack(counts).astype(np.intp)

    @property
    def undetermined_counts(self) -> IndexArray:
        """(n_taxa,) the number of cells of each taxon about which nothing is known."""
        return self.code_counts[:, self.states.all_states_code]


class DeclaredKind(NamedTuple):
    """What a file says that its columns `first` to `last`, from 1, are: the word that it uses, and the states."""

    word: str
    states: StateSpace
    first: int
    last: int


@dataclass(frozen=True, eq=False)
class Sequences:
    """Aligned sequences as text, before they are encoded; their parts may be different kinds of data.

    Attributes
    ----------
    names : (n_taxa,) taxon names
    rows : (n_taxa,) sequences without blanks or match characters
    source : the file, for messages
    states : the kind of data, or `COUNTED`; None if it differs between columns
    positions : the line of `source` on which each taxon starts, or None if unknown
    told : whether `states` were declared by the user or the file, so that the letters of a part do not decide
    sets : bytes of `rows` that stand for several characters, such as those of {01} in a NEXUS file
    kinds : the kinds of data that the file declares for blocks of columns; empty if `states` says it all
    warnings : what a user should know about the file, one line each
    least : number of taxa that there must be at least
    table : what the bytes of `rows` stand for if the file is a table of named states
    names_are : what of the headers of a FASTA file the names are, one of NAME_KINDS
    constant_sites : numbers of added sites at which all taxa have A, C, G and T; `rows` end with a column for each
        number above 0, see `with_constant_sites`
    site_weights : (n_columns,) how often each column of the file counts; empty for once, see `with_site_weights`
    likelihoods : of the states in each cell, which then count in place of `rows`; None if `rows` say it all

    Raises InputError for fewer taxa than `least`, an empty or repeated name, sequences of different lengths or
    without sites.
    """

    names: tuple[str, ...]
    rows: tuple[bytes, ...]
    source: str
    states: StateSpace | None
    positions: Sequence[int] | None = None
    told: bool = False
    sets: Mapping[int, bytes] = field(default_factory=dict)
    kinds: tuple[DeclaredKind, ...] = ()
    warnings: tuple[str, ...] = ()
    least: int = MIN_TAXA
    table: CellTable | None = None
    names_are: str = WHOLE
    constant_sites: tuple[int, ...] = ()
    site_weights: tuple[int, ...] = ()
    likelihoods: CellLikelihoods | None = None

    def __post_init__(self) -> None:
        _check_names_and_lengths(self)
        if self.likelihoods is not None and self.likelihoods.numbers.shape != (self.n_taxa, self.n_sites):
            found = "found likelihoods of {} taxa and {} sites".format(*self.likelihoods.numbers.shape)
            raise InputError(f"{self.source}: {found}, expected {self.n_taxa} taxa and {self.n_sites} sites")

    def __repr__(self) -> str:
        data = self.states.name if self.states else "mixed data"
        return f"<Sequences: {self.n_taxa} taxa, {self.n_sites} sites, {data}, {self.source}>"

    @property
    def n_taxa(self) -> int:
        return len(self.names)

    @property
    def n_sites(self) -> int:
        return len(self.rows[0])

    def declared_at(self, sites: IndexArray) -> StateSpace | None:
        """The kind of data that some columns, from 0, were declared to be; None if they were not, or differ."""
        if self.told and self.states:
            return self.states
        within = (kind.states for kind in self.kinds if kind.first <= sites.min() + 1 and sites.max() < kind.last)
        return next(within, None)

    def columns(self, sites: IndexArray) -> tuple[bytes, ...]:
        if np.array_equal(sites, np.arange(self.n_sites)):
            return self.rows
        return tuple(np.frombuffer(row, dtype=np.uint8)[sites].tobytes() for row in self.rows)

    def at_columns(self, sites: IndexArray) -> Sequences:
        """The same taxa with some of their columns, from 0, which may repeat."""
        cells = self.likelihoods and self.likelihoods._replace(numbers=self.likelihoods.numbers[:, sites])
        return replace(self, rows=self.columns(sites), likelihoods=cells)

    def with_constant_sites(self, counts: Sequence[int]) -> Sequences:
        """These sequences with constant sites added: `counts` of A, C, G and T.

        Raises InputError unless the data are DNA and there are four whole numbers, none below 0.
        """
        if self.states is not DNA or self.likelihoods is not None:
            data = "likelihoods of states" if self.likelihoods is not None else "mixed data"
            refuse_constant_sites(self.source, data if self.states in (DNA, None) else f"{self.states.name} data")
        are_counts = all(isinstance(count, (int, np.integer)) and count >= 0 for count in counts)
        if len(counts) != len(BASES) or not are_counts or sum(counts) > MAX_CONSTANT_SITES:
            found = ",".join(map(str, counts))
            raise InputError(f"constant sites: found {show_name(found)}, expected {CONSTANT_SITES}")
        added = bytes(base for base, count in zip(BASES, counts, strict=True) if count)
        rows = tuple(row + added for row in self.rows)
        return replace(self, rows=rows, constant_sites=tuple(map(int, counts)))

    def with_site_weights(self, weights: Sequence[int], source: str = "site weights") -> Sequences:
        """The same sequences, whose columns count as often as `weights` say, which messages call `source`.

        Raises InputError unless there is a whole number from 0 on for each column, not all 0.
        """
        n_columns = self.n_sites - sum(count > 0 for count in self.constant_sites)
        if len(weights) != n_columns:
            expected = f"expected {n_columns}, one for each column of {self.source}"
            raise InputError(f"{source}: number of weights: found {len(weights)}, {expected}")
        for column, weight in enumerate(weights, 1):
            if not isinstance(weight, (int, np.integer)) or weight < 0:
                found = f"found {weight} as the weight of column {column}, expected a whole number from 0 on"
                raise InputError(f"{source}: {found}")
        total = sum(weights)
        if not 0 < total <= MAX_CONSTANT_SITES:
            raise InputError(f"{source}: found weights whose sum is {total}, expected 1 to {MAX_CONSTANT_SITES:.0e}")
        return replace(self, site_weights=tuple(map(int, weights)))

    @property
    def column_weights(self) -> FloatArray | None:
        """(n_sites,) how many sites each column of `rows` stands for; None if each is one site."""
        if not (self.constant_sites or self.site_weights):
            return None
        added = [count for count in self.constant_sites if count]
        return np.array([*(self.site_weights or [1] * (self.n_sites - len(added))), *added], dtype=np.float64)

    def refuse_table(self, what: str) -> None:
        """Raise InputError for a table of states or of their likelihoods where only sequences can be `what`."""
        if self.table is not None:
            raise InputError(f"{self.source}: found a table of named states, expected sequences as {what}")
        if self.likelihoods is not None:
            raise InputError(f"{self.source}: found likelihoods of states, expected sequences as {what}")

    def describe_taxon(self, taxon: int) -> str:
        line = "" if self.positions is None else f" (line {self.positions[taxon]})"
        return f"taxon {show_name(self.names[taxon])}{line}"


def refuse_constant_sites(source: str, what: str) -> NoReturn:
    """Raise InputError for constant sites added to other data than DNA, or to several parts."""
    raise InputError(f"{source}: found constant sites to add to {what}, expected an alignment of DNA without parts")


def sort_columns(codes: CodeArray, taxa: Sequence[int] | None = None) -> IndexArray:
    """The order (n_sites,) that sorts columns, by the first row first or in the order `taxa`; it is stable."""
    n_taxa, n_sites = codes.shape
    rows = range(n_taxa) if taxa is None else taxa
    columns = np.empty((n_sites, n_taxa), dtype=codes.dtype.newbyteorder(">"))
    for start in range(0, n_sites, _SORT_CHUNK):
        columns[start : start + _SORT_CHUNK] = codes[rows, start : start + _SORT_CHUNK].T
    as_one_item = columns.view(np.dtype((np.void, columns.dtype.itemsize * len(codes))))[:, 0]  # compare byte by byte
    return np.argsort(as_one_item, kind="stable")


def to_bytes(sequence: bytes | str) -> bytes:
    """A sequence as bytes; surrogate escapes become the bytes that they stand for."""
    return sequence.encode("utf-8", "surrogateescape") if isinstance(sequence, str) else sequence


def _check_names_and_lengths(given: Sequences) -> None:
    """Raise InputError unless there are enough names, all different, and sequences as long as the first, not empty."""
    if len(given.names) < given.least:
        found = count(len(given.names), "taxon", "taxa")
        raise InputError(f"{given.source}: found {found}, expected at least {given.least}")
    seen: dict[str, int] = {}
    for taxon, name in enumerate(given.names):
        if not name:
            where = f"taxon {taxon + 1}" if given.positions is None else f"line {given.positions[taxon]}"
            raise InputError(f"{given.source}: {where} has an empty taxon name")
        first = seen.setdefault(name, taxon)
        if first != taxon:
            if given.positions is None:
                where = f"taxa {first + 1} and {taxon + 1}"
            else:
                where = f"lines {given.positions[first]} and {given.positions[taxon]}"
            raise InputError(f"{given.source}: two taxa have the name {show_name(name)} ({where})")
    n_sites = given.n_sites
    for taxon, row in enumerate(given.rows):
        if len(row) != n_sites:
            if given.states is not None:  # an illegal character explains more
                states = given.states.with_sets(given.sets)
                for number, other in enumerate(given.rows):
                    check_characters(given, number, other, states, np.arange(len(other)))
            found = f"{given.describe_taxon(taxon)} has {len(row)} sites, expected {n_sites} as in"
            raise InputError(f"{given.source}: {found} {given.describe_taxon(0)} (are the sequences aligned?)")
    if n_sites == 0:
        raise InputError(f"{given.source}: found 0 sites, expected at least 1")


def check_characters(given: Sequences, taxon: int, row: bytes, states: StateSpace, sites: IndexArray) -> None:
    """Raise InputError for a character that `states` does not know."""
    codes = states.code_of[np.frombuffer(row, dtype=np.uint8)]
    illegal = np.flatnonzero(codes == ILLEGAL_CODE)
    if len(illegal):
        site = int(sites[illegal[0]])
        if given.table is not None:
            cell = given.table.cells[row[illegal[0]]]
            wrong = next(name for name in cell.split(EITHER) if name not in states.symbols)
            within = f" in {show_name(cell)}" if wrong != cell else ""
            more = f" and {states.n_states - _MAX_LISTED} more" if states.n_states > _MAX_LISTED else ""
            legal = f"one of the states {', '.join(states.symbols[:_MAX_LISTED])}{more}"
            found = f"column {show_name(given.table.columns[site])}: found {show_name(wrong)}{within}"
            where = f"{given.source}: {given.describe_taxon(taxon)}, {found}"
            raise InputError(f"{where}, expected {legal}, several with '{EITHER}' between, or '?'")
        hint = _HINTS.get(given.rows[taxon][site]) if states.name in ("DNA", "protein") else None
        raise InputError(
            f"{given.source}: {given.describe_taxon(taxon)}, site {site + 1}: "
            f"found {show_character(given.rows[taxon], site, given.sets)}, "
            f"expected {states.letters.name}, that is one of {states.characters}{f'; {hint}' if hint else ''}"
        )


def show_character(sequence: bytes, site: int, sets: Mapping[int, bytes]) -> str:
    """The character that starts at byte `site`, or the set that it stands for, printable."""
    if sequence[site] in sets:
        return repr(f"{{{sets[sequence[site]].decode('ascii', 'replace')}}}")
    character = sequence[site : site + 4].decode("utf-8", "surrogateescape")[0]  # UTF-8 takes at most 4 bytes
    return f"byte 0x{sequence[site]:02x}" if "\ud800" <= character <= "\udfff" else repr(character)
