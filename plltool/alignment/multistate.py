"""Binary and multistate data, such as morphology: states are numbered, and digits and letters stand for them."""

from __future__ import annotations

import functools
import string
from collections.abc import Iterable, Mapping

from plltool.alignment.states import StateSpace, make_space, state_rows

MULTISTATE = "multistate"  # the name of all these spaces; the number of states tells them apart
COUNTED_SYMBOLS = string.digits + string.ascii_uppercase  # from which a number of states is inferred
SYMBOLS = COUNTED_SYMBOLS + "!\"#$%&'()*+,/:;<=>@[\\]^_{|}~"  # RAxML-NG's order
MIN_STATES, MAX_STATES = 2, len(SYMBOLS)
UNDETERMINED = "?-."


@functools.cache
def multistate_space(n_states: int) -> StateSpace:
    """The space of 2 to 64 states, the first of SYMBOLS; upper and lower case are the same."""
    symbols = SYMBOLS[:n_states]
    sets = {symbol: symbol for symbol in symbols} | dict.fromkeys(UNDETERMINED, symbols)
    return make_space(MULTISTATE, symbols, sets, state_rows(n_states), "")


def count_states(sequences: Iterable[bytes], sets: Mapping[int, bytes]) -> int:
    """The number of states that sequences show: the largest of COUNTED_SYMBOLS counts, and all before it.

    `sets` are those of `Sequences`. Other characters are for `encode` to refuse.
    """
    found: set[int] = set()
    for sequence in sequences:
        found.update(sequence)
    members = found.union(*(sets[byte] for byte in found if byte in sets))
    places = [COUNTED_SYMBOLS.find(chr(byte).upper()) for byte in members if chr(byte).isascii()]
    return max(MIN_STATES, 1 + max(places, default=-1))
