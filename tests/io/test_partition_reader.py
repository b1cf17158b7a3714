"""Partition files: RAxML's, RAxML-NG's and NEXUS give the same parts; what is wrong is named."""

import pytest
from refusals import refused

from plltool.alignment.alignment import Sequences
from plltool.alignment.states import DNA, PROTEIN
from plltool.io.alignment_reader import read_alignment
from plltool.io.model_reader import read_scheme
from plltool.io.partition_reader import read_sets
from plltool.model.model_string import parse_model
from plltool.model.partition import cut_alignment
from plltool.model.scheme import PartSpec, SiteRange, assign_sites


def summarise(scheme):
    """Name, model as text, columns of an alignment of 20."""
    columns = assign_sites(scheme, 20, "x.phy")
    rows = zip(scheme, columns, strict=True)
    return [(spec.name, spec.model and str(spec.model), (own + 1).tolist()) for spec, own in rows]


FIRST, REST = [1, 4, 7], [2, 3, 5, 6, 8, 9, 15, 16, 17, 18, 19, 20]
EXPECTED = [("first", "GTR+F+G4", FIRST), ("rest", "HKY{1.0/2.0}+FU{0.1/0.2/0.3/0.4}", REST)]


@pytest.mark.parametrize(
    "text",
    [
        "GTR+F+G4, first = 1-9\\3\nHKY{1/2}+FU{0.1/0.2/0.3/0.4}, rest = 2-9\\3, 3-9\\3, 15-.\n",
        "# codon positions\r\n\r\nGTR+F+G,first=1-7/3\r\nHKY{2}+F{0.1,0.2,0.3,0.4} , rest= 2 - 9 \\ 3,3,6,9 15-20",
        "#NEXUS\nbegin sets;\ncharset first = 1-9\\3;\ncharset rest = 2-9\\3 3-9\\3 15-.;\n"
        "charpartition mine = GTR+F+G4: first, HKY{1/2}+FU{0.1/0.2/0.3/0.4}: rest;\nend;\n",
        "#nexus begin assumptions; charset 'first' = 1-9\\3; CharSet second=2-9\\3; charset third = 3-9\\3;"
        "charset rest = second; charpartition * 'my parts' = GTR+F+G4 : 'first', "
        "HKY{2}+F{0.1,0.2,0.3,0.4}: rest third tail;"
        "charset tail [to the end] = 15 - . ; end;",
        "#nexus\nbegin sets;\ncharset first = data/x.phy: 1-9\\3;\n"
        "charset rest = 'x.phy.gz' : DNA, 2-9\\3 3-9\\3 15-.;\n"
        "charpartition mine = GTR+F+G4: first, HKY{2}+F{0.1,0.2,0.3,0.4}: rest;\nend;\n",
        "GTR+F+G4, first = x.phy: 1-9\\3\nHKY{2}+F{0.1,0.2,0.3,0.4}, rest = x.phy:2-9\\3 3-9\\3, 15-.",
    ],
    ids=["raxml-ng", "spaces", "nexus", "other_nexus", "iqtree", "raxml_with_file"],
)
def test_dialects_give_the_same_parts(write, text):
    found = summarise(read_scheme(write(text)))
    assert [row[1:] for row in found] == [row[1:] for row in EXPECTED]
    assert found[0][0] == "first"
    assert found[1][0].startswith("rest")


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize(
    "lines",
    [
        [b"JC, a = 1-5", b"JC, b = 6-10 11-20"],
        [b"#NEXUS", b"begin sets;", b"charset a = 1-5;", b"charset b = 6-10", b"11-20;", b"end;"],
    ],
)
def test_line_ends_and_byte_order_marks(write, lines, line_end):
    path = write(b"\xef\xbb\xbf" + line_end.join(lines))
    scheme = read_scheme(path)
    assert [spec.name for spec in scheme] == ["a", "b"]
    assert [len(columns) for columns in assign_sites(scheme, 20, "x.phy")] == [5, 15]
    assert scheme[1].where == f"{path}: line {2 if len(lines) == 2 else 4}"


def test_models_over_several_lines(write):
    """A model string alone, and lines of a partition file, whose numbers are those of the first lines."""
    wrapped = "GTR{1.2/3.4/\n  0.8/1.1/4.1/1.0}\n+FU{0.28/0.21/0.24/\n0.27}+\n\n# shape\nG4{0.45}"
    (whole,) = read_scheme(write(wrapped))
    assert whole.model == parse_model("GTR{1.2/3.4/0.8/1.1/4.1/1.0}+FU{0.28/0.21/0.24/0.27}+G4{0.45}")
    scheme = read_scheme(write(f"JC, a = 1-4\n{wrapped}, b = 5-9\nK80, c = 10-."))
    assert [spec.model for spec in scheme] == [parse_model("JC"), whole.model, parse_model("K80")]
    assert [spec.where.rsplit(" ", 1)[1] for spec in scheme] == ["1", "2", "9"]


