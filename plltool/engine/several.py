"""Several devices, or ranks of an MPI job, for one likelihood: how fast each is, and which patterns each takes.

Every device holds a run of consecutive patterns, in proportion to its *share*. The shares decide the order of the sums
and so the last bits of every value.

Ranks of an MPI job each ask every request of the engine of their own patterns, and the answers are added up over the
ranks, see `plltool.processes.ranks`. Values of patterns are exchanged in the same way: each rank adds 0 for the
patterns of the others.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from time import perf_counter
from typing import Any
from zlib import crc32

import numpy as np

from plltool.arrays import FloatArray, IntArray
from plltool.constants import VERSION
from plltool.engine import program as prog
from plltool.engine.base import Engine, EngineData
from plltool.engine.composite import Composite, Shard
from plltool.engine.layout import DataShape
from plltool.engine.opencl.device import Device
from plltool.engine.opencl.device_faults import find_fault
from plltool.engine.program import Request
from plltool.engine.requests import Answer
from plltool.engine.select import find_device, find_devices, make_engine, rank_devices
from plltool.engine.storage import Slots
from plltool.errors import DeviceError, EngineError, InputError, PlltoolError, warn_caller
from plltool.hardware import Hardware, available_cores, format_share
from plltool.model.components import Components
from plltool.processes.ranks import HEADER, Ranks
from plltool.progress import log

SPEED_SAMPLE = 1 << 23  # sequence characters that are enough to measure the speed of a device
SPEED_RUNS = 4  # the first of which warms up: a driver may compile kernels then
SPEED_SECONDS = 0.5  # of the others, after which there are no more
SPEED_LENGTH = 0.1  # of every branch
WHOLE_PARTS = 0.05  # of the smaller share beside a cut: how far it moves so that parts stay whole


@dataclass(unsafe_hash=True)  # no field is set again
class UsedDevice:
    """One of the devices of a run."""

    hardware: Hardware  # asks for this device alone
    device: Device | None  # the OpenCL device, None for numpy
    share: float  # its share of the patterns; all together 1

    def __post_init__(self) -> None:
        self.kind = "numpy" if self.device is None else self.device.kind  # "numpy", "cpu", "gpu" or another word
        self.shares_host_memory = self.device is None or self.device.shares_host_memory


def all_indices(devices: Sequence[Device], precision: str = "double") -> list[str]:
    """The indices of the devices that "all" means, see `name_devices`."""
    ranked = rank_devices(devices, precision)
    cpus = [device for device in ranked if device.kind == "cpu"]
    return [device.index for device in ranked if device not in cpus[1:]]


def name_devices(hardware: Hardware) -> Hardware:
    """The same hardware with the devices that "all" means by their indices; DeviceError if there is none.

    These are all that can be used, the best first; but only one of several drivers of the CPU, which share its cores.
    """
    if not hardware.is_all:
        return hardware
    found, failures = find_devices()
    precision = hardware.precision
    passing = [device for device in rank_devices(found, precision) if find_fault(device) is None]
    named = all_indices(passing, precision)
    if not named:
        raise DeviceError("; ".join(["no OpenCL device can be used", *failures]))
    return replace(hardware, device=",".join(named))


def find_used_devices(hardware: Hardware) -> list[UsedDevice]:
    """The devices that are named, in order, with equal shares if none are given; DeviceError if one fails."""
    words = hardware.words
    shares = hardware.share or (1.0,) * len(words)
    found, failures = find_devices() if any(word != "numpy" for word in words) else ([], [])
    return [
        UsedDevice(
            replace(hardware, device=word, share=None),
            None if word == "numpy" else find_device(found, word, failures, hardware.precision),
            share / sum(shares),
        )
        for word, share in zip(words, shares, strict=True)
    ]


def measure_speed(data: EngineData, shape: DataShape, components: Components, hardware: Hardware) -> float:
    """Pattern-nodes a second that a device does on a sample of these data; takes about half a second."""
    n_taxa, n_patterns = data.codes.shape
    n = min(n_patterns, max(1, SPEED_SAMPLE // n_taxa))
    sample = data.of_patterns(np.linspace(0, n_patterns - 1, n).astype(np.intp))
    tips = np.arange(2, n_taxa - 1)
    slots = tips % 2
    rows = [prog.newview(1, ~0, 0, ~1, 1), prog.newview(slots, 1 - slots, 0, ~tips, tips)]
    across = prog.evaluate(0, ~(n_taxa - 1), n_taxa % 2, 0)
    request = Request(np.concatenate([*rows, across]), 1, "speed", keep=False)
    lengths = np.full(n_taxa, SPEED_LENGTH)
    engine, _ = make_engine(sample, replace(shape, part_patterns=(n,)), Slots(2), hardware)
    seconds: list[float] = []
    with engine:
        engine.set_model([components])
        while len(seconds) < 2 or (len(seconds) < SPEED_RUNS and sum(seconds[1:]) < SPEED_SECONDS):
            began = perf_counter()
            with suppress(EngineError):  # a pattern that is impossible under this model takes as long as any other
                engine.execute(request, lengths)
            seconds.append(perf_counter() - began)
    return n * (n_taxa - 2) / min(seconds[1:])


def measure_shares(used_devices: Sequence[UsedDevice], measure: Callable[[Hardware], float]) -> tuple[float, ...]:
    """Shares in proportion to what `measure` finds, in whole hundredths, so that they are often the same."""
    speeds = [measure(used.hardware) for used in used_devices]
    shares = [round(speed / sum(speeds), 2) for speed in speeds]
    for used, speed, share in zip(used_devices, speeds, shares, strict=True):
        log.info("device %s: %.3g million pattern-nodes a second, share %g", used.hardware.device, speed / 1e6, share)
    return tuple(shares)


def cut_patterns(part_patterns: Sequence[int], shares: Sequence[float]) -> list[range]:
    """The patterns of each device, which may be none: consecutive, in proportion to the shares.

    A cut that nearly falls between two parts does so, and both parts stay whole.
    """
    ends = np.cumsum(part_patterns)
    total = int(ends[-1])
    cuts = [0]
    for at, before, after in zip(np.cumsum(shares)[:-1] * total, shares, shares[1:], strict=False):
        nearest = int(ends[np.argmin(np.abs(ends - at))])
        near_enough = abs(nearest - at) <= WHOLE_PARTS * min(before, after) * total
        cuts.append(max(cuts[-1], nearest if near_enough else min(round(float(at)), total)))
    return [range(first, last) for first, last in pairwise([*cuts, total])]


class Devices:
    """The devices of a run, for all engines that it opens there."""

    def __init__(self, used_devices: Sequence[UsedDevice]):
        self._used_devices = list(used_devices)
        self._failed: set[int] = set()

    def memory_share(self, used: UsedDevice) -> float:
        """The share of a device's memory that is there for it, where others of these devices take the same memory."""
        if used.hardware.memory is not None:
            return 1.0
        index = None if used.device is None else used.device.index
        rivals = [
            other
            for other in self._used_devices
            if (other.shares_host_memory and used.shares_host_memory)
            or (other.device is not None and other.device.index == index)
        ]
        return 1 / len(rivals)

    def divide(self, part_patterns: Sequence[int]) -> list[tuple[UsedDevice, tuple[int, ...]]]:
        """The devices that get patterns, and how many of each part that they hold."""
        ranges = cut_patterns(part_patterns, [used.share for used in self._used_devices])
        divided = zip(self._used_devices, ranges, strict=True)
        return [(used, Shard.of(part_patterns, np.array(own))[1]) for used, own in divided if len(own)]

    def open(
        self,
        data: EngineData,
        part_patterns: Sequence[int],
        make: Callable[[EngineData, tuple[int, ...], Hardware, float], Engine],
    ) -> Composite:
        """Engines for the patterns of parts of one shape, as one; DeviceError if a device fails here already.

        If a device fails in mid-run, its patterns move to the one with the largest share that is left. A
        `PlltoolWarning` says so once. `make` takes data, the patterns of each part, the device, and the share of its
        memory.
        """
        ranges = cut_patterns(part_patterns, [used.share for used in self._used_devices])
        where = [number for number, patterns in enumerate(ranges) if len(patterns)]  # the device of each shard
        held = [Shard.of(part_patterns, np.array(ranges[number])) for number in where]

        def open_one(number: int) -> Engine:
            used, (shard, sizes) = self._used_devices[where[number]], held[number]
            return make(data.of_patterns(shard.patterns), sizes, used.hardware, self.memory_share(used))

        def move(number: int, error: DeviceError) -> Engine:
            while True:
                where[number] = self._another(where[number], error)
                try:
                    return open_one(number)
                except DeviceError as another:
                    error = another

        engines: list[Engine] = []
        try:
            for number in range(len(held)):
                engines.append(open_one(number))
        except DeviceError:
            for engine in engines:
                engine.close()
            raise
        return Composite(engines, [shard for shard, _ in held], data.weights, part_patterns, move)

    def _another(self, number: int, error: DeviceError) -> int:
        """The device to take the place of one that has failed; raises the error if there is none."""
        is_news = number not in self._failed
        self._failed.add(number)
        left = [other for other in range(len(self._used_devices)) if other not in self._failed]
        if not left:
            raise error
        best = max(left, key=lambda other: self._used_devices[other].share)
        if is_news:
            taken, device = self._used_devices[best].hardware.device, self._used_devices[number].hardware.device
            warn_caller(f"device {device} has failed, its patterns move to {taken}: {error}")
        return best


