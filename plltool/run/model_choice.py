"""The result of the choice of a model: all that were fitted, best first."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from plltool.constants import VERSION
from plltool.errors import shorten
from plltool.model.describe import shorten_model
from plltool.model.description import describe_data
from plltool.model.partition import Dataset
from plltool.model.spec import ModelSpec
from plltool.reports.blocks import Row
from plltool.reports.shown import Shown
from plltool.run.software import software_versions

COLUMNS = ("AIC", "AICc", "BIC")  # of a table


@dataclass(frozen=True)
class FittedModel:
    """A candidate, with all lengths and parameters optimised.

    Attributes
    ----------
    name : model string without values
    model : model string with all values
    lnl : log-likelihood
    n_parameters : free parameters of the model, and branch lengths
    aic, aicc, bic : scores; lower is better. None for AICc if there are too few sites
    aic_weight, aicc_weight, bic_weight : shares of the evidence among all models that were fitted; None likewise
    """

    name: str
    model: str
    lnl: float
    n_parameters: int
    aic: float
    aicc: float | None
    bic: float
    aic_weight: float
    aicc_weight: float | None
    bic_weight: float

    def score(self, criterion: str) -> float | None:
        """AIC, AICc or BIC."""
        value: float | None = getattr(self, criterion.lower())
        return value


@dataclass(frozen=True, eq=False, kw_only=True)
class Choice(Shown, ABC):
    """What is chosen for an alignment, or for its parts, and how.

    Attributes
    ----------
    criterion : one of BIC, AIC and AICc
    lnl : log-likelihood under what was chosen
    newick : the tree with its lengths; mean ones if each part has its own
    data : the alignment in the parts that were given
    n_patterns : number of distinct columns, added up over the parts that were chosen
    device, driver, reason : the device that did the arithmetic, its driver, and why it was chosen
    seed : of the start tree
    seconds : wall time
    warnings : what a user should know, one line each
    version : version of plltool
    """

    criterion: str
    lnl: float
    newick: str
    data: Dataset
    n_patterns: int
    device: str
    driver: str
    reason: str
    seed: int
    seconds: float
    warnings: tuple[str, ...]
    version: str = VERSION

    @property
    @abstractmethod
    def model(self) -> str:
        """What was chosen, with all values: a model string, or the lines of a partition file."""

    @property
    @abstractmethod
    def scheme(self) -> str:
        """The same without values."""

    @abstractmethod
    def summary(self) -> dict[str, Any]:
        """What the record of any run says of the choice."""

    def as_record(self, command: str | None = None) -> dict[str, Any]:
        """The result as strings, numbers, lists and dictionaries, see `plltool.write_record`."""
        return {
            "lnl": self.lnl,
            "model": self.model,
            "n_taxa": self.data.n_taxa,
            "n_sites": self.data.n_sites,
            "n_patterns": self.n_patterns,
            "device": self.device,
            "driver": self.driver,
            "reason": self.reason,
            "seconds": round(self.seconds, 3),
            "tree": self.newick,
            "seed": self.seed,
            "model_choice": self.summary(),
            "warnings": list(self.warnings),
            "version": self.version,
            "software": software_versions(),
            "command": command,
            "data": describe_data(self.data),
        }

    def to_json(self, command: str | None = None) -> str:
        """`as_record` as JSON text."""
        return json.dumps(self.as_record(command), indent=1, allow_nan=False)

    def texts(self, command: str | None = None) -> dict[str, str]:
        """The files that `plltool select-model` writes, by the ends of their names."""
        return {"select-model.model": f"{self.scheme}\n", "select-model.json": self.to_json(command) + "\n"}


@dataclass(frozen=True, eq=False, kw_only=True)
class ModelChoice(Choice):
    """The models that were fitted to an alignment, and which of them is the best; see `Choice` for more attributes.

    The columns of its table are the attributes of `FittedModel`.

    Attributes
    ----------
    candidates : the models that were fitted, the best one by the criterion first
    left_out : names of the candidates that were clearly worse, and not optimised
    spec : the specification of the best model, without values
    """

    candidates: tuple[FittedModel, ...]
    left_out: tuple[str, ...]
    spec: ModelSpec

    @property
    def best(self) -> FittedModel:
        """The chosen model."""
        return self.candidates[0]

    @property
    def model(self) -> str:
        """Model string of the chosen model with all values."""
        return self.best.model

    @property
    def scheme(self) -> str:
        """Model string of the chosen model without values."""
        return self.best.name

    def __repr__(self) -> str:
        fitted = f"{len(self.candidates)} models fitted, {len(self.left_out)} left out"
        return f"<{type(self).__name__}: {self.best.name} by {self.criterion}, lnL {self.lnl:.3f}, {fitted}>"

    def _rows(self) -> Sequence[Row]:
        rows = [asdict(own) for own in self.candidates]
        for row in rows:
            row["model"] = row.pop("model")  # the longest text comes last
        return rows

    def table(self, most: int | None = None) -> str:
        """The candidates as text, one a line, the best one first; at most as many as given."""
        rows: list[tuple[str, ...]] = [("model", "lnL", "k", "AIC", "AICc", "BIC", "w-AIC", "w-AICc", "w-BIC")]
        for own in self.candidates[:most]:
            numbers = [own.score(name) for name in COLUMNS]
            shares = [own.aic_weight, own.aicc_weight, own.bic_weight]
            rows.append(
                (
                    shorten(shorten_model(own.name)),
                    f"{own.lnl:.3f}",
                    str(own.n_parameters),
                    *("-" if number is None else f"{number:.3f}" for number in numbers),
                    *("-" if share is None else f"{share:.3f}" for share in shares),
                )
            )
        return format_table(rows)

    def describe(self) -> str:
        """The chosen model, in one line."""
        return f"best by {self.criterion}: {shorten_model(self.best.name)}"

    def summary(self) -> dict[str, Any]:
        """What the record of any run says of the choice."""
        return {
            "criterion": self.criterion,
            "best": self.best.name,
            "candidates": [asdict(own) for own in self.candidates],
            "left_out": list(self.left_out),
        }


def format_table(rows: Sequence[Sequence[str]]) -> str:
    """Rows of text in columns; all but the first column are aligned to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join([row[0].ljust(widths[0]), *cells]))
    return "\n".join(lines)


def finite_or_none(value: float) -> float | None:
    """A number, or None in place of infinity and NaN, which JSON lacks."""
    return value if math.isfinite(value) else None
