"""Roots by distances and by outgroups, against the definitions written out pair by pair."""

from __future__ import annotations

import itertools
import math

import dendropy
import numpy as np
import pytest

import plltool
from plltool.errors import InputError
from plltool.io.newick import parse_nodes
from plltool.io.newick_writer import write_nodes
from plltool.tree.rooted import place_midpoint, place_minimal_deviation, place_outgroup
from plltool.tree.rooted_nodes import Place, UnrootedNodes

SEEDS = range(6)
FIVE = "(A:1,B:2,(C:3,(D:4,E:5)90:6)80:7);"


def random_newick(seed: int, n_taxa: int = 9) -> str:
    """A random tree with some multifurcations and some branches of length 0."""
    rng = np.random.default_rng(seed)
    parts = [f"t{i}:{rng.exponential():.6f}" for i in range(n_taxa)]
    while len(parts) > 3:
        n_joined = min(len(parts) - 1, int(rng.integers(2, 4)))
        chosen = sorted(rng.choice(len(parts), n_joined, replace=False), reverse=True)
        joined = ",".join(parts.pop(k) for k in chosen)
        parts.append(f"({joined}){rng.integers(100)}:{rng.exponential() * (rng.random() > 0.2):.6f}")
    return f"({','.join(parts)});"


def tree_of(newick: str) -> UnrootedNodes:
    return UnrootedNodes.of(parse_nodes(newick, "test"))


def deviation_score(newick: str) -> float:
    """The score of a rooted tree, pair by pair, as Tria et al. define it."""
    tree = dendropy.Tree.get(data=newick, schema="newick", rooting="force-rooted")
    matrix = tree.phylogenetic_distance_matrix()
    squares = []
    for a, b in itertools.combinations(tree.taxon_namespace, 2):
        distance = matrix.patristic_distance(a, b)
        if distance > 0:
            tip, ancestor = tree.find_node_with_taxon_label(a.label), matrix.mrca(a, b)
            height = 0.0
            while tip is not ancestor:
                height += tip.edge_length
                tip = tip.parent_node
            squares.append((2 * height / distance - 1) ** 2)
    return math.sqrt(np.mean(squares))


@pytest.mark.parametrize("seed", SEEDS)
def test_no_place_has_smaller_deviations(seed):
    tree = tree_of(random_newick(seed))
    place, score, ambiguity = place_minimal_deviation(tree)
    assert deviation_score(write_nodes(tree.rooted_at(place))) == pytest.approx(score, rel=1e-9)
    per_branch = []
    for branch in range(len(tree.ends)):
        places = [Place(branch, share) for share in np.linspace(0, 1, 41)]
        per_branch.append(min(deviation_score(write_nodes(tree.rooted_at(other))) for other in places))
    per_branch.sort()
    assert score <= per_branch[0] + 1e-12
    # the least of the second branch is known on a grid of 1/40 of its length, close to the true one
    assert ambiguity == pytest.approx(score / per_branch[1], rel=0.02)


def test_the_clock_gives_the_root():
    place, score, _ = place_minimal_deviation(tree_of("((A:1,B:1):2,(C:2,D:2):1);"))
    assert score == pytest.approx(0, abs=1e-9)
    assert place.share == pytest.approx(2 / 3) or place.share == pytest.approx(1 / 3)


@pytest.mark.parametrize("seed", SEEDS)
def test_midpoint_halves_the_longest_path(seed):
    tree = tree_of(random_newick(seed))
    rooted = dendropy.Tree.get(
        data=write_nodes(tree.rooted_at(place_midpoint(tree))), schema="newick", rooting="force-rooted"
    )
    longest = max(rooted.phylogenetic_distance_matrix().distances())
    first, second = rooted.seed_node.child_nodes()
    heights = [max(tip.distance_from_root() for tip in side.leaf_iter()) for side in (first, second)]
    assert heights == pytest.approx([longest / 2] * 2)


@pytest.mark.parametrize("outgroup", [["A"], ["A", "B"], ["C", "D", "E"], ["D", "E"], ["A", "B", "C"]])
def test_outgroup_is_one_clade_at_the_root(outgroup):
    tree = tree_of(FIVE)
    rooted = dendropy.Tree.get(
        data=write_nodes(tree.rooted_at(place_outgroup(tree, outgroup))), schema="newick", rooting="force-rooted"
    )
    first, second = rooted.seed_node.child_nodes()
    sides = [{tip.taxon.label for tip in side.leaf_iter()} for side in (first, second)]
    assert set(outgroup) in sides
    assert first.edge_length == second.edge_length


@pytest.mark.parametrize(
    ("outgroup", "newick", "problem"),
    [
        ("AC", FIVE, "the outgroup of 2 taxa is not one clade of the tree"),
        ("X", FIVE, "the outgroup's taxon 'X' is not in the tree"),
        ("", FIVE, "an outgroup must be some of the taxa, found 0 of 5"),
        ("ABCDE", FIVE, "an outgroup must be some of the taxa, found 5 of 5"),
        ("A", "(A,B,A);", "the outgroup's taxon 'A' is in the tree more than once"),
        ("AB", "(A,B,A);", "the outgroup's taxon 'A' is in the tree more than once"),
    ],
)
def test_outgroups_that_are_none(outgroup, newick, problem):
    with pytest.raises(InputError, match=f"^{problem}$"):
        place_outgroup(tree_of(newick), outgroup)


@pytest.mark.parametrize(
    ("place_root", "newick", "problem"),
    [
        (place_midpoint, "(A:1,B,(C:3,D:4):1);", "a branch of the tree has no length"),
        (place_minimal_deviation, "(A:1,B,(C:3,D:4):1);", "a branch of the tree has no length"),
        (place_minimal_deviation, "(A:0,B:0,(C:0,D:0):0);", "all taxa are at distance 0"),
    ],
)
def test_lengths_that_tell_no_root(place_root, newick, problem):
    with pytest.raises(InputError, match=problem):
        place_root(tree_of(newick))


def test_labels_stay_with_their_branches():
    tree = tree_of(FIVE)
    written = write_nodes(tree.rooted_at(place_outgroup(tree, ["D", "E"])))
    assert written == "((D:4.0,E:5.0)90:3.0,((A:1.0,B:2.0)80:7.0,C:3.0)90:3.0);"


@pytest.mark.parametrize("by", ["midpoint", "mad"])
def test_a_tree_of_one_tip_has_no_root(by):
    with pytest.raises(InputError, match="root: tips of the tree: found 1, expected at least 2"):
        list(plltool.root_trees("[x](AD);", by))
