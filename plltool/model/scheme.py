"""How users divide an alignment into parts: columns, models, and whether the columns fit an alignment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

import numpy as np

from plltool.alignment.words import DOUBLET
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
    """A part as the user describes it.

    Attributes
    ----------
    model : None for the default model of its data
    name : unique among the parts; empty for the whole alignment without a name
    ranges : its columns
    where : the file and line of the description, for messages
    files : names of the alignment files that the columns are those of, where they are named
    n_sites : the number of columns that the alignment must have, where they are those of a structure; else None
    """

    model: ModelSpec | None
    name: str = ""
    ranges: tuple[SiteRange, ...] = ALL_SITES
    where: str = ""
    files: tuple[str, ...] = ()
    n_sites: int | None = None


Scheme = tuple[PartSpec, ...]


def assign_sites(scheme: Scheme, n_sites: int, source: str) -> list[IndexArray]:
    """The columns of each part, from 0, ascending, or in pairs as they are given; errors as in `cut_alignment`."""
    owner = np.full(n_sites, -1)
    in_pairs: dict[int, IndexArray] = {}
    for number, spec in enumerate(scheme):
        what = f"{spec.where}: partition {show_name(spec.name)}"
        if not spec.ranges:
            raise InputError(f"{what}: found no columns, expected at least one")
        if spec.n_sites not in (None, n_sites):
            raise InputError(f"{what}: found a structure of {spec.n_sites} columns, expected {n_sites} as in {source}")
        paired = _is_paired(spec, source)
        for some in spec.ranges:
            if some == REMAINDER:
                continue
            last = n_sites if some.stop is None else some.stop
            if not 1 <= some.start <= last <= n_sites:
                raise InputError(
                    f"{what}: found columns {some}, expected columns within 1-{n_sites}, the columns of {source}"
                )
            columns = some.columns(n_sites)
            taken = columns[owner[columns] >= 0]
            if len(taken):
                other = show_name(scheme[owner[taken[0]]].name)
                raise InputError(f"{what}: column {taken[0] + 1} is already in partition {other}")
            owner[columns] = number
        if paired:
            in_pairs[number] = np.concatenate([some.columns(n_sites) for some in spec.ranges])
    for number in [number for number, spec in enumerate(scheme) if REMAINDER in spec.ranges]:
        owner[owner < 0] = number
    for number, spec in enumerate(scheme):
        if not np.any(owner == number):
            what = f"{spec.where}: partition {show_name(spec.name)}"
            raise InputError(f"{what}: found no columns, expected at least one")
    return [in_pairs.get(number, np.flatnonzero(owner == number)) for number in range(len(scheme))]


def to_ranges(sites: IndexArray) -> Iterator[SiteRange]:
    """Ascending columns, from 0, as ranges."""
    for run in np.split(sites, np.flatnonzero(np.diff(sites) > 1) + 1):
        yield SiteRange(int(run[0]) + 1, int(run[-1]) + 1)


def _is_paired(spec: PartSpec, source: str) -> bool:
    """Whether a part has pairs of columns; InputError unless all of them are pairs, and its model is for them."""
    is_pair = {isinstance(some, SitePair) for some in spec.ranges}
    of_pairs = spec.model is not None and spec.model.data == DOUBLET
    if is_pair == {of_pairs}:
        return of_pairs
    where = f"{spec.where}: partition {show_name(spec.name)}" if spec.name else source
    if of_pairs:
        hint = "pairs of columns in a partition file, such as 5:70 or pairs{FILE}"
        raise InputError(f"{where}: found single columns, expected {hint}, for model {show_name(str(spec.model))}")
    raise InputError(f"{where}: found pairs of columns, expected ranges, or a model of pairs such as S16")


def check_files(scheme: Scheme, source: str) -> None:
    """Raise InputError if a part names another alignment file than `source`; folders and ``.gz`` do not matter."""
    for spec in scheme:
        for file in spec.files:
            if PurePath(file).name.removesuffix(".gz") != PurePath(source).name.removesuffix(".gz"):
                found = f"{spec.where}: partition {show_name(spec.name)}: found columns of {show_name(file)}"
                hint = "remove the file name if they are the same"
                raise InputError(f"{found}, expected columns of the alignment, {source}; {hint}")
