"""What is asked of a sampler: priors by their names, numbers of runs and chains, and when it ends."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any, Self

from plltool import constants
from plltool.errors import InputError, check_least
from plltool.settings import setting

TUNING_GENERATIONS = 5_000  # in which steps are tuned, at most; common moves are then made some hundred times
AUTO = "auto"
STEPS, MOST_STEPS = 32, 1000  # of stepping stones
STONE_GENERATIONS = 50_000


FORMS = {  # names of the distributions that each prior may have
    "lengths": ("exponential", "gammadir"),
    "rates": ("dirichlet",),
    "frequencies": ("dirichlet",),
    "alpha": ("exponential", "uniform"),
    "pinv": ("uniform",),
    "codon": ("lognormal", "gamma", "exponential"),
    "rate": ("lognormal", "gamma", "exponential", "uniform"),
    "spread": ("exponential", "lognormal", "gamma", "uniform"),
    "population": ("lognormal", "gamma", "exponential", "uniform"),
    "growth": ("normal",),
    "grid_precision": ("gamma", "lognormal", "exponential"),
}


def _prior(name: str, default: str, text: str) -> Any:
    return setting(default, f"Prior of {text}", f"--prior-{name}", metavar="PRIOR")


@dataclass(frozen=True)
class PriorTexts:
    """Priors by their names, each as the text that names its distribution."""

    def parsed(self) -> dict[str, Any]:
        """The distributions, by the names of the fields; errors as in `parse_prior`."""
        from plltool.analyses.sampling.priors import parse_prior  # not above: help needs no numpy

        return {own.name: parse_prior(getattr(self, own.name), own.name, FORMS[own.name]) for own in fields(self)}

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
    """

    lengths: str = _prior(
        "lengths",
        "gammadir(1.0,0.1,1.0,1.0)",
        "branch lengths: exponential(RATE) of each, or gammadir(SHAPE,RATE,A,C), the compound Dirichlet distribution"
        " (Zhang, Rannala & Yang 2012).",
    )
    rates: str = _prior(
        "rates", "dirichlet(1.0)", "exchangeabilities, scaled to sum 1: dirichlet(A), or a value for each."
    )
    frequencies: str = _prior(
        "frequencies", "dirichlet(1.0)", "the frequencies of states: dirichlet(A), or a value for each."
    )
    alpha: str = _prior(
        "alpha",
        "exponential(1.0)",
        "the shape of the gamma distribution of rates: exponential(RATE) or uniform(LOW,HIGH).",
    )
    pinv: str = _prior("pinv", "uniform(0.0,1.0)", "the proportion of invariable sites: uniform(LOW,HIGH).")
    codon: str = _prior(
        "codon",
        "lognormal(0.0,1.5)",
        "omega and of each kappa of a codon model: lognormal(MEAN,SD) of the logarithm, gamma(SHAPE,RATE) or"
        " exponential(RATE).",
    )

    def parsed(self) -> dict[str, Any]:
        """As in `PriorTexts`; the bounds of pinv are from 0 to 1."""
        found = super().parsed()
        if found["pinv"].log_density(1.0 + 1e-9) > -float("inf"):
            raise InputError(f"prior of pinv: found {self.pinv}, expected bounds from 0 to 1")
        return found

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
    """

    rate: str = _prior(
        "clock-rate",
        "lognormal(-7.0,3.0)",
        "the clock's rate, in substitutions per site and year: lognormal(MEAN,SD) of the logarithm, gamma(SHAPE,RATE),"
        " exponential(RATE) or uniform(LOW,HIGH).",
    )
    spread: str = _prior(
        "clock-spread", "exponential(3.0)", "the standard deviation of the logarithms of a relaxed clock's rates."
    )
    population: str = _prior(
        "population",
        "lognormal(3.0,3.0)",
        "the effective population size times the length of a generation, in years; of a skygrid, the latest one.",
    )
    growth: str = _prior("growth", "normal(0.0,1.0)", "the growth of the population per year: normal(MEAN,SD).")
    grid_precision: str = _prior(
        "grid-precision", "gamma(1.0,0.1)", "a skygrid's precision of differences of neighbouring logarithms of sizes."
    )


@dataclass(frozen=True)
class SampleOptions:
    """How to sample.

    Attributes
    ----------
    generations : their number, or "auto": until ASDSF and effective sample sizes say that it is enough
    runs : independent ones, whose trees are compared
    chains : of each run, one cold and the others heated
    temperature : chain h has the posterior to the power 1 / (1 + h temperature)
    sample_every : generations between two samples
    burnin : share of the samples, from the first on, that is left out of all summaries
    prior_only : sample the prior, as if there were no data
    """

    generations: int | str = setting(
        AUTO,
        f"Number of generations. With auto, the chains run until ASDSF is below {constants.ENOUGH_DEVIATION} and every"
        f" effective sample size above {constants.ENOUGH_SIZE}.",
        metavar="N|auto",
    )
    runs: int = setting(constants.DEFAULT_RUNS, "Number of runs.", min=1, max=constants.MAX_RUNS)
    chains: int = setting(
        constants.DEFAULT_CHAINS, "Number of chains of each run, one cold and the others heated.", min=1
    )
    temperature: float = setting(
        constants.DEFAULT_TEMPERATURE,
        "Chain H, counted from 0, samples the posterior to the power 1 / (1 + H * temperature).",
        min=0,
        max=10,
    )
    sample_every: int = setting(constants.SAMPLE_EVERY, "Take a sample every N generations.", min=1)
    burnin: float = setting(
        constants.DEFAULT_BURNIN,
        "Proportion of the samples to discard as burn-in. Samples from the tuning phase are always discarded.",
        min=0,
        max=1,
        max_open=True,
    )
    prior_only: bool = setting(False, "Sample the prior, as if there were no data.")

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
        if not (isinstance(self.temperature, Real) and 0 <= self.temperature <= 10):
            raise InputError(f"temperature: found {self.temperature!r}, expected a number from 0 to 10")
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

    generations: int = setting(STONE_GENERATIONS, "Number of generations.", min=1)
    steps: int = setting(STEPS, "Number of steps between the prior and the posterior.", min=2, max=MOST_STEPS)
    runs: int = setting(constants.DEFAULT_RUNS, "Number of runs.", min=1, max=constants.MAX_RUNS)
    sample_every: int = setting(10, "Take a sample every N generations.", min=1)
    burnin: float = setting(
        constants.DEFAULT_BURNIN, "Proportion of the samples to discard as burn-in.", min=0, max=1, max_open=True
    )

    def check(self) -> None:
        """Raise InputError for a value out of bounds."""
        check_least("steps", self.steps, 2)
        if self.steps > MOST_STEPS:
            raise InputError(f"steps: found {self.steps}, expected at most {MOST_STEPS}")
        check_least("generations", self.generations, 1)
        SampleOptions(self.generations, self.runs, sample_every=self.sample_every, burnin=self.burnin).check()
