"""The bootstrap command, and supports that a search makes."""

import json

import pytest

from plltool.io.tree_files import read_tree_set
from plltool.tree.tree_set import distances


def test_bootstrap(plltool, small, tmp_path):
    common = ("bootstrap", small, "--replicates", "3", "--model", "JC", "--device", "numpy", "--workers", "1")
    done = plltool(*common, "--prefix", tmp_path / "run", "--write-replicates")
    assert done.exit_code == 0, done.stderr
    trees = tmp_path / "run.bootstraps.nwk"
    assert f"bootstrap trees: {trees} (3 replicates, " in done.stdout
    assert "round 3/3" in done.stderr
    assert len(trees.read_text().splitlines()) == 3
    assert sorted(path.name for path in tmp_path.glob("run.replicate.*")) == [
        f"run.replicate.{k}.fasta" for k in (1, 2, 3)
    ]
    # a resampled alignment leads to its replicate's tree
    again = plltool(
        *("search", tmp_path / "run.replicate.2.fasta", "--model", "JC", "--device", "numpy", "--effort", "fast")
    )
    assert again.exit_code == 0, again.stderr
    both = read_tree_set([trees, tmp_path / "run.replicate.2.fasta.plltool.best.nwk"])
    assert distances(both)[1, 3] <= 2  # of 6: another start tree may end at another optimum
    refused = plltool(*common, "--prefix", tmp_path / "run")
    assert refused.exit_code == 1
    assert "run.bootstraps.nwk: exists already" in refused.stderr
    tree = tmp_path / "tree.nwk"
    tree.write_text(trees.read_text().splitlines()[0])
    mapped = plltool(*common, "--prefix", tmp_path / "run", "--tree", tree, "--supports", "fbp,tbe", "--redo")
    assert mapped.exit_code == 0, mapped.stderr
    assert (tmp_path / "run.support.tbe.nwk").exists()


@pytest.mark.parametrize("number", ["0", "-3", "many", "1.5"])
def test_numbers_of_replicates(plltool, small, number):
    done = plltool("bootstrap", small, "--replicates", number)
    assert done.exit_code == 2
    assert "expected a whole number from 1 on, or one of: auto, autoMRE, autoFC" in done.stderr


def test_a_search_with_supports(plltool, small, tmp_path):
    done = plltool(
        *("search", small, "--model", "JC", "--device", "numpy", "--effort", "fast", "--workers", "1"),
        *("--bootstrap", "2", "--supports", "fbp,tbe", "--prefix", tmp_path / "run"),
    )
    assert done.exit_code == 0, done.stderr
    record = json.loads((tmp_path / "run.support.json").read_text())
    assert list(record["kinds"]) == ["fbp", "tbe"]
    assert record["kinds"]["fbp"]["replicates"] == 2
    assert {branch["fbp"] for branch in record["branches"]} <= {0, 50, 100}
    assert len(record["branches"]) == 3
    lines = done.stdout.splitlines()
    assert any(line.endswith("(2 trees)") and "run.support.fbp.nwk" in line for line in lines)
    again = plltool("search", small, "--supports", "ufboot", "--prefix", tmp_path / "run2", "--bootstrap", "x")
    assert again.exit_code == 2


def test_supports_that_make_no_sense(plltool, small):
    done = plltool("search", small, "--supports", "tbe")
    assert done.exit_code == 2
    assert "--supports tbe takes replicates: --bootstrap N or --bootstrap auto" in done.stderr
    done = plltool("search", small, "--supports", "x")
    assert done.exit_code == 1
    assert done.stderr.strip().endswith("supports: found 'x', expected some of: fbp, tbe, ufboot, sh-alrt, abayes")
    assert plltool("search", small, "--write-replicates").exit_code == 2