def of_rank(ranks: Ranks, hardware: Hardware) -> Hardware:
    """The share of a rank: one of several devices in turn, and as many cores as others; InputError for given shares."""
    if hardware.share is not None:
        raise InputError(f"share: found {format_share(hardware.share)}, expected none: ranks have equal shares")
    threads = hardware.threads or max(1, available_cores() // ranks.n_local)
    return replace(hardware, device=hardware.words[ranks.local % len(hardware.words)], threads=threads)


def rank_memory(ranks: Ranks, hardware: Hardware) -> float:
    """The share of its device's memory that a rank may use, where other ranks of the machine use it, too."""
    return 1.0 if hardware.memory is not None else 1 / ranks.n_local


# what ranks know of each other's engine
SHARED = ("n_slots", "n_groups", "has_double", "resident", "device_name", "driver")


class RankShards(Composite):
    """The patterns of all ranks, of which each holds an equal share; requests and errors as for `Engine`.

    `make` makes the engine of this rank from data and the number of patterns of each part. Raises InputError if the
    ranks have read different data, or run different versions of plltool.
    """

    only_adds = False

    def __init__(
        self,
        ranks: Ranks,
        data: EngineData,
        part_patterns: Sequence[int],
        make: Callable[[EngineData, tuple[int, ...]], Engine],
    ):
        own = cut_patterns(part_patterns, [1 / ranks.size] * ranks.size)[ranks.number]
        shard, sizes = Shard.of(part_patterns, np.array(own or [0]))  # without patterns it is never asked
        tables = b"" if data.state_sets is None else np.asarray(data.state_sets).tobytes()
        digest = crc32(data.codes.tobytes(), crc32(data.weights.tobytes(), crc32(tables + VERSION.encode())))
        failure: PlltoolError | None = None
        try:
            engine = make(data.of_patterns(shard.patterns), sizes)
        except PlltoolError as error:
            failure = error
        ranks.add_up(np.zeros(0), len(part_patterns), failure)
        super().__init__([engine], [shard] if own else [], data.weights, part_patterns)
        self._ranks = ranks
        known = {"digest": digest, "layout": engine.describe()} | {name: getattr(engine, name) for name in SHARED}
        self._known = ranks.gather(known)
        for number, known in enumerate(self._known):
            if known["digest"] != self._known[0]["digest"]:
                raise InputError(f"rank {number} has another alignment, or another version of plltool, than rank 0")

    def _of_all(self, name: str) -> list[Any]:
        """An attribute on all ranks if they share it, because searches depend on it; otherwise on this rank."""
        return [known[name] for known in self._known] if name in SHARED else super()._of_all(name)

    def describe(self) -> dict[str, object]:
        return {"ranks": [known["layout"] for known in self._known]}

    def _completed(self, own: Answer, shape: tuple[int, int], program: IntArray, lengths: FloatArray) -> Answer:
        """The sum of the answers of all ranks."""
        mark = crc32(np.ascontiguousarray(lengths).tobytes(), crc32(program.tobytes(), sum(shape)))

        def get() -> FloatArray:
            failure: PlltoolError | None = None
            try:
                values = own()
            except PlltoolError as error:
                failure, values = error, np.zeros(shape)
            counters = self.engines[0].counters
            counters.exchanges += 1
            counters.bytes_exchanged += values.nbytes + HEADER * values.itemsize
            return self._ranks.add_up(values, mark, failure)

        return get
