"""An alignment as an array of codes, checked when it is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from plltool.alignment.states import DNA, ILLEGAL_CODE, CodeArray, StateSpace
from plltool.errors import InputError

MIN_TAXA = 4  # fewer have only one unrooted topology
_MAX_LISTED = 5  # names in one message
_MAX_SHOWN_NAME = 60  # characters of a name in a message


@dataclass(frozen=True, eq=False)
class Alignment:
    """Aligned sequences.

    Attributes
    ----------
    names : tuple of str
        Taxon names; bytes that are not UTF-8 are kept as surrogates (``surrogateescape``).
    codes : uint8 array (n_taxa, n_sites)
        Codes of `states`, none of them illegal; read-only.
    states : StateSpace
    source : str
        The file, for messages.
    warnings : tuple of str
        What a user should know of the data, one line each.
    """

    names: tuple[str, ...]
    codes: CodeArray
    states: StateSpace
    source: str
    warnings: tuple[str, ...] = ()

    @property
    def n_taxa(self) -> int:
        return self.codes.shape[0]

    @property
    def n_sites(self) -> int:
        return self.codes.shape[1]


@dataclass(frozen=True)
class _Sequences:
    """What `make_alignment` was given; ``positions`` are lines of ``source``, if known."""

    names: tuple[str, ...]
    sequences: tuple[bytes, ...]
    source: str
    states: StateSpace
    positions: Sequence[int] | None

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
    given = _Sequences(tuple(names), tuple(_to_bytes(s) for s in sequences), source, states, positions)
    _check_names(given)
    alignment = Alignment(given.names, _encode(given), states, source)
    return replace(alignment, warnings=(*_doubtful_warnings(given), *_data_warnings(alignment)))


def show_name(name: str) -> str:
    """A name for a message: quoted, on one line, shortened if very long."""
    return repr(name if len(name) <= _MAX_SHOWN_NAME else name[: _MAX_SHOWN_NAME - 3] + "...")


def gap_share(alignment: Alignment) -> float:
    """The share of cells, 0 to 1, about which nothing is known."""
    return float((alignment.codes == alignment.states.all_states_code).mean())


def identical_groups(alignment: Alignment) -> list[list[int]]:
    """Groups of taxa whose codes are the same at every site, in the order of their first members.

    A taxon unlike all others is in no group.
    """
    members: dict[int, list[int]] = {}
    for taxon, first in enumerate(_first_identical(alignment.codes)):
        members.setdefault(first, []).append(taxon)
    return [group for group in members.values() if len(group) > 1]


def without_duplicates(alignment: Alignment) -> tuple[Alignment, list[list[int]]]:
    """Keep one taxon, the first, of each group of identical sequences.

    If fewer than `MIN_TAXA` would be left, the first duplicates are kept as well until there are `MIN_TAXA`.

    Returns
    -------
    reduced : Alignment
        The kept taxa in their old order.
    groups : list of list of int
        ``groups[i]`` holds the taxa of `alignment` that taxon i of `reduced` stands for, itself first; every taxon of
        `alignment` is in one group.
    """
    first_of = _first_identical(alignment.codes)
    duplicates = [taxon for taxon, first in enumerate(first_of) if first != taxon]
    n_distinct = alignment.n_taxa - len(duplicates)
    dropped = set(duplicates[max(0, MIN_TAXA - n_distinct) :])
    members = {taxon: [taxon] for taxon in range(alignment.n_taxa) if taxon not in dropped}
    for taxon in sorted(dropped):
        members[first_of[taxon]].append(taxon)
    kept = list(members)
    codes = alignment.codes[kept]
    codes.setflags(write=False)
    reduced = replace(alignment, names=tuple(alignment.names[taxon] for taxon in kept), codes=codes)
    return reduced, list(members.values())


def _to_bytes(sequence: bytes | str) -> bytes:
    return sequence.encode("utf-8", "surrogateescape") if isinstance(sequence, str) else sequence


def _check_names(given: _Sequences) -> None:
    """Raise InputError unless there are enough names, all different and none empty."""
    if len(given.names) < MIN_TAXA:
        raise InputError(f"{given.source}: found {len(given.names)} taxa, expected at least {MIN_TAXA}")
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


def _encode(given: _Sequences) -> CodeArray:
    """The (n_taxa, n_sites) codes; raises InputError for illegal characters and unequal or zero lengths."""
    rows = [_encode_row(given, taxon) for taxon in range(len(given.names))]
    n_sites = len(rows[0])
    for taxon, row in enumerate(rows):
        if len(row) != n_sites:
            raise InputError(
                f"{given.source}: {given.describe_taxon(taxon)} has {len(row)} sites, expected {n_sites} as in "
                f"{given.describe_taxon(0)} (are the sequences aligned?)"
            )
    if n_sites == 0:
        raise InputError(f"{given.source}: found 0 sites, expected at least 1")
    codes = np.stack(rows)
    codes.setflags(write=False)
    return codes


def _encode_row(given: _Sequences, taxon: int) -> CodeArray:
    sequence, states = given.sequences[taxon], given.states
    row = states.code_of[np.frombuffer(sequence, dtype=np.uint8)]
    illegal = np.flatnonzero(row == ILLEGAL_CODE)
    if len(illegal):
        site = int(illegal[0])
        raise InputError(
            f"{given.source}: {given.describe_taxon(taxon)}, site {site + 1}: found {_show_character(sequence, site)}, "
            f"expected {states.name}, that is one of {states.characters}"
        )
    return row


def _show_character(sequence: bytes, site: int) -> str:
    """The character that starts at byte `site`, printable."""
    character = sequence[site : site + 4].decode("utf-8", "surrogateescape")[0]  # UTF-8 takes at most 4 bytes
    return f"byte 0x{sequence[site]:02x}" if "\ud800" <= character <= "\udfff" else repr(character)


def _first_identical(codes: CodeArray) -> list[int]:
    """For each taxon the first taxon with the same codes."""
    first: dict[bytes, int] = {}
    return [first.setdefault(row.tobytes(), taxon) for taxon, row in enumerate(codes)]


def _doubtful_warnings(given: _Sequences) -> list[str]:
    """At most one line on characters that are read as undetermined but may have been meant otherwise."""
    is_doubtful = np.zeros(256, dtype=bool)
    is_doubtful[list(given.states.doubtful.encode("ascii"))] = True
    count, first = 0, ""
    for taxon, sequence in enumerate(given.sequences):
        sites = np.flatnonzero(is_doubtful[np.frombuffer(sequence, dtype=np.uint8)])
        if len(sites) and not first:
            first = f"{_show_character(sequence, sites[0])} in {given.describe_taxon(taxon)}, site {sites[0] + 1}"
        count += len(sites)
    if not count:
        return []
    return [f"{given.source}: {_count(count, 'character')} of '{given.states.doubtful}' read as a gap, first {first}"]


def _data_warnings(alignment: Alignment) -> list[str]:
    """Lines on columns and taxa without data and on identical sequences."""
    warnings = []
    undetermined = alignment.codes == alignment.states.all_states_code
    n_empty_columns = int(undetermined.all(axis=0).sum())
    if n_empty_columns:
        warnings.append(f"{alignment.source}: {_count(n_empty_columns, 'column')} without data (only gaps)")
    empty_taxa = np.flatnonzero(undetermined.all(axis=1)).tolist()
    if empty_taxa:
        found = "1 taxon" if len(empty_taxa) == 1 else f"{len(empty_taxa)} taxa"
        warnings.append(f"{alignment.source}: {found} without data (only gaps): {_list_taxa(alignment, empty_taxa)}")
    groups = identical_groups(alignment)
    if groups:
        more = f" and {len(groups) - 1} more" if len(groups) > 1 else ""
        found = _count(len(groups), "group")
        first = _list_taxa(alignment, groups[0])
        warnings.append(f"{alignment.source}: {found} of identical sequences: ({first}){more}")
    return warnings


def _list_taxa(alignment: Alignment, taxa: Sequence[int]) -> str:
    """The names of `taxa`; beyond `_MAX_LISTED` only their number."""
    listed = ", ".join(show_name(alignment.names[taxon]) for taxon in taxa[:_MAX_LISTED])
    return listed if len(taxa) <= _MAX_LISTED else f"{listed} and {len(taxa) - _MAX_LISTED} more"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
