"""Resampled patterns, against the columns that were drawn."""

import numpy as np
from helpers import read_states

from plltool.alignment.patterns import compress
from plltool.alignment.resample import LISTED_SITES, Urn, draw_sites, take_patterns
from plltool.model.partition import cut_alignment
from plltool.model.scheme import PartSpec


def test_patterns_are_those_of_the_columns_drawn(data_dir):
    alignment = cut_alignment(read_states(data_dir / "primates.phy"), (PartSpec(None),)).alignments[0]
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
