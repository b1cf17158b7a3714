"""Difficulty of data, by counts and by hand, and the plans that presets make of it, which users may override."""

from itertools import pairwise

import numpy as np
import pytest

from plltool.alignment.patterns import Patterns
from plltool.alignment.states import DNA
from plltool.constants import DEFAULT_EFFORT, EFFORT_NAMES
from plltool.errors import InputError
from plltool.tree_search.difficulty import Difficulty, assess_difficulty
from plltool.tree_search.effort import EFFORTS, SearchOptions

NAMES = [f"t{i}" for i in range(8)]


def part(codes, weights=None):
    """A part whose codes are sets of states, as those of DNA are."""
    n_patterns = codes.shape[1]
    weights = np.ones(n_patterns) if weights is None else np.array(weights)
    np.testing.assert_array_equal(DNA.masks[codes], codes)
    return Patterns(codes, weights, np.arange(n_patterns), DNA)


def clear_codes():
    """Eight taxa on a caterpillar, each inner branch marked by three columns: parsimony has one best tree."""
    columns = [[1 if taxon < k else 2 for taxon in range(8)] for k in range(2, 7)]
    return np.array(columns, dtype=np.uint8).T.copy()


def test_data_with_one_best_tree_are_easy():
    found = assess_difficulty([part(clear_codes(), np.full(5, 3.0))], NAMES, np.random.default_rng(1))
    assert found.disagreement == 0.0
    assert found.patterns_per_taxon == 5 / 8
    assert found.gaps == 0.0
    # 0.1 for each halving from 10 patterns per taxon down to 5/8: four of them
    assert found.score == pytest.approx(0.4)


def test_noise_is_hard():
    rng = np.random.default_rng(2)
    codes = (1 << rng.integers(0, 4, (8, 4))).astype(np.uint8)
    assert assess_difficulty([part(codes)], NAMES, rng).disagreement > 0.3


def test_gaps_are_counted_by_site():
    codes = clear_codes()
    codes[:4, 0] = 3  # two states and no gap count nothing: the largest set that occurs must be known to be a gap
    codes[:2, 1] = 15
    found = assess_difficulty([part(codes, [1.0, 3.0, 1.0, 1.0, 2.0])], NAMES, np.random.default_rng(1))
    assert found.gaps == pytest.approx(3 * 2 / 8 / 8)


def test_parts_that_contradict_each_other_are_hard_though_each_is_clear():
    clear, other = clear_codes(), clear_codes()[[0, 7, 2, 5, 4, 3, 6, 1]]
    found = assess_difficulty([part(clear, np.full(5, 3.0)), part(other)], NAMES, np.random.default_rng(1))
    assert found.disagreement == 0.0  # the first part has more sites, and decides
    # 01, 012, 0123, 01234, 012345 and 07, 027, 0257, 02457, 023457 have nothing in common
    assert found.conflict == 1.0
    agreed = assess_difficulty([part(clear), part(clear)], NAMES, np.random.default_rng(1))
    assert agreed.conflict == 0.0


def test_patterns_are_those_of_a_part_if_it_has_lengths_of_its_own():
    parts = [part(clear_codes()), part(clear_codes())]
    shared, own = (assess_difficulty(parts, NAMES, np.random.default_rng(1), unlinked=u) for u in (False, True))
    assert (shared.patterns_per_taxon, own.patterns_per_taxon) == (10 / 8, 5 / 8)


def test_the_score_ends_at_1_and_says_why():
    assert Difficulty(0.9, 0.1, 0.0).score == 1.0
    assert Difficulty(0.25, 20.0, 0.0).score == 0.25
    text = str(Difficulty(0.25, 20.0, 0.125))
    assert text == "0.25 of 1: 3 parsimony trees differ in 25 % of their branches, 20.0 patterns per taxon, 12 % gaps"


def test_trees_of_single_parts_count_as_much_as_the_others():
    found = Difficulty(0.2, 20.0, 0.0, conflict=0.8)
    assert found.score == pytest.approx(0.5)
    assert "differ in 20 % of their branches, and those of single partitions in 80 %, 20.0 patterns" in str(found)


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
        assert by_score == sorted(by_score, key=lambda plan: (plan.starts, plan.perturbations))


