"""Models that are not time-reversible, from the files to the result: roots given, roots found, simulation, refusals."""

import json
from dataclasses import replace

import numpy as np
import pytest
from oracles.codons import IUPAC

import plltool
from plltool.analyses.supports import ultrafast
from plltool.constants import SUPPORT_KINDS
from plltool.errors import InputError
from plltool.hardware import Hardware
from plltool.io.newick import parse_newick
from plltool.io.newick_writer import write_newick
from plltool.model.model import Model
from plltool.model.model_string import parse_model
from plltool.tree.rooted import add_root, drop_root, inner_branches
from plltool.tree.splits import rf_distance

PRIMATES = "data/primates.phy"
# IQ-TREE 2.0.7, -m UNREST+G4 -te: the tree, the rates, alpha and lnL of its checkpoint
IQTREE_TREE = (
    "((Tarsius_syrichta:0.5781382008,Lemur_catta:0.4004337974):0.3133336537,((((((Homo_sapiens:0.0489057043,"
    "Pan:0.0620146864):0.02714005305,Gorilla:0.0603449271):0.08623167151,Pongo:0.1540480837):0.05958362175,"
    "Hylobates:0.1835075759):0.1378733512,((Macaca_fuscata:0.0158310358,M_mulatta:0.0222439792):0.03392816713,"
    "(M_fascicularis:0.0565351120,M_sylvanus:0.1174099237):0.001994631482):0.3146134583):0.1271563697,"
    "Saimiri_sciureus:0.5100485366):2.893039877e-06);"
)
IQTREE_MODEL = (
    "UNREST{1.881956219/5.614612234/1.242723901/1.765104138/0.1124813051/13.33158415/26.92732543/1.348878135/0.0001/"
    "1.534799074/17.11108264/1}+G4{0.3669434662}"
)
IQTREE_LNL = -5716.59773846
# the same with --alrt 1000 --abayes; its interchanges beside the root move the root, and are other ones than ours
IQTREE_ALRT = {
    ("Homo_sapiens", "Pan"): (90.8, 0.999),
    ("Gorilla", "Homo_sapiens", "Pan"): (99.1, 1),
    ("Gorilla", "Homo_sapiens", "Pan", "Pongo"): (93.3, 0.998),
    ("M_mulatta", "Macaca_fuscata"): (83.6, 0.988),
    ("M_fascicularis", "M_sylvanus"): (0, 0.0237),
    ("M_fascicularis", "M_mulatta", "M_sylvanus", "Macaca_fuscata"): (100, 1),
    ("Lemur_catta", "Saimiri_sciureus", "Tarsius_syrichta"): (92.4, 0.989),
}
IQTREE_STRSYM = -5888.96556138  # optimised, -m STRSYM+G4 -te
SMALL = "((a:0.1,b:0.2):0.15,((c:0.3,d:0.1):0.1,(e:0.2,f:0.1):0.2):0.05);"
SIMULATED = "UNREST{2/5/1/0.5/1/9/3/1/0.6/1.5/8/1}"


@pytest.mark.parametrize(("model", "expected"), [("LG4X", True), (None, True), ("12.12", False), ("STRSYM+G4", False),
                                                 ("DNA, a = 1-5\nUNREST, b = 6-.", False)])  # fmt: skip
def test_which_models_are_reversible(model, expected):
    assert plltool.is_reversible(model) == expected


def unrooted(text):
    return write_newick(parse_newick(text, "text"))


def test_the_lnl_of_another_program(device):
    result = plltool.evaluate(PRIMATES, IQTREE_TREE, IQTREE_MODEL, fixed=True, device=device)
    assert result.lnl == pytest.approx(IQTREE_LNL, abs=1e-6)
    assert result.n_taxa == 12


def test_the_place_of_the_root_matters():
    swapped = IQTREE_TREE.replace("0.3133336537", "0").replace("2.893039877e-06", "0.3133365467")
    other = plltool.evaluate(PRIMATES, swapped, IQTREE_MODEL, fixed=True, device="numpy")
    assert IQTREE_LNL - other.lnl > 0.1


