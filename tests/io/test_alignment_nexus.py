import pytest
from refusals import refused

from plltool.alignment.states import DNA, PROTEIN
from plltool.io.nexus import read_nexus

ROWS = "A ACGT\nB AC-T\nC ACGG\nD ACGA\n"


def nexus(rows=ROWS, form="datatype=dna gap=- missing=?", size="ntax=4 nchar=4"):
    """Line 1 is the signature, the rows start on line 6."""
    return f"#NEXUS\nbegin data;\ndimensions {size};\nformat {form};\nmatrix\n{rows};\nend;\n"


def read(text, states=DNA):
    found = read_nexus(text.encode(), "x.nex", states)
    return list(zip(found.names, found.rows, strict=True))


EXPECTED = [("A", b"ACGT"), ("B", b"AC-T"), ("C", b"ACGG"), ("D", b"ACGA")]


@pytest.mark.parametrize(
    "text",
    [
        nexus(),
        nexus("A AC\nGT\nB\nAC -T\n\nC ACGG\nD ACGA\n", "datatype=dna labels=left transpose=no gap=-"),
        nexus("A AC\nB AC\nC AC\nD AC\n\nA GT\nB -T\nC GG\nD GA\n", "datatype=DNA interleave gap=-"),
        nexus("A AC\nB AC\nC AC\nD AC\n\nA GT\nB -T\nC GG\nD GA\n", "DataType = Rna Interleave = yes gap = -"),
        nexus("A AC\nB AC\nC AC\nD AC\n\nA GT\nB -T\nC GG\nD GA\n", "datatype=nucleotide"),
        nexus("A AC\nB AC\nC AC\nD AC\n\nGT\n-T\nGG\nGA\n"),
        nexus("A AC\nGT\nB AC\n-T\nC AC\nGG\nD AC\nGA\n", "datatype=dna interleave=yes"),
        nexus("A ACGT\nB ..-.\nC ...G\nD ...A\n", "datatype=dna matchchar=."),
        nexus("A AxGT\nB ACoT\nC .CGG\nD xxxA\n".replace("x", "C").replace("CCCA", "ACGA"), "datatype=dna gap=o"),
        nexus("A AxyT\nB Ax-T\nC AxGG\nD AxyA\n", 'datatype=dna gap=- equate="x = {C} y=G X=T"'),
        nexus("[1 2]\nA AC[x;[y]']GT[\n]\nB[b] AC-T\nC ACGG\nD ACGA [end;]\n"),
        nexus().replace("begin data;", "BEGIN Trees; tree a = ((A,B),'C;D'); ENDBLOCK; Begin CHARACTERS;"),
        nexus().replace("ntax=4 ", "").replace("begin data;", "begin taxa; dimensions ntax=4; end; begin data;"),
        nexus(size="nchar=4"),
        nexus().removesuffix("end;\n"),
        nexus().replace("#NEXUS", "#NEXUS\n# source: x;\n\n  # begin data;"),
    ],
    ids=[
        "plain", "wrapped", "interleaved", "other_case", "interleave_unsaid", "names_once", "interleave_untrue",
        "matchchar", "gap", "equate", "comments", "other_blocks", "taxa_block", "no_ntax", "no_end", "remarks",
    ],
)  # fmt: skip
def test_dialects_give_the_same_records(text):
    records = read(text)
    assert [name for name, _ in records] == ["A", "B", "C", "D"]
    if "gap=o" in text:
        assert records == [("A", b"ACGT"), ("B", b"AC-T"), ("C", b".CGG"), ("D", b"ACGA")]
    else:
        assert records == EXPECTED


TAXA = "begin taxa; dimensions ntax=4; taxlabels A 'B b' C D; end;\nbegin characters;"


