"""BEAGLE's own library through ctypes, with the calls of `plltool.beagle.Instance`."""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

PLAIN = {  # calls that return nothing: n is a number, i and d are whole numbers and doubles, # counts the first list
    "set_tip_states": "ni",
    "set_tip_partials": "nd",
    "set_partials": "nd",
    "set_pattern_weights": "d",
    "set_pattern_partitions": "ni",
    "set_eigen_decomposition": "nddd",
    "set_state_frequencies": "nd",
    "set_category_weights": "nd",
    "set_category_rates": "d",
    "set_category_rates_with_index": "nd",
    "update_transition_matrices": "niiid#",
    "update_transition_matrices_with_multiple_models": "iiiiid#",
    "convolve_transition_matrices": "iii#",
    "copy_scale_factors": "nn",
    "wait_for_partials": "i#",
}


class Details(ctypes.Structure):
    """BeagleInstanceDetails of beagle.h."""

    _fields_ = (
        ("resource_number", ctypes.c_int),
        ("resource_name", ctypes.c_char_p),
        ("implementation_name", ctypes.c_char_p),
        ("implementation_description", ctypes.c_char_p),
        ("flags", ctypes.c_long),
    )


def load_library(name: str = "libhmsbeagle.so.1") -> ctypes.CDLL | None:
    """The library, or None where there is none."""
    try:
        library = ctypes.CDLL(name)
    except OSError:
        return None
    library.beagleGetVersion.restype = ctypes.c_char_p
    return library


def integers(values: Any) -> Any:
    return None if values is None else np.atleast_1d(np.asarray(values, dtype=np.int32)).ravel()


def doubles(values: npt.ArrayLike) -> np.ndarray:
    return np.asarray(values, dtype=np.float64).ravel()


class Library:
    """An instance of the library; `sizes` are the first nine of `Instance`. A call that fails is a RuntimeError."""

    NONE = -1

    def __init__(self, library: ctypes.CDLL, *sizes: int, preferred: int = 0, required: int = 0):
        self._library, self._shape, details = library, (sizes[7], sizes[4], sizes[3]), Details()
        flags = ctypes.c_long(int(preferred)), ctypes.c_long(int(required))
        self._handle = library.beagleCreateInstance(*sizes, None, 0, *flags, ctypes.byref(details))
        if self._handle < 0:
            raise RuntimeError(f"beagleCreateInstance: {self._handle}")
        self.implementation_name = details.implementation_name.decode()

    def finalize(self) -> None:
        self._library.beagleFinalizeInstance(self._handle)

    def _call(self, name: str, *arguments: Any) -> Any:
        """Call a function with arrays as pointers to contiguous data; returns the last one."""
        arrays = [np.ascontiguousarray(a) if isinstance(a, np.ndarray) else a for a in arguments]
        pointers = [a.ctypes.data_as(ctypes.c_void_p) if isinstance(a, np.ndarray) else a for a in arrays]
        status = getattr(self._library, f"beagle{name}")(self._handle, *pointers)
        if status != 0:
            raise RuntimeError(f"beagle{name}: {status}")
        return arrays[-1]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in PLAIN:
            raise AttributeError(name)
        make = {"n": int, "i": integers, "d": doubles}

        def call(*given: Any) -> None:
            kinds = PLAIN[name]
            own = [make[kind](value) for kind, value in zip(kinds.rstrip("#"), given, strict=True)]
            count = [next(len(values) for values in own if isinstance(values, np.ndarray))] if "#" in kinds else []
            self._call("".join(word.capitalize() for word in name.split("_")), *own, *count)

        return call

    # --- partials, matrices and scale factors

    def get_partials(self, buffer: int, scale: int = -1) -> np.ndarray:
        return self._call("GetPartials", buffer, scale, np.empty(self._shape))

    def set_transition_matrix(self, index: int, matrix: npt.ArrayLike, padded: float = 1.0) -> None:
        self._call("SetTransitionMatrix", index, doubles(matrix), ctypes.c_double(padded))

    def get_transition_matrix(self, index: int) -> np.ndarray:
        categories, _, states = self._shape
        return self._call("GetTransitionMatrix", index, np.empty((categories, states, states)))

    def update_partials(self, operations: npt.ArrayLike, cumulative: int = -1) -> None:
        rows = integers(operations)
        self._call("UpdatePartials", rows, len(rows) // 7, cumulative)

    def update_partials_by_partition(self, operations: npt.ArrayLike) -> None:
        rows = integers(operations)
        self._call("UpdatePartialsByPartition", rows, len(rows) // 9)

    def _scale(self, name: str, partition: int | None, *arguments: Any) -> None:
        own = ("", *arguments) if partition is None else ("ByPartition", *arguments, partition)
        self._call(f"{name}ScaleFactors{own[0]}", *own[1:])

    def accumulate_scale_factors(self, indices: npt.ArrayLike, total: int, partition: int | None = None) -> None:
        self._scale("Accumulate", partition, integers(indices), np.size(indices), total)

    def remove_scale_factors(self, indices: npt.ArrayLike, total: int, partition: int | None = None) -> None:
        self._scale("Remove", partition, integers(indices), np.size(indices), total)

    def reset_scale_factors(self, total: int, partition: int | None = None) -> None:
        self._scale("Reset", partition, total)

    # --- likelihoods; the arguments are those of `Instance`, lists of indices or None

    def calculate_root_log_likelihoods(self, *lists: Any) -> float:
        own = [integers(values) for values in lists]
        return self._call("CalculateRootLogLikelihoods", *own, len(own[0]), np.empty(1))[0]

    def calculate_root_log_likelihoods_by_partition(self, *lists: Any, count: int = 1) -> tuple[np.ndarray, float]:
        own = [integers(values) for values in lists]
        each, total = np.empty(len(own[4])), np.empty(1)
        self._call("CalculateRootLogLikelihoodsByPartition", *own, len(each), count, each, total)
        return each, total[0]

    def calculate_edge_log_likelihoods(self, *lists: Any) -> tuple[float, ...]:
        own = [integers(values) for values in lists]
        orders = sum(values is not None for values in own[2:5])
        out = [np.empty(1) if k < orders else None for k in range(3)]
        self._call("CalculateEdgeLogLikelihoods", *own, len(own[0]), *out)
        return tuple(float(values[0]) for values in out if values is not None)

    def calculate_edge_log_likelihoods_by_partition(self, *lists: Any, count: int = 1) -> tuple[np.ndarray, np.ndarray]:
        own = [integers(values) for values in lists]
        n, orders = len(own[8]), sum(values is not None for values in own[2:5])
        out: list[np.ndarray | None] = []
        for k in range(3):
            out += [np.empty(n), np.empty(1)] if k < orders else [None, None]
        self._call("CalculateEdgeLogLikelihoodsByPartition", *own, n, count, *out)
        return np.stack(out[0 : 2 * orders : 2], axis=1), np.concatenate(out[1 : 2 * orders : 2])

    def get_site_log_likelihoods(self) -> np.ndarray:
        return self._call("GetSiteLogLikelihoods", np.empty(self._shape[1]))

    def get_site_derivatives(self) -> np.ndarray:
        found = np.empty((2, self._shape[1]))
        self._call("GetSiteDerivatives", found[0], found[1])
        return found
