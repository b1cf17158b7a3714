"""Branch lengths and model parameters in turn, until neither gains."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from plltool.arrays import FloatArray
from plltool.codec import saved
from plltool.constants import LENGTHS_PRECISION, MAX_BRANCH_LENGTH, MAX_POLISH_ROUNDS, MIN_BRANCH_LENGTH
from plltool.errors import EngineError
from plltool.model.model import CATEGORIES, SCALER
from plltool.optimise.bounded import Curvatures, LimitedMemory, minimise
from plltool.optimise.density import Coordinates
from plltool.optimise.lengths import smooth, try_scales
from plltool.optimise.likelihood import TreeLikelihood, possible_likelihoods, side_by_side
from plltool.optimise.models import EXPLORING_EPSILON, ModelOptimiser
from plltool.tree.rooted import branches_at_root

POLISH_GAIN = 0.01  # lengths and model are optimised when a round over both gains less lnL
POLISH_PRECISION = 0.001  # lnL, of the model within a round; primates end 0.02 below the optimum, with 0.01 0.06 below
POLISH_PARAMETERS = 30  # of a model; with n more, both are this share of n: S16, with 119, gains 0.1 lnL in small steps
POLISH_SHARE = 0.01  # of the gain of the last round: the precision of lengths in the next one, where that is coarser
FIRST_POLISH_SHARE = 1e-5  # of lnL: the precision of lengths in the first round, likewise
EXPLORING_SHARE = 2e-4  # of lnL: after a round that gains less, other optima of the parts are looked for
FORESIGHT = 3.0  # times the gain that Newton's method predicts: the most that is expected from branch lengths
TOGETHER_START = 1.0  # lnL: after a round that gains less, all lengths and parameters are optimised together
TOGETHER_GAIN, MAX_TOGETHER = 5e-5, 100  # lnL that a step then gains or promises if another follows; typical 5 to 20
MAX_TOGETHER_PARAMETERS = 32  # of a part that changes together with the lengths; the 189 of GTR20 gain nothing so
ROOT_SHARES, OTHER_SHARE = (0.05, 0.25, 0.5, 0.75, 0.95), 0.3  # of the lengths at the root, on one side; least change
OTHER_PRECISION = 3.0  # times the precision of the first start: that of the second one
SAME_LENGTH, OTHER_LENGTH = 1.5, 2.0  # ratio of sums of lengths: below, one optimum; from here on, two are reported


@saved()
@dataclass(frozen=True, eq=False)
class PolishRound:
    """A finished round: all that the next rounds depend on, besides tree and models."""

    number: int  # of the round
    lnl: float
    is_last: bool  # whether there is no next round
    precision: float  # of branch lengths in the next round, lnL
    n_finishes: int  # number of finishes that have been tried, see `polish`; other optima of the parts are the first
    # where another start of the lengths leads; nan if to nothing worse whose sum of lengths differs by OTHER_LENGTH
    other_lnl: float
    other_length: float  # the sum of the lengths there
    curvatures: Curvatures  # what is known of the Hessians of the parts

    @property
    def other(self) -> "Other":
        return Other(self.other_lnl, self.other_length)


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

    A round optimises lengths and models in turn, lengths to a share of what the last round gained, and then all of them
    together if they have gained little, whose maximum ends the rounds. The first round has several starts if lengths
    are `given`, see `_begin`. As soon as a round gains little, other optima of the parts are looked for if they have
    factors of their own, or lengths are fixed. When rounds gain no more, the finishes are tried, each once: scales of
    all lengths, other rates over sites, other places of the root on its branch. Rounds go on if one gains.

    Models with more than POLISH_PARAMETERS parameters approach the optimum in many small steps, so less counts there.
    `groups` are those of free model parameters to optimise; None for all. `done` is the last round of an earlier run.
    """
    free = {name for model in likelihood.models for name in model.free_parameters}
    chosen = [name for name in sorted(free) if groups is None or name in groups]
    optimiser, tree = ModelOptimiser(likelihood, chosen, scale=lengths), likelihood.tree
    other_scales = partial(try_scales, likelihood, epsilon=POLISH_GAIN)
    other_rates = partial(_try_other_rates, optimiser, chosen)
    finishes: list[Callable[[float], float]] = [other_scales, other_rates] if lengths else []
    if lengths and tree.is_rooted:
        finishes.append(partial(_try_other_root, optimiser))
    most = max(optimiser.sizes)
    is_joint = lengths and CATEGORIES not in chosen and 0 < most <= MAX_TOGETHER_PARAMETERS
    if done is None:
        lnl = likelihood.lnl()
        precision = max(LENGTHS_PRECISION, FIRST_POLISH_SHARE * abs(lnl)) if lengths and chosen else LENGTHS_PRECISION
        done = PolishRound(0, lnl, False, precision, 0, *Other(), optimiser.curvatures)
    optimiser.curvatures = done.curvatures.copy()
    share = min(1.0, POLISH_PARAMETERS / max(most, 1))
    least_gain = share * POLISH_GAIN
    while not done.is_last:
        lnl, n_finishes, other = done.lnl, done.n_finishes, done.other
        if given and lengths and chosen and not done.number and np.ptp(tree.lengths) > 0:
            lnl, other = _begin(optimiser, lnl, done.precision)
        else:
            if lengths:
                lnl = smooth(likelihood, done.precision)
            if chosen:
                lnl = optimiser.run(max(share * POLISH_PRECISION, done.precision))
        gain, is_precise = lnl - done.lnl, done.precision == LENGTHS_PRECISION
        if not n_finishes and gain < max(least_gain, EXPLORING_SHARE * abs(lnl)):
            has_factors = len(optimiser.sizes) > 1 and bool(optimiser.owns_factor.any())
            lnl, n_finishes = optimiser.explore() if has_factors or not lengths else lnl, 1
            gain = lnl - done.lnl
        if is_joint and n_finishes and gain < TOGETHER_START:
            before, (lnl, is_top) = lnl, _climb_together(optimiser, chosen, lnl)
            gain, is_precise = 0.0 if is_top else lnl - before, True
        is_over = n_finishes > 0 and is_precise and gain < least_gain
        while is_over and n_finishes <= len(finishes):
            here = Other(lnl, float(tree.lengths.sum()))
            lnl, n_finishes = finishes[n_finishes - 1](lnl), n_finishes + 1
            is_over = lnl - here.lnl < least_gain
            other = here if here.is_other_than(tree.lengths) else other
        number = done.number + 1
        is_last = is_over or number == MAX_POLISH_ROUNDS
        precision = min(done.precision, POLISH_SHARE * (lnl - done.lnl))
        precision = precision if precision > POLISH_PRECISION else LENGTHS_PRECISION
        other = other if other.is_other_than(tree.lengths) else Other()
        done = PolishRound(number, lnl, is_last, precision, n_finishes, *other, optimiser.curvatures.copy())
        report(done)
    return done.lnl


