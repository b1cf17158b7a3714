"""NEXUS (Maddison, Swofford & Maddison 1997): commands, and the matrix of a data or characters block."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, AnyStr

from plltool.alignment.alignment import DeclaredKind, Sequences
from plltool.alignment.spaces import COUNTED, SPACES, detect_states
from plltool.alignment.states import DNA, MAX_STATES, MULTISTATE, PROTEIN, SYMBOLS, StateSpace
from plltool.errors import InputError, show_name
from plltool.io import alignment_formats as formats
from plltool.io.alignment_formats import Record, decode_name

_SIGNATURE = b"#nexus"

# A quoted name starts where a word starts, and ends on its line: an apostrophe inside a word quotes nothing.
_MARK = re.compile(rb"(?<![^\s;,=()\[\]])'[^'\n]*(?:''[^'\n]*)*'|[\[;]")
_REMARKS = re.compile(rb"\A(?:\s*+#[^\n]*+)++")  # lines before the first block that some programs write
_TREE = re.compile(rb"\s*+u?tree\b", re.IGNORECASE)  # a command whose comments may be annotations of nodes
_BRACKET = re.compile(rb"[\[\]]")
_OPTION = re.compile(r"""([^\s=]+)(?:\s*=\s*("[^"]*"|'[^']*'|\S+))?""")


@dataclass(frozen=True)
class Command:
    """A command without comments: its first word in lower case, the text after that, the line on which it starts."""

    word: str
    text: bytes
    line: int
    is_closed: bool

    def parse_options(self) -> dict[str, str]:
        """``key = value`` pairs and lone keys (value ""), keys in lower case, values without quotes."""
        found = _OPTION.findall(decode_name(self.text))
        return {key.lower(): value.strip("\"'") for key, value in found}


def starts_like_nexus(text: bytes) -> bool:
    return text.lstrip()[: len(_SIGNATURE)].lower() == _SIGNATURE


def split_commands(content: bytes, source: str) -> Iterator[Command]:
    """The commands of a NEXUS file, each ended by ``;``; a comment becomes a blank and its line breaks.

    Lines with ``#`` before the first one are left out; comments with ``&`` in trees are annotations and stay.
    """
    text = content.lstrip()[len(_SIGNATURE) :]
    text = _REMARKS.sub(b"", text, count=1)
    first_line = 1 + content[: len(content) - len(text)].count(b"\n")
    parts: list[bytes] = []
    line, copied, position, is_tree = first_line, 0, 0, False
    while (mark := _MARK.search(text, position)) is not None:
        position = mark.end()
        if mark[0] == b"[":
            position = bracket_end(_BRACKET.finditer(text, mark.start()), b"[")
            if position < 0:
                line = first_line + text.count(b"\n", 0, mark.start())
                raise InputError(f"{source}: line {line}: found a comment without end, expected ']'")
            is_tree = is_tree or _TREE.match(text, copied) is not None
            if is_tree and text.startswith(b"[&", mark.start()):
                continue
            line_breaks = b"\n" * text.count(b"\n", mark.start(), position)
            parts += [text[copied : mark.start()], b" ", line_breaks]
            copied = position
        elif mark[0] == b";":
            command = b"".join([*parts, text[copied : mark.start()]])
            yield _make_command(command, line, is_closed=True)
            line += command.count(b"\n")
            parts, copied, is_tree = [], position, False
    yield _make_command(b"".join([*parts, text[copied:]]), line, is_closed=False)


def bracket_end(brackets: Iterator[re.Match[AnyStr]], opening: AnyStr) -> int:
    """The position after the bracket that closes the first of some, which may be nested; -1 without one."""
    depth = 0
    for bracket in brackets:
        depth += 1 if bracket[0] == opening else -1
        if depth == 0:
            return bracket.end()
    return -1


def _make_command(text: bytes, line: int, is_closed: bool) -> Command:
    stripped = text.lstrip()
    line += text[: len(text) - len(stripped)].count(b"\n")
    word = stripped.split(None, 1)[0] if stripped else b""
    return Command(decode_name(word).lower(), stripped[len(word) :], line, is_closed)


# --- symbols of standard data -----------------------------------------------------------------------------

_RANGE = re.compile(r"([0-9A-Za-z])~([0-9A-Za-z])")
_UNKNOWN = b"-?"


