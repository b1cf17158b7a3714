"""Fusing two trees: exchanges against trees that are built from splits, and their lnL by brute force."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import (
    assert_valid_tree,
    caterpillar,
    likelihood_of,
    make_tree,
    random_ends,
    random_mixture,
    simulate_codes,
)
from oracles.likelihood import pruning

from plltool.optimise.lengths import smooth
from plltool.tree.moves import prune_regraft
from plltool.tree.splits import inner_splits, rf_distance, splits_of
from plltool.tree_search import fusing
from plltool.tree_search.fusing import find_exchanges, fuse, make_exchanges

N_TAXA = 16


def scramble(tree, rng, n_moves):
    """A copy of a tree after random moves of subtrees, with other lengths."""
    other = tree.copy()
    while n_moves:
        joint = int(rng.integers(other.n_taxa, other.n_nodes))
        subtree = int(other.neighbours[joint, rng.integers(3)])
        target = int(rng.integers(other.n_edges))
        n_moves -= prune_regraft(other, joint, subtree, target, 0.1, (0.1, 0.1, 0.1)) is not None
    return other.with_lengths(rng.exponential(0.2, other.n_edges) + 0.01)


def make_case(seed, n_moves=4, n_patterns=60):
    rng = np.random.default_rng(seed)
    mixture = random_mixture(rng, 4, 2)
    tree = make_tree(*random_ends(rng, N_TAXA), N_TAXA)
    codes = simulate_codes(rng, tree.ends, tree.lengths, N_TAXA, n_patterns, mixture)
    return likelihood_of(tree, codes, np.ones(n_patterns), mixture), scramble(tree, rng, n_moves), (codes, mixture)


def regions_of(tree, donor):
    """The regions in which two trees differ: for each the splits, with lengths, that replace and are replaced.

    A clade that both trees have holds a region if the donor splits it up by clades that the tree does not have.
    """
    own, other = splits_of(tree), splits_of(donor)
    shared = sorted(own.keys() & other.keys(), key=int.bit_count)

    def home(split):
        return next(clade for clade in shared if split & ~clade == 0)

    regions = {}
    for split in other.keys() - own.keys():
        regions.setdefault(home(split), ({}, set()))[0][split] = other[split]
    for split in own.keys() - other.keys():
        regions[home(split)][1].add(split)
    for clade, (gained, _) in regions.items():
        within = [split for split in shared if split != clade and split & ~clade == 0]
        border = [split for split in within if not any(split != up and split & ~up == 0 for up in within)]
        gained |= {split: other[split] for split in [clade, *border]}
    return regions


def build(splits):
    """Branches and lengths of the tree with some splits (split -> length), from the smallest to the largest."""
    bundles, ends, lengths, free = {1 << tip: tip for tip in range(1, N_TAXA)}, [], [], N_TAXA
    for split in sorted(splits, key=int.bit_count):
        if split.bit_count() > 1:
            inside = [clade for clade in bundles if clade & ~split == 0]
            for clade in inside:
                ends.append((bundles.pop(clade), free))
                lengths.append(splits[clade])
            bundles[split] = free
            free += 1
    (last,) = bundles
    return [*ends, (bundles[last], 0)], [*lengths, splits[last]]


@pytest.mark.parametrize("seed", range(8))
def test_each_exchange_alone_gains_what_brute_force_says(seed):
    likelihood, donor, (codes, mixture) = make_case(seed)
    tree, lnl = likelihood.tree, likelihood.lnl()
    found = find_exchanges(likelihood, donor, lnl)
    expected = []
    for clade, (gained, lost) in regions_of(tree, donor).items():
        splits = {split: length for split, length in splits_of(tree).items() if split not in lost} | gained
        branches, lengths = build(splits)
        expected.append((clade, sum(pruning(branches, lengths, codes.T.tolist(), mixture.oracle)) - lnl, splits))
    assert len(expected) == len(found.gains) > 0
    np.testing.assert_allclose(np.sort(found.gains), np.sort([gain for _, gain, _ in expected]), atol=1e-8)
    before = tree.copy()
    for number, gain in enumerate(found.gains):
        make_exchanges(likelihood, found, np.arange(len(found.gains)) == number)
        assert_valid_tree(tree)
        assert likelihood.lnl() - lnl == pytest.approx(gain, abs=1e-8)
        assert any(splits == pytest.approx(splits_of(tree)) for _, _, splits in expected)
        likelihood.set_tree(before)


@pytest.mark.parametrize("seed", range(4))
def test_all_exchanges_together_give_the_donor(seed):
    likelihood, donor, _ = make_case(seed, n_moves=6)
    found = find_exchanges(likelihood, donor, likelihood.lnl())
    make_exchanges(likelihood, found, np.ones(len(found.gains), dtype=bool))
    assert_valid_tree(likelihood.tree)
    assert rf_distance(likelihood.tree, donor) == 0
    assert len(find_exchanges(likelihood, donor, 0.0).gains) == 0


def test_a_tree_has_nothing_to_take_from_itself():
    likelihood, _, _ = make_case(1)
    assert fuse(likelihood, likelihood.tree.copy(), -1.0) == (-1.0, 0)


def swap(tree, a, b):
    """The tree with two tips exchanged."""
    swapped = [tuple({a: b, b: a}.get(node, node) for node in pair) for pair in tree.ends.tolist()]
    return make_tree(swapped, tree.lengths, N_TAXA)


@pytest.fixture
def wrong():
    """Likelihoods of two trees that are wrong in different places and of the true tree, each with its lnL."""
    rng = np.random.default_rng(5)
    mixture = random_mixture(rng, 4, 1)
    ends = caterpillar(N_TAXA)
    true = make_tree(ends, np.full(len(ends), 0.2), N_TAXA)
    codes = simulate_codes(rng, true.ends, true.lengths, N_TAXA, 600, mixture)
    trees = swap(true, 2, 4), swap(true, 11, 13), true
    likelihoods = [likelihood_of(tree.copy(), codes, np.ones(600), mixture) for tree in trees]
    return [(likelihood, smooth(likelihood)) for likelihood in likelihoods]


@pytest.mark.parametrize("loss", [3.0, 1e9], ids=["what is nearly as good", "everything"])
def test_two_trees_that_are_wrong_in_different_places_give_the_true_tree(wrong, monkeypatch, loss):
    """Even if everything is taken at first, what was better before comes back."""
    monkeypatch.setattr(fusing, "FUSING_LOSS", loss)
    (likelihood, lnl), (donor, other), (true, best) = wrong
    assert max(lnl, other) < best - 10
    fused, n_taken = fuse(likelihood, donor.tree, lnl)
    assert (set(inner_splits(likelihood.tree)), n_taken) == (set(inner_splits(true.tree)), 1)
    assert fused == pytest.approx(best, abs=0.5)


def test_exchanges_that_lose_too_much_are_not_made(wrong, monkeypatch):
    made = []
    monkeypatch.setattr(fusing, "make_exchanges", lambda *given: made.append(given[2]) or make_exchanges(*given))
    (likelihood, lnl), (donor, _), _ = wrong
    gains = find_exchanges(likelihood, donor.tree, lnl).gains
    fuse(likelihood, donor.tree, lnl)
    assert gains.min() < -3.0 < 0.0 < gains.max()
    np.testing.assert_array_equal(made[0], gains >= -3.0)


def test_a_tree_that_is_worse_after_all_is_not_kept(wrong, monkeypatch):
    """As if scores had been wrong: all exchanges are promising, and none is worth taking back."""
    (likelihood, _), _, (true, best) = wrong
    found = find_exchanges(true, likelihood.tree, best)
    promises = iter([1.0, -1.0])
    monkeypatch.setattr(fusing, "find_exchanges", lambda *_: replace(found, gains=0 * found.gains + next(promises)))
    before = true.tree.copy()
    assert fuse(true, likelihood.tree, best) == (best, 0)
    np.testing.assert_array_equal(true.tree.ends, before.ends)
    np.testing.assert_array_equal(true.tree.lengths, before.lengths)
    assert true.lnl() == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("stretch", [1.0, 2.0, 4.0])
def test_a_small_gain_is_not_lost_by_rough_lengths(wrong, monkeypatch, stretch):
    """All trees are nearly equally good, with any lengths, as there are so few sites; nothing is worth taking back."""
    (likelihood, _), _, (true, _) = wrong
    for some in (likelihood, true):
        some._set_weights(some.engine.weights / 1000)
    lnl, best = smooth(likelihood), smooth(true)
    assert 0.02 < best - lnl < 0.2
    donor = true.tree.with_lengths(stretch * true.tree.lengths)
    found = find_exchanges(likelihood, donor, lnl)
    promises = iter([1.0, -1.0])
    monkeypatch.setattr(fusing, "find_exchanges", lambda *_: replace(found, gains=0 * found.gains + next(promises)))
    fused, n_taken = fuse(likelihood, donor, lnl)
    assert n_taken == 1
    assert lnl < fused == pytest.approx(likelihood.lnl(), rel=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_the_fused_tree_is_at_least_as_good(seed):
    likelihood, donor, (codes, mixture) = make_case(seed, n_moves=6)
    lnl = smooth(likelihood)
    before = likelihood.tree.copy()
    other = likelihood_of(donor, codes, np.ones(codes.shape[1]), mixture)
    smooth(other)
    fused, n_taken = fuse(likelihood, donor, lnl)
    assert_valid_tree(likelihood.tree)
    assert fused >= lnl
    assert likelihood.lnl() == pytest.approx(fused, rel=1e-12)
    assert (n_taken == 0) == (rf_distance(before, likelihood.tree) == 0)
