"""Resampled patterns, against the columns that were drawn."""

import numpy as np
from helpers import read_states

from plltool.alignment.patterns import compress
from plltool.alignment.resample import draw_sites, take_sites


def test_patterns_are_those_of_the_columns_drawn(data_dir):
    alignment = read_states(data_dir / "primates.phy")
    part = compress(alignment)
    (sites,) = draw_sites([len(part.site_pattern)], np.random.default_rng(5))
    assert len(sites) == 898
    taken = take_sites(part, sites)
    columns = alignment.codes[:, sites]
    assert (taken.codes[:, taken.site_pattern] == columns).all()
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
