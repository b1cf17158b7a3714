"""The fuzzer runs on every parser, finds deliberate bugs, and makes the same inputs for the same seed."""

import logging
import random
import sys
import time

import fuzz
import fuzz_parsers
import pytest

from plltool.errors import InputError


@pytest.fixture(autouse=True)
def _no_traces(monkeypatch):
    """The script limits the memory of its process and turns warnings off; other tests run in the same process."""
    monkeypatch.setattr(fuzz, "ADDRESS_SPACE", fuzz.resource.RLIM_INFINITY)
    log = logging.getLogger("plltool")
    before = log.level
    yield
    log.setLevel(before)


def run(monkeypatch, tmp_path, *arguments):
    monkeypatch.setattr(sys, "argv", ["fuzz.py", "--failures", str(tmp_path / "found"), *arguments])
    return fuzz.main()


def test_no_parser_fails(monkeypatch, tmp_path, capsys):
    assert run(monkeypatch, tmp_path, "--count", "150", "--seed", "5", "--limit", "20") == 0, capsys.readouterr()
    assert not (tmp_path / "found").exists()


def explode(content, _path):
    if b"a(b" in content:
        raise KeyError("a bug")
    return 1


def dawdle(content, _path):
    if b"b" * 900 in content:
        time.sleep(30)
    return 1


def ramble(content, _path):
    if b"a(b" in content:
        raise InputError("far too long" * 1000)
    return 1


@pytest.mark.parametrize(("bug", "kind"), [(explode, "KeyError"), (dawdle, "Hang"), (ramble, "long message")])
def test_what_is_broken_is_found(monkeypatch, tmp_path, capsys, bug, kind):
    monkeypatch.setitem(fuzz.PARSERS, "broken", fuzz_parsers.Parser(bug, [b"a(b"[:1] + b"b"], [b"(", b"b"]))
    assert run(monkeypatch, tmp_path, "broken", "--count", "4000", "--limit", "0.2") == 1
    assert kind in capsys.readouterr().err
    found = tmp_path / "found" / "broken-1.bin"
    if kind != "Hang":
        assert found.read_bytes() == b"a(b"  # shortened as far as it goes
        assert run(monkeypatch, tmp_path, "broken", "--replay", str(found)) == 1


def test_the_same_seed_gives_the_same_inputs():
    def inputs():
        mutator = fuzz.Mutator(fuzz.PARSERS["newick"], random.Random("3 newick"))
        return [mutator.next() for _ in range(200)]

    assert inputs() == inputs()
