"""What is found under per-site rates (+PSR), before a tree is evaluated under gamma rates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from plltool.arrays import FloatArray, IndexArray
from plltool.model.model import Model


@dataclass(frozen=True, eq=False)
class SiteCategories:
    """The per-site rates of a part.

    Attributes
    ----------
    rates, shares : (n_categories,), ascending, and the share of the part's sites that have each rate
    categories : (n_sites,) the category of each site of the part, from 0
    """

    rates: FloatArray
    shares: FloatArray
    categories: IndexArray


@dataclass(frozen=True, eq=False)
class PerSiteRates:
    """What was found under per-site rates, of all parts.

    Attributes
    ----------
    lnl : log-likelihood under these rates; it cannot be compared with that of other models
    model : model string with all parameter values; for several parts the lines of a partition file
    parts : the rates of each part; None for parts without +PSR
    fitted : the models of the parts, with the category of each pattern
    """

    lnl: float
    model: str
    parts: tuple[SiteCategories | None, ...]
    fitted: tuple[Model, ...]

    def as_record(self) -> dict[str, Any]:
        """All but the model objects, for a record."""
        parts = [
            None if part is None else {name: values.tolist() for name, values in vars(part).items()}
            for part in self.parts
        ]
        return {"lnl": self.lnl, "model": self.model, "parts": parts}

    def describe(self) -> str:
        """One line: lnL and the number of categories."""
        n = [len(part.rates) for part in self.parts if part is not None]
        categories = f"{sum(n)} categories" + (f" in {len(n)} parts" if len(n) > 1 else "")
        return f"lnL under per-site rates: {self.lnl:.6f}, {categories}; no other lnL compares with it"
