"""A model reaches at least the lnL of the models that it contains."""

from functools import cache
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
from helpers import jukes_cantor_mixture, likelihood_of, make_tree, random_ends
from oracles.likelihood import pruning

import plltool
from plltool.model.model import Model
from plltool.model.model_string import parse_model
from plltool.optimise.polish import polish

TOLERANCE = 0.01  # lnL that the criteria of convergence leave open


@pytest.fixture(scope="module")
def even_sites():
    """All patterns of 4 taxa, each as often as expected of a million sites that evolve at one rate, and their best lnL.

    No other distribution of patterns has a higher lnL (Gibbs' inequality), so the best lnL is that of the truth.
    """
    ends, lengths = random_ends(np.random.default_rng(8), 4, 0.3)
    codes = np.array(list(product([1, 2, 4, 8], repeat=4))).T
    site_lnl = pruning(ends.tolist(), lengths, codes.T.tolist(), jukes_cantor_mixture().oracle)
    weights = 1e6 * np.exp(site_lnl)
    return ends, lengths, codes, weights, float(weights @ site_lnl)


@pytest.mark.parametrize("text", ["JC", "JC+G4", "JC+GA4", "JC+I", "JC+I+G4", "K80+R2", "GTR+FO+G4"])
def test_equal_rates_are_reached(even_sites, text):
    """With alpha at most 100 and a share of invariable sites of at least 1e-6, hundreds and 1 lnL were missing."""
    ends, lengths, codes, weights, best = even_sites
    model = Model(parse_model(text))
    likelihood = likelihood_of(make_tree(ends, 1.3 * lengths, 4), codes, weights, model)
    assert best - TOLERANCE < polish(likelihood) < best + 1e-6


DATA = Path(__file__).resolve().parents[2] / "data"
PRIMATES = (
    "(((((((Homo_sapiens,Pan),Gorilla),Pongo),Hylobates),(((Macaca_fuscata,M_mulatta),M_fascicularis),M_sylvanus)),"
    "Saimiri_sciureus),Lemur_catta,Tarsius_syrichta);"
)
FEW = "((a:0.1,b:0.2):0.15,((c:0.3,d:0.1):0.1,(e:0.2,f:0.1):0.2):0.05);"
PROTEINS = "(((a:0.3,b:0.2):0.1,c:0.5):0.2,(d:0.1,e:0.4):0.2,(f:0.6,(g:0.2,h:0.3):0.2):0.1);"
STEMS = " ".join(f"{column}:{161 - column}" for column in range(1, 81))
SIMULATED = {  # tree, model and number of columns
    "proteins": (PROTEINS, "LG+G4{0.6}", 200),
    "rooted": (FEW, "UNREST{2/5/1/0.5/1/9/3/1/0.6/1.5/8/1}+G4{0.6}", 300),
    "multistate": (FEW, "MULTI4_MK+G4{0.6}", 200),
    "codons": (FEW, "M2a{0.1/3.0/2.5}{0.5/0.3/0.2}+FE", 120),
    "doublets": (FEW, f"S16A{{3/1/0.5/1/0.7}}+FE+G4{{0.6}}, stems = {STEMS}", 160),
    "switching": (FEW, "HKY{4}+FU{0.4/0.1/0.2/0.3}+G4{0.8}+COV{0.5/1.0}", 400),
    "genotypes": (FEW, "GT16{1/4/1/1/4/1}+FE+G4{0.6}", 150),
}
NESTED = {
    "primates": [
        ["JC", "K80", "HKY+FO", "GTR+FO", "GTR+FO+I", "GTR+FO+I+G4"],
        ["GTR+FO", "GTR+FO+G4", "GTR+FO+I+G4"],
        ["K80", "K80+R2", "K80+R3", "K80+R4"],
        ["K80+G4", "K80+R4"],
        ["K80+I", "K80+I+G4"],
        ["K80+GA4", "K80+I+GA4"],
    ],
    "simulated": [["HKY+F", "HKY+F+I", "HKY+F+I+G4"], ["HKY+F+G4", "HKY+F+I+G4"], ["HKY+F+G4", "HKY+F+R4"]],
    "rooted": [
        ["RY3.3b", "RY4.5b", "RY6.7b", "RY10.34", "UNREST"],
        ["1.1", "STRSYM", "WS10.12", "UNREST", "UNREST+I", "UNREST+I+G4"],
        ["STRSYM+G4", "STRSYM+I+G4"],
        ["STRSYM+G4", "STRSYM+R4"],
    ],
    "multistate": [
        ["MK", "MK+I", "MK+I+G4"],
        ["MK+G4", "MK+I+G4"],
        ["MK+G4", "MK+R4"],
        ["MK", "MK+FO", "MULTI4_GTR+FO"],
        ["ORDERED", "ORDERED+FO", "ORDERED+FO+G4"],
    ],
    "codons": [
        ["GY0K+FE", "GY+FE", "M1a+FE", "M2a+FE"],
        ["GY+FE", "GY+FE+I", "GY+FE+I+G2"],
        ["GY+FE+G2", "GY+FE+R2"],
        ["ECMK07", "ECMK07_GY0K", "ECMK07_GY1KTV", "ECMK07_GY2K"],
        ["ECMK07_GY", "ECMK07_GY2K"],
    ],
    "doublets": [
        ["S16B+FE", "S16A+FE", "S16A+FO"],
        ["S16A+FE", "S16A+FE+I", "S16A+FE+I+G2"],
        ["S16A+FE+G2", "S16A+FE+R2"],
    ],
    "switching": [
        ["HKY+F", "HKY+F+COV", "HKY+F+G2+COV"],
        ["HKY+F+G2", "HKY+F+G2+COV"],
        ["JC+COV", "K80+COV", "HKY+FO+COV"],
    ],
    "genotypes": [
        ["GT16+FE", "GT16+FE+I", "GT16+FE+I+G2"],
        ["GT16+FE+G2", "GT16+FE+R2"],
        ["GT16+FE", "GT16+FO", "GT16+FO+G2"],
    ],
    "proteins": [["LG", "LG+I", "LG+I+G4"], ["LG+G4", "LG+I+G4"], ["LG+G4", "LG+R4"]],
}


@cache
def optimised(name, model):
    """lnL of a data set on its tree, lengths and model optimised from the usual start values."""
    if name in SIMULATED:
        tree, truth, n_sites = SIMULATED[name]
        alignment = plltool.simulate(tree, truth, n_sites, seed=5).as_sequences()
    elif name == "primates":
        alignment, tree = DATA / "primates.phy", PRIMATES
    else:
        alignment = plltool.read_alignment(DATA / "simulated.fasta")
        tree = plltool.search(alignment, model="JC", effort="fast", seed=1).tree
    device = "numpy" if name == "codons" else "auto"  # of 61 states, compiling takes longer
    columns = f", stems = {STEMS}" if name == "doublets" else ""
    return plltool.evaluate(alignment, tree, model + columns, device=device).lnl


@pytest.mark.parametrize(
    ("name", "inner", "outer"),
    [(name, *pair) for name, chains in NESTED.items() for chain in chains for pair in pairwise(chain)],
)
def test_nested_models_are_never_above(name, inner, outer):
    assert optimised(name, outer) > optimised(name, inner) - TOLERANCE
