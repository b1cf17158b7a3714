import gzip
from pathlib import Path

import pytest
from helpers import read_states
from refusals import refused

from plltool.alignment.facts import gap_share
from plltool.alignment.patterns import compress
from plltool.alignment.states import DNA, PROTEIN

FASTA = b">A\nAC\n>B\nAG\n>C\nAT\n>D\nAA\n"
PHYLIP = b"4 2\nA AC\nB AG\nC AT\nD AA\n"
NEXUS = (
    b"#NEXUS\nbegin data;\ndimensions ntax=4 nchar=2;\nformat datatype=dna;\nmatrix\nA AC\nB AG\nC AT\nD AA\n;\nend;\n"
)

# taxa, sites and patterns as RAxML counts them
REFERENCE_SIZES = {
    "dna59.phy.gz": (59, 6951, 3230),
    "dna101.phy": (101, 1858, 1630),
    "dna125.phy.gz": (125, 29149, 19436),
    "dna150.phy": (150, 1269, 1130),
    "dna218.phy": (218, 2294, 1846),
    "dna354.phy": (354, 460, 348),
    "dna500.phy": (500, 1398, 1193),
    "dna1288.phy.gz": (1288, 1200, 1132),
    "sim15_262144.phy.gz": (15, 262144, 262144),
}


@pytest.mark.parametrize("content", [FASTA, PHYLIP, NEXUS], ids=["fasta", "phylip", "nexus"])
@pytest.mark.parametrize(
    "change",
    [
        lambda text: text,
        gzip.compress,
        lambda text: text.replace(b"\n", b"\r\n"),
        lambda text: text.replace(b"\n", b"\r"),
        lambda text: b"\xef\xbb\xbf" + text,
        lambda text: b"\n \t\n" + text,
        lambda text: text.rstrip(),
        lambda text: gzip.compress(b"\xef\xbb\xbf\r\n" + text.replace(b"\n", b"\r\n")),
    ],
    ids=["plain", "gzip", "crlf", "cr", "bom", "leading_blanks", "no_last_line_end", "all"],
)
def test_the_content_decides_how_to_read(write, content, change):
    alignment = read_states(write(change(content), name="x.exe"))
    assert alignment.names == ("A", "B", "C", "D")
    assert alignment.codes.tolist() == [[1, 2], [1, 4], [1, 8], [1, 1]]


def test_names_that_are_no_utf8_survive(write):
    alignment = read_states(write(FASTA.replace(b">A", b">\xe4 \xff")))
    assert alignment.names[0].encode("utf-8", "surrogateescape") == b"\xe4 \xff"


def test_the_source_is_the_path(write):
    path = write(FASTA)
    assert read_states(path).source == read_states(Path(path)).source == path


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "found an empty file, expected '>' and a name (FASTA), '#NEXUS', '##fileformat=VCF', the numbers of"),
        (b" \n\t\n", "found an empty file"),
        (gzip.compress(b"", mtime=0), "found an empty file"),
        (b"((A,B),C);\n", "found '((A,B),C);' at the start of the file, expected '>' and a name (FASTA)"),
        (b"#mega\n" * 9, "found '#mega' at the start of the file"),
        (b">P1;A\ntitle\nMKL*\n>P1;B\ntitle\nMKV*\n", "found the format PIR (NBRF), expected '>' and a name"),
        (b"9" * 5000 + b" 4\n", f"found '{'9' * 40}' at the start of the file"),
        (b">A\n\0", "found binary data (a NUL byte at offset 3)"),
        (b"\x89PNG\x1a", "at the start of the file"),
        (gzip.compress(FASTA, mtime=0) + b"junk", "found a broken or incomplete gzip file"),
        (b"\x1f\x8bACGT", "found a broken or incomplete gzip file"),
        (b"PK\x03\x04\x14", "found a workbook or an archive (zip), expected a text"),
    ],
)
def test_files_that_hold_no_alignment(write, content, message):
    path = write(content)
    with refused(message, f"{path}: "):
        read_states(path)


