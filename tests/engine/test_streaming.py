"""An engine that holds some tiles at a time answers to the bit as one that holds all."""

import numpy as np
import pytest
from agreement import Case
from engine_kinds import Kind, as_params
from helpers import balanced, caterpillar, likelihood_of, make_tree, random_codes, random_mixture, replaced
from oracles.likelihood import pruning

from plltool.engine.storage import tile_bytes
from plltool.errors import EngineError
from plltool.tree.operations import directed_slots, round_slots, stack_slots
from plltool.tree_search.neighbours import neighbour_sites, optimise_insertions
from plltool.tree_search.scan import all_prunes, scan

N_TAXA = 9
PARTS = (143, 70)
NUMPY_PARTS = (11, 6)  # 5 tiles of one block each; Python takes every instruction through each run of them
N_SLOTS = directed_slots(N_TAXA) + 12
KINDS = [Kind("numpy", 4), Kind("vector", 4, 3), Kind("vector", 2, 3, max_groups=2), Kind("lanes", 32)]


@pytest.fixture(scope="module")
def case():
    return Case(17, N_TAXA, PARTS)


def open_likelihood(case, make_engine, kind, precision, tiles=None, n_slots=N_SLOTS):
    """A TreeLikelihood that holds `tiles` tiles at a time; None for all."""
    layout = case.engine(make_engine, kind, 1, precision=precision).layout
    memory = None if tiles is None else tiles * tile_bytes(layout, n_slots)
    return case.likelihood(make_engine, kind, n_slots, precision=precision, memory=memory)


def ask_everything(likelihood):
    """Every answer that a search uses."""
    answers = [likelihood.lnl(), *likelihood.all_derivatives(), likelihood.site_lnl()]
    answers += likelihood.rate_matrix_gradient()
    prunes = all_prunes(likelihood)
    lnl = answers[0]
    steps = scan(likelihood, prunes, 5, lnl)
    moves = optimise_insertions(likelihood, steps, np.arange(0, len(steps), 2), lnl)
    neighbours = neighbour_sites(likelihood, np.flatnonzero(likelihood.tree.is_inner_branch))
    return [*answers, prunes.healed, steps.scores, steps.branch, moves.lnl, moves.lengths, neighbours]


@pytest.mark.parametrize(
    ("kind", "precision"),
    [
        pytest.param(*kind.values, precision, id=f"{kind.id}-{precision}", marks=kind.marks)
        for kind in as_params(KINDS)
        for precision in ("double", "single")
        if precision == "double" or kind.marks
    ],
)
def test_streamed_is_resident(make_engine, kind, precision):
    case = Case(17, N_TAXA, NUMPY_PARTS if kind.kind == "numpy" else PARTS)
    resident = open_likelihood(case, make_engine, kind, precision)
    expected = ask_everything(resident)
    n_tiles = resident.engine.layout.n_tiles
    for tiles in {1, max(1, n_tiles - 1)} - {n_tiles}:
        streamed = open_likelihood(case, make_engine, kind, precision, tiles)
        assert not streamed.engine.resident
        assert sum(streamed.engine.storage.buffer_tiles) <= tiles
        for found, value in zip(ask_everything(streamed), expected, strict=True):
            assert np.array_equal(found, value)


