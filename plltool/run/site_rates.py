"""Per-site rates (+PSR), and what follows an analysis under them: the same tree under a gamma distribution of rates.

lnL under per-site rates can be compared neither with that of other models nor between trees whose sites have other
categories. So the tree that was found is evaluated once more, with its lengths and the model's free parameters
optimised under +G4, as in RAxML (Stamatakis 2006). That lnL, these lengths and this model are the result.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plltool.alignment.patterns import Patterns
from plltool.arrays import FloatArray, IndexArray
from plltool.errors import InputError
from plltool.model.describe import format_scheme
from plltool.model.model import Model
from plltool.model.partition import Dataset
from plltool.progress import log
from plltool.schema import Keys


@dataclass(frozen=True, eq=False)
class SiteCategories:
    """The rates of a part (n_categories,), ascending, the shares of its sites, and the category of each (n_sites,)."""

    rates: FloatArray
    shares: FloatArray
    categories: IndexArray


@dataclass(frozen=True, eq=False)
class PerSiteRates:
    """What was found under per-site rates, of all parts; no other lnL compares with this one."""

    lnl: float
    model: str  # see `Result`
    parts: tuple[SiteCategories | None, ...]  # the rates of each part; None for parts without +PSR
    fitted: tuple[Model, ...]  # the models of the parts, with the category of each pattern

    @Keys("lnl model", parts=[(None, Keys("rates:float[] shares:float[] categories:int[]"))])
    def as_record(self) -> dict[str, Any]:
        """All but the model objects, for a record."""
        parts = [part and {name: values.tolist() for name, values in vars(part).items()} for part in self.parts]
        return {"parts": parts}

    def describe(self) -> str:
        """One line: lnL and the number of categories."""
        n = [len(part.rates) for part in self.parts if part is not None]
        categories = f"{sum(n)} categories" + (f" in {len(n)} parts" if len(n) > 1 else "")
        return f"lnL under per-site rates: {self.lnl:.6f}, {categories}; no other lnL compares with it"


def refuse_site_rates(models: Sequence[Model], what: str) -> None:
    """Raise InputError for per-site rates (+PSR), which `what` cannot use."""
    for model in models:
        if model.has_site_rates:
            found = f"model {model.spec.shown}: {what} cannot use per-site rates (+PSR)"
            raise InputError(f"{found}, expected another model, such as one with +G4")


def to_gamma(
    data: Dataset, models: Sequence[Model], lnl: float, patterns: Sequence[Patterns]
) -> tuple[list[Model], PerSiteRates]:
    """The models with gamma rates in place of per-site rates, and the description of these, whose lnL is logged."""
    gamma = [model.under_gamma() if model.has_site_rates else model for model in models]
    specs = "; ".join(dict.fromkeys(str(model.spec) for model in gamma))
    log.info("per-site rates: lnL %.6f; the tree is now evaluated under %s", lnl, specs)
    parts: list[SiteCategories | None] = []
    for model, own in zip(models, patterns, strict=True):
        category_of = model.sites.category_of
        if category_of is None:
            category_of = np.zeros(own.n_patterns, dtype=np.intp)
        found = SiteCategories(*model.sites.categories(), category_of[own.site_pattern])
        parts.append(found if model.has_site_rates else None)
    return gamma, PerSiteRates(lnl, format_scheme(data, models), tuple(parts), tuple(models))
