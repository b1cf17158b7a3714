"""What is in an alignment: gaps, identical sequences, states that occur, and what users should know about them."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b, sha256

import numpy as np

from plltool.alignment.alignment import MIN_TAXA, Alignment
from plltool.alignment.states import CodeArray, GradedSpace
from plltool.arrays import BoolArray
from plltool.errors import InputError, show_name

_MAX_LISTED = 5  # names in one message
_COLUMN_CHUNK = 512  # columns that are looked at together
_DIGEST_LETTERS = 16


def gap_share(alignment: Alignment) -> float:
    """The share of undetermined cells, from 0 to 1."""
    return float(alignment.undetermined_counts.sum() / (alignment.n_taxa * alignment.count_sites()))


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


def first_identical(blocks: Sequence[Alignment]) -> list[int]:
    """For each taxon the first one with the same codes in all `blocks`, which have the same taxa."""
    first: dict[bytes, int] = {}
    rows = zip(*(block.codes for block in blocks), strict=True)
    return [first.setdefault(_digest(row), taxon) for taxon, row in enumerate(rows)]


def digest_data(blocks: Sequence[Alignment]) -> str:
    """A digest of the names and characters of all blocks, which have the same taxa."""
    digest = sha256("\0".join(blocks[0].names).encode("utf-8", "surrogateescape"))
    for block in blocks:
        digest.update(block.states.name.encode())
        digest.update(np.ascontiguousarray(block.codes).data)
        digest.update(b"" if block.weights is None else block.weights.tobytes())
        digest.update(block.states.likelihoods.tobytes() if isinstance(block.states, GradedSpace) else b"")
    return digest.hexdigest()[:_DIGEST_LETTERS]


def _digest(arrays: Sequence[CodeArray]) -> bytes:
    """32 bytes that differ between arrays that differ, beyond any doubt that matters."""
    digest = blake2b(digest_size=32)
    for array in arrays:
        digest.update(np.ascontiguousarray(array).data)
    return digest.digest()


def data_warnings(blocks: Sequence[Alignment]) -> list[str]:
    """Lines on columns and taxa without data, identical sequences and a lack of information in an alignment.

    `blocks` are the parts of the alignment.
    """
    warnings = []
    source, names = blocks[0].source, blocks[0].names
    n_empty_columns = sum(map(_count_empty_columns, blocks))
    if n_empty_columns:
        warnings.append(f"{source}: {count_noun(n_empty_columns, 'column')} without data (only gaps)")
    is_empty = np.all([block.undetermined_counts == block.count_sites() for block in blocks], axis=0)
    empty_taxa = np.flatnonzero(is_empty).tolist()
    if empty_taxa:
        found = "1 taxon" if len(empty_taxa) == 1 else f"{len(empty_taxa)} taxa"
        warnings.append(f"{source}: {found} without data (only gaps): {_list_taxa(names, empty_taxa)}")
    groups = identical_groups(blocks)
    if groups:
        more = f" and {len(groups) - 1} more" if len(groups) > 1 else ""
        found = count_noun(len(groups), "group")
        warnings.append(f"{source}: {found} of identical sequences: ({_list_taxa(names, groups[0])}){more}")
    if len(names) == MIN_TAXA:
        warnings.append(f"{source}: {MIN_TAXA} taxa have only one topology")
    elif not any(map(has_informative_site, blocks)):
        warnings.append(f"{source}: no site is parsimony-informative, so the topology is practically arbitrary")
    return warnings


def _count_empty_columns(block: Alignment) -> int:
    """The number of columns in which nothing is known about any taxon."""
    empty = np.ones(block.n_sites, dtype=bool)
    for row in block.called.codes:
        np.logical_and(empty, row == block.states.all_states_code, out=empty)
        if not empty.any():
            break
    return int(empty.sum())


def refuse_no_data(blocks: Sequence[Alignment]) -> None:
    """Raise InputError if nothing is known at any site of any part of an alignment."""
    if all(gap_share(block) == 1.0 for block in blocks):
        found = "found nothing but gaps and undetermined characters"
        raise InputError(f"{blocks[0].source}: {found}, expected {blocks[0].states.name} data")


def has_informative_site(block: Alignment) -> bool:
    """Whether a site has two states, each in at least two taxa that cannot have the other one.

    Without ambiguous cells this is what makes a site parsimony-informative; with them it is necessary, not sufficient.
    """
    block = block.called
    occurring = np.flatnonzero(block.code_counts.any(axis=0))
    place_of = np.zeros(block.states.n_codes, dtype=np.intp)
    place_of[occurring] = np.arange(len(occurring))
    sets = block.states.state_sets[occurring]
    n_codes, n_states = sets.shape
    # (n_codes, n_states ** 2): whether a code allows one state but not another one
    contrasts = (sets[:, :, None] & ~sets[:, None, :]).reshape(n_codes, -1).astype(np.float64)
    for start in range(0, block.n_sites, _COLUMN_CHUNK):
        codes = place_of[block.codes[:, start : start + _COLUMN_CHUNK]]
        n_columns = codes.shape[1]
        places = codes + n_codes * np.arange(n_columns)
        counts = np.bincount(places.ravel(), minlength=n_codes * n_columns).reshape(n_columns, n_codes)
        repeated = (counts @ contrasts >= 2).reshape(n_columns, n_states, n_states)
        if (repeated & repeated.transpose(0, 2, 1)).any():
            return True
    return False


def find_states(block: Alignment) -> tuple[str, ...]:
    """The names of the states that occur, cells about which nothing is known left out."""
    occurs = block.code_counts.sum(axis=0) > 0
    occurs[block.states.all_states_code] = False
    found = block.called.states.state_sets[occurs].any(axis=0)
    return tuple(np.array(block.states.symbols)[found].tolist())


def _list_taxa(names: Sequence[str], taxa: Sequence[int]) -> str:
    """The names of `taxa`; beyond `_MAX_LISTED` only their number."""
    listed = ", ".join(show_name(names[taxon]) for taxon in taxa[:_MAX_LISTED])
    return listed if len(taxa) <= _MAX_LISTED else f"{listed} and {len(taxa) - _MAX_LISTED} more"


def count_noun(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
