"""Kernels: how they are built, and how they are called by the contract."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyopencl as cl

from plltool.engine.contract import KERNELS
from plltool.engine.layout import Layout
from plltool.engine.opencl.arrays import ArrayShape, DeviceArray
from plltool.errors import DeviceError, EngineError

# An entry below the smallest normal number is far below the rounding of the largest one of its component. CPUs compute
# slowly with such numbers: rounds over all branches of 64 taxa took three times as long in single precision.
BUILD_OPTIONS = ["-cl-mad-enable", "-cl-denorms-are-zero"]
ENGINE_FILES = (
    "layout.h",
    "arithmetic.h",
    "many_states.h",
    "pmatrices.cl",
    "job.h",
    "instructions.h",
    "shared_states.h",
    "traverse.cl",
    "sums.cl",
)

_log = logging.getLogger("plltool")


def find_kernel_folder() -> Path:
    """The folder of the kernel files: inside the package once it is installed, beside it in a checkout.

    Python that runs in a checkout imports the package from there, even if another copy is installed.
    """
    package = Path(__file__).resolve().parents[2]
    installed = package / "kernels"
    return installed if installed.is_dir() else package.parent / "kernels"


def build_program(context: cl.Context, layout: Layout, names: Sequence[str] = ENGINE_FILES) -> cl.Program:
    """Compile kernel files, joined in this order, for one layout; pyopencl and the driver cache the binary on disk.

    Raises
    ------
    DeviceError
        If they do not compile; with the compiler's log.
    """
    folder = find_kernel_folder()
    source = "\n".join((folder / name).read_text(encoding="utf-8") for name in names)
    with warnings.catch_warnings(record=True) as remarks:  # the compiler's remarks go to the log, not to the user
        warnings.simplefilter("always", cl.CompilerWarning)
        try:
            program = cl.Program(context, source).build(options=BUILD_OPTIONS + layout.macros())
        except cl.Error as error:
            raise DeviceError(f"kernels do not build on {context.devices[0].name}: {error}") from error
    for remark in remarks:
        _log.debug("%s: %s", context.devices[0].name, remark.message)
    return program


class Kernel:
    """A kernel that takes its arguments by name and checks the size of every array.

    The contract gives the order: arrays first, then numbers.

    Parameters
    ----------
    program : as `build_program` returns it
    name : of the kernel in `contract.KERNELS`
    layout : for which the program was built
    """

    def __init__(self, program: cl.Program, name: str, layout: Layout):
        self.name = name
        arguments = KERNELS[name].arguments
        self._shapes = {a.name: ArrayShape(a, layout) for a in arguments if a.shape is not None}
        self._needs = [(name, shape.fixed_bytes, shape.sizes) for name, shape in self._shapes.items()]
        self._numbers = [a.name for a in arguments if a.shape is None]
        self._kernel = cl.Kernel(program, name)
        # None stands for a buffer. Told the types, pyopencl packs plain numbers in 2 microseconds a launch; numpy
        # scalars without types took 70.
        self._kernel.set_arg_types([layout.dtype(a).type if a.shape is None else None for a in arguments])

    def __call__(
        self,
        queue: cl.CommandQueue,
        n_items: tuple[int, ...],
        group_items: tuple[int, ...] | None,
        arrays: Mapping[str, DeviceArray],
        numbers: Mapping[str, Any],
    ) -> cl.Event:
        """Enqueue the kernel.

        Parameters
        ----------
        n_items, group_items : global and local sizes
        arrays : the arrays that it takes, and maybe others
        numbers : the numbers that it takes and the sizes of the launch (`contract.LAUNCH_SIZES`), and maybe others

        Raises
        ------
        EngineError
            If an argument is missing, or if an array is smaller than its declaration says.
        """
        try:
            values = []
            for name, needed, sizes in self._needs:
                for size in sizes:
                    needed *= numbers[size]
                array = arrays[name]
                if array.n_bytes < needed:
                    found = f"kernel {self.name}: argument {name} has {array.n_bytes} bytes"
                    raise EngineError(f"{found}, expected at least {needed}: {self._shapes[name].describe(numbers)}")
                values.append(array.buffer)
            values += [numbers[name] for name in self._numbers]
        except KeyError as error:
            raise EngineError(f"kernel {self.name}: {error} is missing") from error
        return self._kernel(queue, n_items, group_items, *values)
