"""A shared library with the C interface of BEAGLE 3.1, which answers by `Instance`, for programs that call BEAGLE.

`build_beagle_library` makes it: it embeds this Python (cffi). Each function of `library.h` turns pointers into arrays
and calls the method of that name of an instance. An error becomes its code; anything else that goes wrong is printed
and becomes GENERAL.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import sys
import sysconfig
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from plltool.beagle.codes import BeagleError, Code, Flag, get_citation, get_resource_list, get_version
from plltool.beagle.instance import Instance
from plltool.errors import InputError

NAME = "libhmsbeagle.so.1"  # by which programs look for BEAGLE
DECLARATIONS = Path(__file__).with_suffix(".h").read_text(encoding="utf-8")
TRACE = "PLLTOOL_BEAGLE_TRACE"  # set: print the name of every call


def build_beagle_library(folder: str | os.PathLike[str], redo: bool = False) -> Path:
    """Build the library in a folder, which is made if there is none, and return its path; `redo` replaces one.

    It uses the Python that runs this, with the modules that it finds now. Raises InputError if cffi, a C compiler or
    the headers of Python are missing, and if there is a library of this name.
    """
    needed = "a library for programs that call BEAGLE needs"
    try:
        from cffi import FFI, VerificationError
    except ImportError:
        raise InputError(f"{needed} cffi: pip install 'plltool[beagle]'") from None
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    if shutil.which(compiler) is None:
        raise InputError(f"{needed} a C compiler: found no {compiler}")
    path = Path(folder) / NAME
    if path.exists() and not redo:
        raise InputError(f"{path}: exists already; --redo replaces it")
    ffi = FFI()
    types, functions = DECLARATIONS.split("const char* beagleGetVersion", 1)
    ffi.embedding_api(f"{types}const char* beagleGetVersion{functions}")
    ffi.set_source("plltool_beagle_library", types)
    paths = [str(Path(__file__).resolve().parents[2]), *filter(None, sys.path)]
    ffi.embedding_init_code(
        f"import sys\nsys.path[:] = {paths!r} + sys.path\nsys.prefix = {sys.prefix!r}\n"
        f"from plltool_beagle_library import ffi\nfrom {__name__} import register\nregister(ffi)\n"
    )
    with tempfile.TemporaryDirectory() as made:
        try:
            built = ffi.compile(tmpdir=made, target=NAME)
        except VerificationError as error:
            wanted = "expected a C compiler and the headers of Python (Debian: python3-dev)"
            raise InputError(f"{NAME}: found an error of the compiler, {wanted}: {error}") from error
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(built, path)
    return path


class Instances(dict[int, Any]):
    """Each `Instance` that is open, by its handle."""

    def __missing__(self, handle: int) -> Instance:
        raise BeagleError(Code.UNINITIALIZED_INSTANCE, f"found instance {handle}, expected one that is open")


instances = Instances()
handles = itertools.count()
kept: list[Any] = []  # what C code points to


def register(ffi: Any) -> None:
    """Define every function of DECLARATIONS."""
    calls = Calls(ffi)
    for name in re.findall(r"\b(beagle\w+)\(", DECLARATIONS):
        ffi.def_extern(name=name)(guard(name, getattr(calls, re.sub(r"^beagle", "", name))))


def guard(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with errors as codes."""

    def call(*arguments: Any) -> Any:
        if os.environ.get(TRACE):
            print(name, flush=True)
        try:
            found = function(*arguments)
        except BeagleError as error:
            print(f"{name}: {error}", flush=True)
            return int(error.code)
        except Exception:
            traceback.print_exc()
            return int(Code.GENERAL)
        return 0 if found is None else found

    return call


def time_likelihood(number: int, sizes: list[int], preferred: int, required: int) -> float:
    """The least of three times of a likelihood of a comb with random tips, in milliseconds; infinite if refused."""
    tips, _, states, patterns, categories = sizes
    rng, q = np.random.default_rng(1), np.ones((states, states)) - states * np.eye(states)
    own = tips, 2 * tips, tips, states, patterns, 1, 2 * tips, categories, 1, [number], Flag(preferred), Flag(required)
    nodes = [0, *range(tips, 2 * tips - 1)]  # of the comb, from its tip
    operations = [[nodes[k], -1, -1, nodes[k - 1], nodes[k - 1], k, k] for k in range(1, tips)]
    times = []
    try:
        with Instance(*own) as instance:
            for tip in range(tips):
                instance.set_tip_states(tip, rng.integers(0, states, patterns))
            values, vectors = np.linalg.eigh(q / states)
            instance.set_eigen_decomposition(
                0, vectors, vectors.T, np.append(values, 0 * values)[: eigenvalues(instance)]
            )
            for _ in range(4):
                began = perf_counter()
                instance.update_transition_matrices(0, np.arange(2 * tips), None, None, rng.random(2 * tips))
                instance.update_partials(operations)
                instance.calculate_root_log_likelihoods([nodes[-1]], [0], [0], [-1])
                instance.get_log_likelihood()
                times.append(1e3 * (perf_counter() - began))
    except BeagleError:
        return np.inf
    return min(times[1:])


