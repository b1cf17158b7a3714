"""The fuzzer: it runs on every parser, finds what is broken on purpose, and gives the same inputs for the same seed."""

import logging
import random
import sys
import time

import pytest
from helpers import load_script

from plltool.errors import InputError


@pytest.fixture(scope="module")
def fuzz():
    module = load_script("fuzz")
    module.ADDRESS_SPACE = module.resource.RLIM_INFINITY  # of the tests' own process
    return module


@pytest.fixture(autouse=True)
def _other_tests_hear_warnings():
    """The script silences them for good."""
    log = logging.getLogger("plltool")
    before = log.level
    yield
    log.setLevel(before)


def run(fuzz, monkeypatch, tmp_path, *arguments):
    monkeypatch.setattr(sys, "argv", ["fuzz.py", "--failures", str(tmp_path / "found"), *arguments])
    return fuzz.main()


def test_no_parser_fails(fuzz, monkeypatch, tmp_path, capsys):
    assert run(fuzz, monkeypatch, tmp_path, "--count", "150", "--seed", "5", "--limit", "20") == 0, capsys.readouterr()
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
def test_what_is_broken_is_found(fuzz, monkeypatch, tmp_path, capsys, bug, kind):
    monkeypatch.setitem(fuzz.PARSERS, "broken", fuzz.Parser(bug, [b"a(b"[:1] + b"b"], [b"(", b"b"]))
    assert run(fuzz, monkeypatch, tmp_path, "broken", "--count", "4000", "--limit", "0.2") == 1
    assert kind in capsys.readouterr().err
    found = tmp_path / "found" / "broken-1.bin"
    if kind != "Hang":
        assert found.read_bytes() == b"a(b"  # shortened as far as it goes
        assert run(fuzz, monkeypatch, tmp_path, "broken", "--replay", str(found)) == 1


def test_the_same_seed_gives_the_same_inputs(fuzz):
    def inputs():
        mutator = fuzz.Mutator(fuzz.PARSERS["newick"], random.Random("3 newick"))
        return [mutator.next() for _ in range(200)]

    assert inputs() == inputs()
