"""Trees so deep that likelihoods underflow, against the oracle in log space."""

import numpy as np
import pytest
from agreement import joins
from engine_kinds import WIDE, WIDEST, Kind, as_params
from helpers import evaluate_edges, lnl_of_sites, program_to_branch, program_to_node, random_codes, random_mixture
from oracles.likelihood import pruning

from plltool.engine import program as prog

LOG_OF_SMALLEST_DOUBLE = -745.1
RTOL = 1e-12  # measured: 5e-16; powers of two add no rounding
SINGLE_RTOL = 1e-7  # of lnL; measured: 1e-9, roundings of 6e-8 being averaged over hundreds of nodes and a large lnL
ARM = 210  # taxa of each of the three caterpillars that meet at one node


class Deep:
    """Three caterpillars that meet at a node, so that a NEWVIEW, INSERT and TRIPLET find all operands rescaled."""

    def __init__(self):
        rng = np.random.default_rng(3)
        self.n_taxa = 3 * ARM
        self.ends, next_node = [], self.n_taxa + 1
        self.middle = self.n_taxa
        for arm in range(3):
            tips = range(arm * ARM, (arm + 1) * ARM)
            above = self.middle
            for tip in tips[:-2]:
                self.ends += [(above, next_node), (next_node, tip)]
                above = next_node
                next_node += 1
            self.ends += [(above, next_node), (next_node, tips[-2]), (next_node, tips[-1])]
            next_node += 1
        assert next_node == 2 * self.n_taxa - 2
        self.ends = np.array(self.ends)
        self.lengths = rng.exponential(0.5, len(self.ends)) + 0.05
        self.mixture = random_mixture(rng, 4, 4, rates=[0.5, 0.8, 1.2, 1.5])
        self.codes = random_codes(rng, self.n_taxa, 5, unclear=0.05)
        self.weights = rng.integers(1, 9, 5).astype(float)
        self.site_lnl = pruning(self.ends.tolist(), self.lengths, self.codes.T.tolist(), self.mixture.oracle)
        self.lnl = self.weights @ self.site_lnl

    def engine(self, make_engine, kind, precision="double"):
        return make_engine(kind, self.n_taxa - 1, self.codes, self.weights, [self.mixture], precision=precision)


@pytest.fixture(scope="module")
def deep():
    return Deep()


def test_the_case_underflows(deep):
    """Each arm by itself reaches the threshold of 2^-256, and the whole the end of double precision."""
    assert np.all(deep.site_lnl < LOG_OF_SMALLEST_DOUBLE)
    assert np.all(deep.site_lnl / 3 < -256 * np.log(2))


def branches_to_try(deep):
    """Tip and inner branches: at the ends of arms, halfway, and at the middle."""
    return [0, 1, 2, ARM, 2 * ARM, len(deep.ends) - 1]


def all_requests(deep, engine):
    """lnL by every instruction that gives one."""
    found = []
    for branch in branches_to_try(deep):
        program, a, b = program_to_branch(deep.ends, deep.n_taxa, branch)
        engine.run(program, deep.lengths)
        found += [evaluate_edges(engine, [(a, b, branch)], deep.lengths)[0, 0]]
        found += [engine.derivatives([(a, b, branch)], deep.lengths)[0, 0, 0]]
    program, around = program_to_node(deep.ends, deep.n_taxa, deep.middle)
    scratch = deep.n_taxa - 2
    for turn in range(3):
        whole = np.concatenate([program, joins(around, scratch, turn)])
        found += engine.execute(prog.Request(whole, 11), deep.lengths)[0, :2].tolist()
    return np.array(found)


KINDS = [Kind("numpy", 1), Kind("numpy", 4), Kind("vector", 2, 3), Kind("vector", 4, 3), WIDE, Kind("lanes", 32)]


@pytest.mark.parametrize("kind", as_params(KINDS))
def test_deep_trees(kind, make_engine, deep):
    engine = deep.engine(make_engine, kind)
    np.testing.assert_allclose(all_requests(deep, engine), deep.lnl, rtol=RTOL)
    program, a, b = program_to_branch(deep.ends, deep.n_taxa, 2)
    engine.run(program, deep.lengths)
    np.testing.assert_allclose(lnl_of_sites(engine, a, b, 2, deep.lengths), deep.site_lnl, rtol=RTOL)


@pytest.mark.parametrize("precision", ["single", "mixed"])
@pytest.mark.parametrize("kind", as_params([*KINDS, WIDEST]))
def test_deep_trees_of_single_clas(kind, make_engine, deep, precision):
    found = all_requests(deep, deep.engine(make_engine, kind, precision))
    assert np.abs(found / deep.lnl - 1).max() < SINGLE_RTOL


def test_each_lane_is_rescaled_by_itself(make_engine, deep):
    """Columns that underflow beside columns of gaps only, whose likelihood is 1."""
    codes = deep.codes.copy()
    codes[:, [1, 3]] = 15
    engine = make_engine(Kind("numpy", 4), deep.n_taxa - 2, codes, deep.weights, [deep.mixture])
    program, a, b = program_to_branch(deep.ends, deep.n_taxa, 0)
    engine.run(program, deep.lengths)
    site = lnl_of_sites(engine, a, b, 0, deep.lengths)
    assert abs(site[[1, 3]]).max() < 1e-11
    np.testing.assert_allclose(site[[0, 2, 4]], deep.site_lnl[[0, 2, 4]], rtol=RTOL)


def test_derivatives_do_not_see_the_scale(make_engine, deep):
    """d1 and d2 of a deep tree, double against single precision, whose scaling counts differ everywhere."""
    branch = 2 * ARM
    program, a, b = program_to_branch(deep.ends, deep.n_taxa, branch)
    found = []
    for precision in ("double", "single"):
        engine = deep.engine(make_engine, Kind("numpy", 4), precision)
        engine.run(program, deep.lengths)
        found.append(engine.derivatives([(a, b, branch)], deep.lengths)[0, 0])
    np.testing.assert_allclose(found[1][1:], found[0][1:], rtol=1e-5)  # measured: 6e-8
