"""Classes of sites that differ in their exchangeabilities or frequencies, and how they are crossed with rates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plltool.arrays import FloatArray, IndexArray
from plltool.model.rates import SiteRates
from plltool.model.substitution import exchangeability_matrix


@dataclass(frozen=True, eq=False)
class Classes:
    """The classes of sites in a model, before rates vary over sites."""

    exchangeabilities: FloatArray  # (n_classes, n_pairs) in the order of `pair_names`; one row if classes share them
    frequencies: FloatArray  # (n_classes, n_states)
    rates: FloatArray  # (n_classes,) relative rates
    weights: FloatArray  # (n_classes,) summing to 1

    def processes(self) -> tuple[FloatArray, FloatArray]:
        """Exchangeabilities (n_classes, S, S) and frequencies (n_classes, S)."""
        matrices = exchangeability_matrix(self.exchangeabilities)
        return np.broadcast_to(matrices, (len(self.frequencies), *matrices.shape[1:])), self.frequencies

    def cross(self, sites: SiteRates, is_tied: bool) -> tuple[IndexArray, FloatArray, FloatArray, FloatArray]:
        """The class, frequencies, rate and weight of each component; see `Model.components` for their order."""
        rates, weights = sites.components()
        if len(self.frequencies) == 1:
            return np.zeros(len(rates), np.intp), np.repeat(self.frequencies, len(rates), axis=0), rates, weights
        first = int(sites.invariable)
        class_of = np.arange(len(self.frequencies))
        if not is_tied:
            class_rates = self.rates / (self.weights @ self.rates)
            class_of = np.repeat(class_of, len(rates) - first)
            rates = np.append(rates[:first], np.outer(class_rates, rates[first:]))
            weights = np.append(weights[:first], np.outer(self.weights, weights[first:]))
        frequencies = self.frequencies[class_of]
        if first:
            frequencies = np.vstack([self.weights @ self.frequencies, frequencies])
            class_of = np.append(0, class_of)
        return class_of, frequencies, rates, weights
