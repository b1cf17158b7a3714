r"""Partition files of RAxML and RAxML-NG: a line for each part.

    GTR+F+G4, cox1_1 = 1-900\3, 903          RAxML-NG: any model string
    DNA, its = 901-1500                      RAxML: DNA, AA (PROT), MULTI (MORPH) are the default models of such data;
    S16+G4, stems = pairs{rna.str}           the columns that pair in a structure, or pairs such as 5:70 6:69 (MrBayes)
    LGF, gene = 1501-.                       F or X after the name of a protein matrix: counted or optimised frequencies
    CODON2, nad1 = 2401-3300                 IQ-TREE's word for codons, here of genetic code 2, and the default model

How columns are written, see `part_columns`; NEXUS files, see `nexus_sets`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from plltool.errors import InputError, show_name
from plltool.io.part_columns import DATA_NAMES, USUAL_MODELS, PartColumns, read_columns
from plltool.model.multistate import find_name
from plltool.model.proteins import canonical_names
from plltool.model.scheme import PartSpec, Scheme
from plltool.model.spec import ModelSpec

ModelReader = Callable[[str], ModelSpec]

# Nothing that has matched is given back (``++``), so that a line of a million blanks takes no longer than any other.
ITEM = r"(?:[^,{}]|\{(?:[^{}]|\{[^{}]*+\})*+\})++"  # braces may hold models with braces
_MODEL = re.compile(rf"(?P<model>{ITEM}),")
_SUFFIXES = {"F": "+F", "X": "+FO"}


def unwrap(text: str) -> list[tuple[int, str]]:
    """The lines of a text that are neither blank nor comments (``#``), each with the number of its first one.

    A line goes on where a brace is open, or a plus sign ends a line or begins the next one.
    """
    lines: list[tuple[int, list[str]]] = []
    n_open = 0
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if lines and (n_open > 0 or lines[-1][1][-1].endswith("+") or line.startswith("+")):
            lines[-1][1].append(line)
        else:
            lines.append((number, [line]))
            n_open = 0
        n_open += line.count("{") - line.count("}")
    return [(number, "".join(pieces)) for number, pieces in lines]


def is_partition_line(text: str) -> bool:
    """Whether a text is ``MODEL, NAME = SITES``."""
    return _split_line(text) is not None


def _split_line(line: str) -> tuple[str, str, str] | None:
    """Model, name and sites of ``MODEL, NAME = SITES``; None for another line."""
    line = line.strip()
    match = _MODEL.match(line)
    if match is None:
        return None
    name, *sites = line[match.end() :].split("=")
    return (match["model"].strip(), name.strip(), sites[0]) if len(sites) == 1 else None


def read_lines(text: str, source: str, read_model: ModelReader) -> Scheme:
    """The parts in a partition file of RAxML or RAxML-NG; `read_model` reads model strings.

    Blank lines and lines that begin with ``#`` are skipped; a model may take several lines, see `unwrap`.

    Raises
    ------
    InputError
        For a line that is not ``MODEL, NAME = SITES``, has a model or sites that cannot be read, or repeats a name.
    """
    scheme: list[PartSpec] = []
    seen: dict[str, str] = {}
    for number, line in unwrap(text):
        where = f"{source}: line {number}"
        fields = _split_line(line)
        if fields is None:
            raise InputError(f"{where}: found {show_name(line.strip())}, expected MODEL, NAME = SITES")
        text, name, sites = fields
        check_name(name, where)
        check_new(name, seen, where)
        model = read_part_model(text, f"{where}: partition {show_name(name)}", read_model)
        columns = read_columns(sites, where, name)
        model = check_data(model, columns, name)
        scheme.append(PartSpec(model, name, columns.ranges, where, columns.files, columns.n_sites))
    if not scheme:
        raise InputError(f"{source}: found no line with a model, expected one for each partition")
    return tuple(scheme)


def read_part_model(text: str, where: str, read_model: ModelReader) -> ModelSpec:
    """A model string, or one of RAxML's words."""
    word = text.upper()
    text = text if find_name(word) else USUAL_MODELS.get(word, text)  # BIN is a model, too
    matrix, suffix = word[:-1], _SUFFIXES.get(word[-1:])
    if word not in canonical_names() and matrix in canonical_names() and suffix:
        text = canonical_names()[matrix] + suffix
    try:
        return read_model(text)
    except InputError as problem:
        raise InputError(f"{where}: {problem}") from None


def check_name(name: str, where: str) -> None:
    """Raise InputError unless a part's name can be written to a partition file."""
    if "=" in name or len(name.splitlines()) != 1:
        raise InputError(
            f"{where}: found {show_name(name)} as a partition's name, expected one without '=' and line breaks"
        )


def check_new(name: str, seen: dict[str, str], where: str) -> None:
    """Remember where a part is named; InputError if the name is not new."""
    if name in seen:
        raise InputError(f"{where}: found part {show_name(name)} again, expected different names ({seen[name]})")
    seen[name] = where


def check_data(model: ModelSpec, sites: PartColumns, name: str) -> ModelSpec:
    """The model of columns, under their genetic code; InputError if they are said to be of another kind than it is."""
    expected = DATA_NAMES.get(sites.data_word, model.data)
    model = model.for_data(expected)
    if model.data != expected:
        found = f"found a {model.data} model, {model.shown}, for {expected} data"
        raise InputError(f"{sites.where}: partition {show_name(name)}: {found}")
    return model
