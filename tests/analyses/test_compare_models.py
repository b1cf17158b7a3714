"""`compare` of a search on numpy and the same one on an OpenCL device, under models of every kind of data.

The reversible ones; `test_rooted.py` and `test_ascertainment.py` have those with a root and with unseen sites.
"""

import pytest

import plltool

TREE = "((a:0.2,b:0.3):0.15,(c:0.25,d:0.1):0.2,(e:0.3,f:0.2):0.1);"
STEMS = " ".join(f"{k}:{121 - k}" for k in range(1, 61))
AREAS = "MATRIX{NSEW}{1.0/2.0/0.5/1.5/1.0/0.7}+FU{0.3/0.2/0.4/0.1}"
MODELS = {
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


@pytest.mark.opencl
@pytest.mark.parametrize("kind", MODELS)
def test_both_devices_find_the_same(kind):
    """The same topology and, within what the criteria of a search leave open, the same lnL."""
    true, model, n_sites = MODELS[kind]
    data = plltool.simulate(TREE, true, n_sites, seed=2).as_sequences()
    devices = plltool.Hardware("numpy"), plltool.Hardware("opencl")
    found = plltool.compare(data, *devices, model=model, options=plltool.SearchOptions(effort="fast"))
    assert found.agree, found.describe()
