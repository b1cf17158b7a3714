"""The command line of another program, read by a table of its options, and the files that its tasks write.

A row of the table is ``NAMES | VALUE | FIELD | WHAT``. VALUE is empty for a flag, N for a whole number, COUNT for one
from 1 on or auto, X for a number, LIST for whole numbers with commas, FILE for something that exists, words such as
``on/off``, several of them for ``fbp,tbe``, or TEXT. A ? behind it says that it may be missing; 4X are four numbers.
FIELD is what the option sets, or ``FIELD=TEXT`` if the option itself says the value; it is empty if the option changes
nothing here, and ``!`` if plltool cannot do what it asks for; WHAT is then the reason. A row
``: TASK | ENDINGS`` has the ends of the names of the files that a task may write.
"""

import os
import re
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

from plltool import InputError
from plltool.constants import STDIN

REFUSED = "!"
HELP = ("-h", "-?", "--help", "-help")
# fields that every task uses, or that none has to
COMMON = "task prefix redo quiet seed threads most_threads workers version help run_name no_files"
_PATTERNS = {
    "N": (r"\d{1,19}", "a whole number from 0 on"),
    "X": (r"\d*\.?\d+(e[-+]?\d+)?", "a number from 0 on"),
    "COUNT": (r"auto.*|AUTO|0*[1-9]\d{0,8}", "a number from 1 on, or auto"),
    "LIST": (r"\d{1,15}(,\d{1,15})*", "whole numbers with commas between them"),
}
_ANY = (".*", "the name of a file or folder that exists")


class UsageError(InputError):
    """A command line that the front end does not take."""


class Option(NamedTuple):
    """A row of the table of a program's options."""

    names: tuple[str, ...]
    takes: str
    field: str
    value: str  # of its field, if the option has none of its own
    what: str
    kind: str  # `takes` without how many

    def take(self, name: str, words: list[str]) -> str:
        """The value behind the option, which was written as `name`, off the words that follow."""
        fits = rf"(?!-)(?:{_PATTERNS.get(self.kind, _ANY)[0]})"
        if not self.takes or (self.takes.endswith("?") and not (words and re.fullmatch(fits, words[0]))):
            return self.value or "yes"
        count = int(self.takes[0]) if self.takes[0].isdigit() else 1
        if len(words) < count:
            raise UsageError(f"{name}: found nothing behind it, expected {self.what}")
        return "/".join(self.check(name, words.pop(0)) for _ in range(count))

    def check(self, name: str, value: str) -> str:
        """The value behind the option, which was written as `name`, in the table's spelling."""
        pattern, expected = _PATTERNS.get(self.kind, _ANY)
        is_wrong = not re.fullmatch(pattern, value, re.DOTALL)
        if self.kind == "FILE":
            is_wrong = value != STDIN and not os.path.exists(value)
        elif re.search("[/,]", self.kind):
            own = re.split("[/,]", self.kind)
            words = {word.lower(): word for word in own if len(word) > 1} | {word: word for word in own}
            given = value.split(",") if "," in self.takes else [value]
            found = [words.get(word, words.get(word.lower() if len(word) > 1 else "")) for word in given]
            is_wrong, expected = None in found, f"among {', '.join(own)}"
            value = value if is_wrong else ",".join(filter(None, found))
        if is_wrong:
            raise UsageError(f"{name}: found {value!r}, expected {expected}")
        return value


def read_table(program: str) -> tuple[list[Option], dict[str, list[str]]]:
    """The options of a program, and the words of its other rows, such as the endings of the files of each task."""
    options, words = list[Option](), dict[str, list[str]]()
    for line in Path(__file__).with_name(f"{program}.txt").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.split("|", 3)]
        if line.startswith(":"):
            words |= dict.fromkeys(cells[0].split()[1:], cells[1].split())
        elif line and not line.startswith("#"):
            names, kind = tuple(cells[0].split()), cells[1].strip("?0123456789")
            options.append(Option(names, cells[1], *cells[2].partition("=")[::2], cells[3], kind))
    return options, words


