"""Marginal states at inner nodes, against a sum over all states of all other nodes."""

import numpy as np
import pytest
from helpers import FixedModel, make_tree, random_codes, random_ends, random_mixture
from oracles.likelihood import site_likelihood

from plltool.alignment import resampling
from plltool.alignment.patterns import Patterns
from plltool.alignment.states import DNA, PROTEIN
from plltool.engine.base import EngineData
from plltool.engine.layout import Layout
from plltool.engine.numpy_engine import NumpyEngine
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
    engine = NumpyEngine(layout, n_slots, EngineData(codes, np.ones(codes.shape[1])), memory)
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
    monkeypatch.setattr(resampling, "RESAMPLED_VALUES", 1)  # node by node
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
