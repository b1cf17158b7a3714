"""State spaces: which characters a kind of data knows, and the set of states that each stands for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

CodeArray = npt.NDArray[np.uint8]
BoolArray = npt.NDArray[np.bool_]

ILLEGAL_CODE = 0


@dataclass(frozen=True, eq=False)
class StateSpace:
    """The states of a substitution model and the codes that an alignment is stored in.

    A code stands for a set of states: one state, an ambiguity, or all states where nothing is known. What a code
    means is said by ``state_sets`` alone, so a space of 20 or 61 states need not number its codes as bit masks;
    `DNA` does (code c holds state i if bit i of c is set).

    Attributes
    ----------
    name : str
        As messages call the data, such as "DNA".
    symbols : str
        One character per state, in the order of the rate matrix.
    code_of : uint8 array (256,)
        The code of each byte of a sequence; `ILLEGAL_CODE` where the byte means nothing.
    state_sets : bool array (n_codes, n_states)
        Row c holds the states that code c allows; the row of `ILLEGAL_CODE` is empty.
    doubtful : str
        Characters that are read as undetermined but deserve a warning.
    """

    name: str
    symbols: str
    code_of: CodeArray
    state_sets: BoolArray
    doubtful: str

    @property
    def n_states(self) -> int:
        return self.state_sets.shape[1]

    @property
    def n_codes(self) -> int:
        return self.state_sets.shape[0]

    @property
    def all_states_code(self) -> int:
        """The code of a cell about which nothing is known."""
        return int(self.state_sets.all(axis=1).argmax())

    @property
    def characters(self) -> str:
        """The characters that messages offer: letters in upper case, then the others; none that is doubtful."""
        legal = [chr(byte) for byte in np.flatnonzero(self.code_of != ILLEGAL_CODE)]
        offered = [c for c in legal if not c.islower() and c not in self.doubtful]
        return "".join(sorted(offered, key=lambda c: (not c.isalpha(), c)))


_DNA_SYMBOLS = "ACGT"
_DNA_UNDETERMINED = "NXO?-."
_DNA_DOUBTFUL = "*!~"  # a stop or a frame shift (MACSE), a terminal gap (GCG): legal elsewhere, rarely meant here
_DNA_AMBIGUITIES = {  # Cornish-Bowden 1985, table 1
    "U": "T",
    "R": "AG",
    "Y": "CT",
    "S": "CG",
    "W": "AT",
    "K": "GT",
    "M": "AC",
    "B": "CGT",
    "D": "AGT",
    "H": "ACT",
    "V": "ACG",
}


def _make_dna() -> StateSpace:
    """The space of `DNA`: every IUPAC letter in both cases; U is T."""
    sets = {symbol: symbol for symbol in _DNA_SYMBOLS} | _DNA_AMBIGUITIES
    sets |= dict.fromkeys(_DNA_UNDETERMINED + _DNA_DOUBTFUL, _DNA_SYMBOLS)
    code_of = np.zeros(256, dtype=np.uint8)
    for character, states in sets.items():
        mask = sum(1 << _DNA_SYMBOLS.index(state) for state in states)
        code_of[[ord(character), ord(character.lower())]] = mask
    n_states = len(_DNA_SYMBOLS)
    state_sets = (np.arange(1 << n_states)[:, None] >> np.arange(n_states)) & 1 == 1
    code_of.setflags(write=False)
    state_sets.setflags(write=False)
    return StateSpace("DNA", _DNA_SYMBOLS, code_of, state_sets, _DNA_DOUBTFUL)


DNA = _make_dna()
