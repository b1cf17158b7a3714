"""A tree with all queries placed: against the places that jplace has, brute force over all trees, and dendropy."""

import dendropy
import numpy as np
import pytest
from dendropy.calculate.treecompare import symmetric_difference
from oracles.likelihood import pruning
from test_place import COMPONENTS, GAMMA, QUERIES, QUICK, ROWS, STATES, TREE, sequences, simulated
from tree_samples import sides_of_root

import plltool
from plltool.analyses.placement.analysis import _best_apart, insert_tips
from plltool.analyses.placement.branches import Places
from plltool.io.newick_writer import write_newick
from plltool.run.inputs import as_tree
from plltool.tree.moves import random_tree

NEAR = 1e-3  # lnL: the last steps of the lengths promise less, those of places 1e-4


def read(newick, taxa=None):
    return dendropy.Tree.get(data=newick, schema="newick", preserve_underscores=True, taxon_namespace=taxa)


@pytest.mark.parametrize("name", ["whole", "begin", "end", "as_Rat"])
def test_one_query_is_where_it_is_placed(name, device):
    """With fixed lengths lnL is that of the place."""
    query = sequences({name: QUERIES[name]})
    result = plltool.place(ROWS, TREE, query, GAMMA, graft=True, fixed=True, device=device, raxml_blo=False)
    assert result.grafted.lnl == pytest.approx(result.best()[name].lnl, rel=1e-10)
    free = plltool.place(ROWS, TREE, query, GAMMA, graft=True, device=device)
    gain = free.grafted.lnl - free.best()[name].lnl
    assert gain >= (0.1 if name == "whole" else -NEAR), "all lengths are optimised in the end"


def from_root(tree):
    """The distance of each tip from the root."""
    tree.calc_node_root_distances()
    return {tip.taxon.label: tip.root_distance for tip in tree.leaf_node_iter()}


def test_lengths_end_at_their_optimum():
    """Beside an evaluation of the same tree."""
    result = plltool.place(ROWS, TREE, sequences(QUERIES), GAMMA, graft=True, device="numpy")
    rows = {name: row for name, row in (ROWS | QUERIES).items() if name != "as_end"}
    tree = read(result.grafted.newick)
    tree.prune_taxa_with_labels(["as_end"])
    best = plltool.evaluate(rows, tree.as_string("newick", suppress_rooting=True), GAMMA, device="numpy")
    assert result.grafted.lnl == pytest.approx(best.lnl, abs=NEAR)


@pytest.mark.parametrize("root", [0.01, 0.05, 0.11])
def test_the_root_stays(root):
    """On the branch that a query divides, on either side of the query, whatever the order of taxa in a Tree."""
    rooted = f"((Homo_s:0.1,Pan_t:0.08):{root},(Lemur_c:0.2,(Mus_m:0.1,Rat:0.15):0.21):{0.12 - root});"
    for given in (rooted, *(as_tree(rooted, sorted(ROWS, reverse=falling)) for falling in (False, True))):
        result = plltool.place(ROWS, given, sequences(QUERIES), GAMMA, graft=True, **QUICK)
        tree = read(result.grafted.newick)
        assert len(tree.seed_node.child_nodes()) == 2
        distances, before = from_root(tree), from_root(read(rooted))
        assert {name: distances[name] for name in before} == pytest.approx(before, abs=1e-8)
        assert distances.keys() == ROWS.keys() | QUERIES.keys()


@pytest.mark.parametrize("fixed", [True, False])
def test_lnl_is_that_of_the_oracle(fixed):
    distinct = {name: row for name, row in QUERIES.items() if name != "as_end"}
    result = plltool.place(ROWS, TREE, sequences(distinct), GAMMA, graft=True, device="numpy", fixed=fixed)
    tree, rows = result.grafted.tree, ROWS | distinct
    columns = [[STATES[rows[name][site]] for name in tree.names] for site in range(24)]
    expected = pruning(tree.ends.tolist(), tree.lengths.tolist(), columns, COMPONENTS).sum()
    assert result.grafted.lnl == pytest.approx(expected, rel=1e-10)


