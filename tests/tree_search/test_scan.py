"""The SPR scan: which insertions it scores, in which order, and each score against the tree after the move."""

import numpy as np
import pytest
from helpers import (
    caterpillar,
    evaluate_edges,
    likelihood_of,
    make_tree,
    random_codes,
    random_ends,
    random_mixture,
    simulate_codes,
)
from oracles.likelihood import pruning

from plltool.engine.contract import Opcode
from plltool.optimise.lengths import smooth
from plltool.tree.moves import prune_regraft, subtree_contains
from plltool.tree_search import scan as scan_module
from plltool.tree_search.scan import all_prunes, scan

RTOL = 1e-11  # the same sum in another order
EVERYTHING = -1e9  # as the current lnL: no insertion loses anything, so none is left out


def make_case(seed, n_taxa, ends=None):
    rng = np.random.default_rng(seed)
    if ends is None:
        ends, lengths = random_ends(rng, n_taxa)
    else:
        lengths = rng.exponential(0.2, len(ends)) + 0.01
    codes = random_codes(rng, n_taxa, 13)
    weights = rng.integers(1, 5, 13).astype(float)
    mixture = random_mixture(rng, 4, 2)
    likelihood = likelihood_of(make_tree(ends, lengths, n_taxa), codes, weights, mixture)
    likelihood.all_derivatives()
    likelihood.data = codes, weights, mixture
    return likelihood


@pytest.fixture(params=[(1, 8), (2, 10), (3, 12)], ids=lambda p: f"{p[1]}taxa")
def likelihood(request):
    return make_case(*request.param)


def moved_lnl(likelihood, prunes, steps, index, lengths=None):
    """lnL of the tree after a step's move, evaluated from scratch by another engine."""
    tree = likelihood.tree.copy()
    prune = steps.prune[index]
    joint, column = int(prunes.joints[prune]), int(prunes.columns[prune])
    branch = int(steps.branch[index])
    half = tree.lengths[branch] / 2
    hanging = tree.lengths[tree.edges[joint, column]]
    subtree = int(tree.neighbours[joint, column])
    new = (half, half, hanging) if lengths is None else lengths
    assert prune_regraft(tree, joint, subtree, branch, float(prunes.healed[prune]), new) is not None
    return likelihood_of(tree, *likelihood.data).lnl(), tree


@pytest.mark.parametrize("radius", [1, 3, 10])
def test_every_score_is_the_lnl_of_the_moved_tree(likelihood, radius):
    prunes = all_prunes(likelihood)
    steps = scan(likelihood, prunes, radius, EVERYTHING)
    expected = [moved_lnl(likelihood, prunes, steps, index)[0] for index in range(len(steps))]
    np.testing.assert_allclose(steps.scores, expected, rtol=RTOL)


