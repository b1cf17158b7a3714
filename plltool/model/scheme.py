"""How users divide an alignment into parts: columns, models, and whether both fit the alignment."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import PurePath

import numpy as np

from plltool.alignment.alignment import Sequences
from plltool.alignment.spaces import DOUBLET
from plltool.alignment.states import count_states
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

    def columns(self, n_sites: int) -> IndexArray:
        """The columns, from 0, of an alignment with `n_sites`."""
        return np.arange(self.start - 1, self.stop or n_sites, self.stride)


@dataclass(frozen=True)
class SitePair(SiteRange):
    """Columns `start` and `stop`, from 1, which pair in a stem of RNA; `start` is the smaller one."""

    def __str__(self) -> str:
        return f"{self.start}:{self.stop}"

    def columns(self, n_sites: int) -> IndexArray:
        return np.array([self.start - 1, (self.stop or n_sites) - 1])


ALL_SITES = (SiteRange(1, None),)
REMAINDER = SiteRange(0, None, 0)  # stands for the columns that no part has


@dataclass(frozen=True)
class PartSpec:
    """A part as the user describes it."""

    model: ModelSpec | None  # None for the default model of its data
    name: str = ""  # unique among the parts; empty for the whole alignment without a name
    ranges: tuple[SiteRange, ...] = ALL_SITES  # its columns
    where: str = ""  # the file and line of the description, for messages
    files: tuple[str, ...] = ()  # names of the alignment files that the columns are those of, where they are named
    # the number of columns that the alignment must have, where they are those of a structure; else None
    n_sites: int | None = None
    data_word: str = ""  # the kind of data that the columns are said to be, as partition files call it, or empty
    tree_length: float | None = None  # the length of its tree, where a file gives it

    def shown(self, source: str = "") -> str:
        """Where it is described, and its name, for messages; `source` for the whole alignment without a name."""
        return source if source and not self.name else f"{self.where}: partition {show_name(self.name)}"


Scheme = tuple[PartSpec, ...]


def assign_sites(scheme: Scheme, n_sites: int, source: str) -> list[IndexArray]:
    """The columns of each part, from 0, ascending, or in pairs as they are given."""
    owner = np.full(n_sites, -1)
    in_pairs: dict[int, IndexArray] = {}
    for number, spec in enumerate(scheme):
        what = spec.shown()
        if not spec.ranges:
            raise InputError(f"{what}: found no columns, expected at least one")
        if spec.n_sites not in (None, n_sites):
            raise InputError(f"{what}: found a structure of {spec.n_sites} columns, expected {n_sites} as in {source}")
        of_pairs = spec.model is not None and spec.model.data == DOUBLET
        if any(isinstance(some, SitePair) != of_pairs for some in spec.ranges):
            found = "found pairs of columns, expected ranges, or a model of pairs such as S16"
            if of_pairs:
                hint = "pairs of columns in a partition file, such as 5:70 or pairs{FILE}"
                found = f"found single columns, expected {hint}, for model {show_name(str(spec.model))}"
            raise InputError(f"{spec.shown(source)}: {found}")
        for some in spec.ranges:
            if some == REMAINDER:
                continue
            last = n_sites if some.stop is None else some.stop
            if not 1 <= some.start <= last <= n_sites:
                expected = f"columns within 1-{n_sites}, the columns of {source}"
                raise InputError(f"{what}: found columns {some}, expected {expected}")
            columns = some.columns(n_sites)
            taken = columns[owner[columns] >= 0]
            if len(taken):
                other = show_name(scheme[owner[taken[0]]].name)
                raise InputError(f"{what}: column {taken[0] + 1} is already in partition {other}")
            owner[columns] = number
        if of_pairs:
            in_pairs[number] = np.concatenate([some.columns(n_sites) for some in spec.ranges])
    for number, spec in enumerate(scheme):
        if REMAINDER in spec.ranges:
            owner[owner < 0] = number
    for number, spec in enumerate(scheme):
        if not np.any(owner == number):
            raise InputError(f"{spec.shown()}: found no columns, expected at least one")
    return [in_pairs.get(number, np.flatnonzero(owner == number)) for number in range(len(scheme))]


def to_ranges(sites: IndexArray) -> Iterator[SiteRange]:
    """Ascending columns, from 0, as ranges."""
    for run in np.split(sites, np.flatnonzero(np.diff(sites) > 1) + 1):
        yield SiteRange(int(run[0]) + 1, int(run[-1]) + 1)


def check_files(scheme: Scheme, source: str) -> None:
    """Raise InputError if a part names another alignment file than `source`; folders and ``.gz`` do not matter."""
    for spec in scheme:
        for file in spec.files:
            if PurePath(file).name.removesuffix(".gz") != PurePath(source).name.removesuffix(".gz"):
                expected = f"expected columns of the alignment, {source}; remove the file name if they are the same"
                raise InputError(f"{spec.shown()}: found columns of {show_name(file)}, {expected}")


def split_by_states(given: Sequences, scheme: Scheme) -> Scheme:
    """A scheme whose parts all have one kind of data and one number of states.

    A whole file that declares several kinds of data, without a model, becomes a part for each kind. A part with a model
    such as ``MULTI*_MK`` becomes a part for each number of states: that of a column is one more than its largest symbol
    says, as in MrBayes' standard data.
    """
    if given.kinds and scheme == (PartSpec(None),):
        words = [kind.word for kind in given.kinds]
        repeated = [words[:number].count(word) for number, word in enumerate(words)]
        names = [f"{word}_{before + 1}" if before else word for word, before in zip(words, repeated, strict=True)]
        ranges = [(SiteRange(kind.first, kind.last),) for kind in given.kinds]
        return tuple(PartSpec(None, *own, given.source) for own in zip(names, ranges, strict=True))
    if not any(spec.model and spec.model.splits_columns for spec in scheme):
        return scheme
    sites = assign_sites(scheme, given.n_sites, given.source)
    split: list[PartSpec] = []
    for spec, own in zip(scheme, sites, strict=True):
        if not (spec.model and spec.model.splits_columns):
            split.append(spec)
            continue
        rows = np.stack([np.frombuffer(row, dtype=np.uint8) for row in given.columns(own)])
        numbers = np.array([count_states([bytes([byte])], given.sets) for byte in range(256)])[rows].max(axis=0)
        for n_states in np.unique(numbers).tolist():
            model = spec.model.with_states(n_states)
            name = f"{spec.name}_{n_states}" if spec.name else f"states_{n_states}"
            ranges_of = tuple(to_ranges(own[numbers == n_states]))
            split.append(replace(spec, model=model, name=name, ranges=ranges_of, where=spec.where or given.source))
    names = [spec.name for spec in split]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"{given.source}: found two partitions named {show_name(twice)}, expected different names")
    return tuple(split)