def test_what_a_user_asks_for_overrides_the_preset():
    plan = SearchOptions("thorough", starts=7, perturbations=0, nstop=3, radii=(2, 4), epsilon=0.5).plan(1.0)
    assert (plan.starts, plan.perturbations, plan.nstop, plan.radii, plan.epsilon) == (7, 0, 3, (2, 4), 0.5)
    assert SearchOptions("thorough").depends_on_difficulty
    assert not SearchOptions("thorough", starts=2, perturbations=5).depends_on_difficulty
    assert not SearchOptions("fast").depends_on_difficulty


def test_default_searches_of_parts_persist():
    one = SearchOptions(starts=1)
    alone, shared, own = (one.plan(1.0, 0, 0, *parts) for parts in ((1, False), (2, False), (2, True)))
    assert [(plan.perturbations, plan.nstop) for plan in (alone, shared, own)] == [(12, 6), (24, 12), (36, 18)]
    assert SearchOptions("fast").plan(1.0, 0, 0, 2, True) == SearchOptions("fast").plan(1.0)
    assert SearchOptions(nstop=1, perturbations=2).plan(1.0, 0, 0, 2, True).perturbations == 2


@pytest.mark.parametrize(
    ("effort", "difficulty", "nstop"), [("default", 0.0, 3), ("default", 0.55, 4), ("thorough", 1.0, 30)]
)
def test_one_start_tree_is_perturbed_with_more_patience(effort, difficulty, nstop):
    """Half of the perturbations may fail: of 3, of 8 and of 60; as few as otherwise, 3 and 20, at least."""
    assert SearchOptions(effort, starts=1).plan(difficulty).nstop == nstop
    assert SearchOptions(effort).plan(difficulty).nstop == {"default": 3, "thorough": 20}[effort]


def test_hard_data_have_more_starts():
    """As many as the interpolation from 0.1 to 1 gives, rounded; several climbs share fewer perturbations."""
    plans = [SearchOptions().plan(score) for score in (0.0, 0.32, 0.33, 0.77, 0.78, 1.0)]
    assert [plan.starts for plan in plans] == [1, 1, 2, 2, 3, 3]
    assert [plan.perturbations for plan in plans] == [3, 6, 4, 4, 4, 4]
    assert [SearchOptions("thorough").plan(score).starts for score in (0.0, 0.32, 0.55, 1.0)] == [2, 3, 4, 6]
    assert [SearchOptions().plan(1.0, gaps=gaps).perturbations for gaps in (0.5, 0.51)] == [4, 12]
    assert SearchOptions("fast").plan(1.0, gaps=1.0) == SearchOptions("fast").plan(0.0)
    assert SearchOptions(starts=1).plan(1.0).perturbations == 12


def test_large_data_have_one_start_unless_the_search_is_thorough():
    assert SearchOptions().plan(1.0, 5000, 1000).starts == 1
    assert SearchOptions("thorough").plan(1.0, 5000, 1000).starts == 6


def test_of_the_perturbations_some_come_before_the_climbs_are_fused():
    numbers = [SearchOptions(starts=starts, perturbations=12).plan().first_perturbations for starts in (1, 2, 3, 6, 12)]
    assert numbers == [0, 4, 3, 1, 0]


def test_large_trees_may_be_perturbed_more_often():
    limits = [SearchOptions().plan(1.0, n_taxa).perturbations for n_taxa in (4, 1000, 1500, 2000, 10_000)]
    assert limits == [4, 4, 6, 8, 40]
    assert SearchOptions(perturbations=5).plan(1.0, 10_000).perturbations == 5
    assert SearchOptions("fast").plan(1.0, 10_000).perturbations == 0


@pytest.mark.parametrize(
    "wishes", [{"effort": "lazy"}, {"starts": 0}, {"perturbations": -1}, {"nstop": 0}, {"radii": ()}, {"epsilon": 0.0}]
)
def test_wishes_that_make_no_sense(wishes):
    with pytest.raises(InputError, match=next(iter(wishes))):
        SearchOptions(**wishes)
