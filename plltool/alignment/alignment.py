"""Alignments: as text, and as arrays of codes; both are checked when they are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from plltool.alignment.cells import CellTable
from plltool.alignment.codons import CodonSpace, read_codons
from plltool.alignment.spaces import OWN_STATES, NamedSpace
from plltool.alignment.states import DNA, ILLEGAL_CODE, CodeArray, StateSpace
from plltool.arrays import BoolArray, IndexArray
from plltool.errors import InputError, show_name

MIN_TAXA = 3  # fewer have no unrooted tree
_MAX_LISTED = 5  # names in one message
_COLUMN_CHUNK = 512  # columns that are looked at together
_HINTS = {  # of characters in a sequence that are not letters
    **dict.fromkeys(b"0123456789", "digits are states of morphological data (--data-type multi)"),
    **dict.fromkeys(b"{}()", "sets of states in brackets are read in NEXUS files only, elsewhere letters such as R"),
}


@dataclass(frozen=True, eq=False)
class Alignment:
    """Aligned sequences.

    Attributes
    ----------
    names : tuple of str
        Taxon names; bytes that are not UTF-8 are kept as surrogates (``surrogateescape``).
    codes : unsigned array (n_taxa, n_sites)
        Codes of `states`, none of them illegal; read-only. A site of codons is a codon.
    states : StateSpace
    source : str
        The file, for messages.
    warnings : tuple of str
        What a user should know about the data, one line each.
    """

    names: tuple[str, ...]
    codes: CodeArray
    states: StateSpace
    source: str
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Alignment: {self.n_taxa} taxa, {self.n_sites} sites, {self.states.name}, {self.source}>"

    @property
    def n_taxa(self) -> int:
        return self.codes.shape[0]

    @property
    def n_sites(self) -> int:
        return self.codes.shape[1]


class DeclaredKind(NamedTuple):
    """What a file says that its columns `first` to `last`, from 1, are: its own word for it, and the states."""

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

    def __post_init__(self) -> None:
        _check_names(self)
        _check_lengths(self)

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
        """The rows with some columns only."""
        return tuple(np.frombuffer(row, dtype=np.uint8)[sites].tobytes() for row in self.rows)

    def refuse_table(self, what: str) -> None:
        """Raise InputError for a table of named states where only sequences of characters can be `what`."""
        if self.table is not None:
            raise InputError(f"{self.source}: found a table of named states, expected sequences as {what}")

    def describe_taxon(self, taxon: int) -> str:
        line = "" if self.positions is None else f" (line {self.positions[taxon]})"
        return f"taxon {show_name(self.names[taxon])}{line}"


def make_alignment(
    names: Sequence[str],
    sequences: Sequence[bytes | str],
    source: str,
    states: StateSpace = DNA,
    positions: Sequence[int] | None = None,
) -> Alignment:
    """Check names and sequences and encode them.

    Parameters
    ----------
    names : n_taxa taxon names.
    sequences : n_taxa sequences without blanks or match characters.
    source : the file, for messages.
    positions : the line of `source` on which each taxon starts, or None if unknown.

    Raises
    ------
    InputError
        For fewer than `MIN_TAXA` taxa, an empty or repeated name, a character that `states` does not know, sequences
        of different lengths, and sequences without sites.
    """
    given = Sequences(tuple(names), tuple(map(to_bytes, sequences)), source, states, positions)
    alignment = encode(given, states, np.arange(given.n_sites))
    return replace(alignment, warnings=(*alignment.warnings, *data_warnings([alignment])))


def encode(given: Sequences, states: StateSpace, sites: IndexArray) -> Alignment:
    """The codes of some columns, with warnings of characters whose meaning is doubtful.

    Raises InputError for a character that `states` does not know; for codons see `read_codons`.
    """
    rows = given.columns(sites)
    states = _space_of_bytes(given, states)
    for taxon, row in enumerate(rows):
        _check_characters(given, taxon, row, states, sites)
    warnings = _doubtful_warnings(given, rows, states, sites)
    if isinstance(states, CodonSpace):
        codes, dropped = read_codons(given, states, rows, sites)
        warnings += dropped
    else:
        codes = np.stack([states.encode(row) for row in rows])
    codes.setflags(write=False)
    return Alignment(given.names, codes, states, given.source, warnings)


def _space_of_bytes(given: Sequences, states: StateSpace) -> StateSpace:
    """`states` with the meaning of the bytes of sequences; InputError if only a table has such states, or has none."""
    if given.table is not None and states.name.startswith(OWN_STATES):
        return states.with_cells(given.table.cells)
    if given.table is not None:
        expected = "a model with their names, MATRIX{FILE}"
        raise InputError(f"{given.source}: found a table of named states, expected {expected}, or another alignment")
    if isinstance(states, NamedSpace):
        expected = f"a table of taxa by characters, because states of the model have names, such as {states.symbols[0]}"
        raise InputError(f"{given.source}: found sequences of characters, expected {expected}")
    return states.with_sets(given.sets) if given.sets else states


def sort_columns(codes: CodeArray) -> IndexArray:
    """The order (n_sites,) that sorts columns lexicographically, the first row first; equal columns keep theirs."""
    columns = np.ascontiguousarray(codes.T, dtype=codes.dtype.newbyteorder(">"))
    as_one_item = columns.view(np.dtype((np.void, columns.dtype.itemsize * len(codes))))[:, 0]  # compare byte by byte
    return np.argsort(as_one_item, kind="stable")


def gap_share(alignment: Alignment) -> float:
    """The share of undetermined cells, from 0 to 1."""
    return float((alignment.codes == alignment.states.all_states_code).mean())


def may_be_invariable(alignment: Alignment) -> BoolArray:
    """(n_sites,) whether all taxa may have the same state, counting every state that an ambiguous cell allows."""
    allowed = np.ones((alignment.n_sites, alignment.states.n_states), dtype=bool)
    for row in alignment.codes:
        allowed &= alignment.states.state_sets[row]
    return np.asarray(allowed.any(axis=1))


def identical_groups(blocks: Sequence[Alignment]) -> list[list[int]]:
    """Groups of taxa with the same codes at every site of all `blocks`, in the order of their first members.

    A taxon with a sequence of its own is in no group.
    """
    members: dict[int, list[int]] = {}
    for taxon, first in enumerate(first_identical(blocks)):
        members.setdefault(first, []).append(taxon)
    return [group for group in members.values() if len(group) > 1]


def to_bytes(sequence: bytes | str) -> bytes:
    """A sequence as bytes; surrogate escapes become the bytes that they stand for."""
    return sequence.encode("utf-8", "surrogateescape") if isinstance(sequence, str) else sequence


def _check_names(given: Sequences) -> None:
    """Raise InputError unless there are enough names, all different and none empty."""
    if len(given.names) < given.least:
        raise InputError(f"{given.source}: found {len(given.names)} taxa, expected at least {given.least}")
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


def _check_lengths(given: Sequences) -> None:
    """Raise InputError unless all sequences are equally long and not empty."""
    n_sites = given.n_sites
    for taxon, row in enumerate(given.rows):
        if len(row) != n_sites:
            if given.states is not None:  # an illegal character explains more
                states = given.states.with_sets(given.sets)
                for number, other in enumerate(given.rows):
                    _check_characters(given, number, other, states, np.arange(len(other)))
            raise InputError(
                f"{given.source}: {given.describe_taxon(taxon)} has {len(row)} sites, expected {n_sites} as in "
                f"{given.describe_taxon(0)} (are the sequences aligned?)"
            )
    if n_sites == 0:
        raise InputError(f"{given.source}: found 0 sites, expected at least 1")


def _check_characters(given: Sequences, taxon: int, row: bytes, states: StateSpace, sites: IndexArray) -> None:
    """Raise InputError for a character that `states` does not know."""
    codes = states.code_of[np.frombuffer(row, dtype=np.uint8)]
    illegal = np.flatnonzero(codes == ILLEGAL_CODE)
    if len(illegal):
        site = int(sites[illegal[0]])
        if given.table is not None:
            misfit = given.table.describe_misfit(row[illegal[0]], site, states)
            raise InputError(f"{given.source}: {given.describe_taxon(taxon)}, {misfit}")
        hint = _HINTS.get(given.rows[taxon][site]) if states.name in ("DNA", "protein") else None
        raise InputError(
            f"{given.source}: {given.describe_taxon(taxon)}, site {site + 1}: "
            f"found {_show_character(given.rows[taxon], site, given.sets)}, "
            f"expected {states.letters.name}, that is one of {states.characters}{f'; {hint}' if hint else ''}"
        )


def _show_character(sequence: bytes, site: int, sets: Mapping[int, bytes]) -> str:
    """The character that starts at byte `site`, or the set that it stands for, printable."""
    if sequence[site] in sets:
        return repr(f"{{{sets[sequence[site]].decode('ascii', 'replace')}}}")
    character = sequence[site : site + 4].decode("utf-8", "surrogateescape")[0]  # UTF-8 takes at most 4 bytes
    return f"byte 0x{sequence[site]:02x}" if "\ud800" <= character <= "\udfff" else repr(character)


def first_identical(blocks: Sequence[Alignment]) -> list[int]:
    """For each taxon the first one with the same codes in all `blocks`, which have the same taxa."""
    first: dict[bytes, int] = {}
    rows = zip(*(block.codes for block in blocks), strict=True)
    return [first.setdefault(b"".join(code.tobytes() for code in row), taxon) for taxon, row in enumerate(rows)]


def _doubtful_warnings(
    given: Sequences, rows: Sequence[bytes], states: StateSpace, sites: IndexArray
) -> tuple[str, ...]:
    """At most one line on characters that are read as undetermined but may mean something else."""
    is_doubtful = np.zeros(256, dtype=bool)
    is_doubtful[list(states.doubtful.encode("ascii"))] = True
    count, first = 0, ""
    for taxon, row in enumerate(rows):
        found = np.flatnonzero(is_doubtful[np.frombuffer(row, dtype=np.uint8)])
        if len(found) and not first:
            where = f"{given.describe_taxon(taxon)}, site {sites[found[0]] + 1}"
            first = f"{_show_character(row, int(found[0]), given.sets)} in {where}"
        count += len(found)
    if not count:
        return ()
    return (f"{given.source}: {_count(count, 'character')} of '{states.doubtful}' read as a gap, first {first}",)


def data_warnings(blocks: Sequence[Alignment]) -> list[str]:
    """Lines on columns and taxa without data, identical sequences and a lack of information in an alignment.

    `blocks` are the parts of the alignment.
    """
    warnings = []
    source, names = blocks[0].source, blocks[0].names
    undetermined = [block.codes == block.states.all_states_code for block in blocks]
    n_empty_columns = sum(int(cells.all(axis=0).sum()) for cells in undetermined)
    if n_empty_columns:
        warnings.append(f"{source}: {_count(n_empty_columns, 'column')} without data (only gaps)")
    empty_taxa = np.flatnonzero(np.all([cells.all(axis=1) for cells in undetermined], axis=0)).tolist()
    if empty_taxa:
        found = "1 taxon" if len(empty_taxa) == 1 else f"{len(empty_taxa)} taxa"
        warnings.append(f"{source}: {found} without data (only gaps): {_list_taxa(names, empty_taxa)}")
    groups = identical_groups(blocks)
    if groups:
        more = f" and {len(groups) - 1} more" if len(groups) > 1 else ""
        found = _count(len(groups), "group")
        warnings.append(f"{source}: {found} of identical sequences: ({_list_taxa(names, groups[0])}){more}")
    if len(names) == MIN_TAXA:
        warnings.append(f"{source}: {MIN_TAXA} taxa have only one topology")
    elif not any(map(has_informative_site, blocks)):
        warnings.append(f"{source}: no site is parsimony-informative, so the topology is practically arbitrary")
    return warnings


def refuse_no_data(blocks: Sequence[Alignment]) -> None:
    """Raise InputError if nothing is known at any site of any part of an alignment."""
    if all((block.codes == block.states.all_states_code).all() for block in blocks):
        found = "found nothing but gaps and undetermined characters"
        raise InputError(f"{blocks[0].source}: {found}, expected {blocks[0].states.name} data")


def has_informative_site(block: Alignment) -> bool:
    """Whether a site has two states, each in at least two taxa that cannot have the other one.

    Without ambiguous cells this is what makes a site parsimony-informative; with them it is necessary, not sufficient.
    """
    occurring, codes_found = np.unique(block.codes, return_inverse=True)
    sets = block.states.state_sets[occurring]
    n_codes, n_states = sets.shape
    # (n_codes, n_states ** 2): whether a code allows one state but not another one
    contrasts = (sets[:, :, None] & ~sets[:, None, :]).reshape(n_codes, -1).astype(np.float64)
    for start in range(0, block.n_sites, _COLUMN_CHUNK):
        codes = codes_found[:, start : start + _COLUMN_CHUNK]
        n_columns = codes.shape[1]
        places = codes + n_codes * np.arange(n_columns)
        counts = np.bincount(places.ravel(), minlength=n_codes * n_columns).reshape(n_columns, n_codes)
        repeated = (counts @ contrasts >= 2).reshape(n_columns, n_states, n_states)
        if (repeated & repeated.transpose(0, 2, 1)).any():
            return True
    return False


def find_states(block: Alignment) -> tuple[str, ...]:
    """The names of the states that occur, cells about which nothing is known left out."""
    occurs = np.bincount(block.codes.ravel(), minlength=block.states.n_codes) > 0
    occurs[block.states.all_states_code] = False
    found = block.states.state_sets[occurs].any(axis=0)
    return tuple(np.array(block.states.symbols)[found].tolist())


def _list_taxa(names: Sequence[str], taxa: Sequence[int]) -> str:
    """The names of `taxa`; beyond `_MAX_LISTED` only their number."""
    listed = ", ".join(show_name(names[taxon]) for taxon in taxa[:_MAX_LISTED])
    return listed if len(taxa) <= _MAX_LISTED else f"{listed} and {len(taxa) - _MAX_LISTED} more"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