@pytest.mark.parametrize(
    ("rows", "form"),
    [
        ("ACGT\nAC-T\nAC GG\nRCGA\n", "nolabels"),
        ("ACGTAC\n-TACGG\n{AG}CGA\n", "labels=no"),
        ("AC\nAC\nAC\nRC\n\nGT\n-T\nGG\nGA\n", "nolabels interleave"),
        ("AAA(A G)\nCCCC\nG-GG\nTTGA\n", "transpose nolabels"),
        ("c1 AAA{AG}\n'c 2' CCCC\nc3 G-GG\nc4 T TGA\n", "transpose"),
    ],
)
def test_rows_without_names_and_rows_of_characters(rows, form):
    """IQ-TREE 2.0.7 reads the same, where blanks are not within brackets."""
    text = nexus(rows, f"datatype=dna gap=- {form}", "nchar=4").replace("begin data;", TAXA)
    assert read(text) == [("A", b"ACGT"), ("B b", b"AC-T"), ("C", b"ACGG"), ("D", b"RCGA")]


def test_names_survive():
    rows = "'Homo sapiens' ACGT\n'O''Brien [x];' ACGT\nO'Brien_1 ACGT\nD'Arcy(2) ACGT\n'half ACGT\n"
    names = ["Homo sapiens", "O'Brien [x];", "O'Brien_1", "D'Arcy(2)", "'half"]
    assert read(nexus(rows, size="ntax=5 nchar=4")) == [(name, b"ACGT") for name in names]


def test_match_gap_and_missing_symbols_are_those_declared():
    rows = "A A#Gz\nB %%%%\nC #z%%\nD ACGT\n"
    sequences = [sequence for _, sequence in read(nexus(rows, "datatype=dna matchchar=% gap=# missing=z"))]
    assert sequences == [b"A-G?", b"A-G?", b"-?G?", b"ACGT"]


@pytest.mark.parametrize("form", ["datatype=dna gap=- missing=o", "datatype=dna gap=- missing=o interleave"])
def test_a_set_of_states_becomes_the_letter_that_stands_for_it(form):
    """IUPAC codes (Cornish-Bowden 1985, table 1); a set that may be anything is N."""
    expected = [("D'Arcy(2)", b"ARCT"), ("B", b"MDCT"), ("C", b"AVNN"), ("D", b"MSKA")]
    if "interleave" in form:
        rows = "D'Arcy(2) A{AG}\nB (A,C){a g t}\nC {A}{RC}\nD {AC}(CG)\nD'Arcy(2) CT\nB CT\nC {A-}{Co}\nD {GT}A\n"
    else:
        rows = "D'Arcy(2) A{AG}CT\nB (A,C){a g t}CT\nC {A}{RC}{A-}{Co}\nD {AC}\n(CG){GT}\nA\n"
    assert read(nexus(rows, form)) == expected


def test_macros_stand_for_sets():
    # IQ-TREE 2.0.7 has the same lnL of a file with these macros as of one without; PAUP writes such
    macros = 'datatype=dna gap=- equate="R={AG} Y=(C T) n=? a=-"'
    assert read(nexus("A RCGT\nB aCnY\nC ACGG\nD ACGA\n", macros))[:2] == [("A", b"RCGT"), ("B", b"-C?Y")]
    found = read_nexus(nexus("A 0xy1\nB 0101\nC 1100\nD 1010\n", 'symbols="01" equate="x=(01) y=?"').encode(), "x.nex")
    assert [found.sets.get(byte, bytes([byte])) for byte in found.rows[0]] == [b"0", b"01", b"?", b"1"]


def test_sets_of_amino_acids():
    rows = "A {DN}(EQ)\nB {il}X\nC LV\nD {K}?\n"
    assert read(nexus(rows, "datatype=protein", "nchar=2"), PROTEIN) == [
        ("A", b"BZ"), ("B", b"JX"), ("C", b"LV"), ("D", b"K?"),
    ]  # fmt: skip
    with refused("line 9: found '{KR}', expected a set of states that a letter of protein"):
        read(nexus(rows.replace("{K}", "{KR}"), "datatype=protein", "nchar=2"), PROTEIN)


