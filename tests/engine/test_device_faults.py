"""Which devices pass their test, and what is remembered of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from test_select import CPU, GPU

from plltool.engine.contract import OPCODE_SETS, InstructionWord
from plltool.engine.layout import Layout, default_lanes
from plltool.engine.opencl import device_faults as faults
from plltool.engine.opencl import environment, probe
from plltool.engine.opencl.device import make_context
from plltool.engine.opencl.device_faults import explain_failure, find_fault, probe_device, retest_device, run_probe
from plltool.engine.opencl.environment import OUTCOMES_VARIABLE, child_environment
from plltool.errors import DeviceError


def python(code):
    return [sys.executable, "-c", code]


class TestProbe:
    @pytest.mark.parametrize(
        ("code", "expected"),
        [
            ("print('noise')", None),
            (
                "import os, sys; print('LLVM ERROR: Cannot select: fma', file=sys.stderr, flush=True); os.abort()",
                "the driver crashes (SIGABRT): LLVM ERROR: Cannot select: fma",
            ),
            ("import os; os.kill(os.getpid(), 11)", "the driver crashes (SIGSEGV): no message"),
            ("import os; os.kill(os.getpid(), 9)", "the test was ended (SIGKILL): no message"),
            ("raise SystemExit('kernels do not build')", "kernels do not build"),
        ],
        ids=["success", "crash", "silent crash", "killed by somebody else", "error"],
    )
    def test_ends(self, code, expected):
        assert run_probe(python(code), 60) == expected

    def test_a_hang(self, tmp_path):
        """As in a driver that waits for its queue: SIGTERM and SIGINT are not heard."""
        file = tmp_path / "pid"
        code = f"""
