"""Which devices pass their test? A child process finds out, because a broken driver may crash or hang.

It is asked once for each device, driver and state of the kernels; a small file in the user's cache keeps the outcome.
"""

import functools
import hashlib
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from plltool.constants import VERSION
from plltool.engine.opencl.device import Device
from plltool.engine.opencl.environment import OUTCOMES, OUTCOMES_VARIABLE, find_kernel_folder, same_drivers, user_cache
from plltool.errors import DeviceError
from plltool.processes.workers import can_start_children, child_command
from plltool.progress import log

PROBE_TIMEOUT = 60.0  # seconds; kernels build within a few on every driver seen, a hanging driver never answers
PROBE_GRACE = 5.0  # seconds that a child which was killed has to end
LONGEST_REASON = 200  # characters
DRIVER_CRASHES = {"SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSEGV", "SIGSYS"}  # other signals come from outside

_CRASHES, _HANGS, WRONG_VALUES = "the driver crashes", "no answer within", "the device computes wrong values"
_LASTING = (_CRASHES, _HANGS, WRONG_VALUES, "kernels do not build")  # how a test ends that would end so again


def find_fault(device: Device, lanes: int | None = None) -> str | None:
    """Why a device failed its test, as one line; None if it passed. With `lanes`, the test of single-precision vectors.

    The test is made once: by this process, its parent, or another one whose outcome the cache has. What may pass, such
    as too little memory, is not remembered.
    """
    if not can_start_children():
        return "not tested" if lanes else None  # there is no way to find out
    if not OUTCOMES:
        with suppress(ValueError, TypeError):
            OUTCOMES.update(json.loads(os.environ.get(OUTCOMES_VARIABLE, "{}")))
    key = _outcome_key(device, lanes)
    if key not in OUTCOMES:
        try:
            OUTCOMES[key] = _read_outcome(key)
        except (OSError, ValueError, RecursionError):  # none is kept, or what is there is damaged
            what = f"{lanes} lanes on device" if lanes else "device"
            log.info("testing %s %s, once for this driver; %g s at most", what, device.label, probe_seconds())
            retest_device(device, lanes)
    return OUTCOMES[key]


def retest_device(device: Device, lanes: int | None = None) -> str | None:
    """Test a device and keep the outcome; see `find_fault`."""
    key = _outcome_key(device, lanes)
    problem = OUTCOMES[key] = probe_device(device.index, lanes)
    if problem is None or problem.startswith(_LASTING):
        with suppress(OSError):  # the next process tests the device again
            _write_outcome(key, problem)
    return problem


def _outcome_key(device: Device, lanes: int | None) -> str:
    """A name for what an outcome depends on: the device, its driver, the kernels, and lanes if they are tested."""
    words = (device.name, device.platform, device.version, device.driver, VERSION, _kernel_digest(), str(lanes))
    return hashlib.sha256("\n".join(words).encode()).hexdigest()


@functools.cache
def _kernel_digest() -> str:
    files = sorted(file for file in find_kernel_folder().iterdir() if file.suffix in (".cl", ".h"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def _outcome_file(key: str) -> Path:
    return user_cache() / "plltool" / "devices" / f"{key}.json"


def _read_outcome(key: str) -> str | None:
    """The outcome that the cache has. Raises OSError if there is none, ValueError if it is damaged."""
    kept = json.loads(_outcome_file(key).read_text(encoding="utf-8"))
    problem = kept.get("problem", 0) if isinstance(kept, dict) and kept.get("key") == key else 0
    if problem is not None and not isinstance(problem, str):
        raise ValueError(f"{_outcome_file(key)}: found {kept!r}, expected the outcome of a test")
    return problem and f"{problem} (remembered; `plltool devices` tests it again)"


def _write_outcome(key: str, problem: str | None) -> None:
    """Keep an outcome; another process finds the old file or the new one, never a part of it."""
    target = _outcome_file(key)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        file = Path(folder) / target.name
        file.write_text(json.dumps({"key": key, "problem": problem}), encoding="utf-8")
        file.replace(target)


def note_loss(device: Device, what: str) -> None:
    """Let this process and its children pass over a device that has failed while it worked."""
    OUTCOMES[_outcome_key(device, None)] = f"lost during the run: {what}"


def probe_seconds() -> float:
    """How long a device may take for its test: longer where processes wait for their turn, or it would seem to hang."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return round(PROBE_TIMEOUT * max(1.0, load / (os.cpu_count() or 1)))


def probe_device(index: str, lanes: int | None = None) -> str | None:
    """Build the kernels and run a toy computation on the device "P:D"; None if all is well, else one line."""
    try:
        command = child_command("plltool.engine.opencl.probe:main", index, *([str(lanes)] if lanes else []))
    except DeviceError as error:
        return str(error)
    return run_probe(command, probe_seconds())


def run_probe(command: Sequence[str], timeout: float) -> str | None:
    """Run a probe in a child process; returns None if it exits with 0, else a line that says how it ended."""
    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env={**os.environ, **same_drivers()},
        )
    except OSError as error:
        return f"the probe does not start: {error}"
    try:
        _, stderr = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        return f"{_HANGS} {timeout:g} s"
    finally:
        child.kill()  # a driver that hangs ignores every other signal
        with suppress(subprocess.TimeoutExpired):
            child.wait(PROBE_GRACE)
        if child.stderr is not None:
            child.stderr.close()
    return explain_failure(child.returncode, stderr) if child.returncode else None


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
    return f"{_CRASHES if name in DRIVER_CRASHES else 'the test was ended'} ({name}): {telling}"
