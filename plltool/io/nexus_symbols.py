"""The symbols of standard data in NEXUS files: those that FORMAT declares, and sets of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from plltool.alignment.multistate import MAX_STATES, SYMBOLS
from plltool.errors import InputError, show_name
from plltool.io.alignment_formats import Record

_RANGE = re.compile(r"([0-9A-Za-z])~([0-9A-Za-z])")
_UNKNOWN = b"-?"


class StateSets:
    """Bytes that stand for sets of states, such as {01}: bytes above ASCII that the file does not use.

    Attributes
    ----------
    members : the characters of each set, in order, by its byte
    """

    def __init__(self, text: bytes, source: str):
        used = set(text)
        self._source = source
        self._free = [byte for byte in range(255, 127, -1) if byte not in used]
        self._most = len(self._free)
        self._bytes: dict[bytes, int] = {}
        self.members: Mapping[int, bytes] = {}

    def character_for(self, members: bytes, symbols: str) -> bytes:
        """The byte of a set; empty for an empty set, or one with a member that is not among declared `symbols`.

        Raises InputError if there are too many different sets.
        """
        if symbols:
            table = _renumbering(symbols)
            if any(byte not in table for byte in members):
                return b""
            members = bytes(table[byte] for byte in members)
        members = bytes(sorted(set(members.upper())))
        if members and members not in self._bytes:
            if not self._free:
                found = "found too many different sets of states"
                raise InputError(f"{self._source}: {found}, expected at most {self._most}")
            self._bytes[members] = self._free.pop()
            self.members = {byte: some for some, byte in self._bytes.items()}
        return bytes([self._bytes[members]]) if members else b""


def parse_symbols(text: str, where: str) -> str:
    """The symbols of ``symbols="0 1 2"`` or ``"0~2"``, in upper case.

    Raises InputError unless they are 2 to 64 different ASCII characters; upper and lower case are the same.
    """
    symbols = _RANGE.sub(_expand, "".join(text.split())).upper()
    if not 2 <= len(symbols) <= MAX_STATES or not symbols.isascii() or len(set(symbols)) < len(symbols):
        expected = f"2 to {MAX_STATES} different ASCII characters, upper and lower case being the same"
        raise InputError(f"{where}: found symbols={show_name(text)}, expected {expected}")
    return symbols


def _expand(match: re.Match[str]) -> str:
    """The symbols from the first to the last one of a range."""
    return "".join(map(chr, range(ord(match[1]), ord(match[2]) + 1)))


def _renumbering(symbols: str) -> dict[int, int]:
    """What stands in plltool's sequences for each byte that is a declared symbol, in both cases, or unknown."""
    table = {byte: byte for byte in _UNKNOWN}
    for place, symbol in enumerate(symbols):
        table |= dict.fromkeys((ord(symbol), ord(symbol.lower())), ord(SYMBOLS[place]))
    return table


def renumber(records: Sequence[Record], symbols: str, sets: Mapping[int, bytes], source: str) -> list[Record]:
    """The records with each declared symbol replaced by that of the same place in SYMBOLS.

    Raises InputError for a character that is not declared.
    """
    table = _renumbering(symbols) | {byte: byte for byte in sets}
    translation = bytes(table.get(byte, byte) for byte in range(256))
    for record in records:
        site = next((site for site, byte in enumerate(record.sequence) if byte not in table), None)
        if site is not None:
            found = f"taxon {show_name(record.name)} (line {record.line}), site {site + 1}: "
            found += f"found {chr(record.sequence[site])!r}"
            raise InputError(f"{source}: {found}, expected one of the symbols that FORMAT declares, {symbols}")
    return [replace(record, sequence=record.sequence.translate(translation)) for record in records]
