"""Branch lengths and model parameters in turn, until neither gains."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from plltool.constants import MAX_POLISH_ROUNDS, POLISH_GAIN, POLISH_PRECISION
from plltool.optimise.lengths import smooth
from plltool.optimise.likelihood import TreeLikelihood
from plltool.optimise.models import ModelOptimiser


def polish(
    likelihood: TreeLikelihood,
    lengths: bool = True,
    groups: Sequence[str] | None = None,
    report: Callable[[int, float, bool], None] = lambda round_, lnl, is_last: None,
    made: tuple[int, float] | None = None,
) -> float:
    """Optimise in place until a round gains less than POLISH_GAIN; return lnL, which never falls.

    Parameters
    ----------
    lengths : whether branch lengths are optimised
    groups : groups of free model parameters to optimise, see `Model.free_parameters`; None for all
    report : called after every round with its number, lnL, and whether it is the last
    made : number of rounds made in an earlier run, and lnL after the last of them; None if there are none
    """
    free = {name for model in likelihood.models for name in model.free_parameters}
    chosen = [name for name in sorted(free) if groups is None or name in groups]
    optimiser = ModelOptimiser(likelihood, chosen, scale=lengths)
    done, lnl = (0, likelihood.lnl()) if made is None else made
    for round_ in range(done + 1, MAX_POLISH_ROUNDS + 1):
        before = lnl
        if lengths:
            lnl = smooth(likelihood, POLISH_PRECISION).lnl
        if chosen:
            lnl = optimiser.run(POLISH_PRECISION)
        is_last = not (lengths and chosen) or lnl - before < POLISH_GAIN or round_ == MAX_POLISH_ROUNDS
        report(round_, lnl, is_last)
        if is_last:
            break
    return lnl
