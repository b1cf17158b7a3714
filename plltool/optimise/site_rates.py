"""Start values of rates over sites: with invariable sites or free rates lnL has more than one optimum."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plltool.errors import EngineError
from plltool.optimise.likelihood import TreeLikelihood


def choose_site_rates(likelihood: TreeLikelihood, names: Sequence[Sequence[str]]) -> None:
    """Set the rates over sites to the best start values, in each model in which they have never been optimised.

    The current branch lengths are used. `names` holds the groups of each model that will be optimised. lnL never falls.
    """
    models = likelihood.models
    starts = [model.site_starts(part) for model, part in zip(models, names, strict=True)]
    if not any(starts):
        return
    tried = [[model.sites, *part] for model, part in zip(models, starts, strict=True)]
    lnls = np.full((len(models), max(len(part) for part in tried)), -np.inf)
    for k in range(lnls.shape[1]):
        for model, part in zip(models, tried, strict=True):
            model.set_sites(part[min(k, len(part) - 1)])
        likelihood.model_changed()
        try:
            lnls[:, k] = likelihood.part_lnl()
        except EngineError:  # some pattern cannot be represented
            continue
    for model, part, values in zip(models, tried, lnls, strict=True):
        model.set_sites(part[min(int(np.argmax(values)), len(part) - 1)])
    likelihood.model_changed()
