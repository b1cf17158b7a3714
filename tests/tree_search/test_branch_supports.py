"""Supports from nearest neighbours: likelihoods against an oracle, statistics against slow versions."""

import math

import numpy as np
import pytest
from helpers import FixedModel, likelihood_of, make_tree, plain_engine, random_ends, random_mixture, simulate_codes
from oracles.likelihood import pruning
from scipy.optimize import minimize

from plltool.constants import NEIGHBOUR_KINDS
from plltool.engine.base import EngineData
from plltool.engine.layout import Layout
from plltool.io.tree_files import read_constraint
from plltool.optimise.likelihood import TreeLikelihood
from plltool.tree.splits import inner_splits
from plltool.tree.topology import Tree
from plltool.tree_search import neighbours
from plltool.tree_search.branch_supports import ALRT_MARGIN, abayes, local_bootstrap, sh_alrt, support_branches
from plltool.tree_search.neighbours import neighbour_sites
from plltool.tree_search.ufboot_search import Meetings, estimate_lnls

N_TAXA = 6


@pytest.fixture(scope="module")
def case():
    """A tree other than the one behind the data, so that interchanges may be better or worse."""
    rng = np.random.default_rng(11)
    mixture = random_mixture(rng, 4, 2)
    ends, lengths = random_ends(rng, N_TAXA, 0.1)
    codes = simulate_codes(rng, ends, lengths, N_TAXA, 30, mixture)
    weights = rng.integers(1, 4, 30).astype(float)
    tree = make_tree(ends, lengths, N_TAXA)
    return tree, codes, weights, mixture


def best_by_oracle(ends, lengths, five, codes, weights, mixture):
    """lnL with five lengths optimised by scipy from two starts."""

    def loss(logs):
        at = lengths.copy()
        at[five] = np.exp(logs)
        return -weights @ pruning(ends.tolist(), at, codes.T.tolist(), mixture.oracle)

    bounds = [(math.log(1e-6), math.log(2))] * 5
    return -minimize(loss, np.full(5, math.log(0.05)), method="L-BFGS-B", bounds=bounds).fun


def test_interchanges_are_as_likely_as_the_oracle_can_make_them(case):
    """The two of each branch, which differ from the tree in one split each, and not in the same one."""
    tree, codes, weights, mixture = case
    likelihood = likelihood_of(tree.copy(), codes, weights, mixture)
    branches = np.flatnonzero(tree.is_inner_branch)
    for branch, lnls in zip(branches.tolist(), neighbour_sites(likelihood, branches) @ weights, strict=True):
        new = set()
        for which, lnl in enumerate(lnls):
            made = neighbours.interchange(tree, branch, which)
            again = Tree.from_edges(made.names, made.ends, made.lengths)
            assert np.array_equal(np.sort(again.neighbours), np.sort(made.neighbours))
            assert np.array_equal(np.sort(again.edges), np.sort(made.edges))
            gained = set(inner_splits(made)) - set(inner_splits(tree))
            assert len(gained) == 1
            new |= gained
            five = sorted({*tree.edges[tree.ends[branch]].ravel().tolist()})
            expected = best_by_oracle(made.ends, tree.lengths, five, codes, weights, mixture)
            assert lnl == pytest.approx(expected, abs=0.005)  # NEIGHBOUR_EPSILON
        assert len(new) == 2


def test_neighbours_that_a_resampled_alignment_prefers_are_met(case):
    """Also those that tie; and with a constraint those that obey it."""
    tree, codes, weights, mixture = case
    likelihood = likelihood_of(tree.copy(), codes, weights, mixture)
    drawn = np.random.default_rng(1).multinomial(60, np.full(30, 1 / 30), size=20).T.astype(np.uint16)
    branches = np.flatnonzero(tree.is_inner_branch)
    lnls = {
        frozenset(inner_splits(neighbours.interchange(tree, branch, which))): estimate_lnls(sites[which], drawn)
        for branch, sites in zip(branches.tolist(), neighbour_sites(likelihood, branches), strict=True)
        for which in (0, 1)
    }
    best = np.max([estimate_lnls(likelihood.site_lnl(), drawn), *lnls.values()], axis=0)
    expected = {splits for splits, row in lnls.items() if any(row > best - 0.5)}
    assert 0 < len(expected) < len(lnls)
    kept = next(split for split in inner_splits(tree) if any(split not in splits for splits in expected))
    clade = [name for number, name in enumerate(tree.names) if kept >> number & 1]
    rest = [name for name in tree.names if name not in clade]
    constraint = read_constraint(f"(({','.join(clade)}),{','.join(rest)});", tree.names)
    for given, wanted in ((None, expected), (constraint, {splits for splits in expected if kept in splits})):
        meetings = Meetings(drawn)
        likelihood.constraint = given
        meetings.meet_neighbours(likelihood)
        assert {frozenset(inner_splits(met.tree)) for met in meetings.trees} == wanted
        for met in meetings.trees:
            np.testing.assert_allclose(met.lnls, lnls[frozenset(inner_splits(met.tree))], rtol=1e-11)
    assert len(wanted) < len(expected)