@pytest.mark.opencl
@pytest.mark.parametrize("kind", as_params([Kind("lanes", 32), Kind("lanes", 32, max_groups=2)]))
@pytest.mark.parametrize("most", [1, 11])  # instructions of a launch on all 8 tiles
def test_launches_that_are_cut(make_engine, kind, most, case, monkeypatch):
    """They answer to the bit as whole ones. Where tiles share slots, a launch takes a span through all instructions."""
    from plltool.engine.opencl import engine as opencl_engine

    monkeypatch.setattr(opencl_engine, "GPU_GROUPS_PER_UNIT", 0)
    whole, cut = (open_likelihood(case, make_engine, kind, "double") for _ in range(2))
    expected = ask_everything(whole)
    whole.all_derivatives()
    n_before, counters = whole.engine.counters.launches, cut.engine.counters
    monkeypatch.setattr(opencl_engine, "GPU_LAUNCH_WORK", most * 8 * 32)
    for found, value in zip(ask_everything(cut), expected, strict=True):
        assert np.array_equal(found, value)
    assert counters.launches > n_before
    done, launches = counters.instructions, counters.launches
    cut.all_derivatives()
    n_instructions, n_spans = counters.instructions - done, len(cut.engine.storage.runs[0])
    expected_launches = -(-n_instructions // most) if cut.engine.layout.max_groups > 2 else n_spans
    assert counters.launches - launches == 1 + expected_launches + len(cut.engine._sums.levels)  # 1 of P matrices


@pytest.mark.parametrize("kind", as_params(KINDS[:2]))
def test_changed_lengths_and_models_are_noticed(case, make_engine, kind):
    """Directed CLAs are recomputed, resident or not, if they are stale, and only then."""
    for tiles in (None, 2):
        likelihood = open_likelihood(case, make_engine, kind, "double", tiles)
        before = all_prunes(likelihood).healed
        assert likelihood.directed() is likelihood.directed()
        likelihood.tree.lengths[0] *= 3
        fresh = open_likelihood(case, make_engine, kind, "double", tiles)
        fresh.tree.lengths[0] *= 3
        longer = all_prunes(likelihood).healed
        assert np.array_equal(longer, all_prunes(fresh).healed)
        assert not np.array_equal(longer, before)
        likelihood.models.reverse()
        likelihood.model_changed()
        other = all_prunes(likelihood).healed
        likelihood.lnl()  # takes the slots of directed CLAs
        assert np.array_equal(all_prunes(likelihood).healed, other)
        assert not np.array_equal(other, longer)


@pytest.mark.parametrize("kind", as_params(KINDS[:2]))
def test_an_engine_that_rests_holds_no_clas(case, make_engine, kind):
    for tiles in (None, 2):
        expected = open_likelihood(case, make_engine, kind, "double", tiles).lnl()
        likelihood = open_likelihood(case, make_engine, kind, "double", tiles)
        engine = likelihood.engine
        before = engine.counters.bytes_held
        engine.release_clas()
        assert engine.counters.bytes_held == before - engine.cla_bytes
        assert likelihood.lnl() == expected
        assert engine.counters.bytes_held >= before
        engine.release_clas()
        engine.close()


@pytest.mark.parametrize("kind", as_params(KINDS[:2]))
def test_slots_suffice(case, make_engine, kind):
    """As many as the table in operations.py says, and the engine notices a program that takes more."""
    all_slots = open_likelihood(case, make_engine, kind, "double")
    few = open_likelihood(case, make_engine, kind, "double", n_slots=round_slots(N_TAXA))
    assert np.array_equal(few.all_derivatives()[1], all_slots.all_derivatives()[1])
    fewest = open_likelihood(case, make_engine, kind, "double", n_slots=stack_slots(N_TAXA))
    assert fewest.lnl() == all_slots.lnl()
    with pytest.raises(EngineError, match=f"slot [0-9]+, the engine has {stack_slots(N_TAXA)}"):
        fewest.all_derivatives()


def test_clas_that_would_not_last_are_refused(case, make_engine):
    streamed = open_likelihood(case, make_engine, KINDS[0], "double", 2)
    with pytest.raises(EngineError, match="do not outlive"):
        streamed.engine.run(np.zeros((0, 8), dtype=np.int32), streamed.tree.lengths)


@pytest.mark.parametrize(
    "ends", [caterpillar(4), caterpillar(5), caterpillar(12), balanced(8), balanced(16)], ids=lambda e: str(len(e))
)
def test_derivatives_of_all_branches_on_odd_shapes(ends):
    """Against differences of the oracle, with the fewest slots."""
    rng = np.random.default_rng(len(ends))
    n_taxa = (len(ends) + 3) // 2
    tree = make_tree(ends, rng.exponential(0.2, len(ends)) + 0.01, n_taxa)
    codes, mixture = random_codes(rng, n_taxa, 7), random_mixture(rng, 4, 4)
    weights = rng.integers(1, 5, 7).astype(float)
    likelihood = likelihood_of(tree, codes, weights, mixture, n_slots=round_slots(n_taxa))
    lnl, slopes = likelihood.all_derivatives()

    def oracle(lengths):
        return weights @ pruning(tree.ends.tolist(), lengths, codes.T.tolist(), mixture.oracle)

    assert lnl == pytest.approx(oracle(tree.lengths), rel=1e-12)
    assert likelihood.lnl() == pytest.approx(lnl, rel=1e-12)
    for branch in range(tree.n_edges):
        h = 1e-4 * tree.lengths[branch]
        at = tree.lengths[branch] + h * np.array([-1, 0, 1])
        lnls = [oracle(replaced(tree.lengths, branch, length)) for length in at]
        # the limits of the differences: rounding of lnL over h, and over h^2
        assert slopes[branch, 0] == pytest.approx((lnls[2] - lnls[0]) / (2 * h), rel=1e-5, abs=1e-4)
        curve = (lnls[2] - 2 * lnls[1] + lnls[0]) / h**2
        assert slopes[branch, 1] == pytest.approx(curve, rel=1e-2, abs=1e-12 * abs(lnl) / h**2)
