import numpy as np
import pytest

from plltool.alignment.states import DNA

# Cornish-Bowden 1985, Nucleic Acids Res 13:3021, table 1
IUPAC = {
    "A": "A", "C": "C", "G": "G", "T": "T", "U": "T", "R": "AG", "Y": "CT", "S": "CG", "W": "AT", "K": "GT", "M": "AC",
    "B": "CGT", "D": "AGT", "H": "ACT", "V": "ACG", "N": "ACGT",
}  # fmt: skip


def states_of(character):
    code = DNA.code_of[ord(character)]
    return "".join(s for s, allowed in zip(DNA.symbols, DNA.state_sets[code], strict=True) if allowed)


@pytest.mark.parametrize(("letter", "expected"), IUPAC.items())
def test_iupac_letters_mean_their_states_in_both_cases(letter, expected):
    assert states_of(letter) == expected
    assert states_of(letter.lower()) == expected


@pytest.mark.parametrize("character", "-?XxNnOo.*!~")
def test_undetermined_characters_allow_every_state(character):
    assert DNA.code_of[ord(character)] == DNA.all_states_code == 15


def test_everything_else_is_illegal():
    legal = set(b"ACGTURYSWKMBDHVNXOacgturyswkmbdhvnxo-?.*!~")
    assert {byte for byte in range(256) if DNA.code_of[byte]} == legal


def test_dna_codes_are_bit_masks():
    assert (DNA.n_codes, DNA.n_states) == (16, 4)
    for code in range(16):
        assert DNA.state_sets[code].tolist() == [bool(code >> i & 1) for i in range(4)]


def test_offered_characters_are_legal_and_not_doubtful():
    assert DNA.characters == "ABCDGHKMNORSTUVWXY-.?"


def test_tables_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        DNA.code_of[0] = 1
    assert not np.asarray(DNA.state_sets).flags.writeable
