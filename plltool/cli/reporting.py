"""What a running command reports: log lines and progress on stderr, the same in the log file, and as JSON on request.

On a terminal, progress is one line that is overwritten, see `draw_progress`. Elsewhere, and in the log, it is a line
for each round, and one every HEARTBEAT_SECONDS where a round takes longer.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import Self, TextIO

import click

import plltool
from plltool.cli import heartbeat, job, terminal
from plltool.cli.outputs import COMMAND_LINE, FINISHED
from plltool.cli.terminal import WARNING
from plltool.constants import REPLICATE_STAGE, SAMPLE_STAGE, VERSION
from plltool.errors import PlltoolError
from plltool.processes.ranks import current

HEARTBEAT_SECONDS = 30.0  # of silence after which a running command reports that it is alive
LINE_SECONDS = 10.0  # between two lines on the generations of a sampler
REDRAW_SECONDS = 1.0  # between two updates of the progress bar on a terminal
CLEAR = "\r\x1b[J"  # to the start of the line, and clear all behind it
UP = "\x1b[{}A"
TOLD_SECONDS = 2.0  # from which on a log tells the time left
INTERRUPTED = "interrupted: the results so far are written after the present step; a second Ctrl-C gives up at once"

_log = logging.getLogger("plltool")


class Reporter(logging.Handler):
    """Reports log records and progress events while it is entered as a context.

    Where none comes for long, a thread reports that the command is alive. With `quiet` only warnings go to stderr; the
    log file gets everything. `json_path` gets one JSON object a line for everything; "-" is stderr, which then has
    nothing else.
    """

    def __init__(self, quiet: bool, log_path: Path | None = None, json_path: str | None = None, append: bool = False):
        super().__init__()
        self._quiet = quiet or json_path == heartbeat.JSON_TO_STDERR
        self._warns = json_path != heartbeat.JSON_TO_STDERR
        self._log_path = log_path
        self._append = append
        self._file: TextIO | None = None  # open to the end, for it is locked, see `open_log`
        self._log_ended = False
        self._head: list[str] = []  # what the log begins with; it is written with the first line that follows
        self._json = heartbeat.JsonLines(json_path if job.is_first() else None)
        self._draws = terminal.can_redraw(sys.stderr) and not self._quiet
        self._drawn = 0  # characters of the line that stands on the terminal
        self._interrupted = self._told_of_interrupt = False
        self._heartbeat = heartbeat.Heartbeat()
        self._next_line = 0.0  # seconds of the command, from which on a generation has a line again
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="heartbeat", daemon=True)

    def __enter__(self) -> Self:
        if self._log_path is not None:
            self._file = heartbeat.open_log(self._log_path)
        self._json.open(self._append)
        self._old_level = _log.level
        _log.setLevel(logging.DEBUG)  # see `plltool.progress.announce`
        _log.addHandler(self)
        versions = ", ".join(f"{name} {version}" for name, version in plltool.software_versions().items())
        began = f"began: {datetime.now():%Y-%m-%d %H:%M:%S}"
        self._head = [f"plltool {VERSION}", versions, f"{COMMAND_LINE}{job.given_command()}", began]
        self._json.write("begin", plltool=VERSION, versions=versions, command=job.given_command())
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._write_stderr(self._erase())
        problem = None if kind is None else f"{kind.__name__}: {error}"
        if self._head and isinstance(error, PlltoolError):  # nothing was read
            if self._log_path is not None and self._log_path.is_file() and not self._log_path.stat().st_size:
                self._log_path.unlink(missing_ok=True)
        else:
            used = os.times()
            self.write_log(
                f"ended: {datetime.now():%Y-%m-%d %H:%M:%S}, elapsed {self._heartbeat.seconds:.1f} s,"
                f" CPU time {used.user + used.system + used.children_user + used.children_system:.1f} s"
            )
            self.write_log(f"stopped: {problem}" if problem else FINISHED)
        self._json.write("end", problem=problem)
        _log.removeHandler(self)
        _log.setLevel(self._old_level)
        self._json.close()
        if self._file is not None:
            with suppress(OSError):  # of a log that ended before, what could not be written is tried once more
                self._file.close()

    def emit(self, record: logging.LogRecord) -> None:
        """Write a log record as a line; remember what is being done."""
        activity = getattr(record, "activity", None)
        if activity is not None:
            self._heartbeat.begin(activity)
        if record.levelno < logging.INFO:
            return
        self._heartbeat.spoke()
        is_warning = record.levelno >= logging.WARNING
        message = " ".join(record.getMessage().split())
        self._json.write("log", level=record.levelname.lower(), message=message)
        self.write_log(f"{WARNING}: {message}" if is_warning else message)
        if (is_warning and self._warns) or not self._quiet:
            has_bar = self._drawn > 0
            self._write_stderr(f"{self._erase()}{terminal.format_message(message, WARNING if is_warning else '')}\n")
            if has_bar:
                self._draw()

    def progress(self, event: plltool.Progress) -> None:
        """A round of a search; raises StopSearch after an interrupt, see `interrupts_wait`.

        A sampler gets a line every LINE_SECONDS, and one for its last generation.
        """
        with self._lock:
            self._heartbeat.hear(event)
            seconds = self._heartbeat.seconds
            told = {name: value for name, value in vars(event).items() if name != "chosen"}  # which is in the record
            self._json.write("progress", **told | {"seconds": round(seconds, 1)})
            if event.stage != SAMPLE_STAGE or seconds >= self._next_line or event.round == event.n_rounds:
                self._next_line = seconds + LINE_SECONDS
                line = describe_progress(event, seconds, self._heartbeat.later)
                self.write_log(line)
                if not (self._draws or self._quiet):
                    self._write_stderr(line + "\n")
            if self._draws:
                self._draw()
        if self._interrupted:
            self._tell_of_interrupt()
            raise plltool.StopSearch

    def expect(self, later: str) -> None:
        """What follows the present step, such as "supports"; empty if nothing does. A stage is met when it reports."""
        self._heartbeat.later = later

    @contextmanager
    def interrupts_wait(self) -> Iterator[None]:
        """Let the first SIGINT end the search at the next progress event; the second one interrupts as usual.

        The handler only takes a note, for a write to stderr may be under way. The thread that watches tells the user.
        A rank of an MPI job is interrupted at once.
        """

        def stop_soon(_number: int, _frame: FrameType | None) -> None:
            self._interrupted = True
            signal.signal(signal.SIGINT, before)

        if current() is not None:  # ranks would stop after different rounds
            yield
            return
        before = signal.signal(signal.SIGINT, stop_soon)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def print_results(self, lines: Sequence[str]) -> None:
        """Print lines on stdout while the command goes on."""
        with self._lock:
            self._write_stderr(self._erase())
            terminal.print_results(lines)

    def write_log(self, *told: str) -> None:
        """Lines for the log file only; a disk that is full ends the log, not the run."""
        if self._file is None or self._log_path is None or self._log_ended:
            return
        lines, begins, self._head = [*self._head, *told], bool(self._head), []
        try:
            if begins and not self._append and self._log_path.is_file():
                self._file.truncate(0)
            self._file.write("".join(f"{own}\n" for own in lines))
            self._file.flush()
        except OSError as error:
            self._log_ended = True
            _log.warning("%s: the log ends here: %s", self._log_path, error.strerror)

    def _watch(self) -> None:
        while not self._over.wait(min(REDRAW_SECONDS, HEARTBEAT_SECONDS)):
            self._tell_of_interrupt()
            with self._lock:
                if self._draws:
                    self._draw()
                if self._heartbeat.silence < HEARTBEAT_SECONDS:
                    continue
                facts = self._heartbeat.facts()
                self.write_log(facts.describe())
                self._json.write("heartbeat", **facts.as_record())
                if not self._quiet and not self._draws:
                    self._write_stderr(facts.describe() + "\n")
                self._heartbeat.spoke()

    def _tell_of_interrupt(self) -> None:
        with self._lock:
            if self._interrupted and not self._told_of_interrupt:
                self._told_of_interrupt = True
                _log.warning(INTERRUPTED)

    @property
    def _lock(self) -> threading.RLock:
        assert self.lock is not None, "every handler of the logging module has one"
        return self.lock

    def _draw(self) -> None:
        """Draw the line of a terminal in place of the one that stands there."""
        erased = self._erase()
        columns, in_colour = terminal.count_columns(sys.stderr), terminal.has_colour(sys.stderr)
        line = heartbeat.draw_progress(self._heartbeat.facts(), columns, in_colour)
        self._write_stderr(erased + line)
        self._drawn = len(click.unstyle(line))

    def _erase(self) -> str:
        """What erases the line of a terminal, which takes several rows once the terminal has become narrower."""
        if not self._drawn:
            return ""
        rows = (self._drawn - 1) // terminal.count_columns(sys.stderr)
        self._drawn = 0
        return (UP.format(rows) if rows else "") + CLEAR

    def _write_stderr(self, text: str) -> None:
        with suppress(OSError):  # nobody reads it any more; the run goes on
            terminal.echo_stderr(text)


def describe_progress(event: plltool.Progress, seconds: float, later: str = "") -> str:
    """One round as a line for a log; `seconds` count from the start of the command."""
    count, moves, tree = heartbeat.name_counts(event)
    begin = f"{seconds:9.1f} s  {tree:<8} " if tree else f"{seconds:9.1f} s  "
    end = f"  {moves}{_left(event, later)}" if moves else _left(event, later)
    return f"{begin}{event.name:<15} {count:<9} lnL {event.lnl:.6f}{end}"


def _left(event: plltool.Progress, later: str) -> str:
    """How long the stage and the command still take, where that is worth a word."""
    stage, whole = event.stage_left or 0.0, event.left or 0.0
    if event.stage == REPLICATE_STAGE and event.left is None and event.n_rounds:  # fewer replicates may be enough
        most = event.seconds / event.round * (event.n_rounds - event.round)
        return f"  left: at most {heartbeat.about(most)}"
    if whole < TOLD_SECONDS:
        return ""
    told = heartbeat.about(whole)
    if TOLD_SECONDS <= stage < whole:
        told = f"stage {heartbeat.about(stage)}, all {told}"
    return f"  left: {told}, then {later}" if later else f"  left: {told}"
