"""NEXUS alignments (Maddison, Swofford & Maddison 1997): the matrix of a data or characters block."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from plltool.alignment.alignment import show_name
from plltool.alignment.states import StateSpace
from plltool.errors import InputError
from plltool.io.alignment_formats import (
    AnnouncedSize,
    Line,
    Record,
    Row,
    decode_name,
    join_rows,
    number_lines,
    read_sequential,
    resolve_matches,
    split_name,
)

# what FORMAT may say for each state space
_DATATYPES = {"DNA": ("dna", "rna", "nucleotide"), "protein": ("protein", "aminoacid")}
_DEFAULT_DATATYPE = "standard"  # Maddison et al.: morphology
_UNREAD_FORMATS = ("nolabels", "transpose", "tokens", "equate")  # each changes what the matrix means
_SIGNATURE = b"#nexus"

# A quoted name starts where a word starts, and ends on its line: an apostrophe inside a word quotes nothing.
_MARK = re.compile(rb"(?<![^\s;,=()\[\]])'[^'\n]*(?:''[^'\n]*)*'|[\[;]")
_BRACKET = re.compile(rb"[\[\]]")
_OPTION = re.compile(r"""([^\s=]+)(?:\s*=\s*("[^"]*"|'[^']*'|\S+))?""")
_STATE_SET = re.compile(rb"[{}()]")


@dataclass(frozen=True)
class _Command:
    """A command without comments: its first word in lower case, the text after that, the line on which it starts."""

    word: str
    text: bytes
    line: int
    is_closed: bool

    def parse_options(self) -> dict[str, str]:
        """``key = value`` pairs and lone keys (value ""), keys in lower case, values without quotes."""
        found = _OPTION.findall(decode_name(self.text))
        return {key.lower(): value.strip("\"'") for key, value in found}


@dataclass(frozen=True)
class _Block:
    name: str
    line: int
    commands: dict[str, _Command] = field(default_factory=dict)

    def options(self, word: str) -> dict[str, str]:
        return self.commands[word].parse_options() if word in self.commands else {}


@dataclass(frozen=True)
class _Format:
    """What the FORMAT command says; ``match`` is empty where there is no match character."""

    match: bytes
    gap: bytes
    missing: bytes
    is_interleaved: bool


def starts_like_nexus(text: bytes) -> bool:
    return text.lstrip()[: len(_SIGNATURE)].lower() == _SIGNATURE


def read_nexus(text: bytes, source: str, states: StateSpace) -> list[Record]:
    """The records of the only data or characters block of a NEXUS file; see `starts_like_nexus`.

    Names are kept as written (an underscore stays one). Match, gap and missing characters are those the FORMAT
    command declares, the latter two given back as ``-`` and ``?``. The matrix may be interleaved or not, whatever
    FORMAT says, as long as one of the two gives the announced sizes.

    Raises
    ------
    InputError
        If there is no such block or more than one, its datatype does not fit `states`, its FORMAT has an option that
        changes the meaning of the matrix and is not read, a comment or the matrix is not closed, or the sizes differ
        from those announced.
    """
    body = text.lstrip()[len(_SIGNATURE) :]
    first_line = 1 + text[: len(text) - len(body)].count(b"\n")
    blocks = _group_blocks(_split_commands(body, first_line, source))
    block = _choose_block(blocks, source)
    declared = _parse_format(block, source, states)
    announced = _parse_dimensions(block, blocks, source)
    records = _read_matrix(block.commands["matrix"], declared, announced, source, states)
    if declared.match and records:
        records = resolve_matches(records, declared.match)
    symbols = bytes.maketrans(declared.gap + declared.missing, b"-" * len(declared.gap) + b"?" * len(declared.missing))
    return [replace(record, sequence=record.sequence.translate(symbols)) for record in records]


def _split_commands(text: bytes, first_line: int, source: str) -> Iterator[_Command]:
    """The commands of a file, each ended by ``;``; a comment becomes a blank and its line breaks."""
    parts: list[bytes] = []
    line, copied, position = first_line, 0, 0
    while (mark := _MARK.search(text, position)) is not None:
        position = mark.end()
        if mark[0] == b"[":
            position = _find_comment_end(text, mark.start(), first_line, source)
            line_breaks = b"\n" * text.count(b"\n", mark.start(), position)
            parts += [text[copied : mark.start()], b" ", line_breaks]
            copied = position
        elif mark[0] == b";":
            command = b"".join([*parts, text[copied : mark.start()]])
            yield _make_command(command, line, is_closed=True)
            line += command.count(b"\n")
            parts, copied = [], position
    yield _make_command(b"".join([*parts, text[copied:]]), line, is_closed=False)


def _find_comment_end(text: bytes, start: int, first_line: int, source: str) -> int:
    """The position after the bracket that closes the comment opened at `start`; comments may be nested."""
    depth = 0
    for bracket in _BRACKET.finditer(text, start):
        depth += 1 if bracket[0] == b"[" else -1
        if depth == 0:
            return bracket.end()
    line = first_line + text.count(b"\n", 0, start)
    raise InputError(f"{source}: line {line}: found a comment without end, expected ']'")


