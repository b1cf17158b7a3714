"""Clear data are easy, noise is hopeless, and the features agree with counts by hand."""

import numpy as np
import pytest

from plltool.alignment.patterns import Patterns
from plltool.alignment.states import DNA
from plltool.tree_search.difficulty import Difficulty, assess_difficulty

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