def test_optimised_as_well_as_elsewhere():
    result = plltool.evaluate(PRIMATES, IQTREE_TREE, "STRSYM+G4")
    assert result.lnl > IQTREE_STRSYM - 0.01
    assert result.newick.count("(") == 11  # two branches at the root
    rooted = plltool.evaluate(PRIMATES, result.newick, result.model, fixed=True, device="numpy")
    assert rooted.lnl == pytest.approx(result.lnl, abs=1e-8)
    again = plltool.evaluate(PRIMATES, result.tree, result.model, fixed=True, device="numpy")
    assert again.lnl == pytest.approx(result.lnl, abs=1e-8)
    shown = result.tree.to_dendropy()
    clades = [{leaf.taxon.label for leaf in child.leaf_iter()} for child in shown.seed_node.child_nodes()]
    assert {"Tarsius_syrichta", "Lemur_catta"} in clades  # the root stays where it was given
    assert len(clades) == 2
    assert shown.is_rooted


def test_root_scan():
    result = plltool.evaluate(PRIMATES, IQTREE_TREE, "STRSYM", root_scan=True)
    assert len(result.root_places) == 21
    rows = json.loads(result.to_json())["root_places"]
    assert [row["lnl"] for row in rows] == sorted((row["lnl"] for row in rows), reverse=True)
    own = next(row for row in rows if set(row["taxa"]) == {"Tarsius_syrichta", "Lemur_catta"})
    assert own["lnl"] == pytest.approx(result.lnl, abs=0.01)


def test_a_tree_without_a_root_gets_one():
    text = unrooted(IQTREE_TREE)
    found = plltool.evaluate(PRIMATES, text, "STRSYM", root_scan=True)
    given = plltool.evaluate(PRIMATES, IQTREE_TREE, "STRSYM")
    assert found.lnl > given.lnl - 0.01
    assert found.root_places[0].lnl < found.lnl + 0.02
    with pytest.raises(InputError, match="found no root, expected one, with two branches"):
        plltool.evaluate(PRIMATES, text, IQTREE_MODEL, fixed=True, device="numpy")


def test_a_search_ends_with_a_rooted_tree():
    data = plltool.simulate(SMALL, SIMULATED, 1500, seed=3).as_sequences()
    result = plltool.search(data, "UNREST", seed=1, effort="fast")
    assert rf_distance(parse_newick(result.newick, "found"), parse_newick(SMALL, "true").renumbered()) == 0
    assert result.newick.count("(") == 5
    truth = plltool.evaluate(data, SMALL, "UNREST")
    assert result.lnl > truth.lnl - 0.01
    again = plltool.evaluate(data, result.newick, result.model, fixed=True, device="numpy")
    assert again.lnl == pytest.approx(result.lnl, abs=1e-6)
    rates = truth.models[0].exchangeabilities
    expected = [2, 5, 1, 0.5, 1, 9, 3, 1, 0.6, 1.5, 8, 1]
    assert np.log(rates) == pytest.approx(np.log(expected), abs=1.2)  # 1,500 sites leave errors of about a third


def test_simulated_rates_come_back():
    """Long alignments give the rates back; the frequencies of all columns are the stationary ones."""
    data = plltool.simulate(SMALL, SIMULATED, 10000, seed=5)
    result = plltool.evaluate(data.as_sequences(), SMALL, "UNREST")
    expected = np.array([2, 5, 1, 0.5, 1, 9, 3, 1, 0.6, 1.5, 8, 1])
    found = result.models[0].exchangeabilities
    assert np.log(found / found.sum()) == pytest.approx(np.log(expected / expected.sum()), abs=0.4)
    letters = "".join(data.sequences)
    shares = [letters.count(base) / len(letters) for base in "ACGT"]
    assert result.models[0].frequencies == pytest.approx(shares, abs=0.01)
    assert data.names == tuple("abcdef")


def test_duplicates_and_a_taxon_without_data():
    data = plltool.simulate(SMALL, SIMULATED, 300, seed=3).as_sequences()
    rows = dict(zip(data.names, (row.decode() for row in data.rows), strict=True))
    rows |= {"twin": rows["a"], "empty": "-" * 300}
    result = plltool.search(rows, "STRSYM", seed=1, effort="fast")
    assert set(result.tree.names) == {"(root)", *rows}
    assert result.n_taxa == 8
    assert "root" not in result.newick