def test_a_few_scores_by_the_oracle(likelihood):
    prunes = all_prunes(likelihood)
    steps = scan(likelihood, prunes, 4, EVERYTHING)
    codes, weights, mixture = likelihood.data
    for index in range(0, len(steps), len(steps) // 5):
        _, tree = moved_lnl(likelihood, prunes, steps, index)
        site = pruning([tuple(pair) for pair in tree.ends.tolist()], tree.lengths, codes.T.tolist(), mixture.oracle)
        assert steps.scores[index] == pytest.approx(weights @ site, rel=RTOL)


def insertions_within(tree, joint, subtree, radius):
    """Branches at most `radius` from the gap, by breadth-first search of the tree without joint and subtree."""
    near, far = (int(n) for n in tree.neighbours[joint] if n != subtree)
    found = set()
    for start in (near, far):
        frontier = [(start, joint)]
        for _ in range(radius):
            onward = []
            for node, came_from in frontier:
                for neighbour in tree.neighbours[node].tolist():
                    if neighbour in (came_from, -1):
                        continue
                    found.add(tree.edge_between(node, neighbour))
                    onward.append((neighbour, node))
            frontier = onward
    return found


@pytest.mark.parametrize("radius", [1, 2, 3, 5, 20])
def test_every_insertion_once(likelihood, radius):
    tree = likelihood.tree
    prunes = all_prunes(likelihood)
    steps = scan(likelihood, prunes, radius, EVERYTHING)
    assert len(prunes) == 3 * (tree.n_taxa - 2)
    for index, (joint, column) in enumerate(zip(prunes.joints.tolist(), prunes.columns.tolist(), strict=True)):
        subtree = int(tree.neighbours[joint, column])
        found = steps.branch[steps.prune == index].tolist()
        assert len(found) == len(set(found))
        assert set(found) == insertions_within(tree, joint, subtree, radius)
        if radius == 20:  # all branches but the subtree's own and the two at the gap
            inside = sum(subtree_contains(tree, subtree, joint, branch) for branch in range(tree.n_edges))
            assert len(found) == tree.n_edges - inside - 2


class Spy:
    """Records the programs that scans send to an engine."""

    def __init__(self, engine):
        self.programs = []
        self._ask = engine.ask
        engine.ask = self

    def __call__(self, request, lengths):
        if request.kind == "scan":
            self.programs.append(request.program)
        return self._ask(request, lengths)


def test_parents_come_before_their_children(likelihood):
    steps = scan(likelihood, all_prunes(likelihood), 6, EVERYTHING)
    inner = steps.parent >= 0
    parent = steps.parent[inner]
    assert np.all(parent < np.flatnonzero(inner))
    assert np.array_equal(steps.prune[parent], steps.prune[inner])
    assert np.array_equal(steps.depth[parent] + 1, steps.depth[inner])
    assert np.array_equal(steps.branch[parent], steps.source_branch[inner])
    assert np.all(steps.depth[~inner] == 0)
    assert steps.depth.max() in (4, 5)


def other_end(tree, operand, branch):
    """The end of a branch other than the node of an operand."""
    node = ~operand if operand < 0 else operand // 3 + tree.n_taxa
    (other,) = set(tree.ends[branch].tolist()) - {node}
    return other


def test_no_sibling_overwrites_a_scratch_cla_that_is_still_needed(likelihood):
    """Run the programs symbolically: a slot holds the branch from which its subtree is seen."""
    spy = Spy(likelihood.engine)
    tree, scratch = likelihood.tree, likelihood.scratch
    scan(likelihood, all_prunes(likelihood), 6, EVERYTHING)
    assert len(spy.programs) == 2  # two phases
    for program in spy.programs:
        holds, gap = {}, None
        for opcode, result, a, pa, b, pb, *_ in program.tolist():
            if opcode == Opcode.PROPAGATE:
                assert result == scratch
                holds, gap = {}, other_end(tree, a, pa)
            elif opcode == Opcode.NEWVIEW:
                assert scratch < result <= scratch + 6
                node = other_end(tree, b, pb)
                came_along = pa
                if a > scratch:  # on from a step
                    assert result == a + 1
                    assert holds[a] == pa
                else:  # out of the gap
                    assert result == scratch + 1
                    came_along = tree.edge_between(node, gap)
                (holds[result],) = set(tree.edges[node].tolist()) - {pb, came_along}
                last = result
            elif opcode == Opcode.INSERT:
                assert a == last
                assert holds[a] == pa - tree.n_edges == pb - tree.n_edges
                assert other_end(tree, b, holds[a]) in tree.ends[holds[a]]


@pytest.mark.parametrize("limit", [1, 7, 50])
def test_many_launches_give_the_same_bits(likelihood, monkeypatch, limit):
    prunes = all_prunes(likelihood)
    expected = scan(likelihood, prunes, 5, EVERYTHING)
    before = likelihood.engine.counters.requests["scan"]
    monkeypatch.setattr(scan_module, "SCAN_VALUES_PER_LAUNCH", limit * len(likelihood.engine.layout.groups))
    found = scan(likelihood, prunes, 5, EVERYTHING)
    assert np.array_equal(found.scores, expected.scores)
    assert likelihood.engine.counters.requests["scan"] > 2 * before


def test_phases_change_nothing_but_what_is_left_out(likelihood, monkeypatch):
    """One phase, or one phase per depth: the same insertions and bits if no direction is dropped."""
    prunes = all_prunes(likelihood)
    results = []
    for phases in ((), (3,), (1, 2, 3, 4, 5)):
        monkeypatch.setattr(scan_module, "SCAN_PHASES", phases)
        steps = scan(likelihood, prunes, 6, EVERYTHING)
        assert np.all(np.diff(np.unique(steps.prune)) > 0)
        results.append({(p, b): s for p, b, s in zip(steps.prune, steps.branch, steps.scores, strict=True)})
        assert len(results[-1]) == len(steps)
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize(
    ("patient", "least"), [(False, 0.0), (True, 0.0), (False, 3.0)], ids=["impatient", "patient", "least"]
)
@pytest.mark.parametrize("phases", [(2,), (1, 2, 3), (1, 3)], ids=str)
def test_hopeless_directions_are_dropped(likelihood, monkeypatch, phases, patient, least):
    """A walk goes on from exactly those pauses where the last step, or if patient any since the last pause, is good.

    `least` is what a step may lose in any case, times the share of the typical loss.
    """
    prunes = all_prunes(likelihood)
    monkeypatch.setattr(scan_module, "SCAN_PHASES", phases)
    monkeypatch.setattr(scan_module, "WALK_CUTOFF", 0.3)
    every = scan(likelihood, prunes, 5, EVERYTHING)
    near = every.scores[every.depth == 0]
    lnl = float(np.median(near) + np.std(near))  # as if the tree fitted: on random data most insertions are better
    loss = 0.3 * (lnl - np.median(near))
    monkeypatch.setattr(scan_module, "WALK_LEAST", least * loss)
    some = scan(likelihood, prunes, 5, lnl, patient=patient)
    assert some.typical_loss == lnl - np.median(near)
    found = {(p, b) for p, b in zip(some.prune.tolist(), some.branch.tolist(), strict=True)}
    expected = set()
    for index in range(len(every)):
        scores, at = [], index  # of the steps on the way, the last one first
        while at >= 0:
            scores.append(every.scores[at])
            at = every.parent[at]
        scores.reverse()
        phase_ends = [stop for stop in phases if stop < len(scores)]
        starts = (0, *phase_ends) if patient else [stop - 1 for stop in phase_ends]
        reached = [max(scores[start:stop]) for start, stop in zip(starts, phase_ends, strict=False)]
        if all(score >= lnl - max(1.0, least) * loss for score in reached):
            expected.add((int(every.prune[index]), int(every.branch[index])))
    assert found == expected
    assert len(some) < len(every)


def test_the_scan_leaves_the_clas_of_the_tree_alone(likelihood):
    n_slots = likelihood.scratch
    likelihood.directed()
    before = likelihood.engine._clas[:n_slots].copy()
    scan(likelihood, all_prunes(likelihood), 5, EVERYTHING)
    assert np.array_equal(likelihood.engine._clas[:n_slots], before)


def test_a_healed_branch_is_better_than_the_sum():
    """lnL of the tree without the subtree: with the healed branch, against the sum of the two old lengths."""
    rng = np.random.default_rng(5)
    n_taxa = 12
    mixture = random_mixture(rng, 4, 2)
    ends, lengths = random_ends(rng, n_taxa)
    codes = simulate_codes(rng, ends, lengths, n_taxa, 200, mixture)
    likelihood = likelihood_of(make_tree(ends, lengths, n_taxa), codes, np.ones(200), mixture)
    smooth(likelihood)
    tree, view = likelihood.tree, likelihood.view
    prunes = all_prunes(likelihood)
    gained = 0
    for index, (joint, column) in enumerate(zip(prunes.joints.tolist(), prunes.columns.tolist(), strict=True)):
        k1, k2 = (column + 1) % 3, (column + 2) % 3
        total = tree.lengths[tree.edges[joint, k1]] + tree.lengths[tree.edges[joint, k2]]
        edge = int(view.incoming[joint, k1]), int(view.incoming[joint, k2])
        lengths = np.array([total, prunes.healed[index]])
        summed, healed = evaluate_edges(likelihood.engine, [(*edge, 0), (*edge, 1)], lengths)[:, 0]
        assert healed >= summed - 1e-6
        gained += healed > summed + 1e-6
    assert gained > len(prunes) / 2


def test_prunes_of_some_joints():
    likelihood = make_case(2, 10)
    every = all_prunes(likelihood)
    some = all_prunes(likelihood, np.array([12, 14]))
    chosen = np.isin(every.joints, (12, 14))
    assert some.joints.tolist() == every.joints[chosen].tolist() == [12] * 3 + [14] * 3
    np.testing.assert_array_equal(some.columns, every.columns[chosen])
    np.testing.assert_array_equal(some.healed, every.healed[chosen])


def test_small_and_unbalanced_trees():
    four = make_case(2, 4)
    assert len(scan(four, all_prunes(four), 5, EVERYTHING)) > 0
    deep = make_case(4, 14, caterpillar(14))
    prunes = all_prunes(deep)
    steps = scan(deep, prunes, 10, EVERYTHING)
    for index in range(0, len(steps), 41):
        assert steps.scores[index] == pytest.approx(moved_lnl(deep, prunes, steps, index)[0], rel=RTOL)