class StateSets:
    """Bytes above ASCII that stand for sets of states, such as {01}; `members` has the characters of each by byte."""

    def __init__(self, text: bytes, source: str):
        self._source = source
        self._free = sorted(set(range(128, 256)).difference(text))
        self._bytes: dict[bytes, int] = {}

    @property
    def members(self) -> dict[int, bytes]:
        return {byte: members for members, byte in self._bytes.items()}

    def character_for(self, members: bytes, symbols: str) -> bytes:
        """The byte of a set; empty for an empty set, or one with a member that is not among declared `symbols`."""
        if symbols:
            table = _renumbering(symbols)
            if any(byte not in table for byte in members):
                return b""
            members = bytes(table[byte] for byte in members)
        members = bytes(sorted(set(members.upper())))
        if members and members not in self._bytes:
            if len(self._bytes) == len(self._free):
                found = "found too many different sets of states"
                raise InputError(f"{self._source}: {found}, expected at most {len(self._free)}")
            self._bytes[members] = self._free[len(self._bytes)]
        return bytes([self._bytes[members]]) if members else b""


def _renumbering(symbols: str) -> dict[int, int]:
    """What stands in plltool's sequences for each byte that is a declared symbol, in both cases, or unknown."""
    table = {byte: byte for byte in _UNKNOWN}
    for place, symbol in enumerate(symbols):
        table |= dict.fromkeys((ord(symbol), ord(symbol.lower())), ord(SYMBOLS[place]))
    return table


def renumber(records: Sequence[Record], symbols: str, sets: Mapping[int, bytes], source: str) -> list[Record]:
    """The records with each declared symbol replaced by the symbol at the same place in SYMBOLS."""
    table = _renumbering(symbols) | {byte: byte for byte in sets}
    translation = bytes(table.get(byte, byte) for byte in range(256))
    for record in records:
        site = next((site for site, byte in enumerate(record.sequence) if byte not in table), None)
        if site is not None:
            found = f"taxon {show_name(record.name)} (line {record.line}), site {site + 1}: "
            found += f"found {chr(record.sequence[site])!r}"
            raise InputError(f"{source}: {found}, expected one of the symbols that FORMAT declares, {symbols}")
    return [replace(record, sequence=record.sequence.translate(translation)) for record in records]


# --- the matrix -------------------------------------------------------------------------------------------

# The state space of each
_DATATYPES = dict.fromkeys(("dna", "rna", "nucleotide"), DNA) | dict.fromkeys(("protein", "aminoacid"), PROTEIN)
_DATATYPES |= {"standard": COUNTED, "restriction": SPACES["bin"]}
_EXAMPLES = {"DNA": "such as {AG} for R", "protein": "such as {DN} for B"}  # of sets of states
_DEFAULT_DATATYPE = "standard"  # Maddison et al.: morphology
_LABEL = re.compile(rb"'(?:[^']|'')*'|\S+")
_CELL = re.compile(rb"\{[^{}]*\}|\([^()]*\)|\S")  # of a matrix: a character, or a set of states
_EQUATE = re.compile(r"([!-~])=(\{[!-z]+\}|\([!-z]+?\)|[!-~])")
_STATE_BRACKET = re.compile(rb"[{}()]")
_STATE_SET = re.compile(rb"\{[^{}()]*\}|\([^{}()]*\)")
_MIXED = re.compile(r"\bdatatype\s*=\s*mixed\s*\(([^)]*+)(\))?", re.IGNORECASE)  # MrBayes: kinds of data by columns
_KIND = re.compile(r"\s*([A-Za-z]+)\s*:\s*([0-9]{1,9})(?:\s*-\s*([0-9]{1,9}))?\s*")


@dataclass(frozen=True)
class _Block:
    name: str
    line: int
    commands: dict[str, Command] = field(default_factory=dict)

    def options(self, word: str) -> dict[str, str]:
        return self.commands[word].parse_options() if word in self.commands else {}

    def text(self, word: str) -> bytes:
        return self.commands[word].text if word in self.commands else b""


@dataclass(frozen=True)
class _Format:
    """The FORMAT command; ``match`` and ``symbols`` are empty, and ``states`` None, if it does not declare them."""

    match: bytes
    has_labels: bool  # whether each row of the matrix begins with the name of its taxon, or of its character
    is_transposed: bool  # whether the rows are characters
    plain: bytes  # a table for `bytes.translate` that turns the gap and missing characters into ``-`` and ``?``
    is_interleaved: bool
    states: StateSpace | None
    symbols: str
    equate: dict[bytes, bytes]  # what stands for a character, such as {AG} for R; upper and lower case differ


