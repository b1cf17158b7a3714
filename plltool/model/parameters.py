"""The parameters of a part's model, as `plltool.Likelihood` offers them: they can be read and set."""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from typing import Any

import numpy.typing as npt

from plltool.errors import InputError, show_name
from plltool.model.model import Model


def _value(name: str, kind: str, what: str) -> Any:
    """A property of `Parameters`: a value of the model, of a type `kind`, which can be set."""

    def get(parameters: Parameters) -> Any:
        return getattr(parameters._the_model(), name)

    def set_value(parameters: Parameters, value: Any) -> None:
        getattr(parameters._the_model(), f"set_{name}")(value)
        parameters._model_changed()

    get.__annotations__["return"] = kind
    return property(get, set_value, doc=what)


class Parameters(ABC):
    """Read and set the parameters of one model; subclasses say which model, and what a change makes stale.

    Once a subclass has set `_is_complete`, only attributes that it has can be set.
    """

    _is_complete = False

    def __setattr__(self, name: str, value: object) -> None:
        """Set an attribute; InputError if there is none of this name that can be set, or the value is of a wrong type.

        A slip such as ``likelihood.aplha = 0.5`` would change nothing otherwise.
        """
        if self._is_complete and name not in vars(self) and not isinstance(getattr(type(self), name, None), property):
            settable = (own for own in dir(type(self)) if getattr(getattr(type(self), own), "fset", None))
            similar = difflib.get_close_matches(name, settable, 1)
            hint = f"; did you mean {similar[0]!r}?" if similar else ""
            raise InputError(f"{type(self).__name__} has no attribute {name!r} that can be set{hint}")
        try:
            super().__setattr__(name, value)
        except (TypeError, ValueError) as error:
            raise InputError(f"{name}: found {show_name(str(value))}, expected numbers") from error

    @abstractmethod
    def _the_model(self) -> Model:
        """The model itself."""

    @abstractmethod
    def _model_changed(self) -> None:
        """Note that the model has changed."""

    alpha = _value("alpha", "float | None", "The shape of the gamma distribution of rates; None without +G.")
    pinv = _value("pinv", "float | None", "The proportion of invariable sites; None without +I.")
    scaler = _value(
        "scaler", "float", "The factor of the tree's branch lengths; 1 unless the lengths of parts are scaled."
    )
    exchangeabilities = _value(
        "exchangeabilities",
        "FloatArray",
        "One per pair of states, in the order of ``model.spec.pairs`` (DNA: AC AG AT CG CT GT); only ratios matter.",
    )
    frequencies = _value(
        "frequencies", "FloatArray", "One per state, in the order of ``model.spec.symbols`` (DNA: A C G T)."
    )

    def set_free_rates(self, rates: npt.ArrayLike, weights: npt.ArrayLike) -> None:
        """Set the rates and weights of +R, both (n_categories,); rates are scaled to mean 1."""
        self._the_model().set_free_rates(rates, weights)
        self._model_changed()

    @property
    def model(self) -> Model:
        """A copy of the model with its current values."""
        return self._the_model().copy()
