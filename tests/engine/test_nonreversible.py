"""Processes that are not time-reversible, on rooted trees, against the oracle: pruning from the root, with expm."""

from dataclasses import replace

import numpy as np
import pytest
from engine_kinds import Kind
from helpers import (
    FixedModel,
    as_masks,
    directed_mix,
    make_tree,
    random_codes,
    random_directed_mixture,
    random_ends,
    random_mixture,
    random_tips,
    replaced,
)
from oracles.likelihood import brute_force, derivative, pruning, with_root
from scipy.linalg import expm

from plltool.engine import program as prog
from plltool.errors import EngineError
from plltool.optimise.likelihood import TreeLikelihood
from plltool.tree.rooted import add_root

pytestmark = pytest.mark.usefixtures("unoptimised")
N_TAXA = 6
N_PATTERNS = 23
STEP = 1e-2  # relative, where f' and f'' come from a difference of fourth order
SMALL_STEP = 1e-4  # of rates and logarithms
SHARE = 0.3


class Case:
    """Data, a rooted tree and mixtures of two parts, for the oracle and for an engine."""

    def __init__(self, n_states, n_components, branch=4):
        rng = np.random.default_rng([n_states, n_components])
        self.ends, self.lengths = random_ends(rng, N_TAXA)
        self.branch = branch
        self.codes, self.state_sets = random_tips(rng, N_TAXA, N_PATTERNS, n_states)
        self.weights = rng.integers(1, 5, N_PATTERNS).astype(float)
        self.mixtures = [random_directed_mixture(rng, n_states, n_components) for _ in range(2)]
        self.parts = (slice(0, 14), slice(14, N_PATTERNS))
        self.tree = add_root(make_tree(self.ends, self.lengths, N_TAXA), branch, SHARE)

    def columns(self, part):
        return as_masks(self.codes, self.state_sets)[:, self.parts[part]].T.tolist()

    def lnl(self, part, lengths=None, oracle=None):
        """lnL of a part; `lengths` are those of the rooted tree, numbered as its branches, the root's own last."""
        lengths = self.tree.lengths if lengths is None else lengths
        ends, _ = with_root(self.ends.tolist(), self.lengths, N_TAXA, self.branch, SHARE)
        sites = pruning(ends, lengths[:-1], self.columns(part), oracle or self.mixtures[part].oracle)
        return float(self.weights[self.parts[part]] @ np.array(sites))

    def likelihood(self, kind, make_engine, **more):
        gaps = (1 << self.mixtures[0].n_states) - 1
        state_sets = self.state_sets
        if state_sets is not None:
            state_sets = np.vstack([state_sets, np.ones_like(np.asarray(state_sets)[:1])])
            gaps = len(state_sets) - 1
        codes = np.vstack([np.full(N_PATTERNS, gaps, dtype=self.codes.dtype), self.codes])
        engine = make_engine(
            kind, 3 * (N_TAXA - 1) + 4, codes, self.weights, self.mixtures, (14, 9), state_sets=state_sets, **more
        )
        return TreeLikelihood(self.tree.copy(), [FixedModel(m.components) for m in self.mixtures], engine)


SHAPES = [(2, 1), (4, 3), (5, 2), (20, 2)]


@pytest.fixture(scope="module", params=SHAPES, ids=[f"{s}x{c}" for s, c in SHAPES])
def case(request):
    return Case(*request.param)


def test_the_oracle():
    """Pruning from the root and the sum over all states agree."""
    case = Case(4, 2)
    ends, lengths = with_root(case.ends.tolist(), case.lengths, N_TAXA, case.branch, SHARE)
    arguments = ends, lengths, case.columns(0), case.mixtures[0].oracle
    assert pruning(*arguments) == pytest.approx(brute_force(*arguments), rel=1e-12)


def test_eigenvalues_are_complex(case):
    if case.mixtures[0].n_states > 2:
        assert np.any(case.mixtures[0].components.rotations != 0)


