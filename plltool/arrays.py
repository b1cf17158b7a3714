"""Names for the types of numpy arrays that all layers share, and what is asked of them everywhere."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike as ArrayLike

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int32]
IndexArray = npt.NDArray[np.intp]
ByteArray = npt.NDArray[np.uint8]
BoolArray = npt.NDArray[np.bool_]
WholeArray = npt.NDArray[np.integer]
AnyArray = npt.NDArray[Any]


def likelihood_weights(lnl: FloatArray, axis: int = -1) -> FloatArray:
    """Likelihoods over their sum along an axis, from their logarithms; same shape."""
    relative = np.exp(lnl - lnl.max(axis=axis, keepdims=True))
    return np.asarray(relative / relative.sum(axis=axis, keepdims=True))


def slices(n: int, size: int) -> Iterator[slice]:
    """Slices of 0 .. n - 1 with at most `size` items each."""
    for first in range(0, n, size):
        yield slice(first, min(first + size, n))


def distinct(numbers: npt.NDArray[np.signedinteger[Any]]) -> IndexArray:
    """The different ones (k,) of small whole numbers (n,) from 0 on, in order; numpy.unique would import numpy.ma."""
    return np.flatnonzero(np.bincount(numbers))
