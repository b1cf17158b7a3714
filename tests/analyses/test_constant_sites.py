"""Constant sites that are added as weights: everywhere as if the columns stood in the file."""

import numpy as np
import pytest

import plltool
from plltool.alignment.facts import digest_data
from plltool.alignment.states import DNA
from plltool.errors import CheckpointError, InputError
from plltool.run.inputs import resolve_inputs
from plltool.tree.splits import rf_distance
from plltool.tree_search.ufboot_search import draw_weights

COUNTS = (310, 190, 205, 295)
NUMPY = {"device": "numpy"}
MODEL = "GTR+F+I+G4"
# of IQ-TREE 2.0.7: -te -blfix -nt 1 -fconst with these counts, and the lnL that it prints
TREE = (
    "(Tarsius_syrichta:0.1443713126,Lemur_catta:0.0998078107,((((((Homo_sapiens:0.0208346347,Pan:0.0261125086):"
    "0.0083016051,Gorilla:0.0275524688):0.0269410405,Pongo:0.0493901998):0.0132259637,Hylobates:0.0621912106):"
    "0.0339201413,(((Macaca_fuscata:0.0072994378,M_mulatta:0.0106252295):0.0148398420,M_fascicularis:0.0244069895):"
    "0.0165933924,M_sylvanus:0.0312226470):0.0718263601):0.0279471793,Saimiri_sciureus:0.1401687856):0.0715278314);"
)
IQTREE = [((310, 190, 205, 295), "JC", -8842.8186), ((310, 0, 205, 295), "JC+G4{0.3}", -7858.6578)]


def append(sequences, counts):
    """The same alignment with the columns written out."""
    added = b"".join(bytes([base]) * count for base, count in zip(b"ACGT", counts, strict=True))
    return {name: row + added for name, row in zip(sequences.names, sequences.rows, strict=True)}


SIX_TREE = (
    "(Tarsius_syrichta:0.14,Lemur_catta:0.1,(((Homo_sapiens:0.02,Pan:0.03):0.01,Gorilla:0.03):0.03,Pongo:0.05):0.15);"
)


@pytest.fixture(scope="module")
def both(primates):
    """Six taxa, with weights, and written out."""
    data = plltool.read_alignment(primates)
    six = plltool.Sequences(data.names[:6], data.rows[:6], "six", DNA)
    return six.with_constant_sites(COUNTS), append(six, COUNTS)


@pytest.fixture(scope="module")
def fitted(both):
    """Both under MODEL."""
    return [plltool.evaluate(data, SIX_TREE, MODEL, site_lnl=True, site_rates=True, **NUMPY) for data in both]


@pytest.mark.parametrize(("counts", "model", "expected"), IQTREE)
def test_as_iqtree(primates, counts, model, expected):
    data = plltool.read_alignment(primates, constant_sites=counts)
    found = plltool.evaluate(data, TREE, model, fixed=True, **NUMPY)
    assert found.lnl == pytest.approx(expected, abs=5.1e-5)  # half of its last digit


@pytest.mark.parametrize("model", [MODEL, "K80+R2", "HKY+FO+IC"])
def test_as_columns_of_the_file(both, fitted, model):
    few = fitted if model == MODEL else [plltool.evaluate(data, SIX_TREE, model, **NUMPY) for data in both]
    assert few[0].lnl == pytest.approx(few[1].lnl, abs=1e-6)
    assert few[0].n_sites == few[1].n_sites == 898 + sum(COUNTS)
    assert few[0].n_patterns == few[1].n_patterns
    assert few[0].parts[0].n_sites == few[1].parts[0].n_sites
    for name in ("n_constant", "n_informative", "gaps", "taxa"):
        a, b = (own.as_record()["data"][name] for own in few)
        assert a == b
    assert few[0].as_record()["data"]["constant_sites"] == list(COUNTS)
    assert few[1].as_record()["data"]["constant_sites"] is None


def test_with_a_root(both):
    values = "UNREST{1/2/3/4/5/6/7/8/9/10/11/1}"
    lnls = []
    for data in both:
        with plltool.Likelihood(data, SIX_TREE, values, **NUMPY) as likelihood:
            lnls.append(likelihood.lnl())
    assert lnls[0] == pytest.approx(lnls[1], abs=1e-6)


