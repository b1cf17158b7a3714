"""The free parameters of a model as one vector, which is what an optimiser changes.

The vector holds logarithms of ratios, group by group: exchangeabilities of the classes relative to that of the last
pair, in the order in which the classes occur; frequencies and class weights relative to the last one; the rates of
switching; the values of `SiteRates.ratios`; and the scaler.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from plltool.arrays import FloatArray
from plltool.constants import (
    MAX_EXCHANGEABILITY,
    MAX_FREE_RATIO,
    MAX_SCALER,
    MAX_SWITCH_RATE,
    MIN_EXCHANGEABILITY,
    MIN_FREE_RATIO,
    MIN_FREQUENCY,
    MIN_SCALER,
    MIN_SWITCH_RATE,
)
from plltool.model.model import CATEGORIES, GROUPS, SCALER, Model
from plltool.model.rates import SITE_BOUNDS

RATIO_BOUNDS = {
    "rates": (MIN_EXCHANGEABILITY, MAX_EXCHANGEABILITY),  # unless their design has other limits
    "frequencies": (MIN_FREQUENCY, 1.0 / MIN_FREQUENCY),
    "class_weights": (MIN_FREE_RATIO, MAX_FREE_RATIO),
    "switching": (MIN_SWITCH_RATE, MAX_SWITCH_RATE),
    **SITE_BOUNDS,
    SCALER: (MIN_SCALER, MAX_SCALER),
}


def get_vector(model: Model, names: Iterable[str] | None = None) -> FloatArray:
    """The free parameters of a model in log space.

    `names`: groups to restrict to; groups that are not free contribute nothing. None: all free groups.

    Returns float64 (n,), the groups in the order of ``model.free_parameters``.
    """
    return np.log(np.concatenate([np.empty(0), *map(model.ratios, _free_groups(model, names))]))


def get_bounds(model: Model, names: Iterable[str] | None = None) -> list[tuple[float, float]]:
    """(low, high) for each element of `get_vector`; arguments as there."""
    bounds = []
    for group in _free_groups(model, names):
        bounds += [(low, high) for low, high in np.log(_limits(model, group)).tolist()]
    return bounds


def set_vector(model: Model, vector: npt.ArrayLike, names: Iterable[str] | None = None) -> None:
    """Set the free parameters of a model from log space; elements outside `get_bounds` are moved to the bound.

    `get_vector` returns the elements again up to rounding; to undo exactly, keep a copy of the model.

    `vector`: (n,), as from `get_vector` with the same `names`.
    """
    values = np.asarray(vector, dtype=np.float64)
    groups = _free_groups(model, names)
    sizes = [len(model.ratios(group)) for group in groups]
    if values.shape != (sum(sizes),) or not np.isfinite(values).all():
        raise ValueError(f"expected {sum(sizes)} finite values for {groups}, found {values}")
    start = 0
    for group, size in zip(groups, sizes, strict=True):
        low, high = _limits(model, group).T
        part = np.clip(values[start : start + size], np.log(low), np.log(high))
        model.set_ratios(group, np.clip(np.exp(part), low, high))  # exp(log(high)) may exceed high
        start += size


def _limits(model: Model, group: str) -> FloatArray:
    """(n, 2) the bounds of each of ``model.ratios(group)``."""
    design = model.spec.named.rates
    if group == "rates" and design.limits is not None:
        return design.limits[design.is_free]
    return np.tile(RATIO_BOUNDS[group], (len(model.ratios(group)), 1))


def _free_groups(model: Model, names: Iterable[str] | None) -> tuple[str, ...]:
    """The free groups among `names` that have numbers, in the order of GROUPS."""
    wanted = GROUPS if names is None else tuple(names)
    unknown = [name for name in wanted if name not in GROUPS]
    if unknown:
        raise ValueError(f"expected parameter groups {GROUPS}, found {unknown}")
    return tuple(group for group in model.free_parameters if group in wanted and group != CATEGORIES)
