"""CATG files: likelihoods of states in each cell, from the file to the lnL."""

import gzip
import math
from itertools import product

import numpy as np
import pytest
from oracles.likelihood import brute_force, site_likelihood
from oracles.substitution import q_matrix
from refusals import refused

import plltool
from plltool.alignment.alignment import CellLikelihoods
from plltool.io.alignment_reader import join_alignments, read_alignment

NAMES = ["t0", "t1", "t2", "t3"]
TREE = "((t0:0.1,t1:0.2):0.3,t2:0.4,t3:0.5);"
BRANCHES, LENGTHS = [(0, 5), (1, 5), (4, 5), (2, 4), (3, 4)], [0.1, 0.2, 0.3, 0.4, 0.5]
FREQUENCIES = [0.1, 0.2, 0.3, 0.4]
MODEL = "GTR{1/2/0.5/1.5/3/1}+FU{0.1/0.2/0.3/0.4}"
Q = q_matrix([1, 2, 0.5, 1.5, 3, 1], FREQUENCIES)
RTOL = 1e-11  # both double, sums in another order


def text_of(cells, letters=None):
    """A file with these likelihoods (n_sites, n_taxa, n_states)."""
    columns = letters or ["N" * len(NAMES)] * len(cells)
    rows = [[",".join(map(repr, cell)) for cell in column] for column in np.asarray(cells, dtype=float).tolist()]
    lines = ["\t".join([own, *row]) for own, row in zip(columns, rows, strict=True)]
    return "\n".join([f"{len(NAMES)}\t{len(lines)}", "\t".join(NAMES), *lines]) + "\n"


def random_cells(n_sites=30, n_states=4, seed=1):
    """Likelihoods of any size, of which some are 0, and cells that are sets."""
    rng = np.random.default_rng(seed)
    cells = rng.random((n_sites, len(NAMES), n_states)) * (rng.random((n_sites, len(NAMES), n_states)) < 0.8)
    cells[rng.random(cells.shape[:2]) < 0.3] = np.eye(n_states)[0]
    cells[rng.random(cells.shape[:2]) < 0.1] = 1.0
    cells[..., 1] = np.maximum(cells[..., 1], 1e-5)
    return cells


@pytest.mark.parametrize("pinv", [0.0, 0.2])
def test_lnl(write, device, pinv):
    """Of sites by enumeration; the component without change has products of the tips' likelihoods."""
    cells = random_cells()
    model = MODEL + ("+IU{0.2}" if pinv else "")
    found = plltool.evaluate(write(text_of(cells)), TREE, model, fixed=True, site_lnl=True, device=device)
    components = [(1 - pinv, FREQUENCIES, Q / (1 - pinv))] + [(pinv, FREQUENCIES, 0 * Q)] * bool(pinv)
    expected = brute_force(BRANCHES, LENGTHS, cells.tolist(), components)
    np.testing.assert_allclose(found.site_lnl, expected, rtol=RTOL)
    assert found.lnl == pytest.approx(expected.sum(), rel=RTOL)


def test_sets_have_the_bits_of_characters(write, device):
    rng = np.random.default_rng(2)
    masks = 1 << rng.integers(0, 4, (60, 4))
    masks[rng.random(masks.shape) < 0.1] = 5
    masks[rng.random(masks.shape) < 0.1] = 15
    letters = ["".join(".AC.GR..T......N"[mask] for mask in column) for column in masks.tolist()]
    catg = write(text_of(masks[..., None] >> np.arange(4) & 1, letters))
    rows = ["".join(column[k] for column in letters) for k in range(len(NAMES))]
    fasta = write("".join(f">{name}\n{row}\n" for name, row in zip(NAMES, rows, strict=True)), "a.fasta")
    found = [plltool.search(path, "GTR+F+G4", seed=3, device=device) for path in (catg, fasta)]
    assert found[0].lnl == found[1].lnl
    assert found[0].newick == found[1].newick
    assert found[0].model == found[1].model


