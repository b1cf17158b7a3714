"""What a running command tells: log lines and progress on stderr, the same in the log file, and as JSON on request.

On a terminal progress is one line that is overwritten, with a bar; otherwise, and in the log, one line per round, and
one every HEARTBEAT_SECONDS where a round takes longer.
"""

from __future__ import annotations

import logging
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Self, TextIO

import click

from plltool.cli.command import given_command
from plltool.cli.heartbeat import JSON_TO_STDERR, JsonLines, Pulse, about, describe_versions, open_log
from plltool.constants import HEARTBEAT_SECONDS, PERTURB, REDRAW_SECONDS, VERSION

if TYPE_CHECKING:
    from plltool.tree_search.progress import Progress

BAR_WIDTH = 20
CLEAR_LINE = "\r\x1b[K"

_log = logging.getLogger("plltool")


class Reporter(logging.Handler):
    """Takes log records and progress events while it is entered as a context; speaks up itself when both are long away.

    A thread does that. It reads what it has been told and the clock, and nothing of the search.

    Parameters
    ----------
    quiet : only warnings on stderr; the log file gets everything
    log_path : file to write as well, or None
    append : whether the file's present content stays
    json_path : file that gets one JSON object a line for everything; "-" is stderr, which then has nothing else
    """

    def __init__(
        self, quiet: bool, log_path: Path | None = None, json_path: str | None = None, append: bool = False
    ):
        super().__init__()
        self._quiet = quiet or json_path == JSON_TO_STDERR
        self._warns = json_path != JSON_TO_STDERR
        self._log_path = log_path
        self._append = append
        self._file: TextIO | None = None  # open to the end, for it is locked, see `open_log`
        self._log_ended = False
        self._json = JsonLines(json_path)
        self._is_terminal = sys.stderr.isatty()
        self._interrupted = False
        self._pulse = Pulse()
        self._over = threading.Event()
        self._heart = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def __enter__(self) -> Self:
        if self._log_path is not None:
            self._file = open_log(self._log_path, self._append)
        self._json.open()
        self._old_level = _log.level
        _log.setLevel(logging.DEBUG)  # see `plltool.tree_search.progress.announce`
        _log.addHandler(self)
        versions = describe_versions()
        for line in (f"plltool {VERSION}", versions, f"command: {given_command()}"):
            self.write_log(line)
        self._json.write("begin", plltool=VERSION, versions=versions, command=given_command())
        self._heart.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self._over.set()
        self._heart.join()
        if self._is_terminal and not self._quiet:
            self._write_stderr(CLEAR_LINE)
        problem = None if kind is None else f"{kind.__name__}: {error}"
        if problem:
            self.write_log(f"stopped: {problem}")
        self._json.write("end", problem=problem)
        _log.removeHandler(self)
        _log.setLevel(self._old_level)
        self._json.close()
        if self._file is not None:
            with suppress(OSError):  # of a log that ended before, what could not be written is tried once more
                self._file.close()

    def emit(self, record: logging.LogRecord) -> None:
        """A log record, as a line of its own; what is being done is only remembered."""
        activity = getattr(record, "activity", None)
        if activity is not None:
            self._pulse.begin(activity)
        if record.levelno < logging.INFO:
            return
        self._pulse.spoke()
        is_warning = record.levelno >= logging.WARNING
        message = " ".join(record.getMessage().split())
        self._json.write("log", level=record.levelname.lower(), message=message)
        line = ("warning: " if is_warning else "") + message
        self.write_log(line)
        if (is_warning and self._warns) or not self._quiet:
            self._write_stderr((CLEAR_LINE if self._is_terminal else "") + f"plltool: {line}\n")

    def progress(self, event: Progress) -> None:
        """A round of a search; raises StopSearch after an interrupt, see `interrupts_wait`."""
        line = describe_progress(event)
        with self._lock:
            self._pulse.heard(event, draw_bar(event))
            self.write_log(line)
            self._json.write_progress(event)
            if not self._quiet and self._is_terminal:
                self._draw(draw_bar(event) + line)
            elif not self._quiet:
                self._write_stderr(line + "\n")
        if self._interrupted:
            from plltool.tree_search.progress import StopSearch

            raise StopSearch

    @property
    def interrupted(self) -> bool:
        """Whether there was a SIGINT, see `interrupts_wait`."""
        return self._interrupted

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
        if self._file is None or self._log_ended:
            return
        try:
            self._file.write(line + "\n")
            self._file.flush()
        except OSError as error:
            self._log_ended = True
            _log.warning("%s: the log ends here: %s", self._log_path, error.strerror)

    def _beat(self) -> None:
        """What the thread does until the command is over."""
        tick = min(REDRAW_SECONDS, HEARTBEAT_SECONDS)
        while not self._over.wait(tick):
            with self._lock:
                if self._is_terminal and not self._quiet and self._pulse.silence >= tick:
                    self._draw(self._pulse.bar + self._pulse.describe())
                if self._pulse.silence < HEARTBEAT_SECONDS:
                    continue
                line = self._pulse.describe()
                self.write_log(line)
                self._json.write("heartbeat", **self._pulse.facts())
                if not self._quiet and not self._is_terminal:
                    self._write_stderr(line + "\n")
                self._pulse.spoke()

    @property
    def _lock(self) -> threading.RLock:
        assert self.lock is not None, "every handler of the logging module has one"
        return self.lock

    def _draw(self, line: str) -> None:
        """The one line of a terminal, with the time in front of it."""
        columns = shutil.get_terminal_size().columns
        self._write_stderr(CLEAR_LINE + line[: columns - 1])

    def _write_stderr(self, text: str) -> None:
        with suppress(OSError):  # nobody reads it any more; the run goes on
            click.echo(text, err=True, nl=False)


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
