"""Genotypes in VCF files."""

import pytest
from refusals import refused

from plltool.errors import InputError
from plltool.io.alignment_reader import looks_like_alignment, read_alignment
from plltool.run.evaluation import evaluate
from plltool.run.inputs import resolve_inputs

HEADER = "##fileformat=VCFv4.2\n##contig=<ID=1>\n"
COLUMNS = ["#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT", "a", "b", "c", "d"]
RECORDS = [
    ["A", "C", "GT", "0/0", "0/1", "1/0", "1/1"],
    ["g", "T,a", "GT:DP", "0|1:3", "1|0:5", "2/1:7", "2|0"],  # three alleles
    ["C", "CT", "GT", "0/1", "0/0", "0/0", "1/1"],  # an insertion
    ["T", ".", "GT", "0/0", "./.", ".|.", "."],
    ["A", "*,G", "GT", "0/1", "0/0", "0/0", "1/1"],  # a deletion that spans the base
    ["T", "C", "GT:PL", "0|1:1,2,3", "./1", "1|.", "1|0"],
]
ROWS = {"a": "A6TL", "b": "MP??", "c": "MW??", "d": "C2?5"}  # G|T is 6, T|G P, A|G 2, T|C L, C|T 5
TREE = "((a:0.1,b:0.2):0.3,c:0.1,d:0.2);"


def text_of(records=RECORDS, columns=COLUMNS, header=HEADER):
    lines = [["1", str(k), ".", *fields[:2], "50", "q10", "DP=3", *fields[2:]] for k, fields in enumerate(records, 1)]
    return header + "".join("\t".join(line) + "\n" for line in [columns, *lines])


def test_genotypes_of_samples(write):
    path = write(text_of())
    found = read_alignment(path)
    assert {name: row.decode() for name, row in zip(found.names, found.rows, strict=True)} == ROWS
    assert found.warnings == (f"{path}: 2 records that are not SNPs left out, first line 6",)
    assert looks_like_alignment(path)


@pytest.mark.parametrize("model", ["GT10+FE", "GT16+FE"])
def test_lnl_is_that_of_the_letters(write, model):
    found = [evaluate(data, TREE, model, fixed=True, device="numpy").lnl for data in (write(text_of()), ROWS)]
    assert found[0] == found[1]


def test_genotypes_with_one_allele_are_dna(write):
    """As snp-sites writes bacteria: N and gaps are *. The lnL is that of the letters."""
    records = [
        ["A", "*,C", "GT", "0", "1", "2", "2"],
        ["G", "T", "GT:DP", "0:3", "1:5", ".:7", "1"],
        ["T", "*", "GT", "0", "0", "1", "0"],
        ["T", "TA", "GT", "0", "1", "1", "0"],
    ]
    path, rows = write(text_of(records)), {"a": "AGT", "b": "?TT", "c": "C??", "d": "CTT"}
    found = read_alignment(path)
    assert {name: row.decode() for name, row in zip(found.names, found.rows, strict=True)} == rows
    assert found.warnings == (f"{path}: 1 record that is not a SNP left out, first line 7",)
    lnls = [evaluate(data, TREE, "HKY{3}+FE", fixed=True, device="numpy").lnl for data in (path, rows)]
    assert lnls[0] == lnls[1]


def test_default_model(write):
    data, models = resolve_inputs(write(text_of()), None)
    assert str(models[0].spec) == "GT10+FO"
    assert any("2 records that are not SNPs" in warning for warning in data.warnings)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"records": [["A", "C", "GT", "0/0", "0/2", "0/1", "1/1"]]},
            "line 4: sample 'b': found the genotype '0/2', expected",
        ),
        ({"records": [["A", "C", "GT", "0/1", "0", "0/1", "1/1"]]}, "sample 'b': found the genotype '0', expected two"),
        ({"records": [["A", "C", "GT", ".", "0", "0/1", "1/1"]]}, "sample 'c': found the genotype '0/1', expected one"),
        ({"records": [["A", "C", "GT", "0", "2", "0", "1"]]}, "found the genotype '2', expected alleles from 0 to 1"),
        ({"records": [["A", "C", "GT", "0/0", "0/1", "0/1/1", "1/1"]]}, "sample 'c': found the genotype '0/1/1'"),
        ({"records": [["A", "C", "GT", "0/0", "0/1", "0/1"]]}, "line 4: found 12 columns, expected 13 as above"),
        (
            {"records": [["A", "C", "PL:GT", "0/0", "0/1", "0/1", "1"]]},
            "found FORMAT 'PL:GT', expected GT as its first",
        ),
        ({"records": RECORDS[2:3]}, "found no SNP, other records: 1, expected genotypes of at least one SNP"),
        ({"records": []}, "found no SNP, other records: 0"),
        ({"columns": COLUMNS[:8], "records": []}, "line 3: found '#CHROM"),
        (
            {"columns": COLUMNS[:9], "records": []},
            "expected the columns #CHROM POS ID REF ALT QUAL FILTER INFO FORMAT and",
        ),
        ({"columns": [*COLUMNS[:-1], "a"]}, "two taxa have the name 'a'"),
    ],
)
def test_errors(write, changes, message):
    path = write(text_of(**changes))
    with refused(message, path):
        read_alignment(path)


def test_other_models_and_data(write):
    with pytest.raises(InputError, match=r"found genotype data, expected DNA for model 'GTR\+FO'$"):
        resolve_inputs(write(text_of()), "GTR")
    with refused("found a VCF file with genotypes, expected DNA data"):
        read_alignment(write(text_of()), "dna")
    with refused("found no line that begins with #CHROM"):
        read_alignment(write(HEADER))