def _climb_together(optimiser: ModelOptimiser, groups: Sequence[str], lnl: float) -> tuple[float, bool]:
    """Optimise all branch lengths and the free parameters of some groups at once.

    Return lnL, which never falls, and whether it is the maximum, where a further round would gain nothing.
    Invariable sites, alpha and branch lengths explain the same data, and so do free rates, or rates of rare changes:
    lnL has narrow ridges on which no group of them gains alone. The last steps show their direction.
    """
    likelihood = optimiser.likelihood
    here, before = Coordinates(likelihood, True, True, groups), likelihood.fit()
    try:
        everything = [np.arange(len(here.get()))]
        known = optimiser.know_curvatures()
        memory, ask = LimitedMemory(*here.curvatures(known)), partial(here.evaluate, curvatures=known)
        best = minimise(ask, here.get(), here.bounds, everything, TOGETHER_GAIN, MAX_TOGETHER, memory)
        here.set(best)
        reached = optimiser.settle() if SCALER in groups else likelihood.lnl()
    except EngineError:  # some pattern cannot be represented
        reached = -np.inf
    if reached > lnl:
        return reached, memory.is_final
    likelihood.restore(before)
    return lnl, False


def _try_other_rates(optimiser: ModelOptimiser, groups: Sequence[str], lnl: float) -> float:
    """Look for another optimum, from other rates over sites; return lnL, which never falls."""
    likelihood, models = optimiser.likelihood, optimiser.likelihood.models
    starts = [model.sites.elsewhere({*groups}.intersection(model.free_parameters)) or [model.sites] for model in models]
    pairs = list(zip(models, starts, strict=True))
    if all(own == [model.sites] for model, own in pairs):
        return lnl
    tried = side_by_side([[model.with_sites(sites) for sites in own] for model, own in pairs])
    before, lnls, curvatures = likelihood.fit(), likelihood.part_lnl(), optimiser.curvatures.copy()
    best = np.argmax(possible_likelihoods(likelihood, tried), axis=0)
    for number, model in enumerate(models):
        model.assign(tried[best[number]][number])
    likelihood.model_changed()
    try:
        _climb_together(optimiser, groups, optimiser.run(EXPLORING_EPSILON))
        gains = likelihood.part_lnl() - lnls
    except EngineError:  # some pattern cannot be represented
        gains = np.full(len(models), -np.inf)
    if likelihood.tree.lengths.ndim == 1:
        gains[:] = gains.sum()
    if gains.max() <= 0:
        likelihood.restore(before)
        optimiser.curvatures = curvatures
        return lnl
    for number in np.flatnonzero(gains <= 0).tolist():
        models[number].assign(before.models[number])
        likelihood.tree.lengths[:, number] = before.tree.lengths[:, number]
        optimiser.curvatures.matrices[number] = curvatures.matrices[number]
    likelihood.model_changed()
    return likelihood.lnl()


