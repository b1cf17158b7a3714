"""Branch lengths and model parameters in turn, until neither gains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from plltool.arrays import FloatArray
from plltool.constants import (
    EXPLORING_SHARE,
    FIRST_POLISH_SHARE,
    FORESIGHT,
    LENGTHS_PRECISION,
    MAX_POLISH_ROUNDS,
    POLISH_GAIN,
    POLISH_PARAMETERS,
    POLISH_PRECISION,
    POLISH_SHARE,
)
from plltool.model.model import SCALER
from plltool.optimise.bounded import Curvatures
from plltool.optimise.lengths import smooth, try_scales
from plltool.optimise.likelihood import TreeLikelihood
from plltool.optimise.models import ModelOptimiser
from plltool.optimise.revival import revive_rates
from plltool.optimise.ridge import climb_freely, climb_ridge, has_ridges

LAST_GAIN = 0.002  # lnL of the last round: with long branches each gains 0.8 times as much as the one before
RIDGE_START = 1.0  # lnL: after a round that gains less, all lengths and parameters are optimised together
OTHER_PRECISION = 3.0  # times the precision of the first start: that of the second one
SAME_LENGTH, OTHER_LENGTH = 1.5, 2.0  # ratio of sums of lengths: below, one optimum; from here on, two are reported


@dataclass(frozen=True, eq=False)
class PolishRound:
    """A finished round: all that the next rounds depend on, besides tree and models.

    Attributes
    ----------
    number, lnl : of the round
    is_last : whether there is no next round
    precision : of branch lengths in the next round, lnL
    has_explored : whether other optima of the parts have been looked for
    is_settled : whether lengths and models have been optimised together, and that gained little
    other_lnl, other_length : lnL and sum of the lengths where another start of the lengths leads; nan if to none that
        is worse and whose sum differs by OTHER_LENGTH
    curvatures : what is known of the Hessians of the parts
    """

    number: int
    lnl: float
    is_last: bool
    precision: float
    has_explored: bool
    is_settled: bool
    other_lnl: float
    other_length: float
    curvatures: Curvatures

    @property
    def other(self) -> Other:
        return Other(self.other_lnl, self.other_length)

    def pack(self) -> FloatArray:
        """All values as doubles, for `unpack`."""
        numbers = [getattr(self, field.name) for field in fields(self)[:-1]]
        return np.concatenate([np.array(numbers, dtype=np.float64), self.curvatures.pack()])

    @classmethod
    def unpack(cls, packed: FloatArray) -> PolishRound:
        """The round that was packed, bit for bit."""
        number, lnl, is_last, precision, has_explored, is_settled, *other = packed[:8].tolist()
        flags = bool(has_explored), bool(is_settled)
        curvatures = Curvatures.unpack(packed[8:])
        return cls(int(number), lnl, bool(is_last), precision, *flags, other[0], other[1], curvatures)


class Other(NamedTuple):
    """Where another start leads: lnL, and the sum of the lengths."""

    lnl: float = np.nan
    length: float = np.nan

    def is_other_than(self, lengths: FloatArray) -> bool:
        """Whether the sums differ by OTHER_LENGTH; False for nan."""
        return bool(abs(np.log(self.length / lengths.sum())) >= np.log(OTHER_LENGTH))


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
    Lengths are optimised to a share of what the last round gained. The first round has several starts, see `_begin`. As
    soon as a round gains little, other optima of the parts and other scales of the lengths are looked for, once. Then
    all lengths and parameters are optimised together.

    Parameters
    ----------
    lengths : whether branch lengths are optimised
    groups : groups of free model parameters to optimise, see `Model.free_parameters`; None for all
    report : called after every round
    done : the last round of an earlier run; None if there is none
    given : whether the lengths come from elsewhere. Then they are a start of their own, and all is optimised together
        whatever the model; after a search that took a tenth of its time, and gained next to nothing unless a model has
        several parameters that differ between sites
    """
    free = {name for model in likelihood.models for name in model.free_parameters}
    chosen = [name for name in sorted(free) if groups is None or name in groups]
    optimiser, tree = ModelOptimiser(likelihood, chosen, scale=lengths), likelihood.tree
    if done is None:
        lnl = likelihood.lnl()
        precision = max(LENGTHS_PRECISION, FIRST_POLISH_SHARE * abs(lnl)) if lengths and chosen else LENGTHS_PRECISION
        done = PolishRound(0, lnl, False, precision, False, False, np.nan, np.nan, optimiser.curvatures)
    optimiser.curvatures = done.curvatures
    share = min(1.0, POLISH_PARAMETERS / max(optimiser.most_parameters, 1))
    least_gain, last_gain = share * POLISH_GAIN, share * (LAST_GAIN if given else POLISH_GAIN)
    is_free = given and lengths and "free_rates" in chosen and set(chosen) == free
    is_joint = lengths and (given or has_ridges(likelihood.models, chosen))
    while not done.is_last:
        lnl, has_explored, is_settled, other = done.lnl, done.has_explored, done.is_settled, done.other
        if given and lengths and chosen and not done.number and np.ptp(tree.lengths) > 0:
            lnl, other = _begin(optimiser, lnl, done.precision)
        else:
            if lengths:
                lnl = smooth(likelihood, done.precision).lnl
            if chosen:
                lnl = optimiser.run(max(share * POLISH_PRECISION, done.precision))
        if not has_explored and (not chosen or lnl - done.lnl < EXPLORING_SHARE * abs(lnl)):
            lnl, has_explored = optimiser.explore(), True
            if lengths:
                here = Other(lnl, float(tree.lengths.sum()))
                lnl = try_scales(likelihood, lnl, POLISH_GAIN)
                other = here if here.is_other_than(tree.lengths) else other
        gain = lnl - done.lnl
        if is_joint and has_explored and gain < RIDGE_START and (gain >= least_gain or not is_settled):
            before, lnl = lnl, climb_ridge(likelihood, chosen, lnl)
            is_settled = lnl - before < least_gain
            lnl = optimiser.settle() if SCALER in chosen else lnl
        if lengths and has_explored and done.precision == LENGTHS_PRECISION and lnl - done.lnl < least_gain:
            lnl = revive_rates(likelihood, chosen, lnl)
        if is_free and has_explored and done.precision == LENGTHS_PRECISION and lnl - done.lnl < last_gain:
            lnl = climb_freely(likelihood, lnl)
        gain, number = lnl - done.lnl, done.number + 1
        is_enough = gain < last_gain and done.precision == LENGTHS_PRECISION and has_explored
        is_last = is_enough or not chosen or number == MAX_POLISH_ROUNDS
        precision = min(done.precision, POLISH_SHARE * gain)
        precision = precision if precision > POLISH_PRECISION else LENGTHS_PRECISION
        other = other if other.is_other_than(tree.lengths) else Other()
        done = PolishRound(
            number, lnl, is_last, precision, has_explored, is_settled, *other, optimiser.curvatures.copy()
        )
        report(done)
    return done.lnl


