"""The models of several parts: together they reach what scipy reaches with each part on its own."""

import numpy as np
import pytest
from helpers import as_sequences, make_tree, mix, random_ends, simulate_codes
from oracles.likelihood import pruning
from oracles.substitution import q_matrix
from scipy.optimize import minimize, minimize_scalar

from plltool.codec import from_arrays, to_arrays
from plltool.constants import MAX_BRANCH_LENGTH, MAX_SCALER, MIN_SCALER
from plltool.model.vector import get_bounds, get_vector, set_vector
from plltool.optimise.models import MAX_LOG_SCALE, ModelOptimiser, optimise_model
from plltool.optimise.polish import polish
from plltool.run.likelihood import Likelihood

MODELS = ("K80+G4", "HKY+FO", "JC", "GTR+G2", "JC+G4")
SIZES = np.array([70, 50, 30, 90, 60])
SCALES = (0.3, 1.0, 2.0, 3.0, 1.2)
N_TAXA = 6
UNEVEN = np.full((4, 4), 0.5) + 2.0 * np.eye(4)[[2, 3, 0, 1]]  # transitions


def write_scheme(models, sizes):
    """The text of a partition file."""
    ends = np.cumsum(sizes)
    rows = zip(models, ends - sizes + 1, ends, strict=True)
    return "\n".join(f"{model}, part{end} = {start}-{end}" for model, start, end in rows)


@pytest.fixture(scope="module")
def data():
    """A tree, its lengths, and the codes of parts that evolved on it at different rates."""
    rng = np.random.default_rng(8)
    ends, lengths = random_ends(rng, N_TAXA, 0.2)
    mixture = mix([(0.25, [0.4, 0.3, 0.2, 0.1], UNEVEN, rate) for rate in (0.05, 0.4, 1.0, 2.55)])
    rows = zip(SIZES, SCALES, strict=True)
    parts = [simulate_codes(rng, ends, scale * lengths, N_TAXA, size, mixture) for size, scale in rows]
    return make_tree(ends, lengths, N_TAXA), lengths, parts


def open_parts(data, models=MODELS, device="numpy", **settings):
    tree, _, parts = data
    return Likelihood(
        as_sequences(np.concatenate(parts, axis=1)), tree, write_scheme(models, SIZES), device=device, **settings
    )


def scipy_of_part(data, number, scale, factors=(MIN_SCALER, MAX_SCALER)):
    """The highest lnL of one part that scipy finds, with `scale` within the bounds of a factor of its lengths.

    Returns lnL and the factor.
    """
    tree, lengths, parts = data
    with Likelihood(as_sequences(parts[number]), tree, MODELS[number], device="numpy") as likelihood:
        inner = likelihood._likelihood
        model = inner.models[0]
        limits = get_bounds(model) + [tuple(np.log(factors))] * scale
        n = len(get_vector(model))

        def negative(x):
            set_vector(model, x[:n])
            inner.model_changed()
            inner.tree.lengths[:] = lengths * np.exp(x[n:].sum())
            return -inner.lnl()

        if not limits:
            return inner.lnl(), 1.0
        found = minimize(negative, np.append(get_vector(model), [0.0] * scale), method="L-BFGS-B", bounds=limits)
        return -found.fun, float(np.exp(found.x[n:].sum()))


@pytest.fixture(scope="module")
def alone(data):
    """lnL and factor of each part on its own."""
    return [scipy_of_part(data, number, scale=True) for number in range(len(MODELS))]


@pytest.mark.parametrize("given", [False, True])
def test_scaled(data, alone, device, given):
    """Scalers times lengths are what each part has on its own, whether the scaler of a part is given or not."""
    models = [f"{model}+BU{{2.5}}" if given and number == 3 else model for number, model in enumerate(MODELS)]
    with open_parts(data, models, device) as likelihood:
        lnl = optimise_model(likelihood._likelihood, epsilon=1e-5, scale=True)
        assert lnl > sum(best for best, _ in alone) - 0.01
        assert lnl == pytest.approx(likelihood.lnl(), rel=1e-12)
        common = likelihood.lengths / data[1]
        np.testing.assert_allclose(common, common[0], rtol=1e-12)
        scalers = np.array([part.scaler for part in likelihood.parts])
        np.testing.assert_allclose(common[0] * scalers, [factor for _, factor in alone], rtol=0.05)  # lnL is flat there
        if given:
            assert scalers[3] == 2.5
        else:
            assert SIZES / SIZES.sum() @ scalers == pytest.approx(1.0, rel=1e-12)


def test_unlinked(data, device):
    """JC has no parameters, so a factor of its lengths is left to the optimisation of lengths."""
    within = np.exp([-MAX_LOG_SCALE, MAX_LOG_SCALE])
    expected = sum(scipy_of_part(data, number, model != "JC", within)[0] for number, model in enumerate(MODELS))
    with open_parts(data, device=device, brlen="unlinked") as likelihood:
        lnl = optimise_model(likelihood._likelihood, epsilon=1e-5, scale=True)
        assert lnl > expected - 0.01
        factors = likelihood.lengths / data[1][:, None]
        np.testing.assert_allclose(factors, np.tile(factors[0], (len(factors), 1)), rtol=1e-12)
        assert factors[0, 2] == 1.0
        assert np.all(np.abs(np.log(factors)) <= MAX_LOG_SCALE + 1e-12)


