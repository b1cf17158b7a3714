"""Weights of columns: everywhere as if each column stood in the file as often as its weight says."""

import numpy as np
import pytest

import plltool
from plltool.alignment.facts import digest_data
from plltool.alignment.states import DNA, PROTEIN
from plltool.errors import CheckpointError, InputError
from plltool.run.inputs import resolve_inputs
from plltool.tree.splits import rf_distance

NUMPY = {"device": "numpy"}
WEIGHTS = tuple(np.random.default_rng(4).integers(0, 4, 898).tolist())
TREE = (
    "(Tarsius_syrichta:0.1443713126,Lemur_catta:0.0998078107,((((((Homo_sapiens:0.0208346347,Pan:0.0261125086):"
    "0.0083016051,Gorilla:0.0275524688):0.0269410405,Pongo:0.0493901998):0.0132259637,Hylobates:0.0621912106):"
    "0.0339201413,(((Macaca_fuscata:0.0072994378,M_mulatta:0.0106252295):0.0148398420,M_fascicularis:0.0244069895):"
    "0.0165933924,M_sylvanus:0.0312226470):0.0718263601):0.0279471793,Saimiri_sciureus:0.1401687856):0.0715278314);"
)
# `raxmlHPC -f e -m GTRGAMMA --JC69 -s primates.phy -t TREE -a FILE -e 0.0001` of RAxML 8.2.12 (Debian); the file has
# 1, 2, 3, 1, 2, 3 and so on
RAXML_LNL = -11418.666474


def repeat(sequences, weights):
    """The same alignment with the columns written out."""
    order = np.repeat(np.arange(len(weights)), weights)
    return dict(zip(sequences.names, sequences.columns(order), strict=True))


SIX_TREE = (
    "(Tarsius_syrichta:0.14,Lemur_catta:0.1,(((Homo_sapiens:0.02,Pan:0.03):0.01,Gorilla:0.03):0.03,Pongo:0.05):0.15);"
)


@pytest.fixture(scope="module")
def six(primates):
    """The first six taxa."""
    data = plltool.read_alignment(primates)
    return plltool.Sequences(data.names[:6], data.rows[:6], "six", DNA)


@pytest.fixture(scope="module")
def both(six):
    """With weights, and written out."""
    return six.with_site_weights(WEIGHTS), repeat(six, WEIGHTS)


@pytest.mark.parametrize("model", ["HKY+F+I+G4", "K80+R2", "K80+FO+PSR4"])
def test_as_columns_of_the_file(both, model):
    few = [plltool.evaluate(data, SIX_TREE, model, site_lnl=True, **NUMPY) for data in both]
    assert few[0].lnl == pytest.approx(few[1].lnl, abs=1e-6)
    assert few[0].n_sites == few[1].n_sites == few[0].parts[0].n_sites == sum(WEIGHTS)
    assert few[0].n_patterns == few[1].n_patterns
    for name in ("n_constant", "n_informative", "gaps", "taxa", "identical"):
        a, b = (own.as_record()["data"][name] for own in few)
        assert a == b
    assert few[0].as_record()["data"]["weighted_columns"] == 898
    assert few[1].as_record()["data"]["weighted_columns"] is None
    used = np.array(WEIGHTS) > 0
    np.testing.assert_array_equal(np.isnan(few[0].site_lnl), ~used)
    np.testing.assert_allclose(np.repeat(few[0].site_lnl, WEIGHTS), few[1].site_lnl, atol=1e-6)


def test_as_raxml(primates):
    data = plltool.read_alignment(primates, site_weights=[1 + site % 3 for site in range(898)])
    assert plltool.evaluate(data, TREE, "JC+G4", **NUMPY).lnl == pytest.approx(RAXML_LNL, abs=1e-4)  # its epsilon


