"""Alignments with a line for each site: VCF 4 (https://samtools.github.io/hts-specs) and CATG, RAxML-NG's format.

The first has genotypes of samples at SNPs, diploid or haploid; cells of the second give each state a likelihood.
"""

import re
from collections.abc import Sequence

import numpy as np

from plltool.alignment.alignment import CellLikelihoods, Sequences
from plltool.alignment.spaces import COUNTED
from plltool.alignment.states import (
    DNA,
    GENOTYPES,
    HOMOZYGOTES,
    MAX_STATES,
    MIN_STATES,
    PHASED,
    PHASED_GENOTYPES,
    PROTEIN,
    UNPHASED,
    StateSpace,
    multistate_space,
)
from plltool.errors import InputError, show_name
from plltool.io.alignment_formats import decode_name, number_lines, starts_like_phylip

_MAGIC = (b"##fileformat=VCF", b"#CHROM\t")
_FIXED = ("#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT")
_REF, _ALT, _FORMAT = 3, 4, 8  # columns
_GENOTYPE = re.compile(r"(\.|[0-9]{1,3})([/|])(\.|[0-9]{1,3})")
_ALLELE = re.compile(r"([0-9]{1,3})")
_MISSING, _NO_CALL, _DELETED = "?", ".", "*"


def starts_like_vcf(text: bytes) -> bool:
    return text.startswith(_MAGIC)


def read_vcf(text: bytes, source: str) -> Sequences:
    """The genotypes of each sample at each SNP as characters of `plltool.alignment.states`.

    Records with an allele that is not one base, such as an indel, are left out, with a warning. A genotype with an
    allele that was not called is unknown. Nothing but GT is looked at, neither filters nor likelihoods. If the first
    genotype has one allele, all have, as those of bacteria: they are DNA, unknown where the allele is ``*``.
    """
    is_haploid: bool | None = None
    samples: list[str] = []
    columns: list[str] = []
    skipped: list[int] = []
    for number, line in enumerate(text.decode("utf-8", "surrogateescape").split("\n"), start=1):
        if line.startswith("##") or not line.strip():
            continue
        fields = line.split("\t")
        if not samples:
            if tuple(fields[: len(_FIXED)]) != _FIXED or len(fields) == len(_FIXED):
                expected = f"the columns {' '.join(_FIXED)} and samples, with tabs"
                raise InputError(f"{source}: line {number}: found {show_name(line)}, expected {expected}")
            samples = fields[len(_FIXED) :]
            continue
        where = f"{source}: line {number}"
        if len(fields) != len(_FIXED) + len(samples):
            raise InputError(f"{where}: found {len(fields)} columns, expected {len(_FIXED) + len(samples)} as above")
        alternatives = [] if fields[_ALT] == _NO_CALL else fields[_ALT].upper().split(",")
        alleles = [fields[_REF].upper(), *alternatives]
        genotypes = [cell.split(":", 1)[0] for cell in fields[len(_FIXED) :]]
        if is_haploid is None and fields[_FORMAT].split(":")[0] == "GT":
            is_haploid = next((genotype.isdecimal() for genotype in genotypes if genotype != _NO_CALL), None)
        if all(allele in DNA.symbols or (is_haploid and allele == _DELETED) for allele in alleles):
            if fields[_FORMAT].split(":")[0] != "GT":
                found = f"found FORMAT {show_name(fields[_FORMAT])}"
                raise InputError(f"{where}: {found}, expected GT as its first key")
            known: dict[str, str] = {}
            for sample, genotype in zip(samples, genotypes, strict=True):
                if genotype not in known:
                    at = f"{where}: sample {show_name(sample)}"
                    known[genotype] = _character_of(genotype, alleles, bool(is_haploid), at)
            columns.append("".join(map(known.__getitem__, genotypes)))
        else:
            skipped.append(number)
    if not columns:
        found = f"no SNP, other records: {len(skipped)}" if samples else "no line that begins with #CHROM"
        raise InputError(f"{source}: found {found}, expected genotypes of at least one SNP")
    rows = tuple("".join(row).encode("ascii") for row in zip(*columns, strict=True))
    what = "1 record that is not a SNP" if len(skipped) == 1 else f"{len(skipped)} records that are not SNPs"
    warnings = (f"{source}: {what} left out, first line {skipped[0]}",) if skipped else ()
    return Sequences(tuple(samples), rows, source, DNA if is_haploid else GENOTYPES, told=True, warnings=warnings)


def _character_of(genotype: str, alleles: Sequence[str], is_haploid: bool, where: str) -> str:
    if genotype == _NO_CALL:
        return _MISSING
    match = (_ALLELE if is_haploid else _GENOTYPE).fullmatch(genotype)
    if match is None:
        expected = "one allele, as the first genotype has" if is_haploid else "two alleles, such as 0/1 or ./."
        raise InputError(f"{where}: found the genotype {show_name(genotype)}, expected {expected}")
    numbers = [int(number) for number in match.groups() if number.isdecimal()]
    if any(number >= len(alleles) for number in numbers):
        found = f"found the genotype {show_name(genotype)}"
        raise InputError(f"{where}: {found}, expected alleles from 0 to {len(alleles) - 1}")
    if is_haploid:
        return alleles[numbers[0]].replace(_DELETED, _MISSING)
    if len(numbers) < 2:
        return _MISSING
    pair = "".join(alleles[number] for number in numbers)
    if pair in HOMOZYGOTES:
        return HOMOZYGOTES[pair]
    return PHASED[pair] if match[2] == "|" else UNPHASED["".join(sorted(pair))]


