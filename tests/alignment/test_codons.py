"""Genetic codes, state spaces of codons, and sequences cut into them."""

import itertools

import numpy as np
import pytest
from Bio.Data import CodonTable
from helpers import make_alignment
from oracles.codons import mask, sense_codons
from refusals import refused

from plltool.alignment.alignment import sort_columns
from plltool.alignment.facts import has_informative_site
from plltool.alignment.patterns import compress, empirical_frequencies
from plltool.alignment.spaces import STOP, codon_space, genetic_code_of, space_called, translation
from plltool.constants import GENETIC_CODES
from plltool.errors import InputError
from plltool.model.model_string import parse_model
from plltool.model.partition import cut_alignment
from plltool.model.scheme import PartSpec, SiteRange

CODON = codon_space(1)


@pytest.mark.parametrize("code", GENETIC_CODES)
def test_genetic_codes_are_those_of_biopython(code):
    table = CodonTable.unambiguous_dna_by_id[code]
    assert translation(code) == {codon: table.forward_table.get(codon, STOP) for codon in translation(code)}
    assert codon_space(code).symbols == tuple(sorted(c for c in translation(code) if c in table.forward_table))


def test_every_genetic_code_of_biopython_is_known():
    assert sorted(CodonTable.unambiguous_dna_by_id) == list(GENETIC_CODES)


@pytest.mark.parametrize("code", [1, 2])
def test_triplets_allow_the_codons_of_their_letters(code):
    space = codon_space(code)
    for letters in itertools.product("ATRYKN-?", repeat=3):
        triplet = "".join(letters)
        allowed = space.state_sets[space.encode(triplet.encode())[0]]
        assert sum(1 << int(state) for state in np.flatnonzero(allowed)) == mask(triplet, code), triplet
    assert space.encode(b"---NNN???")[0] == space.all_states_code
    assert space.encode(b"augATG")[0] == space.encode(b"ATG")[0]


def test_masks_of_more_than_32_states():
    codes = CODON.encode(b"AAATTTACN---")
    expected = [mask(triplet, 1) for triplet in ("AAA", "TTT", "ACN", "---")]
    assert CODON.masks[codes].tolist() == expected
    assert max(expected) == 2**61 - 1


def test_symbols_are_in_alphabetical_order():
    assert list(CODON.symbols) == sense_codons(1)
    assert list(codon_space(2).symbols) == sense_codons(2)


@pytest.mark.parametrize(
    ("name", "code"), [("codon", 1), ("codon1", 1), ("CODON2", 2), ("codon33", 33), ("codon7", None), ("codon2x", None),
                       ("codon²", None), ("dna", None), ("codon99999999999", None)],
)  # fmt: skip
def test_names_of_genetic_codes(name, code):
    assert genetic_code_of(name) == code
    if code:
        assert space_called(name) is codon_space(code)


def align(*sequences, states=CODON):
    return make_alignment([f"t{k}" for k in range(len(sequences))], sequences, "x.fasta", states)


def test_a_site_is_a_codon():
    alignment = align("ATGAAA", "ATGAAR", "ATG---")
    assert (alignment.n_sites, alignment.codes.dtype) == (2, np.uint16)


@pytest.mark.parametrize("stop", ["TAA", "tag", "UGA", "TAR", "TRA"])
def test_a_stop_codon_inside_is_refused(stop):
    message = f"site 4 (codon 2): found the stop codon {stop}, expected a codon of genetic code"
    with refused("", f"x.fasta: taxon 't1', {message}"):
        align("ATGAAACCC", f"ATG{stop}CCC", "ATGAAACCC")


@pytest.mark.parametrize(
    ("sequences", "code", "message"),
    [
        (("ATGAAAAC",) * 3, 1, "found 8 sites, that is 2 codons and 2 more, expected a multiple"),
        (("AGAAAA", "TGGAAA", "TGAAAC"), 2, "found the stop codon AGA, expected a codon of genetic code 2"),
        (("ATGAAATAA", "ATGAACTAG", "ATGAAGAAA"), 1, "'t0', site 7 (codon 3): found the stop codon TAA"),
        (("ATGEAA", "ATGAAA", "ATGAAA"), 1, "taxon 't0', site 4: found 'E', expected DNA, that is one of ABCD"),
    ],
    ids=["no multiple of three", "stop of another code", "stop at the end of some", "no base"],
)
def test_what_is_refused(sequences, code, message):
    with refused(message, "x.fasta: "):
        align(*sequences, states=codon_space(code))


def test_the_genetic_code_tells_what_a_stop_codon_is():
    assert align("TGAAAA", "TGGAAA", "TGAAAC", states=codon_space(2)).n_sites == 2


def test_a_last_codon_that_is_a_stop_in_all_taxa_is_dropped():
    alignment = align("ATGAAATAA", "ATGAACTAG", "ATGAAG---")
    assert alignment.n_sites == 2
    assert alignment.warnings[0] == "x.fasta: the last codon, site 7, is a stop codon and left out"


def test_columns_are_sorted_by_codes_of_two_bytes():
    codes = np.array([[300, 1, 256, 1], [1, 1, 1, 0]], dtype=np.uint16)
    assert sort_columns(codes).tolist() == [3, 1, 2, 0]


def test_patterns_and_counts():
    alignment = align("ATGATGAAA", "ATGATGAAC", "ATGATGAAR")
    patterns = compress(alignment)
    assert sorted(patterns.weights.tolist()) == [1, 2]
    frequencies = dict(zip(CODON.symbols, empirical_frequencies(alignment, CODON), strict=True))
    assert frequencies["ATG"] == pytest.approx(6 / 9, rel=1e-6)
    assert frequencies["AAA"] == pytest.approx(1.5 / 9, rel=1e-6)  # AAR counts half for AAA and AAG
    assert frequencies["AAG"] == pytest.approx(0.5 / 9, rel=1e-6)


@pytest.mark.parametrize(
    ("last", "informative"),
    [
        (("AAA", "AAC", "AAC"), True),
        (("AAC", "AAC", "AAC"), False),
        (("AAM", "AAC", "AAC"), False),
        (("---", "AAC", "AAC"), False),
    ],
)
def test_informative_codons(last, informative):
    assert has_informative_site(align("AAA", *last)) == informative


def test_parts_name_the_columns_of_their_codons():
    from plltool.alignment.alignment import Sequences

    rows = (b"CATGAAACCC", b"CATGAACCCG", b"CATGAAGCCT")
    given = Sequences(("a", "b", "c"), rows, "x", None)
    scheme = (
        PartSpec(parse_model("JC"), "first", (SiteRange(1, 1),), "parts: line 1"),
        PartSpec(parse_model("GY"), "gene", (SiteRange(2, 5), SiteRange(9, 10)), "parts: line 2"),
    )
    gene = cut_alignment(given, scheme).parts[1]
    assert sorted(gene.columns.tolist()) == [[1, 2, 3], [4, 8, 9]]
    assert sorted(gene.sites.tolist()) == [1, 4]
    spaced = (PartSpec(parse_model("GY"), "gene", (SiteRange(1, 9, 3),), "parts: line 1"),)
    with pytest.raises(InputError, match=r"line 1: found codon data in columns 1-9.3, expected all .* \(part 'gene'"):
        cut_alignment(given, spaced)
