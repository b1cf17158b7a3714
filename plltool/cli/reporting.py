"""What a running command tells: log lines and progress on stderr, the same in the log file.

On a terminal progress is one line that is overwritten, with a bar; otherwise, and in the log, one line per round.
"""

from __future__ import annotations

import logging
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

import click

from plltool import __version__
from plltool.errors import InputError

if TYPE_CHECKING:
    from plltool.hardware import Hardware
    from plltool.search.progress import Progress

BAR_WIDTH = 20
CLEAR_LINE = "\r\x1b[K"
COMMAND_KEY = "plltool.command"  # in click's meta: the command line as it was given

_log = logging.getLogger("plltool")


def given_command() -> str:
    """The command line of the running command."""
    return str(click.get_current_context().meta[COMMAND_KEY])


def prepare_devices(*choices: Hardware) -> None:
    """Set up this process's environment for OpenCL before it loads, and say what was done."""
    from plltool.engine.opencl.environment import prepare_environment

    if all(choice.device == "numpy" for choice in choices):
        return
    threads = {choice.threads for choice in choices}
    for line in prepare_environment(threads.pop() if len(threads) == 1 else None):
        _log.info(line)


class Reporter(logging.Handler):
    """Takes log records and progress events while it is entered as a context.

    Parameters
    ----------
    quiet : only warnings on stderr; the log file gets everything
    log_path : file to write as well, or None
    n_stages : stages that the bar counts; 0 for no bar
    """

    def __init__(self, quiet: bool, log_path: Path | None = None, n_stages: int = 0):
        super().__init__()
        self._quiet = quiet
        self._log_path = log_path
        self._file: TextIO | None = None
        self._is_terminal = sys.stderr.isatty()
        self._n_stages = n_stages
        self._stages_begun = 0
        self._stage: tuple[str, int] | None = None

    def __enter__(self) -> Self:
        if self._log_path is not None:
            try:
                self._file = open(self._log_path, "w", encoding="utf-8", errors="surrogateescape")
            except OSError as error:
                raise InputError(f"{self._log_path}: cannot write the file: {error.strerror}") from error
        self._old_level = _log.level
        _log.setLevel(logging.INFO)
        _log.addHandler(self)
        self.write_log(f"plltool {__version__}")
        self.write_log(f"command: {given_command()}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        if self._is_terminal and not self._quiet:
            self._write_stderr(CLEAR_LINE)
        if kind is not None:
            self.write_log(f"stopped: {kind.__name__}: {error}")
        _log.removeHandler(self)
        _log.setLevel(self._old_level)
        if self._file is not None:
            self._file.close()

    def emit(self, record: logging.LogRecord) -> None:
        """A log record, as a line of its own."""
        is_warning = record.levelno >= logging.WARNING
        line = ("warning: " if is_warning else "") + " ".join(record.getMessage().split())
        self.write_log(line)
        if is_warning or not self._quiet:
            self._write_stderr((CLEAR_LINE if self._is_terminal else "") + f"plltool: {line}\n")

    def progress(self, event: Progress) -> None:
        """A round of a search."""
        if event.stage == "start" or (event.stage, event.radius) != self._stage:
            self._stage = event.stage, event.radius
            self._stages_begun += 1
        line = describe_progress(event)
        self.write_log(line)
        if self._quiet:
            return
        if self._is_terminal:
            columns = shutil.get_terminal_size().columns
            self._write_stderr(CLEAR_LINE + (self._bar() + line)[: columns - 1])
        else:
            self._write_stderr(line + "\n")

    def write_log(self, line: str) -> None:
        """A line for the log file only."""
        if self._file is not None:
            self._file.write(line + "\n")
            self._file.flush()

    def _bar(self) -> str:
        if not self._n_stages:
            return ""
        full = min(BAR_WIDTH, BAR_WIDTH * self._stages_begun // self._n_stages)
        return f"[{'#' * full}{'-' * (BAR_WIDTH - full)}] "

    def _write_stderr(self, text: str) -> None:
        with suppress(OSError):  # nobody reads it any more; the run goes on
            click.echo(text, err=True, nl=False)


def name_stage(event: Progress) -> str:
    """The stage and, where it tells anything, its radius."""
    return f"{event.stage} radius {event.radius}" if event.radius > 1 else event.stage


def describe_progress(event: Progress) -> str:
    """One round as a line: time, stage, round, lnL, moves where there may be some."""
    moves = f"  {event.moves} moves" if event.radius else ""
    return f"{event.seconds:9.1f} s  {name_stage(event):<15} round {event.round:<3} lnL {event.lnl:.6f}{moves}"
