"""What follows an analysis under per-site rates (+PSR): the same tree under a gamma distribution of rates.

lnL under per-site rates can be compared neither with that of other models nor between trees whose sites have other
categories. So the tree that was found is evaluated once more, with its lengths and the model's free parameters
optimised under +G4, as in RAxML (Stamatakis 2006). That lnL, these lengths and this model are the result.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict

import numpy as np

from plltool.alignment.patterns import Patterns
from plltool.hardware import Hardware
from plltool.model.model import Model
from plltool.model.partition import Dataset
from plltool.progress import Listener, announce
from plltool.run.inputs import TreeLike
from plltool.run.likelihood import Likelihood
from plltool.run.per_site_rates import PerSiteRates, SiteCategories
from plltool.run.results import format_scheme

_log = logging.getLogger("plltool")


def has_site_rates(models: Sequence[Model]) -> bool:
    """Whether sites have rates of their own (+PSR)."""
    return any(model.has_site_rates for model in models)


def evaluate_site_rates(
    data: Dataset, tree: TreeLike, models: Sequence[Model], brlen: str, hardware: Hardware, listener: Listener
) -> tuple[TreeLike, list[Model], PerSiteRates | None]:
    """Optimise a tree under per-site rates: the tree, the models under gamma rates, and what was found.

    Without per-site rates tree and models are returned as they are.
    """
    if not has_site_rates(models):
        return tree, list(models), None
    with Likelihood(data, tree, models, brlen=brlen, **asdict(hardware)) as likelihood:
        announce("lengths, model and per-site rates")
        lnl = likelihood.optimise(listener=listener)
    return likelihood.tree, *to_gamma(data, likelihood.models, lnl, likelihood.patterns)


def to_gamma(
    data: Dataset, models: Sequence[Model], lnl: float, patterns: Sequence[Patterns]
) -> tuple[list[Model], PerSiteRates]:
    """The models with gamma rates in place of per-site rates, and the description of these, whose lnL is logged."""
    gamma = [model.under_gamma() if model.has_site_rates else model for model in models]
    specs = "; ".join(dict.fromkeys(str(model.spec) for model in gamma))
    _log.info("per-site rates: lnL %.6f; the tree is now evaluated under %s", lnl, specs)
    parts = tuple(
        _describe(model, own) if model.has_site_rates else None for model, own in zip(models, patterns, strict=True)
    )
    return gamma, PerSiteRates(lnl, format_scheme(data, models), parts, tuple(models))


def _describe(model: Model, patterns: Patterns) -> SiteCategories:
    """The categories of the sites of a part."""
    category_of = model.sites.category_of
    if category_of is None:
        category_of = np.zeros(patterns.n_patterns, dtype=np.intp)
    return SiteCategories(*model.sites.categories(), category_of[patterns.site_pattern])