class Given:
    """The options that were given, by their fields. Reading a field notes that the task uses it.

    With `one_dash` -name is --name, and the beginning of a long name is enough if only one begins so. `bare` is the
    field that a word without an option fills.
    """

    def __init__(self, program: str, arguments: Sequence[str], one_dash: bool = False, bare: str = ""):
        self.program, self.arguments = program, tuple(arguments)
        self.table, self.files = read_table(program)
        self._one_dash, self._bare, self.without_effect = one_dash, bare, list[Option]()
        self._known = {name: option for option in self.table for name in option.names}
        self._values, self._used = dict[str, str](), set(COMMON.split())
        self._named = dict[str, str]()  # how the option of a field was written
        words = list(arguments)
        while words:
            self._read(words)

    def _read(self, words: list[str]) -> None:
        word = words.pop(0)
        if word in HELP and word not in self._known:
            self._values["help"] = word
        elif not word.startswith("-") or word == STDIN:
            if not self._bare:
                raise UsageError(f"found {word!r}, expected an option")
            self._set(self._bare, word, word)
        else:
            name, equals, value = word.partition("=")
            option = self._find(name)
            if option.field == REFUSED:
                raise UsageError(f"{name}: the front end cannot do this: {option.what}")
            if equals and not option.takes:
                raise UsageError(f"{name}: found a value, {value!r}, expected none")
            own = option.check(name, value) if equals else option.take(name, words)
            self._set(option.field, own, name) if option.field else self.without_effect.append(option)

    def _find(self, name: str) -> Option:
        if name not in self._known and self._one_dash:
            close = {own for own in self._known if own.startswith(f"--{name.lstrip('-')}")}
            whole = close & {f"--{name.lstrip('-')}"} or close
            name = min(whole) if len({self._known[own] for own in whole}) == 1 else name
        if name in self._known:
            return self._known[name]
        hint = "".join(f"; did you mean {similar}?" for similar in get_close_matches(name, self._known, 1))
        raise UsageError(f"{name}: the front end does not know this option{hint} (--help lists all)")

    def _set(self, field: str, value: str, name: str) -> None:
        if self._values.get(field, value) != value and self._named[field] != name:  # of the same, the last one counts
            raise UsageError(f"{name}: found also {self._named[field]}, expected only one of them")
        self._values[field], self._named[field] = value, name

    def has(self, *fields: str) -> bool:
        """Whether an option of one of the fields was given."""
        self._used.update(fields)
        return any(field in self._values for field in fields)

    def text(self, field: str, default: str = "") -> str:
        self._used.add(field)
        return self._values.get(field, default)

    def number(self, field: str, default: int = 0) -> int:
        """The value of a field whose options take N or COUNT; the default also if it is to be found."""
        word = self.text(field)
        return int(word) if word.isdecimal() else default

    def first(self, *fields: str) -> str:
        """The value of the first of the fields that was given, one of which the task cannot do without."""
        if not self.has(*fields):
            option = next(option for option in self.table if option.field in fields and option.field != "prefix")
            raise UsageError(f"found no {option.names[0]}, expected {option.what}")
        return next(self._values[field] for field in fields if field in self._values)

    def refuse_rest(self) -> None:
        """Raise UsageError for an option that the task has not read."""
        for field, name in self._named.items():
            if field not in self._used:
                raise UsageError(f"{name}: the front end does not use this option together with the others")

    def answers(self, banner: str, usage: str) -> bool:
        """Whether only the version or help is asked for, which is then printed."""
        if self.arguments and not self.has("version", "help"):
            return False
        lines = [banner, "", f"Usage: {self.program} {usage}", ""]
        for option in self.table:
            note = {"": "(changes nothing) ", REFUSED: "(refused) "}.get(option.field, "")
            lines.append(f"  {' '.join((', '.join(option.names), option.takes)).strip():32}  {note}{option.what}")
        print(banner if self.has("version") else "\n".join(lines))
        return True
