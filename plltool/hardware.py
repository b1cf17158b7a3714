"""What a user asks of the machine: device, precision, vector width, threads, memory."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path, PurePosixPath
from typing import Any, TypedDict, Unpack

from plltool.constants import PRECISIONS
from plltool.errors import InputError, check_kind, check_one_of, show_name, show_object
from plltool.settings import make_plain

ASSUMED_MEMORY = 1 << 32  # bytes of the host where the system tells of none
SIZE_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}  # binary logarithms


@dataclass(frozen=True)
class Hardware:
    """Where and how the likelihood is computed.

    Attributes
    ----------
    device : "auto", "numpy", "opencl", "cpu", "gpu", the index "platform:device" of an OpenCL device, or part
        of the name of a device or platform. Several, in a list or separated by commas, or "all", divide the patterns
    precision : "double", "single", or "mixed": CLAs and P matrices single, sums over states and components double
    vw : lanes of a block; None lets the device decide
    threads : most cores of a CPU device to use; None for all
    memory : bytes that conditional likelihoods may take on each device; None for what it offers
    share : of several devices, in proportion to which they divide the patterns; None for their speeds
    """

    device: str = "auto"
    precision: str = "double"
    vw: int | None = None
    threads: int | None = None
    memory: int | None = None
    share: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        words: Any = [self.device] if isinstance(self.device, str) else self.device
        if not (isinstance(words, Sequence) and words and all(isinstance(word, str) for word in words)):
            raise InputError(f"device: found {show_object(words)}, expected a name, or several in a list")
        plain: dict[str, Any] = {"device": ",".join(words)}
        check_one_of("precision", self.precision, PRECISIONS)
        for name, value in (("vw", self.vw), ("threads", self.threads), ("memory", self.memory)):
            is_number = isinstance(value, Integral) and not isinstance(value, bool) and value > 0
            if value is not None and not is_number:
                raise InputError(f"{name}: found {value!r}, expected a whole number above 0")
        if self.share is not None:
            try:
                plain["share"] = tuple(float(part) for part in self.share)
            except (TypeError, ValueError):
                found = f"share: found {show_object(self.share)}"
                raise InputError(f"{found}, expected a number for each device, such as (0.6, 0.4)") from None
        vars(self).update(plain)  # a frozen dataclass has no other way
        make_plain(self)
        if self.share is not None:
            self._check_share(self.share)

    @classmethod
    def of(cls, **settings: Unpack[HardwareSettings]) -> Hardware:
        """From keywords; several devices, and their shares, may be any sequences."""
        plain: dict[str, Any] = {**settings}
        return cls(**plain)

    def _check_share(self, share: tuple[float, ...]) -> None:
        if not self.is_several:
            found = f"found {format_share(share)} for device {show_name(self.device)}"
            raise InputError(f"share: {found}, expected several devices")
        if not (all(0 <= part < math.inf for part in share) and sum(share) > 0):
            raise InputError(f"share: found {format_share(share)}, expected numbers of 0 or more that are not all 0")
        if not self.is_all and len(share) != len(self.words):
            found = f"found {len(share)} for device {show_name(self.device)}"
            raise InputError(f"share: {found}, expected {len(self.words)}: one for each device")

    @property
    def is_all(self) -> bool:
        """Whether all devices are asked for."""
        return self._word == "all"

    @property
    def is_several(self) -> bool:
        """Whether patterns are divided over several devices."""
        return self.is_all or "," in self.device

    @property
    def words(self) -> tuple[str, ...]:
        """The name of each device."""
        return tuple(word.strip() for word in self._word.split(","))

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

    device: str | Sequence[str]
    precision: str
    vw: int | None
    threads: int | None
    memory: int | None
    share: Sequence[float] | None


def parse_size(text: str) -> int:
    """Bytes of a size such as ``2G``, ``1.5GiB``, ``500M`` or ``1000000``; units are powers of 1024.

    Raises InputError if it is no size of at least a byte.
    """
    check_kind("memory", text, str, 'a size such as "2G"')
    found = re.fullmatch(r"([0-9]{1,18}(?:\.[0-9]{1,18})?)([KMGT]?)(?:I?B)?", text.strip().upper())
    size = int(float(found[1]) * 2 ** SIZE_UNITS[found[2]]) if found else 0
    if size < 1:
        raise InputError(f"memory: found {show_name(text)}, expected a size such as 2G, 500M or a number of bytes")
    return size


def parse_share(text: str) -> tuple[float, ...]:
    """Shares of several devices, such as ``0.6,0.4``; InputError if they are not numbers of 0 or more."""
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?(,[0-9]{1,9}(\.[0-9]{1,9})?)*", text):
        raise InputError(f"share: found {show_name(text)}, expected a number for each device, such as 0.6,0.4")
    return tuple(float(part) for part in text.split(","))


def format_share(share: Sequence[float]) -> str:
    """What `parse_share` reads."""
    return ",".join(f"{part:g}" for part in share)


def parse_hardware(text: str) -> Hardware:
    """Read DEVICE[:SETTING=VALUE]..., such as ``numpy:vw=2``, ``0:0:precision=single`` or ``intel,pocl``.

    Raises InputError if a setting is none of vw, precision, threads, memory and share, or its value cannot be used.
    """
    fields = text.split(":")
    device = ":".join(field for field in fields if "=" not in field)
    settings: dict[str, Any] = {}
    for name, _, value in (field.partition("=") for field in fields if "=" in field):
        if name in ("vw", "threads") and re.fullmatch("[0-9]{1,9}", value) and int(value) > 0:
            settings[name] = int(value)
        elif name in ("memory", "share"):
            settings[name] = parse_size(value) if name == "memory" else parse_share(value)
        elif name == "precision" and value in PRECISIONS:
            settings[name] = value
        else:
            expected = f"vw=N, threads=N, memory=SIZE, share=N,N... or precision={'|'.join(PRECISIONS)}"
            raise InputError(f"{show_name(text)}: found {show_name(f'{name}={value}')}, expected {expected}")
    return Hardware(device=device or "auto", **settings)


def available_memory() -> int:
    """Bytes that programs may still take on the host, as Linux tells; elsewhere all that is free, or half of all."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return _physical_memory()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))