@pytest.mark.parametrize("scale", [False, True])
def test_linked(data, all_linked, device, scale):
    """Without a factor each part is on its own; with one, against scipy with the parameters of all parts."""
    with open_parts(data, device=device, brlen="linked") as likelihood:
        inner = likelihood._likelihood
        if scale:
            expected = all_linked
        else:
            expected = sum(scipy_of_part(data, number, scale=False)[0] for number in range(len(MODELS)))
        lnl = optimise_model(inner, epsilon=1e-5, scale=scale)
        assert lnl > expected - 0.01
        factors = likelihood.lengths / data[1]
        np.testing.assert_allclose(factors, factors[0], rtol=1e-12)
        assert (factors[0] != 1.0) == scale


@pytest.fixture(scope="module")
def all_linked(data):
    """The highest lnL that scipy finds in the parameters of all parts and a common factor of lengths."""
    with open_parts(data, brlen="linked") as likelihood:
        return scipy_of_all(likelihood._likelihood, data[1])


def scipy_of_all(inner, lengths):
    sizes = [len(get_vector(model)) for model in inner.models]
    limits = [bound for model in inner.models for bound in get_bounds(model)] + [(-MAX_LOG_SCALE, MAX_LOG_SCALE)]

    def negative(x):
        for model, part in zip(inner.models, np.split(x[:-1], np.cumsum(sizes)[:-1]), strict=True):
            set_vector(model, part)
        inner.model_changed()
        inner.tree.lengths[:] = lengths * np.exp(x[-1])
        return -inner.lnl()

    start = np.append(np.concatenate([get_vector(model) for model in inner.models]), 0.0)
    return -minimize(negative, start, method="L-BFGS-B", bounds=limits, options={"maxfun": 5000}).fun


def test_linkages_are_ordered(data):
    """Each has the former as a special case."""
    lnls = []
    for brlen in ("linked", "scaled", "unlinked"):
        with open_parts(data, brlen=brlen) as likelihood:
            lnls.append(likelihood.optimise())
    assert lnls[0] <= lnls[1] + 0.01
    assert lnls[1] <= lnls[2] + 0.01


def test_a_conserved_part_beside_a_divergent_one():
    """Their scalers differ by a factor of 1,000; each part reaches the lnL of its best factor of the lengths."""
    rng = np.random.default_rng(3)
    ends, lengths = random_ends(rng, N_TAXA, 0.3)
    jc = mix([(1.0, [0.25] * 4, np.ones((4, 4)), 1.0)])
    parts = [simulate_codes(rng, ends, factor * lengths, N_TAXA, 2000, jc) for factor in (0.001, 1.0)]
    best = 0.0
    for part in parts:
        columns, counts = np.unique(part, axis=1, return_counts=True)
        components = [(1.0, [0.25] * 4, q_matrix([1] * 6, [0.25] * 4))]

        def negative(log, columns=columns, counts=counts, components=components):
            return -counts @ pruning(ends.tolist(), np.exp(log) * lengths, columns.T.tolist(), components)

        best -= minimize_scalar(negative, bounds=np.log([1e-5, 10]), method="bounded").fun
    scheme = write_scheme(["JC"] * 2, np.array([2000, 2000]))
    sequences = as_sequences(np.concatenate(parts, axis=1))
    with Likelihood(sequences, make_tree(ends, lengths, N_TAXA), scheme, brlen="scaled", device="numpy") as likelihood:
        assert ModelOptimiser(likelihood._likelihood).run(1e-4) == pytest.approx(best, abs=1e-3)


def test_a_common_factor_keeps_the_ratio_of_lengths(data):
    """The longest length would pass its bound if the mean of the scalers became 1."""
    with open_parts(data, models=("JC+G4",) * 5, brlen="scaled") as likelihood:
        inner = likelihood._likelihood
        inner.tree.lengths[:] /= 10
        inner.tree.lengths[0] = 0.6 * MAX_BRANCH_LENGTH
        before = inner.tree.lengths.copy()
        lnl = ModelOptimiser(inner).run(1e-3)
        changed = inner.tree.lengths / before
        assert changed[0] == pytest.approx(1 / 0.6, rel=1e-12)
        np.testing.assert_allclose(changed, changed[0], rtol=1e-12)
        assert SIZES @ [part.scaler for part in likelihood.parts] > SIZES.sum()
        assert inner.lnl() == lnl


# --- two optima -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def two_optima():
    """A part of which lnL has two optima in its scaler and alpha, because it evolved on other lengths; and another."""
    rng = np.random.default_rng(375)
    n = int(rng.integers(4, 8))
    ends, _ = random_ends(rng, n, 0.2)
    true = 10 ** rng.uniform(-2.0, 0.3, len(ends))
    given = np.clip(true * 10 ** rng.normal(0, 0.5, len(ends)), 1e-3, 3)
    mixture = mix([(0.25, [0.25] * 4, np.ones((4, 4)), rate) for rate in (0.01, 0.2, 0.8, 3.0)])
    odd = simulate_codes(rng, ends, true, n, 100, mixture)
    return make_tree(ends, given, n), [odd, simulate_codes(rng, ends, given, n, 100, mixture)]


