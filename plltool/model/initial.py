"""The start values of a model's parameters."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plltool.arrays import FloatArray
from plltool.constants import DEFAULT_SWITCH_RATES
from plltool.errors import InputError
from plltool.model import mixtures
from plltool.model.codons import base_frequencies, product_frequencies
from plltool.model.named import COUNTED_MODES
from plltool.model.nonreversible import frequencies_of_rates
from plltool.model.rates import SiteRates
from plltool.model.spec import ModelSpec
from plltool.model.values import check_frequencies


def initial_rates(spec: ModelSpec) -> FloatArray:
    """The start values of the parameters of the exchangeabilities."""
    return spec.named.rates.starts if spec.rates is None else np.array(spec.rates)


def initial_class_weights(spec: ModelSpec) -> FloatArray:
    """The start weight of each class of a mixture; a single class for other models."""
    if spec.class_weights is not None:
        return np.array(spec.class_weights)
    if mixtures.has_matrices(spec.name):
        return mixtures.read_matrices(spec.name).weights
    if spec.profiles is not None:
        weights = mixtures.read_profiles(spec.profiles).weights
        if spec.has_frequencies_by_class:
            return weights
        return np.append(1.0, weights * len(weights)) / (len(weights) + 1)
    return np.array(spec.named.rates.class_weights)


def initial_switch_rates(spec: ModelSpec) -> FloatArray:
    """The start values of the rates from off to on and from on to off."""
    return np.array(spec.switch_rates or DEFAULT_SWITCH_RATES)


def initial_sites(spec: ModelSpec, invariable: float | None = None) -> SiteRates:
    """The start values of rates over sites; with +IC the share of invariable sites is that of the alignment."""
    if not spec.sites.counted:
        return spec.sites.filled()
    if invariable is None:
        raise ValueError(f"model {spec.shown} needs the proportion of invariable sites of the alignment")
    return spec.sites.with_share(invariable).filled()


def initial_frequencies(spec: ModelSpec, empirical: npt.ArrayLike | None = None) -> FloatArray:
    """The start frequencies; equal ones if classes have frequencies of their own."""
    if spec.is_directed:
        return frequencies_of_rates(spec.named.rates.exchangeabilities(initial_rates(spec)))
    if spec.frequencies is not None:
        return np.array(spec.frequencies)
    if spec.frequency_mode == "equal":
        return np.full(len(spec.symbols), 1.0 / len(spec.symbols))
    if spec.frequency_mode not in COUNTED_MODES:
        return spec.named.frequencies
    if empirical is None:
        raise ValueError(f"model {spec.shown} needs the empirical frequencies of the alignment")
    if spec.frequency_mode != "empirical":
        at_positions = base_frequencies(np.ravel(empirical), spec.symbols, spec.frequency_mode == "f3x4")
        empirical = product_frequencies(at_positions, spec.symbols)
    try:
        return np.array(check_frequencies(np.ravel(empirical).tolist(), spec.symbols))
    except InputError as problem:
        raise InputError(f"model {spec.shown}: empirical frequencies cannot be used: {problem}") from None
