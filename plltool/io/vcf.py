"""The Variant Call Format (VCF 4, https://samtools.github.io/hts-specs): genotypes of diploid samples at SNPs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from plltool.alignment.states import DNA, HOMOZYGOTES, PHASED, UNPHASED
from plltool.errors import InputError, show_name
from plltool.io.alignment_formats import Record, decode_name

_MAGIC = (b"##fileformat=VCF", b"#CHROM\t")
_FIXED = ("#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT")
_REF, _ALT, _FORMAT = 3, 4, 8  # columns
_GENOTYPE = re.compile(r"(\.|[0-9]{1,3})([/|])(\.|[0-9]{1,3})")
_MISSING, _NO_CALL = "?", "."


def starts_like_vcf(text: bytes) -> bool:
    return text.startswith(_MAGIC)


def read_vcf(text: bytes, source: str) -> tuple[list[Record], tuple[str, ...]]:
    """The genotypes of each sample at each SNP as characters of `plltool.alignment.states`, and warnings.

    Records with an allele that is not one base, such as an indel, are left out, with a warning. A genotype with an
    allele that was not called is unknown. Nothing but GT is looked at, neither filters nor likelihoods.
    """
    samples: list[str] = []
    columns: list[str] = []
    skipped: list[int] = []
    start = 0
    for number, line in enumerate(text.decode("utf-8", "surrogateescape").split("\n"), start=1):
        if line.startswith("##") or not line.strip():
            continue
        fields = line.split("\t")
        if not samples:
            samples, start = _read_header(fields, f"{source}: line {number}"), number
            continue
        where = f"{source}: line {number}"
        if len(fields) != len(_FIXED) + len(samples):
            raise InputError(f"{where}: found {len(fields)} columns, expected {len(_FIXED) + len(samples)} as above")
        alleles = _find_bases(fields)
        if alleles is None:
            skipped.append(number)
        else:
            columns.append(_read_genotypes(fields, alleles, samples, where))
    if not columns:
        found = f"no SNP, other records: {len(skipped)}" if samples else "no line that begins with #CHROM"
        raise InputError(f"{source}: found {found}, expected genotypes of at least one SNP")
    rows = ("".join(row).encode("ascii") for row in zip(*columns, strict=True))
    names = [decode_name(name.encode("utf-8", "surrogateescape")) for name in samples]
    return [Record(name, row, start) for name, row in zip(names, rows, strict=True)], _describe_skipped(skipped, source)


def _read_header(fields: Sequence[str], where: str) -> list[str]:
    if tuple(fields[: len(_FIXED)]) != _FIXED or len(fields) == len(_FIXED):
        found = show_name("\t".join(fields))
        raise InputError(f"{where}: found {found}, expected the columns {' '.join(_FIXED)} and samples, with tabs")
    return list(fields[len(_FIXED) :])


def _find_bases(fields: Sequence[str]) -> list[str] | None:
    """The bases of a record's alleles, the reference first; None if one is not a single base."""
    other = [] if fields[_ALT] == _NO_CALL else fields[_ALT].upper().split(",")
    alleles = [fields[_REF].upper(), *other]
    return alleles if all(allele in DNA.symbols for allele in alleles) else None


def _read_genotypes(fields: Sequence[str], alleles: Sequence[str], samples: Sequence[str], where: str) -> str:
    """A character for each sample."""
    keys = fields[_FORMAT].split(":")
    if keys[0] != "GT":
        raise InputError(f"{where}: found FORMAT {show_name(fields[_FORMAT])}, expected GT as its first key")
    known: dict[str, str] = {}
    characters = []
    for sample, cell in zip(samples, fields[len(_FIXED) :], strict=True):
        genotype = cell.split(":", 1)[0]
        if genotype not in known:
            known[genotype] = _character_of(genotype, alleles, f"{where}: sample {show_name(sample)}")
        characters.append(known[genotype])
    return "".join(characters)


def _character_of(genotype: str, alleles: Sequence[str], where: str) -> str:
    if genotype == _NO_CALL:
        return _MISSING
    match = _GENOTYPE.fullmatch(genotype)
    if match is None:
        raise InputError(f"{where}: found the genotype {show_name(genotype)}, expected two alleles, such as 0/1 or ./.")
    numbers = [int(number) for number in (match[1], match[3]) if number != _NO_CALL]
    if any(number >= len(alleles) for number in numbers):
        found = f"found the genotype {show_name(genotype)}"
        raise InputError(f"{where}: {found}, expected alleles from 0 to {len(alleles) - 1}")
    if len(numbers) < 2:
        return _MISSING
    pair = "".join(alleles[number] for number in numbers)
    if pair in HOMOZYGOTES:
        return HOMOZYGOTES[pair]
    return PHASED[pair] if match[2] == "|" else UNPHASED["".join(sorted(pair))]


def _describe_skipped(lines: Sequence[int], source: str) -> tuple[str, ...]:
    if not lines:
        return ()
    number = "1 record that is not a SNP" if len(lines) == 1 else f"{len(lines)} records that are not SNPs"
    return (f"{source}: {number} left out, first line {lines[0]}",)
