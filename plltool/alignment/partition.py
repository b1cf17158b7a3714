"""Parts of an alignment: which columns share a model, as somebody wrote it down and as columns of an alignment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from plltool.alignment.alignment import MIN_TAXA, Alignment, Sequences, data_warnings, encode, first_identical
from plltool.alignment.states import SPACES, StateSpace, detect_states
from plltool.arrays import IndexArray
from plltool.errors import InputError, show_name
from plltool.model.spec import ModelSpec


@dataclass(frozen=True)
class SiteRange:
    """Columns `start`, `start` + `stride`, ... up to `stop`, from 1; None is the last column of the alignment."""

    start: int
    stop: int | None
    stride: int = 1

    def __str__(self) -> str:
        text = str(self.start) if self.stop == self.start else f"{self.start}-{self.stop or '.'}"
        return text if self.stride == 1 else rf"{text}\{self.stride}"


ALL_SITES = (SiteRange(1, None),)


@dataclass(frozen=True)
class PartSpec:
    """What a user says of a part.

    Attributes
    ----------
    model : None for the usual one of its data
    name : unique among the parts; empty if it is the whole alignment, and nobody gave it a name
    ranges : its columns
    where : the file and line that say so, for messages
    """

    model: ModelSpec | None
    name: str = ""
    ranges: tuple[SiteRange, ...] = ALL_SITES
    where: str = ""


Scheme = tuple[PartSpec, ...]


@dataclass(frozen=True, eq=False)
class Part:
    """Columns of an alignment that share a model.

    Attributes
    ----------
    name : see `PartSpec`
    ranges : the columns as text, such as ``1-100, 200-300\\3``
    sites : (n,) the columns, from 0
    alignment : of these columns only
    """

    name: str
    ranges: str
    sites: IndexArray
    alignment: Alignment


@dataclass(frozen=True, eq=False)
class Dataset:
    """An alignment cut into parts; one part if nobody asked for more.

    Attributes
    ----------
    names : taxon names, the same in every part
    source : the file, for messages
    n_sites : of the whole alignment, columns without a part included
    parts : in the order in which they were written down
    warnings : what a user should know of the data, one line each
    """

    names: tuple[str, ...]
    source: str
    n_sites: int
    parts: tuple[Part, ...]
    warnings: tuple[str, ...]

    @property
    def n_taxa(self) -> int:
        return len(self.names)

    @property
    def alignments(self) -> list[Alignment]:
        return [part.alignment for part in self.parts]


def cut_alignment(given: Sequences | Alignment, scheme: Scheme) -> Dataset:
    """The parts of an alignment.

    Raises
    ------
    InputError
        If a part has no columns, or some that are not there or that an earlier part has; if the data are not of the
        kind that a part's model is for.
    """
    sites = assign_sites(scheme, given.n_sites, given.source)
    if scheme == (PartSpec(scheme[0].model),):
        blocks = [_whole(given, scheme[0].model)]
        warnings: list[str] = []
    else:
        blocks = [_encode_part(given, spec, own) for spec, own in zip(scheme, sites, strict=True)]
        warnings = [*_unassigned_warnings(sites, given), *_kind_warnings(given, scheme, sites)]
        warnings += _empty_warnings(scheme, blocks)
    ranges = [", ".join(map(str, spec.ranges)).replace(".", str(given.n_sites)) for spec in scheme]
    columns = zip(scheme, ranges, sites, blocks, strict=True)
    parts = tuple(Part(spec.name, text, own, block) for spec, text, own, block in columns)
    if isinstance(given, Alignment):
        warnings += given.warnings
    else:
        warnings += [line for block in blocks for line in block.warnings] + data_warnings(blocks)
    return Dataset(given.names, given.source, given.n_sites, parts, tuple(warnings))


def assign_sites(scheme: Scheme, n_sites: int, source: str) -> list[IndexArray]:
    """The columns of each part, ascending, from 0; errors as in `cut_alignment`."""
    owner = np.full(n_sites, -1)
    found = []
    for number, spec in enumerate(scheme):
        what = f"{spec.where}: part {show_name(spec.name)}"
        for some in spec.ranges:
            last = n_sites if some.stop is None else some.stop
            if not 1 <= some.start <= last <= n_sites:
                raise InputError(f"{what}: found columns {some}, expected some of 1-{n_sites}, those of {source}")
            columns = np.arange(some.start - 1, last, some.stride)
            taken = columns[owner[columns] >= 0]
            if len(taken):
                other = show_name(scheme[owner[taken[0]]].name)
                raise InputError(f"{what}: found column {taken[0] + 1}, expected none that part {other} has already")
            owner[columns] = number
        found.append(np.flatnonzero(owner == number))
        if not len(found[-1]):
            raise InputError(f"{what}: found no columns, expected at least one")
    return found


def without_duplicates(data: Dataset, places: Sequence[int] | None = None) -> tuple[Dataset, list[list[int]]]:
    """Keep one taxon, the first, of each group of taxa whose sequences are the same in all parts.

    If fewer than `MIN_TAXA` would be left, the first duplicates are kept as well until there are `MIN_TAXA`.

    Parameters
    ----------
    places : (n_taxa,) where a constraint wants each taxon, negative where it does not care; of a group the first taxon
        of each place is kept, if there is one

    Returns
    -------
    reduced : Dataset
        The kept taxa in their old order.
    groups : list of list of int
        ``groups[i]`` holds the taxa of `data` that taxon i of `reduced` stands for, itself first; every taxon of
        `data` is in one group.
    """
    first_of = first_identical(data.alignments)
    if places is not None:
        first_of = _first_at_place(first_of, places)
    duplicates = [taxon for taxon, first in enumerate(first_of) if first != taxon]
    n_distinct = data.n_taxa - len(duplicates)
    dropped = set(duplicates[max(0, MIN_TAXA - n_distinct) :])
    members = {taxon: [taxon] for taxon in range(data.n_taxa) if taxon not in dropped}
    for taxon in sorted(dropped):
        members[first_of[taxon]].append(taxon)
    kept = list(members)
    names = tuple(data.names[taxon] for taxon in kept)
    parts = []
    for part in data.parts:
        codes = part.alignment.codes[kept]
        codes.setflags(write=False)
        parts.append(replace(part, alignment=replace(part.alignment, names=names, codes=codes)))
    return replace(data, names=names, parts=tuple(parts)), list(members.values())


def _first_at_place(first_of: Sequence[int], places: Sequence[int]) -> list[int]:
    """For each taxon the one that stands for it: of its place, or without one the first that has a place, or the first.

    Both arguments (n_taxa,); ``first_of`` has the first taxon with the same sequence.
    """
    placed: dict[tuple[int, int], int] = {}
    any_placed: dict[int, int] = {}
    for taxon, (first, place) in enumerate(zip(first_of, places, strict=True)):
        if place >= 0:
            placed.setdefault((first, place), taxon)
            any_placed.setdefault(first, taxon)
    return [
        placed[first, place] if place >= 0 else any_placed.get(first, first)
        for first, place in zip(first_of, places, strict=True)
    ]


def _whole(given: Sequences | Alignment, model: ModelSpec | None) -> Alignment:
    """The whole alignment; a model of other data is refused."""
    states = given.states if isinstance(given, Alignment) else given.states or detect_states(given.rows)
    if model is not None and model.data != states.name:
        raise InputError(
            f"{given.source}: found {states.name} data, expected {model.data} for model {str(model)!r}"
            " (--data-type says what the data are, if they were taken for something else)"
        )
    return given if isinstance(given, Alignment) else encode(given, states, np.arange(given.n_sites))


def _encode_part(given: Sequences | Alignment, spec: PartSpec, sites: IndexArray) -> Alignment:
    """A part as the kind of data that it is, see `_kind_of`."""
    if isinstance(given, Alignment):
        if spec.model is not None and spec.model.data != given.states.name:
            raise InputError(
                f"{spec.where}: part {show_name(spec.name)}: found {given.states.name} data, "
                f"expected {spec.model.data} for model {str(spec.model)!r}"
            )
        codes = np.ascontiguousarray(given.codes[:, sites])
        codes.setflags(write=False)
        return replace(given, codes=codes, warnings=())
    try:
        return encode(given, _kind_of(given, spec, sites), sites)
    except InputError as problem:
        raise InputError(f"{problem} (part {show_name(spec.name)})") from None


def _kind_of(given: Sequences, spec: PartSpec, sites: IndexArray) -> StateSpace:
    """What the model is for, or else what somebody said of the alignment, or else what the letters show."""
    if spec.model is not None:
        return SPACES[spec.model.data.lower()]
    return given.states if given.told and given.states else detect_states(given.columns(sites))


def _unassigned_warnings(sites: Sequence[IndexArray], given: Sequences | Alignment) -> list[str]:
    """At most one line on columns that no part has."""
    left = np.setdiff1d(np.arange(given.n_sites), np.concatenate(sites))
    if not len(left):
        return []
    columns = "1 column is" if len(left) == 1 else f"{len(left)} columns are"
    return [f"{given.source}: {columns} in no part and left out, first column {left[0] + 1}"]


def _kind_warnings(given: Sequences | Alignment, scheme: Scheme, sites: Sequence[IndexArray]) -> list[str]:
    """A line for each part of proteins whose letters look like DNA: they would pass for amino acids."""
    if isinstance(given, Alignment):
        return []
    return [
        f"{spec.where}: part {show_name(spec.name)}: found letters that look like DNA under model {str(spec.model)!r}"
        for spec, own in zip(scheme, sites, strict=True)
        if spec.model is not None and spec.model.data == "protein" and detect_states(given.columns(own)).name == "DNA"
    ]


def _empty_warnings(scheme: Scheme, blocks: Sequence[Alignment]) -> list[str]:
    """A line for each part of which nothing is known: its model and its lengths mean nothing."""
    return [
        f"{spec.where}: part {show_name(spec.name)}: found no data (only gaps)"
        for spec, block in zip(scheme, blocks, strict=True)
        if (block.codes == block.states.all_states_code).all()
    ]
