"""`plltool check`: facts and warnings, or what is wrong with the format."""

import json

import pytest
from small_alignments import write_fasta

from plltool import read_alignment


def test_facts(plltool, small):
    small.write_text(small.read_text() + ">twin\n" + small.read_text().splitlines()[1] + "\n")
    result = plltool("check", small, "--device", "numpy", "--json", status=0)
    facts = json.loads(result.stdout)
    assert (facts["n_taxa"], facts["n_duplicates"], facts["n_sites"]) == (7, 1, 300)
    assert abs(sum(facts["frequencies"].values()) - 1) < 1e-12
    assert any("identical sequences" in warning for warning in facts["warnings"])
    patterns = facts["n_patterns"]
    slots = 3 * (6 - 2) + 32
    least = slots * patterns * 16 * 8  # CLAs of the 6 that differ, GTR+G4, double
    assert least < facts["device_bytes"] < 1.5 * least


def test_text(plltool, small):
    result = plltool("check", small, status=0)
    for part in ("taxa: 6", "sites: 300", "patterns: ", "gaps: ", "base frequencies: A 0.", "MiB"):
        assert part in result.stdout


def test_memory(plltool, small):
    """Less than a search takes: some patterns at a time; less than the least: one line."""
    found = json.loads(plltool("check", small, "--device", "numpy", "--memory", "200K", "--json").stdout)
    assert not found["suffices"]
    assert 200 * 1024 < found["device_bytes"] + 50_000 < found["full_bytes"]
    assert "some patterns at a time" in plltool("check", small, "--device", "numpy", "--memory", "200K").stdout
    too_little = plltool("check", small, "--device", "numpy", "--memory", "1K", status=1)
    words = too_little.stderr.split()
    assert " ".join(words[:8]) == "plltool: error: memory: found 1024 bytes, expected at"
    assert too_little.stderr.endswith("K: 6 taxa need that for conditional likelihoods\n")
    enough = words[words.index("least") + 1].removesuffix(":")
    assert plltool("check", small, "--device", "numpy", "--memory", enough).exit_code == 0
    too_little = plltool("check", small, "--device", "numpy", "--memory", f"{int(enough[:-1]) - 1}K", status=1)
    assert too_little.stderr.count("\n") == 1


def test_names_of_devices_in_any_case(plltool, small):
    """As every command that computes takes them."""
    found = [plltool("check", small, "--device", name, "--json").stdout for name in ("numpy", "NumPy ")]
    assert json.loads(found[0])["device"] == json.loads(found[1])["device"] == "numpy"
    assert plltool("check", small, "--device", "AUTO").exit_code == 0


def test_a_broken_file(plltool, small):
    small.write_text(">a\nACGT\n>b\nAC\n")
    result = plltool("check", small, status=1)
    assert result.stderr.startswith(f"plltool: error: {small}: ")
    assert result.stderr.count("\n") == 1


def test_kind_of_data(plltool, small):
    """Told from the letters unless --data-type says; a model of other data is refused in one line."""
    assert "(DNA)" in plltool("check", small).stdout
    told = plltool("check", small, "--data-type", "protein", "--device", "numpy")
    assert "(protein)" in told.stdout
    assert "amino acid frequencies:\n  A 0." in told.stdout  # 20 are a table
    assert max(map(len, told.stdout.splitlines())) < 120
    assert "under LG+G4" in told.stdout
    plltool("check", small, "--model", "LG", status=1, told="found DNA data, expected protein for model 'LG'")


@pytest.mark.parametrize(
    ("word", "data"),
    [("AA", "protein"), ("prot", "protein"), ("DNA", "DNA"), ("nt", "DNA"), ("Nucleotide", "DNA"),
     ("MORPH", "multistate"), ("Binary", "multistate"), ("CODON2", "codon2"), ("AUTO", "DNA")],
)  # fmt: skip
def test_names_of_other_programs(plltool, small, word, data):
    rows = ["ACTCGAGTCTACGCG", "ACTCGAGTCTACGCA", "ACCCGAGTCTACGCG", "ACTCGAGTTTACGCA"]
    if data == "multistate":
        rows = ["011010", "010011", "110010", "010010"]
    write_fasta(small, dict(zip("abcd", rows, strict=True)))
    result = plltool("check", small, "--data-type", word, "--device", "numpy", status=0)
    assert f"({data})" in result.stdout
    assert read_alignment(small, word).states.name == data or word == "AUTO"


def test_symmetry_says_which_p_value_it_prints(plltool, tmp_path):
    """Of two pairs that differ at 20 sites each way only the last, of a and c, is lopsided: Bowker's chi is 20."""
    a, c = "A" * 40 + "ACGT" * 5, "G" * 20 + "A" * 20 + "ACGT" * 5
    path = write_fasta(tmp_path / "x.fa", {"a": a, "b": a, "c": c})
    lines = plltool("check", path, "--device", "numpy").stdout.splitlines()
    (line,) = [line for line in lines if line.startswith("symmetry rejected")]
    assert (
        line == "symmetry rejected for 2 of 2 pairs of sequences (p < 0.05); p = 7.744e-06 for the most divergent pair"
    )
    same = write_fasta(tmp_path / "same.fa", dict.fromkeys("abc", "ACGTACGT"))  # no pair can be tested
    assert "rejected for" not in plltool("check", same, "--device", "numpy").stdout
