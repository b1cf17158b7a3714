"""States at inner nodes: marginal ones against sums over all others, joint ones against all combinations."""

import re
from itertools import product

import numpy as np
import pytest
from helpers import FixedModel, make_tree, plain_engine, random_codes, random_ends, random_mixture
from oracles.likelihood import orient, site_likelihood, transition_matrices
from scipy.linalg import expm, null_space

import plltool
from plltool.alignment import patterns as columns
from plltool.alignment.patterns import Patterns
from plltool.alignment.states import DNA, PROTEIN
from plltool.analyses.ancestral.analysis import joint_states
from plltool.engine.base import EngineData
from plltool.engine.layout import Layout
from plltool.engine.storage import tile_bytes
from plltool.optimise.ancestral import node_states, with_state_tips
from plltool.optimise.likelihood import TreeLikelihood

N_TAXA, N_PATTERNS = 4, 7


def make_patterns(rng, n_patterns=N_PATTERNS):
    codes = random_codes(rng, N_TAXA, n_patterns).astype(np.uint8)
    return Patterns(codes, np.ones(n_patterns), np.arange(n_patterns), DNA)


def likelihood_with_states(tree, parts, mixtures, memory_tiles=None):
    held = with_state_tips(parts)
    codes = np.concatenate([part.codes for part in held], axis=1)
    layout = Layout(4, mixtures[0].n_components, len(codes), tuple(part.n_patterns for part in parts), 4)
    n_slots = 3 * (N_TAXA - 2) + 1
    memory = None if memory_tiles is None else memory_tiles * tile_bytes(layout, n_slots)
    engine = plain_engine(layout, n_slots, EngineData(codes, np.ones(codes.shape[1])), memory)
    return TreeLikelihood(tree, [FixedModel(mixture.components) for mixture in mixtures], engine)


@pytest.fixture(scope="module", params=["mixture", "invariable"])
def case(request):
    rng = np.random.default_rng(31)
    ends, lengths = random_ends(rng, N_TAXA)
    rates = [0.0, 0.5, 1.5] if request.param == "invariable" else None
    mixture = random_mixture(rng, 4, 3, rates)
    parts = [make_patterns(rng), make_patterns(rng, 3)]
    expected = []
    for part in parts:
        table = np.empty((N_TAXA - 2, part.n_patterns, 4))
        for column, sets in enumerate(part.codes.T.tolist()):
            whole = site_likelihood(ends.tolist(), lengths, sets, mixture.oracle)
            for node in range(N_TAXA - 2):
                for state in range(4):
                    known = {N_TAXA + node: state}
                    joint = site_likelihood(ends.tolist(), lengths, sets, mixture.oracle, known)
                    table[node, column, state] = joint / whole
        expected.append(table)
    return make_tree(ends, lengths, N_TAXA), parts, [mixture, mixture], expected


def test_states_are_those_of_the_sum_over_all_others(case):
    tree, parts, mixtures, expected = case
    found = node_states(likelihood_with_states(tree, parts, mixtures), [4, 4])
    for part, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(part, wanted, rtol=1e-11, atol=1e-14)


def test_less_memory_changes_nothing(case, monkeypatch):
    tree, parts, mixtures, _ = case
    whole = node_states(likelihood_with_states(tree, parts, mixtures), [4, 4])
    monkeypatch.setattr(columns, "RESAMPLED_VALUES", 1)  # node by node
    streamed = node_states(likelihood_with_states(tree, parts, mixtures, memory_tiles=2), [4, 4])
    for part, wanted in zip(streamed, whole, strict=True):
        assert np.array_equal(part, wanted)


def test_tips_of_states():
    """A tip for each of 4 and 20 states; a part with fewer states gets gaps."""
    dna = Patterns(np.full((2, 3), 15, dtype=np.uint8), np.ones(3), np.arange(3), DNA)
    alone = with_state_tips([dna])[0]
    assert alone.codes[2:, 0].tolist() == [1, 2, 4, 8]
    protein = Patterns(np.full((2, 1), PROTEIN.all_states_code, dtype=np.uint8), np.ones(1), np.arange(1), PROTEIN)
    first, second = with_state_tips([dna, protein])
    assert first.codes.shape == (22, 3)
    assert (first.codes[6:] == DNA.all_states_code).all()
    assert np.array_equal(PROTEIN.state_sets[second.codes[2:, 0]], np.eye(20, dtype=bool))


def best_states(ends, lengths, sets, components, n_tips):
    """The largest joint probability of the data, a category and states of the inner nodes; all states that reach it."""
    best, reached = 0.0, []
    matrices = transition_matrices(components, lengths)
    for (weight, frequencies, _), p in zip(components, matrices, strict=True):
        for states in product(range(4), repeat=n_tips - 2):
            value = weight * frequencies[states[0]]
            for parent, child, branch in orient(ends, n_tips):
                row = p[branch][states[parent - n_tips]]
                allowed = [s for s in range(4) if sets[child] >> s & 1] if child < n_tips else [states[child - n_tips]]
                value *= max(row[s] for s in allowed)
            if value > best * (1 + 1e-9):
                best, reached = value, [states]
            elif value > best * (1 - 1e-9):
                reached.append(states)
    return best, reached


