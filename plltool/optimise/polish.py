"""Branch lengths and model parameters in turn, until neither gains."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from plltool.constants import MAX_POLISH_ROUNDS, POLISH_GAIN, POLISH_PRECISION
from plltool.optimise.lengths import smooth
from plltool.optimise.likelihood import TreeLikelihood
from plltool.optimise.parameters import optimise_model


def polish(
    likelihood: TreeLikelihood,
    lengths: bool = True,
    groups: Sequence[str] | None = None,
    report: Callable[[int, float], None] = lambda round_, lnl: None,
) -> float:
    """Optimise in place until a round gains less than POLISH_GAIN; returns lnL, which never falls.

    Parameters
    ----------
    lengths : whether branch lengths are optimised
    groups : of free model parameters, see `Model.free_parameters`; None for all
    report : hears of every round's number and lnL
    """
    free = {name for model in likelihood.models for name in model.free_parameters}
    chosen = [name for name in sorted(free) if groups is None or name in groups]
    lnl = likelihood.lnl()
    for round_ in range(1, MAX_POLISH_ROUNDS + 1):
        before = lnl
        if lengths:
            lnl = smooth(likelihood, POLISH_PRECISION).lnl
        if chosen:
            lnl = optimise_model(likelihood, chosen, POLISH_PRECISION, scale=lengths)
        report(round_, lnl)
        if not (lengths and chosen) or lnl - before < POLISH_GAIN:
            break
    return lnl
