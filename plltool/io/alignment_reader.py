"""Read alignment files, whose content decides which format they have: one, queries, or a folder of genes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from pathlib import Path

from plltool.alignment.alignment import MIN_TAXA, Sequences
from plltool.alignment.spaces import SPACES, detect_states, space_called
from plltool.alignment.states import PROTEIN, StateSpace
from plltool.constants import FIRST_WORD, NAME_KINDS, WHOLE
from plltool.errors import InputError, check_one_of, explained, list_names, show_name, show_object
from plltool.io import alignment_formats as formats
from plltool.io.files import FileName, read_text, source_name, unpacked_name
from plltool.io.nexus import read_nexus, starts_like_nexus
from plltool.io.site_formats import read_catg, read_vcf, starts_like_catg, starts_like_vcf
from plltool.io.table_reader import read_table, starts_like_table
from plltool.progress import log

_MAX_SHOWN_START = 40  # bytes of a file in a message
_MAX_DIGITS = 15  # of the weight of a site

_PIR = re.compile(rb">[PFDRNX][1-3LCX];")  # each name is followed by a line with a title, each sequence by *
AUTO = "auto"  # the states that the data show
_FORMATS = (
    "'>' and a name (FASTA), '#NEXUS', '##fileformat=VCF', the numbers of taxa and sites (PHYLIP), a first line of"
    " Clustal, Stockholm or MSF, likelihoods of states (CATG), or names of columns between tabs or commas (a table of"
    " states)"
)


def read_alignment(
    path: FileName,
    states: StateSpace | str | None = None,
    *,
    names: str | None = None,
    constant_sites: Sequence[int] | None = None,
    site_weights: Sequence[int] | FileName | None = None,
    least: int = MIN_TAXA,
) -> Sequences:
    """Read FASTA, PHYLIP, NEXUS, Clustal, Stockholm, MSF, VCF, CATG or a table, compressed or not; ``-`` is stdin.

    `states` may be "dna", "rna", "protein", "codon", or "codon2" for another genetic code than the standard one, by
    NCBI's number, "bin" (binary), or "morph" or "multi" (multistate data with as many states as they show). With None
    or "auto", the datatype of a NEXUS file or the characters (`detect_states`) decide. There must be at
    least `least` taxa.

    `names` says what of a FASTA header is the name of its taxon: "whole", or its "first-word". With None this is the
    whole header, and a warning says so if headers have blanks.

    `constant_sites` are the numbers of constant A, C, G and T sites to add to DNA, such as those that a set of SNPs
    lacks. They count in the likelihood and all statistics, but tables of sites leave them out.

    `site_weights` are whole numbers from 0 on, one for each column, or a file with blanks or line ends between them. A
    column counts as if it stood in the file that often; those of weight 0 are left out.

    Names are kept byte for byte; see `read_fasta`, `read_phylip`, `read_nexus`, `read_vcf`, `read_catg` and
    `read_table` for what they allow. Line ends may be LF, CRLF or CR, and a UTF-8 byte order mark is skipped.

    Raises InputError if the file cannot be read, is in no known format, or its sequences are not equally long, or
    `states` is an unknown name, headers have the same first word, or `constant_sites` are not four numbers, or for
    other data than DNA, or `site_weights` are not as above.
    """
    if names is not None:
        check_one_of("names", names, NAME_KINDS)
    if isinstance(states, str):
        states = _find_states(states)
    own = _read_text(_load_text(path), source_name(path), states, names, least)
    if constant_sites is not None:
        own = own.with_constant_sites(constant_sites)
    if isinstance(site_weights, (str, os.PathLike)):
        return own.with_site_weights(_read_weights(site_weights), source_name(site_weights))
    return own if site_weights is None else own.with_site_weights(site_weights)


def read_alignment_sets(
    path: FileName, states: StateSpace | str | None = None, *, names: str | None = None
) -> tuple[Sequences, ...]:
    """The PHYLIP alignments that stand one after the other in a file, as PHYLIP's SEQBOOT writes them.

    Each begins with a line of the numbers of its taxa and sites. `states` and `names` are as for `read_alignment`, also
    for errors; InputError if there is no such line.
    """
    text, source = _load_text(path), source_name(path)
    begins = [match.start() for match in formats.SIZES.finditer(text)]
    if not begins:
        raise InputError(f"{source}: found no line with the numbers of taxa and sites, expected PHYLIP alignments")
    states = _find_states(states) if isinstance(states, str) else states
    ends = enumerate(pairwise([*begins, len(text)]), 1)
    return tuple(_read_text(text[a:b], f"{source}: alignment {k}", states, names, MIN_TAXA) for k, (a, b) in ends)


def _read_text(text: bytes, source: str, states: StateSpace | None, names: str | None, least: int) -> Sequences:
    if starts_like_catg(text):
        return read_catg(text, source, states, least)
    is_vcf, is_table = starts_like_vcf(text), starts_like_table(text) and not starts_like_alignment(text)
    if (is_vcf or is_table) and states is not None:
        kind = "a VCF file with genotypes" if is_vcf else "a table of named states"
        raise InputError(f"{source}: found {kind}, expected {states.name} data")
    if is_vcf or is_table:
        return read_vcf(text, source) if is_vcf else read_table(text, source, least)
    names_are = names or WHOLE
    if starts_like_nexus(text):
        return read_nexus(text, source, states, least=least, names_are=names_are)
    letters = states and states.letters
    records = _parse(text, source, letters or PROTEIN)
    found = letters or detect_states(record.sequence for record in records)
    if found is not letters and formats.starts_like_phylip(text):  # where letters may tell names from sequences
        records = _parse(text, source, found)
    warnings = formats.note_on_blanks(records, source) if _is_fasta(text) and names is None else ()
    if _is_fasta(text) and names == FIRST_WORD:
        records = formats.cut_names(records, source)
    facts = {"told": states is not None, "warnings": warnings, "least": least, "names_are": names_are}
    return formats.to_sequences(records, source, found if states is letters else states, **facts)


def read_alignments(
    paths: Sequence[FileName | Sequences],
    states: StateSpace | str | None = None,
    *,
    names: str | None = None,
    least: int = MIN_TAXA,
) -> Iterator[Sequences]:
    """`read_alignment` of several files, or what it returned; at most one has the warning of blanks in headers."""
    for path in paths:
        own = path if isinstance(path, Sequences) else read_alignment(path, states, names=names, least=least)
        if any(formats.NAMES_HINT in warning for warning in own.warnings):
            names = WHOLE
        yield own


def _read_weights(path: FileName) -> list[int]:
    """The whole numbers of a file of weights of sites."""
    weights = list[int]()
    for number, line in enumerate(read_text(path).splitlines(), 1):
        for word in line.split():
            if not (word.isdigit() and len(word) <= _MAX_DIGITS):
                found = f"line {number}: found {show_name(word.decode('utf-8', 'replace'))}"
                raise InputError(f"{source_name(path)}: {found}, expected a weight: a whole number from 0 on")
            weights.append(int(word))
    return weights


def _find_states(name: str) -> StateSpace | None:
    found = space_called(name)
    if found is None and name.lower() != AUTO:
        expected = f"{', '.join((AUTO, *SPACES))}, or codon, or codon2 for another genetic code by NCBI's number"
        raise InputError(f"states: found {show_name(name)}, expected one of: {expected}")
    return found


def looks_like_alignment(path: FileName) -> bool:
    """Whether a file can be read and starts like an alignment; the rest is not looked at."""
    try:
        return starts_like_alignment(read_text(path))
    except InputError:
        return False


def starts_like_alignment(text: bytes) -> bool:
    """Whether a text starts like an alignment in any format but a table."""
    start = text.lstrip()
    starts = (_is_fasta, starts_like_nexus, formats.starts_like_phylip, starts_like_vcf, formats.starts_like_blocks)
    return any(begins(start) for begins in starts)


def _load_text(path: FileName) -> bytes:
    """The unpacked content with LF line ends; raises InputError for binary data."""
    content = read_text(path)
    null = content.find(b"\0")
    if null >= 0:
        found = f"found binary data (a NUL byte at offset {null})"
        raise InputError(f"{source_name(path)}: {found}, expected {_FORMATS}")
    return content


def _parse(text: bytes, source: str, states: StateSpace) -> list[formats.Record]:
    """The records of a FASTA, PHYLIP, Clustal, Stockholm or MSF file, as which it starts."""
    start = text.strip()
    if _PIR.match(start) and start.endswith(b"*"):
        raise InputError(f"{source}: found the format PIR (NBRF), expected {_FORMATS}")
    if _is_fasta(text):
        return formats.read_fasta(text)
    if formats.starts_like_phylip(text):
        return formats.read_phylip(text, source, states)
    if formats.starts_like_blocks(text):
        return formats.read_blocks(text)
    if not start:
        raise InputError(f"{source}: found an empty file, expected {_FORMATS}")
    shown = start.split(b"\n", 1)[0][:_MAX_SHOWN_START].decode("utf-8", "replace")
    raise InputError(f"{source}: found {shown!r} at the start of the file, expected {_FORMATS}")


def _is_fasta(text: bytes) -> bool:
    return text.lstrip().startswith(b">")


def read_queries(
    paths: FileName | Sequence[FileName | Sequences],
    states: StateSpace | str | None = None,
    *,
    names: str | None = None,
) -> tuple[Sequences, ...]:
    """The sequences of FASTA, PHYLIP or NEXUS files, each with one or more; arguments as of `read_alignment`.

    Raises InputError as it does, and if a name occurs in two files, or there is no file.
    """
    if isinstance(paths, (str, os.PathLike)):
        paths = [paths]
    if not paths:
        raise InputError("queries: found no file, expected one or more")
    files = tuple(read_alignments(paths, states, names=names, least=1))
    seen: dict[str, str] = {}
    for given in files:
        for taxon, name in enumerate(given.names):
            if name in seen:
                found = f"{given.source}: {given.describe_taxon(taxon)} is in {seen[name]}, too"
                raise InputError(f"{found}; rename one of them")
            seen[name] = given.source
    return files


ENDINGS = (".fasta", ".fas", ".fa", ".fna", ".faa", ".phylip", ".phy", ".nexus", ".nex", ".aln", ".sto", ".msf")
GAP = b"-"


def read_folder(folder: FileName, states: str | None = None, names: str | None = None) -> dict[str, Sequences]:
    """The alignments of all files of a folder, by the names of the files without their endings, in that order.

    Hidden files, whose names begin with a dot, and folders are left out, and with a warning files that neither start
    like an alignment nor have an ending of one. `states` and `names` are as for `read_alignment`.
    """
    place = Path(folder)
    with explained(f"{place}: cannot read the folder"):
        files = sorted(path for path in place.iterdir() if path.is_file() and not path.name.startswith("."))
    unlike = [path for path in files if Path(unpacked_name(path)).suffix not in ENDINGS]
    others = [path for path in unlike if not starts_like_alignment(read_text(path))]
    if others:
        log.warning("%s: left out, no alignments: %s", place, list_names([path.name for path in others]))
    files = [path for path in files if path not in others]
    if not files:
        raise InputError(f"{place}: found no files, expected the alignment of a gene in each")
    found: dict[str, Path] = {}
    for path in files:
        name = Path(unpacked_name(path)).stem
        if name in found:
            raise InputError(f"{path}: found gene {show_name(name)} again, expected different names ({found[name]})")
        if "=" in name or len(name.splitlines()) != 1:
            raise InputError(f"{path}: found {show_name(name)} as a name, expected one without '=' and line breaks")
        found[name] = path
    return dict(zip(found, read_alignments(list(found.values()), states, names=names), strict=True))


def join_alignments(genes: Mapping[str, Sequences], source: str) -> tuple[Sequences, list[tuple[int, int]]]:
    """The alignments side by side, taxa by name, gaps for those that a gene lacks; columns of each gene, from 1.

    Raises InputError if there is no gene, or one is a table of states.
    """
    if not (isinstance(genes, Mapping) and genes):
        raise InputError(f"genes: found {show_object(genes)}, expected a mapping of names to alignments")
    for own in genes.values():
        own.refuse_table("one of several alignments")
    names = sorted({name for own in genes.values() for name in own.names})
    parts = [(dict(zip(own.names, own.rows, strict=True)), GAP * own.n_sites) for own in genes.values()]
    rows = tuple(b"".join(own.get(name, gaps) for own, gaps in parts) for name in names)
    ends = accumulate(own.n_sites for own in genes.values())
    ranges = [(end - own.n_sites + 1, end) for own, end in zip(genes.values(), ends, strict=True)]
    kinds = {own.states.name if own.states else "" for own in genes.values()}
    is_one_kind = len(kinds) == 1
    some = next(iter(genes.values()))
    told, states = is_one_kind and all(own.told for own in genes.values()), some.states if is_one_kind else None
    sets = {byte: members for own in genes.values() for byte, members in own.sets.items()}
    return Sequences(tuple(names), rows, source, states, told=told, sets=sets, names_are=some.names_are), ranges
