"""Codons from file to tree; `test_reference_rows.py` has them beside IQ-TREE and PAML."""

import numpy as np
import pytest
from helpers import cherries
from small_alignments import write_fasta

import plltool
from plltool.errors import InputError

TREE = "((a:0.1,b:0.2):0.1,c:0.3,(d:0.2,e:0.1):0.2);"


@pytest.fixture(scope="module")
def simulated():
    return plltool.simulate(TREE, "GY{0.2/4.0}+FE", 1200, seed=5).as_sequences()


def test_search(simulated, device):
    result = plltool.search(simulated, "GY+F3X4", device=device, effort="fast")
    assert result.parameters["data"] == "codon"
    omega, kappa = result.models[0].rate_parameters.values()
    assert 0.14 < omega < 0.28  # 400 codons: about three standard errors
    assert 2.8 < kappa < 5.7
    again = plltool.evaluate(simulated, result.newick, result.model, fixed=True, device="numpy")
    assert again.lnl == pytest.approx(result.lnl, rel=1e-9)
    assert set(map(frozenset, ("ab", "de"))) <= cherries(result.tree)


SIMULATIONS = [
    ("MGK{0.3/3}+FE", "MGK+FE", {"omega": (0.2, 0.45), "kappa": (2.1, 4.3)}),
    ("GY1KTV{0.3/0.25}+FE", "GY1KTV+FE", {"omega": (0.2, 0.45), "kappa": (0.17, 0.37)}),
    ("CODON2_GY{0.1/5}+FE", "GY+FE", {"omega": (0.06, 0.16), "kappa": (3.5, 7.2)}),
    ("ECMK07_GY{0.5/3}", "ECMK07_GY", {"omega": (0.33, 0.75), "kappa": (2.1, 4.3)}),
    ("M1a{0.05/3}{0.7/0.3}+FE", "M1a+FE", {"omega0": (0.0, 0.2), "kappa": (2.1, 4.3)}),
    pytest.param(
        "M3{0.05/0.5/4.0/3.0}{0.5/0.3/0.2}+FE", "M3+FE", {"omega2": (2.0, 9.0), "kappa": (2.1, 4.3)},
        marks=pytest.mark.slow,
    ),
    pytest.param(
        "M2a{0.1/5.0/3.0}{0.6/0.2/0.2}+FE", "M2a+FE", {"omega2": (2.5, 10.0), "kappa": (2.1, 4.3)},
        marks=pytest.mark.slow,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("truth", "model", "ranges"), SIMULATIONS)
def test_simulation_recovers_parameters(truth, model, ranges):
    data = plltool.simulate(TREE, truth, 1200, seed=11).as_sequences()
    found = plltool.evaluate(data, TREE, model, device="numpy").models[0].rate_parameters
    for name, (low, high) in ranges.items():
        assert low < found[name] < high, found


def test_what_is_shown_of_a_codon_model(simulated, tmp_path):
    result = plltool.evaluate(simulated, TREE, "M1a{0.1/2.5}{0.75/0.25}+F", fixed=True, device="numpy")
    assert result.describe_models() == [
        "model: M1a{0.1/2.5}{0.75/0.25}+F{61 values, see the record}",
        "rates: omega0 0.1, kappa 2.5, weights 0.75/0.25",
    ]
    record = tmp_path / "run.json"
    record.write_text(result.to_json())
    assert plltool.evaluate(simulated, TREE, str(record), fixed=True, device="numpy").lnl == result.lnl
    scheme = tmp_path / "genes.part"
    scheme.write_text("GY{0.2/4}+F, gene = 1-600\nJC, rest = 601-1200\n")
    parts = plltool.evaluate(simulated, TREE, str(scheme), fixed=True, device="numpy", brlen="linked")
    first, rates, last = parts.describe_models()
    assert first.endswith(", 200 sites, model GY{0.2/4}+F{61 values, see the record}")
    assert (rates, last.endswith(", 600 sites, model JC")) == ("partition gene: omega 0.2, kappa 4", True)


def test_sites_of_codons_are_named_by_their_first_column(simulated):
    result = plltool.evaluate(simulated, TREE, "GY{0.2/4}+FE", fixed=True, site_lnl=True, device="numpy")
    assert result.site_lnl.shape == (1200,)
    assert np.isnan(result.site_lnl).tolist() == [False, True, True] * 400
    assert np.nansum(result.site_lnl) == pytest.approx(result.lnl, rel=1e-12)


def test_ancestors_are_sequences_of_bases(simulated):
    result = plltool.ancestral_states(simulated, TREE, "GY{0.2/4}+FE", device="numpy", fixed=True)
    assert result.ancestors[0].probabilities.shape == (3, 400, 61)
    best = result.ancestors[0].probabilities[0].argmax(axis=1)
    symbols = result.models[0].spec.symbols
    assert result.sequences()[result.nodes[0]] == "".join(symbols[k] for k in best)
    assert all(set(row) <= set("ACGT") and len(row) == 1200 for row in result.sequences().values())


def test_codons_beside_dna(simulated, tmp_path):
    scheme = tmp_path / "genes.part"
    scheme.write_text("GY+F3X4, gene = 1-600\nCODON, other = 601-900\nJC, rest = 901-1200\n")
    result = plltool.evaluate(simulated, TREE, str(scheme), fixed=True, device="numpy")
    assert [part.n_sites for part in result.parts] == [200, 100, 300]
    alone = plltool.evaluate(simulated, TREE, "JC, rest = 901-1200", fixed=True, device="numpy")
    assert result.parts[2].lnl == pytest.approx(alone.lnl, rel=1e-9)


def test_the_data_type_says_which_code_a_model_has(simulated, tmp_path):
    rows = dict(zip(simulated.names, (row.decode() for row in simulated.rows), strict=True))
    file = write_fasta(tmp_path / "x.fasta", rows)
    result = plltool.evaluate(plltool.read_alignment(file, "codon5"), TREE, "GY+F3X4", fixed=True, device="numpy")
    assert result.model.startswith("CODON5_GY{")
    default = plltool.evaluate(plltool.read_alignment(file, "codon"), TREE, fixed=True, device="numpy")
    assert default.parameters["spec"] == "GY+F3X4"
    with pytest.raises(InputError, match=r"found codon5 data, expected codon2 for model 'CODON2_GY\+F'"):
        plltool.evaluate(plltool.read_alignment(file, "codon5"), TREE, "CODON2_GY", fixed=True, device="numpy")


def test_resampled_alignments_keep_codons_together(simulated):
    made = next(plltool.resampled_alignments(simulated, "GY+F3X4", replicates=1))
    codons = {row[k : k + 3] for row in simulated.rows for k in range(0, 1200, 3)}
    assert {row[k : k + 3] for row in made.rows for k in range(0, 1200, 3)} <= codons


def test_simulations_need_whole_codons():
    with pytest.raises(InputError, match="sites: found 100 of codon data, expected a multiple of 3"):
        plltool.simulate(TREE, "GY{0.2/4}+FE", 100)
    with pytest.raises(InputError, match="counts frequencies in an alignment"):
        plltool.simulate(TREE, "GY{0.2/4}+F3X4", 99)
