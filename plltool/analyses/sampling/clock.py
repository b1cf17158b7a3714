"""What a clock needs besides the data: the dates of the taxa, and the priors of the tree and of all numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from plltool.analyses.dating.dates import DatesLike, match_dates
from plltool.analyses.sampling.parameters import Parameter
from plltool.analyses.sampling.settings import ClockPriors
from plltool.analyses.sampling.time_state import CLOCK_RATE, SPREAD, TimeNumber, TimeSpace
from plltool.analyses.sampling.tree_priors import Coalescent, ConstantPopulation, ExponentialGrowth, Skygrid
from plltool.constants import CLOCKS, RELAXED, TREE_PRIORS
from plltool.errors import InputError, check_one_of, show_name
from plltool.io.newick import list_names
from plltool.model.model import Model
from plltool.run.rooting import OutgroupLike

GRID_SIZES, MOST_SIZES = 10, 1000  # of a skygrid
GRID_SPANS = 2.0  # its cutoff, times between the first and the last tip


@dataclass(frozen=True)
class ClockChoice:
    """The clock, and what is known of time."""

    clock: str
    dates: DatesLike
    tree_prior: str
    priors: ClockPriors

    def make_space(self, names: tuple[str, ...], models: Sequence[Model], parameters: Sequence[Parameter]) -> TimeSpace:
        """The space of time trees.

        Raises InputError if a taxon has no exact date, or a prior cannot be used.
        """
        years = exact_dates(self.dates, names)
        latest = max(years)
        heights = tuple(latest - year for year in years)
        distributions, is_relaxed = self.priors.parsed(), self.clock == RELAXED
        tree_prior = parse_tree_prior(self.tree_prior, max(heights))
        numbers = [TimeNumber(CLOCK_RATE, True, distributions["rate"])]
        if is_relaxed:
            numbers.append(TimeNumber(SPREAD, True, distributions["spread"]))
        for number, (name, is_positive) in enumerate(zip(tree_prior.names, tree_prior.positive, strict=True)):
            if name.startswith("logPopSize"):
                numbers.append(TimeNumber(name, False, None if number else distributions["population"], not number))
            else:
                numbers.append(TimeNumber(name, is_positive, distributions[KINDS[name]]))
        return TimeSpace(
            names, tuple(models), tuple(parameters), heights, latest, tuple(numbers), tree_prior, is_relaxed
        )

    @property
    def used(self) -> dict[str, str]:
        """The priors in use, by what they are of."""
        kinds = ["rate", *(["spread"] if self.clock == RELAXED else [])]
        name = self.tree_prior.partition("(")[0]
        kinds += ["population", *({"exponential": ["growth"], "skygrid": ["grid_precision"]}.get(name, []))]
        shown = {"rate": "clock rate", "spread": "clock spread", "grid_precision": "precision"}
        return {"tree": self.tree_prior} | {shown.get(kind, kind): getattr(self.priors, kind) for kind in kinds}


KINDS = {
    "popSize": "population",
    "growthRate": "growth",
    "precision": "grid_precision",
}  # of numbers, as priors name them


def choose_clock(
    clock: str | None,
    dates: DatesLike | None,
    tree_prior: str,
    priors: ClockPriors | None,
    outgroup: OutgroupLike | None,
) -> ClockChoice | None:
    """The clock, if there is one; InputError for a clock without dates, and for what only a clock has."""
    if clock is None:
        if dates is not None:
            raise InputError(f"dates: found them without a clock, expected --clock {' or '.join(CLOCKS)}")
        return None
    check_one_of("clock", clock, CLOCKS)
    if dates is None:
        raise InputError(f"clock {clock}: found no dates of the taxa, expected a table of them (--dates)")
    if outgroup is not None:
        raise InputError(f"clock {clock}: found an outgroup, expected none: a clock finds the root")
    return ClockChoice(clock, dates, tree_prior, (priors or ClockPriors()).canonical())


def exact_dates(dates: DatesLike, names: Sequence[str]) -> list[float]:
    """(n_taxa,) the date of each taxon, in years; InputError if one is not known exactly."""
    found, source, _ = match_dates(dates, None, None, names)
    missing = [name for name in names if found[name] is None]
    if missing:
        raise InputError(
            f"{source}: found no date of {list_names(missing)}, expected one of each taxon of the alignment"
        )
    years = []
    for name in names:
        date = found[name]
        assert date is not None, "all are known"
        if date.first != date.last:
            between = f"found a date between {date.first:.4f} and {date.last:.4f}"
            raise InputError(f"{source}: taxon {show_name(name)}: {between}, expected an exact one")
        years.append(date.first)
    return years


def parse_tree_prior(text: str, span: float) -> Coalescent:
    """The prior that a text names; the tips are from `span` years."""
    expected = f"{', '.join(TREE_PRIORS)} or skygrid(SIZES,YEARS)"
    match = re.fullmatch(r"(\w+)(?:\(\s*(\d+)\s*,\s*([0-9.eE+-]+)\s*\))?", text.strip())
    if match is None or match[1] not in TREE_PRIORS or (match[2] and match[1] != "skygrid"):
        raise InputError(f"tree prior: found {show_name(text)}, expected {expected}")
    if match[1] != "skygrid":
        return ConstantPopulation() if match[1] == "constant" else ExponentialGrowth()
    try:
        n_sizes, cutoff = (int(match[2]), float(match[3])) if match[2] else (GRID_SIZES, GRID_SPANS * span)
    except ValueError:
        raise InputError(f"tree prior: found {show_name(text)}, expected {expected}") from None
    if not (2 <= n_sizes <= MOST_SIZES and 0.0 < cutoff < 1e12):
        wanted = f"2 to {MOST_SIZES} sizes and a positive number of years, as in skygrid(20,50)"
        raise InputError(f"tree prior: found {n_sizes} sizes in {cutoff:g} years, expected {wanted}")
    return Skygrid(n_sizes, cutoff)
