"""SPRTA supports: against the enumeration of all places of all subtrees, each tree with lengths by scipy."""

import numpy as np
import pytest
from scipy.optimize import minimize

import plltool
from plltool.tree.moves import prune_regraft
from plltool.tree.rooted import branches_at_root
from plltool.tree_search.branch_supports import support_by_moves

SITES = 60
SAME_LENGTHS = 5e-3  # of SPRTA: the branch that closes a gap takes two steps; lengths end where 1e-3 lnL are promised
ALL_LENGTHS = 0.2  # by how much SPRTA is larger if four lengths of the other trees are optimised, not all


def evolve(newick, seed):
    made = plltool.simulate(newick, "JC", SITES, seed)
    return dict(zip(made.names, made.sequences, strict=True))


def jukes_cantor_lnl(tree, lengths, rows):
    """lnL by Felsenstein's pruning; `rows` (n_tips, n_sites, 4) have 1 for the states of each tip."""
    partial = {node: rows[node] if node < len(rows) else np.ones(rows.shape[1:]) for node in range(tree.n_nodes)}
    for node, parent, edge in reversed(list(tree.directed_from(0))):
        own, stays = partial[node], np.exp(-4 / 3 * lengths[edge])
        partial[parent] = partial[parent] * (stays * own + (1 - stays) * own.mean(axis=1, keepdims=True))
    return np.log(partial[0].mean(axis=1)).sum()


def best_lengths(tree, start, rows, free):
    """lnL and lengths, with those that are `free` optimised by scipy."""
    lengths, free = start.copy(), list(free)

    def loss(logs):
        lengths[free] = np.exp(logs)
        return -jukes_cantor_lnl(tree, lengths, rows)

    at = np.log(np.maximum(lengths[free], 1e-3))
    found = minimize(loss, at, method="L-BFGS-B", bounds=[(np.log(1e-6), np.log(100))] * len(free))
    loss(found.x)
    return -found.fun, lengths


def regrafts(tree, joint, subtree, rows):
    """lnL of each tree in which a subtree is elsewhere: with all lengths optimised, and with four of them."""
    moves = {joint: False}
    for node, parent, _ in tree.directed_from(joint):
        moves[node] = node == subtree or moves[parent]
    unknown = np.where([[[moves[tip]]] for tip in range(len(rows))], 1.0, rows)
    stem = tree.edge_between(joint, subtree)
    near, far = (int(node) for node in tree.neighbours[joint] if node != subtree)
    for target in range(tree.n_edges):
        made, half = tree.copy(), tree.lengths[target] / 2
        both = tree.lengths[tree.edges[joint]].sum() - tree.lengths[stem]
        if prune_regraft(made, joint, subtree, target, both, [half, half, tree.lengths[stem]]):
            healed = best_lengths(made, made.lengths, unknown, [made.edge_between(near, far)])[1]
            yield [best_lengths(made, healed, rows, own)[0] for own in (range(tree.n_edges), made.edges[joint])]


@pytest.mark.parametrize(
    ("newick", "seed"),
    [
        ("((a:0.2,b:0.1):0.04,c:0.2,(d:0.1,e:0.3):0.08);", 1),
        ("((a:0.1,b:0.3):0.1,(c:0.2,d:0.2):0.06,(e:0.1,f:0.2):0.08);", 3),
    ],
)
def test_all_places_of_all_subtrees(newick, seed, device):
    rows = evolve(newick, seed)
    with plltool.Likelihood(rows, newick, "JC", neighbours=True, device=device) as likelihood:
        lnl = likelihood.optimise()
        tree, found = likelihood.tree, support_by_moves(likelihood._likelihood)
        sprta = likelihood.support_branches(["sprta"]).values["sprta"]
    data = np.array([np.eye(4)[["ACGT".index(letter) for letter in rows[name]]] for name in tree.names])
    assert jukes_cantor_lnl(tree, tree.lengths, data) == pytest.approx(lnl, rel=1e-9)
    for branch, pair in enumerate(tree.ends.tolist()):
        for end, (subtree, joint) in enumerate((pair, pair[::-1])):
            if joint < tree.n_taxa:
                assert np.isnan(found[branch, end])
                continue
            lnls = np.array(list(regrafts(tree, joint, subtree, data))).reshape(-1, 2)
            exact, near = 1 / (1 + np.exp(lnls - lnl).sum(axis=0))
            assert found[branch, end] == pytest.approx(near, abs=SAME_LENGTHS)
            assert exact - SAME_LENGTHS <= found[branch, end] <= exact + ALL_LENGTHS
    assert sprta == pytest.approx(np.nanmin(found, axis=1), abs=1e-12)


def test_a_place_at_no_distance_is_no_other_tree():
    """Three identical sequences: each may be beside either other one."""
    rows = dict.fromkeys("abc", "ACGTACGTACGTAAACCC") | {"d": "ACGTTCGTACGAATACCC", "e": "TCGTTCGAACGAATACGC"}
    found = plltool.alrt(rows, "(((a,b),c),d,e);", "JC", kinds=["sprta"], device="numpy").supports
    tips = [found.values["sprta"][int(found.tree.edges[tip, 0])] for tip in range(3)]
    assert tips == pytest.approx([1, 1, 1], abs=0.01)


def test_both_branches_at_a_root_have_one_value():
    newick = "((a:0.1,b:0.3):0.03,((c:0.2,d:0.2):0.05,(e:0.1,f:0.2):0.05):0.1);"
    found = plltool.alrt(evolve(newick, 4), newick, "STRSYM", kinds=["sprta"], device="numpy", fixed=True).supports
    own, (one, other) = branches_at_root(found.tree)
    values = found.values["sprta"]
    assert np.isnan(values[own])
    assert values[one] == values[other] > 0
