"""Whatever is written comes back; whatever the bytes, the answer is an alignment or an InputError."""

import tempfile
from pathlib import Path

import pytest
from helpers import read_states
from hypothesis import given
from hypothesis import strategies as st

from plltool.alignment.alignment import Alignment
from plltool.alignment.states import DNA
from plltool.errors import InputError

BLOCK = 10  # sites per line of the wrapped and interleaved files


def read_bytes(content, states=None):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x"
        path.write_bytes(content)
        return read_states(path, states)


def names_without(forbidden):
    """Names of any bytes but NUL, line ends and `forbidden`, half of them valid UTF-8."""
    text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
    raw = st.one_of(text.map(str.encode), st.binary(min_size=1, max_size=12))
    stripped = raw.map(lambda name: name.translate(None, b"\0\r\n" + forbidden).strip()).filter(bool)
    return st.lists(stripped, min_size=4, max_size=7, unique=True)


@st.composite
def alignments(draw, forbidden=b""):
    names = draw(names_without(forbidden))
    n_sites = draw(st.integers(1, 35))
    characters = "ACGTUacgtuRYSWKMBDHVryswkmbdhvNXOnxo-?"
    sequence = st.text(characters, min_size=n_sites, max_size=n_sites).map(str.encode)
    return names, draw(st.lists(sequence, min_size=len(names), max_size=len(names)))


def quote(name):
    return b"'" + name.replace(b"'", b"''") + b"'"


def blocks(sequence):
    return [sequence[start : start + BLOCK] for start in range(0, len(sequence), BLOCK)]


def interleave(names, sequences, repeat_names):
    lines = []
    for block, pieces in enumerate(zip(*map(blocks, sequences), strict=True)):
        for name, piece in zip(names, pieces, strict=True):
            lines.append(name + b"  " + piece if block == 0 or repeat_names else piece)
        lines.append(b"")
    return b"\n".join(lines)


def wrap(names, sequences):
    return b"\n".join(
        name + b" " + b"\n".join(blocks(sequence)) for name, sequence in zip(names, sequences, strict=True)
    )


def assert_comes_back(content, names, sequences):
    for line_end in (b"\n", b"\r\n", b"\r"):
        alignment = read_bytes(content.replace(b"\n", line_end), DNA)
        assert [name.encode("utf-8", "surrogateescape") for name in alignment.names] == names
        assert alignment.codes.tolist() == [[int(DNA.code_of[byte]) for byte in sequence] for sequence in sequences]


@given(alignments())
def test_fasta_round_trip(given_alignment):
    names, sequences = given_alignment
    rows = (b">" + name + b"\n" + b"\n".join(blocks(s)) for name, s in zip(names, sequences, strict=True))
    assert_comes_back(b"\n".join(rows), names, sequences)


@pytest.mark.parametrize("is_quoted", [False, True], ids=["plain names", "quoted names"])
@given(data=st.data(), is_interleaved=st.booleans())
def test_phylip_round_trip(is_quoted, data, is_interleaved):
    names, sequences = data.draw(alignments() if is_quoted else alignments(b" \t\v\f'"))
    written = [quote(name) for name in names] if is_quoted else names
    body = interleave(written, sequences, False) if is_interleaved else wrap(written, sequences)
    header = b"%d %d %s\n" % (len(names), len(sequences[0]), b"I" if is_interleaved else b"S")
    assert_comes_back(header + body, names, sequences)


@given(alignments(), st.booleans())
def test_nexus_round_trip(given_alignment, is_interleaved):
    names, sequences = given_alignment
    quoted = [quote(name) for name in names]
    body = interleave(quoted, sequences, True) if is_interleaved else wrap(quoted, sequences)
    content = b"#NEXUS\nbegin data;\ndimensions ntax=%d nchar=%d;\nformat datatype=dna%s;\nmatrix\n%s\n;\nend;\n" % (
        len(names),
        len(sequences[0]),
        b" interleave" if is_interleaved else b"",
        body,
    )
    assert_comes_back(content, names, sequences)


def read_or_explain(content):
    try:
        return read_bytes(content)
    except InputError as error:
        return str(error)


def assert_alignment_or_input_error(content):
    answer = read_or_explain(content)
    assert isinstance(answer, Alignment) or "\n" not in answer


STARTS = [b"", b">", b">A\nACGT\n", b"4 4\n", b"4 4 I\n", b"\xef\xbb\xbf4 4 S\n", b"#NEXUS\n", b"\x1f\x8b\x08"]


@given(st.sampled_from(STARTS), st.binary(max_size=200))
def test_any_bytes_give_an_alignment_or_an_input_error(start, content):
    assert_alignment_or_input_error(start + content)


PIECES = [
    b"begin data;", b"begin", b"characters", b"dimensions ntax=4 nchar=2;", b"dimensions", b"nchar=2", b"ntax", b"=",
    b"format datatype=dna", b"gap=-", b"matchchar=.", b"missing='", b"interleave", b"labels=", b"matrix", b"A AC\n",
    b"B .-\n", b"'C'' d' AC\n", b"D AC", b";", b"'", b'"', b"[", b"]", b"{", b"\n", b" ", b"\xff", b"end;",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=30))
def test_any_nexus_pieces_give_an_alignment_or_an_input_error(pieces):
    assert_alignment_or_input_error(b"#NEXUS " + b"".join(pieces))


VALID = [
    b">A\nACGT\n>B\nACGT\n>C\nACGT\n>D\nACGT\n",
    b"4 4\nA ACGT\nB AC.T\nC ACGT\nD ACGT\n",
    b"#NEXUS\nbegin data;\ndimensions ntax=4 nchar=4;\nformat datatype=dna matchchar=.;\nmatrix\nA ACGT\nB ACGT\n"
    b"C AC.T\n'D' ACGT\n;\nend;\n",
]


@given(st.sampled_from(VALID), st.integers(0, 120), st.integers(0, 10), st.binary(max_size=4))
def test_a_damaged_file_gives_an_alignment_or_an_input_error(content, start, n_removed, inserted):
    assert_alignment_or_input_error(content[:start] + inserted + content[start + n_removed :])
