"""Distances between many trees at once, against dendropy."""

import numpy as np
import pytest
from dendropy.calculate import treecompare
from tree_samples import dendropy_list, mixed_trees, similar_trees

from plltool.analyses.toolbox.trees import tree_distances
from plltool.errors import InputError
from plltool.io.newick import parse_newick
from plltool.io.tree_files import read_tree_set
from plltool.run.inputs import as_tree_set
from plltool.tree.splits import branch_score_distance, distances

SAMPLES = [(5, 4, 1), (12, 9, 2), (70, 12, 3)]  # taxa, trees, swaps; 70 taxa are more than a word


@pytest.fixture(params=SAMPLES, ids=str)
def texts(request):
    return similar_trees(*request.param, seed=4)


@pytest.fixture(params=SAMPLES, ids=str)
def mixed(request):
    return mixed_trees(*request.param, seed=4)


@pytest.fixture
def path(texts, tmp_path):
    path = tmp_path / "trees.nwk"
    path.write_text("\n".join(texts) + "\n")
    return path


def dendropy_distances(texts, distance):
    trees = dendropy_list(texts)
    return np.array([[distance(a, b) for b in trees] for a in trees])


def test_distances_are_those_of_dendropy(texts, path):
    assert (distances(read_tree_set([path])) == dendropy_distances(texts, treecompare.symmetric_difference)).all()
    weighted = dendropy_distances(texts, treecompare.weighted_robinson_foulds_distance)
    np.testing.assert_allclose(tree_distances(path, "wrf"), weighted, rtol=1e-12, atol=1e-12)
    score = dendropy_distances(texts, treecompare.euclidean_distance)
    np.testing.assert_allclose(tree_distances(path, "branch-score"), score, rtol=1e-7, atol=1e-7)  # root of differences


def test_distances_of_trees_of_mixed_resolution_are_those_of_dendropy(mixed, tmp_path):
    path = tmp_path / "mixed.nwk"
    path.write_text("\n".join(mixed))
    found = distances(read_tree_set([path]))
    assert (found == dendropy_distances(mixed, treecompare.symmetric_difference)).all()
    weighted = dendropy_distances(mixed, treecompare.weighted_robinson_foulds_distance)
    np.testing.assert_allclose(tree_distances(path, "wrf"), weighted, rtol=1e-12, atol=1e-12)
    assert found.max() > 0


def test_distances_of_tree_objects(texts):
    trees = [parse_newick(text, "test") for text in texts]
    assert tree_distances(trees, "branch-score")[0, 2] == pytest.approx(branch_score_distance(trees[0], trees[2]))
    assert (np.diag(tree_distances(trees, "branch-score")) == 0).all()


def test_multifurcations_and_roots(tmp_path):
    path = tmp_path / "trees.nwk"
    path.write_text("((a:1,b:1):1,(c:1,d:1,e:1):2);\n(a,b,(c,(d,e)));\n(a,b,c,d,e);")
    assert distances(read_tree_set([path])).tolist() == [[0, 1, 1], [1, 0, 2], [1, 2, 0]]
    trees = read_tree_set([path])
    assert trees.lengths[:1].tolist() == [3.0]  # both branches of the root are one
    with pytest.raises(InputError, match="tree 2 of 3: found a branch without length, expected one for each"):
        distances(trees, "wrf")


def test_several_files_and_nexus(texts, path, tmp_path):
    nexus = tmp_path / "trees.nex"
    dendropy_list(texts).write(path=str(nexus), schema="nexus")
    both = read_tree_set([path, nexus])
    n = len(texts)
    assert both.n_trees == 2 * n
    found = distances(both, "wrf")
    np.testing.assert_allclose(found[:n, n:], found[:n, :n], rtol=1e-12, atol=1e-12)
    assert (distances(both.part(n, 2 * n)) == distances(both)[n:, n:]).all()


def test_errors(tmp_path, path):
    other = tmp_path / "other.nwk"
    other.write_text("(a,b,(c,d));\n(a,b,(c,x));")
    with pytest.raises(InputError, match=r"other.nwk: tree 2: the taxa are not those of the first tree: .*'d'"):
        read_tree_set([other])
    other.write_text("\n")
    with pytest.raises(InputError, match=r"other.nwk: found no tree, expected at least one"):
        read_tree_set([other])
    other.write_text("(a,b,(c,d));\n(a,b;")
    with pytest.raises(InputError, match=r"other.nwk:2:5: found ';', expected"):
        read_tree_set([other])
    other.write_text("#NEXUS\nbegin trees; tree x = (a,b; end;")
    with pytest.raises(InputError, match=r"other.nwk: line 2: tree 'x':1:6: found ';', expected"):
        read_tree_set([other])
    with pytest.raises(InputError, match="distance: found 'x', expected one of: rf, wrf, branch-score"):
        tree_distances(path, "x")
    with pytest.raises(InputError, match="found no trees, expected at least one"):
        as_tree_set([])
