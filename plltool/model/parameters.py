"""The parameters of a part's model, as `plltool.Likelihood` offers them: they can be read and set."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy.typing as npt

from plltool.arrays import FloatArray
from plltool.model.model import Model


class Parameters(ABC):
    """Read and set the parameters of one model; subclasses say which model, and what a change makes stale."""

    @abstractmethod
    def _the_model(self) -> Model:
        """The model itself."""

    @abstractmethod
    def _model_changed(self) -> None:
        """Note that the model has changed."""

    @property
    def alpha(self) -> float | None:
        """The shape of the gamma distribution of rates; None without +G."""
        return self._the_model().alpha

    @alpha.setter
    def alpha(self, value: float) -> None:
        self._the_model().set_alpha(value)
        self._model_changed()

    @property
    def pinv(self) -> float | None:
        """The share of invariable sites; None without +I."""
        return self._the_model().pinv

    @pinv.setter
    def pinv(self, value: float) -> None:
        self._the_model().set_pinv(value)
        self._model_changed()

    @property
    def scaler(self) -> float:
        """The factor of the tree's branch lengths; 1 unless the lengths of parts are scaled."""
        return self._the_model().scaler

    @scaler.setter
    def scaler(self, value: float) -> None:
        self._the_model().set_scaler(value)
        self._model_changed()

    def set_free_rates(self, rates: npt.ArrayLike, weights: npt.ArrayLike) -> None:
        """Set the rates and weights of +R, both (n_categories,); rates are scaled to mean 1."""
        self._the_model().set_free_rates(rates, weights)
        self._model_changed()

    @property
    def exchangeabilities(self) -> FloatArray:
        """One per pair of states, in the order of ``model.spec.pairs`` (DNA: AC AG AT CG CT GT); only ratios matter."""
        return self._the_model().exchangeabilities

    @exchangeabilities.setter
    def exchangeabilities(self, values: npt.ArrayLike) -> None:
        self._the_model().set_exchangeabilities(values)
        self._model_changed()

    @property
    def frequencies(self) -> FloatArray:
        """One per state, in the order of ``model.spec.symbols`` (DNA: A C G T)."""
        return self._the_model().frequencies

    @frequencies.setter
    def frequencies(self, values: npt.ArrayLike) -> None:
        self._the_model().set_frequencies(values)
        self._model_changed()

    @property
    def model(self) -> Model:
        """A copy of the model with its current values."""
        return self._the_model().copy()