def test_a_factor_of_a_cell_is_a_constant(write):
    cells = random_cells()
    factors = np.random.default_rng(3).random(cells.shape[:2]) * 0.9 + 0.05
    both = cells, cells * factors[..., None]
    found = [plltool.evaluate(write(text_of(own)), TREE, MODEL, device="numpy").lnl for own in both]
    assert found[1] - found[0] == pytest.approx(np.log(factors).sum(), abs=1e-6)  # where lengths are optimised to


def test_the_order_of_sites_and_taxa_changes_no_bit(write):
    cells = random_cells()
    lines = text_of(cells).splitlines()
    turned = "\n".join([*lines[:2], *lines[:1:-1]])
    others = ["\t".join([words[0], *words[:0:-1]]) for words in (line.split("\t") for line in lines[2:])]
    swapped = "\n".join([lines[0], "\t".join(NAMES[::-1]), *others])
    texts = "\n".join(lines), turned, swapped
    found = [plltool.search(write(text), "HKY+F+G4", seed=1, device="numpy") for text in texts]
    assert len({result.lnl for result in found}) == 1
    assert len({result.newick for result in found}) == 1


def test_the_most_likely_states_are_counted(write):
    """In frequencies, gaps and parsimony; a cell with equal likelihoods says nothing, one with two largest has both."""
    cells = np.array([
        [[0.9, 0.1, 0, 0], [0.8, 0.1, 0, 0], [0.1, 0.6, 0.2, 0], [0, 0.5, 0.2, 0.1]],
        [[0.3, 0.3, 0.1, 0], [0, 0, 0, 1], [0.01, 0.01, 0.01, 0.01], [1, 1, 1, 1]],
    ])  # fmt: skip
    facts = plltool.check(write(text_of(cells)), "JC")
    expected = dict(zip("ACGT", [2.5 / 6, 2.5 / 6, 0, 1 / 6], strict=True))
    assert facts["frequencies"] == pytest.approx(expected, abs=1e-7)  # none is 0
    assert facts["gap_share"] == 2 / 8
    same = plltool.check(write(">t0\nAM\n>t1\nAT\n>t2\nCN\n>t3\nCN\n"), "JC")
    assert facts["frequencies"] == same["frequencies"]


def test_records_tell_likelihoods_apart(write):
    """Which are no characters: other likelihoods with the same codes are other data."""
    cells = random_cells()
    texts = text_of(cells), text_of(cells / 2)
    found = [plltool.evaluate(write(text), TREE, MODEL, fixed=True, device="numpy") for text in texts]
    assert len({own.as_record()["data"]["digest"] for own in found}) == 2


def test_joint_ancestral_states(write):
    """Against all pairs of states of the two inner nodes."""
    cells = random_cells(8)
    found = plltool.ancestral_states(write(text_of(cells)), TREE, MODEL, device="numpy")
    lengths = {
        tuple(sorted(pair)): length for pair, length in zip(found.tree.ends.tolist(), found.tree.lengths, strict=True)
    }
    ends = list(lengths)
    components = [(1.0, FREQUENCIES, Q)]
    for site, column in enumerate(cells.tolist()):
        joint = {
            pair: site_likelihood(
                ends, list(lengths.values()), column, components, dict(zip((4, 5), pair, strict=True))
            )
            for pair in product(range(4), repeat=2)
        }
        best = max(joint, key=joint.get)
        assert found.ancestors[0].joint[:, site].tolist() == list(best)


def test_parts(write):
    """Both have the table of the whole file."""
    cells = random_cells(24)
    parts = write(f"{MODEL}, one = 1-24\\2\nJC, two = 2-24\\2\n", "p.part")
    found = plltool.evaluate(write(text_of(cells)), TREE, parts, brlen="linked", fixed=True, site_lnl=True)
    jc = np.full((4, 4), 1 / 3) - np.eye(4) * 4 / 3
    expected = brute_force(BRANCHES, LENGTHS, cells[::2].tolist(), [(1.0, FREQUENCIES, Q)]).sum()
    expected += brute_force(BRANCHES, LENGTHS, cells[1::2].tolist(), [(1.0, [0.25] * 4, jc)]).sum()
    assert found.lnl == pytest.approx(expected, rel=RTOL)