def _physical_memory() -> int:
    """Free bytes; half of all where the system does not count free ones (macOS); ASSUMED_MEMORY where it tells none."""
    for name, share in (("SC_AVPHYS_PAGES", 1), ("SC_PHYS_PAGES", 2)):
        with suppress(AttributeError, OSError, ValueError):
            return os.sysconf(name) * os.sysconf("SC_PAGE_SIZE") // share
    return ASSUMED_MEMORY


def available_cores() -> int:
    """CPU cores that this process may use: on Linux those that it may run on, within its quota; elsewhere all."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, math.ceil(min(allowed, _core_quota(Path("/")))))


def _core_quota(root: Path) -> float:
    """The processor time for each second that the control groups of this process allow; infinity without a limit.

    A container may see the folders of its own group only, at the top of the tree. `root` is the folder that has proc
    and sys.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return math.inf
    quotas = [math.inf]
    for line in lines:
        _, kinds, group = line.split(":", 2)
        if kinds and "cpu" not in kinds.split(","):
            continue
        own = PurePosixPath(group)
        for folder in (own, *own.parents):
            at = root / "sys/fs/cgroup" / kinds / str(folder).lstrip("/")
            names = ("cpu.cfs_quota_us", "cpu.cfs_period_us") if kinds else ("cpu.max",)
            with suppress(OSError, ValueError, ZeroDivisionError):  # there is no such folder, or no limit: "max"
                quota, period = " ".join((at / name).read_text(encoding="ascii") for name in names).split()
                if int(quota) > 0:
                    quotas.append(int(quota) / int(period))
    return min(quotas)
