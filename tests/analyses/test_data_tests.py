"""Tests of data: by hand, IQ-TREE's p-values, and the warnings of `check` and `search`."""

import math

import numpy as np
import pytest
from scipy import stats

import plltool
from plltool.alignment.facts import composition_statistic, p_values, symmetry_statistics

NUMPY = {"device": "numpy"}

# iqtree2 2.0.7 --symtest-only: for each test the numbers of significant and other pairs, and the p-value of one pair
SYMMETRY = {
    "pos1": ((4, 62, 0.45818), (7, 56, 0.564507), (0, 59, 0.300964)),
    "pos2": ((0, 66, 0.826541), (0, 60, 0.792836), (0, 54, 0.569618)),
    "pos3": ((13, 53, 0.146653), (16, 50, 0.084677), (0, 61, 0.4098)),
    "rna": ((4, 62, 0.289598), (9, 54, 0.180727), (0, 57, 0.5237)),
    "": ((55, 1774, 0.67514), (64, 1763, 0.495358), (114, 1707, 0.654728)),  # of hard.fasta
}
# its table of all runs, for -m JC: p-values in per cent
COMPOSITION = {
    "primates.phy": {"Tarsius_syrichta": 1.11, "Lemur_catta": 10.98, "Pongo": 4.15, "Saimiri_sciureus": 8.73},
    "hard.fasta": {"t01": 92.95, "t03": 88.88, "t04": 86.34, "t08": 79.26, "t26": 99.67, "t35": 20.46, "t36": 56.96},
}


def test_p_values_are_those_of_scipy():
    degrees = np.array([0, 1, 2, 3, 6, 19, 190, 1891, 4, 5, 1, 2], dtype=float)
    values = np.array([3.0, 0.4, 7.0, 2.5, 14.0, 19.0, 260.0, 2000.0, 1200.0, 1200.0, 0.0, 0.0])
    found = p_values(values[:, None], degrees[:, None])[:, 0]
    assert found == pytest.approx(stats.chi2(degrees).sf(values), rel=1e-11, nan_ok=True)  # log Gamma of up to 950
    assert np.isnan(found).tolist() == (degrees == 0).tolist()
    assert p_values(np.empty((0, 3)), np.empty((0, 3))).shape == (0, 3)


def test_two_states_by_hand():
    """With two states Bowker's test is McNemar's, and so is Stuart's; nothing is left for internal symmetry."""
    values, degrees = symmetry_statistics(np.array([[[50.0, 12.0], [4.0, 30.0]], [[9.0, 0.0], [0.0, 7.0]]]))
    assert values[0].tolist() == pytest.approx([4.0, 4.0, 0.0], rel=1e-14)
    assert degrees.tolist() == [[1, 1, 0], [0, 0, 0]]
    assert p_values(values, degrees)[0, 0] == pytest.approx(math.erfc(math.sqrt(2)), rel=1e-12)
    assert np.isnan(p_values(values, degrees)[0, 2])
    assert np.isnan(p_values(values, degrees)[1]).all()


def test_three_states_by_hand():
    """Cyclic differences: rows and columns have equal sums, so that all asymmetry is internal."""
    table = np.array([[5.0, 8.0, 2.0], [2.0, 5.0, 8.0], [8.0, 2.0, 5.0]])
    values, degrees = symmetry_statistics(table[None])
    assert values[0].tolist() == pytest.approx([3 * 36 / 10, 0.0, 3 * 36 / 10], abs=1e-12)
    assert degrees[0].tolist() == [3, 2, 1]
    assert p_values(np.array([5.0]), np.array([2.0]))[0] == pytest.approx(math.exp(-2.5), rel=1e-12)


def test_composition_by_hand():
    counts = np.array([[30.0, 10.0, 0.0], [20.0, 20.0, 0.0], [0.0, 0.0, 0.0]])
    frequencies = np.array([0.625, 0.375, 0.0])
    expected = [25 / 25 + 25 / 15, 25 / 25 + 25 / 15, 0.0]
    assert composition_statistic(counts, frequencies).tolist() == pytest.approx(expected, rel=1e-14)


@pytest.fixture(scope="module")
def facts(data_dir):
    return {
        "parts": plltool.check(data_dir / "primates.phy", data_dir / "primates.part", **NUMPY),
        **{name: plltool.check(data_dir / name, **NUMPY) for name in COMPOSITION},
    }


def test_symmetry_tests_are_those_of_iqtree(facts):
    parts = [*facts["parts"]["parts"], *facts["hard.fasta"]["parts"]]
    assert {part["name"] for part in parts} == SYMMETRY.keys()
    for part in parts:
        for own, (significant, others, value) in zip(part["symmetry"].values(), SYMMETRY[part["name"]], strict=True):
            assert (own["significant"], own["others"]) == (significant, others)
            assert own["p_value"] == pytest.approx(value, rel=1e-5), "6 digits"


@pytest.mark.parametrize("name", COMPOSITION)
def test_p_values_of_composition_are_those_of_iqtree(name, facts):
    own = facts[name]["parts"][0]["composition"]
    assert len(own) == facts[name]["n_taxa"]
    for taxon, percent in COMPOSITION[name].items():
        assert 100 * own[taxon] == pytest.approx(percent, abs=0.00501), "2 decimals"


def test_pairs_are_counted_in_pieces(facts, data_dir, monkeypatch):
    monkeypatch.setattr("plltool.run.messages._TAXON_CHUNK", 5)
    monkeypatch.setattr("plltool.run.messages._SITE_CHUNK", 64)
    in_pieces = plltool.check(data_dir / "primates.phy", data_dir / "primates.part", **NUMPY)
    assert in_pieces["parts"] == facts["parts"]["parts"]


