"""The memory of a run, what happens where there is less or a device is lost, and processes that share the hardware."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from plltool.alignment.patterns import Patterns
from plltool.constants import MAX_SCRATCH_SLOTS
from plltool.engine.layout import Layout
from plltool.engine.opencl.device import Device
from plltool.engine.opencl.device_faults import note_loss
from plltool.engine.opencl.environment import child_environment
from plltool.engine.requests import Holder
from plltool.engine.select import find_automatic, plan_engine
from plltool.engine.several import Devices, UsedDevice, find_used_devices, name_devices
from plltool.engine.storage import RequestSize, Slots, Storage, engine_bytes, numpy_bytes
from plltool.errors import DeviceLostError, DeviceMemoryError, check_least
from plltool.hardware import Hardware, available_cores
from plltool.model.model import Model
from plltool.processes.ranks import Crew, crew, current
from plltool.processes.workers import Workers, can_start_children
from plltool.progress import log
from plltool.run.engines import open_engine, plan_shards, settle_share
from plltool.tree.operations import directed_slots, round_slots, stack_slots
from plltool.tree_search.scan import scan_limit

MIN_SCRATCH_SLOTS = 32  # CLAs of a search in addition to those of the tree; the deepest scan needs 30
# The same if each launch makes the tree's CLAs again: 1,024 are 1.1 times faster on 150 taxa than 256; of many taxa a
# share of the tree's, so that the insertions of a launch take as long as these
MAX_STREAMED_SCRATCH_SLOTS = 1024
STREAMED_SCRATCH_SHARE = 0.25
STREAMED_TILES = 64  # from which CPUs search as fast or faster if CLAs are made again rather than held
REMADE_TILES = 16  # the same for tasks that make all CLAs for each request anyway: with fewer there is little to gain

T = TypeVar("T")

CHAIN_LENGTH = 4  # newviews from the gap to an insertion that is optimised


def search_slots(n_taxa: int) -> Slots:
    """CLAs of a search: all directed ones and scratch, with more of which more insertions share a launch."""
    directed = directed_slots(n_taxa)
    streamed_most = max(MAX_STREAMED_SCRATCH_SLOTS, int(STREAMED_SCRATCH_SHARE * directed))
    extra, streamed = (max(0, min(most, directed) - MIN_SCRATCH_SLOTS) for most in (MAX_SCRATCH_SLOTS, streamed_most))
    return Slots(directed + MIN_SCRATCH_SLOTS, extra, streamed, STREAMED_TILES)


def evaluation_slots(n_taxa: int, lnl_only: bool = False) -> Slots:
    """CLAs of a task that asks for lnL, or at most for rounds over all branches, each of which makes all CLAs."""
    least, most = (stack_slots(n_taxa), n_taxa) if lnl_only else (round_slots(n_taxa), directed_slots(n_taxa))
    return Slots(least, gpu_extra=max(0, most - least), streams_from=REMADE_TILES)


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
    requests = [RequestSize(joins, lengths + chain_lengths + 3 * insertions, 10 * insertions, want_slopes=True)]
    if scans:
        requests += [
            RequestSize(newviews + directed, lengths + directed, 3 * directed, want_decays=True),
            RequestSize(newviews + directed + 2 * steps, lengths + scan_lengths, steps),
        ]
    if optimises:
        requests += [
            RequestSize(directed + branches, branches, 3 * branches, want_decays=True),
            RequestSize(directed + branches, branches, gradient_values, want_decays=True, want_differences=True),
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


def open_workers(
    what: str, make: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], shares: Sequence[Hardware]
) -> Workers:
    """Processes that have a share of the hardware each, see `share_hardware`; the log says what they make."""
    threads = shares[0].threads or 1
    log.info("%s: %d at a time, threads each: %d", what, len(shares), threads)
    return Workers(make, arguments, child_environment(threads))


def share_hardware(
    wanted: int | None,
    n_tasks: int,
    parts: Sequence[Patterns],
    models: Sequence[Model],
    hardware: Hardware,
    slots: Slots | None = None,
) -> tuple[Hardware, ...]:
    """The share of the hardware of each of the processes that search at the same time.

    The default on a CPU is the number of threads: two searches at once, with one thread each, took 0.60 to 0.86 of the
    time of two searches one after the other with two threads (354 and 101 taxa, 460 and 1,630 patterns). There are at
    most as many as there are tasks, and as the memory has room for conditional likelihoods.

    Of several devices process i has device i modulo their number, for itself. The default there is one process, which
    has all of them and divides the patterns. So do the ranks of an MPI job, unless they are a crew: then there is one
    process for each of them, see `share_with_crew`. `slots` are the CLAs of each process, by default those of a search.
    Raises InputError if `wanted` is less than 1.
    """
    if wanted is not None:
        check_least("workers", wanted, 1)
    hardware = name_devices(hardware)
    if (members := crew()) is not None:
        return share_with_crew(members, n_tasks, hardware, lambda own: plan_memory(parts, models, own, slots))
    if current() is not None or min(n_tasks, wanted or n_tasks) == 1 or (hardware.is_several and wanted is None):
        return (hardware,)
    each, shares = [hardware], [1.0]
    if hardware.is_several:
        used_devices = find_used_devices(hardware)
        each = [used.hardware for used in used_devices]
        shares = list(map(Devices(used_devices).memory_share, used_devices))
    plans = [plan_memory(parts, models, own, slots) for own in each]
    offered = [int(share * plan.offered_bytes) for share, plan in zip(shares, plans, strict=True)]
    fitting = min(bytes_there // plan.full_bytes for bytes_there, plan in zip(offered, plans, strict=True))
    threads = hardware.threads or available_cores()
    default = threads if plans[0].kind != "gpu" and can_start_children() else 1
    number = max(1, min(wanted or default, n_tasks, fitting * len(each)))
    if wanted is not None and number < min(wanted, n_tasks):
        log.warning("not enough memory for %d processes at a time; running %d", wanted, number)
    if number == 1:
        return (hardware,)
    of_one = -(-number // len(each))  # processes that share a device
    memory = [bytes_there // of_one for bytes_there in offered]
    return tuple(
        replace(each[k % len(each)], threads=max(1, threads // number), memory=memory[k % len(each)])
        for k in range(number)
    )


def share_with_crew(
    members: Crew, n_tasks: int, hardware: Hardware, plan: Callable[[Hardware], MemoryPlan]
) -> tuple[Hardware, ...]:
    """The share of each rank of a crew: of the devices one, in turn on each machine; of cores and memory equal ones.

    The memory is that of the machine of rank 0, by `plan`, see `plan_memory`.
    """
    seats = members.seats[:n_tasks]
    if len(seats) < 2:
        return (hardware,)
    devices = {word: replace(hardware, device=word, share=None) for word in hardware.words}
    offered = {word: plan(own).offered_bytes for word, own in devices.items()}
    shares = []
    for seat in seats:
        word = hardware.words[seat.local % len(hardware.words)]
        of_one = -(-seat.n_local // len(hardware.words))  # ranks that share a device
        threads = max(1, (hardware.threads or seat.cores) // seat.n_local)
        shares.append(replace(devices[word], threads=threads, memory=offered[word] // of_one))
    return tuple(shares)