def _try_other_root(optimiser: ModelOptimiser, lnl: float) -> float:
    """Look for another optimum with the root elsewhere on its branch; return lnL, which never falls.

    Under a directed model lnL may have an optimum near each end, and a length near 0 moves in tiny steps.
    """
    likelihood, lengths = optimiser.likelihood, optimiser.likelihood.tree.lengths
    before, curvatures = likelihood.fit(), optimiser.curvatures.copy()
    first, second = branches_at_root(likelihood.tree)[1]
    both = lengths[first] + lengths[second]
    present = np.sum(lengths[first]) / np.sum(both)
    shares = [share for share in ROOT_SHARES if abs(share - present) >= OTHER_SHARE]
    pairs = [np.clip([share * both, (1 - share) * both], MIN_BRANCH_LENGTH, MAX_BRANCH_LENGTH) for share in shares]
    lnls = []
    for pair in pairs:
        lengths[[first, second]] = pair
        lnls.append(likelihood.lnl())
    lengths[[first, second]] = pairs[int(np.argmax(lnls))]
    smooth(likelihood, EXPLORING_EPSILON)
    reached = optimiser.run(EXPLORING_EPSILON)
    if reached > lnl:
        return reached
    likelihood.restore(before)
    optimiser.curvatures = curvatures
    return lnl


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
    first = smooth(likelihood, precision)
    end, curvatures, length = likelihood.fit(), optimiser.curvatures.copy(), float(tree.lengths.sum())
    likelihood.restore(given)
    optimiser.curvatures = Curvatures(len(likelihood.models))
    second, gain = smooth(likelihood, OTHER_PRECISION * precision), np.inf
    while second <= first < second + FORESIGHT * gain:
        optimiser.run(OTHER_PRECISION * precision)
        before, second = second, smooth(likelihood, OTHER_PRECISION * precision)
        gain = second - before
        if abs(np.log(tree.lengths.sum() / length)) < np.log(SAME_LENGTH):
            break
    if second > first:
        return second, Other(first, length)
    other = Other(second, float(tree.lengths.sum()))
    likelihood.restore(end)
    optimiser.curvatures = curvatures
    return first, other