def test_text_is_read_like_a_file():
    text = "JC, a = 1-10\nK80, b = 11-20"
    assert [spec.name for spec in read_scheme(text)] == ["a", "b"]
    assert read_scheme(" JC, a = 1-10 ")[0].model == parse_model("JC")


@pytest.mark.parametrize(
    ("word", "model"),
    [
        ("DNA", "GTR+F+G4"),
        ("dnax", "GTR+FO+G4"),
        ("AA", "LG+G4"),
        ("WAG", "WAG"),
        ("WAGF", "WAG+F"),
        ("jttx", "JTT+FO"),
        ("LG4X", "LG4X+R4"),
        ("LG+G4+F", "LG+F+G4"),
        ("GTR+G+B", "GTR+FO+G4+B"),
        ("GTR+G4{0.5}+BU{1.5}", "GTR+FO+G4{0.5}+BU{1.5}"),
    ],
)
def test_words_for_models(word, model):
    assert str(read_scheme(f"{word}, gene = 1-10")[0].model) == model


def test_charsets_without_models(write):
    """All of them, or those that a partition of MrBayes names; the usual models are those of their data."""
    sets = "charset a = 1-5; charset b = 6-20; charset c = 1-20;"
    path = write(f"#NEXUS begin mrbayes; {sets} partition favoured = 2: b, a; set partition = favoured; end;")
    assert [(name, model) for name, model, _ in summarise(read_scheme(path))] == [("b", None), ("a", None)]
    path = write("#NEXUS begin sets; charset a = 1-5; charset b = 6-20; end;")
    assert [(name, model) for name, model, _ in summarise(read_scheme(path))] == [("a", None), ("b", None)]


def three_partitions(write, chosen):
    """The path of a file of MrBayes."""
    sets = "charset a = 1-3; charset b = 4 5; charset c = 6-.;"
    partitions = "partition one = 1: all; partition two = 2: a, remainder; partition three = 3: a, b, c;"
    return write(f"#NEXUS begin mrbayes; {sets} {partitions} {chosen} end;")


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ("set autoclose = yes partition = one;", [("all", list(range(1, 21)))]),
        ("set partition = three; set partition=two;", [("a", [1, 2, 3]), ("remainder", list(range(4, 21)))]),
        ("SET nowarn=yes PARTITION='three';", [("a", [1, 2, 3]), ("b", [4, 5]), ("c", list(range(6, 21)))]),
    ],
)
def test_one_of_several_partitions(write, chosen, expected):
    found = summarise(read_scheme(three_partitions(write, chosen)))
    assert [(name, columns) for name, _, columns in found] == expected


@pytest.mark.parametrize(
    ("chosen", "of_name"),
    [("", ""), ("set partition = four;", ", 0 of them with the name 'four'"), ("set autoclose = yes;", "")],
)
def test_no_partition_is_chosen(write, chosen, of_name):
    with refused(f"found 3 partition commands (lines 1, 1, 1){of_name}, expected one, or 'set part"):
        read_scheme(three_partitions(write, chosen))


def test_a_partition_that_is_set_stands_before_a_charpartition(write):
    """Without a word the charpartition is taken, because it has models."""
    sets = "charset a = 1-3; charset b = 4-.; partition one = 1: all; charpartition two = JC: a, K80: b;"
    for chosen, expected in (("", ["a", "b"]), ("set partition = two;", ["a", "b"]), ("set partition = one;", ["all"])):
        path = write(f"#NEXUS begin sets; {sets} {chosen} end;")
        assert [name for name, *_ in summarise(read_scheme(path))] == expected
    with refused("found 2 partition commands (lines 1, 1), 0 of them with the name 'x'"):
        read_scheme(write(f"#NEXUS begin sets; {sets} set partition = x; end;"))


def test_charsets_as_members_of_others(write):
    """And of a charpartition of NEXUS; the remainder is what other parts leave, wherever it stands."""
    sets = "charset a = 1-3; charset 'b c' = 4\n5; charset both = a, 'b c' 20; charset rest = REMAINDER; charset d = 9;"
    partition = "charpartition p = JC: rest, K80: both, HKY: d;"
    found = summarise(read_scheme(write(f"#NEXUS begin sets; {sets} {partition} end;")))
    assert [columns for *_, columns in found] == [[6, 7, 8, *range(10, 20)], [1, 2, 3, 4, 5, 20], [9]]


