"""What a user asks of the machine: device, precision, vector width, threads, memory."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypedDict

from plltool.constants import PRECISIONS
from plltool.errors import InputError, check_one_of, show_name

SIZE_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}  # binary logarithms


@dataclass(frozen=True)
class Hardware:
    """Where and how the likelihood is computed.

    Attributes
    ----------
    device : "auto", "numpy", "opencl", "cpu", "gpu", the index "platform:device" of an OpenCL device, or part
        of the name of a device or platform
    precision : "double", "single", or "mixed": CLAs and P matrices single, sums over states and components double
    vw : lanes of a block; None lets the device decide
    threads : most cores of a CPU device to use; None for all
    memory : bytes that conditional likelihoods may take on the device; None for what it offers
    """

    device: str = "auto"
    precision: str = "double"
    vw: int | None = None
    threads: int | None = None
    memory: int | None = None

    def __post_init__(self) -> None:
        check_one_of("precision", self.precision, PRECISIONS)
        for name, value in (("vw", self.vw), ("threads", self.threads), ("memory", self.memory)):
            if value is not None and not (isinstance(value, int) and value > 0):
                raise InputError(f"{name}: found {value!r}, expected a whole number above 0")

    @property
    def is_auto(self) -> bool:
        """Whether plltool chooses the device."""
        return self._word == "auto"

    @property
    def is_numpy(self) -> bool:
        """Whether numpy is asked for."""
        return self._word == "numpy"

    @property
    def _word(self) -> str:
        return self.device.strip().lower()


class HardwareSettings(TypedDict, total=False):
    """The fields of `Hardware`, for functions that take them as keywords."""

    device: str
    precision: str
    vw: int | None
    threads: int | None
    memory: int | None


def is_count(text: str) -> bool:
    """Whether this spells a whole number above 0 of at most 9 digits."""
    return re.fullmatch("[0-9]{1,9}", text) is not None and int(text) > 0


def parse_size(text: str) -> int:
    """Bytes of a size such as ``2G``, ``1.5GiB``, ``500M`` or ``1000000``; units are powers of 1024.

    Raises
    ------
    InputError
        If it is no size of at least a byte.
    """
    found = re.fullmatch(r"([0-9]{1,18}(?:\.[0-9]{1,18})?)([KMGT]?)(?:I?B)?", text.strip().upper())
    size = int(float(found[1]) * 2 ** SIZE_UNITS[found[2]]) if found else 0
    if size < 1:
        raise InputError(f"memory: found {show_name(text)}, expected a size such as 2G, 500M or a number of bytes")
    return size


def parse_hardware(text: str) -> Hardware:
    """Read DEVICE[:SETTING=VALUE]..., such as ``numpy:vw=2`` or ``0:0:precision=single``.

    Raises
    ------
    InputError
        If a setting is none of vw, precision, threads and memory, or its value cannot be used.
    """
    fields = text.split(":")
    device = ":".join(field for field in fields if "=" not in field)
    hardware = Hardware(device=device or "auto")
    for field in fields:
        if "=" in field:
            hardware = _set(hardware, text, *field.split("=", 1))
    return hardware


def _set(hardware: Hardware, text: str, setting: str, value: str) -> Hardware:
    if setting == "precision" and value in PRECISIONS:
        return replace(hardware, precision=value)
    if setting == "vw" and is_count(value):
        return replace(hardware, vw=int(value))
    if setting == "threads" and is_count(value):
        return replace(hardware, threads=int(value))
    if setting == "memory":
        return replace(hardware, memory=parse_size(value))
    found = show_name(f"{setting}={value}")
    expected = f"vw=N, threads=N, memory=SIZE or precision={'|'.join(PRECISIONS)}"
    raise InputError(f"{show_name(text)}: found {found}, expected {expected}")


def available_memory() -> int:
    """Bytes that programs may still take on the host, as Linux tells; elsewhere all that is free."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