@pytest.mark.parametrize("model", ["GT10+FE", "GT16+FE"])
def test_genotypes(write, model):
    """Ten likelihoods are of genotypes without phase; a site is a mixture of those with one genotype each."""
    genotypes = "ACGTMRWSYK"

    def lnl(text):
        return plltool.evaluate(write(text), TREE, model, fixed=True, device="numpy").lnl

    likely = np.eye(10)[[[0, 4, 2, 9]]]
    likely[0, 1, [4, 7]] = 0.7, 0.02
    texts = [f">t0\nA\n>t1\n{genotypes[k]}\n>t2\nG\n>t3\nK\n" for k in (4, 7)]
    expected = math.log(0.7 * math.exp(lnl(texts[0])) + 0.02 * math.exp(lnl(texts[1])))
    assert lnl(text_of(likely)) == pytest.approx(expected, rel=RTOL)


def test_binary_data_and_other_numbers_of_states(write):
    """As lexicographers have them: two likelihoods are those of 0 and 1."""
    cells = np.array([[[0.5, 0.25], [1, 0], [0.1, 0.8], [1, 1]]] * 2)
    found = plltool.evaluate(write(text_of(cells)), TREE, "BIN+FE", fixed=True, device="numpy")
    q = np.array([[-1.0, 1.0], [1.0, -1.0]])
    expected = brute_force(BRANCHES, LENGTHS, cells.tolist(), [(1.0, [0.5] * 2, q)]).sum()
    assert found.lnl == pytest.approx(expected, rel=RTOL)
    assert read_alignment(write(text_of(random_cells(3, 7)))).states.n_states == 7
    assert read_alignment(write(text_of(random_cells(3, 4))), "morph").states.name == "multistate"


def test_more_vectors_than_two_bytes_can_number(write):
    rng = np.random.default_rng(1)
    cells = rng.random((16_500, 4, 4))
    data = read_alignment(write(gzip.compress(text_of(cells).encode()), "a.catg.gz"))
    assert len(data.likelihoods.vectors) == 66_000
    found = plltool.evaluate(data, TREE, MODEL, fixed=True, device="numpy", site_lnl=True)
    some = [0, 7000, 16_499]
    expected = brute_force(BRANCHES, LENGTHS, cells[some].tolist(), [(1.0, FREQUENCIES, Q)])
    np.testing.assert_allclose(np.asarray(found.site_lnl)[some], expected, rtol=RTOL)


GOOD = "4 2\nt0 t1 t2 t3\nACGT 1,0,0,0 0,1,0,0 0,0,1,0 0,0,0,1\nAAAA 1,0,0,0 1,0,0,0 1,0,0,0 0.5,0,0,0.25\n"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("0.25", "0.x"), "line 4, taxon 't3': found '0.x', expected a likelihood, from 0 to 1"),
        (("0.25", "1_0"), "line 4, taxon 't3': found '1_0', expected a likelihood"),
        (("1,0,0,0 0,1", "nan,0,0,0 0,1"), "line 3, taxon 't0': found 'nan', expected a likelihood"),
        (("4 2", "2 4"), "line 2: found 4 names of taxa, line 1 announces 2, and the sites in place of the taxa"),
        (("0.25", "-0.5"), "line 4, taxon 't3': found '-0.5', expected a likelihood"),
        (("0.25", "1.5"), "line 4, taxon 't3': found '1.5', expected a likelihood"),
        (("0.25", "nan"), "line 4, taxon 't3': found 'nan', expected a likelihood"),
        (("0.25", ""), "line 4, taxon 't3': found '', expected a likelihood"),
        ((",0.25", ""), "line 4, taxon 't3': found 3 likelihoods, expected 4 as in the first cell"),
        (("0.5,0,0,0.25", "0,0,0,0"), "line 4, taxon 't3': found likelihoods of 0 or less, expected one of 1e-09 or"),
        (("0.5,0,0,0.25", "1e-12,0,0,0"), "line 4, taxon 't3': found likelihoods of 1e-12 or less"),
        ((" 0.5,0,0,0.25", ""), "line 4, taxon 't3': found no likelihoods, expected numbers with commas between them"),
        (("0.25", "0.25 1,0,0,0"), "line 4: found '1,0,0,0' after those of the last taxon"),
        (("AAAA", "AAA"), "line 4: found 'AAA', expected a character for each of 4 taxa"),
        (("t2 t3", "t2"), "line 2: found 3 names of taxa, line 1 announces 4"),
        (("4 2", "4 3"), "found 2 lines of sites, line 1 announces 3"),
        (("t2 t3", "t2 t2"), "two taxa have the name 't2'"),
        (("1,0,0,0 0,1", ",".join(["1"] * 65) + " 0,1"), "line 3, taxon 't0': found 65 likelihoods, expected 2 to 64"),
    ],
)
def test_errors(write, change, message):
    assert GOOD.count(change[0]) == 1
    path = write(GOOD.replace(*change))
    with refused(message, f"{path}: "):
        read_alignment(path)


