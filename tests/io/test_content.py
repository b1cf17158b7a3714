"""Standard input is read wherever a file is, under the name ``-``, and only once."""

import bz2
import gzip
import io
import lzma
import sys

import pytest
from refusals import refused

from plltool.io.alignment_reader import read_alignment
from plltool.io.files import read_content
from plltool.io.model_reader import read_scheme
from plltool.io.tree_files import read_constraint, read_tree, read_tree_set

FASTA = b">a\nACGT\n>b\nACGA\n>c\nTCGA\n>d\nTCGT\n"
TREE = b"((a:1,b:2):1,c:3,d:4);"


@pytest.fixture
def offer(monkeypatch):
    """Puts bytes on standard input."""
    return lambda content: monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))


@pytest.mark.parametrize(
    "pack", [bytes, gzip.compress, bz2.compress, lzma.compress, lambda text: text.decode().encode("utf-16")]
)
def test_an_alignment(offer, pack):
    offer(pack(FASTA))
    given = read_alignment("-")
    assert given.names == ("a", "b", "c", "d")
    assert given.source == "standard input"


@pytest.mark.parametrize(("module", "pack"), [("lzma", lzma.compress), ("bz2", bz2.compress)])
def test_compressions_that_this_python_lacks(offer, monkeypatch, module, pack):
    """As Python built without a library, and before 3.14, which reads zstd."""
    monkeypatch.setitem(sys.modules, module, None)
    offer(pack(FASTA))
    with refused("file, which this Python cannot read; unpack it, such as by ", "standard input: found a "):
        read_content("-")


def test_zstd(offer):
    """RFC 8878: a frame whose last block has 4 bytes as they are."""
    packed = b"\x28\xb5\x2f\xfd\x00\x58\x21\x00\x00>a\n"
    offer(packed + b"A")
    if sys.version_info < (3, 14):
        with refused("found a zstd file, which this Python cannot read; unpack it, such as by zstd -d"):
            read_content("-")
    else:
        assert read_content("-") == b">a\nA"


@pytest.mark.parametrize("content", [b"HKY+G4", b'{"model": "HKY+G4"}', b"#NEXUS begin sets; charset a = 1-2; end;"])
def test_a_model(offer, content):
    offer(content)
    (spec,) = read_scheme("-")
    assert str(spec.model) == ("None" if content.startswith(b"#") else "HKY+FO+G4")


def test_trees(offer):
    offer(TREE)
    assert read_tree("-").names == ("a", "b", "c", "d")
    offer(TREE + b"\n" + TREE)
    assert read_tree_set(["-"]).n_trees == 2
    offer(TREE)
    assert read_constraint("-", "abcd").n_splits == 1


def test_messages_call_it_standard_input(offer):
    offer(b"((a,b,c);")
    with refused("", "standard input:1:9: found ';'"):
        read_tree("-")


def test_it_is_read_only_once(offer, monkeypatch):
    offer(FASTA)
    read_content("-")
    with refused("standard input: '-' can be read only once"):
        read_content("-")
    monkeypatch.setattr("sys.stdin", None)
    with refused("standard input: found it closed, expected data"):
        read_content("-")


def test_a_file_of_that_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "-").write_bytes(b"here")
    assert read_content("./-") == b"here"
