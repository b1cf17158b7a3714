"""The most that a device does of copying and of multiply-adds: wrapper of `kernels/peaks.cl`."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pyopencl as cl

from plltool.engine.base import Peak
from plltool.engine.layout import Layout
from plltool.engine.opencl.engine import build_program

CHAINS = 12  # of kernels/peaks.cl
GROUPS_PER_UNIT = 32  # work-groups for each compute unit: enough to fill a GPU's, few enough to cost a CPU nothing
COPY_BYTES = 256 << 20  # of each buffer, less where memory is short; beyond the caches of all but server CPUs
MEMORY_SHARE = 8  # of the device's memory, at most one part in so many for a buffer
LEAST_SECONDS = 0.005  # of a run of multiply-adds, so that its launch does not count
FIRST_ROUNDS = 1 << 10


def make_peaks(queue: cl.CommandQueue, layout: Layout) -> dict[str, Peak]:
    """What `Engine.peaks` promises, at the layout's vector width and precision.

    Raises DeviceError if the kernels do not build.
    """
    program = build_program(queue.context, layout, ("layout.h", "peaks.cl"))
    groups = GROUPS_PER_UNIT * queue.device.max_compute_units
    local = layout.vw if layout.lane_per_item else 1
    return {
        "copy": _make_copy(queue, cl.Kernel(program, "copy"), layout, groups, local),
        "multiply_adds": _make_multiply_adds(queue, cl.Kernel(program, "multiply_adds"), layout, groups, local),
    }


def _make_copy(queue: cl.CommandQueue, kernel: cl.Kernel, layout: Layout, groups: int, local: int) -> Peak:
    device = queue.device
    largest = min(COPY_BYTES, device.max_mem_alloc_size, device.global_mem_size // MEMORY_SHARE)
    group_blocks = largest // (groups * layout.vw * layout.real.itemsize)
    size = groups * group_blocks * layout.vw * layout.real.itemsize
    source, target = (cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, size) for _ in range(2))
    cl.enqueue_fill_buffer(queue, source, np.ones(1, layout.real), 0, size)  # untouched memory may not exist yet

    def run() -> None:
        kernel(queue, (groups * local,), (local,), source, target, np.uint64(group_blocks))
        queue.finish()

    return Peak(run, 2 * size)


def _make_multiply_adds(queue: cl.CommandQueue, kernel: cl.Kernel, layout: Layout, groups: int, local: int) -> Peak:
    real = layout.real.type
    out = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, groups * layout.vw * layout.real.itemsize)

    def of_rounds(rounds: int) -> Callable[[], None]:
        def run() -> None:
            kernel(queue, (groups * local,), (local,), out, real(0.999), real(0.001), np.int32(rounds))
            queue.finish()

        return run

    rounds = FIRST_ROUNDS
    of_rounds(rounds)()  # the first launch may compile
    while _seconds(of_rounds(rounds)) < LEAST_SECONDS:
        rounds *= 2
    return Peak(of_rounds(rounds), groups * layout.vw * CHAINS * rounds)


def _seconds(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
