"""The processor that PoCL compiles for, where PoCL does not know it.

PoCL asks its LLVM for the processor's name. LLVM calls a processor that is newer than itself "generic" (LLVM 14, which
is in PyPI's PoCL, does so with AMD's Zen 5), and its own compiler then refuses every kernel: "unknown target CPU
'generic'" (PoCL's issue 1049). No option or environment variable of PoCL 3 changes the name, so it is replaced in the
driver's own description of the device.
"""

from __future__ import annotations

import ctypes
import os
import struct
from pathlib import Path

UNKNOWN = b"generic"
DESCRIPTION_BYTES = 1024  # read of PoCL's description of a device; its pointer to the name is at byte 640 in PoCL 3.0
POINTER = struct.Struct("P")

# Names of LLVM for the levels of the x86-64 psABI, and the flags of /proc/cpuinfo that tell the third from the first.
# The fourth level, with AVX-512, gains nothing: this PoCL handles vectors of four doubles.
MODERN, BASIC = b"x86-64-v3", b"x86-64"
MODERN_FLAGS = {"avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"}

_names: dict[int, ctypes.Array[ctypes.c_char]] = {}  # of devices; kept, because the driver points to them


def name_unknown_processor(device: int, version: str) -> bool:
    """Give PoCL a processor to compile for if its LLVM does not know this one; returns whether that was done.

    `device` is the address of the driver's description of it; `version` ends with the processor's name.
    """
    if "PoCL" not in version or not version.endswith("x86_64-unknown-linux-gnu-" + UNKNOWN.decode()):
        return False
    place = None if device in _names else _find_name(device)
    if place is None:
        return False
    _names[device] = ctypes.create_string_buffer(_processor_level())
    ctypes.c_void_p.from_address(place).value = ctypes.addressof(_names[device])
    return True


def _find_name(device: int) -> int | None:
    """Address of the first pointer to the text "generic" within the description, or None.

    Another description may follow, which is none of ours. In /proc/self/mem an address that is none is an error, no
    crash.
    """
    try:
        memory = os.open("/proc/self/mem", os.O_RDONLY)
    except OSError:
        return None
    try:
        description = os.pread(memory, DESCRIPTION_BYTES, device)
        whole = len(description) - len(description) % POINTER.size
        for number, (pointer,) in enumerate(POINTER.iter_unpack(description[:whole])):
            if _read_text(memory, pointer) == UNKNOWN:
                return device + POINTER.size * number
    except OSError:
        return None
    finally:
        os.close(memory)
    return None


def _read_text(memory: int, address: int) -> bytes:
    """The zero-terminated text at an address if it is as short as "generic", else something else."""
    try:
        text = os.pread(memory, len(UNKNOWN) + 1, address)
    except (OSError, OverflowError):
        return b""
    return text[:-1] if text.endswith(b"\0") else b""


def _processor_level() -> bytes:
    """LLVM's name for the level of the x86-64 psABI that this machine has."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return BASIC
    flags = next((line for line in text.splitlines() if line.startswith("flags")), "")
    return MODERN if set(flags.split()) >= MODERN_FLAGS else BASIC