def test_identical_queries_are_beside_each_other_and_those_without_data_nowhere():
    rows = QUERIES | {"empty": 24 * "-"}
    result = plltool.place(ROWS, TREE, sequences(rows), GAMMA, graft=True, **QUICK)
    assert result.grafted.tree.names == (*sorted(ROWS), "whole", "begin", "end", "as_end", "as_Rat")
    tree = read(result.grafted.newick)
    for one, other in (("end", "as_end"), ("Rat", "as_Rat")):
        pair = tree.mrca(taxon_labels=[one, other])
        assert {tip.taxon.label for tip in pair.leaf_iter()} == {one, other}
        assert [tip.edge.length for tip in pair.child_nodes()] == pytest.approx([1e-6, 1e-6], rel=1e-9)


@pytest.mark.parametrize("seed", [4, 11])
def test_queries_of_a_clade_that_the_reference_lacks_make_it(seed):
    """The tree on which 2,000 sites evolved is found again, of which the reference lacks half of the taxa."""
    names = [f"t{number}" for number in range(4, 12)]
    rows, newick = simulated(seed, n_taxa=16, mean_length=0.1, n_sites=2000, left_out=names)
    truth = random_tree([f"t{number}" for number in range(16)], np.random.default_rng(seed))
    queries = {name: rows.pop(name) for name in names}
    result = plltool.place(rows, newick, sequences(queries), "JC", graft=True, device="numpy")
    taxa = dendropy.TaxonNamespace()
    found, expected = read(result.grafted.newick, taxa), read(write_newick(truth), taxa)
    assert symmetric_difference(found, expected) == 0


@pytest.mark.parametrize(("later", "n_kept"), [((3, 4), 3), ((1, 4), 1), ((4, 1), 2)])
def test_queries_that_join_at_the_same_time_are_apart(later, n_kept):
    """The best places, until one is beside any before it, as the branches of a and b are."""
    tree = as_tree("((a,b),c,(d,(e,f)));", tuple("abcdef"))
    tips = [0, *later]
    branches = np.repeat(tree.edges[tips, 0], 2)
    lengths, lnl = np.arange(18.0).reshape(6, 3), np.array([-2.0, -1, -1, -2, -2, -1])
    branches[[0, 3, 4]] = tree.edges[2, 0]  # worse
    found = _best_apart(tree, Places(np.repeat([0, 1, 2], 2), branches, lengths, lnl))
    assert found.branches.tolist() == tree.edges[tips[:n_kept], 0].tolist()
    assert found.lengths[:, 0].tolist() == [3, 6, 15][:n_kept]


def test_an_outgroup_is_on_one_side():
    result = plltool.place(ROWS, TREE, sequences(QUERIES), GAMMA, graft=True, outgroup="Rat,Mus_m", **QUICK)
    found = {frozenset(ROWS.keys() & side) for side in sides_of_root(result.grafted.newick)}
    assert found == {frozenset(["Rat", "Mus_m"]), frozenset(["Homo_s", "Pan_t", "Lemur_c"])}


def test_tips_are_inserted_where_they_are_said_to_be():
    rng = np.random.default_rng(4)
    tree = random_tree("abcdef", rng)
    tree.lengths[:] = rng.uniform(0.1, 1, tree.n_edges)
    branches = np.array([int(tree.edges[0, 0]), int(tree.edges[4, 0])])
    own = np.array([[0.02, 0.05, 0.3], [0.01, 0.04, 0.2]])
    made = insert_tips(tree, ("x", "y", "later"), branches, own)
    assert made.names == (*"abcdef", "x", "y")
    for tip, branch, lengths in zip((6, 7), branches, own, strict=True):
        joint = int(made.neighbours[tip, 0])
        around = {int(node): made.lengths[made.edge_between(joint, int(node))] for node in made.neighbours[joint]}
        ends = [int(node) + 2 * (node >= 6) for node in tree.ends[branch]]
        assert around == dict(zip([*ends, tip], lengths, strict=True))
