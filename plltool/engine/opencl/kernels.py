"""Kernels: how they are built, and how they are called by the contract."""

import functools
import warnings
from collections.abc import Mapping, Sequence
from operator import is_
from typing import Any

import pyopencl as cl

from plltool.arrays import IntArray, distinct
from plltool.engine.contract import KERNELS, OPCODE_SETS, InstructionWord
from plltool.engine.layout import Layout
from plltool.engine.opencl.device import is_pocl
from plltool.engine.opencl.environment import find_kernel_folder
from plltool.errors import DeviceError, EngineError
from plltool.progress import compiling, log

# An entry below the smallest normal number is far below the rounding of the largest one of its component. CPUs compute
# slowly with such numbers: rounds over all branches of 64 taxa took three times as long in single precision.
BUILD_OPTIONS = ["-cl-mad-enable", "-cl-denorms-are-zero"]
COMMON_FILES = ("layout.h", "arithmetic.h")
TABLE_FILES = ("pmatrices.cl", "sums.cl")  # the first computes in double
FLOAT_OPTION = "-cl-single-precision-constant"  # in kernels without doubles; they are the type of constants otherwise
TRAVERSE_FILES = ("many_states.h", "job.h", "instructions.h", "shared_states.h", "traverse.cl")
WALK_FILES = ("walk_moves.h", "walks.cl")

MOST_PROGRAMS = 64  # that a process keeps; an engine has 1 to 5


def opcode_macro(name: str) -> str:
    """The -D option that compiles `traverse` for the instructions of `contract.OPCODE_SETS[name]`."""
    return f"-DOPCODE_SET={sum(1 << opcode for opcode in OPCODE_SETS[name])}"


def traverse_options(context: cl.Context, layout: Layout, name: str) -> list[str]:
    """The options that compile `traverse` for the instructions of `contract.OPCODE_SETS[name]`.

    PoCL compiles a GPU's shape of work for a CPU in a third of the time if each instruction is a function of its own.
    """
    device = context.devices[0]
    on_pocl = device.type & cl.device_type.CPU and is_pocl(device.platform.name)
    return [opcode_macro(name), *(["-DINLINE_INSTRUCTIONS=0"] if on_pocl and layout.lane_per_item else [])]


def build_program(context: cl.Context, layout: Layout, names: Sequence[str], options: Sequence[str] = ()) -> cl.Program:
    """Compile kernel files, joined in this order, for one layout; pyopencl and the driver cache the binary on disk.

    Raises DeviceError, with the compiler's log, if they do not compile.
    """
    folder = find_kernel_folder()
    source = "\n".join((folder / name).read_text(encoding="utf-8") for name in names)
    has_double = layout.double_sums or (layout.has_double and TABLE_FILES[0] in names)
    constants = [] if has_double else [FLOAT_OPTION]
    return _build(context, source, (*BUILD_OPTIONS, *constants, *layout.macros(has_double), *options))


@functools.lru_cache(maxsize=MOST_PROGRAMS)
def _build(context: cl.Context, source: str, options: tuple[str, ...]) -> cl.Program:
    """Programs of this process; to read one from the disk and to link it takes PoCL 30 ms."""
    with warnings.catch_warnings(record=True) as remarks:  # the compiler's remarks go to the log, not to the user
        warnings.simplefilter("always", cl.CompilerWarning)
        try:
            with compiling():
                program = cl.Program(context, source).build(options=list(options))
        except cl.Error as error:
            raise DeviceError(f"kernels do not build on {context.devices[0].name}: {error}") from error
    for remark in remarks:
        log.debug("%s: %s", context.devices[0].name, remark.message)
    return program


def forget_programs() -> None:
    """Let go of all programs that no engine uses, and of their contexts."""
    _build.cache_clear()