def _make_command(text: bytes, line: int, is_closed: bool) -> _Command:
    stripped = text.lstrip()
    line += text[: len(text) - len(stripped)].count(b"\n")
    word = stripped.split(None, 1)[0] if stripped else b""
    return _Command(decode_name(word).lower(), stripped[len(word) :], line, is_closed)


def _group_blocks(commands: Iterable[_Command]) -> list[_Block]:
    """The blocks of a file; where a block repeats a command, the last one counts."""
    blocks: list[_Block] = []
    is_open = False
    for command in commands:
        if command.word == "begin":
            blocks.append(_Block(decode_name(command.text.strip()).lower(), command.line))
            is_open = True
        elif command.word in ("end", "endblock"):
            is_open = False
        elif is_open:
            blocks[-1].commands[command.word] = command
    return blocks


def _choose_block(blocks: Sequence[_Block], source: str) -> _Block:
    """The only block with sequences; raises InputError unless there is exactly one, with a closed matrix."""
    chosen = [block for block in blocks if block.name in ("data", "characters")]
    if not chosen:
        names = ", ".join(show_name(block.name) for block in blocks[:5]) or "none"
        raise InputError(f"{source}: found no data or characters block, expected one (blocks found: {names})")
    if len(chosen) > 1:
        lines = ", ".join(str(block.line) for block in chosen[:5])
        raise InputError(f"{source}: found {len(chosen)} data or characters blocks (lines {lines}), expected one")
    block = chosen[0]
    matrix = block.commands.get("matrix")
    if matrix is None:
        raise InputError(f"{source}: line {block.line}: found a {block.name} block without matrix, expected one")
    if not matrix.is_closed:
        raise InputError(f"{source}: line {matrix.line}: found a matrix without end, expected ';'")
    return block


def _parse_format(block: _Block, source: str, states: StateSpace) -> _Format:
    options = block.options("format")
    where = f"{source}: line {block.commands['format'].line if 'format' in block.commands else block.line}"
    datatype = options.get("datatype", _DEFAULT_DATATYPE)
    allowed = _DATATYPES.get(states.name, (states.name.lower(),))
    if datatype.lower() not in allowed:
        unsaid = "" if "datatype" in options else " (what NEXUS means where nothing is said)"
        raise InputError(
            f"{where}: found datatype {show_name(datatype)}{unsaid}, expected one of {', '.join(allowed)}: "
            "no other is read so far"
        )
    for option in _UNREAD_FORMATS:
        if option in options:
            raise InputError(f"{where}: found the format option {option!r}, which is not read, expected none")
    if options.get("labels", "left").lower() not in ("", "left", "yes"):
        raise InputError(f"{where}: found labels={options['labels']}, expected the names on the left")
    return _Format(
        match=_parse_symbol(options, "matchchar", where),
        gap=_parse_symbol(options, "gap", where),
        missing=_parse_symbol(options, "missing", where),
        is_interleaved=options.get("interleave", "no").lower() != "no",
    )


def _parse_symbol(options: Mapping[str, str], key: str, where: str) -> bytes:
    """The character that a format option declares, empty if it is not there."""
    value = options.get(key)
    if value is None:
        return b""
    if len(value) != 1 or not value.isascii():
        raise InputError(f"{where}: found {key}={show_name(value)}, expected one ASCII character")
    return value.encode("ascii")


def _parse_dimensions(block: _Block, blocks: Sequence[_Block], source: str) -> AnnouncedSize:
    """The announced sizes; the number of taxa may also stand in the taxa block, or nowhere."""
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
    return AnnouncedSize(n_taxa, int(sizes["nchar"]), "the dimensions command")


def _read_matrix(
    matrix: _Command, declared: _Format, announced: AnnouncedSize, source: str, states: StateSpace
) -> list[Record]:
    """The rows of a matrix, each of the announced length; raises InputError otherwise."""
    lines = number_lines(matrix.text, matrix.line)
    readings = [read_sequential(lines, announced.n_sites), _read_named_rows(lines)]
    if declared.is_interleaved:
        readings.reverse()
    records = announced.choose_reading(readings, states)
    if records is not None:
        return records
    for number, line in lines:
        if _STATE_SET.search(split_name(line)[1]):
            raise InputError(
                f"{source}: line {number}: found states in brackets, expected one letter for them, such as R for {{AG}}"
            )
    raise InputError(f"{source}: {announced.explain_mismatch(readings)}")


def _read_named_rows(lines: Iterable[Line]) -> list[Record]:
    """Rows that start with their name, as in interleaved blocks; rows of one name are joined."""
    rows: dict[str, Row] = {}
    for number, line in lines:
        name, sequence = split_name(line)
        rows.setdefault(name, (name, number, []))[2].append(sequence)
    return join_rows(rows.values())
