"""What `commands.txt` declares: the help and the options of commands, and the types of their values.

Nothing heavy is imported here, so that ``--help`` is instant.
"""

import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import groupby
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

import plltool
from plltool import constants
from plltool.errors import InputError, show_name
from plltool.processes.ranks import crew
from plltool.registry import ANALYSES, FRONT_ENDS, Table, split_words

OPTIONS, EXPERT = "Options", "Expert options"  # titles of the first and of the last section of the help
METAVARS = {click.IntRange: "N", click.FloatRange: "X", click.Path: "FILE"}  # of options that have none of their own
PREFIX_ENDING = ".plltool"  # of the prefix, behind the name of the file that the command reads
WORKERS, BY_RANKS = "--workers", "mpi"
PLAIN_KINDS = ("auto", "dna", "rna", "protein", "bin", "morph", "multi", "codon")  # of data
KINDS = (*PLAIN_KINDS, *(f"codon{number}" for number in constants.GENETIC_CODES))
OTHER_KINDS = ("nt", "nucleotide", "aa", "prot", "binary")  # words of other programs, see `plltool.read_alignment`
LEAST_TAXA = 4  # of a benchmark
_NUMBER = r"([0-9]+(?:\.[0-9]*)?)"
_DURATION = re.compile(rf"{_NUMBER}|(?:{_NUMBER}h)?(?:{_NUMBER}m)?(?:{_NUMBER}s)?")
_FROM_ONE = "0*[1-9][0-9]{0,8}"
_WORDS: dict[str, dict[str, Any]] = {
    **{"multiple": {"multiple": True}, "required": {"required": True}, "any_number": {"nargs": -1}},
    **{"shown": {"show_default": True}, "any_case": {}},
}
_BOUNDS = re.compile(r"([NX])(>=?)(\w+)(?:(<=?)(\w+))?")


# --- types of values ----------------------------------------------------------------------------------------


class WrittenPath(click.Path):
    """A file that the command writes. `plltool.cli.outputs` sees to it that nothing of the user's is lost."""


