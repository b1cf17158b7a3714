"""What a user asks of the machine: device, precision, vector width, threads."""

from __future__ import annotations

from dataclasses import dataclass, replace

from plltool.errors import InputError

PRECISIONS = ("double", "single")


@dataclass(frozen=True)
class Hardware:
    """Where and how the likelihood is computed.

    Attributes
    ----------
    device : "auto", "numpy", "opencl", "cpu", "gpu", the index "platform:device" of an OpenCL device, or part
        of the name of a device or platform
    precision : "double" or "single", of CLAs and P matrices
    vw : lanes of a block; None lets the device decide
    threads : most cores of a CPU device to use; None for all
    """

    device: str = "auto"
    precision: str = "double"
    vw: int | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise InputError(f"precision: found {self.precision!r}, expected {' or '.join(PRECISIONS)}")
        for name, value in (("vw", self.vw), ("threads", self.threads)):
            if value is not None and not (isinstance(value, int) and value > 0):
                raise InputError(f"{name}: found {value!r}, expected a whole number above 0")


def parse_hardware(text: str) -> Hardware:
    """Read DEVICE[:SETTING=VALUE]..., such as ``numpy:vw=2`` or ``0:0:precision=single``.

    Raises
    ------
    InputError
        If a setting is none of vw, precision and threads, or its value cannot be used.
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
    if setting == "vw" and value.isdecimal() and int(value) > 0:
        return replace(hardware, vw=int(value))
    if setting == "threads" and value.isdecimal() and int(value) > 0:
        return replace(hardware, threads=int(value))
    raise InputError(
        f"{text!r}: found {setting}={value}, expected vw=N, threads=N or precision={'|'.join(PRECISIONS)}"
    )