import os, signal, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
open({str(file)!r}, "w").write(str(os.getpid()))
time.sleep(60)
"""
        began = time.monotonic()
        assert run_probe(python(code), 2.0) == "no answer within 2 s"
        assert time.monotonic() - began < 30
        with pytest.raises(ProcessLookupError):
            os.kill(int(file.read_text()), 0)

    @pytest.mark.parametrize(("load", "seconds"), [(0.5, 60), (4.0, 60), (14.0, 210)])
    def test_a_busy_machine_has_more_time(self, load, seconds, monkeypatch):
        monkeypatch.setattr(faults.os, "cpu_count", lambda: 4)
        monkeypatch.setattr(faults.os, "getloadavg", lambda: (load, 0.0, 0.0), raising=False)
        assert faults.probe_seconds() == seconds

    def test_a_command_that_does_not_start(self):
        assert "does not start" in run_probe(["/no/such/program"], 60)

    @pytest.mark.parametrize(
        ("returncode", "stderr", "expected"),
        [
            (1, "warning\n\n  the reason \n", "the reason"),
            (-6, "note\nLLVM ERROR: bad\n  at 0x1\nin f", "the driver crashes (SIGABRT): LLVM ERROR: bad"),
            (-200, "", "the test was ended (signal 200): no message"),
            (1, "x" * 1000, "x" * 200),
        ],
    )
    def test_explanations(self, returncode, stderr, expected):
        assert explain_failure(returncode, stderr) == expected

    @pytest.mark.opencl
    def test_a_device(self):
        assert probe_device("0:0") is None
        assert probe_device("0:0", 4) is None
        assert "no OpenCL device is called '99:0'" in probe_device("99:0")

    @pytest.mark.opencl
    def test_wrong_values_are_noticed(self, monkeypatch):
        original, calls = probe.toy_values, []

        def disturbed(engine):
            calls.append(engine.name)
            return [values * (1.0 if engine.name == "numpy" else 1.0 + 1e-6) for values in original(engine)]

        monkeypatch.setattr(probe, "toy_values", disturbed)
        with pytest.raises(DeviceError, match="wrong values: relative error 1e-06"):
            probe.check_device("0:0")
        assert calls == ["opencl", "numpy"]

    def test_every_set_of_instructions_is_tried(self):
        """GPUs have a program for each of them."""
        tried = set()

        class Engine:
            def execute(self, request, lengths):
                assert request.program[:, InstructionWord.PB].max() < len(lengths)
                opcodes = set(request.program[:, InstructionWord.OPCODE].tolist())
                tried.add(next(name for name, known in OPCODE_SETS.items() if opcodes <= known))
                return np.zeros((1, request.n_values))

        probe.toy_values(Engine())
        assert tried == set(OPCODE_SETS)


@pytest.fixture
def tests(tmp_path, monkeypatch):
    """An empty cache, and a test of devices whose outcome is set; holds the devices that were tested."""

    class Tests(list):
        outcome = None
        cache = tmp_path / "plltool" / "devices"

        def __call__(self, index, lanes):
            self.append(f"{index} {lanes} lanes" if lanes else index)
            return self.outcome

        def begin_process(self):
            """Forget what this process knows."""
            faults.OUTCOMES.clear()
            self.clear()

        def file(self):
            (file,) = self.cache.iterdir()
            return file

    made = Tests()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(OUTCOMES_VARIABLE, raising=False)
    for module in (faults, environment):
        monkeypatch.setattr(module, "OUTCOMES", faults.OUTCOMES if module is environment else {})
    monkeypatch.setattr(faults, "_kernel_digest", lambda: "kernels")
    monkeypatch.setattr(faults, "probe_device", made)
    return made


CRASH, HANG = "the driver crashes (SIGSEGV): no message", "no answer within 60 s"
WRONG = "the device computes wrong values: relative error 1, allowed 1e-09"


class TestMemory:
    @pytest.mark.parametrize("outcome", [None, CRASH, HANG, WRONG])
    def test_an_outcome_is_kept(self, tests, outcome):
        tests.outcome = outcome
        for _ in range(2):
            assert find_fault(GPU) == outcome
        assert tests == [GPU.index]
        tests.begin_process()
        again = " (remembered; `plltool devices` tests it again)"
        assert find_fault(GPU) == (outcome and outcome + again)
        assert tests == []

    def test_what_may_pass_is_not_kept(self, tests):
        tests.outcome = "out of memory"
        assert [find_fault(GPU), find_fault(GPU)] == ["out of memory"] * 2
        assert tests == [GPU.index]
        tests.begin_process()
        tests.outcome = None
        assert find_fault(GPU) is None

    @pytest.mark.parametrize("field", ["name", "platform", "version", "driver"])
    def test_another_device_or_driver_is_tested(self, tests, field):
        assert find_fault(GPU) is None
        tests.outcome = CRASH
        assert find_fault(replace(GPU, **{field: "another"})) == CRASH
        assert find_fault(replace(GPU, index="9:9")) is None

    def test_lanes_are_tested_apart(self, tests):
        """A compiler that fails on wide vectors of singles limits these alone."""
        assert find_fault(CPU) is None
        tests.outcome = CRASH
        assert default_lanes(CPU, "rough") == CPU.vector_width
        assert tests == ["0:0", "0:0 8 lanes"]
        tests.begin_process()
        assert find_fault(CPU) is None
        assert default_lanes(replace(CPU, single_width=8), "rough") == 8
        assert tests == []
        tests.outcome = None
        assert retest_device(CPU, 8) is None
        assert [default_lanes(CPU, precision) for precision in ("rough", "single", "mixed", "double")] == [8, 4, 4, 4]

    def test_other_kernels_are_tested(self, tests, monkeypatch):
        assert find_fault(GPU) is None
        monkeypatch.setattr(faults, "_kernel_digest", lambda: "others")
        tests.outcome = CRASH
        assert find_fault(GPU) == CRASH

    def test_the_command_tests_again(self, tests):
        tests.outcome = CRASH
        find_fault(GPU)
        tests.outcome = None
        assert retest_device(GPU) is None
        tests.begin_process()
        assert find_fault(GPU) is None
        assert tests == []

    @pytest.mark.parametrize(
        "damage",
        [
            lambda text: "",
            lambda text: text[:-1],
            lambda text: text.replace("null", "0"),
            lambda text: text.replace("null", "false"),
            lambda text: text.replace('"problem"', '"broblem"'),
            lambda text: text.replace('"key": "', '"key": "0'),
            lambda text: "[]",
            lambda text: "null",
            lambda text: "\udcff",
            lambda text: "[" * 100_000,
        ],
    )
    def test_a_damaged_file_is_not_believed(self, tests, damage):
        find_fault(GPU)
        file, whole = tests.file(), tests.file().read_text()
        file.write_bytes(damage(whole).encode(errors="surrogateescape"))
        assert file.read_text(errors="replace") != whole
        tests.begin_process()
        tests.outcome = CRASH
        assert find_fault(GPU) == CRASH
        assert tests == [GPU.index]
        assert json.loads(file.read_text())["problem"] == CRASH

    def test_a_cache_that_cannot_be_written(self, tests):
        tests.cache.parent.write_text("a file where the folder would be")
        assert find_fault(GPU) is None
        tests.begin_process()
        tests.outcome = CRASH
        assert find_fault(GPU) == CRASH

    def test_a_child_process_knows_what_its_parent_knows(self, tests, monkeypatch):
        """Even where there is no cache."""
        tests.cache.parent.write_text("a file where the folder would be")
        find_fault(CPU)
        tests.outcome = "out of memory"
        find_fault(GPU)
        monkeypatch.setenv(OUTCOMES_VARIABLE, child_environment(1)[OUTCOMES_VARIABLE])
        tests.begin_process()
        tests.outcome = CRASH
        assert [find_fault(CPU), find_fault(GPU)] == [None, "out of memory"]
        assert tests == []

    @pytest.mark.parametrize("text", ["", "{", "[1]", "7"])
    def test_a_variable_that_is_not_ours(self, tests, monkeypatch, text):
        monkeypatch.setenv(OUTCOMES_VARIABLE, text)
        assert find_fault(GPU) is None
        assert tests == [GPU.index]

    def test_several_processes_write_at_the_same_time(self, tests):
        """Whoever reads meanwhile finds a whole file."""
        key = faults._outcome_key(GPU, None)
        faults._write_outcome(key, None)

        def write(number):
            faults._write_outcome(key, CRASH * number)

        with ThreadPoolExecutor(4) as pool:
            writing = [pool.submit(write, number) for number in range(1, 200)]
            while not all(task.done() for task in writing):
                assert (faults._read_outcome(key) or CRASH).startswith(CRASH)
        assert [task.exception() for task in writing] == [None] * len(writing)
        assert [file.name for file in tests.cache.iterdir()] == [f"{key}.json"]

    @pytest.mark.opencl
    def test_kernels_that_do_not_build_are_remembered(self, tests, opencl_device):
        from plltool.engine.opencl.kernels import build_program

        with pytest.raises(DeviceError) as caught:
            build_program(make_context(opencl_device, None)[0], Layout(4, 4, 4, (5,), 4), ("layout.h",), ["-DVW=none"])
        tests.outcome = " ".join(str(caught.value).split())[:200]
        find_fault(GPU)
        tests.begin_process()
        assert find_fault(GPU).endswith("tests it again)")

    def test_without_child_processes_there_is_no_test(self, tests, monkeypatch):
        monkeypatch.setattr(faults, "can_start_children", lambda: False)
        tests.outcome = CRASH
        assert find_fault(GPU) is None
        assert default_lanes(CPU, "rough") == CPU.vector_width
        assert tests == []


WITH_A_BAD_DRIVER = """
import sys
from plltool.engine.opencl import device_faults as faults
bad, device = sys.argv[1:3]
probe = faults.probe_device
crash = faults.child_command("builtins:exec", bad)
faults.probe_device = lambda index, lanes: faults.run_probe(crash, 1.0) if index == device else probe(index, lanes)
from plltool.cli import main
main(sys.argv[3:])
"""


@pytest.mark.opencl
@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("import os; os.kill(os.getpid(), 11)", "the driver crashes (SIGSEGV)"),
        ("import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(99)", "no answer within 1 s"),
    ],
)
def test_commands_survive_a_bad_driver(tmp_path, bad, reason):
    """auto goes on without it and says so in one line; a run that names the device ends with one line."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    (tmp_path / "four.phy").write_text("4 8\na ACGTACGT\nb ACGTACGA\nc ACGAACGA\nd TCGAACGT\n", encoding="utf-8")

    def search(device):
        options = f"--effort fast --start random --model JC --device {device} --redo --prefix".split()
        command = [sys.executable, "-c", WITH_A_BAD_DRIVER, bad, first, "search", tmp_path / "four.phy"]
        command += [*options, tmp_path / "x"]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)

    from plltool.engine.opencl.device import list_devices
    from plltool.engine.select import rank_devices

    first = rank_devices(list_devices()[0])[0].index
    done = search("auto")
    assert done.returncode == 0, done.stderr
    (line,) = (line for line in done.stderr.splitlines() if reason in line)
    assert f"device {first}" not in line
    for _ in range(2):
        done = search(first)
        assert done.returncode == 1
        (line,) = (line for line in done.stderr.splitlines() if reason in line)
        assert done.stderr.splitlines()[-1] == line
        assert line.startswith(f"plltool: error: device '{first}' cannot be used: {first} ")
        assert reason in line