class Prefix(click.Path):
    """The start of the names of files, which is not the name of a folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and os.path.basename(value) in ("", os.curdir, os.pardir):
            found = f"found {show_name(value)}, expected the start of file names, such as run or folder/run"
            self.fail(found, param, ctx)
        return super().convert(value, param, ctx)


class Parsed(click.ParamType):
    """A value that a function makes from the text; its InputError need not repeat the name of the option."""

    def __init__(self, parse: Callable[[str], Any], name: str = "text", words: Sequence[str] = ()):
        self.parse, self.name, self.words = parse, name, words

    def shell_complete(self, _ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(word) for word in self.words if word.startswith(incomplete)]

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self.parse(value)
        except InputError as error:
            self.fail(str(error).removeprefix(f"{getattr(param, 'name', '')}: "), param, ctx)


def parse_duration(text: str) -> float:
    """Seconds of a time in hours, minutes and seconds."""
    match, seconds = _DURATION.fullmatch(text), 0.0
    if match is not None:
        numbers = [float(number or 0) for number in match.groups()]
        seconds = sum(number * unit for number, unit in zip(numbers, (1, 3600, 60, 1), strict=True))
    if not 0 < seconds < math.inf:
        raise InputError(f"found {text!r}, expected a time above 0, such as 90s, 10m or 1h30m")
    return seconds


def _parse_data_type(text: str) -> str:
    """A kind of data; codons have the number of their genetic code, unless it is the standard one."""
    if text.lower() not in (*KINDS, *OTHER_KINDS):
        expected = f"{', '.join(PLAIN_KINDS)}, or codon2 and the like (a genetic code by NCBI's number)"
        raise InputError(f"found {show_name(text)}, expected one of: {expected}")
    return text.lower()


def _parse_counts(text: str) -> tuple[int, ...]:
    numbers = text.split(",")
    if len(numbers) != len(constants.BASES) or not all(re.fullmatch(r"[0-9]{1,15}", number) for number in numbers):
        raise InputError(f"found {show_name(text)}, expected {constants.CONSTANT_SITES}")
    return tuple(map(int, numbers))


def _parse_shape(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d+)x(\d+)", text, re.ASCII)
    if found is None or int(found[1]) < LEAST_TAXA or int(found[2]) < 1:
        raise InputError(f"found {text!r}, expected TAXAxPATTERNS, {LEAST_TAXA}x1 at least")
    return int(found[1]), int(found[2])


def _parse_number_or(*words: str) -> Callable[[str], int | str]:
    def parse(text: str) -> int | str:
        if text not in words and not re.fullmatch(_FROM_ONE, text):
            raise InputError(f"found {show_name(text)}, expected a whole number from 1 on, or {' or '.join(words)}")
        return text if text in words else int(text)

    return parse


def _parse_temperature(text: str) -> float | str | None:
    return text if text == "auto" else click.FloatRange(0, 10)(text)


def _parse_threads(text: str) -> int | None:
    """A number from 1, or "auto", which is no limit."""
    return None if text == "auto" else click.IntRange(min=1)(text)


def _parse_workers(text: str) -> int | None:
    """A number from 1, or "mpi": the ranks of an MPI job, whose number its launcher says."""
    if text != BY_RANKS:
        return click.IntRange(min=1)(text)
    if crew() is None:
        raise InputError(f"found {BY_RANKS!r}, expected an MPI job of several ranks, as mpiexec starts it")
    return None


RESULTS = {name: own.results for name, own in ANALYSES.items() if own.results}
TYPES: dict[str, Any] = {
    "FILE": click.Path(path_type=Path),
    "WRITTEN": WrittenPath(path_type=Path),
    "WRITTEN_TEXT": WrittenPath(path_type=str),
    "PREFIX": Prefix(path_type=Path),
    "DATA_TYPE": Parsed(_parse_data_type, "kind", KINDS),
    "COUNTS": Parsed(_parse_counts),
    "SHAPE": Parsed(_parse_shape),
    "DURATION": Parsed(parse_duration),
    "AUTOMATIC": Parsed(_parse_number_or("auto", "autoMRE", "autoFC")),
    "AUTO_NUMBER": Parsed(_parse_number_or("auto")),
    "TEMPERATURE": Parsed(_parse_temperature),
    "THREADS": Parsed(_parse_threads),
    "WORKERS": Parsed(_parse_workers),
    "NUMBER": float,
    "TWO_NUMBERS": (float, float),
    "RESULTS": click.Choice(tuple(RESULTS)),
    "FRONT_ENDS": click.Choice(tuple(FRONT_ENDS)),
}


# --- options ------------------------------------------------------------------------------------------------


@dataclass
class Options:
    """The options of a command, their titles in its help, and those that are the fields of one value."""

    files: Table  # that it writes with --prefix
    source: str  # the value whose file names the prefix where none is given; if empty, nothing is written then
    summary: str  # a line of help
    examples: list[str]  # command lines
    help: str = ""
    params: list[click.Parameter] = field(default_factory=list)
    titles: dict[str, str] = field(default_factory=dict)  # by the names of parameters
    packed: dict[str, tuple[type[Any], list[str]]] = field(default_factory=dict)  # the class of a value, and its fields

    @property
    def remark(self) -> str:
        """What happens without --prefix."""
        if not self.source:
            return "Without --prefix no files are written."
        return f"Without --prefix, PREFIX is {self.source.upper()}{PREFIX_ENDING}."


class _Constants(dict[str, Any]):
    """Constants of plltool by their names, for texts; several words are joined."""

    def __missing__(self, name: str) -> Any:
        value = getattr(constants, name)
        return ", ".join(value) if isinstance(value, tuple) else value


@cache
def _read_blocks() -> dict[str, list[str]]:
    """The lines of the blocks of `commands.txt` by their first lines, each option on one line."""
    lines: list[str] = []
    for line in Path(__file__).with_name("commands.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("    "):
            lines[-1] += line[3:]
        elif not line.startswith("#"):
            lines.append(line)
    blocks = (list(own) for is_block, own in groupby(lines, bool) if is_block)
    return {first: own for first, *own in blocks}


@cache
def declared_modules() -> dict[str, tuple[str, str]]:
    """The module of each command, and the value that names its files."""
    heads = (first.split(" | ") for first in _read_blocks() if not first.startswith("+"))
    return {name: (module, *rest, "")[:2] for name, module, *rest in heads}  # type: ignore[misc]


def read_options(command: str) -> Options:
    """The options of a command, by `commands.txt`."""
    module, source = declared_modules()[command]
    declared = ANALYSES[command.split()[0]]
    made = Options(declared.files, source, declared.summary, list(declared.examples))
    _add_block(made, " | ".join(filter(None, (command, module, source))))
    return made


def _add_block(made: Options, first: str, title: str = "") -> None:
    for line in _read_blocks()[first]:
        if match := re.fullmatch(r"\[(.*)\]", line):
            title = match[1]
        elif line.startswith("> "):
            made.help += f"{line[2:]}\n\n"
        elif line.startswith("= "):
            made.summary = line[2:]
        elif line.startswith("$ "):
            made.examples.append(line[2:])
        elif line.startswith("+ "):
            _add_block(made, line, title)
        elif match := re.fullmatch(r"(\w+) = (\w+)", line):
            kind, names = made.packed[match[1]] = getattr(plltool, match[2]), []
        elif line.startswith(". "):
            option = _make_option(line[2:], kind)
            names.append(str(option.name))
            _add(made, option, title)
        else:
            _add(made, _make_option(line) if line.startswith("-") else _make_argument(line), title)


def _add(made: Options, param: click.Parameter, title: str) -> None:
    made.params.append(param)
    made.titles[str(param.name)] = title or OPTIONS


def _make_option(line: str, kind: type[Any] | None = None) -> click.Option:
    """An option; one for a field of a class has the field's default."""
    names, value, text = (part.strip() for part in re.split(r" \|(?= )", line, maxsplit=2))
    settings = _read_value(value)
    name = settings.pop("name", "")
    own = [name] if name else []
    if not settings:
        settings["is_flag"] = True
    if kind is not None:
        settings["default"] = getattr(kind, name or names.lstrip("-").replace("-", "_"))
        if parse := settings.pop("parse", ""):
            settings["type"] = Parsed(getattr(sys.modules[kind.__module__], parse))
    return click.Option([*names.split(), *own], help=text.format_map(_Constants()), **settings)


