"""numpy and an OpenCL device: lnL of a fixed tree and `compare` of searches, under models of every kind of data.

The reversible ones; `test_rooted.py` and `test_ascertainment.py` have those with a root and with unseen sites.
"""

import pytest
from helpers import PROTEIN_SEQUENCES

import plltool

TREE = "((a:0.2,b:0.3):0.15,(c:0.25,d:0.1):0.2,(e:0.3,f:0.2):0.1);"
STEMS = " ".join(f"{k}:{121 - k}" for k in range(1, 61))
AREAS = "MATRIX{NSEW}{1.0/2.0/0.5/1.5/1.0/0.7}+FU{0.3/0.2/0.4/0.1}"
MODELS = {
    "DNA": ("HKY{1/4}+FU{0.3/0.2/0.2/0.3}+G4{0.5}", "GTR+F+G4", 150),
    "codon": ("GY{0.3/2.5}+FE", "GY+F1X4", 60),
    "codon classes": ("M2a{0.1/3.0/2.0}{0.5/0.3/0.2}+FE", "M2a+FE", 60),
    "multistate": ("MULTI3_MK+G4{0.7}", "MULTI3_GTR+F+G4", 80),
    "ordered": ("MULTI4_ORDERED", "MULTI4_ORDERED+G4", 120),
    "doublet": (f"S16A{{3/1/0.5/1/0.7}}+FE, stems = {STEMS}", f"S16A+F, stems = {STEMS}", 120),
    "covarion": ("K80{1/4}+COV{0.5/1.0}", "HKY+F+COV", 150),
    "genotype": ("GT10{1/2/1/1/2/1}+FE", "GT10+FE", 120),
    "genotype with phase": ("GT16{1/2/1/1/2/1}+FE", "GT16+FE", 120),
    "own states": (AREAS, f"{AREAS}+G4", 120),
}


PROTEIN_MODELS = ["LG+IU{0.1}+G4{0.7}", "LG4M+G4{0.7}", "LG+C10+G4{0.7}", "EX2{0.4/0.6}+G2{0.7}"]
FIXED = [
    *((data, model, None) for data, (model, _, _) in MODELS.items() if data != "doublet"),
    *((PROTEIN_SEQUENCES, model, None) for model in PROTEIN_MODELS),
    ("codon", "GY{0.2/4.0}+F3X4+G4{0.6}", None),
    ("multistate", "MK+I{0.1}+G2{0.7}", None),
    pytest.param("codon", "M2a{0.1/3.0/2.5}{0.5/0.3/0.2}+FE", 32, marks=pytest.mark.slow),  # PoCL compiles for 10 s
]


def simulate(kind):
    true, _, n_sites = MODELS[kind]
    return plltool.simulate(TREE, true, n_sites, seed=2).as_sequences()


@pytest.mark.opencl
@pytest.mark.usefixtures("unoptimised")
@pytest.mark.parametrize(("data", "model", "vw"), FIXED)
def test_lnl_of_a_fixed_tree(data, model, vw):
    rows, tree = (data, "((a,b),c,(d,e));") if isinstance(data, dict) else (simulate(data), TREE)
    settings = {"numpy": {}, "opencl": {"vw": vw}}
    found = [plltool.evaluate(rows, tree, model, fixed=True, device=name, **own).lnl for name, own in settings.items()]
    assert found[1] == pytest.approx(found[0], rel=1e-11)


@pytest.mark.opencl
@pytest.mark.parametrize("kind", MODELS)
def test_both_devices_find_the_same(kind):
    """The same topology and, within what the criteria of a search leave open, the same lnL."""
    _, model, _ = MODELS[kind]
    devices = plltool.Hardware("numpy"), plltool.Hardware("opencl")
    found = plltool.compare(simulate(kind), *devices, model=model, options=plltool.SearchOptions(effort="fast"))
    assert found.agree, found.describe()
