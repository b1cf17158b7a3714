"""Optimised insertions: they report the lnL of the tree after the move, which is better than the scan's score."""

import dataclasses

import numpy as np
import pytest
from helpers import likelihood_of, make_tree, random_ends, random_mixture, simulate_codes

from plltool.constants import MAX_BRANCH_LENGTH, MIN_BRANCH_LENGTH
from plltool.engine.contract import TRIPLET_VALUES
from plltool.optimise.likelihood import TreeLikelihood
from plltool.tree_search import neighbours
from plltool.tree_search.climb import apply_moves
from plltool.tree_search.neighbours import Insertions, optimise_insertions, triplet_step
from plltool.tree_search.scan import Steps, all_prunes, scan

RTOL = 1e-11  # the same sum in another order
EVERYTHING = -1e9  # an lnL that every insertion reaches, so that none is left out or given up


@dataclasses.dataclass(frozen=True)
class Case:
    likelihood: TreeLikelihood
    data: tuple
    steps: Steps
    chosen: np.ndarray
    moves: Insertions


def make_case(n_scratch=12):
    rng = np.random.default_rng(6)
    n_taxa = 9
    mixture = random_mixture(rng, 4, 2)
    codes = simulate_codes(rng, *random_ends(rng, n_taxa), n_taxa, 60, mixture)
    ends, lengths = random_ends(rng, n_taxa)  # another tree than the data's
    data = codes, np.ones(60), mixture
    likelihood = likelihood_of(make_tree(ends, lengths, n_taxa), *data, n_scratch)
    likelihood.all_derivatives()
    return likelihood, data


@pytest.fixture(scope="module")
def case():
    likelihood, data = make_case()
    steps = scan(likelihood, all_prunes(likelihood), 5, EVERYTHING)
    chosen = np.arange(0, len(steps), 3)
    return Case(likelihood, data, steps, chosen, optimise_insertions(likelihood, steps, chosen, EVERYTHING))


def test_lnl_is_that_of_the_tree_after_the_move(case):
    likelihood, data, moves = case.likelihood, case.data, case.moves
    for index in range(len(moves)):
        moved = likelihood_of(likelihood.tree.copy(), *data)
        assert apply_moves(moved, moves, np.array([index]))
        assert moved.lnl() == pytest.approx(moves.lnl[index], rel=RTOL)


def test_lnl_is_at_least_the_score(case):
    scores = case.steps.scores[case.chosen]
    assert np.all(case.moves.lnl >= scores - 1e-9 * np.abs(scores))
    assert np.mean(case.moves.lnl > scores + 0.1) > 0.5


def test_lengths_are_nearly_optimal(case, monkeypatch):
    """A few Newton steps from the middle: more steps gain little in most cases, and lengths stay within bounds."""
    moves = case.moves
    assert np.all((moves.lengths >= MIN_BRANCH_LENGTH) & (moves.lengths <= MAX_BRANCH_LENGTH))
    monkeypatch.setattr(neighbours, "TRIPLET_ROUNDS", 40)
    best = optimise_insertions(case.likelihood, case.steps, case.chosen, EVERYTHING)
    assert np.all(best.lnl >= moves.lnl)
    assert np.median(best.lnl - moves.lnl) < 0.1


def test_the_nearer_end(case):
    tree, moves = case.likelihood.tree, case.moves
    for index in range(len(moves)):
        joint = int(moves.joints[index])
        node_of = {joint: 0}  # distance from the joint
        queue = [joint]
        for node in queue:
            for neighbour in tree.neighbours[node].tolist():
                if neighbour >= 0 and neighbour not in node_of:
                    node_of[neighbour] = node_of[node] + 1
                    queue.append(neighbour)
        first, second = tree.ends[int(moves.branches[index])].tolist()
        assert moves.toward_gap[index] == (node_of[first] < node_of[second])


def test_little_scratch_gives_the_same(case):
    """The batch size is the number of scratch slots."""
    likelihood, _ = make_case(n_scratch=7)
    steps = scan(likelihood, all_prunes(likelihood), 5, EVERYTHING)
    moves = optimise_insertions(likelihood, steps, case.chosen, EVERYTHING)
    for name in (field.name for field in dataclasses.fields(moves)):
        np.testing.assert_array_equal(getattr(moves, name), getattr(case.moves, name))