def _make_argument(line: str) -> click.Argument:
    shown, _, value = line.rpartition(" | ")
    settings = _read_value(value)
    if shown.startswith("["):
        settings["required"] = False
    return click.Argument([settings.pop("name", shown.lower().rstrip("."))], metavar=shown, **settings)


def _read_value(text: str) -> dict[str, Any]:
    """Settings of click from the words behind an option."""
    settings: dict[str, Any] = {}
    words = text.split()
    for word in words:
        key, equals, value = word.partition("=")
        if match := _BOUNDS.fullmatch(word):
            settings["type"] = _make_range(*match.groups())
        elif key == "default":
            settings[key] = _find_value(value)
        elif key == "kinds":
            known = getattr(constants, value)
            settings |= {"callback": partial(_parse_kinds, known), "metavar": "KIND[,KIND]", **_completes(known)}
            settings |= {"default": "", "show_default": "default=" in text}
        elif key == "completes":
            settings |= _completes([own for name in value.split(",") for own in getattr(constants, name, (name,))])
        elif equals:
            settings[key] = value.replace("_", " ") if key == "metavar" else value
        elif word in _WORDS:
            settings |= _WORDS[word]
        elif word in TYPES:
            settings["type"] = TYPES[word]
        else:
            known = word.split("|") if "|" in word else getattr(constants, word)
            settings["type"] = click.Choice(known, case_sensitive="any_case" not in words)
    return settings


def _find_value(text: str) -> Any:
    """A constant by its name, a number, a truth value or a text."""
    if re.fullmatch(r"-?[0-9.]+", text):
        return float(text) if "." in text else int(text)
    return {"True": True, "False": False, "None": None}.get(text, getattr(constants, text, text))


def _make_range(kind: str, above: str, low: str, below: str | None, high: str | None) -> click.ParamType:
    bounds = {"min": _find_value(low), "max": None if high is None else _find_value(high)}
    made = click.IntRange if kind == "N" else click.FloatRange
    return made(**bounds, min_open=above == ">", max_open=below == "<")


def _completes(words: Iterable[str]) -> dict[str, Any]:
    """Settings of an option: a shell completes it with these words, and for FILE with files."""
    known = [word for word in words if word != "FILE"]

    def complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        found = [CompletionItem(word) for word in known if word.startswith(incomplete)]
        return [*found, CompletionItem(incomplete, type="file")] if "FILE" in words else found

    return {"shell_complete": complete}


def _parse_kinds(known: Sequence[str], _ctx: click.Context, param: click.Parameter, value: str) -> tuple[str, ...]:
    """Kinds of supports among those `known`, in the order given, each once."""
    if not value and not param.default:
        return ()
    kinds = tuple(dict.fromkeys(split_words(value)))
    for kind in kinds or (value,):
        if kind not in known:
            where = "alrt" if kind in constants.MOVE_KINDS else "search"
            where = "support" if kind in constants.REPLICATE_KINDS else where
            hint = f"; `plltool {where}` knows it" if kind in constants.SUPPORT_KINDS else ""
            raise click.BadParameter(f"found {show_name(kind)}, expected some of: {', '.join(known)}{hint}")
    return kinds