def test_in_partitions_and_with_constant_sites(primates, both, six):
    scheme = "GTR+F, a = 1-500\\2\nHKY+G4, b = 2-500\\2, 501-898"
    data = both[0]
    found = plltool.evaluate(data, SIX_TREE, scheme, **NUMPY)
    a = [*range(0, 500, 2)]
    order = np.array([*a, *sorted(set(range(898)) - set(a))])
    own = np.array(WEIGHTS)[order]
    rows = six.columns(np.repeat(order, own))
    end = own[: len(a)].sum()
    written = f"GTR+F, a = 1-{end}\nHKY+G4, b = {end + 1}-{own.sum()}"
    expected = plltool.evaluate(dict(zip(data.names, rows, strict=True)), SIX_TREE, written, **NUMPY)
    assert [part.n_sites for part in found.parts] == [part.n_sites for part in expected.parts]
    assert found.lnl == pytest.approx(expected.lnl, abs=1e-6)
    added = plltool.read_alignment(primates, site_weights=WEIGHTS, constant_sites=(5, 0, 7, 9))
    written = repeat(plltool.read_alignment(primates), WEIGHTS)
    rows = {name: row + b"A" * 5 + b"G" * 7 + b"T" * 9 for name, row in written.items()}
    lnls = [plltool.evaluate(each, TREE, "HKY+F", **NUMPY).lnl for each in (added, rows)]
    assert lnls[0] == pytest.approx(lnls[1], abs=1e-6)


def test_resampling_draws_as_many_sites_as_the_weights_say(both):
    """The same random numbers draw the same sites."""
    trees = [plltool.bootstrap(data, "JC", replicates=2, workers=1, **NUMPY) for data in both]
    np.testing.assert_allclose(trees[0].lnls, trees[1].lnls, rtol=1e-9)
    assert [rf_distance(a, b) for a, b in zip(trees[0].trees, trees[1].trees, strict=True)] == [0, 0]
    supports = [plltool.alrt(data, SIX_TREE, "JC", replicates=100, **NUMPY).supports for data in both]
    np.testing.assert_array_equal(*(own.values["sh-alrt"] for own in supports))
    other = SIX_TREE.replace("Gorilla", "x").replace("Pongo", "Gorilla").replace("x", "Pongo")
    tests = [plltool.topology_tests(data, [SIX_TREE, other], "K80", replicates=100, **NUMPY) for data in both]
    assert tests[0].format_table() == tests[1].format_table()


def test_a_search(both):
    few = [plltool.search(data, "JC+G4", options=plltool.SearchOptions("fast"), **NUMPY) for data in both]
    assert few[0].lnl == pytest.approx(few[1].lnl, abs=1e-6)
    assert few[0].newick == few[1].newick


def test_queries_have_the_weights_of_the_reference(primates):
    sequences = plltool.read_alignment(primates)
    rows = dict(zip(sequences.names, sequences.rows, strict=True))
    query = plltool.Sequences(("q",), (rows.pop("Gorilla"),), "q", None, least=1)
    reference = plltool.Sequences(tuple(rows), tuple(rows.values()), "r", DNA)
    tree = plltool.search(rows, "JC", options=plltool.SearchOptions("fast"), **NUMPY).tree
    a = plltool.place(reference.with_site_weights(WEIGHTS), tree, query, "JC", **NUMPY)
    written = plltool.Sequences(("q",), query.columns(np.repeat(np.arange(898), WEIGHTS)), "q", None, least=1)
    b = plltool.place(repeat(reference, WEIGHTS), tree, written, "JC", **NUMPY)
    assert a.best()["q"].lnl == pytest.approx(b.best()["q"].lnl, abs=1e-6)
    assert a.best()["q"].pendant == pytest.approx(b.best()["q"].pendant, rel=1e-6)