@pytest.mark.parametrize("member", ["a{0} a{0} {1}", "a{0} {1}, {2}"])
def test_members_of_members(write, member):
    """Ranges that members share count once; a file cannot ask for more than memory holds."""
    sets = "charset a = 1-3; charset b = a 5; charset c = a b 7; partition p = 1: c;"
    path = write(f"#NEXUS begin sets; {sets} end;")
    assert summarise(read_scheme(path)) == [("c", None, [1, 2, 3, 5, 7])]
    sets = " ".join(f"charset a{k + 1} = {member.format(k, 3 * k + 5, 3 * k + 7)};" for k in range(1500))
    text = f"#NEXUS begin sets; charset a0 = 1; {sets} end;"
    with refused("found more than 1000000 ranges, member charsets included"):
        read_sets(text.encode(), "x.nex", parse_model)


def test_the_remainder_is_told_as_columns():
    text = "#NEXUS\nbegin sets; charset a = 3-5; charset b = remainder; end;"
    scheme = read_sets(text.encode(), "x.nex", parse_model)
    data = cut_alignment(sequences("ACGTACGT", "ACGAACGA", "ACCTACGT", "TCGTACGA"), scheme)
    assert [part.ranges for part in data.parts] == ["3-5", "1-2, 6-8"]


def test_charsets_that_say_what_their_data_are(write):
    sets = "charset a = x.phy: DNA, 1-5; charset b = AA, 6-20; charset c = x.phy: *;"
    first, rest = list(range(1, 6)), list(range(6, 21))
    for partition, expected in (
        ("charpartition p = JC: a, LG: b", [("a", "JC", first), ("b", "LG", rest)]),
        ("partition p = 2: a, b", [("a", "GTR+F+G4", first), ("b", "LG+G4", rest)]),
        ("partition p = 1: c", [("c", None, first + rest)]),
        ("charpartition p = b: b, one: 1 - 4 5", [("b", "LG+G4", rest), ("one", None, first)]),  # no models
        ("charset 6-x = 1-5; charpartition p = 1: a, LG: b", [("1", "GTR+F+G4", first), ("b", "LG", rest)]),
        ("charset 1-x = 1-5; charpartition p = JC: 1-x", [("1-x", "JC", first)]),
    ):
        assert summarise(read_scheme(write(f"#NEXUS begin sets; {sets} {partition}; end;"))) == expected


