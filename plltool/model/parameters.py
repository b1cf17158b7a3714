"""The values of a model that something else holds and is told of: what a live likelihood offers of a part's model."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy.typing as npt

from plltool.arrays import FloatArray
from plltool.model.model import Model


class Parameters(ABC):
    """The values of one model."""

    @abstractmethod
    def _the_model(self) -> Model:
        """The model that is changed."""

    @abstractmethod
    def _model_changed(self) -> None:
        """Let the next answer heed it."""

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
        """What the tree's branch lengths are multiplied by; 1 unless lengths of parts are scaled."""
        return self._the_model().scaler

    @scaler.setter
    def scaler(self, value: float) -> None:
        self._the_model().set_scaler(value)
        self._model_changed()

    def set_free_rates(self, rates: npt.ArrayLike, weights: npt.ArrayLike) -> None:
        """Set the rates and weights of +R, both (n_categories,); rates are brought to mean 1."""
        self._the_model().set_free_rates(rates, weights)
        self._model_changed()

    @property
    def exchangeabilities(self) -> FloatArray:
        """Of each pair of states, in the order of ``model.spec.pairs`` (DNA: AC AG AT CG CT GT); only ratios matter."""
        return self._the_model().exchangeabilities

    @exchangeabilities.setter
    def exchangeabilities(self, values: npt.ArrayLike) -> None:
        self._the_model().set_exchangeabilities(values)
        self._model_changed()

    @property
    def frequencies(self) -> FloatArray:
        """Of each state, in the order of ``model.spec.symbols`` (DNA: A C G T)."""
        return self._the_model().frequencies

    @frequencies.setter
    def frequencies(self, values: npt.ArrayLike) -> None:
        self._the_model().set_frequencies(values)
        self._model_changed()

    @property
    def model(self) -> Model:
        """A copy of the model with its present values."""
        return self._the_model().copy()
