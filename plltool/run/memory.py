"""The memory that a run needs, and what happens where there is less, or where a device is lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from plltool.alignment.patterns import Patterns
from plltool.constants import MAX_SCRATCH_SLOTS
from plltool.engine.layout import Layout
from plltool.engine.opencl.device import Device
from plltool.engine.opencl.device_faults import note_loss
from plltool.engine.requests import Holder
from plltool.engine.select import find_automatic, plan_engine
from plltool.engine.several import Devices, UsedDevice, find_used_devices
from plltool.engine.storage import RequestSize, Slots, Storage, engine_bytes, numpy_bytes
from plltool.errors import DeviceLostError, DeviceMemoryError
from plltool.hardware import Hardware
from plltool.model.model import Model
from plltool.processes.ranks import current
from plltool.progress import log
from plltool.run.engines import open_engine, plan_shards, settle_share
from plltool.tree.operations import directed_slots, round_slots, stack_slots
from plltool.tree_search.scan import scan_limit

MIN_SCRATCH_SLOTS = 32  # CLAs of a search in addition to those of the tree; the deepest scan needs 30
MAX_STREAMED_SCRATCH_SLOTS = 1024  # if each launch recomputes the tree's CLAs: 1.1 times faster on 150 taxa than 256
STREAMED_TILES = 64  # from which CPUs search as fast or faster if CLAs are made again rather than held
REMADE_TILES = 16  # the same for tasks that make all CLAs for each request anyway: with fewer there is little to gain

T = TypeVar("T")

CHAIN_LENGTH = 4  # newviews from the gap to an insertion that is optimised


def search_slots(n_taxa: int) -> Slots:
    """CLAs of a search: all directed ones and scratch, with more of which more insertions share a launch."""
    directed = directed_slots(n_taxa)
    extra, streamed = (
        max(0, min(most, directed) - MIN_SCRATCH_SLOTS) for most in (MAX_SCRATCH_SLOTS, MAX_STREAMED_SCRATCH_SLOTS)
    )
    return Slots(directed + MIN_SCRATCH_SLOTS, extra, streamed, STREAMED_TILES)


def evaluation_slots(n_taxa: int, lnl_only: bool = False) -> Slots:
    """CLAs of a task that asks for lnL, or at most for rounds over all branches, each of which makes all CLAs."""
    return Slots(stack_slots(n_taxa) if lnl_only else round_slots(n_taxa), streams_from=REMADE_TILES)


def search_requests(layout: Layout, storage: Storage, scans: bool = True, optimises: bool = True) -> list[RequestSize]:
    """The largest requests of a search, by kind.

    With a screen, that is what `scans`, and the engine itself is what `optimises` lengths and models. How far walks go
    depends on the data: as many newviews as insertions, chains of CHAIN_LENGTH, and half a batch of insertions that
    the screen leaves are typical.
    """
    n = layout.n_taxa
    branches, directed = 2 * n - 3, directed_slots(n)
    scratch = storage.n_slots - directed
    insertions = scratch if scans else scratch // 2
    scan_lengths = 2 * branches + directed
    # what comes along where CLAs do not outlive a launch
    newviews, lengths = (0, 0) if storage.resident else (directed, branches)
    chains, chain_lengths = (0, 0) if storage.resident else (CHAIN_LENGTH * insertions, scan_lengths)
    squares = layout.n_components * layout.n_states**2
    steps = min(scan_limit(n, len(layout.groups)), 4 * (n - 2) * (n - 3))  # all insertions of all prunes
    gradient_values = 1 + squares + squares // layout.n_states
    joins = newviews + chains + insertions
    requests = [RequestSize(joins, lengths + chain_lengths + 3 * insertions, 10 * insertions, slopes=True)]
    if scans:
        requests += [
            RequestSize(newviews + directed, lengths + directed, 3 * directed, decays=True),
            RequestSize(newviews + directed + 2 * steps, lengths + scan_lengths, steps),
        ]
    if optimises:
        requests += [
            RequestSize(directed + branches, branches, 3 * branches, decays=True),
            RequestSize(directed + branches, branches, gradient_values, decays=True, divided_differences=True),
        ]
    return requests


def until_answered(attempt: Callable[[Hardware], T], hardware: Hardware, asked: Hardware | None = None) -> T:
    """What `attempt` returns, tried again where a request has too little memory, or the device is lost.

    It opens an engine in a ``with`` block and asks it, each time from the same beginning. With half as much memory for
    CLAs answers keep every bit. Where not even one tile fits, `open_engine` says so. If `asked` (what the user asks
    for, by default `hardware`) leaves the device to plltool, the best one that is left takes the place of a lost one.
    """
    asked = asked or hardware
    while True:
        try:
            return attempt(hardware)
        except DeviceLostError as error:
            if not (asked.is_auto or asked.is_all) or not isinstance(error.device, Device) or current() is not None:
                raise
            log.warning("%s; the run continues on the next device", error)
            note_loss(error.device, str(error))
            hardware = replace(hardware, device="auto", share=None)
        except DeviceMemoryError as error:
            held = error.cla_bytes
            if held is None:
                raise
            log.warning("%s; trying with %d bytes for conditional likelihoods instead of %d", error, held // 2, held)
            hardware = replace(hardware, memory=held // 2)


def ask_engine(
    ask: Callable[[Holder], T],
    parts: Sequence[Patterns],
    models: Sequence[Model],
    slots: Slots,
    hardware: Hardware,
    screening: bool = False,
) -> T:
    """What `ask` returns of an engine, see `open_engine`; it is called again with another, see `until_answered`."""

    def attempt(hardware: Hardware) -> T:
        engine, _ = open_engine(parts, models, slots, hardware, screening=screening)
        with engine:
            return ask(engine)

    return until_answered(attempt, hardware)


@dataclass(frozen=True)
class MemoryPlan:
    device: str  # where it would run
    kind: str  # "numpy", "cpu", "gpu" or what else the (first) device calls itself
    device_name: str  # without its index; digits depend on it
    layouts: tuple[dict[str, object], ...]  # of each shard; digits depend on them
    n_bytes: int  # memory that each worker would hold there at most
    full_bytes: int  # memory of CLAs beyond which the search is no faster
    offered_bytes: int  # memory that CLAs may take
    suffices: bool  # whether they may take as much as makes the search no faster


def plan_memory(
    parts: Sequence[Patterns], models: Sequence[Model], hardware: Hardware, slots: Slots | None = None
) -> MemoryPlan:
    """Where a search, or with `slots` an engine without a screen, would run, and the memory that it would hold there.

    Raises DeviceError if a device asked for by name is missing, cannot use the settings or has too little memory.
    """
    hardware = settle_share(parts, models, hardware)
    if hardware.is_auto:
        used_devices = [UsedDevice(hardware, next(iter(find_automatic(hardware.precision)[0]), None), 1.0)]
    else:
        used_devices = find_used_devices(hardware)
    devices = Devices(used_devices)
    plans = []
    shards = plan_shards(parts, models, screening=slots is None)
    slots = slots or search_slots(parts[0].n_taxa)
    for shard in (*shards.engine, *shards.screen):
        is_screen = shard in shards.screen
        for used, sizes in devices.divide(shard.shape.part_patterns):
            shape = replace(shard.shape, part_patterns=sizes)
            share = shard.share * devices.memory_share(used)
            plan = plan_engine(used.device, shape, slots, used.hardware, share, rough=is_screen)
            layout, storage = plan.layout, plan.storage
            if used.device is None:
                n_bytes = numpy_bytes(layout, storage)
            else:
                requests = search_requests(layout, storage, is_screen or not shards.screen, not is_screen)
                n_bytes = engine_bytes(layout, storage, requests=requests)
            plans.append((layout.describe(), n_bytes, plan.useful, plan.offered, plan.offered >= plan.useful))
    layouts, held, useful, offered, suffices = zip(*plans, strict=True)
    return MemoryPlan(
        ", ".join(used.device.label if used.device else "numpy" for used in used_devices),
        used_devices[0].kind,
        ", ".join(used.device.full_name if used.device else "numpy" for used in used_devices),
        layouts,
        sum(held),
        sum(useful),
        sum(offered),
        all(suffices),
    )