# --- supports -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def simulated():
    return plltool.simulate(SMALL, SIMULATED, 500, seed=3).as_sequences()


@pytest.mark.slow
def test_supports_of_a_search(simulated, monkeypatch):
    """All kinds; those of unrooted branches are one at the root, and replicates vote for the true root."""
    monkeypatch.setattr(ultrafast, "UFBOOT_MOST", 3)
    monkeypatch.setattr(ultrafast, "UFBOOT_STEP", 1)
    best = plltool.search(simulated, "STRSYM", seed=1, effort="fast")
    found = plltool.search_supports(best, SUPPORT_KINDS, replicates=1, workers=1).supports
    assert found.tree.is_rooted
    inner = inner_branches(found.tree)
    assert len(inner) == 3  # of 6 taxa
    for kind in SUPPORT_KINDS:
        assert np.all(found.values[kind][inner] >= 0)
    assert np.all(found.values["ufboot"][inner] > 95)
    assert np.all(found.values["abayes"][inner] > 0.95)
    places = found.root_places()
    assert sum(value for _, value in places) <= 100
    assert found.newick("rootstrap").count("(") == 5
    rows = found.as_record()["branches"]
    assert all("(root)" not in row["taxa"] for row in rows)
    assert sorted(sorted(row["taxa"]) for row in rows) == [["a", "b"], ["c", "d"], ["e", "f"]]


def test_replicates_have_roots(simulated):
    """They are the searches of their alignments; rapid ones have roots, too."""
    settings = {"replicates": 1, "seed": 2, "workers": 1, "tree": SMALL, "kinds": ["rootstrap"]}
    found = plltool.bootstrap(simulated, "STRSYM", **settings)
    assert found.supports.tree.is_rooted
    (own,) = plltool.resampled_alignments(simulated, "STRSYM", replicates=1, seed=2)
    assert found.trees[0].is_rooted
    assert found.lnls[0] > plltool.search(own, "STRSYM", effort="fast").lnl - 0.1
    rapid = plltool.bootstrap(simulated, "STRSYM", rapid=True, **settings)
    assert rapid.trees[0].is_rooted
    assert sum(value for _, value in rapid.supports.root_places()) in (0, 100)


def test_supports_by_neighbours(device):
    """SH-aLRT of IQ-TREE 2.0.7, -m UNREST+G4 -te --alrt 1000 --abayes, at its tree and parameters."""
    found = plltool.alrt(PRIMATES, IQTREE_TREE, IQTREE_MODEL, replicates=1000, fixed=True, device=device).supports
    rows = {tuple(sorted(row["taxa"])): row for row in found.as_record()["branches"]}
    assert len(rows) == 9
    for taxa, expected in IQTREE_ALRT.items():
        assert rows[taxa]["sh-alrt"] == pytest.approx(expected[0], abs=5)
        assert rows[taxa]["abayes"] == pytest.approx(expected[1], abs=0.05)


@pytest.mark.slow
@pytest.mark.opencl
def test_devices_agree():
    results = [
        plltool.evaluate(PRIMATES, IQTREE_TREE, "UNREST+G4", device=device, **vw)
        for device, vw in (("numpy", {}), ("opencl", {}), ("opencl", {"vw": 32}))
    ]
    assert results[1].lnl == pytest.approx(results[0].lnl, abs=0.005)
    assert results[2].lnl == pytest.approx(results[0].lnl, abs=0.005)