def test_data_that_are_too_large_for_tests_of_pairs(data_dir, monkeypatch):
    monkeypatch.setattr("plltool.run.messages.MAX_SYMMETRY_WORK", 12**2 * 4**2 * 898)
    assert plltool.check(data_dir / "primates.phy", **NUMPY)["parts"][0]["symmetry"] is not None
    monkeypatch.setattr("plltool.run.messages.MAX_SYMMETRY_WORK", 12**2 * 4**2 * 898 - 1)
    part = plltool.check(data_dir / "primates.phy", **NUMPY)["parts"][0]
    assert part["symmetry"] is None
    assert part["saturation"] is None


def test_warnings_of_composition_are_corrected_for_the_number_of_taxa(facts):
    """IQ-TREE's least p-value among the 12 primates is 1.11 %."""
    assert min(facts["primates.phy"]["parts"][0]["composition"].values()) < 0.05
    assert not any("composition" in line for line in facts["primates.phy"]["warnings"])


def random_rows(frequencies, n_sites=400, n_taxa=6):
    rng = np.random.default_rng(1)
    return {f"t{k}": "".join(rng.choice(list("ACGT"), n_sites, p=frequencies)) for k in range(n_taxa)}


def test_unrelated_sequences_are_saturated():
    rows = random_rows([0.4, 0.3, 0.2, 0.1])
    found = plltool.check(rows, "JC", **NUMPY)
    assert found["parts"][0]["saturation"] == pytest.approx(1.0, abs=0.05), "400 random sites"
    assert any("the data are saturated" in line for line in found["warnings"])
    related = {name: rows["t0"][:380] + row[380:] for name, row in rows.items()}
    found = plltool.check(related, "JC", **NUMPY)
    assert found["parts"][0]["saturation"] == pytest.approx(0.05, abs=0.01), "20 of 400 sites"
    assert not any("saturated" in line for line in found["warnings"])


@pytest.fixture
def related():
    rows = random_rows([0.25] * 4)
    return {name: rows["t0"][:360] + row[360:] for name, row in rows.items()}


def test_a_taxon_of_another_composition(related):
    quiet = plltool.search(related, "JC", effort="fast", **NUMPY)
    assert not any("composition" in line for line in quiet.warnings)
    rich = related | {"t3": related["t3"][:250].replace("A", "G") + related["t3"][250:]}
    told = [line for line in plltool.search(rich, "JC", effort="fast", **NUMPY).warnings if "composition" in line]
    assert told == [
        "the mapping given: 1 taxon differs from the average in base composition: t3;"
        " standard models assume that none does (details: plltool check)"
    ]
    assert told[0] in plltool.check(rich, "JC", **NUMPY)["warnings"]
    parts = plltool.check(rich, "JC, one = 1-200\nJC, two = 201-400", **NUMPY)["warnings"]
    assert sum("partition one: 1 taxon differs from the average in base composition" in line for line in parts) == 1


@pytest.mark.parametrize(("n_sites", "warns"), [(17, True), (18, False)])
def test_more_parameters_than_sites(n_sites, warns, related):
    """6 taxa have 9 branches; GTR+F+G4 has 9 parameters."""
    few = {name: row[360 : 360 + n_sites] for name, row in related.items()}
    for warnings in (plltool.check(few, **NUMPY)["warnings"], plltool.search(few, effort="fast", **NUMPY).warnings):
        told = [line for line in warnings if "free parameters" in line]
        expected = "the mapping given: found 18 free parameters, branch lengths included, for 17 sites; lengths and"
        assert told == ([f"{expected} models will be uncertain"] if warns else [])
    unlinked = plltool.search(
        {name: 2 * row for name, row in few.items()},
        f"JC, one = 1-{n_sites}\nJC, two = {n_sites + 1}-{2 * n_sites}",
        brlen="unlinked",
        effort="fast",
        **NUMPY,
    )
    assert not any("free parameters" in line for line in unlinked.warnings), "18 lengths for 34 sites"


@pytest.mark.parametrize(
    ("letters", "what"), [("ACGT", "SNPs only, --constant-sites A,C,G,T"), ("0123", "variable characters only, +ASC")]
)
def test_a_hint_at_sites_of_which_only_the_variable_ones_were_taken(letters, what):
    rng = np.random.default_rng(2)
    columns = [rng.permutation(list(letters) + list(rng.choice(list(letters), 2))) for _ in range(40)]
    rows = {f"t{k}": "".join(column[k] for column in columns) for k in range(6)}

    def warnings(rows, model=None):
        return [line for line in plltool.check(rows, model)["warnings"] if "no site is constant" in line]

    (found,) = warnings(rows)
    assert f"if they are {what}" in found
    assert "+ASC_LEWIS in the model corrects the lengths for it" in found
    assert not warnings({name: row + letters[0] for name, row in rows.items()})
    assert not warnings(rows, "JC+ASC_LEWIS" if letters == "ACGT" else "MK+ASC_LEWIS")


def test_a_hint_at_characters_that_differ_in_their_numbers_of_states():
    """Two columns of 2 states, one of 4."""
    rows = {"a": "000", "b": "011", "c": "102", "d": "113"}

    def warnings(rows, model=None):
        return [line for line in plltool.check(rows, model, **NUMPY)["warnings"] if "states share" in line]

    (found,) = warnings(rows)
    assert "characters of 2 to 4 states share one model; MULTI*_MK gives each number of states a model" in found
    assert not warnings(rows, "MULTI*_MK")
    assert not warnings({name: row[:2] for name, row in rows.items()})
