"""Does a device compute what numpy computes? A child process finds out; see `device_faults.py`."""

import signal
import sys
from dataclasses import replace

import numpy as np

from plltool.arrays import FloatArray
from plltool.engine import program as prog
from plltool.engine.base import Engine, EngineData
from plltool.engine.layout import DataShape
from plltool.engine.opencl.device import list_devices
from plltool.engine.opencl.device_faults import WRONG_VALUES, probe_seconds
from plltool.engine.select import find_device, open_on
from plltool.engine.storage import Slots
from plltool.errors import DeviceError, PlltoolError
from plltool.hardware import Hardware

PROBE_RTOL = 1e-9  # of the largest value of an answer; the order of sums alone gives 1e-14
PROBE_RTOL_SINGLE = 1e-4  # the same where CLAs are single; 1e-6 on a device that works
TOY_SLOTS = 4
TOY_BRANCHES = 7  # of five taxa


def toy_values(engine: Engine) -> list[FloatArray]:
    """The answers of every instruction on a tree of five taxa: of a program for each of `contract.OPCODE_SETS`."""
    below = [prog.newview(0, ~0, 0, ~1, 1), prog.newview(1, ~2, 2, ~3, 3), prog.newview(2, 0, 5, 1, 6)]
    programs = [
        (4, [prog.evaluate(0, 2, ~4, 4), prog.derivative(1, 2, ~4, 4)]),
        (1, [prog.propagate(3, ~4, 4), prog.insert(0, 0, 5, 1, 6, 3)]),
        (10, [prog.triplet(0, 0, 5, 1, 6, ~4, 4)]),
        (80, [prog.rate_matrix_gradient(0, 2, ~4, 4), prog.mass_gradient(64, 2, ~4, 4)]),
        (11, [prog.evaluate(0, 2, ~4, 4), prog.triplet(1, 0, 5, 1, 6, ~4, 4)]),
    ]
    lengths = np.linspace(0.05, 0.4, TOY_BRANCHES)
    return [
        engine.execute(prog.Request(np.concatenate([*below, *program]), n_values), lengths)
        for n_values, program in programs
    ]


def check_device(index: str, lanes: int | None = None) -> None:
    """Compare the device "P:D" with numpy; DeviceError if it is missing, fails, or computes something else.

    It computes in single precision if it has no other; with `lanes` roughly, as a search that screens moves.
    """
    from plltool.model.model import Model
    from plltool.model.model_string import parse_model

    rng = np.random.default_rng(1)  # five taxa, undetermined characters among them
    data = EngineData(rng.integers(1, 16, size=(5, 101), dtype=np.uint8), rng.integers(1, 4, size=101).astype(float))
    # a general time-reversible model with four rates, whose kernels most searches of DNA need
    model = Model(parse_model("GTR{1.2/2.9/0.7/1.1/3.3/1}+FU{0.3/0.2/0.15/0.35}+G4{0.5}")).components()
    shape = DataShape(model.n_states, model.n_components, len(data.codes), (len(data.weights),))
    devices, failures = list_devices()
    device = find_device(devices, index, failures, "single")
    rtol, hardware = PROBE_RTOL, Hardware()
    if lanes or not device.has_double:
        rtol, hardware = PROBE_RTOL_SINGLE, Hardware(precision="single")
    if lanes:
        device = replace(device, single_width=lanes)
    answers = []
    for engine in (
        open_on(device, data, shape, Slots(TOY_SLOTS), hardware, rough=bool(lanes)),
        open_on(None, data, shape, Slots(TOY_SLOTS), Hardware()),
    ):
        with engine:
            engine.set_model([model])
            answers.append(toy_values(engine))
    for found, expected in zip(*answers, strict=True):
        error = float(np.max(np.abs(found - expected)) / np.max(np.abs(expected)))
        if not error <= rtol:
            raise DeviceError(f"{WRONG_VALUES}: relative error {error:.2g}, allowed {rtol:.2g}")


def main(index: str, lanes: str = "0") -> int:
    """Check a device in a child process: returns its exit status, and writes a failure to stderr as one line."""
    if hasattr(signal, "alarm"):  # ends even a driver that hangs, if the parent is gone
        signal.alarm(int(2 * probe_seconds()))
    try:
        check_device(index, int(lanes))
    except PlltoolError as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return 1
    return 0
