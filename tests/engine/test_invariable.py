"""A component of rate 0: likelihood 0 wherever taxa differ, and never in the way of the other components.

On these trees the component that changes loses more than 2^-1023 where the one of rate 0 loses nothing, and columns are
constant on either side of a branch, so that the latter becomes impossible only where the two sides meet.
"""

import numpy as np
import pytest
from agreement import Case
from engine_kinds import FEW_KINDS, Kind, as_params
from helpers import caterpillar, mix, random_tips, replaced
from oracles.likelihood import derivative, pruning

from plltool.engine import program as prog
from plltool.errors import EngineError

N_TAXA = 640
HALF = N_TAXA // 2
LENGTH = 4.0  # saturated: a state says nothing of its neighbours
RTOL = 1e-12  # measured: 1e-15; powers of two add no rounding
SINGLE_RTOL = 1e-6
SMALLEST_EXPONENT = 1022


def make_still(n_states):
    """A caterpillar, and columns that are constant, differ by halves, by a tip, by an ambiguous one, or everywhere."""
    rng = np.random.default_rng(n_states)
    ends = caterpillar(N_TAXA)
    frequencies = rng.dirichlet(np.full(n_states, 5.0))
    exchangeabilities = rng.random((n_states, n_states)) + 0.1
    mixture = mix([(0.4, frequencies, exchangeabilities, 0.0), (0.6, frequencies, exchangeabilities, 1.0)])
    first, second, both = 1, 2, 3
    codes = np.full((N_TAXA, 6), first)
    codes[HALF:, 1] = second
    codes[HALF, 2] = second
    codes[:HALF, 3] = both
    codes[HALF:, 4] = both
    codes[HALF, 4] = second
    codes[:, 5] = rng.choice([first, second], N_TAXA)
    sets = None
    if n_states > 8:
        sets, codes = np.array([[code >> state & 1 for state in range(n_states)] for code in (1, 2, 3)]), codes - 1
    case = Case.of(ends, np.full(len(ends), LENGTH), mixture, codes, np.arange(1.0, 7.0), sets)
    case.expected = case.site_lnl(pruning)
    return case


@pytest.fixture(scope="module")
def still(request):
    return make_still(request.param)


@pytest.mark.parametrize("still", [4, 20], indirect=True)
def test_the_case_is_as_told(still):
    """The changing component alone is beyond the smallest double in every column."""
    changing = [(1.0, frequencies, q) for _, frequencies, q in still.mixtures[0].oracle[1:]]
    alone = pruning(still.ends.tolist(), still.lengths, still.columns(), changing)
    assert np.all(alone[[0, 1, 2, 5]] < -SMALLEST_EXPONENT * np.log(2))
    assert still.expected[0] > -5


@pytest.mark.parametrize("kind", as_params(FEW_KINDS))
@pytest.mark.parametrize(("still", "precision"), [(4, "double"), (4, "single"), (20, "double")], indirect=["still"])
def test_every_request(still, kind, precision, make_engine):
    engine = still.engine(make_engine, kind, still.n_taxa, precision=precision)
    rtol = RTOL if precision == "double" else SINGLE_RTOL
    middle = N_TAXA + HALF - 1  # inner node n + i carries tip i + 1
    branch = next(k for k, pair in enumerate(still.ends.tolist()) if sorted(pair) == [middle - 1, middle])
    for edge in (0, branch):
        np.testing.assert_allclose(still.sites_on(engine, edge), still.expected, rtol=rtol)
    found = still.lnl_everywhere(engine, (0, branch), middle)
    np.testing.assert_allclose(found, still.weights @ still.expected, rtol=rtol)


@pytest.fixture(scope="module")
def short_branch():
    """Lengths that are short around one tip's branch, that branch, and d1 and d2 in its length: four states."""
    still = make_still(4)
    lengths = still.lengths.copy()
    near = np.isin(still.ends % N_TAXA, range(HALF - 3, HALF + 3)).all(axis=1)  # tip i + 1 hangs on inner node i
    lengths[near] = 0.1
    branch = next(k for k, pair in enumerate(still.ends.tolist()) if HALF in pair)

    def lnl(t):
        return still.weights @ still.site_lnl(pruning, replaced(lengths, branch, t))

    return still, lengths, branch, derivative(lnl, 0.1, 1e-3)


@pytest.mark.parametrize("kind", as_params([Kind("numpy", 4), Kind("vector", 4, 3)]))
def test_slopes_and_shares(short_branch, kind, make_engine):
    """Slopes in a short branch, and the share of each component: that of rate 0 has all of the patterns it can make."""
    still, lengths, branch, expected = short_branch
    engine = still.engine(make_engine, kind)
    program, a, b = still.to(branch)
    engine.run(program, lengths)
    found = engine.derivatives([(a, b, branch)], lengths)[0, 0, 1:]
    np.testing.assert_allclose(found, expected, rtol=1e-6)  # the limit of the difference
    shares = engine.execute(prog.Request(prog.mass_gradient(0, a, b, branch), 8), lengths)[0].reshape(2, 4)
    impossible = still.weights[[1, 2, 4, 5]].sum()
    assert shares.sum() == pytest.approx(still.weights.sum(), rel=1e-12)
    assert shares[1].sum() == pytest.approx(impossible, rel=1e-12)


def test_nothing_is_possible(make_engine):
    """Where all components stand still, a column that varies is an error that names it."""
    rng = np.random.default_rng(1)
    mixture = mix([(1.0, [0.25] * 4, np.ones((4, 4)), 0.0)])
    codes, _ = random_tips(rng, 5, 3, 4, unclear=0.0)
    codes[:, [0, 2]] = 1
    codes[:, 1] = [1, 2, 1, 1, 1]
    case = Case.of(caterpillar(5), np.full(7, 0.1), mixture, codes)
    with pytest.raises(EngineError, match="pattern 1"):
        case.lnl_on(case.engine(make_engine, Kind("numpy", 2)))
