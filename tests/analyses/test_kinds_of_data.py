"""Alignments whose kind is hard to tell: gaps, few letters, several kinds side by side. All are simulated."""

import re

import numpy as np
import pytest

from plltool import check, evaluate, read_alignment
from plltool.errors import InputError

AMINO_ACIDS = "ARNDCQEGHILKMFPSTWYV"
TREE = "(t0:0.1,t1:0.1,(t2:0.1,t3:0.1):0.1);"


def draw(rng, letters, n_taxa, n_sites, changed=0.2):
    """Rows of letters that mostly agree with the first one."""
    first = rng.choice(list(letters), n_sites)
    rows = np.where(rng.random((n_taxa, n_sites)) < changed, rng.choice(list(letters), (n_taxa, n_sites)), first)
    return ["".join(row) for row in rows]


def write(path, rows):
    path.write_text("".join(f">t{number}\n{row}\n" for number, row in enumerate(rows)))
    return path


def kind(path, model=None):
    return check(path, model, device="numpy")["data"]


@pytest.fixture
def rng():
    return np.random.default_rng(20)


@pytest.mark.parametrize("n_dna", [3, 12])
def test_proteins_beside_a_few_whole_genes(rng, tmp_path, n_dna):
    """Fragments of proteins in many sequences, DNA by mistake in a few: most letters are bases, most sequences not."""
    rows = draw(rng, "ACGT", n_dna, 3000)
    for row in draw(rng, AMINO_ACIDS, 40, 60):
        at = int(rng.integers(0, 2940))
        rows.append("-" * at + row + "-" * (2940 - at))
    path = write(tmp_path / "x.fa", rows)
    letters = "".join(rows).replace("-", "")
    assert sum(map(letters.count, "ACGT")) > len(letters) / 2
    assert kind(path) == kind(path, "LG+G4") == "protein"
    assert any(
        "at least half of the letters are A, C, G or T" in line for line in check(path, device="numpy")["warnings"]
    )


def test_proteins_of_few_amino_acids(rng, tmp_path):
    """As in silk: three of four letters would be bases, but the others are no letters of DNA."""
    rows = draw(rng, "GAGAGASGAGTL", 12, 400)
    path = write(tmp_path / "x.fa", rows)
    assert sum(map("".join(rows).count, "ACGT")) > 0.6 * 4800
    assert kind(path) == "protein"


def test_a_typing_error_does_not_make_dna_a_protein(rng, tmp_path):
    rows = draw(rng, "ACGT", 8, 300)
    rows[3] = rows[3][:100] + "E" + rows[3][101:]
    with pytest.raises(InputError, match=r"taxon 't3' .*, site 101: found 'E', expected DNA"):
        kind(write(tmp_path / "x.fa", rows))


def test_genes_and_proteins_are_what_they_are(rng, tmp_path):
    """Whatever share is gaps, N or X."""
    for number in range(40):
        letters, expected = (("ACGT", "DNA"), (AMINO_ACIDS, "protein"))[number % 2]
        table = np.array([list(row) for row in draw(rng, letters, 10, 200)])
        table[rng.random(table.shape) < rng.uniform(0, 0.95)] = rng.choice(list("-?XN"))
        assert kind(write(tmp_path / "x.fa", ["".join(row) for row in table])) == expected


class TestTheModelSays:
    """What the letters show counts less, as long as they fit the model."""

    def test_ambiguous_bases(self, tmp_path):
        path = write(tmp_path / "x.fa", ["RYK", "YYM", "RRK", "WSM"])
        assert kind(path) == "protein"
        assert kind(path, "JC") == "DNA"
        assert evaluate(path, TREE, "JC", device="numpy").lnl < 0

    def test_proteins_that_look_like_dna(self, tmp_path):
        path = write(tmp_path / "x.fa", ["GACTGACAGTACGTAGCATE", *["GACTGACAGTACGTAGCATG"] * 3])
        with pytest.raises(InputError, match=r"found .E., expected DNA, .*; it is an amino acid: --data-type protein"):
            kind(path)
        assert kind(path, "LG") == "protein"

    def test_not_where_all_letters_are_bases(self, rng, tmp_path):
        path = write(tmp_path / "x.fa", draw(rng, "ACGT", 4, 50))
        with pytest.raises(InputError, match=r"found DNA data, expected protein for model 'LG' \(--data-type says"):
            kind(path, "LG")
        assert check(read_alignment(path, "AA"), "LG", device="numpy")["data"] == "protein"

    def test_not_where_letters_do_not_fit(self, rng, tmp_path):
        path = write(tmp_path / "x.fa", draw(rng, AMINO_ACIDS, 4, 50))
        with pytest.raises(InputError, match="found protein data, expected DNA for model 'JC'"):
            kind(path, "JC")


@pytest.mark.parametrize(("letters", "data"), [("ACGT", "DNA"), (AMINO_ACIDS, "protein")])
@pytest.mark.parametrize("columns", [[*range(50, 60)], [0, 1, 2, 30, *range(40, 45)], [*range(10, 60)]])
def test_digits_beside_letters(rng, tmp_path, letters, data, columns):
    """The message has the lines of a partition file, which works."""
    table = np.array([list(row) for row in draw(rng, letters, 4, 60)])
    table[:, columns] = rng.choice(list("01"), (4, len(columns)))
    table[1, columns[0]] = "?"
    path = write(tmp_path / "x.fa", ["".join(row) for row in table])
    with pytest.raises(InputError, match=rf"found digits in columns .* and letters of {data} in columns") as caught:
        evaluate(path, TREE, device="numpy")
    assert "\n" not in str(caught.value)
    partitions = tmp_path / "x.part"
    partitions.write_text("\n".join(re.findall('"(.*?)"', str(caught.value))) + "\n")
    result = evaluate(path, TREE, str(partitions), device="numpy")
    assert [part.alignment.states.name for part in result.data.parts] == ["multistate", data]
    digits, others = (part.columns for part in result.data.parts)
    assert sorted(digits.ravel()) == columns
    assert len(others) == 60 - len(columns)


def test_states_beyond_nine_are_not_letters_of_dna(tmp_path):
    """A character of morphology with the states A to C only."""
    assert kind(write(tmp_path / "x.fa", ["01A", "12B", "01C", "10A"])) == "multistate"


@pytest.mark.parametrize("declared", ["dna", "protein", "standard"])
def test_what_treebase_has(shared, declared):
    """What its authors declared, but for DNA that they called proteins: no letter is an amino acid only."""
    expected = {"dna": "DNA", "protein": "protein", "standard": "multistate"}[declared]
    files = sorted((shared / "data" / "treebase").glob(f"{declared}-*.gz"))
    if not files:
        pytest.skip("no alignments of TreeBASE in the shared folder")
    for file in files:
        given = read_alignment(file)
        letters = set(b"".join(given.rows).decode().upper())
        assert given.states.name == ("DNA" if declared == "protein" and letters <= set("ACGTN-?") else expected)


def test_heterozygous_bases_are_dna():
    """Most cells may be ambiguous; no protein of so many letters has none but those of DNA."""
    rng = np.random.default_rng(4)
    rows = {f"t{k}": "".join(rng.choice(list("ACGTRYSWKM"), 50, p=[0.025] * 4 + [0.15] * 6)) for k in range(5)}
    assert check(rows)["data"] == "DNA"
