"""How rates vary over sites in a model with its current parameter values."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from plltool.errors import InputError
from plltool.model.rates import SiteRates
from plltool.model.spec import ModelSpec
from plltool.model.values import check_alpha, check_free_rates, check_pinv


class RatesOverSites:
    """The part of a `Model` that says how rates vary over sites: gamma, free or per-site rates, invariable sites.

    spec : the specification of the model
    """

    spec: ModelSpec
    _sites: SiteRates
    _sites_at_start: bool

    @property
    def alpha(self) -> float | None:
        """The shape of the gamma distribution; None without +G."""
        return self._sites.alpha

    @property
    def pinv(self) -> float | None:
        """The share of invariable sites; None without +I."""
        return self._sites.pinv

    @property
    def sites(self) -> SiteRates:
        """How rates vary over sites, with all values filled in."""
        return self._sites

    @property
    def has_site_rates(self) -> bool:
        """Whether each site has one rate (+PSR) rather than a mixture of rates."""
        return self._sites.kind == "psr"

    def set_alpha(self, value: float) -> None:
        """Set the shape of the gamma distribution."""
        if self._sites.kind != "gamma":
            raise InputError(f"model {self.spec.shown} has no gamma rates (+G), so alpha cannot be set")
        self.set_sites(replace(self._sites, alpha=check_alpha(value)))

    def set_pinv(self, value: float) -> None:
        """Set the share of invariable sites."""
        if not self._sites.invariable:
            raise InputError(f"model {self.spec.shown} has no invariable sites (+I), so their share cannot be set")
        self.set_sites(replace(self._sites, pinv=check_pinv(value)))

    def set_free_rates(self, rates: npt.ArrayLike, weights: npt.ArrayLike) -> None:
        """Set the rates and weights of +R, both (n_categories,); rates are scaled to mean 1."""
        given = tuple(np.ravel(rates).tolist()), tuple(np.ravel(weights).tolist())
        n = self._sites.n_categories
        if self._sites.kind != "free":
            raise InputError(f"model {self.spec.shown} has no free rates (+R), so they cannot be set")
        if [len(values) for values in given] != [n, n]:
            raise InputError(f"expected {n} rates and {n} weights, found {len(given[0])} and {len(given[1])}")
        checked = check_free_rates(*given)
        self.set_sites(replace(self._sites, rates=checked[0], weights=checked[1]))

    def set_sites(self, sites: SiteRates) -> None:
        """Set how rates vary over sites: of the specification's kind, with all values."""
        self._sites = sites
        self._sites_at_start = False

    def site_starts(self, groups: Collection[str]) -> list[SiteRates]:
        """Rates over sites to try before free groups are optimised for the first time; empty if one start is enough."""
        return self._sites.starts(groups) if self._sites_at_start else []
