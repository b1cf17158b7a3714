import numpy as np
import pytest

from plltool.alignment.spaces import COUNTED, detect_states
from plltool.alignment.states import DNA, PROTEIN

# Cornish-Bowden 1985, Nucleic Acids Res 13:3021, table 1
IUPAC = {
    "A": "A", "C": "C", "G": "G", "T": "T", "U": "T", "R": "AG", "Y": "CT", "S": "CG", "W": "AT", "K": "GT", "M": "AC",
    "B": "CGT", "D": "AGT", "H": "ACT", "V": "ACG", "N": "ACGT",
}  # fmt: skip


# IUPAC-IUB Joint Commission 1984: B, Z and J stand for pairs that hydrolysis or mass cannot tell apart
AMINO_ACIDS = {"B": "ND", "Z": "QE", "J": "IL"} | {letter: letter for letter in "ARNDCQEGHILKMFPSTWYV"}


def states_of(character, space):
    sets = space.state_sets[space.code_of[ord(character)]]
    return "".join(symbol for symbol, allowed in zip(space.symbols, sets, strict=True) if allowed)


@pytest.mark.parametrize(
    ("space", "letter", "expected"),
    [(space, *row) for space, rows in ((DNA, IUPAC), (PROTEIN, AMINO_ACIDS)) for row in rows.items()],
)
def test_iupac_letters_mean_their_states_in_both_cases(space, letter, expected):
    for character in (letter, letter.lower()):
        assert sorted(states_of(character, space)) == sorted(expected)


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


@pytest.mark.parametrize("character", "X?-.UO*!~x")
def test_nothing_is_known_of_an_amino_acid(character):
    assert PROTEIN.code_of[ord(character)] == PROTEIN.all_states_code
    assert states_of(character, PROTEIN) == "".join(PROTEIN.symbols)
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
        ([b"????"], DNA),
        ([b"0101"], COUNTED),
        ([b"0101??", b"1-10"], COUNTED),
        ([b"01AB", b"0123"], COUNTED),
        ([b"0ACGT", b"ACGTA"], DNA),
        ([b"0MKVL"], PROTEIN),
    ],
)
def test_data_are_told_by_their_letters_and_digits(sequences, expected):
    assert detect_states(sequences) is expected