@pytest.mark.parametrize("source", ["x.phy", "elsewhere/x.phy", "x.phy.gz"])
def test_columns_of_a_file_are_those_of_the_alignment(write, source):
    rows = tuple(row.encode() for row in ("ACGT", "AGGT", "TCGA", "TGGA"))
    given = Sequences(("a", "b", "c", "d"), rows, source, DNA)
    sets = "charset a = data/x.phy: 1-2; charset b = x.phy: 3-.;"
    scheme = read_scheme(write(f"#NEXUS begin sets; {sets} end;"))
    assert [part.ranges for part in cut_alignment(given, scheme).parts] == ["1-2", "3-4"]
    with refused("partition 'a': found columns of 'data/x.phy', expected columns of the"):
        cut_alignment(Sequences(given.names, rows, "y.phy", DNA), scheme)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("JC, a = 1-10\nK80 b = 11-20", "line 2: found 'K80 b = 11-20', expected MODEL, NAME = SITES"),
        ("JC, a = 1-10\nJC, a = 11-20", "line 2: found part 'a' again, expected different names"),
        ("JC, a = 1-10\nXY, b = 11-20", "line 2: partition 'b': model 'XY': 'XY' at character 1: unknown model"),
        ("JC, a = 1-10\nJC, b = 11-x", "line 2: partition 'b': found '-x', expected columns such as 1-100\\3"),
        ("JC, a = 1-10\\0", "line 1: partition 'a': found '1-10\\\\0', expected columns such as"),
        (
            "JC, a = 1-10\nJC, = 11-20",
            "line 2: found '' as a partition's name, expected one without '=' and line breaks",
        ),
        ("#NEXUS begin sets; charset 'a=b' = 1-10; end;", "line 1: found 'a=b' as a partition's name"),
        ("#NEXUS begin sets; charset 'a\nb' = 1-10; end;", "line 1: found 'a\\nb' as a partition's name"),
        (
            "#NEXUS begin sets;\ncharset a = 1-10;\ncharset a = 11-20; end;",
            "line 3: found charset 'a' again, expected different names (",
        ),
        ("#NEXUS begin sets; charset a = 1-9; charpartition p = ; end;", "line 1: found '', expected MODEL: CHARSET"),
        (
            "#NEXUS begin sets; charset a = 1-9; charset b = 10; partition p = 3: a, b; end;",
            "line 1: found 2 charsets in a partition, expected 3, as it announces",
        ),
        ("JC, a = x.phy: CODON7, 1-10", "line 1: partition 'a': found data of type 'CODON7', expected DNA, AA"),
        ("JC, a = x.phy: CODON2, 1-10", "line 1: partition 'a': found a DNA model, 'JC', for codon2 data"),
        ("LG, a = DNA, 1-10", "line 1: partition 'a': found a protein model, 'LG', for DNA data"),
        (
            "#NEXUS begin sets; charset a = x.phy: AA, 1-9; charpartition p = JC: a; end;",
            "line 1: partition 'a': found a DNA model, 'JC', for protein data",
        ),
        (
            "MULTI99_MK, a = 1-10",
            "partition 'a': model 'MULTI99_MK': 'MULTI99_MK' at character 1: expected 2 to 64 states",
        ),
        ("JC, a = x.phy: MORPH, 1-10", "partition 'a': found a DNA model, 'JC', for multistate data"),
        ("AUTO, a = 1-10\nJC, b = 11-20", "line 1: partition 'a': model 'AUTO'"),
        ("#NEXUS begin sets; charset a = 1-10; charpartition p = JC: b; end;", "found charset 'b', expected one of"),
        ("#NEXUS begin sets; charset a = 1-10; charpartition p = JC a; end;", "found 'JC a', expected MODEL: CHARSET"),
        (
            "#NEXUS begin sets; charset a 1-10; end;",
            "line 1: found charset without a name and a final semicolon, expected charset NAME = ... ;",
        ),
        ("#NEXUS begin sets; end;", "found no charset, expected a partition"),
        (
            "#NEXUS begin sets; charset a=1; charpartition p = JC: a;\ncharpartition q = JC: a; end;",
            "found 2 partition commands (lines 1, 2), expected one, or 'set partition = NAME;' with the name of",
        ),
        # columns that an alignment of 20 does not have, or that are there twice
        ("JC, a = 1-10\nJC, b = 10-20", "line 2: partition 'b': column 10 is already in partition 'a'"),
        ("JC, a = 1-10, 4", "line 1: partition 'a': column 4 is already in partition 'a'"),
        (
            "JC, a = 1-21",
            "line 1: partition 'a': found columns 1-21, expected columns within 1-20, the columns of x.phy",
        ),
        ("JC, a = 0-3", "found columns 0-3, expected columns within 1-20"),
        ("JC, a = 9-3", "found columns 9-3, expected columns within 1-20"),
        ("JC, a = 1-20\nJC, b =", "line 2: partition 'b': found no columns, expected at least one"),
        ("#NEXUS begin sets; charset a = Remainder; charset b = ALL; end;", "line 1: partition 'a': found no columns"),
    ],
)
def test_errors_name_line_and_part(write, text, message):
    path = write(text + "\n")
    with refused(message, f"{path}: "):
        assign_sites(read_scheme(path), 20, "x.phy")


def sequences(*rows):
    return Sequences(tuple(f"t{k}" for k in range(len(rows))), tuple(row.encode() for row in rows), "x.fa", None)


MIXED = sequences("ACGTLIVE", "ACGALIVE", "AC--LIWQ", "TCGTLIVQ", "ACGTLIVE")


def test_mixed_data():
    data = cut_alignment(MIXED, read_scheme("JC, dna = 1-4\nLG, aa = 5-."))
    assert [part.alignment.states.name for part in data.parts] == ["DNA", "protein"]
    assert [part.ranges for part in data.parts] == ["1-4", "5-8"]
    assert data.warnings == ("x.fa: 1 group of identical sequences: ('t0', 't4')",)
    told = cut_alignment(MIXED, (PartSpec(None, "a", (SiteRange(1, 3),)), PartSpec(None, "b", (SiteRange(5, None),))))
    assert [part.alignment.states.name for part in told.parts] == ["DNA", "protein"]
    assert "x.fa: 1 column is in no partition and left out, first column 4" in told.warnings