def _begin(optimiser: ModelOptimiser, lnl: float, precision: float) -> tuple[float, Other]:
    """Optimise roughly from two starts and keep the better end; return its lnL and what the other one was.

    One start optimises the model for the lengths as they are, then the lengths; the other one the lengths first, which
    are soon far from what they were if the model is. Where the ends have lengths of other sums, the second goes on as
    long as it may overtake the first. A model that fits the lengths already has one start only.
    """
    likelihood, tree = optimiser.likelihood, optimiser.likelihood.tree
    given = likelihood.fit()
    if optimiser.run(precision) - lnl < precision:
        smooth(likelihood, precision)
        return optimiser.run(precision), Other()
    first = smooth(likelihood, precision).lnl
    end, curvatures, length = likelihood.fit(), optimiser.curvatures.copy(), float(tree.lengths.sum())
    likelihood.restore(given)
    optimiser.curvatures = Curvatures(len(likelihood.models))
    second, gain = smooth(likelihood, OTHER_PRECISION * precision).lnl, np.inf
    while second <= first < second + FORESIGHT * gain:
        optimiser.run(OTHER_PRECISION * precision)
        before, second = second, smooth(likelihood, OTHER_PRECISION * precision).lnl
        gain = second - before
        if abs(np.log(tree.lengths.sum() / length)) < np.log(SAME_LENGTH):
            break
    if second > first:
        return second, Other(first, length)
    other = Other(second, float(tree.lengths.sum()))
    likelihood.restore(end)
    optimiser.curvatures = curvatures
    return first, other