def test_check(both):
    a, b = (plltool.check(data, MODEL, **NUMPY) for data in both)
    for facts in (a, b):
        del facts["alignment"], facts["warnings"], facts["parts"][0]["sites"]
    assert a == b


@pytest.mark.slow
def test_model_choice(both):
    a, b = (plltool.select_model(data, SIX_TREE, free_rates=False, **NUMPY) for data in both)
    assert a.spec == b.spec
    scores = ([(own.bic, own.aicc) for own in choice.candidates] for choice in (a, b))
    np.testing.assert_allclose(*scores, atol=1e-3)


def test_resampling(both):
    """The same random numbers draw the same sites."""
    trees = [plltool.bootstrap(data, "JC", replicates=2, workers=1, **NUMPY) for data in both]
    np.testing.assert_allclose(trees[0].lnls, trees[1].lnls, rtol=1e-9)
    assert [rf_distance(a, b) for a, b in zip(trees[0].trees, trees[1].trees, strict=True)] == [0, 0]
    model, other = "K80", SIX_TREE.replace("Gorilla", "x").replace("Pongo", "Gorilla").replace("x", "Pongo")
    tests = [plltool.topology_tests(data, [SIX_TREE, other], model, replicates=100, **NUMPY) for data in both]
    assert tests[0].format_table() == tests[1].format_table()
    np.testing.assert_allclose(tests[0].tree_site_lnl, tests[1].tree_site_lnl[:, :898], rtol=1e-9)
    parts = (resolve_inputs(data, "JC")[0].patterns[0] for data in both)
    np.testing.assert_array_equal(*(draw_weights([own.weights], 50, np.random.default_rng(1)) for own in parts))
    supports = [plltool.alrt(data, SIX_TREE, "JC", replicates=100, **NUMPY).supports for data in both]
    np.testing.assert_array_equal(*(own.values["sh-alrt"] for own in supports))


def test_search(both):
    few = [plltool.search(data, "JC+G4", options=plltool.SearchOptions("fast"), **NUMPY) for data in both]
    assert few[0].lnl == pytest.approx(few[1].lnl, abs=1e-6)
    assert few[0].newick == few[1].newick


def test_values_of_sites_are_those_of_the_file(both, fitted):
    for name in ("site_lnl", "site_rates"):
        weighted, written = (getattr(own, name) for own in fitted)
        assert weighted.shape == (898,)
        np.testing.assert_allclose(weighted, written[:898], rtol=1e-9)
    a, b = (plltool.ancestral_states(data, SIX_TREE, "JC", **NUMPY) for data in both)
    assert {node: row + append_none(COUNTS) for node, row in a.sequences().items()} == b.sequences()
    assert a.mutations == b.mutations
    assert a.ancestors[0].joint_lnl == pytest.approx(b.ancestors[0].joint_lnl, abs=1e-6)


def append_none(counts):
    return "".join(base * count for base, count in zip("ACGT", counts, strict=True))


def test_queries_have_the_sites_too(both, primates):
    sequences = plltool.read_alignment(primates)
    rows = dict(zip(sequences.names, sequences.rows, strict=True))
    query = rows.pop("Gorilla")
    tree = TREE.replace(",Gorilla:0.0275524688", "").replace("(Homo_sapiens", "Homo_sapiens", 1)
    tree = plltool.search(rows, "JC", options=plltool.SearchOptions("fast"), **NUMPY).tree
    reference = plltool.Sequences(tuple(rows), tuple(rows.values()), "r", sequences.states)
    added = append_none(COUNTS).encode()
    queries = plltool.Sequences(("q", "empty"), (query, b"-" * 898), "q", None, least=1)
    written = plltool.Sequences(("q", "empty"), (query + added, b"-" * 1898), "q", None, least=1)
    a = plltool.place(reference.with_constant_sites(COUNTS), tree, queries, "JC", **NUMPY)
    b = plltool.place({name: row + added for name, row in rows.items()}, tree, written, "JC", **NUMPY)
    assert a.without_data == b.without_data == ("empty",)
    assert a.best()["q"].lnl == pytest.approx(b.best()["q"].lnl, abs=1e-6)
    assert a.best()["q"].pendant == pytest.approx(b.best()["q"].pendant, rel=1e-6)


