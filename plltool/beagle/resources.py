"""The hardware on which an instance can run, and the choice among it by flags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from plltool.beagle.codes import BeagleError, Code, Flag, check_indices
from plltool.constants import VERSION
from plltool.engine.opencl.device import Device, list_devices
from plltool.engine.opencl.device_faults import find_fault
from plltool.engine.select import rank_devices
from plltool.errors import DeviceError

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