@pytest.mark.parametrize(
    ("name", "reason"), [("", "Is a directory"), ("missing", "No such file or directory"), ("x\0y", "")]
)
def test_paths_that_cannot_be_read(tmp_path, name, reason):
    with refused(f": cannot read the file: {reason}", tmp_path / name):
        read_states(tmp_path / name)


@pytest.mark.parametrize("name", REFERENCE_SIZES)
def test_reference_sets_have_the_published_sizes(shared, name):
    alignment = read_states(shared / "data" / name)
    assert (alignment.n_taxa, alignment.n_sites, compress(alignment).n_patterns) == REFERENCE_SIZES[name]


def test_gap_share_of_a_reference_set(shared):
    assert gap_share(read_states(shared / "data/dna59.phy.gz")) == pytest.approx(0.44, abs=0.005)  # printed digits


def test_an_empty_column_is_reported(shared):
    path = shared / "data/dna101.phy"
    assert read_states(path).warnings == (f"{path}: 1 column without data (only gaps)",)


def test_match_characters_of_paml(shared):
    alignment = read_states(shared / "data/abglobin.nuc")
    assert alignment.names == ("human", "goat-cow", "rabbit", "rat", "marsupial")
    # the file starts GTG CTG TCT CCT, ... ... ... G.C for goat-cow
    letters = ["".join(alignment.states.symbols[code.bit_length() - 1] for code in row[:12].tolist())
               for row in alignment.codes[:2]]  # fmt: skip
    assert letters == ["GTGCTGTCTCCT", "GTGCTGTCTGCC"]


@pytest.mark.parametrize("name", ["primates", "avian_ovomucoids"])
def test_nexus_and_phylip_of_one_set_agree(shared, name):
    nexus, phylip = (read_states(shared / "data" / f"{name}.{suffix}") for suffix in ("nex", "phy"))
    assert nexus.names == phylip.names
    assert (nexus.codes == phylip.codes).all()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cynmix.nex", "taxon 'Ibalia' (line 9), site 1: found '0', expected DNA"),  # morphology first
        ("codon.nex", "found no data or characters block, expected one (blocks found: 'mrbayes')"),
        ("sim15_true.nwk", "at the start of the file"),
        ("README.md", "found '# Alignments and figures' at the start of the file"),
    ],
)
def test_files_of_other_kinds_are_refused(shared, name, message):
    with refused(message):
        read_states(shared / "data" / name)


@pytest.mark.parametrize(
    ("name", "states", "shape", "warnings"),
    [
        ("avian_ovomucoids.nex", PROTEIN, (89, 88), 0),
        ("avian_ovomucoids.phy", PROTEIN, (89, 88), 0),
        ("aa140.phy", PROTEIN, (140, 1104), 1),
        ("lysozymeSmall.nuc", DNA, (7, 390), 0),
        ("abglobin.nuc", DNA, (5, 855), 0),
        ("replicase.nex", DNA, (9, 720), 0),
    ],
)
def test_proteins_are_told_from_dna(shared, name, states, shape, warnings):
    alignment = read_states(shared / "data" / name)
    assert alignment.states is states
    assert alignment.codes.shape == shape
    assert len(alignment.warnings) == warnings


def test_the_kind_of_data_may_be_told(write):
    path = write(b">A\nACGT\n>B\nACGA\n>C\nACGC\n>D\nAC-T\n")
    assert read_states(path).states is DNA
    proteins = read_states(path, PROTEIN)
    assert proteins.states is PROTEIN
    assert proteins.codes.shape == (4, 4)
    proteins = write(b">A\nMKLV\n>B\nMKIV\n>C\nMKLF\n>D\nMK-F\n", name="y.fa")
    assert read_states(proteins).states is PROTEIN
    with refused("site 3: found 'L', expected DNA"):
        read_states(proteins, DNA)