_SPACES = {space.n_states: space for space in (DNA, GENOTYPES, PHASED_GENOTYPES, PROTEIN)}
_CELL = re.compile(rb"(nan|[-+]?inf|[-+.eE0-9]+),[-+.,\w]*$", re.IGNORECASE)
_LEAST = 1e-9  # of a cell's likelihoods the largest: two such tips meet above the smallest number of single precision


def starts_like_catg(text: bytes) -> bool:
    """Whether the first line has two whole numbers, and the third one numbers with commas between them."""
    lines = text.lstrip().split(b"\n", 3)[:3]
    if not starts_like_phylip(text) or len(lines) < 3:
        return False
    names, column = lines[1].split(), lines[2].split(None, 2)
    fits = {len(names), len(column[0]) if column else 0} & set(map(int, lines[0].split()[:2]))
    return bool(fits) and len(column) > 1 and _CELL.match(column[1]) is not None


def read_catg(text: bytes, source: str, states: StateSpace | None, least: int) -> Sequences:
    """Read the numbers of taxa and sites, the names, and a line for each site.

    Such a line has the characters of all taxa in one word, then for each taxon the likelihoods of all states, between
    commas, from 0 to 1. They need not add up to 1. If their number is 4, they are those of A, C, G, T, if it is 10 or
    16 of genotypes, if it is 20 of amino acids, otherwise of the states of multistate data; `states`, if given, say so.
    """
    (first, header), (second, named), *lines = number_lines(text)
    n_taxa, n_sites = map(int, header.split()[:2])
    names = [decode_name(name) for name in named.split()]
    if len(names) != n_taxa:
        found = f"found {len(names)} names of taxa, line {first} announces {n_taxa}"
        found += ", and the sites in place of the taxa" * (len(names) == n_sites and len(lines) == n_taxa)
        raise InputError(f"{source}: line {second}: {found}")
    if len(lines) != n_sites:
        raise InputError(f"{source}: found {len(lines)} lines of sites, line {first} announces {n_sites}")
    number_of: dict[bytes, int] = {}
    vectors: list[list[float]] = []
    rows, numbers = [], np.empty((n_taxa, n_sites), dtype=np.intp)
    for site, (line, content) in enumerate(lines):
        letters, *cells = content.split()
        at, n = f"{source}: line {line}", len(names)
        if len(letters) != n:
            found = f"found {show_name(decode_name(letters))}"
            raise InputError(f"{at}: {found}, expected a character for each of {n} taxa")
        if len(cells) < n:
            found = f"taxon {show_name(names[len(cells)])}: found no likelihoods"
            raise InputError(f"{at}, {found}, expected numbers with commas between them for each of {n} taxa")
        if len(cells) > n:
            found = f"found {show_name(decode_name(cells[n]))} after those of the last taxon"
            raise InputError(f"{at}: {found}, expected likelihoods for each of {n} taxa")
        rows.append(letters)
        for taxon, cell in enumerate(cells):
            if cell not in number_of:
                number_of[cell] = len(vectors)
                n_states = len(vectors[0]) if vectors else None
                vectors.append(_read_likelihoods(cell, n_states, f"{at}, taxon {show_name(names[taxon])}"))
            numbers[taxon, site] = number_of[cell]
    space = states or _SPACES.get(len(vectors[0])) or COUNTED
    space = multistate_space(len(vectors[0])) if space is COUNTED else space
    letters_of, cells_of = tuple(map(bytes, zip(*rows, strict=True))), CellLikelihoods(numbers, np.array(vectors))
    return Sequences(tuple(names), letters_of, source, space, told=True, least=least, likelihoods=cells_of)


def _read_likelihoods(cell: bytes, n_states: int | None, where: str) -> list[float]:
    """The likelihoods of a cell, as many as in the first one, which has `n_states` None."""
    values = []
    for text in decode_name(cell).split(","):
        try:
            values.append(float(text.replace("_", "?")))  # which Python allows between digits
        except ValueError:
            values.append(-1.0)
        if not 0 <= values[-1] <= 1:
            raise InputError(f"{where}: found {show_name(text)}, expected a likelihood, from 0 to 1")
    if len(values) != (n_states or len(values)):
        raise InputError(f"{where}: found {len(values)} likelihoods, expected {n_states} as in the first cell")
    if not MIN_STATES <= len(values) <= MAX_STATES:
        raise InputError(f"{where}: found {len(values)} likelihoods, expected {MIN_STATES} to {MAX_STATES}")
    if max(values) < _LEAST:
        expected = f"expected one of {_LEAST:g} or more; a factor for a whole cell only adds a constant to lnL"
        raise InputError(f"{where}: found likelihoods of {max(values):g} or less, {expected}")
    return values
