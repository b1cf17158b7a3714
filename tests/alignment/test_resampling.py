"""Resampled columns: counts stay within parts, sums have the expected moments, patterns are those drawn."""

import numpy as np
import pytest

from plltool.alignment import patterns as columns
from plltool.alignment.patterns import (
    LISTED_SITES,
    Urn,
    compress,
    draw_sites,
    resample_once,
    resampled_sums,
    take_patterns,
)
from plltool.analyses.topology_tests.statistics import difference_errors
from plltool.io.alignment_reader import read_alignment
from plltool.model.partition import cut_alignment
from plltool.model.scheme import PartSpec

PARTS = [np.array([3.0, 1.0, 4.0]), np.array([2.0, 5.0])]


@pytest.mark.parametrize("scale", [0.5, 1.0, 1.4])
def test_every_part_keeps_its_columns(scale):
    rng = np.random.default_rng(1)
    urns = [Urn(own) for own in PARTS]
    for _ in range(20):
        weights = resample_once(urns, rng, scale)
        assert weights[:3].sum() == round(8 * scale)
        assert weights[3:].sum() == round(7 * scale)


def test_draws_do_not_depend_on_batches(monkeypatch):
    sites = np.random.default_rng(2).normal(size=(3, 5))
    whole = resampled_sums(sites, PARTS, 50, np.random.default_rng(3))
    monkeypatch.setattr(columns, "RESAMPLED_VALUES", 35)
    np.testing.assert_allclose(resampled_sums(sites, PARTS, 50, np.random.default_rng(3)), whole, rtol=1e-12)


def test_moments():
    """Mean and variance of a sum of columns drawn with replacement, from the definition."""
    sites = np.random.default_rng(4).normal(size=(2, 5))
    drawn = resampled_sums(sites, PARTS, 20_000, np.random.default_rng(5))
    np.testing.assert_allclose(drawn.mean(axis=0), sites @ np.concatenate(PARTS), atol=4 * 5 / np.sqrt(20_000))
    variance = 0.0
    for patterns, weights in (([0, 1, 2], PARTS[0]), ([3, 4], PARTS[1])):
        values = np.repeat((sites[0] - sites[1])[patterns], weights.astype(int))
        variance += len(values) * np.mean((values - values.mean()) ** 2)
    assert difference_errors(sites, PARTS)[0, 1] == pytest.approx(np.sqrt(variance), rel=1e-12)
    assert np.std(drawn[:, 0] - drawn[:, 1]) == pytest.approx(np.sqrt(variance), rel=0.03)  # its own error is 0.005


def test_patterns_are_those_of_the_columns_drawn(data_dir):
    alignment = cut_alignment(read_alignment(data_dir / "primates.phy"), (PartSpec(None),)).alignments[0]
    part = compress(alignment)
    (sites,) = draw_sites([len(part.site_pattern)], np.random.default_rng(5))
    assert len(sites) == 898
    taken = take_patterns(part, Urn(part.weights).draw(898, np.random.default_rng(5)))
    columns = alignment.codes[:, sites]
    distinct, counts = np.unique(columns.T, axis=0, return_counts=True)
    assert taken.n_patterns == len(distinct) < part.n_patterns
    found = sorted(zip(map(tuple, taken.codes.T.tolist()), taken.weights.tolist(), strict=True))
    assert found == list(zip(map(tuple, distinct.tolist()), counts.tolist(), strict=True))


def test_sites_are_drawn_evenly_and_from_each_part():
    rng = np.random.default_rng(1)
    draws = [draw_sites([3, 1000], rng) for _ in range(300)]
    assert {len(first) for first, _ in draws} == {3}
    counts = np.bincount(np.concatenate([second for _, second in draws]), minlength=1000)
    assert counts.mean() == 300
    assert 200 < counts.min() < counts.max() < 400  # six standard deviations are 104


def test_more_sites_than_can_be_listed_have_the_moments_of_a_multinomial():
    weights = np.array([LISTED_SITES, 3.0, 2.0 * LISTED_SITES])
    urn = Urn(weights)
    rng = np.random.default_rng(4)
    drawn = np.array([urn.draw(urn.size, rng) for _ in range(400)])
    assert (drawn.sum(axis=1) == weights.sum()).all()
    shares = weights / weights.sum()
    deviations = np.sqrt(weights * (1 - shares))
    assert (np.abs(drawn.mean(axis=0) - weights) < 5 * deviations / 20).all()
    np.testing.assert_allclose(drawn.std(axis=0), deviations, rtol=0.2)  # five standard errors of a deviation
