"""Parsimony start trees, exactly against a slow oracle and roughly against RAxML's start trees."""

import numpy as np
import pytest
from helpers import read_states
from oracles.parsimony import changes_by_branch, fitch_changes, fitch_score, least_changes, tree_changes

from plltool.alignment.patterns import compress
from plltool.errors import InputError
from plltool.io.newick_writer import write_newick
from plltool.io.part_trees import read_tree
from plltool.tree.random_tree import random_topology
from plltool.tree_search import parsimony
from plltool.tree_search.parsimony import stepwise_addition


def random_patterns(n_taxa, n_patterns, rng):
    """Codes with all ambiguities, some columns constant or nearly constant, and weights from 0 to 3."""
    codes = rng.choice(np.array([1, 2, 4, 8], dtype=np.uint8), (n_taxa, n_patterns))
    ambiguous = rng.random(codes.shape) < 0.2
    codes[ambiguous] = rng.integers(1, 16, ambiguous.sum())
    codes[:, :3] = [1, 2, 15]
    codes[0, 1] = 8
    return codes, rng.integers(0, 4, n_patterns).astype(float)


def names_of(n_taxa):
    return [f"t{i}" for i in range(n_taxa)]


def branches_of(ends):
    return [tuple(pair) for pair in ends.tolist()]


def test_the_two_oracles_agree():
    rng = np.random.default_rng(1)
    for n_taxa in (3, 4, 5):
        codes, _ = random_patterns(n_taxa, 12, rng)
        branches = branches_of(random_topology(n_taxa, rng))
        for column in codes.T.tolist():
            assert fitch_changes(branches, column) == least_changes(branches, column)


@pytest.mark.parametrize("n_taxa", [3, 4, 7, 20])
def test_the_fast_oracle_is_the_slow_one(n_taxa):
    rng = np.random.default_rng(n_taxa)
    for _ in range(5):
        codes, weights = random_patterns(n_taxa, 70, rng)
        branches = branches_of(random_topology(n_taxa, rng))
        expected = tree_changes(branches, codes.tolist(), weights.astype(int).tolist())
        assert fitch_score(branches, codes, weights) == expected


@pytest.mark.parametrize("n_sites", [1, 63, 64, 65, 200])
def test_every_insertion_costs_what_the_oracle_says(n_sites):
    """Along a random sequence of insertions, so that the sets are kept up to date everywhere."""
    n_taxa = 12
    rng = np.random.default_rng(n_sites)
    codes, _ = random_patterns(n_taxa, max(n_sites, 3), rng)
    codes = codes[:, :n_sites]
    ones = [1] * n_sites
    growing = parsimony._GrowingTree(parsimony.bit_slice(codes), 0, 1)
    for tip in range(2, n_taxa):
        branches = branches_of(growing.ends[: 2 * tip - 3])
        placed = codes[: tip + 1].tolist()
        before = sum(fitch_changes(branches, column[:tip]) for column in codes.T.tolist())
        expected = np.array(changes_by_branch(branches, tip, n_taxa + tip - 2, placed, ones)) - before
        assert (n_sites + growing.added_changes(tip)).tolist() == expected.tolist()
        growing.insert(tip, int(rng.integers(len(branches))))


def test_dropped_columns_never_tell_insertions_apart():
    rng = np.random.default_rng(3)
    n_taxa = 6
    codes, _ = random_patterns(n_taxa, 300, rng)
    kept = [parsimony.informative_sites(codes[:, [i]], np.ones(1)).shape[1] for i in range(300)]
    assert 0 < sum(kept) < 300
    for column, keep in zip(codes.T.tolist(), kept, strict=True):
        if keep:
            continue
        for n_placed in (3, 4, 5):
            topology = random_topology(n_placed, rng)
            branches = branches_of(topology + (topology >= n_placed))  # leave room for the new tip's number
            placed = [[code] for code in column[: n_placed + 1]]
            assert len(set(changes_by_branch(branches, n_placed, 2 * n_placed, placed, [1]))) == 1


def test_weights_repeat_columns():
    codes = np.array([[1, 1, 4], [1, 2, 4], [2, 1, 8], [2, 2, 8]], dtype=np.uint8)
    sites = parsimony.informative_sites(codes, np.array([2.0, 0.0, 1.0]))
    assert sites.tolist() == [[1, 1, 4], [1, 1, 4], [2, 2, 8], [2, 2, 8]]


def test_clean_data_give_the_tree_behind_them():
    """Each inner branch of a caterpillar changes one site of its own: no tree needs fewer changes."""
    n_taxa = 40
    codes = np.where(np.tri(n_taxa, dtype=bool)[:, 1:-2], 1, 4).astype(np.uint8)
    weights = np.ones(codes.shape[1])
    for seed in range(3):
        tree = stepwise_addition(codes, weights, names_of(n_taxa), np.random.default_rng(seed))
        assert fitch_score(branches_of(tree.ends), codes, weights) == codes.shape[1]


