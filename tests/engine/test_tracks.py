"""What one launch does at the same time: pieces of a program, and one program under several models."""

import dataclasses

import numpy as np
import pytest
from engine_kinds import Kind, as_params
from helpers import program_to_branch, random_codes, random_ends, random_mixture
from oracles.likelihood import brute_force

from plltool.engine import program as prog
from plltool.engine.opencl import tracks as module
from plltool.engine.program import Request
from plltool.engine.storage import tile_bytes
from plltool.errors import EngineError

N_TAXA = 5
PARTS = (70, 9)
RTOL = 1e-11  # the order of sums differs
DEVICE_KINDS = [Kind("vector", 4), Kind("lanes", 32, 2, max_groups=2)]


@pytest.fixture(scope="module")
def case():
    """Five models of two parts on one tree, lengths for each of them, and their lnL by brute force."""
    rng = np.random.default_rng(29)
    ends, _ = random_ends(rng, N_TAXA)
    models = [[random_mixture(rng, 4, 2) for _ in PARTS] for _ in range(5)]
    lengths = rng.random((5, len(PARTS), len(ends)))
    codes = random_codes(rng, N_TAXA, sum(PARTS))
    weights = rng.integers(1, 9, sum(PARTS)).astype(float)
    expected = np.array([
        [
            weights[columns] @ brute_force(ends.tolist(), at[p], codes[:, columns].T.tolist(), model[p].oracle)
            for p, columns in enumerate((slice(0, PARTS[0]), slice(PARTS[0], None)))
        ]
        for model, at in zip(models, lengths, strict=True)
    ])  # fmt: skip
    return ends, models, lengths, codes, weights, expected


def components(models):
    return [[mixture.components for mixture in model] for model in models]


@pytest.mark.parametrize("n_slots", [3, 7, 20], ids=["one_at_a_time", "two_at_a_time", "all_at_once"])
@pytest.mark.parametrize("streamed", [False, True])
def test_likelihoods_are_brute_force(any_kind, make_engine, case, n_slots, streamed):
    ends, models, lengths, codes, weights, expected = case
    layout = make_engine(any_kind, 1, codes, weights, models[0], PARTS).layout
    memory = tile_bytes(layout, n_slots) if streamed else None
    engine = make_engine(any_kind, n_slots, codes, weights, models[2], PARTS, memory=memory)
    program, a, b = program_to_branch(ends, N_TAXA, 2)
    request = Request(np.concatenate([program, prog.evaluate(0, a, b, 2)]), 1)
    for at in (0, 2):  # and the engine's own model is still there
        found = engine.likelihoods(program, (a, b, 2), lengths, components(models))
        np.testing.assert_allclose(found, expected, rtol=RTOL)
        own = engine.execute(request, lengths[at])[:, 0]
        np.testing.assert_array_equal(engine.likelihoods(program, (a, b, 2), lengths[at], components(models))[2], own)
    np.testing.assert_allclose(own, expected[2], rtol=RTOL)


@pytest.mark.opencl
@pytest.mark.parametrize("kind", as_params(DEVICE_KINDS))
def test_models_share_launches(make_engine, case, kind):
    """Of P matrices, of the traversal, and of sums if there are any."""
    ends, models, lengths, codes, weights, _ = case
    program, a, b = program_to_branch(ends, N_TAXA, 0)
    engine = make_engine(kind, 3 * len(models), codes, weights, models[0], PARTS)
    engine.likelihoods(program, (a, b, 0), lengths, components(models))
    assert engine.counters.launches == 2 + len(engine._sums.levels)
    assert engine.counters.requests == {"likelihoods": len(models)}


def test_models_that_do_not_fit(few_kind, make_engine, case):
    ends, models, lengths, codes, weights, _ = case
    engine = make_engine(few_kind, 3, codes, weights, models[0], PARTS)
    program, a, b = program_to_branch(ends, N_TAXA, 0)
    with pytest.raises(EngineError, match="2 parts"):
        engine.likelihoods(program, (a, b, 0), lengths[0], [components(models)[0][:1]])
    with pytest.raises(EngineError, match="slot 3"):
        engine.likelihoods(prog.newview(3, ~0, 0, ~1, 1), (a, b, 0), lengths[0], components(models))