@pytest.mark.opencl
def test_lnl_without_double(make_engine):
    """The tables of branches come from the host, those against time as well."""
    case = Case(4, 3)
    likelihood = case.likelihood(Kind("lanes", 32, has_double=False), make_engine, precision="single")
    assert likelihood.part_lnl() == pytest.approx([case.lnl(0), case.lnl(1)], rel=2e-7)  # measured: 2e-8


def test_the_root_matters(make_engine):
    """Two places of the root differ in lnL, unlike under a reversible process."""
    assert abs(Case(4, 1, branch=0).lnl(0) - Case(4, 1, branch=4).lnl(0)) > 0.1


def test_derivatives_of_all_branches(case, few_kind, make_engine):
    likelihood = case.likelihood(few_kind, make_engine)
    assert likelihood.part_lnl() == pytest.approx([case.lnl(0), case.lnl(1)], rel=1e-11)
    lnl, slopes = likelihood.all_derivatives()
    assert lnl == pytest.approx(case.lnl(0) + case.lnl(1), rel=1e-11)
    for edge, t in enumerate(case.tree.lengths[:-1]):

        def shifted(t, edge=edge):
            lengths = replaced(case.tree.lengths, edge, t)
            return case.lnl(0, lengths) + case.lnl(1, lengths)

        expected = derivative(shifted, t, STEP * t)
        assert slopes[edge] == pytest.approx(expected, rel=1e-6, abs=1e-6 * case.weights.sum() / t)
    assert slopes[-1] == pytest.approx([0, 0], abs=1e-8)  # the root's own branch


def test_rate_matrices(case, few_kind, make_engine):
    """Any change of the rate matrices: the sum over components of matrices * (left dQ right)."""
    lnls, matrices, _ = case.likelihood(few_kind, make_engine).rate_matrix_gradient()
    rng = np.random.default_rng(1)
    assert lnls == pytest.approx([case.lnl(0), case.lnl(1)], rel=1e-11)
    for part, mixture in enumerate(case.mixtures):
        changes = [rng.random((mixture.n_states,) * 2) for _ in mixture.oracle]
        for change in changes:
            np.fill_diagonal(change, 0)
            np.fill_diagonal(change, -change.sum(axis=1))

        def shifted(step, part=part, mixture=mixture, changes=changes):
            moved = [(w, f, np.asarray(q) + step * dq) for (w, f, q), dq in zip(mixture.oracle, changes, strict=True)]
            return case.lnl(part, oracle=moved)

        components = mixture.components
        found = np.sum(matrices[part] * (components.left @ np.stack(changes) @ components.right))
        expected = derivative(shifted, 0.0, SMALL_STEP)[0]
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-6 * case.weights.sum())


def test_masses(case, few_kind, make_engine):
    """d lnL / d log of each component's weight and of each frequency at the root."""
    _, _, masses = case.likelihood(few_kind, make_engine).rate_matrix_gradient()
    for part, mixture in enumerate(case.mixtures):
        for c in range(mixture.n_components):
            for state in range(mixture.n_states if mixture.n_states < 20 else 2):

                def shifted(step, part=part, mixture=mixture, c=c, state=state):
                    moved = [[w, list(f), q] for w, f, q in mixture.oracle]
                    moved[c][1][state] *= np.exp(step)
                    return case.lnl(part, oracle=moved)

                expected = derivative(shifted, 0.0, SMALL_STEP)[0]
                assert masses[part][c, state] == pytest.approx(expected, rel=1e-6, abs=1e-6 * case.weights.sum())


