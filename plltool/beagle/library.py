"""A shared library with the C interface of BEAGLE 3.1, which answers by `Instance`, for programs that call BEAGLE.

`build_beagle_library` makes it: it embeds this Python (cffi). Each function of `library.h` turns pointers into arrays
and calls the method of that name of an instance, as the names of its parameters say (`InstanceCall`). An error
becomes its code; anything else that goes wrong is printed and becomes GENERAL.
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
from itertools import chain
from math import prod
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


SIZES = {  # of arrays that a client gives, by parameters: what is multiplied, attributes of the instance or numbers
    **dict.fromkeys(("states", "patternWeights", "patternPartitions"), "pattern_count"),
    **dict.fromkeys(("eigenVectors", "inverseEigenVectors"), "state_count state_count"),
    **dict.fromkeys(("categoryWeights", "categoryRates"), "category_count"),
    **dict.fromkeys(("categoryRatesIndex", "categoryWeightsIndex"), "1"),
    "tipPartials": "pattern_count state_count",
    "partials": "category_count pattern_count state_count",
    "eigenValues": "eigenvalues",
    "frequencies": "state_count",
    "matrix": "category_count state_count state_count",
    "matrixValues": "items category_count state_count state_count",
    "operations": "items 7",
    "partitionOperations": "items 9",
    "partitionIndices": "partitions",
}


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
    for name, parameters in re.findall(r"\bbeagle(\w+)\((.*)\);", DECLARATIONS):
        function = getattr(calls, name, None) or InstanceCall(calls, name, parameters)
        ffi.def_extern(name=f"beagle{name}")(guard(f"beagle{name}", function))


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
    """The functions that are more than an `InstanceCall`, by their names without "beagle"."""

    def __init__(self, ffi: Any):
        self.ffi = ffi

    def take(self, pointer: Any, count: int, kind: type = float) -> Any:
        """A copy of what a pointer points to; None for NULL."""
        if pointer == self.ffi.NULL:
            return None
        dtype = np.dtype(np.float64 if kind is float else np.int32)
        return np.frombuffer(self.ffi.buffer(pointer, count * dtype.itemsize), dtype=dtype).copy()

    def give(self, pointer: Any, values: Any) -> None:
        """Write doubles where a pointer points to, unless it is NULL."""
        if pointer != self.ffi.NULL:
            array = np.ascontiguousarray(values, dtype=np.float64)
            self.ffi.memmove(pointer, array.tobytes(), array.nbytes)

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

    def CalculateEdgeDerivatives(self, handle: int, *arguments: Any) -> None:
        *lists, weights, n, sites, sums, squares = arguments
        indices = [*(self.take(pointer, n, int) for pointer in lists), self.take(weights, 1, int)]
        found = instances[handle].calculate_edge_derivatives(*indices, want_sites=sites != self.ffi.NULL)
        for pointer, values in zip((sites, sums, squares), found, strict=True):
            self.give(pointer, values)


class InstanceCall:
    """A function that calls the method of its name of an instance, as its parameters in DECLARATIONS say.

    The method gets all that is not `unused`, and arrays by `SIZES`; a `count` is only for those of partitions. What it
    returns goes where `double*` points to. A client may look there for a likelihood whatever the code says: without one
    there is NaN, as in BEAGLE.
    """

    def __init__(self, calls: Calls, name: str, parameters: str):
        self._calls, self._name = calls, re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
        kinds = {word: kind for kind, word in (parameter.rsplit(" ", 1) for parameter in parameters.split(", "))}
        self._words, used = tuple(kinds), [word for word in kinds if not word.startswith("unused")]
        self._out = [word for word in used if kinds[word] == "double*"]
        left_out = {"instance", "partitionCount", *self._out, *(() if "partitionIndices" in kinds else ("count",))}
        self._inputs = [word for word in used if word not in left_out]
        self._arrays = {
            word: (int if "int" in kinds[word] else float, SIZES.get(word, "items").split())
            for word in self._inputs
            if kinds[word].endswith("*")
        }

    def __call__(self, *arguments: Any) -> None:
        given = dict(zip(self._words, arguments, strict=True))
        n_partitions, give = given.get("partitionCount", 1), self._calls.give
        for word in self._out:
            if word.startswith(("sum", "partition")):
                give(given[word], np.full(n_partitions if word.startswith("partition") else 1, np.nan))
        own = instances[given["instance"]]
        known = {"partitions": n_partitions, "items": given.get("count", 1) * n_partitions, "7": 7, "9": 9, "1": 1}
        if "eigenValues" in self._arrays:
            known["eigenvalues"] = eigenvalues(own)
        for word, (kind, sizes) in self._arrays.items():
            count = prod(known[size] if size in known else getattr(own, size) for size in sizes)
            given[word] = self._calls.take(given[word], count, kind)
        method = getattr(own, self._name, None) or getattr(own, self._name.removesuffix("_by_partition"))
        found = method(*(given[word] for word in self._inputs))
        if "partitionFirst" in self._out:  # of each order of derivatives, of all partitions and their sum
            found = chain(*zip(found[0].T, found[1], strict=True))
        elif len(self._out) == 1 and found is not None:
            found = [found]
        for word, values in zip(self._out, found if self._out and found is not None else (), strict=False):
            give(given[word], values)