@pytest.mark.slow
def test_roots_are_hypotheses():
    """Trees that differ in their roots alone, as given and optimised; a tree without a root is refused."""
    swapped = IQTREE_TREE.replace("0.3133336537", "0").replace("2.893039877e-06", "0.3133365467")
    trees = [IQTREE_TREE, swapped]
    fixed = plltool.topology_tests(PRIMATES, trees, IQTREE_MODEL, replicates=100, fixed=True, device="numpy")
    assert fixed.tests.lnl[0] == pytest.approx(IQTREE_LNL, abs=1e-6)
    assert fixed.tests.delta[1] > 0.1
    others = IQTREE_TREE.split("Lemur_catta:0.4004337974):0.3133336537,")[1].rsplit(":", 1)[0]
    lemur = f"(Lemur_catta:0.2,(Tarsius_syrichta:0.5781,{others}:0.3133):0.2);"
    found = plltool.topology_tests(PRIMATES, [IQTREE_TREE, lemur], "STRSYM", replicates=100, device="numpy")
    alone = plltool.evaluate(PRIMATES, IQTREE_TREE, "STRSYM", root_scan=True, device="numpy")
    assert found.tests.lnl[0] == pytest.approx(alone.lnl, abs=0.02)
    place = next(place for place in alone.root_places if place.taxa == ("Lemur_catta",))
    assert found.tests.lnl[1] > place.lnl - 0.02  # all lengths are optimised, not two
    with pytest.raises(InputError, match="tree 2: found no root, expected one, with two branches"):
        plltool.topology_tests(PRIMATES, [IQTREE_TREE, unrooted(IQTREE_TREE)], "STRSYM", replicates=100)


@pytest.mark.opencl
def test_compare_counts_the_root():
    data = plltool.simulate(SMALL, SIMULATED, 200, seed=3).as_sequences()
    devices = Hardware(device="numpy"), Hardware(device="opencl")
    options = plltool.SearchOptions(effort="fast")
    found = plltool.compare(data, *devices, model="STRSYM", options=options)
    assert found.agree
    assert found.a.tree.is_rooted
    elsewhere = add_root(drop_root(found.a.tree), 0)
    assert replace(found, b=replace(found.b, tree=elsewhere)).rf > 0


def test_parts(tmp_path):
    """A part that needs a root and one that does not share a tree."""
    path = tmp_path / "two.part"
    path.write_text(f"{IQTREE_MODEL}, first = 1-400\nJC, second = 401-898\n")
    result = plltool.evaluate(PRIMATES, IQTREE_TREE, path, fixed=True, device="numpy")
    with plltool.Likelihood(PRIMATES, IQTREE_TREE, IQTREE_MODEL, device="numpy") as first:
        expected = [first.site_lnl()[:400].sum()]
    with plltool.Likelihood(PRIMATES, unrooted(IQTREE_TREE), "JC", device="numpy") as second:
        expected.append(second.site_lnl()[400:].sum())
    assert [part.lnl for part in result.parts] == pytest.approx(expected, rel=1e-9)
    assert plltool.evaluate(PRIMATES, IQTREE_TREE, path).lnl > result.lnl + 10


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (
            lambda: plltool.concordance(IQTREE_TREE, alignment=PRIMATES, model="UNREST", likelihood=True),
            "'UNREST' is not time-reversible, but this analysis needs a time-reversible model, such as GTR",
        ),
        (lambda: plltool.evaluate(PRIMATES, IQTREE_TREE, "RY8.8+PSR"), r"\(\+PSR\) need a time-reversible model"),
        (lambda: plltool.simulate(unrooted(SMALL), SIMULATED, 5), "found no root, expected one, with two branches"),
        (lambda: plltool.search(PRIMATES, "UNREST", outgroup="Pan"), "outgroup: not allowed here, because the model"),
        (
            lambda: plltool.evaluate(PRIMATES, IQTREE_TREE, "JC", root_scan=True),
            "is time-reversible, so the root does not matter",
        ),
    ],
)
def test_refused(call, problem):
    with pytest.raises(InputError, match=problem):
        call()


