"""Consensus trees against dendropy, RAxML and small examples by hand."""

import shutil
import subprocess
from collections import Counter

import pytest
from dendropy import TreeList
from tree_samples import dendropy_list, dendropy_sides, mixed_trees, similar_trees

from plltool.analyses.toolbox.trees import consensus, write_consensus
from plltool.errors import InputError
from plltool.io.tree_files import read_tree_set
from plltool.tree.supports import make_consensus

SAMPLES = [(9, 11, 1), (30, 15, 4), (80, 21, 6)]  # taxa, trees (odd: no split in just half of them), swaps


@pytest.fixture(params=[(make, *sample) for make in (similar_trees, mixed_trees) for sample in SAMPLES])
def path(request, tmp_path):
    make, *sample = request.param
    path = tmp_path / "trees.nwk"
    path.write_text("\n".join(make(*sample, seed=9)) + "\n")
    return path


def sides(newick):
    """For each inner branch of a consensus tree: the taxa on the side without t0, label, length."""
    (tree,) = trees = TreeList.get(data="[&U]" + newick, schema="newick")
    everyone = everyone_in(trees)
    found = {}
    for node in tree.preorder_internal_node_iter(exclude_seed_node=True):
        names = canonical(frozenset(leaf.taxon.label for leaf in node.leaf_iter()), everyone)
        found[names] = (node.label, node.edge_length)
    return found


def canonical(names, everyone):
    return names if "t0" not in names else everyone - names


def inner_sides(tree, everyone):
    return {canonical(side, everyone) for side in dendropy_sides(tree) if 1 < len(side) < len(everyone) - 1}


def everyone_in(trees):
    return frozenset(taxon.label for taxon in trees.taxon_namespace)


def test_majority_rule_and_strict_are_those_of_dendropy(path):
    trees = dendropy_list(path.read_text().splitlines())
    everyone = everyone_in(trees)
    expected = inner_sides(trees.consensus(min_freq=0.5), everyone)
    all_sides = [inner_sides(tree, everyone) for tree in trees]
    found = sides(write_consensus(consensus(path)))
    assert found.keys() == expected
    for side, (label, _) in found.items():
        assert float(label) == pytest.approx(100 * sum(side in own for own in all_sides) / len(trees), rel=1e-5)
    assert sides(write_consensus(consensus(path, "strict"))).keys() == set.intersection(*all_sides)


@pytest.mark.parametrize("newick", ["(a);", "(a,b);", "(a,b,c);"])
def test_the_consensus_of_a_tree_without_splits_is_the_tree(tmp_path, newick):
    path = tmp_path / "few.nwk"
    path.write_text(newick)
    assert write_consensus(consensus(path)) == newick


def run_raxml(path, rule, folder):
    command = ["raxmlHPC", "-J", rule, "-z", str(path), "-n", rule, "-m", "GTRCAT", "-p", "1", "-w", str(folder)]
    subprocess.run(command, check=True, capture_output=True, timeout=600)
    (result,) = folder.glob(f"RAxML_*Consensus*{rule}")
    return result.read_text()


@pytest.mark.parametrize("rule", ["STRICT", "MR", "MRE"])
def test_rules_are_those_of_raxml(path, rule, tmp_path):
    if shutil.which("raxmlHPC") is None:
        pytest.skip("raxmlHPC is not installed")
    trees = dendropy_list(path.read_text().splitlines())
    everyone = everyone_in(trees)
    (theirs,) = TreeList.get(data="[&U]" + run_raxml(path, rule, tmp_path), schema="newick")
    found = consensus(path, {"STRICT": "strict", "MR": "majority", "MRE": "extended"}[rule])
    ours = sides(write_consensus(found)).keys()
    expected = inner_sides(theirs, everyone)
    if rule != "MRE":
        assert ours == expected
    counts = Counter(side for tree in trees for side in inner_sides(tree, everyone))
    # of splits that are as frequent and contradict each other, RAxML may take another one
    assert sorted(counts[side] for side in ours - expected) == sorted(counts[side] for side in expected - ours)


def test_extended_by_hand(tmp_path):
    path = tmp_path / "trees.nwk"
    path.write_text("(a,b,(c,(d,(e,f))));\n(a,b,(c,(d,(e,f))));\n(a,b,(e,(d,(c,f))));\n(a,c,(b,(e,(d,f))));\n")
    trees = read_tree_set([path])
    # 3 of 4 have cdef, 3 have def, 2 have ef; the others contradict one of these
    assert write_consensus(make_consensus(trees)) == "(a,b,(c,(d,e,f)75)75);"
    assert write_consensus(make_consensus(trees, "extended")) == "(a,b,(c,(d,(e,f)50)75)75);"
    assert write_consensus(make_consensus(trees, "majority", 0.75)) == "(a,b,c,d,e,f);"
    assert write_consensus(make_consensus(trees, "strict")) == "(a,b,c,d,e,f);"


def test_lengths_are_means_where_the_branch_is(tmp_path):
    path = tmp_path / "trees.nwk"
    path.write_text("(a:1,b:1,(c:1,d:1):1);\n(a:1,b:1,(c:1,d:1):4);\n(a:1,c:1,(b:4,d:1):9);\n")
    assert write_consensus(consensus(path)) == "(a:1.0,b:2.0,(c:1.0,d:1.0)66.6667:2.5);"


def test_bad_rules(path):
    with pytest.raises(InputError, match="rule: found 'x', expected one of: strict, majority, extended"):
        consensus(path, "x")
    with pytest.raises(InputError, match=r"threshold: found 0.4, expected a share from 0.5 to below 1"):
        consensus(path, threshold=0.4)
