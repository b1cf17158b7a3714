"""What an instance knows of the model: eigensystems, categories, frequencies, and the matrices made of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plltool.arrays import FloatArray
from plltool.beagle.codes import (
    NONE,
    BeagleError,
    Code,
    Flag,
    Sizes,
    check_array,
    check_index,
    check_indices,
    check_same_length,
)
from plltool.engine.buffers import AnyBuffers
from plltool.engine.contract import Combination


@dataclass(frozen=True)
class EigenSystem:
    """Q = right @ B @ left: B is diagonal, but for [[a, b], [-b, a]] at neighbours with eigenvalues a +- bi.

    The first of each pair has an even place, as the engines want it.
    """

    values: FloatArray  # float64 (S,) real parts
    turns: FloatArray | None  # float64 (S,) imaginary parts; None without EIGEN_COMPLEX
    right: FloatArray  # float64 (S, S)
    left: FloatArray  # float64 (S, S)

    @classmethod
    def of(cls, right: FloatArray, left: FloatArray, values: FloatArray) -> EigenSystem:
        """`values` (S,), or (2, S) with the imaginary parts; pairs are found from the front, and come first."""
        n = len(right)
        if values.size == n:
            return cls(values, None, right, left)
        parts, firsts, place = values.reshape(2, n), [], 0
        while place < n - 1:
            if parts[1, place] != 0:
                firsts.append(place)
                place += 1
            place += 1
        pairs = [place + k for place in firsts for k in (0, 1)]
        order = pairs + [place for place in range(n) if place not in pairs]
        return cls(parts[0, order], parts[1, order], right[:, order], left[order])

    def packed(self, rates: FloatArray) -> FloatArray:
        """The array `eigen` of the engine's contract, for categories with these rates (C,)."""
        scaled = [np.multiply.outer(rates, part) for part in (self.values, self.turns) if part is not None]
        both = np.tile(np.concatenate([self.right.T.ravel(), self.left.ravel()]), (len(rates), 1))
        return np.concatenate([scaled[0], both, *scaled[1:]], axis=1)[None]