@pytest.mark.parametrize(("seed", "n_taxa", "rates"), [(1, 4, None), (2, 5, None), (3, 5, [0.0, 0.5, 1.5])])
def test_no_other_states_are_more_probable(seed, n_taxa, rates, monkeypatch):
    rng = np.random.default_rng(seed)
    ends, lengths = random_ends(rng, n_taxa)
    mixture = random_mixture(rng, 4, 3, rates)
    codes = random_codes(rng, n_taxa, 9).astype(np.uint8)
    tree, patterns = make_tree(ends, lengths, n_taxa), Patterns(codes, np.ones(9), np.arange(9), DNA)
    monkeypatch.setattr(columns, "RESAMPLED_VALUES", 4 * 4 * tree.n_nodes)  # four patterns at a time
    values, states = joint_states(tree, np.array(lengths), mixture.components, patterns)
    n_unique = 0
    for column, sets in enumerate(codes.T.tolist()):
        best, reached = best_states(ends.tolist(), lengths, sets, mixture.oracle, n_taxa)
        assert values[column] == pytest.approx(np.log(best), rel=1e-10)
        assert tuple(states[:, column]) in reached
        n_unique += len(reached) == 1
    assert n_unique >= 5, "else nothing was tested"


TREE = "((a:0.1,b:0.5):0.15,(c:0.3,(d:0.2,e:0.4):0.2):0.05);"
LENGTHS = [0.15, 0.05, 0.2, 0.1, 0.5, 0.3, 0.2, 0.4]  # to ab, cde, de, a, b, c, d and e
PARENTS = [1, 1, 2, 3, 3]  # of the tips, among root, ab, cde and de
RATES = [2, 5, 1, 0.5, 1, 9, 3, 1, 0.6, 1.5, 8, 1]
MODEL = f"UNREST{{{'/'.join(map(str, RATES))}}}"
ROWS = {"a": "ACGTANT", "b": "CCGTTAG", "c": "GAGCTCA", "d": "TAGCRCG", "e": "AATGCGA"}
STATES = {"A": [0], "C": [1], "G": [2], "T": [3], "R": [0, 2], "N": [0, 1, 2, 3]}


def joint_tables():
    """For each column two (4, 4, 4, 4), by states of inner nodes: probability of the data, and of their best states."""
    q = np.zeros((4, 4))
    q[~np.eye(4, dtype=bool)] = RATES
    np.fill_diagonal(q, -q.sum(axis=1))
    pi = null_space(q.T)[:, 0]
    pi /= pi.sum()
    p = [expm(q / -(pi @ np.diag(q)) * length) for length in LENGTHS]
    for column in zip(*ROWS.values(), strict=True):
        summed, best = np.zeros((2, 4, 4, 4, 4))
        for states in np.ndindex(4, 4, 4, 4):
            root, ab, cde, de = states
            inner = pi[root] * p[0][root, ab] * p[1][root, cde] * p[2][cde, de]
            tips = zip(p[3:], PARENTS, column, strict=True)
            shares = [change[states[parent], STATES[letter]] for change, parent, letter in tips]
            summed[states] = inner * np.prod([share.sum() for share in shares])
            best[states] = inner * np.prod([share.max() for share in shares])
        yield summed, best


def test_states_with_a_root(device):
    found = plltool.ancestral_states(ROWS, TREE, MODEL, fixed=True, device=device)
    assert re.sub(r":[^,()]+", "", found.labelled) == "((a,b)Node2,(c,(d,e)Node4)Node3)Node1;"
    nodes = [found.nodes.index(f"Node{number}") for number in range(1, 5)]
    part, lnl, joint_lnl = found.ancestors[0], 0.0, 0.0
    for site, (summed, best) in enumerate(joint_tables()):
        marginal = [summed.sum(axis=tuple({0, 1, 2, 3} - {node})) / summed.sum() for node in range(4)]
        np.testing.assert_allclose(part.probabilities[nodes, site], marginal, rtol=1e-9, err_msg=str(site))
        states = tuple(part.joint[nodes, site].tolist())
        assert best[states] == pytest.approx(best.max(), rel=1e-9)  # another history may be as probable
        lnl, joint_lnl = lnl + np.log(summed.sum()), joint_lnl + np.log(best.max())
    assert found.lnl == pytest.approx(lnl, rel=1e-10)
    assert part.joint_lnl == pytest.approx(joint_lnl, rel=1e-9)
    assert "(root)" not in "".join(found.texts().values())
