"""Convergence tests of the bootstrap, against RAxML's figures and on sets with known answers."""

import numpy as np
import pytest
from tree_samples import similar_trees

from plltool.io.newick import parse_newick
from plltool.run.inputs import as_tree_set
from plltool.tree.supports import check_convergence, count_splits

# raxmlHPC 8.2.12 -I autoFC|autoMRE -B 0.03 --bootstop-perms=100 -p 1 on similar_trees(20, 200, 2, 3): means over its
# own halvings, hence not to all digits
RAXML_MEANS = {
    "autoFC": {50: 0.899266, 100: 0.955668, 150: 0.971558, 200: 0.979456},
    "autoMRE": {50: 0.0550, 100: 0.0376, 150: 0.0315, 200: 0.0265},
}


@pytest.mark.parametrize("criterion", RAXML_MEANS)
def test_means_are_those_of_raxml(criterion):
    trees = as_tree_set([parse_newick(text, "test") for text in similar_trees(20, 200, 2, 3)])
    for number, mean in RAXML_MEANS[criterion].items():
        found = check_convergence(trees.part(0, number), criterion, np.random.default_rng(1))
        assert found.mean == pytest.approx(mean, abs=0.002)  # both are means of 100, whose standard error is 0.0007
        assert not found.converged  # nor by RAxML


@pytest.mark.parametrize("criterion", RAXML_MEANS)
def test_equal_trees_are_enough(criterion):
    trees = as_tree_set([parse_newick("(a,b,(c,(d,e)));", "test")] * 10)
    found = check_convergence(trees, criterion, np.random.default_rng(1))
    assert found.converged
    assert found.agreeing == 1.0
    assert "10 replicates" in str(found)
    assert count_splits(trees, np.array([1, 4, 5])).tolist() == [3, 3]
