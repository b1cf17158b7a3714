"""What is asked of a sampler: priors by their names, numbers of runs and chains, and when it ends."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any, Self

from plltool import constants
from plltool.errors import InputError, check_least
from plltool.settings import make_plain

TUNING_GENERATIONS = 5_000  # in which steps are tuned, at most; common moves are then made some hundred times
AUTO = "auto"
SHARES = ("pinv", "turnover")  # priors with bounds from 0 to 1
FORMS = {  # the distributions that each prior may have, the one that messages name first in front
    "lengths": ("exponential", "gammadir"),
    "alpha": ("exponential", "uniform"),
    "growth": ("normal",),
    "grid_precision": ("gamma", "lognormal", "exponential"),
    "root": ("lognormal", "gamma", "exponential", "uniform", "normal"),
    **dict.fromkeys(SHARES, ("uniform",)),
    **dict.fromkeys(("rates", "frequencies", "weights", "free_rates", "part_rates"), ("dirichlet",)),
    **dict.fromkeys(("codon", "ratios"), ("lognormal", "gamma", "exponential")),
    **dict.fromkeys(("switching", "spread"), ("exponential", "lognormal", "gamma", "uniform")),
    **dict.fromkeys(
        ("rate", "population", "diversification", "sampling"), ("lognormal", "gamma", "exponential", "uniform")
    ),
}


@dataclass(frozen=True)
class PriorTexts:
    """Priors by their names, each as the text that names its distribution."""

    def parsed(self) -> dict[str, Any]:
        """The distributions, by the names of the fields; errors as in `parse_prior`."""
        from plltool.analyses.sampling.priors import parse_prior  # not above: help needs no numpy

        texts = {own.name: getattr(self, own.name) for own in fields(self)}
        found: dict[str, Any] = {name: parse_prior(text, name, FORMS[name]) for name, text in texts.items()}
        for name in set(SHARES) & found.keys():
            if found[name].log_density(1.0 + 1e-9) > -float("inf"):
                raise InputError(f"prior of {name}: found {texts[name]}, expected bounds from 0 to 1")
        return found

    def canonical(self) -> Self:
        """The same with each text as the program writes it."""
        return type(self)(**{name: str(prior) for name, prior in self.parsed().items()})


@dataclass(frozen=True)
class Priors(PriorTexts):
    """The priors, each as the text that names its distribution; by default MrBayes 3.2's.

    Topologies are equally likely.

    Attributes
    ----------
    lengths : of branch lengths: "exponential(10)" of each, or "gammadir(shape,rate,a,c)", the compound Dirichlet
        distribution of Zhang, Rannala & Yang 2012
    rates : of exchangeabilities, scaled to sum 1: "dirichlet(1)", or a value for each
    frequencies : of states: "dirichlet(1)", or a value for each
    alpha : of the shape of the gamma distribution of rates: "exponential(1)" or "uniform(low,high)"
    pinv : of the share of invariable sites: "uniform(0,1)"
    codon : of omega and of each kappa of a codon model: "lognormal(mean,sd)" of the logarithm, "gamma(shape,rate)" or
        "exponential(rate)"
    ratios : likewise of each other rate that is relative to another one, as in models of stems and mixtures
    switching : of both rates of a covarion model, "exponential(rate)", "uniform(low,high)" or as for codon
    weights : of classes and of free rates: "dirichlet(1)", or a value for each
    free_rates : of free rates, scaled to sum 1: "dirichlet(1)", or a value for each
    part_rates : of the shares that partitions have of all substitutions, with scaled lengths: likewise
    """

    lengths: str = "gammadir(1.0,0.1,1.0,1.0)"
    rates: str = "dirichlet(1.0)"
    frequencies: str = "dirichlet(1.0)"
    alpha: str = "exponential(1.0)"
    pinv: str = "uniform(0.0,1.0)"
    codon: str = "lognormal(0.0,1.5)"
    ratios: str = "lognormal(0.0,1.5)"
    switching: str = "exponential(1.0)"
    weights: str = "dirichlet(1.0)"
    free_rates: str = "dirichlet(1.0)"
    part_rates: str = "dirichlet(1.0)"

    def of_kinds(self, kinds: Container[str]) -> dict[str, str]:
        """The texts of some kinds, by their names."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name in kinds}


