"""The record of a run: written whole or not at all, and read back as it was."""

import os

import pytest
from refusals import refused

from plltool.errors import InputError
from plltool.io.files import RECORD_KEYS, read_record, write_record, write_text

RECORD = dict.fromkeys(RECORD_KEYS) | {"lnl": -1.5, "tree": "('Foo bar',é,Lemur\udce9);"}


def test_there_and_back(tmp_path):
    path = tmp_path / "x.json"
    write_record(path, RECORD)
    assert read_record(path) == RECORD
    assert path.read_bytes().isascii()
    assert os.listdir(tmp_path) == ["x.json"]


def test_a_record_is_complete_and_finite(tmp_path):
    with pytest.raises(ValueError, match="lacks model"):
        write_record(tmp_path / "x", {key: 0 for key in RECORD_KEYS if key != "model"})
    with pytest.raises(ValueError, match="nan"):
        write_record(tmp_path / "x", RECORD | {"lnl": float("nan")})


def test_surrogates_become_bytes_again(tmp_path):
    write_text(tmp_path / "x", "Lemur\udce9\n")
    assert (tmp_path / "x").read_bytes() == b"Lemur\xe9\n"


def test_a_file_that_cannot_be_replaced_stays(tmp_path, monkeypatch):
    path = tmp_path / "x"
    path.write_text("old")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(InputError, match="No space left"):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["x"]


def test_permissions_are_those_of_any_new_file(tmp_path):
    write_text(tmp_path / "a", "")
    (tmp_path / "b").write_text("")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"\xff"])
def test_what_is_no_record(write, tmp_path, content):
    path = write(content)
    with refused(path):
        read_record(path)
    with refused("cannot read"):
        read_record(tmp_path / "none")
