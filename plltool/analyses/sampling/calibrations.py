"""Calibrations: what is known of the heights of clades, which are years before the latest taxon."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, TypeAlias

from plltool.analyses.sampling.priors import MOST_IN_PRIOR, Normal, NumberPrior, Uniform, near, parse_prior
from plltool.analyses.sampling.settings import FORMS
from plltool.analyses.sampling.tree import ROOT, Topology, regraft
from plltool.errors import InputError, errors_at, list_names, show_name
from plltool.io.files import read_text, source_name
from plltool.io.table_reader import read_fields

CalibrationsLike: TypeAlias = str | PathLike[str] | Sequence[Mapping[str, object]]

COLUMNS = NAME, TAXA, LOWER, UPPER, PRIOR, OFFSET = "name", "taxa", "lower", "upper", "prior", "offset"
WHOLE = "root"  # in place of all taxa
MOST_OF_ROOM = 0.999  # below the node above, for heights at which chains begin


@dataclass(frozen=True)
class Calibration:
    """What is known of the height of a clade: bounds, and the prior of the height less an offset."""

    name: str  # nothing for the prior of the root under births and deaths
    split: int  # the clade, as `Topology.splits` has it
    prior: NumberPrior | None  # None for the same density between the bounds
    low: float = 0.0
    high: float = math.inf
    offset: float = 0.0

    @classmethod
    def of(cls, name: str, split: int, prior: NumberPrior | None, low: float, high: float, at: float) -> Calibration:
        """A calibration with bounds that are no wider than the prior."""
        if isinstance(prior, Uniform):
            low, high = max(low, at + prior.low), min(high, at + prior.high)
        return cls(name, split, prior, low if isinstance(prior, Normal) else max(low, at), high, at)

    def log_density(self, height: float) -> float:
        """The logarithm of the density, which bounds cut without making up for it."""
        if not self.low < height < self.high:
            return -math.inf
        if self.prior is None:
            return -math.log(self.high - self.low) if math.isfinite(self.high) else 0.0
        return self.prior.log_density(height - self.offset)

    def slope(self, height: float) -> float:
        """That of the logarithm of the density, between the bounds."""
        return 0.0 if self.prior is None else self.prior.slope(height - self.offset)

    @property
    def middle(self) -> float:
        """A likely height."""
        found = math.inf if self.prior is None else self.offset + self.prior.middle
        if self.low < found < self.high:
            return found
        return (self.low + self.high) / 2.0 if math.isfinite(self.high) else 1.1 * self.low

    def __str__(self) -> str:
        shown = "uniform" if self.prior is None else f"{self.prior}{f' + {self.offset!r}' if self.offset else ''}"
        return f"{shown} from {self.low!r} to {self.high!r}"


def read_calibrations(given: CalibrationsLike, names: Sequence[str], youngest: Sequence[float]) -> list[Calibration]:
    """The calibrations of a table, or of rows that are dictionaries with its columns.

    names, youngest : of the taxa, with the least heights that they may have

    Raises InputError for a row that cannot be used, for clades that overlap, and for bounds that contradict each other.
    """
    if isinstance(given, str | PathLike):
        source = source_name(given)
        header, lines = read_fields(read_text(given), source)
        rows: list[tuple[str, Mapping[str, object]]]
        rows = [(f"{source}: line {line}", dict(zip(header, fields, strict=True))) for line, fields in lines]
    else:
        rows = [(f"calibrations: row {number}", row) for number, row in enumerate(given, start=1)]
    found: list[tuple[str, Calibration]] = []
    for where, row in rows:
        with errors_at(where):
            texts = {key: str(value).strip() for key, value in row.items() if value is not None}
            own = _read_row(texts, names, youngest)
            for other, one in found:
                _compare(own, one, other)
        found.append((where, own))
    return [own for _, own in found]


def _read_row(row: dict[str, str], names: Sequence[str], youngest: Sequence[float]) -> Calibration:
    unknown = [key for key in row if key not in COLUMNS]
    if unknown or TAXA not in row:
        raise InputError(f"found columns {list_names(list(row))}, expected {TAXA} and some of {', '.join(COLUMNS)}")
    number_of = {name: number for number, name in enumerate(names)}
    words = list(names) if row[TAXA] == WHOLE else re.split(r"\s*[,;]\s*|\s+", row[TAXA])
    missing = [word for word in words if word not in number_of]
    if missing:
        raise InputError(f"found {list_names(missing)}, expected taxa of the alignment, or {WHOLE}")
    taxa = {number_of[word] for word in words}
    if len(taxa) < 2:
        raise InputError(f"found the taxon {show_name(words[0])} alone, expected at least two")
    given = {key: row[key] for key in (LOWER, UPPER, OFFSET) if row.get(key)}
    values = {LOWER: 0.0, UPPER: math.inf, OFFSET: 0.0}
    for key, text in given.items():
        try:
            values[key] = float(text)
        except ValueError:
            values[key] = math.nan
        if not 0.0 <= values[key] <= MOST_IN_PRIOR:
            raise InputError(f"{key}: found {show_name(text)}, expected a number from 0 to {MOST_IN_PRIOR:g}")
    name = row.get(NAME) or f"{words[0]}.{words[-1]}"
    prior: Any = parse_prior(row[PRIOR], f"the age of {name}", FORMS["root"]) if row.get(PRIOR) else None
    if prior is None and (OFFSET in given or not given):
        raise InputError(f"{name}: found no {PRIOR}, expected one, or the bounds {LOWER} or {UPPER} alone")
    own = Calibration.of(name, sum(2 << taxon for taxon in taxa), prior, values[LOWER], values[UPPER], values[OFFSET])
    oldest = max(youngest[taxon] for taxon in taxa)
    if not max(own.low, oldest) < own.high:
        what = f"its oldest taxon is {oldest:g}" if oldest >= own.low else f"the lower bound is {own.low:g}"
        raise InputError(f"{name}: found an age of at most {own.high:g} years, but {what} years old")
    return own


def _compare(own: Calibration, other: Calibration, where: str) -> None:
    """Raise InputError if two clades cannot both be in a tree, with these heights."""
    common = own.split & other.split
    if own.name == other.name or own.split == other.split:
        raise InputError(f"{own.name}: is on {where}, too")
    if common not in (0, own.split, other.split):
        raise InputError(f"{own.name}: found some taxa of {other.name} but not all, expected all or none ({where})")
    inner, outer = (own, other) if common == own.split else (other, own)
    if common and outer.high <= inner.low:
        raise InputError(f"{inner.name}: found an age of at least {inner.low:g}, but {outer.name} is younger ({where})")


def gather(rooted: Topology, calibrations: Sequence[Calibration]) -> Topology:
    """The tree with all clades: what has taxa of one alone comes together, in the smallest ones first."""
    for clade in sorted((own.split for own in calibrations), key=int.bit_count):
        while True:
            splits, parent = rooted.splits(), rooted.parent
            is_within = [bool(split) and split & clade == split for split in splits]
            tops = [node for node in range(1, len(splits)) if is_within[node] and not is_within[parent[node]]]
            if len(tops) == 1:
                break
            rooted = regraft(rooted, tops[1], tops[0])
    return rooted


def fit_heights(calibrations: Sequence[Calibration], rooted: Topology, heights: Sequence[float]) -> list[float]:
    """Heights (n_nodes,) near some that are legal, within all bounds; the calibrated clades are there."""
    own_of = {own.split: own for own in calibrations}
    splits, least, found, chain = rooted.splits(), list(heights), list(heights), [0] * rooted.n_nodes
    order = rooted.postorder()
    for node in order:
        below = rooted.left[node], rooted.right[node]
        own = own_of.get(splits[node])
        least[node] = max(own.low if own else 0.0, *(least[child] for child in below))
        chain[node] = 1 + max(chain[child] for child in below)  # of inner nodes down from it
    for node in reversed(order):
        own = own_of.get(splits[node])
        room = found[rooted.parent[node]] if rooted.parent[node] != ROOT else math.inf
        if own is not None:
            room, found[node] = min(room, own.high), near(own, found[node])
        low = least[node]
        if math.isinf(room):
            found[node] = max(found[node], 1.1 * low)
        elif not low < found[node] < low + MOST_OF_ROOM * (room - low):
            found[node] = low + (room - low) * chain[node] / (chain[node] + 1.0)
    return found
