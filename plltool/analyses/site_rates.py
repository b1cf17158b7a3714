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

from plltool.alignment.partition import Dataset
from plltool.alignment.patterns import Patterns
from plltool.analyses.likelihood import Likelihood
from plltool.hardware import Hardware
from plltool.model.model import Model
from plltool.run.inputs import TreeLike
from plltool.run.memory import until_memory_suffices
from plltool.run.results import PerSiteRates
from plltool.tree.topology import Tree
from plltool.tree_search.multistart import SearchOutcome
from plltool.tree_search.progress import Listener, announce

_log = logging.getLogger("plltool")


def has_site_rates(models: Sequence[Model]) -> bool:
    """Whether sites have rates of their own (+PSR)."""
    return models[0].has_site_rates


def evaluate_site_rates(
    data: Dataset, tree: TreeLike, models: Sequence[Model], hardware: Hardware, listener: Listener
) -> tuple[TreeLike, list[Model], PerSiteRates | None]:
    """Optimise a tree under per-site rates: the tree, the model under gamma rates, and what was found.

    Without per-site rates tree and models are returned as they are.
    """
    if not has_site_rates(models):
        return tree, list(models), None
    with Likelihood(data, tree, models, **asdict(hardware)) as likelihood:
        announce("lengths, model and per-site rates")
        lnl = likelihood.optimise(listener=listener)
    return likelihood.tree, *_to_gamma(likelihood.models[0], lnl, likelihood.patterns[0])


def end_search(
    data: Dataset, tree: Tree, found: SearchOutcome, patterns: Patterns, brlen: str, hardware: Hardware
) -> tuple[PerSiteRates, Tree, list[Model]]:
    """What a search under per-site rates found, and its tree and model, optimised under gamma rates.

    Parameters
    ----------
    data, tree : the whole alignment, and the best tree with all taxa
    found, patterns : the end of the search and its patterns, in which identical sequences are left out
    """
    own, psr = _to_gamma(found.models[0], found.lnl, patterns)

    def attempt(hardware: Hardware) -> tuple[PerSiteRates, Tree, list[Model]]:
        with Likelihood(data, tree, own, brlen=brlen, **asdict(hardware)) as likelihood:
            likelihood.optimise()
        return psr, likelihood.tree, likelihood.models

    return until_memory_suffices(attempt, hardware)


def _to_gamma(model: Model, lnl: float, patterns: Patterns) -> tuple[list[Model], PerSiteRates]:
    """The model under gamma rates, and the description of per-site rates, whose lnL is logged."""
    gamma = model.under_gamma()
    _log.info("per-site rates: lnL %.6f; the tree is now evaluated under %s", lnl, gamma.spec)
    rates, shares = model.sites.categories()
    category_of = model.sites.category_of
    if category_of is None:
        category_of = np.zeros(patterns.n_patterns, dtype=np.intp)
    return [gamma], PerSiteRates(lnl, model.to_string(), rates, shares, category_of[patterns.site_pattern], model)
