"""Schemes that depend on the data: a part for each kind of data, or for each number of states."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from plltool.alignment.alignment import Alignment, Sequences
from plltool.alignment.multistate import MIN_STATES, count_states
from plltool.arrays import IndexArray
from plltool.errors import InputError, show_name
from plltool.model.scheme import PartSpec, Scheme, SiteRange, assign_sites, to_ranges


def split_by_states(given: Sequences | Alignment, scheme: Scheme) -> Scheme:
    """A scheme whose parts all have one kind of data and one number of states.

    A whole file that declares several kinds of data, without a model, becomes a part for each kind. A part with a model
    such as ``MULTI*_MK`` becomes a part for each number of states: that of a column is one more than its largest symbol
    says, as in MrBayes' standard data.

    Raises InputError as `cut_alignment` does for columns, and if two parts would get the same name.
    """
    if isinstance(given, Sequences) and given.kinds and scheme == (PartSpec(None),):
        return tuple(_declared_parts(given))
    if not any(spec.model and spec.model.splits_columns for spec in scheme):
        return scheme
    sites = assign_sites(scheme, given.n_sites, given.source)
    split: list[PartSpec] = []
    for spec, own in zip(scheme, sites, strict=True):
        split += _parts_of(given, spec, own) if spec.model and spec.model.splits_columns else [spec]
    names = [spec.name for spec in split]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"{given.source}: found two partitions named {show_name(twice)}, expected different names")
    return tuple(split)


def _declared_parts(given: Sequences) -> Iterator[PartSpec]:
    """A part for each kind of data that a file declares."""
    words = [kind.word for kind in given.kinds]
    for number, kind in enumerate(given.kinds):
        repeated = words[:number].count(kind.word)
        name = f"{kind.word}_{repeated + 1}" if repeated else kind.word
        yield PartSpec(None, name, (SiteRange(kind.first, kind.last),), given.source)


def _parts_of(given: Sequences | Alignment, spec: PartSpec, sites: IndexArray) -> Iterator[PartSpec]:
    """The parts that the columns of one part make, fewest states first."""
    assert spec.model is not None
    numbers = column_states(given, sites)
    for n_states in np.unique(numbers).tolist():
        model = spec.model.with_states(n_states)
        name = f"{spec.name}_{n_states}" if spec.name else f"states_{n_states}"
        ranges = tuple(to_ranges(sites[numbers == n_states]))
        yield replace(spec, model=model, name=name, ranges=ranges, where=spec.where or given.source)


def column_states(given: Sequences | Alignment, sites: IndexArray) -> IndexArray:
    """The number of states of each of some columns: (n,)."""
    if isinstance(given, Sequences):
        rows = np.stack([np.frombuffer(row, dtype=np.uint8) for row in given.columns(sites)])
        numbers = np.array([count_states([bytes([byte])], given.sets) for byte in range(256)])
    else:
        rows = given.codes[:, sites]
        determined = given.states.state_sets & ~given.states.state_sets.all(axis=1, keepdims=True)
        highest = given.states.n_states - determined[:, ::-1].argmax(axis=1)
        numbers = np.where(determined.any(axis=1), np.maximum(highest, MIN_STATES), MIN_STATES)
    return np.asarray(numbers[rows].max(axis=0))
