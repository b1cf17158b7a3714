"""Kernels: how they are built, and how they are called by the contract."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping, Sequence
from importlib.resources import files
from math import prod
from typing import Any

import numpy as np
import pyopencl as cl

from plltool.engine.contract import KERNELS
from plltool.engine.layout import Layout
from plltool.engine.opencl.arrays import DeviceArray
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


def build_program(context: cl.Context, layout: Layout, names: Sequence[str] = ENGINE_FILES) -> cl.Program:
    """Compile kernel files, joined in this order, for one layout; pyopencl and the driver cache the binary on disk.

    Raises
    ------
    DeviceError
        If they do not compile; with the compiler's log.
    """
    folder = files("plltool.kernels")
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
    """A kernel that takes its arguments by name, in the order of the contract, and checks the size of every array.

    Parameters
    ----------
    program : as `build_program` returns it
    name : of the kernel in `contract.KERNELS`
    layout : for which the program was built
    """

    def __init__(self, program: cl.Program, name: str, layout: Layout):
        self.declaration = KERNELS[name]
        self._layout = layout
        self._kernel = cl.Kernel(program, name)
        # None stands for a buffer. Told the types, pyopencl packs plain numbers in 2 microseconds a launch; numpy
        # scalars without types took 70.
        types: list[type[np.generic] | None] = []
        self._names: list[str] = []
        self._needs: list[tuple[str, int, tuple[str, ...]]] = []  # bytes = the number * sizes of the launch
        for argument in self.declaration.arguments:
            self._names.append(argument.name)
            if argument.shape is None:
                types.append(layout.dtype(argument).type)
                continue
            types.append(None)
            fixed = [d if isinstance(d, int) else getattr(layout, d, None) for d in argument.shape]
            n_bytes = prod(d for d in fixed if d is not None) * layout.dtype(argument).itemsize
            open_sizes = tuple(str(d) for d, known in zip(argument.shape, fixed, strict=True) if known is None)
            self._needs.append((argument.name, n_bytes, open_sizes))
        self._kernel.set_arg_types(types)

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
            for name, n_bytes, open_sizes in self._needs:
                for size in open_sizes:
                    n_bytes *= numbers[size]
                if arrays[name].n_bytes < n_bytes:
                    raise EngineError(self._describe_shortage(name, arrays[name].n_bytes, n_bytes, numbers))
            values = [arrays[name].buffer if name in arrays else numbers[name] for name in self._names]
        except KeyError as error:
            raise EngineError(f"kernel {self.declaration.name}: {error} is missing") from error
        return self._kernel(queue, n_items, group_items, *values)

    def _describe_shortage(self, name: str, found: int, needed: int, numbers: Mapping[str, Any]) -> str:
        argument = next(argument for argument in self.declaration.arguments if argument.name == name)
        shape = self._layout.array_shape(argument, numbers)
        expected = f"{needed} bytes, {argument.ctype} {shape} {argument.shape}"
        return f"kernel {self.declaration.name}: argument {name} has {found} bytes, expected at least {expected}"
