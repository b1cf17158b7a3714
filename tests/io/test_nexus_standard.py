"""Standard data in NEXUS files: symbols, sets of states, mixed kinds of data."""

import pytest
from refusals import refused

from plltool.alignment.spaces import COUNTED, SPACES
from plltool.alignment.states import DNA
from plltool.io.alignment_reader import read_alignment
from plltool.io.model_reader import read_scheme
from plltool.io.nexus import read_nexus
from plltool.model.partition import cut_alignment
from plltool.model.scheme import PartSpec, split_by_states

ROWS = "A 0121\nB 01-?\nC 1(0 1)2{12}\nD 10{10}3\n"


def nexus(rows=ROWS, form="datatype=standard gap=- missing=?", size="ntax=4 nchar=4"):
    """Line 1 is the signature, the rows start on line 6."""
    return f"#NEXUS\nbegin data;\ndimensions {size};\nformat {form};\nmatrix\n{rows};\nend;\n"


def read(text, states=None):
    return read_nexus(text.encode(), "x.nex", states)


def shown(matrix):
    """The sequences, with sets written in braces."""
    return [
        "".join(f"{{{matrix.sets[byte].decode()}}}" if byte in matrix.sets else chr(byte) for byte in row)
        for row in matrix.rows
    ]


@pytest.mark.parametrize(
    "form",
    [
        "datatype=standard gap=- missing=?",
        'datatype=standard symbols="0123"',
        "datatype=Standard symbols='0~3' interleave",
        'datatype=standard symbols = "0 1 2 3"',
        'symbols="0123"',
        "missing=?",
    ],
)
def test_sets_are_one_column(form):
    matrix = read(nexus(form=form))
    assert matrix.states is COUNTED
    assert matrix.told == (form != "missing=?")
    assert shown(matrix) == ["0121", "01-?", "1{01}2{12}", "10{01}3"]
    assert len(matrix.sets) == 2
    assert matrix.warnings == ()


def test_symbols_are_numbered_in_their_order():
    rows = "A abcA\nB ab-?\nC b{ab}cb\nD ba(ca)c\n"
    matrix = read(nexus(rows, 'datatype=standard symbols="ABC" missing=?'))
    assert shown(matrix) == ["0120", "01-?", "1{01}21", "10{02}2"]
    assert matrix.warnings == ("x.nex: the symbols ABC are read and written as 0 to 2, in this order",)


def test_unknown_characters_are_those_declared():
    matrix = read(nexus("A 01x\nB 0#1\nC {0x}11\nD 100\n", "datatype=standard gap=# missing=x", "nchar=3"))
    assert shown(matrix) == ["01?", "0-1", "{0?}11", "100"]


def test_restriction_sites_are_binary():
    assert read(nexus("A 01\nB 00\nC 11\nD 1?\n", "datatype=restriction", "nchar=2")).states is SPACES["bin"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (nexus(form='datatype=standard symbols="012"'), "taxon 'D' (line 9), site 4: found '3', expected one of the s"),
        (nexus("A 01\nB {04}1\nC 11\nD 00\n", 'datatype=standard symbols="01"', "nchar=2"), "line 7: found '{04}'"),
        (nexus("A 01\nB {}1\nC 11\nD 00\n", size="nchar=2"), "line 7: found '{}', expected a set of states such as"),
        (nexus("A 01\nB {01\nC 11\nD 00\n", size="nchar=2"), "line 7: found '{01', expected a set of states"),
        (nexus(form='datatype=standard symbols="0aA"'), "line 4: found symbols='0aA', expected 2 to 64 different"),
        (nexus(form='datatype=standard symbols="0"'), "line 4: found symbols='0', expected 2 to 64 different ASCII"),
        (nexus(form='datatype=standard symbols="0é"'), "expected 2 to 64 different ASCII"),
        (nexus(form="datatype=codon"), "line 4: found datatype 'codon', expected one of: dna, rna, nucleotide, pro"),
        (nexus(form="datatype=mixed(Standard:1-2,Codon:3-4)"), "line 4: found 'Codon:3-4' in a mixed datatype"),
        (nexus(form="datatype=mixed(Standard:1-2,DNA:3-5)"), "found 'DNA:3-5' in a mixed datatype, expected one of d"),
        (nexus(form="datatype=mixed(Standard:2-1)"), "found 'Standard:2-1' in a mixed datatype"),
        (nexus(form="datatype=mixed(Standard)"), "found 'Standard' in a mixed datatype"),
        (nexus(form="datatype=mixed(Standard:1-4"), "line 4: datatype=mixed( has no ')'"),
    ],
)
def test_errors_say_what_was_found(text, message):
    with refused(message, "x.nex: "):
        read(text)


def test_too_many_sets():
    """129 sets of one to three of 36 symbols; a file has 128 bytes for them."""
    symbols = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    sets = [f"{{{a}{b}}}" for i, a in enumerate(symbols) for b in symbols[i + 1 :]][:129]
    rows = "".join(f"{name} {''.join(sets)}\n" for name in "ABCD")
    with refused("found too many different sets of states, expected at most 128"):
        read(nexus(rows, size="nchar=129"))
    rows = "".join(f"{name} {''.join(sets[:128])}\n" for name in "ABCD")
    assert len(read(nexus(rows, size="nchar=128")).sets) == 128


MISFITS = {
    "MK": "found data of several kinds (Standard, DNA), expected a model for each partition",
    "MK, a = 1-5": "the columns have several kinds of data, expected one kind (part 'a')",
    "MK, a = 1-4\nJC2, b = 5": "found DNA data, expected multistate for model 'JC2' (part 'b')",
    "JC, a = 1-4": "taxon 'A' (line 6), site 1: found '0', expected DNA",
}


def test_mixed_data(write):
    """What FORMAT says of columns decides, not their characters: column 5 may be anything. Sets fit their own kind."""
    rows = "A 01{12}?A{AG}\nB 012?CT\nC 110?NT\nD 100?AC\n"
    text = nexus(rows, "datatype=mixed(Standard:1-4,DNA:5-6) interleave=yes", "ntax=4 nchar=6")
    given = read_alignment(write(text))
    data = cut_alignment(given, split_by_states(given, (PartSpec(None),)))
    assert [(part.name, part.alignment.states.name, part.alignment.states.n_states) for part in data.parts] == [
        ("Standard", "multistate", 3), ("DNA", "DNA", 4)
    ]  # fmt: skip
    dna = data.parts[1]
    column = dna.sites.tolist().index(5)
    assert dna.alignment.codes[0, column] == DNA.code_of[ord("R")]
    for scheme, message in MISFITS.items():
        with refused(message):
            cut_alignment(given, read_scheme(scheme))


@pytest.mark.parametrize(("word", "n_states"), [("bin", 2), ("morph", 3), ("multi", 3), (None, 3)])
def test_the_kind_may_be_told(write, word, n_states):
    def cut(third):
        path = write(f"4 3\na 01{third}\nb 0?1\nc 110\nd 100\n")
        return cut_alignment(read_alignment(path, word), (PartSpec(None),)).alignments[0]

    block = cut(n_states - 1)
    assert (block.states.name, block.states.n_states) == ("multistate", n_states)
    if word == "bin":
        with refused("taxon 'a' (line 2), site 3: found '2', expected multistate, that"):
            cut(2)
