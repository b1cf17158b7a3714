"""What is asked of a clock: dates, calibrations and priors by their names, from which a space of time trees is made."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from plltool.analyses.dating.dates import DatesLike, match_dates
from plltool.analyses.sampling.calibrations import Calibration, CalibrationsLike, read_calibrations
from plltool.analyses.sampling.parameters import Parameter
from plltool.analyses.sampling.settings import SHARES, ClockPriors
from plltool.analyses.sampling.time_state import CLOCK_RATE, SPREAD, TimeNumber, TimeSpace
from plltool.analyses.sampling.tree_priors import parse_tree_prior
from plltool.constants import CLOCKS, RELAXED
from plltool.errors import InputError, check_one_of, list_names
from plltool.io.table_reader import SampleDate
from plltool.model.model import Model


@dataclass(frozen=True)
class ClockChoice:
    """The clock, and what is known of time."""

    clock: str
    dates: DatesLike | None
    calibrations: CalibrationsLike
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
        calibrations = read_calibrations(self.calibrations, names, [least for least, _ in tips])
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
        found: dict[str, Any] = {"clock": self.clock, "heights of tips": [most for _, most in space.tips]}
        if space.loose_tips:
            found["least heights of tips"] = [least for least, _ in space.tips]
        if named := {own.name: own.split for own in space.calibrations if own.name}:
            found["clades"] = named
        return found


def choose_clock(
    clock: str | None,
    dates: DatesLike | None,
    calibrations: CalibrationsLike | None,
    tree_prior: str,
    priors: ClockPriors | None,
    outgroup: object,
) -> ClockChoice | None:
    """The clock, if there is one; InputError for a clock without dates and calibrations, and for what only it has."""
    if clock is None:
        for name, given in (("dates", dates), ("calibrations", calibrations)):
            if given is not None:
                raise InputError(f"{name}: found them without a clock, expected --clock {' or '.join(CLOCKS)}")
        return None
    check_one_of("clock", clock, CLOCKS)
    if dates is None and calibrations is None:
        wanted = "expected a table of them (--dates or --calibrations)"
        raise InputError(f"clock {clock}: found neither dates of the taxa nor calibrations, {wanted}")
    if outgroup is not None:
        raise InputError(f"clock {clock}: found an outgroup, expected none: a clock finds the root")
    priors = (priors or ClockPriors()).canonical()
    return ClockChoice(clock, dates, () if calibrations is None else calibrations, tree_prior, priors)


def find_dates(dates: DatesLike, names: Sequence[str]) -> list[SampleDate]:
    """(n_taxa,) when each taxon was sampled; one without a known date between the first and the last of the others.

    Raises InputError for a taxon that is not there, and if all are unknown.
    """
    found, source, missing, _ = match_dates(dates, None, None, names)
    known = [date for date in found.values() if date is not None]
    if missing or not known:
        wanted = "expected one of each taxon of the alignment, or ? if it is unknown"
        raise InputError(f"{source}: found no date of {list_names(missing or list(names))}, {wanted}")
    unknown = SampleDate(min(own.first for own in known), max(own.last for own in known))
    return [found[name] or unknown for name in names]