def test_none_chosen(case):
    none = np.zeros(0, dtype=np.intp)
    assert len(optimise_insertions(case.likelihood, case.steps, none, EVERYTHING)) == 0


def test_what_is_given_up_did_not_promise_to_reach_the_floor(case):
    """Insertions that are carried to the end have the same bits as without a floor; none above the floor is lost."""
    floor = float(np.median(case.moves.lnl))
    some = optimise_insertions(case.likelihood, case.steps, case.chosen, floor)
    scores = case.steps.scores[case.chosen]
    assert np.all(some.lnl <= case.moves.lnl)
    assert np.all(some.lnl >= scores - 1e-9 * np.abs(scores))
    reached = case.moves.lnl >= floor
    assert np.mean(some.lnl[reached] == case.moves.lnl[reached]) > 0.9
    assert np.any(some.lnl[~reached] < case.moves.lnl[~reached])
    once = optimise_insertions(case.likelihood, case.steps, case.chosen, np.inf)
    np.testing.assert_allclose(once.lnl, scores, rtol=RTOL)  # one evaluation, in the middle


def test_an_optimum_takes_no_step(case, monkeypatch):
    """Lengths that are optimal, by 40 rounds, are evaluated once; those of the middle of a branch more often."""
    asked = []
    join = neighbours.join
    monkeypatch.setattr(neighbours, "TRIPLET_ROUNDS", 40)
    best = optimise_insertions(case.likelihood, case.steps, case.chosen, EVERYTHING)
    monkeypatch.setattr(neighbours, "join", lambda *given: asked.append(len(given[1])) or join(*given))
    again = optimise_insertions(case.likelihood, case.steps, case.chosen, EVERYTHING, best.lengths)
    assert sum(asked) < 1.1 * len(case.chosen)
    np.testing.assert_allclose(again.lnl, best.lnl, atol=0.01)
    asked.clear()
    optimise_insertions(case.likelihood, case.steps, case.chosen, EVERYTHING)
    assert sum(asked) > 2 * len(case.chosen)


def values_of(gradient, hessian):
    values = np.zeros((1, TRIPLET_VALUES))
    values[0, 1:4] = gradient
    values[0, 4:] = [hessian[i][j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
    return values


def test_triplet_step_is_newton_where_concave():
    hessian = -np.array([[50.0, 10.0, 5.0], [10.0, 80.0, 20.0], [5.0, 20.0, 30.0]])
    gradient = np.array([1.0, -2.0, 3.0])
    for lengths in ([0.1, 0.1, 0.1], [0.01, 0.5, 2.0]):
        step, gain = triplet_step(np.array([lengths]), values_of(gradient, hessian))
        newton = -np.linalg.solve(hessian, gradient)
        np.testing.assert_allclose(step[0], newton, rtol=1e-10)
        assert gain[0] == pytest.approx(gradient @ newton / 2)  # of the parabola at its top


def test_triplet_step_leaves_lengths_at_a_bound():
    """The others take the Newton step that they have without it."""
    hessian = -np.array([[50.0, 10.0, 5.0], [10.0, 80.0, 20.0], [5.0, 20.0, 30.0]])
    lengths, gradient = np.array([0.1, MIN_BRANCH_LENGTH, 0.3]), np.array([1.0, -2.0, 3.0])
    step, _ = triplet_step(lengths[None], values_of(gradient, hessian))
    others = -np.linalg.solve(hessian[::2, ::2], gradient[::2])
    np.testing.assert_allclose(step[0], [others[0], 0.0, others[1]], rtol=1e-10)
    step, _ = triplet_step(lengths[None], values_of(-gradient, hessian))
    assert step[0, 1] > 0


def test_triplet_step_goes_uphill_elsewhere():
    hessian = np.array([[50.0, 10.0, 5.0], [10.0, -80.0, 20.0], [5.0, 20.0, 0.0]])
    gradient = np.array([1.0, -2.0, 3.0])
    step, gain = triplet_step(np.array([[0.1, 0.2, 0.3]]), values_of(gradient, hessian))
    assert step[0] @ gradient > 0
    assert gain[0] > 0
