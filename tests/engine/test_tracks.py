"""Programs beside each other, each with a tree, lengths and models of its own, against the oracle."""

import numpy as np
import pytest
from engine_kinds import OPENCL_KINDS, as_params
from helpers import program_to_branch, random_codes, random_ends, random_mixture
from oracles.likelihood import pruning

from plltool.engine import program as prog
from plltool.engine.program import Track
from plltool.errors import EngineError

N_TAXA, PARTS = 6, (40, 23)
N_INNER = N_TAXA - 2


class Chain:
    """A tree with lengths and a model for each part, and its track in slots of its own."""

    def __init__(self, rng, number):
        self.ends, self.lengths = random_ends(rng, N_TAXA)
        self.by_part = [self.lengths, 2.0 * self.lengths] if number == 1 else [self.lengths]  # or all parts share them
        self.mixtures = [random_mixture(rng, 4, 4) for _ in PARTS]
        self.number = number

    def track(self, engine, operations=True, derivatives=False):
        program, a, b = program_to_branch(self.ends, N_TAXA, 3)
        last = prog.derivative(1, a, b, 3) if derivatives else program[:0]
        whole = np.concatenate([program if operations else program[:0], prog.evaluate(0, a, b, 3), last])
        for word in (1, 2, 4):  # slots of what makes CLAs, and operands
            moves = (whole[:, word] >= 0) & ((word > 1) | (whole[:, 0] < 2))
            whole[moves, word] += N_INNER * self.number
        (model,) = engine.pack_models([[own.components for own in self.mixtures]])
        return Track(whole.tolist(), [own.tolist() for own in self.by_part], model, 1 + 3 * derivatives)

    def expected(self, codes, weights):
        first, branches = PARTS[0], self.ends.tolist()
        some = slice(0, first), slice(first, None)
        return [
            weights[part] @ pruning(branches, lengths, codes.T[part].tolist(), own.oracle)
            for part, own, lengths in zip(some, self.mixtures, self.by_part * (2 // len(self.by_part)), strict=True)
        ]


@pytest.fixture
def data():
    rng = np.random.default_rng(1)
    codes = random_codes(rng, N_TAXA, sum(PARTS))
    return codes, rng.integers(1, 9, sum(PARTS)).astype(float), [Chain(rng, number) for number in range(3)]


def test_tracks_differ_in_trees_lengths_and_models(few_kind, make_engine, data):
    codes, weights, chains = data
    own = chains[2].mixtures
    engine = make_engine(few_kind, 3 * N_INNER, codes, weights, own, PARTS)
    found = engine.ask_tracks([chain.track(engine) for chain in chains])()
    # double, and short sums in another order
    assert found == pytest.approx(np.array([chain.expected(codes, weights) for chain in chains]), rel=1e-11)
    program, a, b = program_to_branch(chains[2].ends, N_TAXA, 3)
    request = prog.Request(np.concatenate([program, prog.evaluate(0, a, b, 3)]), 1)
    alone = engine.execute(request, chains[2].lengths)[:, 0]
    assert alone.tolist() == found[2].tolist()  # the engine's own models are still those in use


@pytest.mark.parametrize("kind", as_params(OPENCL_KINDS))
def test_one_thread_makes_the_same_bits(kind, make_engine, data):
    """On a CPU one work-group makes all P matrices and takes all spans and tracks."""
    codes, weights, chains = data
    found = []
    for units in (None, 1):
        engine = make_engine(kind, 3 * N_INNER, codes, weights, chains[0].mixtures, PARTS, compute_units=units)
        found.append(engine.ask_tracks([chain.track(engine, derivatives=True) for chain in chains])())
    assert found[0].tolist() == found[1].tolist()
    expected = np.concatenate([chain.expected(codes, weights) for chain in chains])
    assert found[1][::4].ravel() == pytest.approx(expected, rel=1e-11)  # as above


def test_clas_of_tracks_stay(any_kind, make_engine, data):
    codes, weights, chains = data
    engine = make_engine(any_kind, 3 * N_INNER, codes, weights, chains[0].mixtures, PARTS)
    whole = engine.ask_tracks([chain.track(engine) for chain in chains])()
    again = engine.ask_tracks([chain.track(engine, operations=False) for chain in chains])()
    assert again.tolist() == whole.tolist()


def test_tracks_with_several_values(any_kind, make_engine, data):
    """The second of three chains asks for derivatives, too, which are those of the chain alone."""
    codes, weights, chains = data
    engine = make_engine(any_kind, 3 * N_INNER, codes, weights, chains[1].mixtures, PARTS)
    found = engine.ask_tracks([chain.track(engine, derivatives=chain.number == 1) for chain in chains])()
    values = engine.ask_tracks([chain.track(engine) for chain in chains])()
    assert found[[0, 1, 5]].tolist() == values.tolist()
    program, a, b = program_to_branch(chains[1].ends, N_TAXA, 3)
    lengths = np.array(chains[1].by_part)
    engine.run(program, lengths)
    assert found[2:5].tolist() == engine.derivatives([[a, b, 3]], lengths)[0].T.tolist()


def test_streaming_engines_run_whole_programs(few_kind, make_engine, data):
    codes, weights, chains = data
    engine = make_engine(few_kind, 3 * N_INNER, codes, weights, chains[0].mixtures, PARTS)
    least = -(-engine.cla_bytes // engine.layout.n_tiles)
    small = make_engine(few_kind, 3 * N_INNER, codes, weights, chains[0].mixtures, PARTS, memory=least)
    assert small.resident == (engine.layout.n_tiles == 1)
    found, expected = (own.ask_tracks([chain.track(own) for chain in chains])() for own in (small, engine))
    assert found.tolist() == expected.tolist()


def test_a_slot_that_is_not_there(few_kind, make_engine, data):
    codes, weights, chains = data
    engine = make_engine(few_kind, 3 * N_INNER - 1, codes, weights, chains[0].mixtures, PARTS)
    with pytest.raises(EngineError, match="slot"):
        engine.ask_tracks([chain.track(engine) for chain in chains])()
