"""Coordinates of parameters, which any number may be: logarithms of ratios.

Those of shares x are log(x_i / x_K) with x_K the last one, that of alpha is its logarithm, that of pinv
log(x / (1 - x)). The Jacobians |dx / dz| are the product of all shares, alpha and x (1 - x).
"""

from __future__ import annotations

import math

import numpy as np

from plltool.analyses.sampling.parameters import ALPHA, PINV, RATES, SHARES, Parameter, Value
from plltool.analyses.sampling.priors import Dirichlet
from plltool.arrays import FloatArray
from plltool.constants import EVEN_DEVIATION, RARE_ODDS
from plltool.model.model import Model


def coordinates_of(parameter: Parameter, value: Value) -> FloatArray:
    """Those of a value."""
    if parameter.kind in SHARES:
        logs = np.log(np.asarray(value))
        return np.asarray(logs[:-1] - logs[-1])
    number = float(value)
    return np.array([math.log(number) if parameter.kind == ALPHA else math.log(number / (1.0 - number))])


def change_value(parameter: Parameter, value: Value, change: FloatArray) -> tuple[Value, float]:
    """The value whose coordinates differ by `change`, and the logarithm of the ratio of the Jacobians."""
    if parameter.kind in SHARES:
        old = np.asarray(value)
        new = old.copy()
        new[:-1] *= np.exp(change)
        whole = float(new.sum())
        return new / whole, float(change.sum()) - len(new) * math.log(whole)
    number = float(value)
    if parameter.kind == ALPHA:
        return number * math.exp(change[0]), float(change[0])
    old_odds = number / (1.0 - number)
    odds = old_odds * math.exp(change[0])
    return odds / (1.0 + odds), float(change[0]) - 2.0 * (math.log1p(odds) - math.log1p(old_odds))


def density_slopes(parameter: Parameter, value: Value, heat: float) -> FloatArray:
    """The slopes of heat log prior + log |dx / dz| in the coordinates."""
    if isinstance(parameter.prior, Dirichlet):
        shares = np.asarray(value)
        powers = heat * (parameter.prior.of_size(len(shares)) - 1.0) + 1.0  # of the shares in the density
        return np.asarray(powers - shares * powers.sum())[:-1]
    number, of_prior = float(value), heat * parameter.prior.slope()
    if parameter.kind == ALPHA:
        return np.array([of_prior * number + 1.0])
    return np.array([of_prior * number * (1.0 - number) + 1.0 - 2.0 * number])


def data_slopes(kind: str, model: Model, slopes: FloatArray) -> FloatArray:
    """The slopes of lnL in the coordinates of a kind of parameter, from those in the elements of `get_vector`."""
    if kind == RATES:  # relative to the last one, and not to that which the model holds at 1
        is_free = model.spec.named.rates.is_free
        of_all = np.full(len(is_free), -slopes.sum())
        of_all[is_free] = slopes
        return of_all[:-1]
    if kind == ALPHA:
        assert model.alpha is not None, "it is free"
        deviation = model.alpha**-0.5
        return slopes * (deviation / (deviation + EVEN_DEVIATION))
    if kind == PINV:
        assert model.pinv is not None, "it is free"
        odds = model.pinv / (1.0 - model.pinv)
        return slopes * (odds / (odds + RARE_ODDS))
    return slopes