def read_nexus(text: bytes, source: str, states: StateSpace | None = None, **more: Any) -> Sequences:
    """The only data or characters block of a NEXUS file; see `starts_like_nexus`. `more` are other attributes.

    Names are kept as written (an underscore stays one). Match, gap and missing characters and macros (equate) are those
    that FORMAT declares; gap and missing become ``-`` and ``?``. The matrix may be interleaved, with names in each
    block or in the first one alone, or not, whatever FORMAT says, as long as one of the layouts gives the announced
    sizes. Without `states`, FORMAT says what the data are, or the characters show it. The symbols of standard data that
    FORMAT declares become 0, 1, 2 and so on in their order. Rows without labels, or of characters (transpose), get the
    names that TAXLABELS has.

    A set of states in brackets, such as {AG} or (AG), becomes the letter that stands for it, such as R. In standard
    and mixed data it becomes one of `sets`, whether it is polymorphic or uncertain.
    """
    block, blocks = _find_blocks(split_commands(text, source), source)
    letters = states and states.letters
    declared = _parse_format(block, source, letters)
    announced = _parse_dimensions(block, blocks, source)
    kinds = _parse_kinds(block, announced, source) if declared.states is None else ()
    sets = StateSets(text, source)
    matrix = block.commands["matrix"]
    if declared.is_transposed or not declared.has_labels:
        matrix = _label_rows(matrix, declared, blocks, announced, source)
    records = _read_matrix(matrix, declared, announced, source, sets)
    if declared.match and records:
        records = formats.resolve_matches(records, declared.match)
    records = [replace(record, sequence=record.sequence.translate(declared.plain)) for record in records]
    warnings: tuple[str, ...] = ()
    if declared.symbols:
        records = renumber(records, declared.symbols, sets.members, source)
        if not declared.symbols.startswith(SYMBOLS[: len(declared.symbols)]):
            last = SYMBOLS[len(declared.symbols) - 1]
            warnings = (f"{source}: the symbols {declared.symbols} are read and written as 0 to {last}, in this order",)
    found = declared.states
    if found is None and not kinds:
        found = detect_states(record.sequence for record in records)
    facts = {"told": declared.states is not None, "sets": sets.members, "kinds": kinds, "warnings": warnings}
    return formats.to_sequences(records, source, found if states is letters else states, **facts, **more)


def _find_blocks(commands: Iterable[Command], source: str) -> tuple[_Block, list[_Block]]:
    """The only block with sequences, and all blocks of a file; InputError unless it is one, with a closed matrix."""
    blocks, is_open = list[_Block](), False
    for command in commands:
        if command.word == "begin":
            blocks.append(_Block(formats.decode_name(command.text.strip()).lower(), command.line))
            is_open = True
        elif command.word in ("end", "endblock"):
            is_open = False
        elif is_open:
            blocks[-1].commands[command.word] = command
    chosen = [block for block in blocks if block.name in ("data", "characters")]
    if not chosen:
        names = ", ".join(show_name(block.name) for block in blocks[:5]) or "none"
        raise InputError(f"{source}: found no data or characters block, expected one (blocks found: {names})")
    if len(chosen) > 1:
        lines = ", ".join(str(block.line) for block in chosen[:5])
        raise InputError(f"{source}: found {len(chosen)} data or characters blocks (lines {lines}), expected one")
    (block,) = chosen
    matrix = block.commands.get("matrix")
    if matrix is None:
        raise InputError(f"{source}: line {block.line}: found a {block.name} block without matrix, expected one")
    if not matrix.is_closed:
        raise InputError(f"{source}: line {matrix.line}: found a matrix without end, expected ';'")
    return block, blocks