def test_batches_change_nothing_and_the_tree_stays(case):
    tree, codes, weights, mixture = case
    answers = []
    for n_scratch in (2, 5, 12):
        likelihood = likelihood_of(tree.copy(), codes, weights, mixture, n_scratch)
        answers.append(neighbour_sites(likelihood, np.flatnonzero(likelihood.tree.is_inner_branch)))
        assert np.array_equal(likelihood.tree.lengths, tree.lengths)
        assert np.array_equal(likelihood.tree.ends, tree.ends)
    for answer in answers[1:]:
        np.testing.assert_allclose(answer, answers[0], rtol=1e-11)  # other batches, other sums of lnL


def test_lengths_of_their_own(case):
    """Two unlinked parts with the same patterns each give the result of one part alone."""
    tree, codes, weights, mixture = case
    alone = likelihood_of(tree.copy(), codes, weights, mixture)
    expected = neighbour_sites(alone, np.flatnonzero(alone.tree.is_inner_branch))
    layout = Layout(4, 2, N_TAXA, (30, 30), 4)
    engine = plain_engine(
        layout, 3 * (N_TAXA - 2) + 12, EngineData(np.hstack([codes, codes]), np.append(weights, weights))
    )
    both = TreeLikelihood(tree.unlink(2), [FixedModel(mixture.components)] * 2, engine)
    found = neighbour_sites(both, np.flatnonzero(both.tree.is_inner_branch))
    np.testing.assert_allclose(found @ np.append(weights, weights), 2 * expected @ weights, rtol=0, atol=0.01)


def test_supports_do_not_depend_on_how_branches_are_numbered(case):
    tree, codes, weights, mixture = case
    order = np.random.default_rng(3).permutation(tree.n_edges)
    renamed = Tree.from_edges(tree.names, tree.ends[order, ::-1], tree.lengths[order])
    tables = []
    for some in (tree, renamed):
        likelihood = likelihood_of(some.copy(), codes, weights, mixture)
        values, lnl = support_branches(likelihood, NEIGHBOUR_KINDS, 200, np.random.default_rng(5))
        for row in (*values.values(), *lnl.T):
            assert (np.isnan(row) != some.is_inner_branch).all()
        inner = some.is_inner_branch
        assert np.ptp(lnl[inner, 0]) == 0
        splits = inner_splits(some)
        tables.append(dict(zip(splits, np.column_stack([*values.values()])[inner].tolist(), strict=True)))
    assert tables[0].keys() == tables[1].keys()
    for split, values in tables[0].items():
        assert values[0] == pytest.approx(tables[1][split][0], abs=2)  # per cent: ends of optimisations differ
        assert values[1] == pytest.approx(tables[1][split][1], abs=1e-3)
        assert values[2] == pytest.approx(tables[1][split][2], abs=2)


def test_sh_alrt_replicate_by_replicate():
    """Guindon et al. 2010: 2 (l1 - l2) against 2 (first - second) of the centred sums."""
    rng = np.random.default_rng(8)
    lnl = rng.normal(0, 2, (4, 3))
    drawn = lnl + rng.normal(0, 2, (500, 4, 3))
    expected = []
    for branch in range(4):
        statistic = lnl[branch, 0] - max(lnl[branch, 1:])
        count = 0
        for replicate in drawn[:, branch]:
            first, second, _ = sorted((replicate - lnl[branch]).tolist(), reverse=True)
            count += statistic > first - second + ALRT_MARGIN
        expected.append(count / 500)
    found = sh_alrt(lnl[:, 1:] - lnl[:, :1], drawn[..., 1:] - drawn[..., :1])
    assert found.tolist() == expected
    assert 0 < max(expected) < 1


def test_the_local_bootstrap_counts_the_replicates_that_prefer_the_tree():
    """Each replicate votes for the best of the three; votes of the three sum to all."""
    drawn = np.random.default_rng(9).normal(0, 2, (500, 4, 3))
    votes = np.array([[np.mean(drawn[:, branch].argmax(axis=1) == tree) for tree in range(3)] for branch in range(4)])
    for tree in range(3):
        others = np.delete(drawn, tree, axis=2) - drawn[..., [tree]]
        assert local_bootstrap(others).tolist() == votes[:, tree].tolist()


def test_abayes_is_the_share_of_the_likelihood():
    gains = np.array([[0.0, 0.0], [-math.log(2), -math.log(4)], [-900.0, -5000.0], [900.0, 0.0]])
    np.testing.assert_allclose(abayes(gains), [1 / 3, 4 / 7, 1.0, 0.0], rtol=1e-12, atol=1e-300)


def test_identical_sequences_get_no_support():
    rng = np.random.default_rng(2)
    mixture = random_mixture(rng, 4, 1)
    codes = np.repeat(1 << rng.integers(0, 4, (1, 30)), 5, axis=0)
    ends, _ = random_ends(rng, 5)
    likelihood = likelihood_of(make_tree(ends, np.full(len(ends), 1e-6), 5), codes, np.ones(30), mixture)
    values, _ = support_branches(likelihood, NEIGHBOUR_KINDS, 100, rng)
    inner = likelihood.tree.is_inner_branch
    assert values["sh-alrt"][inner].tolist() == [0.0, 0.0]
    np.testing.assert_allclose(values["abayes"][inner], 1 / 3, atol=1e-4)