def test_the_start_tree_beats_random_trees():
    rng = np.random.default_rng(5)
    codes, weights = random_patterns(25, 200, rng)
    names = names_of(25)
    ours = fitch_score(branches_of(stepwise_addition(codes, weights, names, rng).ends), codes, weights)
    others = [fitch_score(branches_of(random_topology(25, rng)), codes, weights) for _ in range(50)]
    assert ours < min(others)


def test_the_seed_decides():
    codes, weights = random_patterns(30, 40, np.random.default_rng(6))
    names = names_of(30)
    first, second, third = (
        write_newick(stepwise_addition(codes, weights, names, np.random.default_rng(seed))) for seed in (7, 7, 8)
    )
    assert first == second
    assert first != third


def score_of(branches, codes):
    """The least changes of the taxa on a tree, whose inner nodes may have any numbers."""
    return fitch_score(branches, codes, np.ones(codes.shape[1]))


def test_more_than_four_states():
    """One column with all states different needs one change for each taxon except one."""
    codes = (1 << np.arange(20, dtype=np.uint32))[:, None]
    tree = stepwise_addition(codes, np.ones(1), names_of(20), np.random.default_rng(1))
    assert fitch_score(branches_of(tree.ends), codes, np.ones(1)) == 19


def test_more_states_than_bits_of_a_word():
    """Masks of Python's integers: every insertion, and the columns that are dropped, against the oracle."""
    rng = np.random.default_rng(1)
    one, other = rng.choice([0, 63, 64, 99, 127], (9, 12)), rng.choice([0, 0, 64, 100], (9, 12))
    codes = np.array(1, object) << one.astype(object) | np.array(1, object) << other.astype(object)
    codes[3, ::2] = (1 << 128) - 1
    growing = parsimony._GrowingTree(parsimony.bit_slice(codes), 0, 1)
    for tip in range(2, 9):
        branches = branches_of(growing.ends[: 2 * tip - 3])
        found = codes.shape[1] + growing.added_changes(tip)
        for k, (a, b) in enumerate(branches):
            own = [pair for pair in branches if pair != (a, b)] + [(a, 20), (20, b), (tip, 20)]
            assert found[k] == score_of(own, codes) - score_of(branches, codes)
        growing.insert(tip, int(rng.integers(len(branches))))
    tree = stepwise_addition(codes, np.ones(12), names_of(9), np.random.default_rng(1))
    assert len(tree.ends) == 15
    all_different = np.array([[1 << state] for state in range(128)], object)
    tree = stepwise_addition(all_different, np.ones(1), names_of(128), rng)
    assert fitch_score(branches_of(tree.ends), all_different, np.ones(1)) == 127


@pytest.mark.parametrize("codes", [np.full((5, 4), 15, np.uint8), np.zeros((5, 0), np.uint8)])
def test_data_that_say_nothing_give_some_tree(codes):
    weights = np.ones(codes.shape[1])
    tree = stepwise_addition(codes, weights, names_of(5), np.random.default_rng(1))
    assert fitch_score(branches_of(tree.ends), codes, weights) == 0


@pytest.mark.parametrize(
    ("codes", "weights", "n_names", "message"),
    [
        (np.ones((4, 2), np.uint8), [1, 1], 3, r"3 taxa at 2 patterns, found an array \(4, 2\)"),
        (np.ones((3, 2), np.uint8), [1], 3, r"3 taxa at 1 patterns, found an array \(3, 2\)"),
        (np.array([[1, 1], [1, 0], [1, 1]], np.uint8), [1, 1], 3, "taxon 't1' has no possible state at pattern 2"),
        (np.ones((3, 2), np.uint8), [1, 0.5], 3, "whole numbers"),
        (np.ones((3, 2), np.uint8), [1, -1], 3, "whole numbers"),
        (np.ones((2, 2), np.uint8), [1, 1], 2, "at least 3 taxa, found 2"),
    ],
)
def test_bad_input(codes, weights, n_names, message):
    with pytest.raises(InputError, match=message):
        stepwise_addition(codes, np.array(weights, dtype=float), names_of(n_names), np.random.default_rng(1))


@pytest.mark.parametrize("name", ["dna59.phy.gz", "dna101.phy", "dna150.phy", "dna218.phy", "dna354.phy", "dna500.phy"])
def test_nearly_as_good_as_raxmls_start_tree(shared, name):
    """RAxML follows its stepwise addition by SPR moves, so ours needs more changes: 0.2 to 2.5 % over five seeds
    of each data set, once 4.8 %."""
    alignment = read_states(shared / "data" / name)
    patterns = compress(alignment)
    raxml = read_tree(shared / "reference" / "trees" / (name.split(".")[0] + ".start.nwk"), alignment.names)
    ours = stepwise_addition(patterns.codes, patterns.weights, alignment.names, np.random.default_rng(42))
    scores = [fitch_score(branches_of(tree.ends), patterns.codes, patterns.weights) for tree in (ours, raxml)]
    assert scores[0] <= 1.05 * scores[1]
