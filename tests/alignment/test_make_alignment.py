import itertools
import re

import numpy as np
import pytest
from helpers import make_alignment
from refusals import refused

from plltool.alignment.alignment import Sequences, show_name
from plltool.alignment.facts import gap_share, has_informative_site, identical_groups
from plltool.alignment.states import DNA
from plltool.errors import InputError
from plltool.model.partition import cut_alignment, without_duplicates
from plltool.model.scheme import PartSpec

NAMES = ["A", "B", "C", "D"]
LINES = [1, 3, 5, 7]


def align(*sequences, names=None, positions=None):
    names = names or [f"t{i}" for i in range(len(sequences))]
    return make_alignment(names, sequences, "x.fa", positions=positions)


def test_codes_are_those_of_the_characters():
    alignment = align(b"ACGTU", "acgtu", "RYSWK", b"-N?BV")
    assert (alignment.n_taxa, alignment.n_sites) == (4, 5)
    assert alignment.codes.tolist() == [[1, 2, 4, 8, 8], [1, 2, 4, 8, 8], [5, 10, 6, 9, 12], [15, 15, 15, 14, 7]]
    assert alignment.codes.dtype == np.uint8
    assert not alignment.codes.flags.writeable


@pytest.mark.parametrize(
    ("names", "sequences", "message"),
    [
        (
            NAMES,
            ["ACGT", "ACG", "ACGT", "ACGT"],
            "x.fa: taxon 'B' (line 3) has 3 sites, expected 4 as in taxon 'A' (line 1) (are the sequences aligned?)",
        ),
        (["A", "B", "A", "D"], ["A"] * 4, "x.fa: two taxa have the name 'A' (lines 1 and 5)"),
        (["A", "", "C", "D"], ["A"] * 4, "x.fa: line 3 has an empty taxon name"),
        (
            NAMES,
            ["ACGT", "ACGT", "ACJT", "ACGT"],
            "x.fa: taxon 'C' (line 5), site 3: found 'J', expected DNA, that is one of ABCDGHKMNORSTUVWXY-.?",
        ),
        (NAMES[:2], ["A"] * 2, "x.fa: found 2 taxa, expected at least 3"),
        ([], [], "x.fa: found 0 taxa, expected at least 3"),
        (NAMES, [""] * 4, "x.fa: found 0 sites, expected at least 1"),
    ],
)
def test_errors_say_where_what_and_what_was_expected(names, sequences, message):
    """Without lines, taxa are named by their numbers."""
    with_numbers = re.sub(r" \(line \d\)", "", message).replace("(lines 1 and 5)", "(taxa 1 and 3)")
    with_numbers = with_numbers.replace("line 3 has an", "taxon 2 has an")
    for positions, expected in ((LINES[: len(names)], message), (None, with_numbers)):
        with pytest.raises(InputError, match=rf"\A{re.escape(expected)}\Z"):
            make_alignment(names, sequences, "x.fa", positions=positions)


@pytest.mark.parametrize(
    ("sequence", "shown"),
    [("AÄ", "'Ä'"), (b"A\xe4", "byte 0xe4"), ("A\x1b", r"'\x1b'"), ("A€C", "'€'"), (b"A\xf0\x9f\xa7", "byte 0xf0")],
)
def test_illegal_characters_are_shown_printable(sequence, shown):
    with refused(f"site 2: found {shown}, expected"):
        align(sequence, "AC", "AC", "AC")


def test_names_stay_on_one_line_of_a_message():
    assert show_name("a\nb\udce4") == r"'a\nb\udce4'"
    assert len(show_name("x" * 1000)) == 62
    assert show_name("\udcff" * 1000) == "'" + r"\udcff" * 9 + "...'", "cut as it is shown"
    assert show_name("\udcff" * 10) == "'" + r"\udcff" * 10 + "'"


def test_no_warning_without_a_reason():
    assert align("ACGT", "AC-T", "TCTT", "TCTA").warnings == ()


def is_informative_by_brute_force(column):
    """Whether the three topologies of some four taxa differ in their parsimony scores (Fitch 1971)."""
    sets = {"A": "A", "C": "C", "T": "T", "R": "AG", "Y": "CT", "N": "ACGT", "-": "ACGT", "K": "GT", "M": "AC"}

    def join(a, b):
        both = set(a[0]) & set(b[0])
        return both or set(a[0]) | set(b[0]), a[1] + b[1] + (not both)

    for quartet in itertools.combinations([(sets[letter], 0) for letter in column], 4):
        a, b, c, d = quartet
        scores = {join(join(*x), join(*y))[1] for x, y in (((a, b), (c, d)), ((a, c), (b, d)), ((a, d), (b, c)))}
        if len(scores) > 1:
            return True
    return False