# IQ-TREE 2.0.7 -m UNREST+ASC -te IQTREE_TREE on the variable columns: tree, rates and lnL of its checkpoint
CORRECTED_TREE = (
    "((Tarsius_syrichta:0.4398885649,Lemur_catta:0.3325017666):0.1496438103,((((((Homo_sapiens:0.0667797279,"
    "Pan:0.0925307819):0.0299614665,Gorilla:0.0938296686):0.0953929203,Pongo:0.1756851456):0.0615877943,"
    "Hylobates:0.1913202527):0.1288639293,((Macaca_fuscata:0.0251904238,M_mulatta:0.0345153111):0.0534811999,"
    "(M_fascicularis:0.0811726891,M_sylvanus:0.1554080301):0.0001927327):0.2874642005):0.1012568889,"
    "Saimiri_sciureus:0.4271610452):0.1080882788);"
)
CORRECTED_MODEL = (
    "UNREST{7.271430366/12.5972097/4.002246071/7.113282923/0.537464076/30.89836321/59.75627154/9.022309597/0.0001/"
    "6.632260522/37.7635934/1}+ASC"
)
CORRECTED_LNL = -4621.68956594


@pytest.fixture(scope="module")
def variable_sites():
    """The columns of the primates that cannot be invariable: those without a base that all taxa may have."""
    whole = plltool.read_alignment(PRIMATES)
    rows = [row.decode().upper() for row in whole.rows]
    columns = [[set(IUPAC[letter]) for letter in column] for column in zip(*rows, strict=True)]
    kept = [k for k, column in enumerate(columns) if not set.intersection(*column)]
    return {name: "".join(row[k] for k in kept) for name, row in zip(whole.names, rows, strict=True)}


def test_ascertainment_bias_beside_another_program(variable_sites):
    assert len(next(iter(variable_sites.values()))) == 521
    given = variable_sites, CORRECTED_TREE
    fixed = plltool.evaluate(*given, CORRECTED_MODEL, fixed=True, device="numpy")
    assert fixed.lnl == pytest.approx(CORRECTED_LNL, abs=1e-5)
    found = plltool.search({name: row[:150] for name, row in variable_sites.items()}, "STRSYM+ASC", effort="fast")
    assert found.tree.is_rooted
    with pytest.raises(InputError, match="expected variable columns only"):
        plltool.evaluate(PRIMATES, CORRECTED_TREE, CORRECTED_MODEL)


# --- proteins -----------------------------------------------------------------------------------------------

# IQ-TREE 3 (piqtree 0.7.0), lengths and parameters fixed
PROTEIN_TREE = "((a:0.3,b:0.5):0.15,((c:0.3,d:0.2):0.1,(e:0.2,f:0.4):0.2):0.25);"
PROTEIN_ROWS = (
    "PTNDIKSGACIGYHMMRPAAKQGMDRPVFTHAFKPMIAFDIDKIHKNIPYCTEHTCCGMW",
    "QEWVSKTCDFCFCLTQKMCIPFFLYNLYHAVERDVEAMAKMPNILTAEHLSLSAQCKRGC",
    "YAFQWGAMDTWHIMCLVCKDSISSYKLFDPCMPCQHNLCARQKGCAHKFLQRKCAYLHDQ",
    "LWAIAMYYLLIDAPRYSHYFLWEDGSMIGKWYETVNEHHFNTHDDPTLGRMLAHCHHQIG",
    "PSHEAWGPQSIHFDFAVHYIHGQNNAFWAGTWHTMKEWCVAMTATMDICSMGMFFGTKAI",
    "GCTEARCMCWRKVDVLMQMGEAGVMLMKDRYNFWGTTFMFMYPFMMGNMCKCIALHNAWY",
)
PROTEIN_LNL = [
    ("NQ.bird", -1436.59783118),
    ("NQ.insect", -1409.97346878),
    ("NQ.mammal", -1412.2622698),
    ("NQ.pfam+G4{0.5}", -1299.27636664),
    ("NQ.plant+I{0.2}", -1404.46256221),
    ("NQ.yeast", -1429.53209957),
    ("NONREV{RATES}", -1436.59783118),
]


def test_proteins_beside_another_program(device):
    rows = dict(zip("abcdef", PROTEIN_ROWS, strict=True))
    bird = Model(parse_model("NQ.bird")).exchangeabilities.tolist()
    for text, lnl in PROTEIN_LNL if device == "numpy" else PROTEIN_LNL[3:4]:
        model = text.replace("RATES", "/".join(map(repr, bird)))
        result = plltool.evaluate(rows, PROTEIN_TREE, model, fixed=True, device=device)
        assert result.lnl == pytest.approx(lnl, abs=1e-6)
