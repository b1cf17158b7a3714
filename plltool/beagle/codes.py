"""BEAGLE's flags and return codes, checks that raise them, and the choice of hardware by flags."""

from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from enum import IntEnum, IntFlag

import numpy as np

from plltool.arrays import ArrayLike, FloatArray, IndexArray
from plltool.constants import VERSION
from plltool.engine.opencl.device import Device, list_devices
from plltool.engine.opencl.device_faults import find_fault
from plltool.engine.select import rank_devices
from plltool.errors import DeviceError, PlltoolError

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
    """A call that fails; `code` is what BEAGLE returns for it."""

    def __init__(self, code: Code, message: str):
        super().__init__(f"{code.name}: {message}")
        self.code = code


LEAST_SIZES = {"tip_count": 1, "state_count": 2, "pattern_count": 1, "category_count": 1}


def check_sizes(sizes: Mapping[str, int]) -> None:
    """OUT_OF_RANGE unless the sizes of an instance, by name, are whole numbers and large enough."""
    for name, found in sizes.items():
        least = LEAST_SIZES.get(name, 0)
        if not isinstance(found, (int, np.integer)) or found < least:
            expected = f"expected a whole number, {least} or more"
            raise BeagleError(Code.OUT_OF_RANGE, f"{name}: found {found!r}, {expected}")


def check_index(what: str, index: int, count: int) -> int:
    """The index; OUT_OF_RANGE unless it is one of `count`."""
    if not 0 <= index < count:
        expected = f"expected 0 .. {count - 1}" if count else "the instance has none"
        raise BeagleError(Code.OUT_OF_RANGE, f"found {what} {index}, {expected}")
    return int(index)


def check_whole(what: str, values: ArrayLike) -> IndexArray:
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


def check_indices(what: str, indices: ArrayLike, count: int, optional: bool = False) -> IndexArray:
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


def check_array(what: str, values: ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    """A copy of the values as float64 of this shape, which they may also come flattened in."""
    try:
        found = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise BeagleError(Code.OUT_OF_RANGE, f"{what}: found {values!r}, expected numbers") from error
    if found.size != int(np.prod(shape)):
        expected = " x ".join(map(str, shape))
        raise BeagleError(Code.OUT_OF_RANGE, f"{what}: found {found.size} numbers, expected {expected}")
    return found.reshape(shape)


# --- resources: the hardware on which an instance can run -----------------------------------------------------

_CHOICES = ("PRECISION", "COMPUTATION", "EIGEN", "SCALING", "INVEVEC")  # that all resources offer
_ANYWHERE = Flag(sum(flag for flag in Flag if str(flag.name).startswith(_CHOICES))) | Flag.SCALERS_LOG
_PROCESSORS = {"cpu": Flag.PROCESSOR_CPU, "gpu": Flag.PROCESSOR_GPU}


@dataclass(frozen=True)
class Resource:
    """Where an instance can run."""

    number: int  # its place in the list
    name: str
    description: str
    support_flags: Flag  # what it can do
    required_flags: Flag  # what tells its kind
    device: Device | None = field(default=None, repr=False)  # the OpenCL device; None for numpy


def get_version() -> str:
    """The version of plltool."""
    return VERSION


def get_citation() -> str:
    """What to cite: this program, and the library whose calls it answers."""
    return (
        f"plltool {VERSION}\nAyres D.L. et al. 2012. BEAGLE: an application programming interface and high-performance "
        "computing library for statistical phylogenetics. Systematic Biology 61:170-173."
    )


def get_resource_list() -> list[Resource]:
    """All resources: numpy on the CPU first, then the usable OpenCL devices, best first."""
    plain = _ANYWHERE | Flag.PROCESSOR_CPU | Flag.FRAMEWORK_CPU | Flag.VECTOR_NONE | Flag.THREADING_NONE
    found = [Resource(0, "CPU", "numpy, one thread", plain, Flag.FRAMEWORK_CPU)]
    try:
        devices = rank_devices(list_devices()[0])
    except DeviceError:
        devices = []
    for device in devices:
        own = Flag.FRAMEWORK_OPENCL | _PROCESSORS.get(device.kind, Flag.PROCESSOR_OTHER)
        threads = Flag.THREADING_NONE | Flag.THREADING_CPP if device.kind == "cpu" else Flag.THREADING_NONE
        flags = _ANYWHERE | own | threads | Flag.VECTOR_NONE | Flag.VECTOR_SSE | Flag.VECTOR_AVX
        found.append(Resource(len(found), device.name, device.version, flags, Flag.FRAMEWORK_OPENCL, device))
    return found


def choose_resource(numbers: Sequence[int] | None, preferred: Flag, required: Flag) -> Resource:
    """The resource, among the `numbers` of the list, that has all required flags and most of the preferred ones.

    Of several the first OpenCL device that passes its test is taken, and numpy last. NO_RESOURCE if there is none.
    """
    resources = get_resource_list()
    if numbers is not None:
        if not len(numbers):
            raise BeagleError(Code.NO_RESOURCE, "the list of resources is empty")
        resources = [resources[number] for number in check_indices("resource", list(numbers), len(resources))]
    able = [resource for resource in resources if required & resource.support_flags == required]
    if not able:
        nearest = max(resources, key=lambda one: (one.support_flags & required).bit_count())
        missing = Flag(int(required) & ~int(nearest.support_flags))  # ~ of a flag forgets unknown ones
        raise BeagleError(Code.NO_RESOURCE, f"no resource has {missing.name or hex(missing)}")
    able.sort(key=lambda one: (-(one.support_flags & preferred).bit_count(), one.device is None, one.number))
    faults = []
    for resource in able:
        fault = resource.device and find_fault(resource.device)
        if fault is None:
            return resource
        faults.append(f"{resource.name}: {fault}")
    raise BeagleError(Code.NO_RESOURCE, "; ".join(faults))
