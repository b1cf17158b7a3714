"""Spaces of binary and multistate data: what characters mean, and how many states they show."""

import string

import pytest

from plltool.alignment.spaces import COUNTED, find_space, settle_space
from plltool.alignment.states import (
    COUNTED_SYMBOLS,
    DNA,
    ILLEGAL_CODE,
    PROTEIN,
    SYMBOLS,
    count_states,
    multistate_space,
)

# the order of RAxML-NG; IQ-TREE's 32 states, 0-9 and A-V, are its first ones
ORDER = string.digits + string.ascii_uppercase + r"""!"#$%&'()*+,/:;<=>@[\]^_{|}~"""


def states_of(space, character):
    return "".join(s for s, in_it in zip(space.symbols, space.state_sets[space.code_of[ord(character)]], strict=True)
                   if in_it)  # fmt: skip


def test_symbols_are_those_of_other_programs():
    assert len(ORDER) == 64
    assert ORDER == SYMBOLS
    assert "".join(multistate_space(64).symbols) == ORDER
    assert ORDER.startswith(COUNTED_SYMBOLS)


@pytest.mark.parametrize("n_states", [2, 3, 8, 9, 20, 36, 64])
def test_every_symbol_is_its_state(n_states):
    space = multistate_space(n_states)
    assert (space.n_states, space.name) == (n_states, "multistate")
    for place, symbol in enumerate(ORDER):
        assert states_of(space, symbol) == (symbol if place < n_states else "")
        if symbol.isalpha():
            assert space.code_of[ord(symbol.lower())] == space.code_of[ord(symbol)]
    for unknown in "?-.":
        assert states_of(space, unknown) == ORDER[:n_states]
    assert not space.state_sets[ILLEGAL_CODE].any()


@pytest.mark.parametrize("n_states", [2, 5, 8])
def test_codes_are_masks_up_to_eight_states(n_states):
    """Engines take them as such."""
    assert multistate_space(n_states).masks.tolist() == list(range(1 << n_states))


@pytest.mark.parametrize("space", [multistate_space(4), multistate_space(12), DNA, PROTEIN])
def test_sets(space):
    a, b, c = space.symbols[:3]
    sets = {200: a + b, 201: c + a, 202: b + a, 203: a + "%"}
    wider = space.with_sets({byte: members.encode() for byte, members in sets.items()})
    assert states_of(wider, chr(200)) == a + b
    assert set(states_of(wider, chr(201))) == {a, c}
    assert wider.code_of[202] == wider.code_of[200]
    assert wider.code_of[203] == ILLEGAL_CODE  # a member is illegal
    assert wider.characters == space.characters
    assert (wider.state_sets[: space.n_codes] == space.state_sets).all()
    assert wider.n_codes - space.n_codes == (0 if space.n_states <= 8 else 2)
    assert states_of(space, chr(200)) == ""


def test_masks_of_64_states():
    masks = multistate_space(64).masks
    assert int(masks[multistate_space(64).code_of[ord("~")]]) == 1 << 63
    assert int(masks.max()) == (1 << 64) - 1


@pytest.mark.parametrize(
    ("sequences", "sets", "expected"),
    [
        ([b"0101", b"??--"], {}, 2),
        ([b"0000"], {}, 2),
        ([b"0120", b"015?"], {}, 6),
        ([b"01a0"], {}, 11),
        ([b"01Z0"], {}, 36),
        ([b"01*~"], {}, 2),
        ([b"01\xc8"], {200: b"04"}, 5),
        ([b"01"], {200: b"04"}, 2),
        ([b"???"], {}, 2),
    ],
)
def test_the_largest_symbol_counts(sequences, sets, expected):
    """IQ-TREE's rule; special characters do not count, and a set does only where it occurs."""
    assert count_states(sequences, sets) == expected
    assert settle_space(COUNTED, sequences, sets) is multistate_space(expected)
    assert settle_space(DNA, sequences, sets) is DNA


def test_spaces_of_models():
    assert find_space("DNA", 4) is DNA
    assert find_space("protein", 20) is PROTEIN
    assert find_space("multistate", 5) is multistate_space(5)
