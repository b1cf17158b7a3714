import numpy as np
import pytest

from plltool.alignment.spaces import COUNTED, detect_states
from plltool.alignment.states import DNA, PROTEIN

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


def allowed_amino_acids(character):
    code = PROTEIN.code_of[ord(character)]
    return "".join(s for s, allowed in zip(PROTEIN.symbols, PROTEIN.state_sets[code], strict=True) if allowed)


# IUPAC-IUB Joint Commission 1984: B, Z and J stand for pairs that hydrolysis or mass cannot tell apart
@pytest.mark.parametrize(
    ("character", "expected"), [("B", "ND"), ("z", "QE"), ("J", "IL"), *((c, c) for c in "ARNDCQEGHILKMFPSTWYV")]
)
def test_amino_acids(character, expected):
    assert sorted(allowed_amino_acids(character)) == sorted(expected)


@pytest.mark.parametrize("character", "X?-.UO*!~x")
def test_nothing_is_known_of_an_amino_acid(character):
    assert PROTEIN.code_of[ord(character)] == PROTEIN.all_states_code
    assert allowed_amino_acids(character) == "".join(PROTEIN.symbols)
    assert (character in PROTEIN.doubtful) == (character in "UO*!~")


def test_masks_are_the_sets():
    for states in (DNA, PROTEIN):
        for code, mask in enumerate(states.masks.tolist()):
            assert [bool(mask >> i & 1) for i in range(states.n_states)] == states.state_sets[code].tolist()
    assert DNA.masks.tolist() == list(range(16))


@pytest.mark.parametrize(
    ("sequences", "expected"),
    [
        ([b"ACGT", b"acgu-"], DNA),
        ([b"ACGTRYKM", b"NNNNNN--"], DNA),
        ([b"MKVLAAGIC"], PROTEIN),
        ([b"ACGTEFIL", b"PQQQ"], PROTEIN),
        ([b"---", b"???"], DNA),
        ([b"0101"], COUNTED),
    ],
)
def test_data_are_told_by_their_letters(sequences, expected):
    assert detect_states(sequences) is expected
