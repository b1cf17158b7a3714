"""A model as an engine sees it: a list of mixture components, as arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from plltool.arrays import FloatArray, IndexArray


@dataclass(frozen=True)
class Components:
    """C mixture components over S states; +G4 is four components with the same eigensystem.

    The rate matrix of component c is ``Q = right @ diag(eigenvalues) @ left`` with ``left = inv(right)``, scaled to
    one expected substitution per unit of branch length, and ``P(t) = right @ diag(exp(eigenvalues * rate * t)) @ left``
    (Felsenstein 2004, chapter 13).

    Attributes
    ----------
    eigenvalues : float64 (C, S)
    right : float64 (C, S, S), right eigenvectors in columns
    left : float64 (C, S, S), the inverse of ``right``
    frequencies : float64 (C, S), stationary frequencies; each row sums to 1
    rates : float64 (C,), relative rates; their weighted mean is 1 in a rate mixture
    weights : float64 (C,), summing to 1; all 1 where each pattern has one component
    category_of : (n_patterns,) the component of each pattern, where each has only one (+PSR); None for a mixture, in
        which each pattern has all of them
    """

    eigenvalues: FloatArray
    right: FloatArray
    left: FloatArray
    frequencies: FloatArray
    rates: FloatArray
    weights: FloatArray
    category_of: IndexArray | None = None

    @property
    def n_components(self) -> int:
        return len(self.rates)

    @property
    def n_states(self) -> int:
        return self.frequencies.shape[1]

    def transition_matrices(self, length: float) -> FloatArray:
        """float64 (C, S, S): P of a branch of this length; rows sum to 1 up to rounding, no entry is negative."""
        grow = np.expm1(self.eigenvalues * self.rates[:, None] * length)
        change: FloatArray = (self.right * grow[:, None, :]) @ self.left
        return np.maximum(change + np.eye(self.n_states), 0.0)

    def alone(self, component: int) -> Components:
        """The same components, one with weight 1 and all others with weight 0."""
        return replace(self, weights=np.eye(self.n_components)[component])

    def one_for_each_pattern(self, category_of: IndexArray) -> Components:
        """The same components, of which each pattern has one, with weight 1."""
        return replace(self, weights=np.ones(self.n_components), category_of=category_of)

    def category(self, component: int) -> Components:
        """One component, as the model of the patterns that have no other."""
        one = slice(component, component + 1)
        names = ("eigenvalues", "right", "left", "frequencies", "rates", "weights")
        return Components(**{name: getattr(self, name)[one] for name in names})

    def masses(self) -> FloatArray:
        """float64 (C, S): weight times frequency."""
        return self.weights[:, None] * self.frequencies