def test_letters_do_not_overrule_what_is_said(write):
    """A part of ambiguous bases looks like proteins."""
    rows = {"a": "ACGTRYKM", "b": "ACGARYKM", "c": "ACGTSWKM", "d": "TCGTRYKC"}
    text = "\n".join(f"{name} {row}" for name, row in rows.items())
    sets = "begin sets; charset x = 1-4; charset y = 5-8; end;"
    data = f"begin data; dimensions ntax=4 nchar=8; format datatype=dna; matrix\n{text};\nend;"
    path = write(f"#NEXUS {data} {sets}", "x.nex")
    scheme = read_scheme(path)
    assert [part.states.name for part in cut_alignment(read_alignment(path), scheme).alignments] == ["DNA", "DNA"]
    fasta = write("".join(f">{name}\n{row}\n" for name, row in rows.items()), "x.fa")
    for states, names in ((None, ["DNA", "protein"]), (DNA, ["DNA", "DNA"]), (PROTEIN, ["protein", "protein"])):
        data = cut_alignment(read_alignment(fasta, states), scheme)
        assert [part.states.name for part in data.alignments] == names


def test_data_of_another_kind():
    with refused("(part 'b')", "x.fa: taxon 't0', site 5: found 'L', expected DNA, "):
        cut_alignment(MIXED, read_scheme("JC, a = 1-4\nJC, b = 5-8"))
    doubtful = cut_alignment(MIXED, read_scheme("LG, a = 1-4\nLG, b = 5-8")).warnings
    assert "the partition given: line 1: partition 'a': found letters that look like DNA under model 'LG'" in doubtful


def test_a_part_without_data():
    data = cut_alignment(sequences("AC--", "AG-N", "TC??", "TG-."), read_scheme("JC, a = 1-2\nJC, b = 3-4"))
    assert "the partition given: line 2: partition 'b': found no data (only gaps)" in data.warnings
    assert sum("partition " in line for line in data.warnings) == 1


def test_morphology_beside_dna(shared):
    """A file of MrBayes: its own charsets; sets of states are one column, such as {01} of Ibalia in column 48."""
    path = str(shared / "data/cynmix.nex")
    given = read_alignment(path)
    assert (given.n_taxa, given.n_sites) == (32, 3246)
    scheme = read_scheme(path)
    assert [spec.name for spec in scheme] == ["morphology", "COI", "EF1a", "LWRh", "28S"]
    parts = cut_alignment(given, scheme).parts
    assert [(part.alignment.states.name, part.alignment.states.n_states) for part in parts] == [
        ("multistate", 8), *[("DNA", 4)] * 4
    ]  # fmt: skip
    column = parts[0].sites.tolist().index(47)
    block = parts[0].alignment
    code = block.codes[block.names.index("Ibalia"), column]
    assert block.states.state_sets[code].tolist() == [True, True] + [False] * 6
    data = cut_alignment(given, scheme[1:])
    assert [len(part.sites) for part in data.parts] == [1078, 367, 481, 1154]
    assert data.warnings[0].endswith("166 columns are in no partition and left out, first column 1")


def test_a_part_of_two_states_may_be_binary_data():
    given = sequences("ACAGRYAC", "ACAGRYCA", "CACTNYCC", "CACTRTA-", "AAAGRCAA")
    doubt = "are they binary data? Those are written with 0 and 1; these are analysed as DNA"
    binary = f"only the states A and C occur; {doubt}"
    warnings = cut_alignment(given, read_scheme("JC, a = 1-2\nJC, b = 3-4\nJC, c = 5-6\nJC, d = 7-8")).warnings
    where = "the partition given: line"
    assert [line for line in warnings if "binary" in line] == [
        f"{where} 1: partition 'a': {binary}", f"{where} 4: partition 'd': {binary}"
    ]  # fmt: skip
    whole = cut_alignment(sequences("ACAA", "ACCC", "CACA", "CAAA"), (PartSpec(None),)).warnings
    assert whole == (f"x.fa: {binary}",)


@pytest.mark.parametrize("rows", [("--", "??", "NN", "-X"), ("-A", "-A", "?C", "?C")])
def test_no_data_at_all(rows):
    with refused("", "x.fa: found nothing but gaps and undetermined characters, expected DNA"):
        cut_alignment(sequences(*rows), read_scheme("JC, a = 1" + ("-2" if rows[0] == "--" else "")))


def test_files_that_a_file_names_may_be_beside_it(tmp_path, monkeypatch):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "s.str").write_text("((..))")
    (folder / "models.nex").write_text("#NEXUS\nbegin models;\nmodel mine = HKY{3}+FE;\nend;\n")
    (folder / "s.part").write_text("S16+FE, stems = pairs{s.str}\nmine{models.nex}, loops = unpaired{s.str}\n")
    monkeypatch.chdir(tmp_path)
    stems, loops = read_scheme("folder/s.part")
    assert list(map(str, stems.ranges)) == ["1:6", "2:5"]
    assert loops.model.name == "HKY"
    with refused("", "s.str: cannot read the file"):
        read_scheme("S16+FE, stems = pairs{s.str}")