def _parse_format(block: _Block, source: str, states: StateSpace | None) -> _Format:
    """The FORMAT command, for data of `states`, if given; the states of a mixed or unknown data type are None."""
    options = block.options("format")
    where = f"{source}: line {block.commands['format'].line if 'format' in block.commands else block.line}"
    datatype = options.get("datatype", _DEFAULT_DATATYPE)
    is_said = ("datatype" in options or "symbols" in options) and not datatype.lower().startswith("mixed(")
    if states is not None or is_said:
        declared = _DATATYPES.get(datatype.lower())
        if declared is None or (states is not None and declared.name != states.name):
            unsaid = "" if "datatype" in options else " (the default of NEXUS)"
            allowed = [word for word, space in _DATATYPES.items() if states is None or space.name == states.name]
            found = f"found datatype {show_name(datatype)}{unsaid}"
            raise InputError(f"{where}: {found}, expected one of: {', '.join(allowed)}")
        states = states or declared
    said = {option: options.get(option, "no").lower() != "no" for option in ("tokens", "transpose", "nolabels")}
    if said["tokens"]:
        raise InputError(f"{where}: the format option 'tokens' is not supported, expected a character for each state")
    if options.get("labels", "left").lower() not in ("", "left", "yes", "no"):  # SplitsTree writes labels=no
        raise InputError(f"{where}: found labels={options['labels']}, expected the names on the left")
    for key in ("matchchar", "gap", "missing"):
        value = options.setdefault(key, "")
        if key in block.options("format") and (len(value) != 1 or not value.isascii()):
            raise InputError(f"{where}: found {key}={show_name(value)}, expected one ASCII character")
    is_standard = states is not None and states.name == MULTISTATE  # DNA and proteins have known symbols
    symbols = ""
    if is_standard and "symbols" in options:  # such as "0 1 2" or "0~2"
        text = "".join(options["symbols"].split())
        symbols = _RANGE.sub(lambda ends: "".join(map(chr, range(ord(ends[1]), ord(ends[2]) + 1))), text).upper()
        if not 2 <= len(symbols) <= MAX_STATES or not symbols.isascii() or len(set(symbols)) < len(symbols):
            expected = f"2 to {MAX_STATES} different ASCII characters, upper and lower case being the same"
            raise InputError(f"{where}: found symbols={show_name(options['symbols'])}, expected {expected}")
    macros = "".join(options.get("equate", "").split())
    if _EQUATE.sub("", macros):
        raise InputError(f"{where}: found equate={show_name(options['equate'])}, expected macros such as R={{AG}} x=?")
    is_interleaved = options.get("interleave", "no").lower() != "no"
    match, gap, missing = (options[key].encode("ascii") for key in ("matchchar", "gap", "missing"))
    plain = bytes.maketrans(gap + missing, b"-" * len(gap) + b"?" * len(missing))
    equate = {macro.encode(): value.encode() for macro, value in _EQUATE.findall(macros)}
    has_labels = not said["nolabels"] and options.get("labels", "").lower() != "no"
    return _Format(match, has_labels, said["transpose"], plain, is_interleaved, states, symbols, equate)


def _parse_kinds(block: _Block, announced: formats.AnnouncedSize, source: str) -> tuple[DeclaredKind, ...]:
    """The kinds of data of ``datatype=mixed(Standard:1-166,DNA:167-3246)`` (MrBayes); none without it."""
    if "format" not in block.commands:
        return ()
    command = block.commands["format"]
    mixed = _MIXED.search(formats.decode_name(command.text))
    if mixed is None:
        return ()
    if mixed[2] is None:
        raise InputError(f"{source}: line {command.line}: datatype=mixed( has no ')'")
    kinds = []
    for item in mixed[1].split(","):
        match = _KIND.fullmatch(item)
        states = _DATATYPES.get(match[1].lower()) if match else None
        first, last = (int(match[2]), int(match[3] or match[2])) if match else (0, 0)
        if match is None or states is None or not 1 <= first <= last <= announced.n_sites:
            found = f"{source}: line {command.line}: found {show_name(item.strip())} in a mixed datatype"
            expected = f"one of {', '.join(_DATATYPES)} and columns of 1-{announced.n_sites}, such as DNA:1-100"
            raise InputError(f"{found}, expected {expected}")
        kinds.append(DeclaredKind(match[1], states, first, last))
    return tuple(kinds)


