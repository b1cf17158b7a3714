"""Trees so deep that likelihoods underflow, against the oracle in log space."""

from copy import copy

import numpy as np
import pytest
from agreement import Case
from engine_kinds import WIDE, WIDEST, Kind, as_params
from helpers import random_codes, random_mixture
from oracles.likelihood import pruning

LOG_OF_SMALLEST_DOUBLE = -745.1
RTOL = 1e-12  # measured: 5e-16; powers of two add no rounding
SINGLE_RTOL = 1e-7  # of lnL; measured: 1e-9, roundings of 6e-8 being averaged over hundreds of nodes and a large lnL
ARM = 210  # taxa of each of the three caterpillars that meet at one node


@pytest.fixture(scope="module")
def deep():
    """Three caterpillars that meet at a node, so that a NEWVIEW, INSERT and TRIPLET find all operands rescaled."""
    rng = np.random.default_rng(3)
    n_taxa = 3 * ARM
    ends, next_node = [], n_taxa + 1
    for arm in range(3):
        tips = range(arm * ARM, (arm + 1) * ARM)
        above = n_taxa
        for tip in tips[:-2]:
            ends += [(above, next_node), (next_node, tip)]
            above = next_node
            next_node += 1
        ends += [(above, next_node), (next_node, tips[-2]), (next_node, tips[-1])]
        next_node += 1
    assert next_node == 2 * n_taxa - 2
    lengths = rng.exponential(0.5, len(ends)) + 0.05
    mixture = random_mixture(rng, 4, 4, rates=[0.5, 0.8, 1.2, 1.5])
    codes = random_codes(rng, n_taxa, 5, unclear=0.05)
    case = Case.of(ends, lengths, mixture, codes, rng.integers(1, 9, 5).astype(float))
    case.expected = case.site_lnl(pruning)
    return case


def test_the_case_underflows(deep):
    """Each arm by itself reaches the threshold of 2^-256, and the whole the end of double precision."""
    assert np.all(deep.expected < LOG_OF_SMALLEST_DOUBLE)
    assert np.all(deep.expected / 3 < -256 * np.log(2))


def all_requests(deep, engine):
    """Across tip and inner branches at the ends of arms, halfway and at the middle, and at the middle node."""
    return deep.lnl_everywhere(engine, [0, 1, 2, ARM, 2 * ARM, len(deep.ends) - 1], deep.n_taxa)


KINDS = [Kind("numpy", 1), Kind("numpy", 4), Kind("vector", 2, 3), Kind("vector", 4, 3), WIDE, Kind("lanes", 32)]


@pytest.mark.parametrize("kind", as_params(KINDS))
def test_deep_trees(kind, make_engine, deep):
    engine = deep.engine(make_engine, kind)
    np.testing.assert_allclose(all_requests(deep, engine), (deep.weights @ deep.expected), rtol=RTOL)
    np.testing.assert_allclose(deep.sites_on(engine, 2), deep.expected, rtol=RTOL)


@pytest.mark.parametrize("precision", ["single", "mixed"])
@pytest.mark.parametrize("kind", as_params([kind for kind in [*KINDS, WIDEST] if kind.vw != 2]))
def test_deep_trees_of_single_clas(kind, make_engine, deep, precision):
    found = all_requests(deep, deep.engine(make_engine, kind, precision=precision))
    assert np.abs(found / (deep.weights @ deep.expected) - 1).max() < SINGLE_RTOL


def test_each_lane_is_rescaled_by_itself(make_engine, deep):
    """Columns that underflow beside columns of gaps only, whose likelihood is 1."""
    some = copy(deep)
    some.codes = deep.codes.copy()
    some.codes[:, [1, 3]] = 15
    site = some.sites_on(some.engine(make_engine, Kind("numpy", 4)))
    assert abs(site[[1, 3]]).max() < 1e-11
    np.testing.assert_allclose(site[[0, 2, 4]], deep.expected[[0, 2, 4]], rtol=RTOL)


def test_derivatives_do_not_see_the_scale(make_engine, deep):
    """d1 and d2 of a deep tree, double against single precision, whose scaling counts differ everywhere."""
    branch = 2 * ARM
    program, a, b = deep.to(branch)
    found = []
    for precision in ("double", "single"):
        engine = deep.engine(make_engine, Kind("numpy", 4), precision=precision)
        engine.run(program, deep.lengths)
        found.append(engine.derivatives([(a, b, branch)], deep.lengths)[0, 0])
    np.testing.assert_allclose(found[1][1:], found[0][1:], rtol=1e-5)  # measured: 6e-8
