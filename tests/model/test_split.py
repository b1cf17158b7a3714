"""Schemes that depend on the data."""

import numpy as np
import pytest

from plltool.alignment.alignment import DeclaredKind, Sequences
from plltool.alignment.spaces import COUNTED
from plltool.alignment.states import DNA
from plltool.errors import InputError
from plltool.io.model_reader import read_scheme
from plltool.model.partition import cut_alignment
from plltool.model.scheme import PartSpec, SiteRange, split_by_states

#        12345678
ROWS = ("01020?3A", "01020-00", "1122110?", "10100?00")


def given(rows=ROWS, **more):
    return Sequences(tuple("abcd"), tuple(row.encode() for row in rows), "x.phy", COUNTED, **more)


def described(scheme):
    return [(spec.name, str(spec.model), ", ".join(map(str, spec.ranges))) for spec in scheme]


def test_one_part_for_each_number_of_states():
    assert described(split_by_states(given(), read_scheme("MULTI*_ORDERED+G4, m = 1-7\nMK, n = 8"))) == [
        ("m_2", "MULTI2_ORDERED+G4", "1-2, 5-6"),
        ("m_3", "MULTI3_ORDERED+G4", "3-4"),
        ("m_4", "MULTI4_ORDERED+G4", "7"),
        ("n", "MK", "8"),
    ]
    whole = split_by_states(given(), (PartSpec(read_scheme("MULTI*_MK")[0].model),))
    assert described(whole) == [
        ("states_2", "JC2", "1-2, 5-6"),
        ("states_3", "MULTI3_MK", "3-4"),
        ("states_4", "MULTI4_MK", "7"),
        ("states_11", "MULTI11_MK", "8"),
    ]
    parts = cut_alignment(given(), whole).parts
    assert [(len(part.sites), part.alignment.states.n_states) for part in parts] == [(4, 2), (2, 3), (1, 4), (1, 11)]


def test_sets_count_with_their_largest_member():
    rows = ("01\xc8", "010", "110", "100")
    sequences = Sequences(tuple("abcd"), tuple(row.encode("latin-1") for row in rows), "x", COUNTED, sets={200: b"04"})
    assert [spec.name for spec in split_by_states(sequences, read_scheme("MULTI*_MK, m = 1-3"))] == ["m_2", "m_5"]


def test_other_schemes_stay():
    scheme = read_scheme("MK, m = 1-7\nJC2, n = 8")
    assert split_by_states(given(), scheme) is scheme


def test_names_must_differ():
    with pytest.raises(InputError, match=r"x\.phy: found two partitions named 'm_2', expected different names"):
        split_by_states(given(), read_scheme("MULTI*_MK, m = 1-6\nJC2, m_2 = 7-8"))


def test_a_part_for_each_declared_kind():
    rows = ("010ACGT2", "011ACGA3", "100ACCT0", "101TCGT1")
    kinds = (DeclaredKind("Standard", COUNTED, 1, 3), DeclaredKind("DNA", DNA, 4, 7))
    sequences = given(rows, kinds=(*kinds, DeclaredKind("Standard", COUNTED, 8, 8)))
    scheme = split_by_states(sequences, (PartSpec(None),))
    assert [(spec.name, spec.model, spec.ranges) for spec in scheme] == [
        ("Standard", None, (SiteRange(1, 3),)),
        ("DNA", None, (SiteRange(4, 7),)),
        ("Standard_2", None, (SiteRange(8, 8),)),
    ]
    assert sequences.declared_at(np.arange(3, 7)) is DNA
    assert sequences.declared_at(np.arange(2, 5)) is None
