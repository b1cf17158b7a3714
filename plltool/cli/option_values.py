"""What the values of options may be, and what they mean."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from plltool.cli.job import BY_RANKS
from plltool.constants import BASES, CONSTANT_SITES, GENETIC_CODES
from plltool.errors import InputError, show_name
from plltool.processes.ranks import crew

PATH = click.Path(path_type=Path)


class WrittenPath(click.Path):
    """A file that the command writes. `plltool.cli.outputs` sees to it that nothing of the user's is lost."""


WRITTEN = WrittenPath(path_type=Path)
_NUMBER = r"([0-9]+(?:\.[0-9]*)?)"
_DURATION = re.compile(rf"{_NUMBER}|(?:{_NUMBER}h)?(?:{_NUMBER}m)?(?:{_NUMBER}s)?")
NUMBER = "0*[1-9][0-9]{0,8}"  # from 1


def parse_constant_sites(text: str) -> tuple[int, ...]:
    numbers = text.split(",")
    if len(numbers) != len(BASES) or not all(re.fullmatch(r"[0-9]{1,15}", number) for number in numbers):
        raise InputError(f"found {show_name(text)}, expected {CONSTANT_SITES}")
    return tuple(map(int, numbers))


def completes(*words: str, files: bool = True) -> dict[str, Any]:
    """Arguments of an option: a shell completes it with these words, and with files."""

    def complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        found = [CompletionItem(word) for word in words if word.startswith(incomplete)]
        return [*found, CompletionItem(incomplete, type="file")] if files else found

    return {"shell_complete": complete}


class Prefix(click.Path):
    """The start of the names of files, which is not the name of a folder."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and os.path.basename(value) in ("", os.curdir, os.pardir):
            self.fail(
                f"found {show_name(value)}, expected the start of file names, such as run or folder/run", param, ctx
            )
        return super().convert(value, param, ctx)


class Duration(click.ParamType):
    """A time in hours, minutes and seconds; its value is in seconds."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        match = _DURATION.fullmatch(value)
        seconds = 0.0
        if match is not None:
            numbers = [float(number or 0) for number in match.groups()]
            seconds = sum(number * unit for number, unit in zip(numbers, (1, 3600, 60, 1), strict=True))
        if not 0 < seconds < math.inf:
            self.fail(f"found {value!r}, expected a time above 0, such as 90s, 10m or 1h30m", param, ctx)
        return seconds


class DataType(click.ParamType):
    """A kind of data; codons have the number of their genetic code, unless it is the standard one."""

    name = "kind"
    plain = ("auto", "dna", "rna", "protein", "bin", "morph", "multi", "codon")
    words = (*plain, *(f"codon{number}" for number in GENETIC_CODES))
    other_words = ("nt", "nucleotide", "aa", "prot", "binary")  # of other programs, see `plltool.read_alignment`

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        word = str(value).lower()
        if word not in (*self.words, *self.other_words):
            expected = f"{', '.join(self.plain)}, or codon2 and the like (a genetic code by NCBI's number)"
            self.fail(f"found {show_name(str(value))}, expected one of: {expected}", param, ctx)
        return word


class NumberOr(click.ParamType):
    """A number from 1, or one of some words."""

    name = "number"

    def __init__(self, *words: str):
        self.words = words

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        if isinstance(value, int) or value in self.words:
            return value if isinstance(value, int) else str(value)
        if re.fullmatch(NUMBER, value):
            return int(value)
        self.fail(
            f"found {show_name(value)}, expected a whole number from 1 on, or {' or '.join(self.words)}", param, ctx
        )


class Threads(click.ParamType):
    """A number from 1, or "auto", which is no limit."""

    name = "N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | None:
        return None if value == "auto" else click.IntRange(min=1).convert(value, param, ctx)


class Workers(click.ParamType):
    """A number above 0, or "mpi": the ranks of an MPI job, whose number its launcher says."""

    name = "N|mpi"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | None:
        if value != BY_RANKS:
            return click.IntRange(min=1).convert(value, param, ctx)
        if crew() is None:
            self.fail(f"found {BY_RANKS!r}, expected an MPI job of several ranks, as mpiexec starts it", param, ctx)
        return None
