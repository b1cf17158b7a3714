import pytest
from refusals import refused

from plltool.alignment.states import DNA
from plltool.io.alignment_formats import Record, read_phylip

EXPECTED = [("one", b"AAAACCCC"), ("two", b"AAAACCCG"), ("three", b"AAAACCCT"), ("four", b"AAAACCCA")]


def read(text):
    return [(record.name, record.sequence) for record in read_phylip(text.encode(), "x.phy", DNA)]


@pytest.mark.parametrize(
    "text",
    [
        "4 8\none AAAACCCC\ntwo AAAACCCG\nthree AAAACCCT\nfour AAAACCCA\n",
        "\n  4\t8  \n\n one  AAAA CCCC \ntwo\tAAAACC CG\n\nthree AAAACCCT\nfour AAAACCCA",
        "4 8\none AAAA\nCCCC\ntwo AAAA\nCCCG\nthree AAAA\nCCCT\nfour AAAA\nCCCA\n",
        "4 8 S\none\nAAAA\nCCCC\ntwo\nAAAACCCG\nthree\nAAAA CCCT\nfour  \t \nAAAACCCA\n \t\n",
        "4 8\none AAAA\ntwo AAAA\nthree AAAA\nfour AAAA\n\n CCCC\n CCCG\nCCCT\n  CCCA\n",
        "4 8 I\none AAAA\ntwo AAAA\nthree AAAA\nfour AAAA\nCCCC\nCCCG\nCCCT\nCCCA\n",
        "4 8 i\none\ntwo\nthree\nfour\n1\nAAAA\nAAAA\nAAAA\nAAAA\n5  \nCCCC\nCCCG\nCCCT\nCCCA\n",
        "4 8\none\ntwo\nthree\nfour\nAAAA\nAAAA\nAAAA\nAAAA\n\nCCCC\nCCCG\nCCCT\nCCCA\n",
        "4 8\none       AAAACCCC\ntwo       AAAACCCG\nthree     AAAACCCT\nfour      AAAACCCA\n",
    ],
    ids=["plain", "blanks", "wrapped", "names_apart", "interleaved", "option_I", "positions", "names_first", "columns"],
)
def test_dialects_give_the_same_records(text):
    assert read(text) == EXPECTED


@pytest.mark.parametrize(
    "text",
    [
        "4 4\nName00001 ACGT\nName 00002AC GT\nName000003ACGT\n Näme04   ACGT\n",
        "4 4\nName00001 AC\nName 00002AC\nName000003AC\n Näme04   AC\n\nGT\nGT\nGT\nGT",
        "4 4\nName00001 AC\nGT\nName 00002AC\nGT\nName000003AC\nGT\n Näme04   AC\nGT",
    ],
)
def test_strict_names_have_ten_characters(text):
    names = ["Name00001", "Name 00002", "Name000003", "Näme04"]
    assert read(text) == [(name, b"ACGT") for name in names]


def test_quoted_names_may_hold_blanks_and_quotes():
    text = "4 2\n'Homo sapiens' AC\n'O''Brien x'   AC\nO'Brien AC\n'half AC\n"
    assert [name for name, _ in read(text)] == ["Homo sapiens", "O'Brien x", "O'Brien", "'half"]


def test_a_dot_repeats_the_first_sequence():
    text = "4 4\nA AC.T\nB ...G\nC G.-.\nD ....\n"
    assert [sequence for _, sequence in read(text)] == [b"AC.T", b"AC.G", b"GC-T", b"AC.T"]


def test_records_know_their_lines():
    text = b"4 2\nA\nAC\n\nB AC\nC AC\nD AC\n"
    assert [record.line for record in read_phylip(text, "x.phy", DNA)] == [2, 5, 6, 7]
    assert read_phylip(text, "x.phy", DNA)[0] == Record("A", b"AC", 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("4 4\nA ACGT\nB ACG\nC ACGT\nD ACGT\n", "taxon 'B' (line 3) has 3 sites, line 1 announces 4 taxa of 4 sites"),
        ("\n4 5\nA ACGT\nB ACGT\nC ACGT\nD ACGT\n", "taxon 'A' (line 3) has 4 sites, line 2 announces 4 taxa of 5"),
        ("5 4\nA ACGT\nB ACGT\nC ACGT\nD ACGT\n", "found 4 taxa, line 1 announces 5 taxa of 4 sites"),
        ("3 4\nA ACGT\nB ACGT\nC ACGT\nD ACGT\n", "found 4 taxa, line 1 announces 3 taxa of 4 sites"),
        (
            "4 4\nA AC\nGT\nB AC\nGT\nC AC\nGT\nD AC\n",
            "taxon 'D' (line 8) has 2 sites, line 1 announces 4 taxa of 4 sites",
        ),
        (
            "3 4\nA ACGT\nB ACGT\nC ACGT\n\n 3 4\nA ACGT\nB ACGT\nC ACGG\n",
            "line 6: found the sizes of another alignment",
        ),
        ("4 4", "found 0 taxa, line 1 announces 4 taxa of 4 sites"),
        ("0 4\n", "line 1: found 0 taxa and 4 sites, expected at least 1 of each"),
        ("4 0\nA\nB\nC\nD\n", "line 1: found 4 taxa and 0 sites, expected at least 1 of each"),
        ("4 4 GC\nA ACGT\n", "line 1: found 'GC' after the two sizes, expected nothing, I (interleaved) or S"),
        (
            "4 4 I\nA AC\nGT\nB AC\nGT\nC AC\nGT\nD AC\nGT\n",
            "taxon 'A' (line 2) has 5 sites, line 1 announces 4 taxa of 4 sites",
        ),
    ],
)
def test_sizes_that_differ_are_errors(text, message):
    with refused(message, "x.phy: "):
        read(text)
