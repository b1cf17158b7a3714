"""Does a device compute what numpy computes? A child process finds out, because a broken driver may crash it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence

import numpy as np

from plltool.arrays import FloatArray
from plltool.engine import program as prog
from plltool.engine.base import Engine, EngineData
from plltool.engine.opencl.environment import same_drivers
from plltool.errors import DeviceError, PlltoolError
from plltool.model.components import Components
from plltool.processes.children import child_command

PROBE_TIMEOUT = 120.0  # seconds; kernels build within a few on every driver seen, a hanging driver never answers
PROBE_RTOL = 1e-9  # of the largest value of an answer; the order of sums alone gives 1e-14
TOY_SLOTS = 4
TOY_BRANCHES = 7  # of five taxa
LONGEST_REASON = 200  # characters


def probe_device(index: str, timeout: float = PROBE_TIMEOUT) -> str | None:
    """Build the kernels and run a toy computation on the device "P:D"; None if all is well, else one line."""
    try:
        command = child_command("plltool.engine.opencl.probe:main", index)
    except DeviceError as error:
        return str(error)
    return run_probe(command, timeout)


def run_probe(command: Sequence[str], timeout: float) -> str | None:
    """Run a probe in a child process; returns None if it exits with 0, else a line that says how it ended."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=timeout,
            env={**os.environ, **same_drivers()},
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {timeout:g} s"
    except OSError as error:
        return f"the probe does not start: {error}"
    if done.returncode == 0:
        return None
    return explain_failure(done.returncode, done.stderr)


def explain_failure(returncode: int, stderr: str) -> str:
    """One line for a child process that ended with `returncode`, negative for a signal, and wrote `stderr`."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    telling = next((line for line in lines if "LLVM ERROR" in line), lines[-1] if lines else "no message")
    telling = telling[:LONGEST_REASON]
    if returncode >= 0:
        return telling
    try:
        name = signal.Signals(-returncode).name
    except ValueError:
        name = f"signal {-returncode}"
    return f"the driver crashes ({name}): {telling}"


def toy_model() -> Components:
    """A general time-reversible model of four states with four rates, whose kernels most searches of DNA need."""
    from plltool.model.model import Model
    from plltool.model.model_string import parse_model

    return Model(parse_model("GTR{1.2/2.9/0.7/1.1/3.3/1}+FU{0.3/0.2/0.15/0.35}+G4{0.5}")).components()


def toy_data() -> tuple[np.ndarray, FloatArray]:
    """Codes uint8 (5, 101), undetermined characters among them, and weights (101,)."""
    rng = np.random.default_rng(1)
    return rng.integers(1, 16, size=(5, 101), dtype=np.uint8), rng.integers(1, 4, size=101).astype(np.float64)


def toy_values(engine: Engine) -> FloatArray:
    """The answers of every instruction on a tree of five taxa, (1, 15)."""
    program = np.concatenate(
        [
            prog.newview(0, ~0, 0, ~1, 1),
            prog.newview(1, ~2, 2, ~3, 3),
            prog.newview(2, 0, 5, 1, 6),
            prog.evaluate(0, 2, ~4, 4),
            prog.derivative(1, 2, ~4, 4),
            prog.triplet(4, 0, 5, 1, 6, ~4, 4),
            prog.propagate(3, ~4, 4),
            prog.insert(14, 0, 5, 1, 6, 3),
        ]
    )
    return engine.execute(prog.Request(program, 15), np.linspace(0.05, 0.4, TOY_BRANCHES))


def check_device(index: str) -> None:
    """Compare the device "P:D" with the numpy engine, in this process.

    Raises DeviceError if the device is missing, fails, or computes something else.
    """
    from plltool.engine.layout_choice import DataShape
    from plltool.engine.select import make_engine
    from plltool.engine.storage import Slots
    from plltool.hardware import Hardware

    data = EngineData(*toy_data())
    model = toy_model()
    shape = DataShape(model.n_states, model.n_components, len(data.codes), (len(data.weights),))
    answers = []
    for device in (index, "numpy"):
        engine, _ = make_engine(data, shape, Slots(TOY_SLOTS), Hardware(device))
        with engine:
            engine.set_model([model])
            answers.append(toy_values(engine))
    found, expected = answers
    error = float(np.max(np.abs(found - expected)) / np.max(np.abs(expected)))
    if not error <= PROBE_RTOL:
        raise DeviceError(f"the device computes wrong values: relative error {error:.2g}, allowed {PROBE_RTOL:.2g}")


def main(index: str) -> int:
    """Check a device in a child process: returns its exit status, and writes a failure to stderr as one line."""
    try:
        check_device(index)
    except PlltoolError as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return 1
    return 0
