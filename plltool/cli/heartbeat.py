"""What is known of a running command between two reports, and progress as JSON for programs."""

from __future__ import annotations

import json
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from plltool.cli.locks import is_taken
from plltool.errors import InputError

if TYPE_CHECKING:
    from plltool.tree_search.progress import Progress

JSON_TO_STDERR = "-"


class Pulse:
    """What a command has told of itself so far, and when."""

    def __init__(self) -> None:
        self._began = self._spoken = self._activity_began = time.monotonic()
        self._activity = "reading"
        self._event: Progress | None = None
        self._best: float | None = None
        self.bar = ""

    @property
    def silence(self) -> float:
        """Seconds since the last report."""
        return time.monotonic() - self._spoken

    def spoke(self) -> None:
        """There has been a report."""
        self._spoken = time.monotonic()

    def begin(self, activity: str) -> None:
        """Something else is being done from now on."""
        self._activity, self._activity_began = activity, time.monotonic()

    def heard(self, event: Progress, bar: str) -> None:
        """A round is over; `bar` shows how much of the search that is. lnL of a replicate is that of other data."""
        from plltool.tree_search.progress import REPLICATE_STAGE

        self.spoke()
        self._event, self.bar = event, bar
        if event.stage == REPLICATE_STAGE:
            return
        self._best = event.lnl if self._best is None else max(self._best, event.lnl)

    def facts(self) -> dict[str, Any]:
        """What is being done, for how long, the best lnL, and the seconds gone and left, None where nobody knows."""
        left = None
        if self._event is not None and self._event.left is not None:
            left = self._event.left - self.silence
        now = time.monotonic()
        return {
            "activity": self._activity,
            "activity_seconds": round(now - self._activity_began, 1),
            "best_lnl": self._best,
            "seconds": round(now - self._began, 1),
            "left": left if left is not None and left > 0 else None,
        }

    def describe(self) -> str:
        """The facts as a line."""
        facts = self.facts()
        work = f"at work on {self._activity} for {facts['activity_seconds']:.0f} s"
        best = "" if self._best is None else f"  best lnL {self._best:.6f}"
        left = "" if facts["left"] is None else f"  left: all {about(facts['left'])}"
        return f"{facts['seconds']:9.1f} s  {work}{best}{left}"


class JsonLines:
    """One JSON object a line, to a file that may be a pipe, or to stderr; nothing where there is no path.

    Each has "event": begin, log, progress, heartbeat or end, and what belongs to it.
    """

    def __init__(self, path: str | None):
        self._path = path
        self._stream: TextIO | None = None

    def open(self) -> None:
        """Raises InputError if the file cannot be written. What it has already stays in front."""
        if self._path == JSON_TO_STDERR:
            self._stream = sys.stderr
        elif self._path is not None:
            self._stream = open_to_append(Path(self._path))

    def write(self, event: str, **facts: Any) -> None:
        if self._stream is not None:
            with suppress(OSError):  # nobody reads it any more; the run goes on
                self._stream.write(json.dumps({"event": event, **facts}) + "\n")
                self._stream.flush()

    def write_progress(self, event: Progress) -> None:
        """All of an event but which subtrees were moved, for the record has those."""
        self.write("progress", **{name: value for name, value in vars(event).items() if name != "chosen"})

    def close(self) -> None:
        if self._stream is not None and self._stream is not sys.stderr:
            self._stream.close()


def describe_versions() -> str:
    """Python and the libraries that digits may depend on."""
    from plltool.run.results import software_versions

    return ", ".join(f"{name} {version}" for name, version in software_versions().items())


def open_to_append(path: Path) -> TextIO:
    """Text that keeps names of any bytes; InputError if it cannot be written."""
    try:
        return open(path, "a", encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise InputError(f"{path}: cannot write the file: {error.strerror}") from error


def open_log(path: Path, append: bool) -> TextIO:
    """The log of a run, whose present content stays on request.

    Until it is closed it is locked against other runs, which would write the same results. The lock is the open file's,
    so that nothing is left of it, whatever ends the process.

    Raises
    ------
    InputError
        If another run has it, or it cannot be written.
    """
    stream = open_to_append(path)
    if not path.is_file():  # a device or a pipe, which any number of runs may write to
        return stream
    if is_taken(stream):
        stream.close()
        raise InputError(f"{path}: another run is writing results with this prefix; --prefix names other files")
    if not append:
        stream.truncate(0)
    return stream


def about(seconds: float) -> str:
    """A duration that is only guessed, to two digits at most."""
    if seconds < 99.5:
        return f"~{seconds:.0f} s" if seconds >= 9.95 else f"~{seconds:.1f} s"
    return f"~{seconds / 60:.0f} min" if seconds < 99.5 * 60 else f"~{seconds / 3600:.0f} h"