def test_what_cannot_be_likelihoods(write):
    """A model of other data, and all that works on characters."""
    path, queries = write(GOOD), write(GOOD.replace("t0 t1 t2 t3", "q r s t"), "q.catg")
    with refused("found likelihoods of 4 states in each cell, expected genotype data, which has 10"):
        plltool.evaluate(path, TREE, "GT10")
    with refused("found DNA data, expected protein for model 'LG'"):
        plltool.evaluate(path, TREE, "LG")
    with refused("found likelihoods of 4 states in each cell, expected protein data"):
        plltool.evaluate(read_alignment(path, "protein"), TREE, "LG")
    with refused("found likelihoods of 4 states in each cell, expected codon data"):
        plltool.evaluate(read_alignment(path, "codon"), TREE)
    with refused("found constant sites to add to likelihoods of states, expected"):
        read_alignment(path, constant_sites=(1, 1, 1, 1))
    with refused("found likelihoods of states, expected sequences as queries"):
        plltool.place(dict.fromkeys(NAMES, "AC"), TREE, queries, "JC", device="numpy")
    with refused("found likelihoods of states, expected sequences as one of several alignments"):
        join_alignments({"one": read_alignment(path)}, "genes")
    wrong = CellLikelihoods(np.zeros((4, 2), int), np.ones((1, 4)))
    with refused("likelihoods of 4 taxa and 2 sites, expected 4 taxa and 1 sites"):
        plltool.Sequences(tuple(NAMES), (b"A",) * 4, "x", None, likelihoods=wrong)


def test_site_weights_and_queries_of_characters(write):
    """A column of weight 2 counts twice, and characters are placed on a reference of likelihoods."""
    path = write(text_of(random_cells(2)))
    lnl, once, twice = (
        plltool.evaluate(read_alignment(path, site_weights=own), TREE, MODEL, fixed=True, device="numpy").lnl
        for own in ([1, 1], [1, 0], [1, 2])
    )
    assert twice == pytest.approx(2 * lnl - once, rel=RTOL)
    placed = plltool.place(path, TREE, write(">q\nAC\n", "q.fasta"), MODEL, device="numpy")
    assert placed.n_placed == 1


def test_resampled_alignments(write):
    """Columns come with their likelihoods."""
    letters = ["".join(column) for column in product("ACGT", repeat=4)][:40]
    data = read_alignment(write(text_of(np.random.default_rng(1).random((40, 4, 4)), letters)))

    def columns(given):
        return list(zip(zip(*given.rows, strict=True), map(tuple, given.likelihoods.numbers.T.tolist()), strict=True))

    for own in plltool.resampled_alignments(data, "JC", replicates=3, seed=1):
        assert set(columns(own)) < set(columns(data))


def test_phylip_is_no_catg(write):
    """Even where commas are states."""
    data = read_alignment(write("3 4\na 0,1,\nb 0,01\nc 10,1\n"), "morph")
    assert data.rows == (b"0,1,", b"0,01", b"10,1")
