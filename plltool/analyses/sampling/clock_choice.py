"""What is asked of a clock: dates, calibrations and priors by their names, from which a space of time trees is made."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from plltool.analyses.sampling.parameters import Parameter
from plltool.analyses.sampling.priors import MOST_IN_PRIOR, Normal, Uniform, parse_prior
from plltool.analyses.sampling.settings import FORMS, SHARES, ClockPriors
from plltool.analyses.sampling.time_state import CLOCK_RATE, SPREAD, Calibration, TimeNumber, TimeSpace
from plltool.analyses.sampling.tree_priors import parse_tree_prior
from plltool.constants import CLOCKS, RELAXED, TREE_PRIORS
from plltool.errors import InputError, check_one_of, errors_at, list_names, show_name
from plltool.io.files import FileName, read_text, source_name
from plltool.io.table_reader import DatesLike, SampleDate, match_dates, read_fields
from plltool.model.model import Model


@dataclass(frozen=True)
class ClockChoice:
    """The clock, and what is known of time."""

    clock: str
    dates: DatesLike | None
    calibrations: FileName | None
    tree_prior: str
    priors: ClockPriors

    def make_space(self, names: tuple[str, ...], models: Sequence[Model], parameters: Sequence[Parameter]) -> TimeSpace:
        """The space of time trees; InputError for dates, calibrations or priors that cannot be used."""
        dates = [SampleDate(0.0, 0.0)] * len(names) if self.dates is None else find_dates(self.dates, names)
        latest = max(own.last for own in dates)
        tips = tuple((latest - own.last, latest - own.first) for own in dates)
        distributions, is_relaxed = self.priors.parsed(), self.clock == RELAXED
        tree_prior = parse_tree_prior(self.tree_prior, max(most for _, most in tips))
        numbers = [TimeNumber(CLOCK_RATE, True, distributions["rate"])]
        if is_relaxed:
            numbers.append(TimeNumber(SPREAD, True, distributions["spread"]))
        for name, is_positive, kind in tree_prior.numbers:
            is_log_size = kind == "population" and not is_positive
            high = 1.0 if kind in SHARES else math.inf
            numbers.append(TimeNumber(name, is_positive, distributions.get(kind), is_log_size, high))
        calibrations = [] if self.calibrations is None else read_calibrations(self.calibrations, names, tips)
        if tree_prior.needs_root:
            whole = (2 << len(names)) - 2
            of_root = [own for own in calibrations if own.split == whole]
            if not of_root:
                calibrations.append(Calibration("", whole, distributions["root"]))
            elif of_root[0].prior is None and math.isinf(of_root[0].high):
                wanted = "expected an upper bound or a prior, or --prior-root and no calibration"
                raise InputError(f"{of_root[0].name}: found no prior of the root for {self.tree_prior}, {wanted}")
        of_models = names, tuple(models), tuple(parameters)
        return TimeSpace(*of_models, tips, latest, tuple(numbers), tree_prior, is_relaxed, tuple(calibrations))

    def used(self, space: TimeSpace) -> dict[str, str]:
        """The priors in use, by what they are of."""
        kinds = ["rate", *(["spread"] if space.is_relaxed else [])]
        kinds += [kind for _, _, kind in space.tree_prior.numbers if kind]
        kinds += ["root" for own in space.calibrations if not own.name]
        shown = {"rate": "clock rate", "spread": "clock spread", "grid_precision": "precision"}
        found = {"tree": self.tree_prior} | {shown.get(kind, kind): getattr(self.priors, kind) for kind in kinds}
        return found | {f"the age of {own.name}": str(own) for own in space.calibrations if own.name}

    def identity(self, space: TimeSpace) -> dict[str, Any]:
        """What a checkpoint recognises it by, besides the priors."""
        heights = [most if least == most else (least, most) for least, most in space.tips]
        named = {own.name: own.split for own in space.calibrations if own.name}
        return {"clock": self.clock, "heights of tips": heights, **({"clades": named} if named else {})}


def choose_clock(
    clock: str | None,
    dates: DatesLike | None,
    calibrations: FileName | None,
    tree_prior: str,
    priors: ClockPriors | None,
    outgroup: object,
) -> ClockChoice | None:
    """The clock, if there is one; InputError for a clock without dates and calibrations, and for what only it has."""
    priors, usual = (priors or ClockPriors()).canonical(), ClockPriors().canonical()
    if clock is None:
        wanted = f"without a clock, expected --clock {' or '.join(CLOCKS)}"
        given = {"dates": dates is not None, "calibrations": calibrations is not None, "clock priors": priors != usual}
        for name, is_there in given.items():
            if is_there:
                raise InputError(f"{name}: found them {wanted}")
        if tree_prior != TREE_PRIORS[0]:
            raise InputError(f"tree prior: found {show_name(tree_prior)} {wanted}")
        return None
    check_one_of("clock", clock, CLOCKS)
    if dates is None and calibrations is None:
        wanted = "expected a table of them (--dates or --calibrations)"
        raise InputError(f"clock {clock}: found neither dates of the taxa nor calibrations, {wanted}")
    if outgroup is not None:
        raise InputError(f"clock {clock}: found an outgroup, expected none: a clock finds the root")
    return ClockChoice(clock, dates, calibrations, tree_prior, priors)


def find_dates(dates: DatesLike, names: Sequence[str]) -> list[SampleDate]:
    """(n_taxa,) when each taxon was sampled; one without a known date between the first and the last of the others.

    Raises InputError for a taxon that is not there, and if all are unknown.
    """
    found, source, missing, _ = match_dates(dates, None, None, names)
    known = [date for date in found.values() if date is not None]
    if missing:
        wanted = "expected one of each taxon of the alignment, or ? if it is unknown"
        raise InputError(f"{source}: found no date of {list_names(missing)}, {wanted}")
    if not known:
        raise InputError(f"{source}: found only dates that are unknown, expected at least one that is known")
    unknown = SampleDate(min(own.first for own in known), max(own.last for own in known))
    return [found[name] or unknown for name in names]


COLUMNS = NAME, TAXA, LOWER, UPPER, PRIOR, OFFSET = "name", "taxa", "lower", "upper", "prior", "offset"
WHOLE = "root"  # in place of all taxa
Range: TypeAlias = tuple[float, float]


def read_calibrations(given: FileName, names: Sequence[str], tips: Sequence[Range]) -> list[Calibration]:
    """The calibrations of a table; `tips` has the least and the largest height that each taxon may have.

    Raises InputError for a row that cannot be used, for clades that overlap, and for bounds that contradict each other.
    """
    source = source_name(given)
    (_, header), *rows = read_fields(read_text(given), source)
    found: list[tuple[str, Calibration]] = []
    for line, fields in rows:
        where = f"{source}: line {line}"
        with errors_at(where):
            own = _read_row(dict(zip(header, fields, strict=True)), names, tips)
            for other, one in found:
                _compare(own, one, other)
        found.append((where, own))
    return [own for _, own in found]


def _read_row(row: dict[str, str], names: Sequence[str], tips: Sequence[Range]) -> Calibration:
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
    for key, text in given.items():
        if not re.fullmatch(r"\d+\.?\d*(e[+-]?\d+)?", text) or float(text) > MOST_IN_PRIOR:
            raise InputError(f"{key}: found {show_name(text)}, expected a number from 0 to {MOST_IN_PRIOR:g}")
    low, high, offset = (float(given.get(*pair)) for pair in ((LOWER, 0.0), (UPPER, math.inf), (OFFSET, 0.0)))
    name = row.get(NAME) or f"{words[0]}.{words[-1]}"
    prior: Any = parse_prior(row[PRIOR], f"the age of {name}", FORMS["root"]) if row.get(PRIOR) else None
    if prior is None and (OFFSET in given or not given):
        raise InputError(f"{name}: found no {PRIOR}, expected one, or the bounds {LOWER} or {UPPER} alone")
    low = low if isinstance(prior, Normal) else max(low, offset)
    if isinstance(prior, Uniform):
        low, high = max(low, offset + prior.low), min(high, offset + prior.high)
    own = Calibration(name, sum(2 << taxon for taxon in taxa), prior, low, high, offset)
    oldest = max(tips[taxon][0] for taxon in taxa)
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