def test_billions_are_weights_only(primates):
    data = plltool.read_alignment(primates, constant_sites=(10**9, 5 * 10**8, 5 * 10**8, 10**9))
    cut, _ = resolve_inputs(data, "JC")
    assert cut.n_sites == 3 * 10**9 + 898
    assert cut.parts[0].alignment.n_sites == 902
    warnings = plltool.check(data, "JC", **NUMPY)["warnings"]
    assert any("one change at 3000000898 sites is a length of 3.3e-10, below the least" in line for line in warnings)
    with plltool.Likelihood(data, TREE, "JC", **NUMPY) as likelihood:
        sites = likelihood.pattern_lnl()
        assert likelihood.lnl() == pytest.approx(float(sites @ likelihood.patterns[0].weights), rel=1e-12)
        likelihood.optimise()
    found = plltool.bootstrap(data, "JC", replicates=1, **NUMPY)
    assert len(found.trees) == 1
    plltool.alrt(data, TREE, "JC", replicates=20, **NUMPY)


def test_all_counts_of_sites_are_told_apart(primates, tmp_path):
    cuts = [
        resolve_inputs(plltool.read_alignment(primates, constant_sites=own), "JC")[0] for own in (COUNTS, COUNTS[::-1])
    ]
    assert digest_data(cuts[0].alignments) != digest_data(cuts[1].alignments)
    few = {"replicates": 1, "checkpoint": tmp_path / "run", **NUMPY}
    plltool.bootstrap(plltool.read_alignment(primates, constant_sites=COUNTS), "JC", **few)
    with pytest.raises(CheckpointError, match=r"the checkpoint has \[310, 190, 205, 295\], this command None"):
        plltool.bootstrap(primates, "JC", **few)


@pytest.mark.parametrize(("counts", "is_told"), [(None, True), ((0, 0, 0, 3), False), ((0, 0, 0, 0), False)])
def test_no_hint_where_they_are_given(counts, is_told):
    rng = np.random.default_rng(1)
    columns = np.array([rng.permutation(list("ACGTAC")) for _ in range(40)])
    rows = tuple("".join(column).encode() for column in columns.T)
    data = plltool.Sequences(tuple("abcdef"), rows, "snps", DNA)
    if counts is not None:
        data = data.with_constant_sites(counts)
    warnings = plltool.check(data, "JC", **NUMPY)["warnings"]
    assert any("--constant-sites A,C,G,T adds the other sites" in line for line in warnings) == is_told


@pytest.mark.parametrize(
    ("counts", "found"), [((1, 2, 3), "1,2,3"), ((1, 2, 3, -4), "1,2,3,-4"), ((1, 2, 3, 0.5), "1,2,3,0.5")]
)
def test_numbers_that_are_refused(primates, counts, found):
    with pytest.raises(InputError, match=f"constant sites: found '{found}', expected numbers of constant sites"):
        plltool.read_alignment(primates, constant_sites=counts)


def test_data_and_models_that_are_refused(primates, data_dir, tmp_path):
    for name in ("morphology.nex", "snps.vcf"):
        with pytest.raises(InputError, match=r"found constant sites to add to .* data, expected an alignment of DNA"):
            plltool.read_alignment(data_dir / name, constant_sites=COUNTS)
    with pytest.raises(InputError, match="to add to codon data"):
        plltool.read_alignment(primates, "codon", constant_sites=COUNTS)
    data = plltool.read_alignment(primates, constant_sites=COUNTS)
    for model, what in (("GY", "codon data"), ("LG", "protein data"), ("JC, a = 1-400\nJC, b = 401-898", "parts")):
        with pytest.raises(InputError, match=f"primates.phy: found constant sites to add to {what}"):
            plltool.evaluate(data, TREE, model, **NUMPY)
    for model in ("JC+ASC_LEWIS", "JC+ASC_FELS{100}"):
        with pytest.raises(InputError, match=r"found constant sites to add under model JC\+ASC"):
            plltool.evaluate(data, TREE, model, **NUMPY)
    with pytest.raises(InputError, match="resampled alignments cannot be written"):
        next(plltool.resampled_alignments(data, "JC", replicates=1))
    with pytest.raises(InputError, match="gene 'a': found constant sites"):
        plltool.genes({"a": data}, "JC", **NUMPY)