def _parse_dimensions(block: _Block, blocks: Sequence[_Block], source: str) -> formats.AnnouncedSize:
    """The announced sizes; the number of taxa may be in the taxa block or missing."""
    sizes: dict[str, str] = {}
    for other in blocks:
        if other.name == "taxa":
            sizes |= other.options("dimensions")
    sizes |= block.options("dimensions")
    for key in ("ntax", "nchar"):
        value = sizes.get(key)
        if value is not None and not re.fullmatch("[0-9]{1,18}", value):
            raise InputError(f"{source}: line {block.line}: found {key}={show_name(value)}, expected a number")
    if "nchar" not in sizes:
        raise InputError(f"{source}: line {block.line}: found no nchar in the dimensions, expected the number of sites")
    n_taxa = int(sizes["ntax"]) if "ntax" in sizes else None
    return formats.AnnouncedSize(n_taxa, int(sizes["nchar"]), "the dimensions command")


def _label_rows(
    matrix: Command, declared: _Format, blocks: Sequence[_Block], announced: formats.AnnouncedSize, source: str
) -> Command:
    """The matrix as lines that begin with the names of taxa, from one that is transposed or has no labels."""
    labels = [label for block in blocks for label in _LABEL.findall(block.text("taxlabels"))]
    lines = [line for _, line in formats.number_lines(matrix.text)]
    rows = [_CELL.findall(formats.split_name(line)[1] if declared.has_labels else line) for line in lines]
    cells, n, n_sites = list(chain(*rows)), len(labels), announced.n_sites
    if not cells or len(cells) != n * n_sites:
        found = (
            f"found {len(cells)} characters in a matrix {'of characters' if declared.has_labels else 'without labels'}"
        )
        raise InputError(f"{source}: line {matrix.line}: {found}, expected {n_sites} for each of {n} TAXLABELS")
    if declared.is_transposed:
        own = [cells[taxon::n] for taxon in range(n)]
    elif declared.is_interleaved:
        own = [list(chain(*rows[taxon::n])) for taxon in range(n)]
    else:
        own = [cells[taxon * n_sites : (taxon + 1) * n_sites] for taxon in range(n)]
    text = b"".join(b"\n%b %b" % (label, b"".join(row)) for label, row in zip(labels, own, strict=True))
    return replace(matrix, text=text)


def _read_matrix(
    matrix: Command, declared: _Format, announced: formats.AnnouncedSize, source: str, sets: StateSets
) -> list[Record]:
    """The rows of a matrix, each of the announced length; raises InputError otherwise."""

    def replace_set(found: re.Match[bytes]) -> bytes:
        """One character for a set of states in brackets; a set that none stands for stays as it is."""
        members = found[0][1:-1].translate(declared.plain, b",")
        if declared.states is not None and declared.states.name != MULTISTATE:
            return declared.states.letter_for(members) or found[0]
        return sets.character_for(members, declared.symbols) or found[0]

    def clean(text: bytes) -> bytes:
        text = formats.remove_blanks(text)
        text = re.sub(rb".", lambda found: declared.equate.get(found[0], found[0]), text) if declared.equate else text
        return _STATE_SET.sub(replace_set, text)

    def split(line: bytes) -> tuple[str, bytes]:
        name, sequence = formats.split_name(line)
        return name, clean(sequence)

    lines = formats.number_lines(matrix.text, matrix.line)
    rows: dict[str, formats.Row] = {}  # that start with their name, as in interleaved blocks
    for number, line in lines:
        name, sequence = split(line)
        rows.setdefault(name, (name, number, []))[2].append(sequence)
    sequential = formats.read_sequential(lines, announced.n_sites, split, clean)
    readings = [sequential, formats.join_rows(rows.values())]
    if declared.is_interleaved:
        readings.reverse()
    readings.append(formats.read_interleaved(lines, announced.n_taxa, split, clean))
    records = announced.choose_reading(readings, (declared.states or COUNTED).with_sets(sets.members))
    if records is None or any(_STATE_BRACKET.search(record.sequence) for record in records):
        for number, sequence in [(number, split(line)[1]) for number, line in lines]:
            bracket = _STATE_BRACKET.search(sequence)
            if bracket is not None:
                shown = _STATE_SET.match(sequence, bracket.start())
                found = formats.decode_name(shown[0] if shown else sequence[bracket.start() :])
                expected, kind = "a set of states such as {01}", declared.states.name if declared.states else ""
                if kind in _EXAMPLES:
                    expected = f"a set of states that a letter of {kind} stands for, {_EXAMPLES[kind]}"
                raise InputError(f"{source}: line {number}: found {show_name(found)}, expected {expected}")
    if records is None:
        raise InputError(f"{source}: {announced.explain_mismatch(readings[:2])}")
    return records
