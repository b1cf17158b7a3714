"""Standard errors of branch lengths, from the curvature of lnL."""

from __future__ import annotations

import numpy as np

from plltool.constants import COLLAPSE_LENGTH, ERROR_STEP, LEAST_INFORMATION, MAX_BRANCH_LENGTH, MIN_BRANCH_LENGTH
from plltool.optimise.likelihood import TreeLikelihood
from plltool.tree.topology import FloatArray


def length_errors(likelihood: TreeLikelihood) -> FloatArray:
    """Standard errors of the branch lengths, shaped as the tree's lengths, which should be optimised.

    They are the roots of the diagonal of the inverse of the observed information, the second derivatives of -lnL in all
    lengths; the model is taken as known. Lengths at a bound are held there and have NaN, and so have lengths that the
    data do not determine.
    """
    lengths = likelihood.tree.lengths
    free = ((lengths > COLLAPSE_LENGTH) & (lengths < MAX_BRANCH_LENGTH)).reshape(len(lengths), -1)
    hessian = length_hessian(likelihood)
    errors = np.full(free.shape, np.nan)
    for part, is_free in enumerate(free.T):
        own = np.flatnonzero(is_free)
        errors[own, part] = _invert(-hessian[np.ix_(own, own)][..., part])
    return errors.reshape(lengths.shape)


def length_hessian(likelihood: TreeLikelihood) -> FloatArray:
    """Second derivatives of lnL in two branch lengths: (n_edges, n_edges, n), n being the lengths that a branch has.

    They are differences of slopes: each branch in turn is made shorter and longer by ERROR_STEP. The lengths that parts
    have of their own move together, for those of one part do not change the slopes of another.
    """
    given = likelihood.tree.lengths
    n_edges = len(given)
    hessian = np.empty((n_edges, n_edges, given[0].size))
    for edge in range(n_edges):
        ends, slopes = [], []
        for factor in (1 - ERROR_STEP, 1 + ERROR_STEP):
            moved = given.copy()
            moved[edge] = np.clip(moved[edge] * factor, MIN_BRANCH_LENGTH, MAX_BRANCH_LENGTH)
            ends.append(moved[edge])
            slopes.append(likelihood.all_derivatives(moved)[1][..., 0].reshape(n_edges, -1))
        hessian[edge] = (slopes[1] - slopes[0]) / (ends[1] - ends[0])
    return (hessian + hessian.swapaxes(0, 1)) / 2


def _invert(information: FloatArray) -> FloatArray:
    """Roots (n,) of the diagonal of the inverse of a symmetric matrix (n, n).

    NaN where something is part of a direction of which there is no information.
    """
    scale = np.sqrt(np.maximum(np.abs(np.diag(information)), np.finfo(float).tiny))
    values, vectors = np.linalg.eigh(information / np.outer(scale, scale))  # lengths differ by powers of ten
    known = values > LEAST_INFORMATION
    variances = vectors[:, known] ** 2 @ (1 / values[known])
    unknown = (vectors[:, ~known] ** 2).sum(axis=1) > LEAST_INFORMATION
    return np.where(unknown, np.nan, np.sqrt(variances) / scale)