LEFT, RIGHT = (0.7, 0.18), (7.0, 0.12)  # scaler and alpha, from which scipy finds either of them


def open_two(two_optima, start, device="numpy", brlen="scaled"):
    tree, parts = two_optima
    scheme = write_scheme(["JC+G4"] * 2, np.array([100, 100]))
    likelihood = Likelihood(as_sequences(np.concatenate(parts, axis=1)), tree, scheme, brlen=brlen, device=device)
    likelihood.parts[0].scaler, likelihood.parts[0].alpha = start
    return likelihood


def scipy_from(two_optima, start):
    with open_two(two_optima, start) as likelihood:

        def negative(x):
            likelihood.parts[0].scaler, likelihood.parts[0].alpha = np.exp(x).tolist()
            return -likelihood.part_lnl()[0]

        bounds = np.log([(MIN_SCALER, MAX_SCALER), (0.02, 100.0)])
        return -minimize(negative, np.log(start), method="L-BFGS-B", bounds=bounds * 0.999).fun


@pytest.mark.parametrize("start", [LEFT, RIGHT])
def test_from_either_side_the_better_of_two_optima(two_optima, start, device):
    optima = [scipy_from(two_optima, side) for side in (LEFT, RIGHT)]
    assert optima[0] > optima[1] + 1
    with open_two(two_optima, start, device) as likelihood:
        nearest = ModelOptimiser(likelihood._likelihood)
        nearest.run(1e-5)
        reached = likelihood.part_lnl()[0]
        assert reached == pytest.approx(optima[start == RIGHT], abs=0.01)
        before = likelihood.part_lnl()
        nearest.explore()
        assert np.all(likelihood.part_lnl() > before - 1e-9)
        nearest.run(1e-5)
        assert likelihood.part_lnl()[0] > optima[0] - 0.01
    with open_two(two_optima, start, device) as likelihood:
        polish(likelihood._likelihood, lengths=False)
        assert likelihood.part_lnl()[0] > optima[0] - 0.01


def test_a_part_that_shares_its_lengths_stays(data):
    with open_parts(data, brlen="linked") as likelihood:
        optimiser = ModelOptimiser(likelihood._likelihood, scale=True)
        lnl = optimiser.run(1e-3)
        assert optimiser.explore() == lnl
        assert likelihood.lnl() == lnl


# --- the same bits ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("memory", [None, 60_000])
def test_gradients_of_some_parts(data, device, memory):
    """What is asked for is what one gets with all parts, to the bit; parts lie in engines of three shapes."""
    with open_parts(data, device=device, memory=memory) as likelihood:
        inner = likelihood._likelihood
        lnls, matrices, masses = inner.rate_matrix_gradient()
        np.testing.assert_allclose(lnls, inner.part_lnl(), rtol=1e-12)
        for wanted in ([0], [1, 2], [0, 3, 4], [2, 4]):
            found = inner.rate_matrix_gradient(np.isin(np.arange(5), wanted))
            for number in wanted:
                assert found[0][number] == lnls[number]
                np.testing.assert_array_equal(found[1][number], matrices[number])
                np.testing.assert_array_equal(found[2][number], masses[number])
        np.testing.assert_array_equal(inner.rate_matrix_gradient()[0], lnls)


def polished(likelihood, done=None):
    """The rounds of a polish, each with the state after it."""
    inner, rounds = likelihood._likelihood, []

    def report(done):
        rounds.append((done, inner.tree.lengths.copy(), [model.copy() for model in inner.models]))

    polish(inner, report=report, done=done)
    return rounds


@pytest.mark.parametrize("brlen", ["linked", "scaled", "unlinked"])
def test_a_polish_goes_on_from_any_round(data, brlen):
    with open_parts(data, brlen=brlen) as likelihood:
        rounds = polished(likelihood)
        assert len(rounds) > 2
        for done, lengths, models in rounds[:-1]:
            likelihood._likelihood.tree.lengths[:] = lengths
            for model, then in zip(likelihood._likelihood.models, models, strict=True):
                model.assign(then)
            likelihood._likelihood.model_changed()
            again = polished(likelihood, from_arrays(to_arrays(done)))
            for (one, *_), (other, *_) in zip(again, rounds[done.number :], strict=True):
                one, other = to_arrays(one), to_arrays(other)
                assert {name: one[name].tobytes() for name in one} == {name: other[name].tobytes() for name in other}


@pytest.mark.opencl
@pytest.mark.parametrize("brlen", ["linked", "scaled", "unlinked"])
def test_any_number_of_threads(data, brlen):
    answers = []
    for threads in (1, 2):
        with open_parts(data, device="opencl", brlen=brlen, threads=threads) as likelihood:
            answers.append([done.lnl.hex() for done, *_ in polished(likelihood)])
    assert answers[0] == answers[1]
