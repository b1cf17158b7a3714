from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from helpers import make_alignment
from hypothesis import given
from hypothesis import strategies as st

from plltool.alignment.patterns import MIN_EMPIRICAL_FREQUENCY, compress, empirical_frequencies
from plltool.alignment.states import DNA


def align(*sequences):
    return make_alignment([f"t{i}" for i in range(len(sequences))], sequences, "x.fa")


def random_alignments():
    sizes = st.tuples(st.integers(4, 9), st.integers(1, 30))
    return sizes.flatmap(
        lambda size: st.lists(
            st.text("ACGTRYN-", min_size=size[1], max_size=size[1]), min_size=size[0], max_size=size[0]
        )
    ).map(lambda sequences: align(*sequences))


@given(random_alignments())
def test_patterns_are_the_counted_columns(alignment):
    patterns = compress(alignment)
    columns = Counter(map(tuple, alignment.codes.T.tolist()))
    found = [tuple(column) for column in patterns.codes.T.tolist()]
    assert found == sorted(columns)
    assert patterns.weights.tolist() == [columns[column] for column in found]
    assert (patterns.codes[:, patterns.site_pattern] == alignment.codes).all()


@given(random_alignments(), st.randoms(use_true_random=False))
def test_patterns_do_not_depend_on_the_order_of_columns(alignment, random):
    order = list(range(alignment.n_sites))
    random.shuffle(order)
    names = list(alignment.names)
    letters = dict(zip(DNA.code_of.tolist(), map(chr, range(256)), strict=True))
    sequences = ["".join(letters[code] for code in row) for row in alignment.codes[:, order].tolist()]
    shuffled = compress(make_alignment(names, sequences, "x.fa"))
    patterns = compress(alignment)
    assert (shuffled.codes == patterns.codes).all()
    assert (shuffled.weights == patterns.weights).all()


def test_arrays_have_the_types_that_the_engines_expect():
    patterns = compress(align("AAC", "AAC", "AAC", "AAG"))
    assert patterns.codes.dtype == np.uint8
    assert patterns.codes.flags.c_contiguous
    assert patterns.weights.dtype == np.float64
    assert patterns.site_pattern.dtype == np.intp
    assert (patterns.n_taxa, patterns.n_patterns) == (4, 2)
    assert patterns.weights.tolist() == [2, 1]
    assert patterns.site_pattern.tolist() == [0, 0, 1]


def count_by_hand(sequences):
    """RAxML-NG's rule in exact arithmetic, from the characters."""
    sets = {"A": "A", "C": "C", "G": "G", "T": "T", "R": "AG", "Y": "CT", "B": "CGT"}
    totals = dict.fromkeys("ACGT", Fraction(0))
    for character in "".join(sequences):
        for state in sets.get(character, ""):
            totals[state] += Fraction(1, len(sets[character]))
    whole = sum(totals.values())
    return [float(total / whole) for total in totals.values()]


def test_frequencies_share_ambiguities_and_skip_gaps():
    sequences = ["AACRG", "AACYT", "CCN-T", "G?BBT"]
    alignment = align(*sequences)
    expected = count_by_hand(sequences)
    np.testing.assert_allclose(empirical_frequencies(alignment, DNA), expected, rtol=1e-15)
    np.testing.assert_allclose(empirical_frequencies(compress(alignment), DNA), expected, rtol=1e-15)


def test_frequencies_follow_the_weights():
    patterns = compress(align("AC", "AC", "AG", "AT"))
    # pattern AAAA three times, pattern CCGT once: 12 A, 2 C, 1 G, 1 T
    weighted = type(patterns)(patterns.codes, np.array([3.0, 1.0]), patterns.site_pattern, DNA)
    np.testing.assert_allclose(empirical_frequencies(weighted, DNA), np.array([12, 2, 1, 1]) / 16, rtol=1e-15)


def test_without_data_all_states_are_equally_frequent():
    assert empirical_frequencies(align("-N", "--", "??", "XX"), DNA).tolist() == [0.25] * 4


def test_unseen_states_get_the_least_frequency():
    frequencies = empirical_frequencies(align("AA", "AC", "AA", "AA"), DNA)
    np.testing.assert_allclose(frequencies[2:], MIN_EMPIRICAL_FREQUENCY, rtol=4e-8)  # what is added to the sum
    np.testing.assert_allclose(frequencies[:2], [7 / 8, 1 / 8], rtol=4e-8)
    assert frequencies.sum() == pytest.approx(1, rel=1e-15)
