"""Calibrations: densities, starts, exact draws from the prior, tables, and bad input."""

import math
import re

import numpy as np
import pytest
from sampling.time_toys import draw_tree, make_time_space
from sampling.toys import draw_topology
from scipy import stats

import plltool
from plltool.analyses.sampling.clock_choice import read_calibrations
from plltool.analyses.sampling.priors import LogNormal
from plltool.analyses.sampling.time_state import Calibration
from plltool.analyses.sampling.tree import is_legal
from plltool.errors import InputError

ROWS = dict.fromkeys("abcd", "ACGT")
HEADER = "name\ttaxa\tlower\tupper\tprior\toffset\n"


def test_densities_are_cut_at_bounds(tmp_path):
    """rel 1e-12: a few terms in double."""
    table = tmp_path / "ages.tsv"
    shifted = Calibration("", 6, LogNormal(0.5, 0.3), 6.0, 9.0, 6.0)
    assert shifted.log_density(7.5) == pytest.approx(stats.lognorm(0.3, scale=math.exp(0.5)).logpdf(1.5), rel=1e-12)
    assert [shifted.log_density(height) for height in (5.9, 6.0, 9.0)] == [-math.inf] * 3
    assert Calibration("", 6, None, 2.0, 7.0).log_density(3.0) == pytest.approx(-math.log(5), rel=1e-12)
    table.write_text(HEADER + "x\ta b\t2.5\t\tuniform(1,3)\t1\ny\tc d\t\t\tnormal(5,1)\t\nz\troot\t\t\tgamma(2,1)\t6\n")
    found = read_calibrations(table, tuple("abcd"), ((0.0, 0.0),) * 4)
    assert [(own.low, own.high) for own in found] == [(2.5, 4.0), (0.0, math.inf), (6.0, math.inf)]


@pytest.mark.parametrize("seed", range(6))
def test_starts_have_the_clades_within_their_bounds(seed):
    """Nested and narrow ones, with tips of different ages."""
    rng = np.random.default_rng(seed)
    tips = (0.0, 0.0, 0.7, 0.0, 0.3, 0.0, 0.2, 0.0, 0.0)
    clades = [(0b0000011110, 1.0, 1.1), (0b0000000110, 0.5, 0.9), (0b1111111110, 1.3, 1.35), (0b0111100000, 1.299, 2.0)]
    known = [Calibration(str(k), *own) for k, own in enumerate((split, None, *bounds) for split, *bounds in clades)]
    space = make_time_space(tips, relaxed=True, calibrations=tuple(known))
    state = space.start(draw_topology(space, rng), [0.0, *rng.exponential(0.5, 15)])
    time = state.time
    assert is_legal(time.rooted, time.heights)
    splits = time.rooted.splits()
    for split, low, high in clades:
        assert low < time.heights[splits.index(split)] < high
    assert math.isfinite(state.log_prior)
    gaps = [own for own in time.gaps[1:].tolist() if own]
    assert min(gaps) > 1e-6, "else steps begin at a bound"


def test_prior_runs_are_those_of_weighted_draws(tmp_path):
    """Coalescent trees of four taxa, weighted by the densities of ages; 5 standard errors of both."""
    rng, table = np.random.default_rng(3), tmp_path / "ages.tsv"
    table.write_text(HEADER + "pair\ta, b\t0.4\t\tlognormal(-1,0.5)\t0.3\n\troot\t\t2.5\t\t\n")
    options = plltool.SampleOptions(generations=6_000, chains=1, sample_every=4, burnin=0.1, prior_only=True)
    priors = plltool.ClockPriors(population="lognormal(0.3,0.5)")
    asked = {"clock": "strict", "calibrations": table, "clock_priors": priors, "seed": 2, "options": options}
    found = plltool.sample(ROWS, "JC", **asked)
    drawn = []
    for _ in range(15_000):
        size = rng.lognormal(0.3, 0.5)
        rooted, heights = draw_tree((0.0,) * 4, size, rng)
        if 0b110 in (splits := rooted.splits()):
            drawn.append((heights[splits.index(0b110)], heights[rooted.top], size))
    pair, root, size = np.array(drawn).T
    weights = stats.lognorm(0.5, loc=0.3, scale=math.exp(-1)).pdf(pair) * (pair > 0.4) * (root < 2.5)
    weights /= weights.sum()
    for name, values in {"height(pair)": pair, "treeHeight": root, "height(a.d)": root, "popSize": size}.items():
        own, mean = found.posterior.numbers[name], weights @ values
        error = math.hypot(own.deviation / math.sqrt(own.size), math.sqrt(weights**2 @ (values - mean) ** 2))
        assert abs(own.mean - mean) < 5 * error, f"{name}: {own.mean}, expected {mean}"
    assert found.posterior.splits[0b110] == 1.0
    assert found.time.priors["the age of pair"] == "lognormal(-1.0,0.5) + 0.3 from 0.4 to inf"
    assert found.time.latest == 0.0


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ("x\ta e\t1\t2\t\t", "line 2: found 'e', expected taxa of the alignment, or root"),
        ("x\ta a\t1\t2\t\t", "line 2: found the taxon 'a' alone, expected at least two"),
        ("x\ta b\t1\told\t\t", "line 2: upper: found 'old', expected a number from 0 to 1e+10"),
        ("x\ta b\t-1\t\t\t", "line 2: lower: found '-1', expected a number"),
        ("x\ta b\t\t\t\t", "x: found no prior, expected one, or the bounds lower or upper alone"),
        ("x\ta b\t\t\t\t3", "x: found no prior, expected one, or the bounds"),
        ("x\ta b\t2\t1\t\t", "x: found an age of at most 1 years, but the lower bound is 2 years old"),
        ("x\ta c\t\t1\t\t", "x: found an age of at most 1 years, but its oldest taxon is 1.5 years old"),
        ("x\ta b\t\t\tuniform(3,2)\t", "prior of the age of x: found bounds 3,2, expected two ascending"),
        ("x\ta b\t1\t\t\t\ny\tb c\t1\t\t\t", "line 3: y: found some taxa of x but not all, expected all or none ("),
        ("x\ta b\t1\t\t\t\ny\tb a\t2\t\t\t", "line 3: y: is on "),
        ("x\ta b\t4\t\t\t\ny\troot\t\t3\t\t", "line 3: x: found an age of at least 4, but y is younger ("),
    ],
)
def test_bad_calibrations(rows, expected, tmp_path):
    (tmp_path / "ages.tsv").write_text(HEADER + rows + "\n")
    with pytest.raises(InputError, match=re.escape(expected)) as error:
        read_calibrations(tmp_path / "ages.tsv", tuple("abcd"), ((0, 0), (0, 0), (1.5, 3), (0, 0)))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"clock": None}, "calibrations: found them without a clock, expected --clock strict or relaxed"),
        ({"tree_prior": "yule"}, "old: found no prior of the root for yule, expected an upper bound or a prior, or"),
    ],
)
def test_bad_input_with_calibrations(asked, expected, tmp_path):
    (tmp_path / "ages.tsv").write_text(HEADER + "old\troot\t2\t\t\t\n")
    with pytest.raises(InputError, match=re.escape(expected)):
        plltool.sample(ROWS, "JC", **{"clock": "strict", "calibrations": tmp_path / "ages.tsv"} | asked)
