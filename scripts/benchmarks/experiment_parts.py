"""A part of experiments.py: what a search spends on each kind of instruction, and the older layout of CLAs."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import numpy as np
import pyopencl as cl

from plltool.arrays import FloatArray, IntArray
from plltool.engine.contract import Opcode
from plltool.engine.opencl.engine import OpenCLEngine
from plltool.engine.opencl.schedule import Schedule
from plltool.engine.program import Request, make_tracks

KINDS = {  # of instructions; the first one makes the CLAs that others need
    "newview": (Opcode.NEWVIEW, Opcode.PROPAGATE),
    "evaluate": (Opcode.EVALUATE,),
    "derivative": (Opcode.DERIVATIVE, Opcode.TRIPLET, Opcode.RATE_MATRIX_GRADIENT, Opcode.MASS_GRADIENT),
    "insert": (Opcode.INSERT,),
}


@dataclass(frozen=True)
class Launched:
    """What `OpenCLEngine._launch` was called with, and the models that the device had."""

    models: tuple[Any, ...]
    request: Request
    lengths: FloatArray
    more: tuple[Any, ...]
    named: dict[str, Any]


def keep_opcodes(request: Request, opcodes: Sequence[int]) -> Request:
    """The request with these instructions alone, and values if they make any; its pieces begin where they began."""
    is_kept = np.isin(request.program[:, 0], opcodes)
    program, before = request.program[is_kept], np.concatenate([[0], np.cumsum(is_kept)])
    pieces = np.unique(before[request.pieces]).astype(np.int32)
    n_values = request.n_values * bool(np.any(program[:, 0] >= Opcode.EVALUATE))
    return replace(request, program=program, pieces=pieces, n_values=n_values)


def seconds_of(engine: OpenCLEngine, launches: Sequence[Launched], opcodes: Sequence[int]) -> float:
    """For what a search launched, with these instructions alone; the CLAs of newview become what they were then.

    Processor seconds, with one thread those of the device and of the launches. Where nothing is left of a
    program, or not all of one for several models, whose tracks are given, only P matrices are made.
    """
    began = time.process_time()
    for own in launches:
        request, more = keep_opcodes(own.request, opcodes), [given for given in own.more if given is not None]
        if (more and len(request.program) < len(own.request.program)) or not len(request.program):
            request, more = own.request, [Schedule(own.request.program, (make_tracks([0], 0),))]
        engine._use_models(own.models)
        engine._launch(request, own.lengths, *more, **own.named)
        engine._arrays.finish()
    return time.process_time() - began


@contextmanager
def spent_by_kind(repetitions: int) -> Iterator[dict[str, float]]:
    """Seconds by kind of instruction, of the searches made meanwhile.

    When a search closes an engine, all that it launched runs again, with one kind of instruction more each time. The
    least of the repetitions counts; the difference is what a kind takes.
    """
    found = dict.fromkeys(KINDS, 0.0)
    launched: dict[int, list[Launched]] = {}
    launch, close = OpenCLEngine._launch, OpenCLEngine._close

    def record(self: OpenCLEngine, request: Request, lengths: FloatArray, *more: Any, **named: Any) -> None:
        launched.setdefault(id(self), []).append(Launched(self._used, request, np.array(lengths), more, named))
        launch(self, request, lengths, *more, **named)

    def replay(self: OpenCLEngine) -> None:
        opcodes: tuple[int, ...] = ()
        with mock.patch.object(OpenCLEngine, "_launch", launch):
            own = launched.pop(id(self), [])
            before = min(seconds_of(self, own, ()) for _ in range(repetitions))
            for kind, more in KINDS.items():
                opcodes += more
                spent = min(seconds_of(self, own, opcodes) for _ in range(repetitions))
                found[kind] += spent - before
                before = spent
        close(self)

    with mock.patch.object(OpenCLEngine, "_launch", record), mock.patch.object(OpenCLEngine, "_close", replay):
        yield found


# --- the older layout ------------------------------------------------------------------------------------------

OLDER = r"""
#pragma OPENCL FP_CONTRACT ON
#define LEAST 0x1p-256
#define CATEGORIES 4

// P x, or what P makes of a tip's code; CLAs (slot, pattern of the tile, category) of 4 states side by side
inline double4 operand(int from, int branch, int k, int at, uchar code, int tile, __global const double4 *clas,
                       __global const double4 *matrices, __global const double4 *tips)
{
    if (from < 0)
        return tips[(branch * 16 + code) * CATEGORIES + k];
    double4 x = clas[((long)from * tile + at) * CATEGORIES + k];
    __global const double4 *columns = matrices + (branch * CATEGORIES + k) * 4;
    return columns[0] * x.x + columns[1] * x.y + columns[2] * x.z + columns[3] * x.w;
}

