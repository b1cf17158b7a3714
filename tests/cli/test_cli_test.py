"""`plltool test`: the table, the files, site likelihoods, the API."""

import json
from pathlib import Path

import numpy as np
import pytest
from tree_samples import sides_of_root

from plltool.analyses.topology_tests.analysis import topology_tests
from plltool.run.evaluation import evaluate

QUICK = ("--model", "HKY+F", "--device", "numpy")


@pytest.fixture
def trees(tree, names, tmp_path):
    """The tree of a search behind a random one."""
    path = tmp_path / "trees.nwk"
    path.write_text("((({},{}),{}),({},{}),{});\n".format(*sorted(names)) + Path(tree).read_text())
    return path


def test_files_and_table(plltool, small, trees, tmp_path):
    sites = tmp_path / "s.sitelh"
    arguments = ("--trees", trees, *QUICK, "--replicates", 500, "--prefix", tmp_path / "t", "--site-lnl", sites)
    result = plltool("test", small, *arguments, status=0)
    assert "model optimised on: tree 2" in result.stdout
    record = json.loads((tmp_path / "t.test.json").read_text())
    rows = record["tests"]["trees"]
    assert record["lnl"] == rows[1]["lnl"] > rows[0]["lnl"]
    assert rows[1]["sh"] == 1.0
    assert record["tests"]["model_tree"] == 2
    assert (tmp_path / "t.test.nwk").read_text().split() == [row["tree"] for row in rows]
    lines = sites.read_text().splitlines()
    assert lines[0] == "2 300"
    values = np.array([[float(field) for field in line.split()[1:]] for line in lines[1:]])
    np.testing.assert_allclose(values.sum(axis=1), [row["lnl"] for row in rows], rtol=1e-11)
    again = evaluate(small, rows[1]["tree"], record["model"], fixed=True, device="numpy")
    assert again.lnl == pytest.approx(record["lnl"], rel=1e-11)


def test_the_outgroup_roots_all_trees(small, trees, names):
    """In the first one it is a clade, in the other one not, so that its first taxon is taken there."""
    names = sorted(names)
    found = topology_tests(small, trees, "JC", device="numpy", replicates=10, outgroup=names[3:5]).newicks
    for text, outgroup in zip(found, (names[3:5], names[3:4]), strict=True):
        assert set(outgroup) in sides_of_root(text)


def test_fixed_and_seeds(small, trees):
    settings = {"fixed": True, "device": "numpy", "replicates": 200}
    found = [topology_tests(small, str(trees), "JC", seed=seed, **settings) for seed in (1, 1, 2)]
    assert found[0].model_tree is None
    assert found[0].tests.elw.tolist() == found[1].tests.elw.tolist() != found[2].tests.elw.tolist()
    assert found[0].tree_site_lnl.shape == (2, 300)


def test_one_tree_is_not_enough(plltool, small, trees, tmp_path):
    single = tmp_path / "one.nwk"
    single.write_text(trees.read_text().splitlines()[0])
    plltool("test", small, "--trees", single, *QUICK, status=1, told="expected at least 2")


def test_trees_of_one_topology_get_a_warning(plltool, small, trees, names):
    """The third tree is the first one, written from another node; the second is another."""
    first, second = trees.read_text().split()
    names = sorted(names)
    assert first == "((({},{}),{}),({},{}),{});".format(*names)
    trees.write_text("\n".join([first, second, "(({2},({0},{1})),{5},({4},{3}));".format(*names)]) + "\n")
    result = plltool("test", small, "--trees", trees, *QUICK, "--replicates", 10)
    assert "warning: trees 1, 3 have the same topology" in result.stderr
    assert "+ not rejected, - rejected: p < 0.05, or outside the 95 % set of ELW" in result.stdout.splitlines()
