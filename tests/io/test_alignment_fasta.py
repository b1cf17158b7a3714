import pytest
from helpers import read_states
from refusals import refused

from plltool.io.alignment_reader import read_alignment, read_folder


@pytest.fixture
def read(write):
    return lambda text: read_states(write(text, "x.fa"))


def test_sequences_may_span_lines_and_hold_blanks(read):
    alignment = read("\n>A\nAC GT\n\nAC\n> B \nACGTAC\n>C\nacgtac\n  >D\n\tACG TAC  \n")
    assert alignment.names == ("A", "B", "C", "D")
    assert alignment.codes.tolist() == [[1, 2, 4, 8, 1, 2]] * 4


def test_the_whole_header_is_the_name(read):
    alignment = read(">Foo_bar\nA\n>Foo bar\nA\n>foo_bar\nA\n>Foo  bar\tx'y \nA\n")
    assert alignment.names == ("Foo_bar", "Foo bar", "foo_bar", "Foo  bar\tx'y")


def test_a_dot_is_a_gap(read):
    assert read(">A\nA\n>B\n.\n>C\nA\n>D\nA\n").codes.tolist() == [[1], [15], [1], [1]]


BLANKS = ">A one\nAC\n>B\ttwo x\nAG\n>C\nAT\n"


def test_the_first_word_of_a_header_is_the_name(write):
    path = write(BLANKS + ">Å\u00a0b\nAA\n")  # a blank that other programs do not know, either
    found = read_alignment(path, names="first-word")
    assert found.names == ("A", "B", "C", "Å\u00a0b")
    assert found.warnings == ()
    with refused("names: found 'short', expected one of: whole, first-word"):
        read_alignment(path, names="short")


def test_a_note_names_the_option_unless_it_is_given(write):
    path = write(BLANKS)
    (note,) = read_alignment(path).warnings
    assert note.startswith(f"{path}: names are whole headers with blanks, first 'A one' (line 1); --names first-word")
    whole = read_alignment(path, names="whole")
    assert whole.names == ("A one", "B\ttwo x", "C") == read_alignment(path).names
    assert whole.warnings == ()
    assert read_alignment(write(">A\nAC\n>B_two\nAG\n>C \nAT\n")).warnings == ()


@pytest.mark.parametrize(
    ("last", "message"),
    [
        ("A two", "headers 'A one' (line 1) and 'A two' (line 6) have the same first word, expected words that differ"),
        ("A one", "two taxa have the name 'A' (lines 1 and 6)"),
    ],
)
def test_headers_with_one_first_word_are_refused(write, last, message):
    path = write(f">A one\nAC\n>B\nAG\n\n>{last}\nAT\n")
    with refused(", or --names whole" if last == "A two" else "", f"{path}: {message}"):
        read_alignment(path, names="first-word")


def test_a_folder_has_one_note(tmp_path):
    for name in ("g1", "g2", "g3"):
        (tmp_path / f"{name}.fa").write_text(BLANKS.replace(" one", "") if name == "g1" else BLANKS)
    assert [len(own.warnings) for own in read_folder(tmp_path).values()] == [1, 0, 0]
    assert {own.names for own in read_folder(tmp_path, names="first-word").values()} == {("A", "B", "C")}


CLUSTAL = """CLUSTAL O(1.2.4) multiple sequence alignment


a_1      ACGT-A 5
b2       ACGTTA 6
c        ACGTTA 6
         **** *

a_1      GG 7
b2       .~ 6
c        GG 8
         .
"""
STOCKHOLM = """# STOCKHOLM 1.0
#=GF ID   none
a_1        ACGT-A
b2         ACGTTA
c          ACGTTA
#=GC SS    ......

a_1        GG
b2         ..
c          GG
//
"""
MSF = """PileUp

  x.msf  MSF: 8  Type: N  Check: 0  ..

 Name: a_1   Len: 8  Check: 0  Weight: 1.0
 Name: b2    Len: 8  Check: 0  Weight: 1.0
 Name: c     Len: 8  Check: 0  Weight: 1.0

//

       1      8
a_1    ACGT. A
b2     ACGTT A
c      ACGTT A

a_1    GG
b2     ~~
c      GG
"""


T_COFFEE = "CLUSTAL FORMAT for T-COFFEE Version_11.00 [MODE:  ], CPU=0.01 sec, SCORE=991, Nseq=3, Len=8"


@pytest.mark.parametrize(
    "text",
    [
        *(CLUSTAL, STOCKHOLM, MSF),
        MSF.replace("\nb2", "\n b2").replace("\nc", "\n  c"),  # as PileUp writes it
        CLUSTAL.replace("CLUSTAL O(1.2.4)", "MUSCLE (3.8)"),
        CLUSTAL.replace("CLUSTAL O(1.2.4)", "MSAPROBS version 0.9.7"),
        CLUSTAL.replace("CLUSTAL O(1.2.4) multiple sequence alignment", "Kalign (2.0) alignment in ClustalW format"),
        CLUSTAL.replace("CLUSTAL O(1.2.4) multiple sequence alignment", T_COFFEE),
    ],
)
def test_blocks_are_what_fasta_is(read, text):
    fasta = read(">a_1\nACGT-AGG\n>b2\nACGTTA--\n>c\nACGTTAGG\n")
    for content in (text, "\n" + text, text.replace("\n", "\r\n")):
        found = read(content)
        assert found.names == fasta.names
        assert found.codes.tolist() == fasta.codes.tolist()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (">A\nAC\n>B\nA\n>C\nAC\n", "x.fa: taxon 'B' (line 3) has 1 sites, expected 2 as in taxon 'A' (line 1)"),
        (">A\nAC\n>\nAC\n>C\nAC\n>D\nAC", "x.fa: line 3 has an empty taxon name"),
        (">A\nAC\n>B\nAC\n\n>A\nAC\n>D\nAC", "x.fa: two taxa have the name 'A' (lines 1 and 6)"),
        (">A\nAC\n>B\nA C\nE\n>C\nAC\n>D\nAC", "x.fa: taxon 'B' (line 3), site 3: found 'E', expected DNA"),
        (">A\nAC\n", "x.fa: found 1 taxon, expected at least 3"),
        (">A\nAC\n>B\nAC\n", "x.fa: found 2 taxa, expected at least 3"),
        (">A\n>B\n>C\n>D\n", "x.fa: found 0 sites"),
        (MSF.replace("\nb2 ", "\nb3 "), "x.fa: taxon 'b2' (line 6) has 0 sites"),  # a name of its head is missing
        ("CLUSTAL\n\na ACGT\nb2 ACG\nc ACGT\n", "x.fa: taxon 'b2' (line 4) has 3 sites, expected 4 as in taxon 'a'"),
    ],
)
def test_errors_name_line_and_taxon(read, text, message):
    with refused(message):
        read(text)
