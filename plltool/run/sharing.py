"""Processes that work at the same time, each with an engine and a share of the hardware."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from plltool.alignment.patterns import Patterns
from plltool.engine.opencl.environment import child_environment
from plltool.engine.several import Devices, find_used_devices, name_devices
from plltool.engine.storage import Slots
from plltool.errors import check_least
from plltool.hardware import Hardware, available_cores
from plltool.model.model import Model
from plltool.processes.children import can_start_children
from plltool.processes.crew import Crew, crew
from plltool.processes.ranks import current
from plltool.processes.workers import Workers
from plltool.progress import log
from plltool.run.memory import plan_memory


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
        return share_with_crew(members, n_tasks, parts, models, hardware, slots)
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
    members: Crew,
    n_tasks: int,
    parts: Sequence[Patterns],
    models: Sequence[Model],
    hardware: Hardware,
    slots: Slots | None = None,
) -> tuple[Hardware, ...]:
    """The share of each rank of a crew: of the devices one, in turn on each machine; of cores and memory equal ones.

    The memory is that of the machine of rank 0.
    """
    seats = members.seats[:n_tasks]
    if len(seats) < 2:
        return (hardware,)
    devices = {word: replace(hardware, device=word, share=None) for word in hardware.words}
    offered = {word: plan_memory(parts, models, own, slots).offered_bytes for word, own in devices.items()}
    shares = []
    for seat in seats:
        word = hardware.words[seat.local % len(hardware.words)]
        of_one = -(-seat.n_local // len(hardware.words))  # ranks that share a device
        threads = max(1, (hardware.threads or seat.cores) // seat.n_local)
        shares.append(replace(devices[word], threads=threads, memory=offered[word] // of_one))
    return tuple(shares)
