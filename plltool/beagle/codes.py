"""BEAGLE's flags, return codes and numbers, with their values in its C interface, and checks that raise the codes."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from dataclasses import dataclass
from enum import IntEnum, IntFlag

import numpy as np
import numpy.typing as npt

from plltool.arrays import FloatArray, IndexArray
from plltool.errors import PlltoolError

NONE = -1  # in place of an index: no buffer
OPERATION_WORDS = 7  # destination, scale to write, scale to read, child, its matrix, other child, its matrix
PARTITION_OPERATION_WORDS = 9  # the same, partition, scale to accumulate in


Flag = IntFlag(  # the first is 1, and each further one twice the one before
    "Flag",
    "PRECISION_SINGLE PRECISION_DOUBLE COMPUTATION_SYNCH COMPUTATION_ASYNCH EIGEN_REAL EIGEN_COMPLEX SCALING_MANUAL "
    "SCALING_AUTO SCALING_ALWAYS SCALERS_RAW SCALERS_LOG VECTOR_SSE VECTOR_NONE THREADING_OPENMP THREADING_NONE "
    "PROCESSOR_CPU PROCESSOR_GPU PROCESSOR_FPGA PROCESSOR_CELL PROCESSOR_PHI INVEVEC_STANDARD INVEVEC_TRANSPOSED "
    "FRAMEWORK_CUDA FRAMEWORK_OPENCL VECTOR_AVX SCALING_DYNAMIC PROCESSOR_OTHER FRAMEWORK_CPU PARALLELOPS_STREAMS "
    "PARALLELOPS_GRID THREADING_CPP",
)
Flag.__doc__ = "What an instance may be asked for, and what it has."


class Code(IntEnum):
    """What goes wrong."""

    GENERAL = -1
    OUT_OF_MEMORY = -2
    UNIDENTIFIED_EXCEPTION = -3
    UNINITIALIZED_INSTANCE = -4
    OUT_OF_RANGE = -5
    NO_RESOURCE = -6
    NO_IMPLEMENTATION = -7
    FLOATING_POINT = -8


class BeagleError(PlltoolError):
    """A call that fails.

    Attributes
    ----------
    code : the code that BEAGLE returns for it
    """

    def __init__(self, code: Code, message: str):
        super().__init__(f"{code.name}: {message}")
        self.code = code


def check_index(what: str, index: int, count: int) -> int:
    """The index; OUT_OF_RANGE unless it is one of `count`."""
    if not 0 <= index < count:
        expected = f"expected 0 .. {count - 1}" if count else "the instance has none"
        raise BeagleError(Code.OUT_OF_RANGE, f"found {what} {index}, {expected}")
    return int(index)


def check_whole(what: str, values: npt.ArrayLike) -> IndexArray:
    """The numbers (n,), flattened; OUT_OF_RANGE unless they are whole."""
    if isinstance(values, np.ndarray) and values.dtype.kind == "i":
        return values.ravel().astype(np.intp)
    try:
        found = np.atleast_1d(np.asarray(values, dtype=np.float64)).ravel()
    except (TypeError, ValueError):
        found = np.array([np.nan])
    if not (np.isfinite(found) & (found == np.rint(found))).all():
        raise BeagleError(Code.OUT_OF_RANGE, f"{what}: found {values!r}, expected whole numbers")
    return found.astype(np.intp)


def check_indices(what: str, indices: npt.ArrayLike, count: int, optional: bool = False) -> IndexArray:
    """The indices (n,); OUT_OF_RANGE unless each is one of `count`, or NONE where it is `optional`."""
    found = check_whole(what, indices)
    wrong = (found >= count) | (found < (NONE if optional else 0))
    for index in found[wrong][:1].tolist():
        check_index(what, index, count)
    return found


def check_same_length(lists: Iterable[tuple[str, Sized]]) -> int:
    """The length of all lists; OUT_OF_RANGE if one differs from the first."""
    (first, values), *others = lists
    for name, other in others:
        if len(other) != len(values):
            raise BeagleError(Code.OUT_OF_RANGE, f"found {len(values)} {first} and {len(other)} {name}")
    return len(values)


def check_array(what: str, values: npt.ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    """A copy of the values as float64 of this shape, which they may also come flattened in."""
    try:
        found = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise BeagleError(Code.OUT_OF_RANGE, f"{what}: found {values!r}, expected numbers") from error
    if found.size != int(np.prod(shape)):
        expected = " x ".join(map(str, shape))
        raise BeagleError(Code.OUT_OF_RANGE, f"{what}: found {found.size} numbers, expected {expected}")
    return found.reshape(shape)


# --- sizes of an instance ---------------------------------------------------------------------------------

_LEAST = {"tip_count": 1, "state_count": 2, "pattern_count": 1, "category_count": 1}


@dataclass(eq=False)
class Sizes:
    """The numbers that BEAGLE's `beagleCreateInstance` takes; OUT_OF_RANGE for one that cannot be."""

    tip_count: int
    partials_buffer_count: int
    compact_buffer_count: int
    state_count: int
    pattern_count: int
    eigen_buffer_count: int
    matrix_buffer_count: int
    category_count: int
    scale_buffer_count: int

    def __post_init__(self) -> None:
        for name, found in vars(self).items():
            least = _LEAST.get(name, 0)
            if not isinstance(found, (int, np.integer)) or found < least:
                raise BeagleError(
                    Code.OUT_OF_RANGE, f"{name}: found {found!r}, expected a whole number, {least} or more"
                )
