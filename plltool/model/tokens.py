"""The parts of a model string: a name and its modifiers, each with values in braces."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from plltool.errors import InputError, show_name

Checked = TypeVar("Checked")

# word, braces, plus sign or end; possessive quantifiers, so that long blanks do not cause backtracking
_PATTERN = re.compile(r"\s*+([^+{}\s]++)\s*+((?:\{[^{}]*+\})*+)\s*+(\+|\Z)")


@dataclass(frozen=True)
class Token:
    """One part of a model string, ``word{values}``, and the position of its first character or plus sign."""

    source: str
    start: int
    word: str
    values: str | None

    def error(self, problem: object) -> InputError:
        sign = "" if self.start == 0 else "+"
        values = "" if self.values is None else f"{{{self.values}}}"
        where = f"{show_name(sign + self.word + values)} at character {self.start + 1}"
        return InputError(f"model {show_name(self.source)}: {where}: {problem}")

    def numbers(self) -> tuple[float, ...]:
        """The values in braces, separated by slashes or by commas."""
        return self._numbers(self.values or "")

    def groups(self) -> list[tuple[float, ...]]:
        """The values of each pair of braces."""
        return [self._numbers(group) for group in (self.values or "").split("}{")]

    def lists(self) -> list[list[tuple[float, ...]]]:
        """The values of each pair of braces, with a row for each class of sites, which bars separate."""
        return [[self._numbers(row) for row in group.split("|")] for group in (self.values or "").split("}{")]

    def checked(self, check: Callable[..., Checked], *arguments: Any) -> Checked:
        """The result of ``check(*arguments)``; an InputError is raised again with this part of the string."""
        try:
            return check(*arguments)
        except InputError as problem:
            raise self.error(problem) from None

    def one_number(self, name: str) -> float:
        values = self.numbers()
        if len(values) != 1:
            raise self.error(f"expected one value, {name}; found {len(values)}")
        return values[0]

    def _numbers(self, text: str) -> tuple[float, ...]:
        fields = text.split("," if "," in text else "/")
        numbers = []
        for field in fields:
            try:
                numbers.append(float(field))
            except ValueError:
                raise self.error(f"expected a number, found {show_name(field.strip())}") from None
        return tuple(numbers)


def tokenise(source: str) -> list[Token]:
    """Cut a model string at its plus signs, except those inside braces."""
    tokens = []
    position = 0
    while True:
        match = _PATTERN.match(source, position)
        if match is None:
            found = show_name(source[position:]) if position < len(source) else "nothing"
            raise InputError(
                f"model {show_name(source)}: cannot read {found} at character {position + 1};"
                " expected NAME[{rates}][+F...][+G...], such as GTR+FO+G4"
            )
        tokens.append(Token(source, max(position - 1, 0), match[1], match[2][1:-1] if match[2] else None))
        if not match[3]:
            return tokens
        position = match.end()
