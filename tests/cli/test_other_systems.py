"""What other systems than Linux lack: a search and its files without it. Nothing of this has run there."""

import subprocess
import sys

import pytest

from plltool import hardware
from plltool.constants import ASSUMED_MEMORY
from plltool.io import record

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

    real = record.tempfile.mkstemp(dir=tmp_path)
    monkeypatch.setattr(record.tempfile, "mkstemp", lambda **_: real)
    monkeypatch.setattr(record.os, "open", refuse)
    record.write_text(tmp_path / "x", "text")
    assert (tmp_path / "x").read_text() == "text"