def eigenvalues(instance: Instance) -> int:
    """How many numbers eigenvalues have."""
    return instance.state_count * (2 if Flag.EIGEN_COMPLEX in instance.flags else 1)


class Calls:
    """The functions, by their names without "beagle"."""

    def __init__(self, ffi: Any):
        self.ffi = ffi

    def take(self, pointer: Any, count: int, kind: type = float) -> Any:
        """A copy of what a pointer points to; None for NULL."""
        if pointer == self.ffi.NULL:
            return None
        dtype = np.dtype(np.float64 if kind is float else np.int32)
        return np.frombuffer(self.ffi.buffer(pointer, count * dtype.itemsize), dtype=dtype).copy()

    def integers(self, count: int, *pointers: Any) -> list[Any]:
        return [self.take(pointer, count, int) for pointer in pointers]

    def give(self, pointer: Any, values: Any) -> None:
        """Write doubles where a pointer points to, unless it is NULL."""
        if pointer != self.ffi.NULL:
            array = np.ascontiguousarray(values, dtype=np.float64)
            self.ffi.memmove(pointer, array.tobytes(), array.nbytes)

    def clear(self, count: int, *pointers: Any) -> None:
        """Write what BEAGLE leaves where a likelihood is no number: a client may look there, whatever the code says."""
        for pointer in pointers:
            self.give(pointer, np.full(count, np.nan))

    def text(self, value: str) -> Any:
        kept.append(self.ffi.new("char[]", value.encode()))
        return kept[-1]

    # --- library

    def GetVersion(self) -> Any:
        return self.text(get_version())

    def GetCitation(self) -> Any:
        return self.text(get_citation())

    def GetResourceList(self) -> Any:
        resources = get_resource_list()
        rows = self.ffi.new("BeagleResource[]", len(resources))
        for row, own in zip(rows, resources, strict=True):
            row.name, row.description = self.text(own.name), self.text(own.description)
            row.supportFlags, row.requiredFlags = int(own.support_flags), int(own.required_flags)
        found = self.ffi.new("BeagleResourceList*")
        found.list, found.length = rows, len(resources)
        kept.extend([rows, found])
        return found

    def GetBenchmarkedResourceList(self, *arguments: Any) -> Any:
        """Resources with the required flags by their time, which is in milliseconds; ratios are to numpy's speed."""
        *sizes, pointer, n_listed, preferred, required, _, _, _, _ = arguments
        listed = self.take(pointer, n_listed, int)
        resources = get_resource_list()
        times = {own.number: time_likelihood(own.number, sizes, preferred, required) for own in resources}
        able = [
            own
            for own in resources
            if np.isfinite(times[own.number]) and (listed is None or own.number in listed.tolist())
        ]
        rows = self.ffi.new("BeagleBenchmarkedResource[]", len(able))
        for row, own in zip(rows, sorted(able, key=lambda own: times[own.number]), strict=True):
            row.number, row.name, row.description = own.number, self.text(own.name), self.text(own.description)
            row.supportFlags, row.requiredFlags = int(own.support_flags), int(own.required_flags)
            row.implName, row.benchedFlags = self.text("plltool"), int(own.required_flags)
            row.benchmarkResult, row.performanceRatio = times[own.number], times[0] / times[own.number]
        found = self.ffi.new("BeagleBenchmarkedResourceList*")
        found.list, found.length = rows, len(able)
        kept.extend([rows, found])
        return found if able else self.ffi.NULL

    def CreateInstance(self, *arguments: Any) -> int:
        *sizes, resources, n_resources, preferred, required, details = arguments
        listed = self.take(resources, n_resources, int)
        own = Instance(*[*sizes, None if listed is None else listed.tolist(), Flag(preferred), Flag(required)])
        number = next(handles)
        instances[number] = own
        if details != self.ffi.NULL:
            details.resourceNumber, details.flags = own.resource.number, int(own.flags)
            details.resourceName, details.implName = self.text(own.resource.name), self.text("plltool")
            details.implDescription = self.text(own.resource.description)
        return number

    def FinalizeInstance(self, handle: int) -> None:
        instances[handle].finalize()
        del instances[handle]

    def Finalize(self) -> None:
        for handle in list(instances):
            self.FinalizeInstance(handle)

    def SetCPUThreadCount(self, *_: int) -> None:
        """Threads are a matter of the device."""

    # --- data and model

    def SetTipStates(self, handle: int, tip: int, states: Any) -> None:
        instances[handle].set_tip_states(tip, self.take(states, instances[handle].pattern_count, int))

    def SetTipPartials(self, handle: int, tip: int, partials: Any) -> None:
        own = instances[handle]
        own.set_tip_partials(tip, self.take(partials, own.pattern_count * own.state_count))

    def _partials_size(self, own: Instance) -> int:
        return own.category_count * own.pattern_count * own.state_count

    def SetPartials(self, handle: int, buffer: int, partials: Any) -> None:
        own = instances[handle]
        own.set_partials(buffer, self.take(partials, self._partials_size(own)))

    def GetPartials(self, handle: int, buffer: int, scale: int, out: Any) -> None:
        self.give(out, instances[handle].get_partials(buffer, scale))

    def SetEigenDecomposition(self, handle: int, index: int, right: Any, left: Any, values: Any) -> None:
        own, n = instances[handle], instances[handle].state_count
        size = eigenvalues(own)
        own.set_eigen_decomposition(index, self.take(right, n * n), self.take(left, n * n), self.take(values, size))

    def SetStateFrequencies(self, handle: int, index: int, values: Any) -> None:
        instances[handle].set_state_frequencies(index, self.take(values, instances[handle].state_count))

    def SetCategoryWeights(self, handle: int, index: int, values: Any) -> None:
        instances[handle].set_category_weights(index, self.take(values, instances[handle].category_count))

    def SetCategoryRates(self, handle: int, values: Any) -> None:
        instances[handle].set_category_rates(self.take(values, instances[handle].category_count))

    def SetCategoryRatesWithIndex(self, handle: int, index: int, values: Any) -> None:
        instances[handle].set_category_rates_with_index(index, self.take(values, instances[handle].category_count))

    def SetPatternWeights(self, handle: int, values: Any) -> None:
        instances[handle].set_pattern_weights(self.take(values, instances[handle].pattern_count))

    def SetPatternPartitions(self, handle: int, count: int, partitions: Any) -> None:
        own = instances[handle]
        own.set_pattern_partitions(count, self.take(partitions, own.pattern_count, int))

    # --- matrices

    def ConvolveTransitionMatrices(self, handle: int, *arguments: Any) -> None:
        *lists, n = arguments
        instances[handle].convolve_transition_matrices(*self.integers(n, *lists))

    def AddTransitionMatrices(self, handle: int, *arguments: Any) -> None:
        *lists, n = arguments
        instances[handle].add_transition_matrices(*self.integers(n, *lists))

    def TransposeTransitionMatrices(self, handle: int, *arguments: Any) -> None:
        *lists, n = arguments
        instances[handle].transpose_transition_matrices(*self.integers(n, *lists))

    def SetDifferentialMatrix(self, handle: int, index: int, matrix: Any) -> None:
        self.SetTransitionMatrix(handle, index, matrix, 0.0)

    def UpdateTransitionMatrices(self, handle: int, eigen: int, *arguments: Any) -> None:
        *lists, lengths, n = arguments
        instances[handle].update_transition_matrices(eigen, *self.integers(n, *lists), self.take(lengths, n))

    def UpdateTransitionMatricesWithMultipleModels(self, handle: int, *arguments: Any) -> None:
        *lists, lengths, n = arguments
        indices = self.integers(n, *lists)
        instances[handle].update_transition_matrices_with_multiple_models(*indices, self.take(lengths, n))

    def SetTransitionMatrix(self, handle: int, index: int, matrix: Any, padded: float) -> None:
        own = instances[handle]
        own.set_transition_matrix(index, self.take(matrix, own.category_count * own.state_count**2), padded)

    def SetTransitionMatrices(self, handle: int, indices: Any, matrices: Any, _padded: Any, n: int) -> None:
        own = instances[handle]
        shape = n, own.category_count, own.state_count, own.state_count
        own.set_transition_matrices(*self.integers(n, indices), self.take(matrices, int(np.prod(shape))).reshape(shape))

    def GetTransitionMatrix(self, handle: int, index: int, out: Any) -> None:
        self.give(out, instances[handle].get_transition_matrix(index))

    # --- operations and scale factors

    def UpdatePartials(self, handle: int, operations: Any, n: int, cumulative: int) -> None:
        instances[handle].update_partials(self.take(operations, 7 * n, int), cumulative)

    def UpdatePartialsByPartition(self, handle: int, operations: Any, n: int) -> None:
        instances[handle].update_partials_by_partition(self.take(operations, 9 * n, int))

    def SetRootPrePartials(self, handle: int, buffers: Any, frequencies: Any, n: int) -> None:
        instances[handle].set_root_pre_partials(*self.integers(n, buffers, frequencies))

    def UpdatePrePartials(self, handle: int, operations: Any, n: int, cumulative: int) -> None:
        instances[handle].update_pre_partials(self.take(operations, 7 * n, int), cumulative)

    def WaitForPartials(self, handle: int, buffers: Any, n: int) -> None:
        instances[handle].wait_for_partials(self.take(buffers, n, int))

    def AccumulateScaleFactors(self, handle: int, indices: Any, n: int, *where: int) -> None:
        instances[handle].accumulate_scale_factors(self.take(indices, n, int), *where)

    AccumulateScaleFactorsByPartition = AccumulateScaleFactors

    def RemoveScaleFactors(self, handle: int, indices: Any, n: int, *where: int) -> None:
        instances[handle].remove_scale_factors(self.take(indices, n, int), *where)

    RemoveScaleFactorsByPartition = RemoveScaleFactors

    def ResetScaleFactors(self, handle: int, *where: int) -> None:
        instances[handle].reset_scale_factors(*where)

    ResetScaleFactorsByPartition = ResetScaleFactors

    def CopyScaleFactors(self, handle: int, to: int, source: int) -> None:
        instances[handle].copy_scale_factors(to, source)

    def GetScaleFactors(self, handle: int, index: int, out: Any) -> None:
        self.give(out, instances[handle].get_scale_factors(index))

    # --- likelihoods

    def CalculateRootLogLikelihoods(self, handle: int, *arguments: Any) -> None:
        *lists, n, out = arguments
        self.clear(1, out)
        found = instances[handle].calculate_root_log_likelihoods(*self.integers(n, *lists))
        if found is not None:
            self.give(out, found)

    def CalculateRootLogLikelihoodsByPartition(self, handle: int, *arguments: Any) -> None:
        *lists, partitions, n, count, each, total = arguments
        self.clear(n, each)
        self.clear(1, total)
        indices = [*self.integers(n * count, *lists), self.take(partitions, n, int)]
        found = instances[handle].calculate_root_log_likelihoods_by_partition(*indices, count)
        self.give(each, found[0])
        self.give(total, found[1])

    def CalculateEdgeLogLikelihoods(self, handle: int, *arguments: Any) -> None:
        lists, n, out = arguments[:8], arguments[8], arguments[9:]
        self.clear(1, *out)
        found = instances[handle].calculate_edge_log_likelihoods(*self.integers(n, *lists))
        for pointer, value in zip(out, found or (), strict=False):
            self.give(pointer, value)

    def CalculateEdgeLogLikelihoodsByPartition(self, handle: int, *arguments: Any) -> None:
        lists, partitions, n, count, out = arguments[:8], arguments[8], arguments[9], arguments[10], arguments[11:]
        self.clear(n, *out[::2])
        self.clear(1, *out[1::2])
        indices = [*self.integers(n * count, *lists), self.take(partitions, n, int)]
        each, total = instances[handle].calculate_edge_log_likelihoods_by_partition(*indices, count)
        for order in range(len(total)):
            self.give(out[2 * order], each[:, order])
            self.give(out[2 * order + 1], total[order])

    def CalculateEdgeDerivatives(self, handle: int, *arguments: Any) -> None:
        *lists, weights, n, sites, sums, squares = arguments
        indices = [*self.integers(n, *lists), self.take(weights, 1, int)]
        found = instances[handle].calculate_edge_derivatives(*indices, want_sites=sites != self.ffi.NULL)
        for pointer, values in zip((sites, sums, squares), found, strict=True):
            self.give(pointer, values)

    def CalculateCrossProductDerivative(self, handle: int, *arguments: Any) -> None:
        post, pre, rates, weights, lengths, n, sums, _ = arguments
        indices = [*self.integers(n, post, pre), *self.integers(1, rates, weights)]
        self.give(sums, instances[handle].calculate_cross_product_derivative(*indices, self.take(lengths, n)))

    def GetLogLikelihood(self, handle: int, out: Any) -> None:
        self.clear(1, out)
        self.give(out, instances[handle].get_log_likelihood())

    def GetDerivatives(self, handle: int, *out: Any) -> None:
        self.clear(1, *out)
        for pointer, value in zip(out, instances[handle].get_derivatives(), strict=False):
            self.give(pointer, value)

    def GetSiteLogLikelihoods(self, handle: int, out: Any) -> None:
        self.give(out, instances[handle].get_site_log_likelihoods())

    def GetSiteDerivatives(self, handle: int, *out: Any) -> None:
        for pointer, values in zip(out, instances[handle].get_site_derivatives(), strict=False):
            self.give(pointer, values)
