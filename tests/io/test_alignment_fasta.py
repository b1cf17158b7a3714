import pytest
from helpers import read_states

from plltool.errors import InputError


@pytest.fixture
def read(tmp_path):
    def read_text(text):
        path = tmp_path / "x.fa"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_states(path)

    return read_text


def test_sequences_may_span_lines_and_hold_blanks(read):
    alignment = read("\n>A\nAC GT\n\nAC\n> B \nACGTAC\n>C\nacgtac\n  >D\n\tACG TAC  \n")
    assert alignment.names == ("A", "B", "C", "D")
    assert alignment.codes.tolist() == [[1, 2, 4, 8, 1, 2]] * 4


def test_the_whole_header_is_the_name(read):
    alignment = read(">Foo_bar\nA\n>Foo bar\nA\n>foo_bar\nA\n>Foo  bar\tx'y \nA\n")
    assert alignment.names == ("Foo_bar", "Foo bar", "foo_bar", "Foo  bar\tx'y")


def test_a_dot_is_a_gap(read):
    assert read(">A\nA\n>B\n.\n>C\nA\n>D\nA\n").codes.tolist() == [[1], [15], [1], [1]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (">A\nAC\n>B\nA\n>C\nAC\n>D\nAC", "taxon 'B' (line 3) has 1 sites, expected 2 as in taxon 'A' (line 1)"),
        (">A\nAC\n>\nAC\n>C\nAC\n>D\nAC", "line 3 has an empty taxon name"),
        (">A\nAC\n>B\nAC\n\n>A\nAC\n>D\nAC", "two taxa have the name 'A' (lines 1 and 6)"),
        (">A\nAC\n>B\nA C\nE\n>C\nAC\n>D\nAC", "taxon 'B' (line 3), site 3: found 'E', expected DNA"),
        (">A\nAC\n", "found 1 taxon, expected at least 3"),
        (">A\nAC\n>B\nAC\n", "found 2 taxa, expected at least 3"),
        (">A\n>B\n>C\n>D\n", "found 0 sites"),
    ],
)
def test_errors_name_line_and_taxon(read, text, message):
    with pytest.raises(InputError) as caught:
        read(text)
    assert message in str(caught.value)
    assert "x.fa: " in str(caught.value)