// P (branch, category, column), tips (branch, code, category) and codes (taxon, pattern).
// A row of the program: slot, a, branch of a, b, branch of b; tips are ~taxon.
__attribute__((vec_type_hint(double4)))
kernel void newview(__global double4 *clas, __global int *scales, __global const double4 *matrices,
                    __global const double4 *tips, __global const uchar *codes, __global const int *program,
                    int n_rows, int n_patterns, int tile)
{
    for (int first = 0; first < n_patterns; first += tile)
        for (int row = 0; row < n_rows; row++) {
            int to = program[5 * row], a = program[5 * row + 1], pa = program[5 * row + 2];
            int b = program[5 * row + 3], pb = program[5 * row + 4];
            for (int at = 0; at < tile && first + at < n_patterns; at++) {
                uchar of_a = a < 0 ? codes[(long)~a * n_patterns + first + at] : 0;
                uchar of_b = b < 0 ? codes[(long)~b * n_patterns + first + at] : 0;
                __global double4 *z = clas + ((long)to * tile + at) * CATEGORIES;
                double4 most = 0.0;
                for (int k = 0; k < CATEGORIES; k++) {
                    double4 made = operand(a, pa, k, at, of_a, tile, clas, matrices, tips)
                                 * operand(b, pb, k, at, of_b, tile, clas, matrices, tips);
                    most = made > most ? made : most;
                    z[k] = made;
                }
                int scale = (a < 0 ? 0 : scales[a * tile + at]) + (b < 0 ? 0 : scales[b * tile + at]);
                if (most.x < LEAST && most.y < LEAST && most.z < LEAST && most.w < LEAST) {
                    for (int k = 0; k < CATEGORIES; k++)
                        z[k] /= LEAST;
                    scale++;
                }
                scales[to * tile + at] = scale;
            }
        }
}
"""


class OlderLayout:
    """Newview of 4 states and 4 categories where the states of a pattern are side by side: double precision, one core.

    RAxML-Light has this layout (Izquierdo-Carrasco et al. 2013, figure 1). Patterns pass in tiles through the whole
    program, as plltool's do, so that nothing but the layout differs.

    Parameters
    ----------
    queue : of a device with one core
    matrices : (n_branches, 4, 4, 4) P[i, j] of each branch and category
    codes : (n_taxa, n_patterns) bit masks of the states of each tip
    program : (n, 5) slot, a, branch of a, b, branch of b; a and b are slots, or ~taxon
    tile : patterns of a tile
    """

    def __init__(self, queue: cl.CommandQueue, matrices: FloatArray, codes: IntArray, program: IntArray, tile: int):
        self._queue, context = queue, queue.context
        self._kernel = cl.Program(context, OLDER).build(["-cl-mad-enable"]).newview
        self._tile, n_slots = tile, int(program[:, 0].max()) + 1
        sets = (np.arange(16)[:, None] >> np.arange(4)) & 1
        tips = np.einsum("bkij,cj->bcki", matrices, sets)
        sent = (matrices.swapaxes(2, 3), tips, codes.astype(np.uint8), program.astype(np.int32))
        flags = cl.mem_flags.READ_WRITE
        self._sent = [  # which the kernel's arguments do not keep alive
            cl.Buffer(context, flags | cl.mem_flags.COPY_HOST_PTR, hostbuf=np.ascontiguousarray(own)) for own in sent
        ]
        self._clas, self._scales = (cl.Buffer(context, flags, n_slots * tile * size) for size in (128, 4))
        numbers = [np.int32(number) for number in (len(program), codes.shape[1], tile)]
        self._kernel.set_args(self._clas, self._scales, *self._sent, *numbers)

    def run(self) -> None:
        """Compute all tiles."""
        cl.enqueue_nd_range_kernel(self._queue, self._kernel, (1,), (1,))
        self._queue.finish()

    def cla(self, slot: int) -> FloatArray:
        """(tile, 4, 4) the CLA of a slot for the last tile, by pattern, category and state, with its powers of two."""
        values, scales = np.empty((self._tile, 4, 4)), np.empty(self._tile, dtype=np.int32)
        cl.enqueue_copy(self._queue, values, self._clas, src_offset=slot * values.nbytes)
        cl.enqueue_copy(self._queue, scales, self._scales, src_offset=slot * scales.nbytes)
        return values * 2.0 ** (-256.0 * scales[:, None, None])
