"""Weights of columns, and constant sites that are added: everywhere as if the columns stood in the file so often."""

import numpy as np
import pytest

import plltool
from plltool.alignment.facts import digest_data
from plltool.alignment.states import DNA, PROTEIN
from plltool.errors import CheckpointError, InputError
from plltool.run.inputs import resolve_inputs
from plltool.tree.splits import rf_distance
from plltool.tree_search.ufboot_search import draw_weights

COUNTS = (310, 190, 205, 295)
WEIGHTS = tuple(np.random.default_rng(4).integers(0, 4, 898).tolist())
NUMPY = {"device": "numpy"}
# of IQ-TREE 2.0.7: -te -blfix -nt 1 -fconst with these counts, and the lnL that it prints
TREE = (
    "(Tarsius_syrichta:0.1443713126,Lemur_catta:0.0998078107,((((((Homo_sapiens:0.0208346347,Pan:0.0261125086):"
    "0.0083016051,Gorilla:0.0275524688):0.0269410405,Pongo:0.0493901998):0.0132259637,Hylobates:0.0621912106):"
    "0.0339201413,(((Macaca_fuscata:0.0072994378,M_mulatta:0.0106252295):0.0148398420,M_fascicularis:0.0244069895):"
    "0.0165933924,M_sylvanus:0.0312226470):0.0718263601):0.0279471793,Saimiri_sciureus:0.1401687856):0.0715278314);"
)
IQTREE = [((310, 190, 205, 295), "JC", -8842.8186), ((310, 0, 205, 295), "JC+G4{0.3}", -7858.6578)]
# `raxmlHPC -f e -m GTRGAMMA --JC69 -s primates.phy -t TREE -a FILE -e 0.0001` of RAxML 8.2.12 (Debian); the file has
# 1, 2, 3, 1, 2, 3 and so on
RAXML_LNL = -11418.666474
SIX_TREE = (
    "(Tarsius_syrichta:0.14,Lemur_catta:0.1,(((Homo_sapiens:0.02,Pan:0.03):0.01,Gorilla:0.03):0.03,Pongo:0.05):0.15);"
)


def append(sequences, counts):
    """The same alignment with constant columns written out behind the others."""
    added = append_none(counts).encode()
    return {name: row + added for name, row in zip(sequences.names, sequences.rows, strict=True)}


def append_none(counts):
    return "".join(base * count for base, count in zip("ACGT", counts, strict=True))


def repeat(sequences, weights):
    """The same alignment with each column written out as often as its weight says."""
    order = np.repeat(np.arange(len(weights)), weights)
    return dict(zip(sequences.names, sequences.columns(order), strict=True))


# How an alignment gets counts, how they are written out, and how often each column of the file stands there.
KINDS = {
    "constant": (lambda data: data.with_constant_sites(COUNTS), lambda data: append(data, COUNTS), (1,) * 898),
    "weighted": (lambda data: data.with_site_weights(WEIGHTS), lambda data: repeat(data, WEIGHTS), WEIGHTS),
}


@pytest.fixture(scope="module")
def six(primates):
    """The first six taxa."""
    data = plltool.read_alignment(primates)
    return plltool.Sequences(data.names[:6], data.rows[:6], "six", DNA)


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def both(six, kind):
    """With counts, and written out."""
    count, write, _ = KINDS[kind]
    return count(six), write(six)


@pytest.mark.parametrize(
    ("kind", "model"),
    [
        *(("constant", model) for model in ("GTR+F+I+G4", "K80+R2", "HKY+FO+IC")),
        *(("weighted", model) for model in ("HKY+F+I+G4", "K80+R2", "K80+FO+PSR4")),
    ],
)
def test_as_columns_of_the_file(both, kind, model):
    few = [plltool.evaluate(data, SIX_TREE, model, site_lnl=True, site_rates=True, **NUMPY) for data in both]
    assert few[0].lnl == pytest.approx(few[1].lnl, abs=1e-6)
    n_sites = 898 + sum(COUNTS) if kind == "constant" else sum(WEIGHTS)
    assert few[0].n_sites == few[1].n_sites == few[0].parts[0].n_sites == few[1].parts[0].n_sites == n_sites
    assert few[0].n_patterns == few[1].n_patterns
    counted, written = (own.as_record()["data"] for own in few)
    for name in ("n_constant", "n_informative", "gaps", "taxa", "identical"):
        assert counted[name] == written[name]
    name, value = ("constant_sites", list(COUNTS)) if kind == "constant" else ("weighted_columns", 898)
    assert (counted[name], written[name]) == (value, None)
    times = np.array(KINDS[kind][2])
    np.testing.assert_array_equal(np.isnan(few[0].site_lnl), times == 0)
    for name in ("site_lnl", "site_rates"):
        values, expected = (getattr(own, name) for own in few)
        assert values.shape == (898,)
        np.testing.assert_allclose(np.repeat(values, times), expected[: times.sum()], rtol=1e-9)


