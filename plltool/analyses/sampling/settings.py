"""What is asked of a sampler: priors by their names, numbers of runs and chains, and when it ends."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, fields
from numbers import Real
from typing import TYPE_CHECKING, cast

from plltool.constants import (
    DEFAULT_BURNIN,
    DEFAULT_CHAINS,
    DEFAULT_RUNS,
    DEFAULT_TEMPERATURE,
    MAX_RUNS,
    SAMPLE_EVERY,
    TUNING_GENERATIONS,
)
from plltool.errors import InputError, check_least

if TYPE_CHECKING:
    from plltool.analyses.sampling.parameters import ModelPriors
    from plltool.analyses.sampling.priors import Dirichlet, LengthPrior, NumberPrior

AUTO = "auto"


@dataclass(frozen=True)
class Priors:
    """The priors, each as the text that names its distribution; by default those of MrBayes 3.2.

    Topologies are equally likely.

    Attributes
    ----------
    lengths : of branch lengths: "exponential(10)" of each, or "gammadir(shape,rate,a,c)", the compound Dirichlet
        distribution of Zhang, Rannala & Yang 2012
    rates : of exchangeabilities, scaled to sum 1: "dirichlet(1)", or a value for each
    frequencies : of states: "dirichlet(1)", or a value for each
    alpha : of the shape of the gamma distribution of rates: "exponential(1)" or "uniform(low,high)"
    pinv : of the share of invariable sites: "uniform(0,1)"
    """

    lengths: str = "gammadir(1.0,0.1,1.0,1.0)"
    rates: str = "dirichlet(1.0)"
    frequencies: str = "dirichlet(1.0)"
    alpha: str = "exponential(1.0)"
    pinv: str = "uniform(0.0,1.0)"

    def of_lengths(self) -> LengthPrior:
        """That of branch lengths; errors as in `parse_prior`."""
        from plltool.analyses.sampling.priors import (
            parse_prior,  # not above: help imports these settings, but not numpy
        )

        return cast("LengthPrior", parse_prior(self.lengths, "lengths", ("exponential", "gammadir")))

    def of_models(self) -> ModelPriors:
        """Those of the parameters of models; errors as in `parse_prior`."""
        from plltool.analyses.sampling.parameters import ModelPriors
        from plltool.analyses.sampling.priors import parse_prior

        numbers = "exponential", "uniform"
        pinv = cast("NumberPrior", parse_prior(self.pinv, "pinv", ("uniform",)))
        if pinv.log_density(1.0 + 1e-9) > -float("inf"):
            raise InputError(f"prior of pinv: found {self.pinv}, expected bounds from 0 to 1")
        return ModelPriors(
            cast("Dirichlet", parse_prior(self.rates, "rates", ("dirichlet",))),
            cast("Dirichlet", parse_prior(self.frequencies, "frequencies", ("dirichlet",))),
            cast("NumberPrior", parse_prior(self.alpha, "alpha", numbers)),
            pinv,
        )

    def of_kinds(self, kinds: Container[str]) -> dict[str, str]:
        """The texts of some kinds, by their names."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name in kinds}

    def canonical(self) -> Priors:
        """The same with each text as the program writes it."""
        own = self.of_models()
        texts = {field.name: str(getattr(own, field.name)) for field in fields(own)}
        return Priors(lengths=str(self.of_lengths()), **texts)


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

    generations: int | str = AUTO
    runs: int = DEFAULT_RUNS
    chains: int = DEFAULT_CHAINS
    temperature: float = DEFAULT_TEMPERATURE
    sample_every: int = SAMPLE_EVERY
    burnin: float = DEFAULT_BURNIN
    prior_only: bool = False

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
        if self.runs > MAX_RUNS:
            raise InputError(f"runs: found {self.runs}, expected at most {MAX_RUNS}")
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
