"""The result of the choice of a model for each part of an alignment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from plltool.reports.blocks import Row
from plltool.run.model_choice import Choice, FittedModel, format_table


@dataclass(frozen=True)
class Merge:
    """A merge: the names of the two groups of parts, and the score of the scheme with it."""

    first: str
    second: str
    score: float


@dataclass(frozen=True)
class PartChoice:
    """The model of a part, or of several that were merged.

    Attributes
    ----------
    name : of the part, or those of all parts joined
    members : names of the parts
    sites : the columns, as text
    n_sites, n_patterns : numbers of columns, and of distinct ones
    model : model string with all values, optimised with those of the other parts
    lnl : log-likelihood under it
    candidates : the models that were fitted, the best one first, on the branch lengths that the parts began with
    left_out : names of those that were clearly worse, and not optimised
    """

    name: str
    members: tuple[str, ...]
    sites: str
    n_sites: int
    n_patterns: int
    model: str
    lnl: float
    candidates: tuple[FittedModel, ...]
    left_out: tuple[str, ...]

    @property
    def best(self) -> FittedModel:
        """The chosen model."""
        return self.candidates[0]


@dataclass(frozen=True, eq=False, kw_only=True)
class SchemeChoice(Choice):
    """The models of the parts of an alignment, and which parts share one; see `Choice` for more attributes.

    The columns of its table are name, sites, n_sites, n_patterns, best, lnl and model, of each part.

    Attributes
    ----------
    parts : in the order of the alignment's parts; those that were merged are one
    merges : what was merged, in turn
    brlen : how parts share branch lengths
    n_parameters : free parameters of all models, and branch lengths
    aic, aicc, bic : scores of all parts together; None for AICc if there are too few sites
    """

    parts: tuple[PartChoice, ...]
    merges: tuple[Merge, ...]
    brlen: str
    n_parameters: int
    aic: float
    aicc: float | None
    bic: float

    @property
    def model(self) -> str:
        """The chosen models with all values, optimised together, a line for each part."""
        return _lines(self.parts, [part.model for part in self.parts])

    @property
    def scheme(self) -> str:
        """The chosen models without values, a line for each part: a partition file."""
        return _lines(self.parts, [part.best.name for part in self.parts])

    def __repr__(self) -> str:
        numbers = f"{len(self.data.parts)} partitions, {len(self.parts)} models"
        return f"<{type(self).__name__}: {numbers} by {self.criterion}, lnL {self.lnl:.3f}>"

    def _rows(self) -> Sequence[Row]:
        names = "name", "sites", "n_sites", "n_patterns", "best", "lnl", "model"
        return [
            {name: part.best.name if name == "best" else getattr(part, name) for name in names} for part in self.parts
        ]

    def table(self, most: int | None = None) -> str:
        """The chosen models as text, one a line; at most as many as given."""
        rows = [("partition", "sites", "model", "lnL", "k")]
        for part in self.parts[:most]:
            rows.append((part.name, str(part.n_sites), part.best.name, f"{part.lnl:.3f}", str(part.best.n_parameters)))
        return format_table(rows)

    def describe(self) -> str:
        """How many models there are, and the score of all, in one line."""
        score = {"BIC": self.bic, "AIC": self.aic, "AICc": self.aicc}[self.criterion]
        merged = f", {len(self.data.parts)} partitions merged to {len(self.parts)}" if self.merges else ""
        models = "model of 1 partition" if len(self.parts) == 1 else f"models of {len(self.parts)} partitions"
        return f"{models} by {self.criterion}: {score:.3f}, lnL {self.lnl:.3f}{merged}"

    def as_record(self, command: str | None = None) -> dict[str, Any]:
        """As that of `Choice`, with `brlen`."""
        return super().as_record(command) | {"brlen": self.brlen}

    def summary(self) -> dict[str, Any]:
        """What the record of any run says of the choice."""
        scores = {name: getattr(self, name) for name in ("n_parameters", "aic", "aicc", "bic")}
        parts = [asdict(part) | {"best": part.best.name} for part in self.parts]
        merges = [asdict(merge) for merge in self.merges]
        return {"criterion": self.criterion, **scores, "parts": parts, "merges": merges}


def _lines(parts: Sequence[PartChoice], models: Sequence[str]) -> str:
    """A partition file."""
    pairs = zip(parts, models, strict=True)
    return "\n".join(f"{model}, {part.name} = {part.sites}" for part, model in pairs)