class ModelBuffers(Sizes, ABC):
    """The calls of an instance that concern its model; see BEAGLE's of the same names.

    A matrix is (category_count, state_count, state_count); one that is not given is 0. Tips of unknown state meet the
    sums of a matrix' rows, which are 1 in a matrix of probabilities and 0 in its derivatives.
    """

    def __init__(self, sizes: Sizes, flags: Flag):
        super().__init__(**vars(sizes))
        self.flags = flags
        models, n, c = max(self.eigen_buffer_count, 1), self.state_count, self.category_count
        self._eigen: dict[int, EigenSystem] = {}
        self._rates, self._weights = np.ones((models, c)), np.full((models, c), 1 / c)
        self._frequencies = np.full((models, n), 1 / n)

    @abstractmethod
    def _engines(self) -> list[AnyBuffers]:
        """The engines of all partitions, which have the matrices."""

    def _check_model(self, what: str, index: int) -> int:
        return check_index(what, index, self.eigen_buffer_count)

    def _check_matrices(self, indices: npt.ArrayLike) -> list[int]:
        found: list[int] = check_indices("matrix", indices, self.matrix_buffer_count).tolist()
        return found

    # --- the model ------------------------------------------------------------------------------------------

    def set_eigen_decomposition(
        self,
        eigen_index: int,
        eigen_vectors: npt.ArrayLike,
        inverse_eigen_vectors: npt.ArrayLike,
        eigen_values: npt.ArrayLike,
    ) -> None:
        """Set a rate matrix by its eigenvectors in columns, their inverse, and the eigenvalues (S,).

        With EIGEN_COMPLEX there are 2 S eigenvalues, real parts first. Of a pair a +- bi, which is consecutive, the
        columns of `eigen_vectors` are the real and the imaginary part of the first one's vector.
        With INVEVEC_TRANSPOSED the inverse comes transposed.
        """
        index, n = self._check_model("eigensystem", eigen_index), self.state_count
        right = check_array("eigenvectors", eigen_vectors, (n, n))
        left = check_array("inverse eigenvectors", inverse_eigen_vectors, (n, n))
        size = 2 * n if Flag.EIGEN_COMPLEX in self.flags else n
        values = check_array("eigenvalues", eigen_values, (size,))
        if Flag.INVEVEC_TRANSPOSED in self.flags:
            left = left.T
        self._eigen[index] = EigenSystem.of(right, left, values)

    def set_state_frequencies(self, index: int, frequencies: npt.ArrayLike) -> None:
        """Set the state frequencies (S,) of this number."""
        at = self._check_model("frequencies", index)
        self._frequencies[at] = check_array("frequencies", frequencies, (self.state_count,))

    def set_category_weights(self, index: int, weights: npt.ArrayLike) -> None:
        """Set the weights (C,) of the categories, of this number."""
        at = self._check_model("category weights", index)
        self._weights[at] = check_array("category weights", weights, (self.category_count,))

    def set_category_rates(self, rates: npt.ArrayLike) -> None:
        """Set the rates (C,) of the categories that `update_transition_matrices` uses."""
        self._rates[0] = check_array("category rates", rates, (self.category_count,))

    def set_category_rates_with_index(self, index: int, rates: npt.ArrayLike) -> None:
        """Set the rates (C,) of the categories, of this number; 0 is the number in `set_category_rates`."""
        at = self._check_model("category rates", index)
        self._rates[at] = check_array("category rates", rates, (self.category_count,))

    def _masses(self, weights: int, frequencies: int) -> FloatArray:
        at = self._check_model("category weights", weights), self._check_model("frequencies", frequencies)
        return np.asarray(self._weights[at[0]][:, None] * self._frequencies[at[1]])

    def _category_masses(self, weights: int) -> FloatArray:
        """(C, S) weight alone, where partials have the frequencies in them."""
        own = self._weights[self._check_model("category weights", weights)]
        return np.repeat(own[:, None], self.state_count, axis=1)

    # --- matrices -------------------------------------------------------------------------------------------

    def update_transition_matrices(
        self,
        eigen_index: int,
        probability_indices: npt.ArrayLike,
        first_derivative_indices: npt.ArrayLike | None,
        second_derivative_indices: npt.ArrayLike | None,
        edge_lengths: npt.ArrayLike,
    ) -> None:
        """Make the matrices of edges, and if asked for their derivatives in the edges' lengths."""
        n = len(check_indices("matrix", probability_indices, self.matrix_buffer_count))
        self.update_transition_matrices_with_multiple_models(
            [eigen_index] * n, [0] * n, probability_indices, first_derivative_indices, second_derivative_indices,
            edge_lengths,
        )  # fmt: skip

    def update_transition_matrices_with_multiple_models(
        self,
        eigen_indices: npt.ArrayLike,
        category_rate_indices: npt.ArrayLike,
        probability_indices: npt.ArrayLike,
        first_derivative_indices: npt.ArrayLike | None,
        second_derivative_indices: npt.ArrayLike | None,
        edge_lengths: npt.ArrayLike,
    ) -> None:
        """The same for edges, each with an eigensystem and category rates."""
        lengths = np.atleast_1d(np.asarray(edge_lengths, dtype=np.float64))
        models = check_indices("eigensystem", eigen_indices, self.eigen_buffer_count)
        rates = check_indices("category rates", category_rate_indices, max(self.eigen_buffer_count, 1))
        for length in lengths[~(np.isfinite(lengths) & (lengths >= 0))][:1].tolist():
            raise BeagleError(Code.OUT_OF_RANGE, f"found edge length {length}, expected 0 or more")
        lists = [probability_indices, first_derivative_indices, second_derivative_indices]
        orders = {
            order: check_indices("matrix", indices, self.matrix_buffer_count)
            for order, indices in enumerate(lists)
            if indices is not None
        }
        named = [(f"matrices of order {order}", indices) for order, indices in orders.items()]
        n = check_same_length([("lengths", lengths), ("eigensystems", models), ("category rates", rates), *named])
        places = np.full((len(lists), n), NONE, dtype=np.int32)
        for order, indices in orders.items():
            places[order] = indices
        for model, rate in dict.fromkeys(zip(models.tolist(), rates.tolist(), strict=True)):
            if model not in self._eigen:
                raise BeagleError(Code.OUT_OF_RANGE, f"eigensystem {model} has not been set")
            own = np.flatnonzero((models == model) & (rates == rate))
            eigen = self._eigen[model].packed(self._rates[rate])
            for engine in self._engines():
                engine.make_matrices(eigen, lengths[own], places[:, own])

    def set_transition_matrix(self, matrix_index: int, matrix: npt.ArrayLike, padded_value: float = 1.0) -> None:
        """Set a matrix (C, S, S). `padded_value` is not used, see above."""
        self.set_transition_matrices([matrix_index], np.asarray(matrix, dtype=np.float64)[None])

    def set_transition_matrices(self, matrix_indices: npt.ArrayLike, matrices: npt.ArrayLike) -> None:
        """Set matrices (n, C, S, S)."""
        indices = self._check_matrices(matrix_indices)
        shape = len(indices), self.category_count, self.state_count, self.state_count
        own = check_array("matrices", matrices, shape)
        for engine in self._engines():
            engine.set_matrices(indices, own)

    def get_transition_matrix(self, matrix_index: int) -> FloatArray:
        """A copy of a matrix (C, S, S); waits."""
        index = check_index("matrix", matrix_index, self.matrix_buffer_count)
        return self._engines()[0].read_matrices([index])[0]

    def convolve_transition_matrices(
        self, first_indices: npt.ArrayLike, second_indices: npt.ArrayLike, result_indices: npt.ArrayLike
    ) -> None:
        """Make matrices the products of two others: of the edge above, and the edge below."""
        self._combine(Combination.PRODUCT_OF_TWO, first_indices, second_indices, result_indices)

    def add_transition_matrices(
        self, first_indices: npt.ArrayLike, second_indices: npt.ArrayLike, result_indices: npt.ArrayLike
    ) -> None:
        """Make matrices the sums of two others."""
        self._combine(Combination.SUM_OF_TWO, first_indices, second_indices, result_indices)

    def transpose_transition_matrices(self, indices: npt.ArrayLike, result_indices: npt.ArrayLike) -> None:
        """Make matrices the transposes of others."""
        self._combine(Combination.TRANSPOSE, indices, indices, result_indices)

    def _combine(self, combination: int, *lists: npt.ArrayLike) -> None:
        first, second, results = (self._check_matrices(indices) for indices in lists)
        check_same_length([("matrices above", first), ("matrices below", second), ("results", results)])
        for engine in self._engines() if results else ():
            engine.combine_matrices(combination, np.array([first, second], dtype=np.int32), results)

    def set_differential_matrix(self, matrix_index: int, matrix: npt.ArrayLike) -> None:
        """Set the matrix (C, S, S) by which `calculate_edge_derivatives` multiplies: Q times the rate of a category."""
        self.set_transition_matrix(matrix_index, matrix)