@dataclass(frozen=True)
class ClockPriors(PriorTexts):
    """The priors of a clock and of its tree, each as the text that names its distribution; times are in years.

    "lognormal(mean,sd)" has the mean and the standard deviation of the logarithm, "gamma(shape,rate)" the mean
    shape / rate, and "exponential(rate)" the mean 1 / rate.

    Attributes
    ----------
    rate : of the clock, in substitutions per site and year
    spread : of a relaxed clock: the standard deviation of the logarithms of rates
    population : effective size times the length of a generation, in years; of a skygrid, the latest one
    growth : of the population, per year
    grid_precision : of a skygrid, the precision of the differences of neighbouring logarithms of sizes
    diversification : of births less deaths, or of births in a Yule process, per lineage and year
    turnover : of deaths over births: "uniform(low,high)"
    sampling : the rate at which lineages are sampled if tips have dates, per lineage and year
    root : of its height under birth and death, in years before the latest taxon
    """

    rate: str = "lognormal(-7.0,3.0)"
    spread: str = "exponential(3.0)"
    population: str = "lognormal(3.0,3.0)"
    growth: str = "normal(0.0,1.0)"
    grid_precision: str = "gamma(1.0,0.1)"
    diversification: str = "lognormal(-1.0,2.0)"
    turnover: str = "uniform(0.0,1.0)"
    sampling: str = "lognormal(-1.0,2.0)"
    root: str = "lognormal(3.0,3.0)"


@dataclass(frozen=True)
class SampleOptions:
    """How to sample.

    Attributes
    ----------
    generations : their number, or "auto": until ASDSF and effective sample sizes say that it is enough
    runs : independent ones, whose trees are compared
    chains : of each run, one cold and the others heated
    temperature : chain h has the posterior to the power 1 / (1 + h temperature); "auto": it is tuned until neighbours
        exchange their heats about three times in ten
    sample_every : generations between two samples
    burnin : share of the samples, from the first on, that is left out of all summaries
    prior_only : sample the prior, as if there were no data
    """

    generations: int | str = AUTO
    runs: int = constants.DEFAULT_RUNS
    chains: int = constants.DEFAULT_CHAINS
    temperature: float | str = constants.DEFAULT_TEMPERATURE
    sample_every: int = constants.SAMPLE_EVERY
    burnin: float = constants.DEFAULT_BURNIN
    prior_only: bool = False

    def __post_init__(self) -> None:
        make_plain(self)

    def check(self) -> None:
        """Raise InputError for a value out of bounds."""
        if isinstance(self.generations, str):
            if self.generations != AUTO:
                raise InputError(f"generations: found {self.generations!r}, expected a whole number or {AUTO}")
            if self.runs < 2:
                wanted = "at least 2 with generations auto, which compares runs"
                raise InputError(f"runs: found {self.runs}, expected {wanted}")
        else:
            check_least("generations", self.generations, 1)
        for name in ("runs", "chains", "sample_every"):
            check_least(name, getattr(self, name), 1)
        if not isinstance(self.generations, str) and self.generations < self.sample_every:
            wanted = f"at least {self.sample_every}, those between two samples"
            raise InputError(f"generations: found {self.generations}, expected {wanted}")
        if self.runs > constants.MAX_RUNS:
            raise InputError(f"runs: found {self.runs}, expected at most {constants.MAX_RUNS}")
        if self.temperature != AUTO and not (isinstance(self.temperature, Real) and 0 <= self.temperature <= 10):
            raise InputError(f"temperature: found {self.temperature!r}, expected a number from 0 to 10 or {AUTO}")
        if not (isinstance(self.burnin, Real) and 0 <= self.burnin < 1):
            raise InputError(f"burnin: found {self.burnin!r}, expected a share from 0 to below 1")

    @property
    def tuning(self) -> int:
        """The number of generations in which steps are tuned; none of them is part of the answer."""
        if isinstance(self.generations, str):
            return TUNING_GENERATIONS
        return min(TUNING_GENERATIONS, int(self.burnin * self.generations))


@dataclass(frozen=True)
class StoneOptions:
    """How to compute a marginal likelihood by stepping stones.

    Attributes
    ----------
    generations : of all chains
    steps : between the prior and the posterior, one less than the chains of a run
    runs : independent ones, which tell whether the result can be trusted
    sample_every : generations between two samples
    burnin : share of the samples, from the first on, that is left out
    """

    generations: int = 20_000
    steps: int = 32
    runs: int = constants.DEFAULT_RUNS
    sample_every: int = 10
    burnin: float = constants.DEFAULT_BURNIN

    def __post_init__(self) -> None:
        make_plain(self)

    def check(self) -> None:
        """Raise InputError for a value out of bounds."""
        check_least("steps", self.steps, 2)
        if self.steps > constants.MOST_STEPS:
            raise InputError(f"steps: found {self.steps}, expected at most {constants.MOST_STEPS}")
        check_least("generations", self.generations, 1)
        SampleOptions(self.generations, self.runs, sample_every=self.sample_every, burnin=self.burnin).check()
