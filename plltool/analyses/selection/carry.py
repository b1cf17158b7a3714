"""Start values of one model from the values of another that has been optimised for the same data."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from plltool.arrays import ArrayLike, BoolArray, FloatArray, IndexArray
from plltool.constants import MAX_ALPHA, MAX_EXCHANGEABILITY, MIN_EXCHANGEABILITY, MIN_PINV, START_ALPHAS, START_PINVS
from plltool.model.model import Model
from plltool.model.rates import SiteRates
from plltool.model.spec import ModelSpec
from plltool.model.substitution import exchangeability_matrix, rates_matrix

ALPHA_FACTORS = (1.0, 1.5, 2.5)  # of alpha where invariable sites are added
NEW_WEIGHTS = (0.05, 0.15, 0.4)  # of a rate that is added to free rates
SLOWER, FASTER = (0.03, 0.2, 0.5), (2.0, 4.0)  # than all rates so far
SHARING_ROUNDS = 10  # over omega and kappas, whose changes overlap
NEARLY_ZERO = 1e-3  # rate of sites that were invariable, relative to the next one


class Start(NamedTuple):
    """A model, and the factor of the branch lengths that goes with it."""

    model: Model
    factor: float = 1.0


def carry_over(source: Model, spec: ModelSpec, empirical: ArrayLike | None, exact: bool = False) -> list[Start]:
    """The starts of a model from the values of another one; none if its rates over sites do not lead to the new ones.

    `empirical` (n_states,) are state frequencies of the data. If `exact`, there is only the start that describes the
    data as `source` does, if that is nested in the new model. With free rates it has the same rate twice, which is a
    saddle of lnL.
    """
    model = Model(spec, empirical)
    models = [model]
    if spec.frequency_mode == "optimised":
        model.set_frequencies(source.frequencies)
    classes = spec.named.rates.class_of_pair
    if spec.name == source.spec.name and "rates" in model.free_parameters:
        model.set_ratios("rates", source.ratios("rates"))
    elif classes is not None and not source.spec.is_mixture and source.spec.symbols == spec.symbols:
        relative = _mean_rates(source, model, classes)
        model.set_exchangeabilities(np.clip(relative / relative[-1], MIN_EXCHANGEABILITY, MAX_EXCHANGEABILITY))
    elif model.rate_parameters and source.spec.named.pairs == spec.named.pairs:
        models = _with_rate_parameters(source, model)
    starts = []
    for sites, factor in _carry_sites(source.sites, model.sites, exact):
        for changed in models:
            starts.append(Start(changed.copy(), factor))
            starts[-1].model.set_sites(sites)
    return starts[:1] if exact else starts


def _mean_rates(source: Model, model: Model, classes: IndexArray) -> FloatArray:
    """Exchangeabilities, equal within `classes`, that keep the number of changes that `source` expects in each.

    Where each change has a rate of its own, such rates.
    """
    pi = source.frequencies
    if source.spec.is_directed:  # expected numbers of changes from one state to another, up to a common factor
        flow = pi[:, None] * rates_matrix(source.exchangeabilities)
    else:
        flow = exchangeability_matrix(source.exchangeabilities) * np.outer(pi, pi)
    if model.spec.is_directed:
        at = ~np.eye(len(pi), dtype=bool)
        changes, chance = flow[at], np.repeat(pi, len(pi) - 1)
    else:
        changes, chance = (flow + flow.T)[np.triu_indices(len(pi), 1)], _chance(model.frequencies)
    return np.asarray((np.bincount(classes, changes) / np.bincount(classes, chance))[classes])


def _with_rate_parameters(source: Model, model: Model) -> list[Model]:
    """With omega and kappas of the same changes; if published exchangeabilities differ, also with as many changes.

    The others are 1, which makes no difference, or, where sites form classes, as they start.
    """
    design, given, other = model.spec.named.rates, source.spec.named.rates, model.copy()
    if np.array_equal(given.base, design.base):
        values = list(source.rate_parameters.values())
        for name, place, is_free in zip(design.names, design.places_in(given), design.is_free, strict=True):
            if is_free and (place is not None or design.n_classes == 1):
                other.set_rate_parameter(name, 1.0 if place is None else values[place])
        return [other]
    assert design.limits is not None
    for _ in range(SHARING_ROUNDS):
        for name, concerned, limits in zip(design.names, design.powers.T > 0, design.limits, strict=True):
            factor = _odds(_changes(source), concerned) / _odds(_changes(other), concerned)
            other.set_rate_parameter(name, float(np.clip(factor * other.rate_parameters[name], *limits)))
    return [model, other]


def _odds(changes: FloatArray, concerned: BoolArray) -> float:
    return float(changes[concerned].sum() / changes[~concerned].sum())


def _changes(model: Model) -> FloatArray:
    """(n_pairs,) the expected numbers of changes between pairs of states, up to a common factor."""
    return np.asarray(model.exchangeabilities * _chance(model.frequencies))


def _chance(frequencies: FloatArray) -> FloatArray:
    """(n_pairs,) products of the frequencies of two states."""
    return np.outer(frequencies, frequencies)[np.triu_indices(len(frequencies), 1)]


def _carry_sites(old: SiteRates, new: SiteRates, exact: bool) -> Iterator[tuple[SiteRates, float]]:
    """Rates over sites of the kind of `new`, and factors of lengths, from the values of `old`; the exact ones first."""
    if new.kind == "free" and not new.invariable:
        yield from _free_starts(old, new, exact)
    elif old.kind != "free" or new.kind == "free":
        for sites in _mixed_starts(old, new):
            yield sites, 1.0


def _mixed_starts(old: SiteRates, new: SiteRates) -> Iterator[SiteRates]:
    """Starts with gamma rates, invariable sites, both or neither."""
    alphas: tuple[float | None, ...] = (None,)
    pinvs: tuple[float | None, ...] = (None,)
    if new.kind == "gamma":
        alphas = (MAX_ALPHA, *START_ALPHAS)
        if old.alpha is not None:
            alphas = (old.alpha,) if old.invariable == new.invariable else tuple(old.alpha * f for f in ALPHA_FACTORS)
    if new.invariable:
        pinvs = (MIN_PINV, *START_PINVS) if old.pinv is None else (old.pinv,)
    for alpha in alphas:
        for pinv in pinvs:
            yield replace(new, alpha=alpha, pinv=pinv)


def _free_starts(old: SiteRates, new: SiteRates, exact: bool) -> Iterator[tuple[SiteRates, float]]:
    """Starts with free rates: with the old rates if they are as many, else with one more, or if `exact` with copies."""
    rates, weights = old.categories()
    if old.invariable:
        rates = np.append(NEARLY_ZERO * rates[1], rates[1:])
    missing = new.n_categories - len(rates)
    if exact and missing >= 0:
        heaviest = int(np.argmax(weights))
        shared = np.append(weights, np.full(missing, weights[heaviest] / (missing + 1)))
        shared[heaviest] = weights[heaviest] / (missing + 1)
        yield _with_free_rates(new, np.append(rates, np.full(missing, rates[heaviest])), shared)
    elif missing == 0:
        yield _with_free_rates(new, rates, weights)
    elif missing == 1:
        ranked = np.sort(rates)
        between = np.sqrt(ranked[1:] * ranked[:-1])
        for rate in (*(ranked[0] * np.array(SLOWER)), *between, *(ranked[-1] * np.array(FASTER))):
            for weight in NEW_WEIGHTS:
                yield _with_free_rates(new, np.append(rates, rate), np.append((1 - weight) * weights, weight))


def _with_free_rates(new: SiteRates, rates: FloatArray, weights: FloatArray) -> tuple[SiteRates, float]:
    """Free rates, ascending and scaled to mean 1, and the factor of lengths that makes up for the scale."""
    order = np.argsort(rates, kind="stable")
    mean = float(weights @ rates)
    scaled = tuple((rates[order] / mean).tolist())
    return replace(new, rates=scaled, weights=tuple(weights[order].tolist())), mean