def test_resampling(both, kind):
    """The same random numbers draw the same sites."""
    trees = [plltool.bootstrap(data, "JC", replicates=2, workers=1, **NUMPY) for data in both]
    np.testing.assert_allclose(trees[0].lnls, trees[1].lnls, rtol=1e-9)
    assert [rf_distance(a, b) for a, b in zip(trees[0].trees, trees[1].trees, strict=True)] == [0, 0]
    model, other = "K80", SIX_TREE.replace("Gorilla", "x").replace("Pongo", "Gorilla").replace("x", "Pongo")
    tests = [plltool.topology_tests(data, [SIX_TREE, other], model, replicates=100, **NUMPY) for data in both]
    assert tests[0].format_table() == tests[1].format_table()
    times = np.array(KINDS[kind][2])
    expected = tests[1].tree_site_lnl[:, : times.sum()]
    np.testing.assert_allclose(np.repeat(tests[0].tree_site_lnl, times, axis=1), expected, rtol=1e-9)
    parts = (resolve_inputs(data, "JC")[0].patterns[0] for data in both)
    np.testing.assert_array_equal(*(draw_weights([own.weights], 50, np.random.default_rng(1)) for own in parts))
    supports = [plltool.alrt(data, SIX_TREE, "JC", replicates=100, **NUMPY).supports for data in both]
    np.testing.assert_array_equal(*(own.values["sh-alrt"] for own in supports))


def test_search(both):
    few = [plltool.search(data, "JC+G4", options=plltool.SearchOptions("fast"), **NUMPY) for data in both]
    assert few[0].lnl == pytest.approx(few[1].lnl, abs=1e-6)
    assert few[0].newick == few[1].newick


def test_queries_have_the_counts_of_the_reference(primates, kind):
    sequences = plltool.read_alignment(primates)
    rows = dict(zip(sequences.names, sequences.rows, strict=True))
    query = plltool.Sequences(("q", "empty"), (rows.pop("Gorilla"), b"-" * 898), "q", None, least=1)
    reference = plltool.Sequences(tuple(rows), tuple(rows.values()), "r", DNA)
    tree = plltool.search(rows, "JC", options=plltool.SearchOptions("fast"), **NUMPY).tree
    count, write, _ = KINDS[kind]
    written = write(query)
    written["empty"] = b"-" * len(written["q"])
    queries = plltool.Sequences(tuple(written), tuple(written.values()), "q", None, least=1)
    a = plltool.place(count(reference), tree, query, "JC", **NUMPY)
    b = plltool.place(write(reference), tree, queries, "JC", **NUMPY)
    assert a.without_data == b.without_data == ("empty",)
    assert a.best()["q"].lnl == pytest.approx(b.best()["q"].lnl, abs=1e-6)
    assert a.best()["q"].pendant == pytest.approx(b.best()["q"].pendant, rel=1e-6)


@pytest.mark.parametrize("kind", ["constant"])
def test_ancestors_of_sites_are_those_of_the_file(both):
    a, b = (plltool.ancestral_states(data, SIX_TREE, "JC", **NUMPY) for data in both)
    assert {node: row + append_none(COUNTS) for node, row in a.sequences().items()} == b.sequences()
    assert a.mutations == b.mutations
    assert a.ancestors[0].joint_lnl == pytest.approx(b.ancestors[0].joint_lnl, abs=1e-6)


# --- constant sites -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("counts", "model", "expected"), IQTREE)
def test_as_iqtree(primates, counts, model, expected):
    data = plltool.read_alignment(primates, constant_sites=counts)
    found = plltool.evaluate(data, TREE, model, fixed=True, **NUMPY)
    assert found.lnl == pytest.approx(expected, abs=5.1e-5)  # half of its last digit


@pytest.mark.parametrize("kind", ["constant"])
def test_with_a_root(both):
    values = "UNREST{1/2/3/4/5/6/7/8/9/10/11/1}"
    lnls = []
    for data in both:
        with plltool.Likelihood(data, SIX_TREE, values, **NUMPY) as likelihood:
            lnls.append(likelihood.lnl())
    assert lnls[0] == pytest.approx(lnls[1], abs=1e-6)


@pytest.mark.parametrize("kind", ["constant"])
def test_check(both):
    a, b = (plltool.check(data, "GTR+F+I+G4", **NUMPY) for data in both)
    for facts in (a, b):
        del facts["alignment"], facts["warnings"], facts["parts"][0]["sites"]
    assert a == b


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["constant"])
def test_model_choice(both):
    a, b = (plltool.select_model(data, SIX_TREE, free_rates=False, **NUMPY) for data in both)
    assert a.spec == b.spec
    scores = ([(own.bic, own.aicc) for own in choice.candidates] for choice in (a, b))
    np.testing.assert_allclose(*scores, atol=1e-3)


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


def test_data_and_models_without_constant_sites(primates, data_dir, tmp_path):
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


# --- weights of columns ---------------------------------------------------------------------------------------


def test_as_raxml(primates):
    data = plltool.read_alignment(primates, site_weights=[1 + site % 3 for site in range(898)])
    assert plltool.evaluate(data, TREE, "JC+G4", **NUMPY).lnl == pytest.approx(RAXML_LNL, abs=1e-4)  # its epsilon


def test_in_partitions_and_with_constant_sites(primates, six):
    scheme = "GTR+F, a = 1-500\\2\nHKY+G4, b = 2-500\\2, 501-898"
    data = six.with_site_weights(WEIGHTS)
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