@pytest.mark.parametrize("letters", ["ACT", "AC-", "AYRC", "RYKMN"])
def test_a_site_is_informative_if_topologies_differ_in_parsimony(letters):
    for column in itertools.product(letters, repeat=5):
        found, expected = has_informative_site(align(*column)), is_informative_by_brute_force(column)
        assert found or not expected, column
        assert found == expected or not set("RYKM").isdisjoint(letters), column


def test_an_alignment_without_an_informative_site():
    lonely = align("ACGTA", "ACGTC", "ACCTG", "TCGTT")
    assert lonely.warnings == ("x.fa: no site is parsimony-informative, so the topology is practically arbitrary",)
    many = align(*("A" * 999 + row for row in ("A", "A", "C", "C")))
    assert not any("informative" in warning for warning in many.warnings), "the last one of 1000 sites is"


def test_three_taxa_have_one_topology():
    assert align("ACG", "ACT", "AGT", names="abc").warnings == ("x.fa: 3 taxa have only one topology",)


@pytest.mark.parametrize(
    ("sequence", "hint"),
    [
        ("01", "; digits are states of morphological data (--data-type multi)"),
        ("A{", "; sets of states in brackets are read in NEXUS files only, elsewhere letters such as R"),
        ("AE", "; it is an amino acid: --data-type protein if all letters are, --partitions FILE if some columns are"),
        ("A@", "expected DNA, that is one of ABCDGHKMNORSTUVWXY-.?"),
    ],
)
def test_characters_of_unsupported_data_are_refused_as_such(sequence, hint):
    with pytest.raises(InputError, match=rf"{re.escape(hint)}\Z"):
        align(sequence, "AC", "AC", "AC")


def test_warnings_name_what_they_found():
    alignment = align("A-C*", "A-C~", "A-CN", "T-GA", "----", "T-GA", names=["a", "b", "c", "d", "e", "f"])
    assert alignment.warnings == (
        "x.fa: 2 characters of '*!~' read as a gap, first '*' in taxon 'a', site 4",
        "x.fa: 1 column without data (only gaps)",
        "x.fa: 1 taxon without data (only gaps): 'e'",
        "x.fa: 2 groups of identical sequences: ('a', 'b', 'c') and 1 more",
    )


def test_warnings_list_at_most_five_names():
    warnings = align(*["-"] * 7).warnings
    listed = "'t0', 't1', 't2', 't3', 't4' and 2 more"
    assert f"x.fa: 7 taxa without data (only gaps): {listed}" in warnings
    assert f"x.fa: 1 group of identical sequences: ({listed})" in warnings


def test_gap_share_counts_undetermined_cells_only():
    assert gap_share(align("A-", "RN", "C?", "G.")) == 0.5


def test_identical_means_identical_codes():
    alignment = align("AU", "AC", "at", "AC", "GG", "AT")
    assert identical_groups([alignment]) == [[0, 2, 5], [1, 3]]
    assert identical_groups([align("A", "C", "G", "T")]) == []


def whole(*sequences):
    rows = tuple(map(str.encode, sequences))
    return cut_alignment(Sequences(tuple(f"t{k}" for k in range(len(rows))), rows, "x.fa", DNA), (PartSpec(None),))


@pytest.mark.parametrize(
    ("sequences", "kept", "groups"),
    [
        ("ACGT", [0, 1, 2, 3], [[0], [1], [2], [3]]),
        ("ACAGCTA", [0, 1, 3, 5], [[0, 2, 6], [1, 4], [3], [5]]),
        ("AAACC", [0, 1, 2, 3], [[0], [1], [2], [3, 4]]),
        ("AAAAAA", [0, 1, 2, 3], [[0, 4, 5], [1], [2], [3]]),
        ("ACAGA", [0, 1, 2, 3], [[0, 4], [1], [2], [3]]),
    ],
)
def test_without_duplicates_keeps_the_first_of_each_group_and_four_taxa(sequences, kept, groups):
    reduced, found = without_duplicates(whole(*sequences))
    assert reduced.names == tuple(f"t{taxon}" for taxon in kept)
    assert reduced.alignments[0].codes.tolist() == [[1 << "ACGT".index(sequences[taxon])] for taxon in kept]
    assert found == groups
