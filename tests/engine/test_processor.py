"""The processor that PoCL compiles for: a description of a device is made by hand, as a driver would hold it."""

from __future__ import annotations

import ctypes
import struct
import sys

import pytest

from plltool.engine.opencl import processor
from plltool.engine.opencl.device import list_devices
from plltool.engine.opencl.probe import check_device
from plltool.engine.opencl.processor import name_unknown_processor

UNKNOWN_VERSION = "OpenCL 3.0 PoCL HSTR: pthread-x86_64-unknown-linux-gnu-generic"
WORDS = 126

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="PyPI's PoCL exists for Linux only")


class Description:
    """What a driver holds: words that are no pointers, pointers to texts, and the pointer to the processor's name."""

    def __init__(self, names: tuple[bytes, ...], place: int = 80) -> None:
        self.texts = [ctypes.create_string_buffer(name) for name in (b"pthread", b"generics", b"gener", *names)]
        words = [7, 2**63, 2**64 - 1, 0, 4096] * (WORDS // 5) + [0]
        for number, text in enumerate(self.texts):
            words[place + number] = ctypes.addressof(text)
        self.memory = ctypes.create_string_buffer(struct.pack(f"{WORDS}P", *words), 8 * WORDS)
        self.address = ctypes.addressof(self.memory)

    def text(self, place: int) -> bytes:
        (pointer,) = struct.unpack_from("P", self.memory.raw, 8 * place)
        return ctypes.string_at(pointer)


def test_an_unknown_processor_gets_the_level_of_the_machine():
    description = Description((b"generic",))
    before = description.memory.raw
    assert name_unknown_processor(description.address, UNKNOWN_VERSION)
    assert description.text(83) in (b"x86-64", b"x86-64-v3")
    assert [description.text(place) for place in (80, 81, 82)] == [b"pthread", b"generics", b"gener"]
    changed = [word for word in range(WORDS) if before[8 * word :][:8] != description.memory.raw[8 * word :][:8]]
    assert changed == [83]
    assert not name_unknown_processor(description.address, UNKNOWN_VERSION), "it has a name now"


@pytest.fixture(autouse=True)
def no_names(monkeypatch):
    monkeypatch.setattr(processor, "_names", {})


@pytest.mark.parametrize(
    "version",
    [
        "OpenCL 3.0 PoCL HSTR: pthread-x86_64-unknown-linux-gnu-znver3",
        "OpenCL 3.0 PoCL HSTR: pthread-aarch64-unknown-linux-gnu-generic",
        "OpenCL 3.0 (Build 0)",
    ],
)
def test_other_devices_stay_as_they_are(version):
    description = Description((b"generic",))
    before = description.memory.raw
    assert not name_unknown_processor(description.address, version)
    assert description.memory.raw == before


def test_what_lies_behind_stays_as_it_is():
    description = Description((b"generic", b"generic"))
    before = description.memory.raw
    assert name_unknown_processor(description.address, UNKNOWN_VERSION)
    assert not name_unknown_processor(description.address, UNKNOWN_VERSION), "a device gets a name once"
    assert description.text(84) == b"generic"
    assert description.memory.raw[8 * 84 :] == before[8 * 84 :]


def test_nothing_is_changed_where_no_pointer_is_the_name():
    description = Description(())
    before = description.memory.raw
    assert not name_unknown_processor(description.address, UNKNOWN_VERSION)
    assert description.memory.raw == before


def test_an_address_that_is_none_is_no_crash():
    assert not name_unknown_processor(8, UNKNOWN_VERSION)


@pytest.mark.parametrize(
    ("flags", "level"),
    [
        ("fpu avx avx2 bmi1 bmi2 f16c fma movbe avx512f", b"x86-64-v3"),
        ("fpu avx avx2 bmi1 bmi2 f16c movbe", b"x86-64"),
        ("", b"x86-64"),
    ],
)
def test_level_of_the_machine(monkeypatch, tmp_path, flags, level):
    (tmp_path / "cpuinfo").write_text(f"processor : 0\nflags\t\t: {flags}\n\nflags\t\t: none\n")
    monkeypatch.setattr(processor, "Path", lambda _: tmp_path / "cpuinfo")
    assert processor._processor_level() == level


@pytest.mark.opencl
def test_the_driver_at_hand_compiles():
    """PoCL builds kernels here, whether its LLVM knows the processor or not."""
    pocl = [device for device in list_devices()[0] if "Portable Computing" in device.platform]
    if not pocl:
        pytest.skip("PoCL is not installed")
    check_device(pocl[0].index)
