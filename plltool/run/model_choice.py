"""The results of the choice of a model, and of one for each part of an alignment."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from plltool.errors import shorten
from plltool.model.describe import describe_data, shorten_model
from plltool.model.spec import ModelSpec
from plltool.reports.blocks import Row, align
from plltool.run.run_result import RunResult
from plltool.schema import Keys


@dataclass(frozen=True)
class FittedModel:
    """A candidate, with all lengths and parameters optimised.

    Attributes
    ----------
    name, model : model string without values, and with all of them
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
class Choice(RunResult, ABC):
    """What is chosen for an alignment, or for its parts, and how.

    `n_patterns` counts the distinct columns of the parts that were chosen; the seed is that of the start tree.
    """

    seed: int
    criterion: str  # one of BIC, AIC and AICc
    lnl: float  # log-likelihood under what was chosen
    newick: str  # the tree with its lengths; mean ones if each part has its own

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

    @Keys(
        "lnl model n_taxa n_sites n_patterns device driver reason seconds tree=newick seed model_choice=summary"
        " warnings version software command:str? data",
        data=describe_data,
    )
    def as_record(self, command: str | None = None) -> dict[str, Any]:
        """The result as strings, numbers, lists and dictionaries, see `plltool.write_record`."""
        return {}

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
            scores = [own.aic, own.aicc, own.bic, own.aic_weight, own.aicc_weight, own.bic_weight]
            numbers = ("-" if number is None else f"{number:.3f}" for number in scores)
            rows.append((shorten(shorten_model(own.name)), f"{own.lnl:.3f}", str(own.n_parameters), *numbers))
        return "\n".join(align(rows))

    def describe(self) -> str:
        """The chosen model, in one line."""
        return f"best by {self.criterion}: {shorten_model(self.best.name)}"

    @Keys("criterion:str best:str candidates left_out:str[]", candidates=[FittedModel])
    def summary(self) -> dict[str, Any]:
        """What the record of any run says of the choice."""
        return {"best": self.best.name}


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
    name, members : of the part, or those of all parts joined; the names of the parts
    sites, n_sites, n_patterns : the columns as text, their number, and that of distinct ones
    model, lnl : model string with all values, optimised with those of the other parts, and lnL under it
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
        return "\n".join(f"{part.model}, {part.name} = {part.sites}" for part in self.parts)

    @property
    def scheme(self) -> str:
        """The chosen models without values, a line for each part: a partition file."""
        return "\n".join(f"{part.best.name}, {part.name} = {part.sites}" for part in self.parts)

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
        return "\n".join(align(rows))

    def describe(self) -> str:
        """How many models there are, and the score of all, in one line."""
        score: float = getattr(self, self.criterion.lower())
        merged = f", {len(self.data.parts)} partitions merged to {len(self.parts)}" if self.merges else ""
        models = "model of 1 partition" if len(self.parts) == 1 else f"models of {len(self.parts)} partitions"
        return f"{models} by {self.criterion}: {score:.3f}, lnL {self.lnl:.3f}{merged}"

    @Keys("brlen")
    def as_record(self, command: str | None = None) -> dict[str, Any]:
        """The same as for `Choice`, with `brlen`."""
        return super().as_record(command)

    @Keys(
        "criterion:str n_parameters:int aic:float aicc:float? bic:float parts merges",
        parts=[Keys("best:str", like=PartChoice)],
        merges=[Merge],
    )
    def summary(self) -> dict[str, Any]:
        """What the record of any run says of the choice."""
        return {"parts": [asdict(part) | {"best": part.best.name} for part in self.parts]}
