"""Standard errors of branch lengths, from the curvature of lnL."""

from __future__ import annotations

import numpy as np

from plltool.arrays import FloatArray, IndexArray
from plltool.constants import COLLAPSE_LENGTH, ERROR_STEP, MAX_BRANCH_LENGTH
from plltool.optimise.likelihood import TreeLikelihood

LEAST_INFORMATION = 1e-5  # in any direction, where each length alone has 1; less is below the errors of the steps


def length_errors(likelihood: TreeLikelihood, step: float = ERROR_STEP) -> FloatArray:
    """Standard errors of the branch lengths, in the shape of the tree's lengths, which should be optimised.

    They are the square roots of the diagonal of the inverse of the observed information, the second derivatives of -lnL
    in all lengths. The model is taken as known. Lengths at a bound are held fixed; their errors, and those of lengths
    that the data do not determine, are NaN. Each branch takes one launch. `step` is that of `length_hessian`.
    """
    lengths = likelihood.tree.lengths
    free = ((lengths > COLLAPSE_LENGTH) & (lengths < MAX_BRANCH_LENGTH)).reshape(len(lengths), -1)
    edges = np.flatnonzero(free.any(axis=1))
    hessian = length_hessian(likelihood, edges, step)
    errors = np.full(free.shape, np.nan)
    for part, is_free in enumerate(free[edges].T):
        own = np.flatnonzero(is_free)
        errors[edges[own], part] = _invert(-hessian[np.ix_(own, own)][..., part])
    return errors.reshape(lengths.shape)


def length_hessian(likelihood: TreeLikelihood, edges: IndexArray, step: float = ERROR_STEP) -> FloatArray:
    """Second derivatives of lnL in the lengths of each pair of branches: (n, n, k), for k lengths per branch.

    Mixed derivatives are differences of slopes: each branch in turn becomes longer by the share `step`. If parts have
    lengths of their own, these change together, because the length of one part does not affect the slopes of another.
    """
    given = likelihood.tree.lengths
    here = likelihood.all_derivatives()[1][edges].reshape(len(edges), -1, 2)
    hessian = np.empty((len(edges), len(edges), here.shape[1]))
    for row, edge in enumerate(edges.tolist()):
        moved = given.copy()
        moved[edge] *= 1 + step
        slopes = likelihood.all_derivatives(moved)[1][edges, ..., 0].reshape(len(edges), -1)
        hessian[row] = (slopes - here[..., 0]) / (moved[edge] - given[edge])
    hessian = (hessian + hessian.swapaxes(0, 1)) / 2
    own = np.arange(len(edges))
    hessian[own, own] = here[..., 1]
    return hessian


def _invert(information: FloatArray) -> FloatArray:
    """Square roots (n,) of the diagonal of the inverse; NaN for elements of a direction without information."""
    scale = np.sqrt(np.maximum(np.abs(np.diag(information)), np.finfo(float).tiny))
    values, vectors = np.linalg.eigh(information / np.outer(scale, scale))  # lengths differ by powers of ten
    known = values > LEAST_INFORMATION
    variances = vectors[:, known] ** 2 @ (1 / values[known])
    unknown = (vectors[:, ~known] ** 2).sum(axis=1) > LEAST_INFORMATION
    return np.where(unknown, np.nan, np.sqrt(variances) / scale)