def test_ascertainment_is_not_refused(primates):
    data = plltool.read_alignment(primates)
    columns = np.frombuffer(b"".join(data.rows), dtype=np.uint8).reshape(12, -1)
    varied = np.flatnonzero((columns != columns[0]).any(axis=0) & np.isin(columns, list(b"ACGT")).all(axis=0))
    rows = tuple(data.columns(varied))
    variable = plltool.Sequences(data.names, rows, "snps", DNA).with_site_weights([2] * len(varied))
    lnls = [
        plltool.evaluate(each, TREE, "JC+ASC_LEWIS", **NUMPY).lnl
        for each in (variable, dict(zip(data.names, (row * 2 for row in rows), strict=True)))
    ]
    assert lnls[0] == pytest.approx(lnls[1], abs=1e-6)


def test_other_weights_are_other_data(primates, tmp_path):
    weights = [list(WEIGHTS), list(WEIGHTS)]
    weights[1][0] += 1
    data = [plltool.read_alignment(primates, site_weights=own) for own in weights]
    digests = {digest_data(resolve_inputs(own, "JC")[0].alignments) for own in data}
    assert len(digests) == 2
    few = {"replicates": 1, "checkpoint": tmp_path / "run", **NUMPY}
    plltool.bootstrap(data[0], "JC", **few)
    with pytest.raises(CheckpointError, match="alignment"):
        plltool.bootstrap(data[1], "JC", **few)


@pytest.mark.parametrize(
    ("weights", "found"),
    [
        ([1, 2, 3], "number of weights: found 3, expected 898, one for each column of .*primates.phy"),
        ([1] * 897 + [-2], "found -2 as the weight of column 898, expected a whole number from 0 on"),
        ([0.5] * 898, "found 0.5 as the weight of column 1, expected a whole number from 0 on"),
        ([0] * 898, r"found weights whose sum is 0, expected 1 to 1e\+15"),
        ([10**14] * 898, "found weights whose sum is 898"),
    ],
)
def test_weights_that_are_refused(primates, weights, found):
    with pytest.raises(InputError, match=f"^site weights: {found}"):
        plltool.read_alignment(primates, site_weights=weights)


def test_files_of_weights(primates, tmp_path):
    path = tmp_path / "w.txt"
    path.write_text(
        "\n".join(" ".join(map(str, WEIGHTS[start : start + 100])) for start in range(0, 898, 100)) + "\n\n"
    )
    assert plltool.read_alignment(primates, site_weights=path).site_weights == WEIGHTS
    for text, wrong in (
        ("1 2\n3 4.5", r"line 2: found '4.5', expected a weight: a whole number from 0 on"),
        ("-1", "line 1: found '-1', expected a weight"),
        ("1 2", "number of weights: found 2, expected 898"),
        ("", "number of weights: found 0, expected 898"),
        (f"{10**15}", "line 1: found '1000000000000000'"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=f"w.txt: {wrong}"):
            plltool.read_alignment(primates, site_weights=path)


def test_uses_that_are_refused(primates):
    data = plltool.read_alignment(primates, site_weights=WEIGHTS)
    with pytest.raises(InputError, match="resampled alignments cannot be written where"):
        next(plltool.resampled_alignments(data, "JC", replicates=1))
    with pytest.raises(InputError, match="gene 'a': found constant sites added, or weights of columns"):
        plltool.genes({"a": data}, "JC", **NUMPY)
    names, rows = ("a", "b", "c"), (b"ATGATG", b"ATGATA", b"ATAATG")
    codons = plltool.Sequences(names, rows, "genes.fa", DNA)
    with pytest.raises(InputError, match=r"genes.fa: found different weights of columns 4 to 6, .* codon data"):
        plltool.check(codons.with_site_weights([2, 2, 2, 1, 2, 1]), "GY", **NUMPY)
    assert plltool.check(codons.with_site_weights([2, 2, 2, 3, 3, 3]), "GY", **NUMPY)["parts"][0]["n_sites"] == 5
    parts = "LG, a = 1-2\nLG, b = 3-6"
    proteins = plltool.Sequences(names, rows, "genes.fa", PROTEIN).with_site_weights([0, 0, 1, 1, 1, 1])
    with pytest.raises(InputError, match=r"genes.fa: found a part whose columns all have weight 0"):
        plltool.check(proteins, parts, **NUMPY)
