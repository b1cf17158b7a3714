"""What other systems than Linux lack: a search and its files without it. Nothing of this has run there."""

import subprocess
import sys

import pytest

from plltool import hardware
from plltool.hardware import ASSUMED_MEMORY
from plltool.io import files

HIDDEN = """
import builtins, os, pathlib, signal, sys
for name in ("fcntl", "resource", "termios", "pwd", "grp"):
    sys.modules[name] = None
missing = {os: ("sched_getaffinity", "sysconf", "pread", "getuid", "fork"), signal: ("SIGPIPE", "SIGHUP")}
for module, names in missing.items():
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
opened = builtins.open
def no_proc(file, *rest, **named):
    if str(file).startswith("/proc"):
        raise FileNotFoundError(2, "no such file", str(file))
    return opened(file, *rest, **named)
builtins.open = __import__("io").open = no_proc
real = os.open
def no_folders(path, flags, *rest, **named):
    if os.path.isdir(path) or str(path).startswith("/proc"):
        raise PermissionError(13, "permission denied", str(path))
    return real(path, flags, *rest, **named)
os.open = no_folders
from plltool.cli import main
main(sys.argv[1:])
"""


def test_a_search_without_what_only_linux_has(small, tmp_path):
    command = [sys.executable, "-c", HIDDEN, "search", str(small), "--model", "JC", "--effort", "fast"]
    command += ["--device", "numpy", "--start", "random", "--prefix", str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "lnL: -" in done.stdout
    for ending in ("best.nwk", "json", "log", "html", "txt"):
        assert (tmp_path / f"run.{ending}").stat().st_size > 0
    assert not (tmp_path / "run.checkpoint").exists()


@pytest.mark.parametrize(
    ("pages", "expected"),
    [
        ({"SC_AVPHYS_PAGES": 10, "SC_PHYS_PAGES": 30, "SC_PAGE_SIZE": 4096}, 40960),
        ({"SC_PHYS_PAGES": 30, "SC_PAGE_SIZE": 4096}, 61440),
        ({}, ASSUMED_MEMORY),
    ],
)
def test_memory_where_there_is_no_proc(monkeypatch, pages, expected):
    """macOS does not count free pages; Windows has no sysconf."""

    def sysconf(name):
        if name not in pages:
            raise ValueError("unrecognized configuration name")
        return pages[name]

    monkeypatch.setattr(hardware.os, "sysconf", sysconf)
    assert hardware._physical_memory() == expected
    monkeypatch.delattr(hardware.os, "sysconf")
    assert hardware._physical_memory() == ASSUMED_MEMORY


def test_cores_where_a_process_has_no_set_of_them(monkeypatch):
    monkeypatch.delattr(hardware.os, "sched_getaffinity")
    monkeypatch.setattr(hardware.os, "cpu_count", lambda: 7)
    assert hardware.available_cores() == 7


def test_folders_that_cannot_be_opened(monkeypatch, tmp_path):
    """As on Windows: a file is written all the same."""

    def refuse(*_):
        raise PermissionError(13, "permission denied")

    real = files.tempfile.mkstemp(dir=tmp_path)
    monkeypatch.setattr(files.tempfile, "mkstemp", lambda **_: real)
    monkeypatch.setattr(files.os, "open", refuse)
    files.write_text(tmp_path / "x", "text")
    assert (tmp_path / "x").read_text() == "text"


CGROUP_1 = "9:name=systemd:/a\n4:memory:/a/b\n2:cpu,cpuacct:/a/b\n0::/\n"
CGROUP_2 = "0::/a/b\n"


def limit_1(folder, quota, period=100_000):
    return {f"{folder}/cpu.cfs_quota_us": quota, f"{folder}/cpu.cfs_period_us": period}


@pytest.mark.parametrize(
    ("cgroup", "files", "cores"),
    [
        (CGROUP_2, {}, 64),
        (CGROUP_2, {"a/b/cpu.max": "max 100000"}, 64),
        (CGROUP_2, {"a/b/cpu.max": "300000 100000"}, 3),
        (CGROUP_2, {"a/b/cpu.max": "max 100000", "a/cpu.max": "150000 100000"}, 2),  # of the group around it
        (CGROUP_2, {"a/b/cpu.max": "50000 100000", "a/cpu.max": "400000 100000"}, 1),
        (CGROUP_2, {"cpu.max": "200000 50000"}, 4),  # in a container
        (CGROUP_2, {"a/b/cpu.max": "9900000 100000"}, 64),
        (CGROUP_2, {"a/b/cpu.max": ""}, 64),
        (CGROUP_2, {"a/b/cpu.max": "100000 0"}, 64),
        (CGROUP_2, {"c/cpu.max": "100000 100000"}, 64),  # of others
        (CGROUP_1, limit_1("cpu,cpuacct/a/b", -1), 64),
        (CGROUP_1, limit_1("cpu,cpuacct/a/b", 250_000), 3),
        (CGROUP_1, limit_1("cpu,cpuacct/a", 50_000, 10_000), 5),
        (CGROUP_1, limit_1("cpu,cpuacct", 200_000), 2),
        (CGROUP_1, limit_1("memory/a/b", 100_000), 64),
        ("", {"cpu.max": "100000 100000"}, 64),
        (None, {"cpu.max": "100000 100000"}, 64),
    ],
)
def test_cores_within_the_quota_of_a_control_group(monkeypatch, tmp_path, cgroup, files, cores):
    if cgroup is not None:
        (tmp_path / "proc" / "self").mkdir(parents=True)
        (tmp_path / "proc" / "self" / "cgroup").write_text(cgroup)
    for name, text in files.items():
        path = tmp_path / "sys" / "fs" / "cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    monkeypatch.setattr(hardware, "Path", lambda _: tmp_path)
    monkeypatch.setattr(hardware.os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    assert hardware.available_cores() == cores
