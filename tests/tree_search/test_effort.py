"""Presets: the plans for data of a given difficulty, and what a user may override."""

from itertools import pairwise

import pytest

from plltool.constants import DEFAULT_EFFORT, EFFORT_NAMES
from plltool.errors import InputError
from plltool.tree_search.effort import EFFORTS, SearchOptions


def test_the_names_that_the_command_offers_are_those_that_there_are():
    assert tuple(EFFORTS) == EFFORT_NAMES
    assert DEFAULT_EFFORT in EFFORTS


def test_more_effort_never_means_less():
    plans = [[SearchOptions(name).plan(score) for score in (0.0, 0.5, 1.0)] for name in EFFORT_NAMES]
    for lazy, busy in pairwise(plans):
        for a, b in zip(lazy, busy, strict=True):
            assert a.starts <= b.starts
            assert a.perturbations <= b.perturbations
            assert a.radii[-1] <= b.radii[-1]
            assert a.epsilon >= b.epsilon
    for by_score in plans:
        assert by_score == sorted(by_score, key=lambda plan: plan.perturbations)


def test_what_a_user_asks_for_overrides_the_preset():
    plan = SearchOptions("thorough", starts=7, perturbations=0, nstop=3, radii=(2, 4), epsilon=0.5).plan(1.0)
    assert (plan.starts, plan.perturbations, plan.nstop, plan.radii, plan.epsilon) == (7, 0, 3, (2, 4), 0.5)
    assert SearchOptions("thorough").depends_on_difficulty
    assert not SearchOptions("thorough", starts=2, perturbations=5).depends_on_difficulty
    assert not SearchOptions("fast").depends_on_difficulty


def test_default_searches_of_parts_persist():
    alone, shared, own = (SearchOptions().plan(1.0, 0, 0, *parts) for parts in ((1, False), (2, False), (2, True)))
    assert [(plan.perturbations, plan.nstop) for plan in (alone, shared, own)] == [(12, 3), (24, 6), (36, 9)]
    assert SearchOptions("fast").plan(1.0, 0, 0, 2, True) == SearchOptions("fast").plan(1.0)
    assert SearchOptions(nstop=1, perturbations=2).plan(1.0, 0, 0, 2, True).perturbations == 2


def test_hard_data_have_more_starts_if_most_are_missing_or_the_search_is_thorough():
    assert [SearchOptions().plan(score, gaps=0.6).starts for score in (0.0, 0.74, 0.76, 1.0)] == [1, 1, 2, 2]
    assert [SearchOptions("thorough").plan(score).starts for score in (0.0, 0.5, 0.75, 1.0)] == [2, 2, 4, 6]
    assert SearchOptions().plan(1.0, gaps=0.4).starts == 1
    assert SearchOptions("fast").plan(1.0, gaps=0.6).starts == 1


def test_large_data_have_one_start_unless_the_search_is_thorough():
    assert SearchOptions().plan(1.0, 5000, 1000, gaps=0.6).starts == 1
    assert SearchOptions("thorough").plan(1.0, 5000, 1000).starts == 6


def test_of_the_perturbations_some_come_before_the_climbs_are_fused():
    numbers = [SearchOptions(starts=starts, perturbations=12).plan().first_perturbations for starts in (1, 2, 3, 6, 12)]
    assert numbers == [0, 4, 3, 1, 0]


def test_large_trees_may_be_perturbed_more_often():
    limits = [SearchOptions().plan(1.0, n_taxa).perturbations for n_taxa in (4, 1000, 1500, 2000, 10_000)]
    assert limits == [12, 12, 18, 24, 120]
    assert SearchOptions(perturbations=5).plan(1.0, 10_000).perturbations == 5
    assert SearchOptions("fast").plan(1.0, 10_000).perturbations == 0


@pytest.mark.parametrize(
    "wishes", [{"effort": "lazy"}, {"starts": 0}, {"perturbations": -1}, {"nstop": 0}, {"radii": ()}, {"epsilon": 0.0}]
)
def test_wishes_that_make_no_sense(wishes):
    with pytest.raises(InputError, match=next(iter(wishes))):
        SearchOptions(**wishes)
