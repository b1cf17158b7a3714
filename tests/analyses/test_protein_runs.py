"""Proteins from file to tree, and mixtures beside another program."""

import numpy as np
import pytest
from helpers import PROTEIN_SEQUENCES, cherries

from plltool.analyses.search.analysis import search
from plltool.errors import InputError
from plltool.run.evaluation import evaluate

# lnL of avian_ovomucoids.phy on trees/avian.fixed.nwk by IQ-TREE 2.0.7 (-blfix), with its model strings written out:
# MIX{LG4M1,...}*G4{0.7}, LG+FMIX{C10pi1:1:0.119...}+G4{0.7}, MIX{BurEX2:0.672...:0.4,...}. It prints 4 digits. Its C60
# is left out: it raises weights below 0.001, as one of the 60 is.
IQTREE = [
    ("LG+IU{0.1}+G4{0.7}", -3152.8306),
    ("Poisson", -3544.6241),
    ("LG4M+G4{0.7}", -3149.7096),
    ("LG4X+R4{0.2/0.6/1.2/2.5}{0.25/0.3/0.25/0.2}", -3140.4801),
    ("LG+C10+G4{0.7}", -3165.2368),
    ("LG+C20+G4{0.7}", -3128.8386),
    ("LG+C30", -3179.6552),
    ("LG+C40", -3170.6601),
    ("LG+C50", -3170.0419),
    ("EX2{0.4/0.6}+G4{0.7}", -3146.0099),
    # weights and alpha as IQ-TREE optimised them; a weight below 1e-9 is 1e-9
    (
        "LG+C10{0.5544513144/0.01540636855/0.1291936828/1e-9/0.01750446022/1e-9/0.06381895809/0.1249689742/1e-9"
        "/0.04915478565/0.045501456}+F+G4{1.380876917}",
        -3104.2715,
    ),
    ("UL3{0.4/0.4/0.2}", -3181.6095),
]


@pytest.mark.parametrize(("model", "expected"), IQTREE)
def test_another_programs_likelihood(shared, model, expected):
    alignment, tree = shared / "data/avian_ovomucoids.phy", shared / "reference/trees/avian.fixed.nwk"
    result = evaluate(alignment, tree, model, fixed=True, device="numpy")
    assert result.lnl == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("model", [None, "LG+I+G2", "LG4X", "EX2"])
def test_search(model):
    """Pairs that share their replacements end together; lnL does not fall."""
    result = search(PROTEIN_SEQUENCES, model, device="numpy")
    assert result.parameters["data"] == "protein"
    assert model is not None or result.model.startswith("LG+G4{")
    again = evaluate(PROTEIN_SEQUENCES, result.newick, result.model, fixed=True, device="numpy")
    assert again.lnl == pytest.approx(result.lnl, rel=1e-9)
    assert set(map(frozenset, ("ab", "de"))) <= cherries(result.tree)


def test_models_of_other_data_are_refused():
    with pytest.raises(InputError, match=r"found protein data, expected DNA for model 'GTR\+FO\+G4'"):
        search(PROTEIN_SEQUENCES, "GTR+G4", device="numpy")
    bases = dict(zip("abcd", ("ACGT", "ACGA", "ACTA", "AATA"), strict=True))
    with pytest.raises(InputError, match="found DNA data, expected protein for model 'LG'"):
        search(bases, "LG", device="numpy")


def test_sites_under_a_mixture_sum_to_the_whole():
    tree = "((a:0.1,b:0.2):0.1,c:0.3,(d:0.2,e:0.1):0.2);"
    result = evaluate(PROTEIN_SEQUENCES, tree, "LG+C10+I{0.1}", fixed=True, device="numpy", site_lnl=True)
    assert result.site_lnl.shape == (26,)
    assert np.sum(result.site_lnl) == pytest.approx(result.lnl, rel=1e-12)
