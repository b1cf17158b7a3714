"""BEAGLE's own library through ctypes, with the calls of `plltool.beagle.Instance` that the tests make."""

from __future__ import annotations

import ctypes

import numpy as np


class Details(ctypes.Structure):
    """BeagleInstanceDetails of beagle.h."""

    _fields_ = (
        ("resource_number", ctypes.c_int),
        ("resource_name", ctypes.c_char_p),
        ("implementation_name", ctypes.c_char_p),
        ("implementation_description", ctypes.c_char_p),
        ("flags", ctypes.c_long),
    )


def load_library():
    """The library, or None where there is none."""
    try:
        return ctypes.CDLL("libhmsbeagle.so.1")
    except OSError:
        return None


LIBRARY = load_library()


def integers(values):
    return None if values is None else np.atleast_1d(np.asarray(values, dtype=np.int32)).ravel()


def doubles(values):
    return np.asarray(values, dtype=np.float64).ravel()


class Library:
    """An instance of the library; arguments of `__init__` as those of `Instance`."""

    NONE = -1

    def __init__(self, tips, partials, compact, states, patterns, eigen, matrices, categories, scales, required=0):
        self._shape = categories, patterns, states
        self._handle = LIBRARY.beagleCreateInstance(
            tips, partials, compact, states, patterns, eigen, matrices, categories, scales, None, 0, ctypes.c_long(0),
            ctypes.c_long(int(required)), ctypes.byref(Details()),
        )  # fmt: skip
        assert self._handle >= 0, self._handle

    def finalize(self):
        LIBRARY.beagleFinalizeInstance(self._handle)

    def _call(self, name, *arguments):
        arrays = [np.ascontiguousarray(a) if isinstance(a, np.ndarray) else a for a in arguments]
        pointers = [a.ctypes.data_as(ctypes.c_void_p) if isinstance(a, np.ndarray) else a for a in arrays]
        status = getattr(LIBRARY, f"beagle{name}")(self._handle, *pointers)
        assert status == 0, f"beagle{name}: {status}"
        return arrays[-1]

    # --- data and model

    def set_tip_states(self, tip, states):
        self._call("SetTipStates", tip, integers(states))

    def set_tip_partials(self, tip, partials):
        self._call("SetTipPartials", tip, doubles(partials))

    def set_partials(self, buffer, partials):
        self._call("SetPartials", buffer, doubles(partials))

    def get_partials(self, buffer, scale=-1):
        return self._call("GetPartials", buffer, scale, np.empty(self._shape))

    def set_pattern_weights(self, weights):
        self._call("SetPatternWeights", doubles(weights))

    def set_pattern_partitions(self, count, partitions):
        self._call("SetPatternPartitions", count, integers(partitions))

    def set_eigen_decomposition(self, index, right, left, values):
        self._call("SetEigenDecomposition", index, doubles(right), doubles(left), doubles(values))

    def set_state_frequencies(self, index, values):
        self._call("SetStateFrequencies", index, doubles(values))

    def set_category_weights(self, index, values):
        self._call("SetCategoryWeights", index, doubles(values))

    def set_category_rates(self, values):
        self._call("SetCategoryRates", doubles(values))

    def set_category_rates_with_index(self, index, values):
        self._call("SetCategoryRatesWithIndex", index, doubles(values))

    # --- matrices

    def update_transition_matrices(self, eigen, matrices, first, second, lengths):
        lists = [integers(values) for values in (matrices, first, second)]
        self._call("UpdateTransitionMatrices", eigen, *lists, doubles(lengths), len(lists[0]))

    def update_transition_matrices_with_multiple_models(self, eigen, rates, matrices, first, second, lengths):
        lists = [integers(values) for values in (eigen, rates, matrices, first, second)]
        self._call("UpdateTransitionMatricesWithMultipleModels", *lists, doubles(lengths), len(lists[0]))

    def set_transition_matrix(self, index, matrix, padded=1.0):
        self._call("SetTransitionMatrix", index, doubles(matrix), ctypes.c_double(padded))

    def get_transition_matrix(self, index):
        categories, _, states = self._shape
        return self._call("GetTransitionMatrix", index, np.empty((categories, states, states)))

    def convolve_transition_matrices(self, first, second, result):
        lists = [integers(values) for values in (first, second, result)]
        self._call("ConvolveTransitionMatrices", *lists, len(lists[0]))

    # --- operations and scale factors

    def update_partials(self, operations, cumulative=-1):
        rows = integers(operations)
        self._call("UpdatePartials", rows, len(rows) // 7, cumulative)

    def update_partials_by_partition(self, operations):
        rows = integers(operations)
        self._call("UpdatePartialsByPartition", rows, len(rows) // 9)

    def accumulate_scale_factors(self, indices, total, partition=None):
        rows = integers(indices)
        name, own = ("", ()) if partition is None else ("ByPartition", (partition,))
        self._call(f"AccumulateScaleFactors{name}", rows, len(rows), total, *own)

    def remove_scale_factors(self, indices, total, partition=None):
        rows = integers(indices)
        name, own = ("", ()) if partition is None else ("ByPartition", (partition,))
        self._call(f"RemoveScaleFactors{name}", rows, len(rows), total, *own)

    def reset_scale_factors(self, total, partition=None):
        name, own = ("", ()) if partition is None else ("ByPartition", (partition,))
        self._call(f"ResetScaleFactors{name}", total, *own)

    def copy_scale_factors(self, to, source):
        self._call("CopyScaleFactors", to, source)

    def wait_for_partials(self, buffers):
        rows = integers(buffers)
        self._call("WaitForPartials", rows, len(rows))

    # --- likelihoods

    def calculate_root_log_likelihoods(self, buffers, weights, frequencies, scales):
        lists = [integers(values) for values in (buffers, weights, frequencies, scales)]
        return self._call("CalculateRootLogLikelihoods", *lists, len(lists[0]), np.empty(1))[0]

    def calculate_root_log_likelihoods_by_partition(self, buffers, weights, frequencies, scales, partitions, count=1):
        lists = [integers(values) for values in (buffers, weights, frequencies, scales, partitions)]
        each, total = np.empty(len(lists[4])), np.empty(1)
        self._call("CalculateRootLogLikelihoodsByPartition", *lists, len(each), count, each, total)
        return each, total[0]

    def calculate_edge_log_likelihoods(self, upper, lower, matrices, first, second, weights, frequencies, scales):
        lists = [integers(v) for v in (upper, lower, matrices, first, second, weights, frequencies, scales)]
        orders = 1 + (first is not None) + (second is not None)
        out = [np.empty(1) if k < orders else None for k in range(3)]
        self._call("CalculateEdgeLogLikelihoods", *lists, len(lists[0]), *out)
        return tuple(float(own[0]) for own in out[:orders])

    def calculate_edge_log_likelihoods_by_partition(
        self, upper, lower, matrices, first, second, weights, frequencies, scales, partitions, count=1
    ):
        values = (upper, lower, matrices, first, second, weights, frequencies, scales, partitions)
        lists = [integers(own) for own in values]
        n, orders = len(lists[-1]), 1 + (first is not None) + (second is not None)
        out = []
        for k in range(3):
            out += [np.empty(n), np.empty(1)] if k < orders else [None, None]
        self._call("CalculateEdgeLogLikelihoodsByPartition", *lists, n, count, *out)
        return np.stack(out[0 : 2 * orders : 2], axis=1), np.concatenate(out[1 : 2 * orders : 2])

    def get_site_log_likelihoods(self):
        return self._call("GetSiteLogLikelihoods", np.empty(self._shape[1]))

    def get_site_derivatives(self):
        found = np.empty((2, self._shape[1]))
        self._call("GetSiteDerivatives", found[0], found[1])
        return found