# --- pieces ---------------------------------------------------------------------------------------------------


def join_taxa(slot):
    """For each taxon k but 0, in a piece of its own: taxon 0 goes to `slot`, along branch k, and meets k and slot 0."""
    pairs = [[prog.propagate(slot, ~0, k), prog.insert(k - 1, ~k, k, 0, 0, slot)] for k in range(1, N_TAXA)]
    return np.concatenate([row for pair in pairs for row in pair]), np.arange(0, 2 * len(pairs), 2, dtype=np.int32)


@pytest.mark.opencl
@pytest.mark.parametrize("wanted", [0, 2, 1000])
@pytest.mark.parametrize("kind", as_params(DEVICE_KINDS))
def test_pieces_have_scratch_of_their_own(make_engine, case, kind, wanted, monkeypatch):
    """Values do not depend on how many pieces run at once; each leaves its CLA in the slot that is its own."""
    from plltool.engine.opencl import engine as opencl_engine

    monkeypatch.setattr(opencl_engine, "CPU_GROUPS_PER_UNIT", wanted)
    monkeypatch.setattr(opencl_engine, "GPU_GROUPS_PER_UNIT", wanted)
    _, models, lengths, codes, weights, _ = case
    engine = make_engine(kind, 9, codes, weights, models[0], PARTS)
    program, pieces = join_taxa(2)
    engine.run(prog.newview(0, ~1, 1, ~2, 2), lengths[0])
    whole = engine.execute(Request(program, N_TAXA - 1), lengths[0])
    request = Request(program, N_TAXA - 1, pieces=pieces, scratch=range(2, 3))
    np.testing.assert_array_equal(engine.execute(request, lengths[0]), whole)
    if wanted == 1000:
        for k in range(1, N_TAXA):
            left = engine.execute(Request(prog.insert(0, ~k, k, 0, 0, 1 + k), 1), lengths[0])
            np.testing.assert_array_equal(left[:, 0], whole[:, k - 1])


def plan(n_pieces, wanted, n_slots=100, scratch=range(90, 95), n_spans=2):
    program = np.zeros((10 * n_pieces, prog.N_WORDS), dtype=np.int32)
    request = Request(program, pieces=10 * np.arange(n_pieces, dtype=np.int32), scratch=scratch)
    return module.plan_tracks(request, n_slots, n_spans, wanted)


@pytest.mark.parametrize(
    ("n_pieces", "wanted", "n_slots", "expected"),
    [(8, 1, 100, 1), (8, 2, 100, 1), (8, 3, 100, 2), (8, 7, 110, 4), (8, 7, 109, 3), (8, 7, 95, 1), (3, 100, 200, 3)],
)
def test_so_many_tracks_as_are_wanted_and_have_room(n_pieces, wanted, n_slots, expected):
    tracks = plan(n_pieces, wanted, n_slots)
    assert len(tracks) == expected
    assert tracks[0, 0] == 0
    assert tracks[-1, 1] == 10 * n_pieces
    assert np.array_equal(tracks[1:, 0], tracks[:-1, 1])
    assert np.all(tracks[:, 0] % 10 == 0)
    assert np.array_equal(tracks[:, 2], 5 * np.arange(expected))
    sizes = tracks[:, 1] - tracks[:, 0]
    assert sizes.max() - sizes.min() <= 10


def test_pieces_without_scratch_need_no_room():
    assert len(plan(8, 100, 95, range(0))) == 8
    assert not plan(8, 100, 95, range(0))[:, 2:].any()


def test_a_piece_longer_than_a_share_is_one_track():
    request = Request(np.zeros((12, prog.N_WORDS), dtype=np.int32), pieces=np.array([0, 9, 10], dtype=np.int32))
    assert module.plan_tracks(request, 10, 1, 3)[:, :2].tolist() == [[0, 12]]
    request = dataclasses.replace(request, pieces=np.array([0, 1, 9], dtype=np.int32))
    assert module.plan_tracks(request, 10, 1, 3)[:, :2].tolist() == [[0, 1], [1, 12]]
