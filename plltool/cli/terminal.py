"""What terminals get and pipes do not: colours, bold headings, and lines that break between words.

Colour goes to terminals other than TERM=dumb. NO_COLOR (no-color.org) takes it away. FORCE_COLOR or CLICOLOR_FORCE asks
for it everywhere, CLICOLOR=0 nowhere (bixense.com/clicolors). Of several, the first in this order counts. JSON, trees,
drawings and log files never have any.
"""

import atexit
import gc
import io
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TextIO

import click

from plltool.errors import PlltoolError

NO_COLUMNS = 80  # of a terminal that does not say how wide it is
INDENT = "  "  # of the rows after the first one of a line that is folded
GAP = "  "  # between two columns of a table
OBJECTS_PER_COLLECTION = 100_000  # made since the last collection of garbage; one takes some 10 ms
LABEL_WIDTH = 50  # characters that a label has at most; what is longer is a sentence with a colon
KEY_LABELS = ("lnL", "best by ")  # what the labels of the most important results begin with

WARNING, ERROR, INTERNAL_ERROR = "warning", "error", "internal error"
KINDS: dict[str, dict[str, Any]] = {
    WARNING: {"fg": "yellow", "bold": True},
    ERROR: {"fg": "red", "bold": True},
    INTERNAL_ERROR: {"fg": "red", "bold": True},
}
NUMBERS = {"integer": "a whole number", "float": "a number"}  # what click calls them, and what people do
_NOT_A_NUMBER = re.compile(r"('[^']*') is not a valid (integer|float)(?: range)?\.")
HEADING: dict[str, Any] = {"bold": True}
KEY_NUMBER: dict[str, Any] = {"fg": "green", "bold": True}


def has_colour(stream: TextIO) -> bool:
    """Whether colours go to `stream`."""
    environment = os.environ
    if environment.get("NO_COLOR"):
        return False
    if any(environment.get(name, "") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return environment.get("CLICOLOR") != "0" and can_redraw(stream)


def can_redraw(stream: TextIO) -> bool:
    """Whether `stream` is a terminal on which the cursor can go back."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def count_columns(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or NO_COLUMNS
    except (AttributeError, OSError, ValueError):
        return NO_COLUMNS


def paint(text: str, style: dict[str, Any], stream: TextIO) -> str:
    """`text` in a style, such as HEADING, if colours go to `stream`."""
    return click.style(text, **style) if text and style and has_colour(stream) else text


def fold(line: str, stream: TextIO) -> str:
    """A line of prose in rows of whole words for a terminal; the same line for any other stream."""
    if not stream.isatty():
        return line
    columns, rows, used = count_columns(stream), [""], 0
    for word in line.split(" "):
        width = len(click.unstyle(word))
        if used and used + 1 + width > columns >= len(INDENT) + width:
            rows.append(INDENT + word)
            used = len(INDENT) + width
        else:  # a word too long for a row begins in this one, and the terminal breaks it
            rows[-1] += f" {word}" if rows[-1] else word
            used += bool(used) + width
            used = (used - 1) % columns + 1 if used else 0
    return "\n".join(rows)


def format_message(message: str, kind: str = "") -> str:
    """A message as a line for stderr; the `kind` is one of KINDS, or none."""
    text = " ".join(message.split())
    if kind:
        text = f"{paint(f'{kind}:', KINDS[kind], sys.stderr)} {text}"
    return fold(f"plltool: {text}", sys.stderr)


def echo_message(message: str, kind: str = "") -> None:
    echo_stderr(format_message(message, kind) + "\n")


def echo_stderr(text: str) -> None:
    """Print `text` on stderr as it is."""
    click.echo(text, err=True, nl=False, color=has_colour(sys.stderr) or None)


def print_line(text: str) -> None:
    """A line on stdout as it is, its names byte for byte whatever the locale."""
    with stdout_errors_are_told():
        click.echo(text.encode("utf-8", "surrogateescape"))


@contextmanager
def stdout_errors_are_told() -> Iterator[None]:
    """Name stdout in an OSError, such as for a full disk; the error of a pipe without a reader stays."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        drop_stdout()
        raise PlltoolError(f"cannot write to standard output: {error.strerror}") from error


def drop_stdout() -> None:
    """Let nothing more reach stdout, so that what it has not taken is no error at the end of the process."""
    with suppress(OSError, ValueError):  # not a file of the system
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def settle_process() -> None:
    """Make this process one of the command line, before it imports numpy.

    The null device is opened for each standard stream that is closed, so that no other file gets its number. Little
    garbage has cycles, so it is rarely looked for, and not at the end. Threads of OpenBLAS would only wait.
    """
    gc.set_threshold(OBJECTS_PER_COLLECTION)
    atexit.register(gc.freeze)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))


def print_results(lines: Sequence[str], record: str | None = None) -> None:
    """Lines about what was found, on stdout: "label: value", rows of tables, and sentences; or else a JSON record."""
    if record is not None:
        print_line(record)
        return
    for line in lines:
        print_line(format_result(line))


def format_result(line: str) -> str:
    """One line of results. What may be copied from it, such as a model, a tree or a path, is not folded."""
    is_row = GAP in line
    label, colon, value = line.partition(": ")
    if is_row and not colon and not any(map(str.isdigit, line)):
        return paint(line, HEADING, sys.stdout)
    shown = line
    if colon and len(label) <= LABEL_WIDTH:
        style = KEY_NUMBER if label.startswith(KEY_LABELS) else {}
        shown = f"{paint(label + ':', HEADING, sys.stdout)} {paint(value, style, sys.stdout)}"
    columns = count_columns(sys.stdout)
    is_copied = "/" in value or value.startswith("(") or any(len(word) > columns - len(INDENT) for word in line.split())
    return shown if is_row or is_copied else fold(shown, sys.stdout)


class Formatter(click.HelpFormatter):
    """The help of a command, with bold headings on a terminal."""

    def write_heading(self, heading: str) -> None:
        self.write(f"{'':>{self.current_indent}}{paint(f'{heading}:', HEADING, sys.stdout)}\n")

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        super().write_usage(prog, args, paint(prefix or "Usage:", HEADING, sys.stdout) + " ")


class Context(click.Context):
    """A context of a command whose help `Formatter` writes."""

    formatter_class = Formatter


class UsageProblem(click.UsageError):
    """A wrong command line; shown as click does, with colour where it belongs."""

    def show(self, _file: Any = None) -> None:
        """Print how the command is used, and what is wrong."""
        text = io.StringIO()
        super().show(text)
        usage, _, message = text.getvalue().rstrip("\n").partition("Error: ")
        word = paint("Error:", KINDS[ERROR], sys.stderr)
        echo_stderr(f"{usage}{fold(f'{word} {message}', sys.stderr)}\n")


@contextmanager
def usage_errors_in_colour() -> Iterator[None]:
    """Turn a usage error into a `UsageProblem`; the help that click shows in place of an error stays."""
    try:
        yield
    except click.UsageError as error:
        if type(error).show is not click.UsageError.show:
            raise
        message = error.format_message()
        shown = _NOT_A_NUMBER.sub(lambda found: f"found {found[1]}, expected {NUMBERS[found[2]]}.", message)
        raise UsageProblem(shown, error.ctx) from error