def test_records_know_their_lines():
    text = nexus("[a\nb]\nA ACGT\nB ACGT\n\nC ACGT\nD ACGT\n").replace("#NEXUS", "\n\n#nexus")
    assert read_nexus(text.encode(), "x.nex", DNA).positions == [10, 11, 13, 14]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (nexus(form="datatype=protein"), "line 4: found datatype 'protein', expected one of: dna, rna, nucleotide"),
        (nexus(form="datatype=mixed(Standard:1-2,DNA:3-4)"), "found datatype 'mixed(Standard:1-2,DNA:3-4)'"),
        (nexus(form="gap=-"), "found datatype 'standard' (the default of NEXUS), expected one of: dna, rna, nucleo"),
        (nexus(form="datatype=Standard"), "found datatype 'Standard', expected one of: dna, rna, nucleotide"),
        (nexus(form="datatype=codon"), "line 4: found datatype 'codon', expected one of: dna, rna, nucleotide"),
        (nexus(form="datatype=restriction"), "found datatype 'restriction', expected one of: dna, rna, nucleotide"),
        (nexus(form="datatype=dna tokens"), "line 4: the format option 'tokens' is not supported"),
        (
            nexus(form="datatype=dna transpose"),
            "line 5: found 16 characters in a matrix of characters, expected 4 for e",
        ),
        (
            nexus(form="datatype=dna nolabels"),
            "line 5: found 20 characters in a matrix without labels, expected 4 for ea",
        ),
        (
            nexus(form="datatype=dna nolabels").replace("begin data;", TAXA.replace("D", "")),
            "4 for each of 3 TAXLABELS",
        ),
        (nexus(form="datatype=dna equate='x={AG'"), "line 4: found equate='x={AG', expected macros such as"),
        (nexus(form="datatype=dna labels=right"), "line 4: found labels=right, expected the names on the left"),
        (nexus(form="datatype=dna gap=--"), "line 4: found gap='--', expected one ASCII character"),
        (nexus(form="datatype=dna gap=ä"), "line 4: found gap='ä', expected one ASCII character"),
        (nexus(size="ntax=4"), "line 2: found no nchar in the dimensions"),
        (nexus(size="ntax=4 nchar=four"), "line 2: found nchar='four', expected a number"),
        (nexus(size="ntax=5 nchar=4"), "found 4 taxa, the dimensions command announces 5 taxa of 4 sites"),
        (nexus(size="nchar=5"), "taxon 'A' (line 6) has 4 sites, the dimensions command announces 5 sites"),
        (nexus(ROWS.replace("AC-T", "AC-")), "taxon 'B' (line 7) has 3 sites, the dimensions command announces 4"),
        (nexus(ROWS.replace("AC-T", "AC{AE}T")), "line 7: found '{AE}', expected a set of states that a letter of DNA"),
        (nexus(ROWS.replace("AC-T", "AC{AGT")), "line 7: found '{AGT', expected a set of states that a letter of DNA"),
        (nexus(ROWS.replace("AC-T", "AC{}T")), "line 7: found '{}', expected a set of states that a letter of DNA"),
        (nexus().replace("data", "notes"), "found no data or characters block, expected one (blocks found: 'notes')"),
        ("#NEXUS", "found no data or characters block, expected one (blocks found: none)"),
        (nexus() + nexus()[6:], "found 2 data or characters blocks (lines 2, 13), expected one"),
        ("#NEXUS\nbegin data;\nend;\n", "line 2: found a data block without matrix, expected one"),
        (nexus().replace(";\nend;", ""), "line 5: found a matrix without end, expected ';'"),
        (nexus("[A\n" + ROWS), "line 6: found a comment without end, expected ']'"),
    ],
)
def test_errors_say_what_was_found(text, message):
    with refused(message, "x.nex: "):
        read(text)


def test_an_unclosed_quote_ends_with_its_line():
    # dendropy and others read on to the next quote, here into the next row
    assert [name for name, _ in read(nexus("'A ACGT\nB' ACGT\nC ACGT\n'D' ACGT\n"))] == ["'A", "B'", "C", "D"]
