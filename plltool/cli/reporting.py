"""What a running command tells: log lines and progress on stderr, the same in the log file.

On a terminal progress is one line that is overwritten, with a bar; otherwise, and in the log, one line per round.
"""

from __future__ import annotations

import logging
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Literal, Self, TextIO

import click

from plltool import __version__
from plltool.constants import PERTURB
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
    append : whether the file's present content stays
    """

    def __init__(self, quiet: bool, log_path: Path | None = None, append: bool = False):
        super().__init__()
        self._quiet = quiet
        self._log_path = log_path
        self._mode: Literal["a", "w"] = "a" if append else "w"
        self._file: TextIO | None = None
        self._is_terminal = sys.stderr.isatty()
        self._interrupted = False

    def __enter__(self) -> Self:
        if self._log_path is not None:
            try:
                self._file = open(self._log_path, self._mode, encoding="utf-8", errors="surrogateescape")
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
        """A round of a search; raises StopSearch after an interrupt, see `interrupts_wait`."""
        line = describe_progress(event)
        self.write_log(line)
        if not self._quiet and self._is_terminal:
            columns = shutil.get_terminal_size().columns
            self._write_stderr(CLEAR_LINE + (draw_bar(event) + line)[: columns - 1])
        elif not self._quiet:
            self._write_stderr(line + "\n")
        if self._interrupted:
            from plltool.search.progress import StopSearch

            raise StopSearch

    @contextmanager
    def interrupts_wait(self) -> Iterator[None]:
        """Within, the first SIGINT lets the next progress event end the search; the second one interrupts as usual."""

        def stop_soon(_number: int, _frame: FrameType | None) -> None:
            self._interrupted = True
            signal.signal(signal.SIGINT, before)
            _log.warning("interrupted: the best tree is written after this round; a second Ctrl-C gives up at once")

        before = signal.signal(signal.SIGINT, stop_soon)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def write_log(self, line: str) -> None:
        """A line for the log file only; a disk that is full ends the log, not the run."""
        file = self._file
        if file is None:
            return
        try:
            file.write(line + "\n")
            file.flush()
        except OSError as error:
            self._file = None
            with suppress(OSError):  # what could not be written is tried once more
                file.close()
            _log.warning("%s: the log ends here: %s", self._log_path, error.strerror)

    def _write_stderr(self, text: str) -> None:
        with suppress(OSError):  # nobody reads it any more; the run goes on
            click.echo(text, err=True, nl=False)


@contextmanager
def tells_of_checkpoint(folder: Path) -> Iterator[None]:
    """Whatever ends a run within, but wrong input, leaves a line that says how to go on."""
    from plltool.io.checkpoint import has_states

    try:
        yield
    except InputError:
        raise
    except BaseException:
        if has_states(folder):
            _log.warning("what was reached is saved in %s; the same command goes on from there", folder)
        raise


def name_stage(event: Progress) -> str:
    """The stage and, where it tells anything, its radius."""
    return f"{event.stage} radius {event.radius}" if event.radius > 1 else event.stage


def draw_bar(event: Progress) -> str:
    """How much of the search is over, as a bar; nothing where nobody knows."""
    if event.left is None:
        return ""
    full = int(BAR_WIDTH * event.seconds / max(event.seconds + event.left, 1e-9))
    return f"[{'#' * full}{'-' * (BAR_WIDTH - full)}] "


def describe_progress(event: Progress) -> str:
    """One round as a line: time, stage, round, lnL, moves where there may be some, what is left."""
    round_ = f"{event.round}/{event.n_rounds}" if event.n_rounds > 1 else f"{event.round}"
    moves = f"  {event.moves} moves" if event.radius or event.stage == PERTURB else ""
    left = "" if event.stage_left is None or event.left is None else f"  left: stage {about(event.stage_left)}, all "
    left += about(event.left) if left and event.left is not None else ""
    tree = f"tree {event.start:<3} " if event.start else ""
    return f"{event.seconds:9.1f} s  {tree}{name_stage(event):<15} round {round_:<3} lnL {event.lnl:.6f}{moves}{left}"


def about(seconds: float) -> str:
    """A duration that is only guessed, to two digits at most."""
    if seconds < 99.5:
        return f"~{seconds:.0f} s" if seconds >= 9.95 else f"~{seconds:.1f} s"
    return f"~{seconds / 60:.0f} min" if seconds < 99.5 * 60 else f"~{seconds / 3600:.0f} h"
