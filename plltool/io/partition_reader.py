r"""Partition files: a line for each part (RAxML, RAxML-NG), or charsets of NEXUS and partitions into them.

    GTR+F+G4, cox1_1 = 1-900\3, 903          RAxML-NG: any model string
    DNA, its = 901-1500                      RAxML: DNA, AA (PROT), MULTI (MORPH) are the default models of such data;
    LGF, gene = 1501-.                       F or X after the name of a protein matrix: counted or optimised frequencies
    CODON2, nad1 = 2401-3300                 IQ-TREE's word for codons, here of genetic code 2, and the default model
    charpartition mine = GTR+G4: a, HKY: b;  IQ-TREE: models and their charsets
    charpartition mine = a: a, b: 1-9 12;    PAUP, Mesquite, Biopython: names and their columns
    partition mine = 2: a, b;                MrBayes: chooses charsets, otherwise each charset is a part
    set partition = mine;                    chooses among several partitions or charpartitions

Without models the default ones are used. Columns are written as

1-900\3, 903                  columns count from 1; ranges include both ends; every third column
901-.                         to the last column
5:70 6:69                     columns that pair in a stem of RNA
pairs{FILE}, unpaired{FILE}   columns of a structure in dot-bracket notation, see `read_structure`
genes.phy: DNA, 1-900         IQ-TREE: the file, which must be the alignment, and the type of the data
*                             all columns
first all remainder           NEXUS: charsets, all columns, those that no other part has
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from plltool import constants
from plltool.alignment.spaces import data_name
from plltool.alignment.states import MULTISTATE
from plltool.errors import InputError, count, errors_at, show_name
from plltool.io.alignment_formats import decode_name
from plltool.io.files import read_text, source_name
from plltool.io.nexus import Command, split_commands
from plltool.model.codons import under_code
from plltool.model.names import ITEM
from plltool.model.other_data import find_multistate
from plltool.model.proteins import canonical_names
from plltool.model.scheme import ALL_SITES, REMAINDER, PartSpec, Scheme, SitePair, SiteRange
from plltool.model.spec import ModelSpec

_MAX_RANGES = 1_000_000  # of all charsets: members of members may be as many as powers of two

# Nothing that has matched is given back (``++``), so that a line of a million blanks takes no longer than any other.
COLUMN = r"([0-9]{1,18})(?![0-9])"
_RANGE = re.compile(rf"{COLUMN}(?:\s*+-\s*+(?:{COLUMN}|(\.))(?:\s*+[\\/]\s*+{COLUMN})?)?")
_PAIR = re.compile(rf"{COLUMN}\s*+:\s*+{COLUMN}(?!\s*+[-\\/])")
_STRUCTURE = re.compile(r"(pairs|unpaired)\{([^{}]++)\}", re.IGNORECASE)
_FILE = re.compile(r"\s*+('[^']*+'|[^\s:,']++)\s*+:")
_DATA_WORD = re.compile(r"\s*+([A-Za-z][A-Za-z0-9]*+)\s*+,")
_MEMBER = re.compile(r"'[^']*+'|[^\s,']++")
_ITEM_START = re.compile(r"[^ \t\n,]")
# The kind of data and its usual model, by the words of RAxML, IQ-TREE and MrBayes
DATA_WORDS = {"DNA": ("DNA", constants.DEFAULT_MODEL), "DNAX": ("DNA", "GTR+FO+G4")}
DATA_WORDS |= dict.fromkeys(("AA", "PROT"), ("protein", constants.DEFAULT_PROTEIN_MODEL))
DATA_WORDS |= dict.fromkeys(("BIN", "MORPH", "MULTI", "STANDARD"), (MULTISTATE, constants.DEFAULT_MULTISTATE_MODEL))
DATA_WORDS |= {
    data_name(code).upper(): (data_name(code), under_code(constants.DEFAULT_CODON_MODEL, code))
    for code in constants.GENETIC_CODES
}
DATA_WORDS["CODON1"] = DATA_WORDS["CODON"]

Charsets = Mapping[str, PartSpec]  # parts that have no model yet


def read_columns(text: str, where: str, name: str, charsets: Charsets | None = None) -> PartSpec:
    """``[FILE:] [DATA TYPE,] RANGES``, in which `charsets` of NEXUS may be members, and ``all`` and ``remainder``."""
    position, files, word = 0, tuple[str, ...](), ""
    if (found := _FILE.match(text)) and not _PAIR.match(text.lstrip()):
        files, position = (found[1].strip("'"),), found.end()
    found = _DATA_WORD.match(text, position)
    if found and not (charsets and find_members(found[1], charsets)):
        word, position = found[1].upper(), found.end()
        if word not in DATA_WORDS:
            what = f"{where}: partition {show_name(name)}: found data of type {show_name(found[1])}"
            raise InputError(f"{what}, expected DNA, AA (proteins), CODON or CODON2 and the like, BIN or MORPH")
    rest, n_sites = text[position:], None
    ranges: tuple[SiteRange, ...] = ALL_SITES
    if found := _STRUCTURE.fullmatch(rest.strip()):
        path, are_pairs = found[2].strip(), found[1].lower() == "pairs"
        pairs, unpaired, n_sites = read_structure(path)
        ranges = pairs if are_pairs else unpaired
        if not ranges:
            what = f"{where}: partition {show_name(name)}: found {'no brackets' if are_pairs else 'no dot'}"
            raise InputError(f"{what} in {show_name(path)}, expected at least one")
    elif rest.strip() != "*":
        ranges = _read_ranges(rest, where, name, charsets)
    return PartSpec(None, name, ranges, where, files, n_sites, word)


def _read_ranges(text: str, where: str, name: str, charsets: Charsets | None) -> tuple[SiteRange, ...]:
    """Ranges, and in NEXUS names of charsets, separated by commas or blanks."""
    ranges: list[SiteRange] = []
    position = 0
    while item := _ITEM_START.search(text, position):
        position = item.start()
        if pair := _PAIR.match(text, position):
            first, last = sorted((int(pair[1]), int(pair[2])))
            if first == last:
                what = f"{where}: partition {show_name(name)}: found {show_name(pair[0])}"
                raise InputError(f"{what}, expected two different columns")
            ranges.append(SitePair(first, last))
            position = pair.end()
            continue
        match = _RANGE.match(text, position)
        member = None if match or charsets is None else _MEMBER.match(text, position)
        if member and charsets is not None and (known := find_members(member[0].strip("'"), charsets)):
            ranges += known.ranges
            check_size(len(ranges), where, name)
            position = member.end()
            continue
        if match is None or int(match[4] or 1) == 0:
            found = show_name(text[position:].strip())
            raise InputError(rf"{where}: partition {show_name(name)}: found {found}, expected columns such as 1-100\3")
        start, stop, to_end, stride = match.groups()
        ranges.append(SiteRange(int(start), None if to_end else int(stop or start), int(stride or 1)))
        position = match.end()
    return tuple(ranges if charsets is None else dict.fromkeys(ranges))  # members may have ranges in common


def check_size(n_ranges: int, where: str, name: str) -> None:
    if n_ranges > _MAX_RANGES:
        found = f"{where}: charset {show_name(name)}: found more than {_MAX_RANGES} ranges"
        raise InputError(f"{found}, member charsets included, expected at most {_MAX_RANGES}")


def find_members(name: str, charsets: Charsets) -> PartSpec | None:
    """The columns of a charset, of ``all`` or ``remainder``; None if there is no such charset."""
    words = {"all": ALL_SITES, "remainder": (REMAINDER,)}
    return charsets.get(name) or (PartSpec(None, name, words[name.lower()]) if name.lower() in words else None)


# --- structures of RNA in dot-bracket notation ------------------------------------------------------------

_UNPAIRED = "."
_OPENING = {")": "(", "]": "[", "}": "{", ">": "<"}  # of each closing bracket


def read_structure(path: str) -> tuple[tuple[SitePair, ...], tuple[SiteRange, ...], int]:
    """The paired and the unpaired columns of the structure in a file, and the number of all its columns.

    It has a dot or one of ``( ) [ ] { } < >`` for each column; pairs of two kinds may cross. Blanks and line breaks do
    not count.
    """
    source = source_name(path)
    text = "".join(read_text(path).decode("utf-8", "replace").split())
    if not text:
        raise InputError(f"{source}: found an empty file, expected a structure in dot-bracket notation")
    pairs = []
    opened: dict[str, list[int]] = {bracket: [] for bracket in _OPENING.values()}
    for position, character in enumerate(text, start=1):
        if character in opened:
            opened[character].append(position)
        elif character in _OPENING:
            waiting = opened[_OPENING[character]]
            if not waiting:
                found = f"found {character!r} at position {position}"
                raise InputError(f"{source}: {found}, expected {_OPENING[character]!r} before it")
            pairs.append(SitePair(waiting.pop(), position))
        elif character != _UNPAIRED:
            found = f"found {show_name(character)} at position {position}"
            raise InputError(f"{source}: {found}, expected '.' or one of the brackets ( ) [ ] {{ }} < >")
    left = sorted((position, bracket) for bracket, positions in opened.items() for position in positions)
    if left:
        position, bracket = left[0]
        raise InputError(f"{source}: found {bracket!r} at position {position}, expected a closing bracket after it")
    unpaired = tuple(SiteRange(run.start() + 1, run.end()) for run in re.finditer(r"\.+", text))
    return tuple(sorted(pairs, key=lambda pair: pair.start)), unpaired, len(text)


# --- partitions -------------------------------------------------------------------------------------------

ModelReader = Callable[[str], ModelSpec]

_MODEL = re.compile(rf"(?P<model>{ITEM}),")
_SUFFIXES = {"F": "+F", "X": "+FO"}


def unwrap(text: str) -> list[tuple[int, str]]:
    """The lines, numbered, without blank ones and comments (``#``); an open brace, or + at an end, joins lines."""
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


def split_line(line: str) -> tuple[str, str, str] | None:
    """Model, name and sites of ``MODEL, NAME = SITES``; None for another line."""
    line = line.strip()
    match = _MODEL.match(line)
    if match is None:
        return None
    name, *sites = line[match.end() :].split("=")
    return (match["model"].strip(), name.strip(), sites[0]) if len(sites) == 1 else None


def read_lines(text: str, source: str, read_model: ModelReader) -> Scheme:
    """The parts in a partition file of RAxML or RAxML-NG, see `unwrap`; `read_model` reads model strings."""
    scheme: list[PartSpec] = []
    seen: dict[str, str] = {}
    for number, line in unwrap(text):
        where = f"{source}: line {number}"
        fields = split_line(line)
        if fields is None:
            raise InputError(f"{where}: found {show_name(line.strip())}, expected MODEL, NAME = SITES")
        text, name, sites = fields
        check_name(name, where)
        check_new(name, seen, where)
        model = read_part_model(text, f"{where}: partition {show_name(name)}", read_model)
        columns = read_columns(sites, where, name)
        scheme.append(replace(columns, model=check_data(model, columns, name)))
    if not scheme:
        raise InputError(f"{source}: found no line with a model, expected one for each partition")
    return tuple(scheme)


def read_part_model(text: str, where: str, read_model: ModelReader) -> ModelSpec:
    """A model string, or one of RAxML's words."""
    word = text.upper()
    text = text if find_multistate(word) else DATA_WORDS.get(word, ("", text))[1]  # BIN is a model, too
    matrix, suffix = word[:-1], _SUFFIXES.get(word[-1:])
    if word not in canonical_names() and matrix in canonical_names() and suffix:
        text = canonical_names()[matrix] + suffix
    with errors_at(where):
        return read_model(text)


def check_name(name: str, where: str) -> None:
    """Raise InputError unless a part's name can be written to a partition file."""
    if "=" in name or len(name.splitlines()) != 1:
        found = f"found {show_name(name)} as a partition's name"
        raise InputError(f"{where}: {found}, expected one without '=' and line breaks")


def check_new(name: str, seen: dict[str, str], where: str) -> None:
    """Remember where a part is named; InputError if the name is not new."""
    if name in seen:
        raise InputError(f"{where}: found part {show_name(name)} again, expected different names ({seen[name]})")
    seen[name] = where


def check_data(model: ModelSpec, sites: PartSpec, name: str) -> ModelSpec:
    """The model of columns, under their genetic code; InputError if they are said to be of another kind than it is."""
    expected = DATA_WORDS.get(sites.data_word, (model.data, ""))[0]
    model = model.for_data(expected)
    if model.data != expected:
        found = f"found a {model.data} model, {model.shown}, for {expected} data"
        raise InputError(f"{sites.where}: partition {show_name(name)}: {found}")
    return model


# --- charsets and partitions of NEXUS ---------------------------------------------------------------------

_MAX_LISTED = 10  # charsets in one message
_COUNT = re.compile(rf"{COLUMN}\s*+:")  # how many charsets a MrBayes partition has
_NAME = r"(?P<name>'[^']*+'|[^\s=*]++)"
_TREE_LENGTH = re.compile(r"(.*\S)\{([0-9.]+(?:e[-+]?[0-9]+)?)\}\s*", re.DOTALL)
_SET = re.compile(rf"\s*+(?:\*\s*+)?{_NAME}\s*+(?:\([^()]*+\)\s*+)?=(?P<text>.*)", re.DOTALL)


def read_sets(content: bytes, source: str, read_model: ModelReader) -> Scheme:
    """The parts in the sets, assumptions or MrBayes block of a NEXUS file; arguments as in `read_lines`."""
    words = ("charset", "charpartition", "partition", "set")
    commands = [command for command in split_commands(content, source) if command.word in words]
    charsets: dict[str, PartSpec] = {}
    total = 0
    for name, text, where in (_split_set(c, source) for c in commands if c.word == "charset"):
        check_name(name, where)
        if name in charsets:
            other = charsets[name].where
            raise InputError(f"{where}: found charset {show_name(name)} again, expected different names ({other})")
        known = charsets.get(text)  # a charset may be the name of an earlier one
        charsets[name] = replace(known, name=name, where=where) if known else read_columns(text, where, name, charsets)
        total += len(charsets[name].ranges)
        check_size(total, where, name)
    chosen = _choose(commands, source)
    if chosen is not None and chosen.word == "charpartition":
        return _read_charpartition(chosen, source, charsets, read_model)
    if chosen is not None:  # COUNT: CHARSET, CHARSET, ...
        _, text, where = _split_set(chosen, source)
        count = _COUNT.match(text)
        names = [name.strip().strip("'") for name in text[count.end() if count else 0 :].split(",")]
        if count and int(count[1]) != len(names):
            found = f"found {len(names)} charsets in a partition, expected {count[1]}, as it announces"
            raise InputError(f"{where}: {found}")
        parts = (replace(_find_charset(name, where, charsets), where=where) for name in names)
        return tuple(_with_default_model(part, read_model) for part in parts)
    if not charsets:
        raise InputError(f"{source}: found no charset, expected a partition")
    return tuple(_with_default_model(own, read_model) for own in charsets.values())


def _choose(commands: Sequence[Command], source: str) -> Command | None:
    """The partition or charpartition that is set, else the only charpartition, else the only partition, if any."""
    # by the last "set partition = NAME"
    options = [command.parse_options() for command in commands if command.word == "set"]
    wanted = next((found["partition"] for found in reversed(options) if "partition" in found), "")
    kinds = [[command for command in commands if command.word == word] for word in ("charpartition", "partition")]
    given = [*kinds[0], *kinds[1]] if wanted else kinds[0] or kinds[1]
    named = [c for c in given if _split_set(c, source)[0] == wanted] if wanted else given
    if len(named) == 1:
        return named[0]
    if not given:
        return None
    lines = ", ".join(str(command.line) for command in given)
    of_name = f", {len(named)} of them with the name {show_name(wanted)}" if wanted else ""
    found = f"found {count(len(given), 'partition command')} (lines {lines}){of_name}"
    raise InputError(f"{source}: {found}, expected one, or 'set partition = NAME;' with the name of one")


def _split_set(command: Command, source: str) -> tuple[str, str, str]:
    """The name, the text after the equals sign, and the place of both."""
    where = f"{source}: line {command.line}"
    match = _SET.fullmatch(decode_name(command.text))
    if match is None or not command.is_closed:
        found = f"found {command.word} without a name and a final semicolon"
        raise InputError(f"{where}: {found}, expected {command.word} NAME = ... ;")
    return match["name"].strip("'"), match["text"].strip(), where


def _find_charset(name: str, where: str, charsets: Charsets) -> PartSpec:
    found = find_members(name, charsets)
    if found is None:
        there = ", ".join(map(show_name, list(charsets)[:_MAX_LISTED])) or "none"
        more = f" and {len(charsets) - _MAX_LISTED} more" if len(charsets) > _MAX_LISTED else ""
        raise InputError(f"{where}: found charset {show_name(name)}, expected one of these: {there}{more}")
    return replace(found, where=found.where or where)


def _with_default_model(part: PartSpec, read_model: ModelReader) -> PartSpec:
    """A part under the default model of its data, which is left open unless the charset says what they are."""
    usual = DATA_WORDS[part.data_word][1] if part.data_word else ""
    if any(isinstance(some, SitePair) for some in part.ranges):
        usual = constants.DEFAULT_DOUBLET_MODEL
    return replace(part, model=read_model(usual) if usual else None)


def _read_charpartition(command: Command, source: str, charsets: Charsets, read_model: ModelReader) -> Scheme:
    """``MODEL: CHARSET [CHARSET ...], ...``: the name of a part joins the names of its charsets.

    What is no model is the part's name: that of a charset, a short number, or what stands before columns. A last
    charset may have the length of the part's tree in braces, as in IQ-TREE's .best_model.nex.
    """
    _, text, where = _split_set(command, source)
    scheme: list[PartSpec] = []
    seen: dict[str, str] = {}
    for item in re.findall(ITEM, text) or [""]:
        head, colon, sets = item.rpartition(":")
        sets, length = found.groups() if (found := _TREE_LENGTH.fullmatch(sets)) else (sets, None)
        names = [name.strip("'") for name in re.findall(r"'[^']*'|\S+", sets)]
        if not colon or not names or len(set(names)) < len(names):
            raise InputError(f"{where}: found {show_name(item.strip())}, expected MODEL: CHARSET, each charset once")
        label = head.strip().strip("'")
        is_label = label in charsets or re.fullmatch("[0-9]{1,5}", label) is not None
        is_label |= names[0] not in charsets and re.match(r"\s*[0-9]+\s*[-\\]", sets) is not None
        name = label if is_label else "_".join(names)
        check_new(name, seen, where)
        if is_label:
            known = charsets.get(sets.strip().strip("'"))
            columns = replace(known, name=name) if known else read_columns(sets, where, name, charsets)
            scheme.append(_with_default_model(columns, read_model))
            continue
        model = read_part_model(head.strip(), f"{where}: partition {show_name(name)}", read_model)
        members = [_find_charset(one, where, charsets) for one in names]
        for sites in members:
            model = check_data(model, sites, name)
        ranges = tuple(some for sites in members for some in sites.ranges)
        files = tuple(dict.fromkeys(file for sites in members for file in sites.files))
        n_sites = next((sites.n_sites for sites in members if sites.n_sites), None)
        tree_length = float(length) if length else None
        scheme.append(PartSpec(model, name, ranges, where, files, n_sites, tree_length=tree_length))
    return tuple(scheme)
