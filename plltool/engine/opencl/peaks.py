"""The peak rates of a device at copying and at multiply-adds: wrapper of `kernels/peaks.cl`."""

from collections.abc import Callable
from timeit import timeit

import numpy as np
import pyopencl as cl

from plltool.engine.base import Peak
from plltool.engine.contract import PEAK_CHAINS
from plltool.engine.layout import Layout
from plltool.engine.opencl.arrays import make_buffer
from plltool.engine.opencl.kernels import Kernel, build_program

GROUPS_PER_UNIT = 32  # work-groups for each compute unit: enough to fill a GPU, few enough to cost a CPU nothing
COPY_BYTES = 256 << 20  # of each buffer, less where memory is short; larger than the caches of all but server CPUs
MEMORY_SHARE = 8  # a buffer takes at most 1/8 of the device's memory
LEAST_SECONDS = 0.005  # of a run of multiply-adds, so that its launch does not count
FIRST_ROUNDS = 1 << 10


def make_peaks(queue: cl.CommandQueue, layout: Layout) -> dict[str, Peak]:
    """The peaks of `Engine.peaks`, at the layout's width and precision; DeviceError if kernels do not build."""
    program = build_program(queue.context, layout, ("layout.h", "peaks.cl"))
    groups = GROUPS_PER_UNIT * queue.device.max_compute_units
    return {
        "copy": _make_copy(queue, Kernel(program, "copy", layout), layout, groups),
        "multiply_adds": _make_multiply_adds(queue, Kernel(program, "multiply_adds", layout), layout, groups),
    }


def _make_copy(queue: cl.CommandQueue, kernel: Kernel, layout: Layout, groups: int) -> Peak:
    device, local = queue.device, layout.vw if layout.lane_per_item else 1
    largest = min(COPY_BYTES, device.max_mem_alloc_size, device.global_mem_size // MEMORY_SHARE)
    group_blocks = largest // (groups * layout.vw * layout.real.itemsize)
    size = groups * group_blocks * layout.vw * layout.real.itemsize
    arrays = {name: make_buffer(queue.context, size) for name in ("source", "target")}
    numbers = {"group_blocks": group_blocks, "n_peak_blocks": groups * group_blocks}
    # untouched memory may not exist yet
    cl.enqueue_fill_buffer(queue, arrays["source"], np.ones(1, layout.real), 0, size)

    def run() -> None:
        kernel(queue, (groups * local,), (local,), arrays, numbers)
        queue.finish()

    return Peak(run, 2 * size)


def _make_multiply_adds(queue: cl.CommandQueue, kernel: Kernel, layout: Layout, groups: int) -> Peak:
    local = layout.vw if layout.lane_per_item else 1
    arrays = {"out": make_buffer(queue.context, groups * layout.vw * layout.real.itemsize)}

    def of_rounds(rounds: int) -> Callable[[], None]:
        def run() -> None:
            numbers = {"factor": 0.999, "term": 0.001, "rounds": rounds, "n_peak_groups": groups}
            kernel(queue, (groups * local,), (local,), arrays, numbers)
            queue.finish()

        return run

    rounds = FIRST_ROUNDS
    of_rounds(rounds)()  # the first launch may compile
    while timeit(of_rounds(rounds), number=1) < LEAST_SECONDS:
        rounds *= 2
    return Peak(of_rounds(rounds), groups * layout.vw * PEAK_CHAINS * rounds)
