"""Branch lengths and model parameters in turn, until neither gains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from plltool.arrays import BoolArray, FloatArray
from plltool.constants import (
    EXPLORING_SHARE,
    FIRST_POLISH_SHARE,
    LENGTHS_PRECISION,
    MAX_POLISH_ROUNDS,
    POLISH_GAIN,
    POLISH_PARAMETERS,
    POLISH_PRECISION,
    POLISH_SHARE,
)
from plltool.errors import EngineError
from plltool.model.model import Model
from plltool.optimise.bounded import Curvatures, minimise
from plltool.optimise.density import Coordinates
from plltool.optimise.lengths import smooth, try_longer, try_scales
from plltool.optimise.likelihood import TreeLikelihood
from plltool.optimise.models import ModelOptimiser
from plltool.optimise.revival import revive_rates
from plltool.optimise.ridge import climb_ridge

MAX_TOGETHER, MAX_TOGETHER_EVALUATIONS = 1000, 60  # elements of a vector, whose curvatures are a matrix; evaluations
LEAST_TOGETHER = 0.01  # curvature in the logarithm of a length, lnL


@dataclass(frozen=True, eq=False)
class PolishRound:
    """A finished round: all that the next rounds depend on, besides tree and models.

    Attributes
    ----------
    number, lnl : of the round
    is_last : whether there is no next round
    precision : of branch lengths in the next round, lnL
    has_explored : whether other optima of the parts have been looked for
    curvatures : what is known of the Hessians of the parts
    """

    number: int
    lnl: float
    is_last: bool
    precision: float
    has_explored: bool
    curvatures: Curvatures

    def pack(self) -> FloatArray:
        """All values as doubles, for `unpack`."""
        numbers = (self.number, self.lnl, self.is_last, self.precision, self.has_explored)
        return np.concatenate([np.array(numbers, dtype=np.float64), self.curvatures.pack()])

    @classmethod
    def unpack(cls, packed: FloatArray) -> PolishRound:
        """The round that was packed, bit for bit."""
        number, lnl, is_last, precision, has_explored = packed[:5].tolist()
        return cls(int(number), lnl, bool(is_last), precision, bool(has_explored), Curvatures.unpack(packed[5:]))


@dataclass(frozen=True, eq=False)
class Fit:
    """Lengths and models, and their lnL."""

    lnl: float
    lengths: FloatArray
    models: list[Model]

    @classmethod
    def of(cls, likelihood: TreeLikelihood, lnl: float) -> Fit:
        """A copy of what the likelihood has."""
        return cls(lnl, likelihood.tree.lengths.copy(), [model.copy() for model in likelihood.models])

    def give_to(self, likelihood: TreeLikelihood) -> None:
        """Let the likelihood have these lengths and models."""
        likelihood.tree.lengths[:] = self.lengths
        for model, own in zip(likelihood.models, self.models, strict=True):
            model.assign(own)
        likelihood.model_changed()


def _fit_to_lengths(likelihood: TreeLikelihood, optimiser: ModelOptimiser, precision: float) -> Fit:
    """The given lengths with the model that fits them, both optimised once; the likelihood stays as it is.

    lnL may have several optima in lengths and model. Given lengths may be those of the best one, and would be led away
    from it under a model that does not fit them.
    """
    before, curvatures = Fit.of(likelihood, 0.0), optimiser.curvatures.copy()
    optimiser.run(precision)
    found = Fit.of(likelihood, smooth(likelihood, precision).lnl)
    before.give_to(likelihood)
    optimiser.curvatures = curvatures
    return found


def _climb_together(likelihood: TreeLikelihood, lnl: float) -> float:
    """Optimise all lengths and parameters as one vector; return lnL, which never falls.

    In turn they would climb a ridge in ever smaller steps, which end far below its top. The first curvatures are
    those of the lengths alone, and 1 for the logarithm of a parameter.
    """
    coordinates, before = Coordinates(likelihood, lengths=True, model=True), Fit.of(likelihood, lnl)
    start = coordinates.get()
    if len(start) > MAX_TOGETHER:
        return lnl
    slopes = likelihood.all_derivatives()[1][coordinates.edges]
    lengths = likelihood.tree.lengths[coordinates.edges]
    diagonal = np.ones(len(start))
    diagonal[: coordinates.n_lengths] = np.abs(slopes[..., 1] * lengths**2 + slopes[..., 0] * lengths).ravel()
    curvatures = Curvatures(1)
    curvatures.matrices[0] = np.diag(np.maximum(diagonal, LEAST_TOGETHER))

    def evaluate(vector: FloatArray, _wanted: BoolArray) -> tuple[FloatArray, list[FloatArray]]:
        coordinates.set(vector)
        try:
            value, gradient = coordinates.slopes()
        except EngineError:  # some pattern cannot be represented
            return np.array([np.inf]), [np.zeros(len(vector))]
        return np.array([-value]), [-gradient]

    everything = [np.arange(len(start))]
    found = minimise(
        evaluate, start, coordinates.bounds, everything, POLISH_PRECISION, MAX_TOGETHER_EVALUATIONS, curvatures
    )
    coordinates.set(found)
    reached = likelihood.lnl()
    if reached > lnl:
        return reached
    before.give_to(likelihood)
    return lnl


def polish(
    likelihood: TreeLikelihood,
    lengths: bool = True,
    groups: Sequence[str] | None = None,
    report: Callable[[PolishRound], None] = lambda done: None,
    done: PolishRound | None = None,
    given: bool = False,
) -> float:
    """Optimise in place until a round gains less than POLISH_GAIN, or a share of it; return lnL, which never falls.

    Models with more than POLISH_PARAMETERS parameters approach the optimum in many small steps, so less counts there.
    Lengths are optimised to a share of what the last round gained. As soon as a round gains little, other optima of the
    parts are looked for, once. When nothing else gains, rates over sites change together with the lengths, and the
    lengths get a second start.

    Parameters
    ----------
    lengths : whether branch lengths are optimised
    groups : groups of free model parameters to optimise, see `Model.free_parameters`; None for all
    report : called after every round
    done : the last round of an earlier run; None if there is none
    given : whether the lengths come from elsewhere, so that they may be those of another optimum than the one that is
        reached under the present model. The best of both counts then, and all that is free is optimised together at the
        end
    """
    free = {name for model in likelihood.models for name in model.free_parameters}
    chosen = [name for name in sorted(free) if groups is None or name in groups]
    optimiser = ModelOptimiser(likelihood, chosen, scale=lengths)
    if done is None:
        lnl = likelihood.lnl()
        precision = max(LENGTHS_PRECISION, FIRST_POLISH_SHARE * abs(lnl)) if lengths and chosen else LENGTHS_PRECISION
        done = PolishRound(0, lnl, False, precision, not chosen, optimiser.curvatures)
    optimiser.curvatures = done.curvatures
    whole = given and lengths and groups is None and not likelihood.has_site_rates  # a tenth of a search's time
    rival = None
    if given and lengths and chosen and np.ptp(likelihood.tree.lengths) > 0:
        rival = _fit_to_lengths(likelihood, optimiser, done.precision)
    share = min(1.0, POLISH_PARAMETERS / max(optimiser.most_parameters, 1))
    least_gain = share * POLISH_GAIN
    while not done.is_last:
        lnl, has_explored = done.lnl, done.has_explored
        if lengths:
            lnl = smooth(likelihood, done.precision).lnl
        if chosen:
            lnl = optimiser.run(share * POLISH_PRECISION)
        if lengths and not done.number:
            lnl = try_scales(likelihood, lnl, done.precision)
        if not has_explored and lnl - done.lnl < EXPLORING_SHARE * abs(lnl):
            lnl, has_explored = optimiser.explore(), True
        is_near = lengths and has_explored and done.precision == LENGTHS_PRECISION
        if is_near and lnl - done.lnl < least_gain and whole:
            lnl = _climb_together(likelihood, lnl)
        if is_near and lnl - done.lnl < least_gain:
            lnl = climb_ridge(likelihood, chosen, lnl)
        if is_near and lnl - done.lnl < least_gain:
            lnl = revive_rates(likelihood, chosen, lnl)
        if is_near and lnl - done.lnl < least_gain:
            lnl = try_longer(likelihood, lnl)
        gain, number = lnl - done.lnl, done.number + 1
        is_enough = gain < least_gain and done.precision == LENGTHS_PRECISION and has_explored
        if is_enough and rival is not None and rival.lnl > lnl:
            rival.give_to(likelihood)
            lnl, rival, is_enough = rival.lnl, None, False
        is_last = is_enough or not chosen or number == MAX_POLISH_ROUNDS
        precision = min(done.precision, POLISH_SHARE * gain)
        precision = precision if precision > POLISH_PRECISION else LENGTHS_PRECISION
        done = PolishRound(number, lnl, is_last, precision, has_explored, optimiser.curvatures.copy())
        report(done)
    return done.lnl