def test_pulley(case, few_kind, make_engine):
    """With the root held in its place, lnL and slopes are the same wherever the likelihood is taken."""
    likelihood = case.likelihood(few_kind, make_engine)
    view, tree = likelihood.view, likelihood.tree
    expected = case.lnl(0) + case.lnl(1)
    _, slopes = likelihood.all_derivatives()
    for ends in (tree.ends, tree.ends[:, ::-1]):
        columns = np.array([tree.position(a, b) for a, b in ends.tolist()])
        there = view.incoming[ends[:, 0], columns]
        here = np.array([view.incoming[b, tree.position(b, a)] for a, b in ends.tolist()])
        branch = likelihood.against(np.arange(tree.n_edges), view.toward_root[ends[:, 0], columns])
        values = likelihood.directed().derivatives(np.column_stack([here, there, branch]), tree.lengths).sum(axis=1)
        assert values[:, 0] == pytest.approx(np.full(tree.n_edges, expected), rel=1e-11)
        assert values[:-1, 1:] == pytest.approx(slopes[:-1], rel=1e-8, abs=1e-7)


def test_insertions(few_kind, make_engine):
    """A tip pruned and put back into its branch by INSERT and TRIPLET has the lnL that the tree has."""
    case = Case(4, 3)
    likelihood = case.likelihood(few_kind, make_engine)
    view, tree = likelihood.view, likelihood.tree
    for node in range(tree.n_taxa, tree.n_nodes):
        branches = likelihood.against(tree.edges[node], view.toward_root[node])
        operands = view.incoming[node]
        joins = np.column_stack([operands, branches]).reshape(1, 6)
        values = likelihood.directed().triplets(joins, tree.lengths).sum(axis=1)[0]
        assert values[0] == pytest.approx(case.lnl(0) + case.lnl(1), rel=1e-11)
        own = likelihood.scratch
        for third in range(3):
            a, b = (third + 1) % 3, (third + 2) % 3
            program = np.concatenate([
                prog.propagate(own, operands[third], branches[third]),
                prog.insert(0, operands[a], branches[a], operands[b], branches[b], own),
            ])  # fmt: skip
            score = likelihood.directed().execute(prog.Request(program, 1), tree.lengths).sum()
            assert score == pytest.approx(values[0], rel=1e-12)


def test_almost_without_eigenvectors(make_engine):
    """A matrix with one eigenvector for a double eigenvalue, and its neighbours."""
    for off in (0.0, 1e-13, 1e-9, 1e-5):
        q = np.array([[0, 1, 1, 1], [1, 0, 1 + off, 3], [1, 1, 0, 1], [1, 1, 1, 0.0]])
        mixture = directed_mix([(1.0, q, 1.0)])
        for t in (1e-6, 0.1, 3.0):
            found = mixture.components.transition_matrices(t)[0]
            assert found == pytest.approx(expm(mixture.oracle[0][2] * t), rel=1e-8, abs=1e-9)


def test_a_layout_for_reversible_processes_refuses_others(few_kind, make_engine):
    rng = np.random.default_rng(5)
    codes = random_codes(rng, 4, 5)
    reversible, directed = random_mixture(rng), random_directed_mixture(rng)
    engine = make_engine(few_kind, 6, codes, np.ones(5), [reversible])
    with pytest.raises(EngineError, match="for reversible processes, found not reversible ones"):
        engine.set_model([directed.components])
    with pytest.raises(EngineError, match="for not reversible processes, found reversible ones"):
        make_engine(few_kind, 6, codes, np.ones(5), [directed]).set_model([reversible.components])


def test_processes_that_only_claim_to_be_reversible(few_kind, make_engine):
    rng = np.random.default_rng(5)
    q = rng.random((4, 4))
    directed = directed_mix([(1.0, q + q.T * 0.9, 1.0)]).components
    assert np.all(directed.rotations == 0)  # all eigenvalues are real
    engine = make_engine(few_kind, 6, random_codes(rng, 4, 5), np.ones(5), [random_mixture(rng)])
    with pytest.raises(EngineError, match=r"are said to be reversible, found pi_i Q_ij != pi_j Q_ji"):
        engine.set_model([replace(directed, rotations=None)])