class Kernel:
    """A kernel of `contract.KERNELS` that takes its arguments by name and checks the size of every array."""

    def __init__(self, program: cl.Program, name: str, layout: Layout):
        self.name = name
        arguments = KERNELS[name]
        self._shapes = {a.name: layout.arrays[a.name] for a in arguments if a.shape is not None}
        self._numbers = [a.name for a in arguments if a.shape is None]
        self._sizes = sorted({size for shape in self._shapes.values() for size in shape.sizes})
        self._fitting: tuple[list[Any], list[cl.Buffer]] | None = None  # sizes and arrays of the last call
        self._kernel = cl.Kernel(program, name)
        self._is_new = True
        # None stands for a buffer. Told the types, pyopencl packs plain numbers in 2 microseconds a launch; numpy
        # scalars without types took 70.
        self._kernel.set_arg_types([layout.dtype(a).type if a.shape is None else None for a in arguments])

    def __call__(
        self,
        queue: cl.CommandQueue,
        n_items: tuple[int, ...],
        group_items: tuple[int, ...] | None,
        arrays: Mapping[str, cl.Buffer],
        numbers: Mapping[str, Any],
    ) -> cl.Event:
        """Enqueue the kernel; arrays and numbers may be more than it takes, numbers have the sizes of the launch, too.

        Raises EngineError if an argument is missing, or if an array is smaller than its declaration says.
        """
        try:
            taken = [arrays[name] for name in self._shapes]
            sizes = [numbers[name] for name in self._sizes]
            values = [numbers[name] for name in self._numbers]
        except KeyError as error:
            raise EngineError(f"kernel {self.name}: {error} is missing") from error
        if self._fitting is None or self._fitting[0] != sizes or not all(map(is_, self._fitting[1], taken)):
            self._check_sizes(taken, numbers)
            self._fitting = sizes, taken
        if self._is_new:  # PoCL compiles when it launches a kernel for the first time
            self._is_new = False
            with compiling():
                event = self._kernel(queue, n_items, group_items, *taken, *values)
                event.wait()
            return event
        return self._kernel(queue, n_items, group_items, *taken, *values)

    def _check_sizes(self, arrays: Sequence[cl.Buffer], numbers: Mapping[str, Any]) -> None:
        """Raise EngineError if an array is smaller than its declaration says."""
        for array, (name, shape) in zip(arrays, self._shapes.items(), strict=True):
            needed = shape.n_bytes(numbers)
            if array.size < needed:
                found = f"kernel {self.name}: argument {name} has {array.size} bytes"
                raise EngineError(f"{found}, expected at least {needed}: {shape.describe(numbers)}")


class EngineKernels:
    """The kernels of an engine: one program, or a program for each set of instructions (`Layout.cut_kernels`).

    A set is built when a launch first needs it. `pmatrices` is None where there is no double precision. Raises
    DeviceError if they do not compile.
    """

    def __init__(self, context: cl.Context, layout: Layout):
        self._context = context
        self._layout = layout
        self._traverse: dict[str, Kernel] = {}
        files = (*COMMON_FILES, *(TABLE_FILES if layout.double_sums else TABLE_FILES[1:]))
        if layout.cut_kernels:
            program = build_program(context, layout, files)
        else:
            options = traverse_options(context, layout, "all")
            program = build_program(context, layout, (*files, *TRAVERSE_FILES), options)
            self._traverse["all"] = Kernel(program, "traverse", layout)
        tables = program
        if layout.has_double and not layout.double_sums:
            tables = build_program(context, layout, (*COMMON_FILES, TABLE_FILES[0]))
        self.pmatrices = Kernel(tables, "pmatrices", layout) if layout.has_double else None
        self.add_rows = Kernel(program, "add_rows", layout)

    @functools.cached_property
    def walk(self) -> Kernel:
        """`walk`, built when it is first needed."""
        files, options = (*COMMON_FILES, *TABLE_FILES, *TRAVERSE_FILES, *WALK_FILES), [opcode_macro("likelihoods")]
        return Kernel(build_program(self._context, self._layout, files, options), "walk", self._layout)

    def traverse(self, program: IntArray) -> Kernel:
        """The kernel for the instructions of a program."""
        name = find_set(program) if self._layout.cut_kernels else "all"
        if name not in self._traverse:
            built = build_traverse(self._context, self._layout, name)
            self._traverse[name] = Kernel(built, "traverse", self._layout)
        return self._traverse[name]


def find_set(program: IntArray) -> str:
    """The first of `contract.OPCODE_SETS` that has all instructions of a program."""
    opcodes = set(distinct(program[:, InstructionWord.OPCODE]).tolist())
    return next(name for name, known in OPCODE_SETS.items() if opcodes <= known)


def build_traverse(context: cl.Context, layout: Layout, name: str) -> cl.Program:
    """`traverse` for the instructions of one of `contract.OPCODE_SETS`."""
    return build_program(context, layout, (*COMMON_FILES, *TRAVERSE_FILES), traverse_options(context, layout, name))
