"""Nodes of more than three branches that stay as they are: lnL beside an oracle and IQ-TREE, and what is written."""

from itertools import combinations

import dendropy
import numpy as np
import pytest
from oracles.likelihood import pruning
from oracles.substitution import q_matrix

import plltool
from plltool import InputError
from plltool.constants import MIN_BRANCH_LENGTH

STAR = "(a:0.1,b:0.2,c:0.15,d:0.3,e:0.05);"
ROWS = {"a": "AACGTACG", "b": "AACGTTCA", "c": "ACCGTTNA", "d": "GACTTTCA", "e": "AACGAACG"}
TWO_CLADES = (
    "(Tarsius_syrichta,Lemur_catta,(Homo_sapiens,Pan,Gorilla,Pongo),Hylobates,"
    "(Macaca_fuscata,M_mulatta,M_fascicularis,M_sylvanus),Saimiri_sciureus);"
)
FOUR_CLADES = (
    "((Tarsius_syrichta,Lemur_catta),Saimiri_sciureus,((Homo_sapiens,Pan,Gorilla),Pongo,Hylobates),"
    "(Macaca_fuscata,M_mulatta,M_fascicularis,M_sylvanus));"
)
# lnL and the number of parameters by IQ-TREE 2.0.7, `iqtree2 -s primates.phy -m MODEL -te TREE`
IQTREE = [
    (TWO_CLADES, "JC", -6740.1862, 14),
    (TWO_CLADES, "HKY+FC+G4", -5839.5453, 19),
    (FOUR_CLADES, "JC", -6564.5493, 16),
    (FOUR_CLADES, "HKY+FC+G4", -5768.8296, 21),
]
PRECISION = 0.01  # lnL: IQ-TREE stops when a round gains less
NUMPY = {"device": "numpy"}


def distance(newick, other):
    return plltool.tree_distances([newick, other])[0, 1]


@pytest.mark.parametrize(("tree", "model", "lnl", "n_parameters"), IQTREE)
def test_lnl_is_that_of_iqtree(tree, model, lnl, n_parameters, primates):
    found = plltool.evaluate(primates, tree, model)
    assert found.lnl == pytest.approx(lnl, abs=PRECISION)
    assert found.scores["n_parameters"] == n_parameters
    assert distance(found.newick, tree) == 0
    again = plltool.evaluate(primates, found.newick, found.models, fixed=True)
    assert again.lnl == pytest.approx(found.lnl, rel=1e-11)


@pytest.fixture
def expected():
    """lnL of the star by an oracle, which knows nodes of any degree."""
    frequencies = [0.1, 0.2, 0.3, 0.4]
    q = q_matrix([1, 3, 1, 1, 3, 1], frequencies)
    columns = [
        [15 if s == "N" else 1 << "ACGT".index(s) for s in column] for column in zip(*ROWS.values(), strict=True)
    ]
    branches = [(tip, 5) for tip in range(5)]
    return lambda lengths: pruning(branches, lengths, columns, [(1.0, frequencies, q)]).sum()


def test_lnl_slopes_and_the_optimum_of_a_star(expected):
    lengths = np.array([0.1, 0.2, 0.15, 0.3, 0.05])
    model = "HKY{3}+FU{0.1/0.2/0.3/0.4}"
    with plltool.Likelihood(ROWS, STAR, model, multifurcations=True, **NUMPY) as likelihood:
        tree = likelihood.tree
        assert likelihood.lnl() == pytest.approx(expected(lengths), rel=1e-12)  # both double
        _, slopes, _ = likelihood.derivatives()
        assert np.array_equal(slopes[tree.added], [0, 0])
        step = 1e-5
        for tip in range(5):
            moved = expected(lengths + step * (np.arange(5) == tip)) - expected(lengths - step * (np.arange(5) == tip))
            # of the central difference
            assert slopes[tree.edges[tip, 0]] == pytest.approx(moved / (2 * step), abs=1e-6)
        lnl = likelihood.optimise()
        tree = likelihood.tree
        assert np.array_equal(tree.lengths[tree.added], [MIN_BRANCH_LENGTH] * 2)
        assert lnl == pytest.approx(expected(tree.lengths[tree.edges[:5, 0]]), rel=1e-12)
        likelihood.tree = FULL
        assert likelihood.tree.added is None, "the branches of the tree before have no length"
        assert likelihood.lnl() > lnl + 0.1


FULL = "((a:0.1,e:0.05):0.5,b:0.2,(c:0.15,d:0.3):0.1);"


def test_parts_with_lengths_of_their_own(expected):
    parts = "HKY{3}+FU{0.1/0.2/0.3/0.4}, one = 1-4\nHKY{3}+FU{0.1/0.2/0.3/0.4}, two = 5-8"
    found = plltool.evaluate(ROWS, STAR, parts, brlen="unlinked", fixed=True, **NUMPY)
    assert found.lnl == pytest.approx(expected([0.1, 0.2, 0.15, 0.3, 0.05]), rel=1e-12)
    assert found.newick.count("(") == 1
    assert [part.newick.count("(") for part in found.parts] == [1, 1]


def test_objects_pictures_and_errors_have_the_nodes(sequences):
    names = list(sequences)
    newick = "({},{},{},{},({},{},{}));".format(*names)
    found = plltool.evaluate(
        sequences, dendropy.Tree.get(data=newick, schema="newick"), "JC", length_errors=True, **NUMPY
    )
    assert len(found.as_record()["branches"]) == len(names) + 1
    for own in (found.tree, found.tree.to_dendropy(), found.tree.to_biopython()):
        assert distance(own, newick) == 0
    branches = plltool.supports(found.tree, [newick, newick]).as_record()["branches"]
    assert [sorted(branch["taxa"]) for branch in branches] == [sorted(names[4:])]
    for pair in combinations(names[:4], 2):  # one of them is a clade of any resolution
        (warning,) = plltool.evaluate(sequences, newick, "JC", outgroup=pair, fixed=True, **NUMPY).warnings[1:]
        assert f"'{pair[0]}' alone is used as the outgroup" in warning


def test_what_needs_binary_trees_refuses_others(sequences):
    newick = "({},{},{},{},({},{},{}));".format(*sequences)
    with pytest.raises(InputError, match="--resolve"):
        plltool.alrt(sequences, newick, "JC", **NUMPY)
    with pytest.raises(InputError, match="--resolve"):
        plltool.evaluate(sequences, newick, "UNREST", **NUMPY)
    kept = plltool.evaluate(sequences, newick, "JC", **NUMPY).tree
    for model in ("JC", "UNREST"):
        with pytest.raises(InputError, match="more than three branches"):
            plltool.search(sequences, model, start=kept, **NUMPY)
