"""What is known of a running command between two reports, as a line of a terminal, and as JSON for programs."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import click

import plltool
from plltool.cli.outputs import is_taken
from plltool.constants import PERTURB, REPLICATE_STAGE
from plltool.errors import InputError, count, explained

JSON_TO_STDERR = "-"


@dataclass(frozen=True)
class Facts:
    """What is known of a running command."""

    activity: str  # what is being done
    activity_seconds: float  # for how long
    best_lnl: float | None  # of the data, None if there is none yet
    seconds: float  # since the command began
    left: float | None  # seconds that the present step still takes, None where nobody knows
    later: str  # steps that follow it, empty if none does
    # of the last report, as text; all three are empty if something else than the next replicate is being done since
    round: str = ""
    moves: str = ""
    tree: str = ""

    def as_record(self) -> dict[str, Any]:
        return {
            "activity": self.activity,
            "activity_seconds": round(self.activity_seconds, 1),
            "best_lnl": self.best_lnl,
            "seconds": round(self.seconds, 1),
            "left": self.left,
        }

    def describe(self) -> str:
        best = "" if self.best_lnl is None else f"  best lnL {self.best_lnl:.6f}"
        left = "" if self.left is None else f"  left: {about(self.left)}{self.and_later}"
        return f"{self.seconds:9.1f} s  working on {self.activity} for {self.activity_seconds:.0f} s{best}{left}"

    @property
    def and_later(self) -> str:
        """What follows, for the end of a line."""
        return f", then {self.later}" if self.later else ""


class Heartbeat:
    """What a command has reported so far, and when. Its clock runs from the beginning of the command to its end."""

    def __init__(self) -> None:
        self._began = self._spoken = self._activity_began = time.monotonic()
        self._activity = "reading"
        self._before = self._activity, self._began
        self._event: plltool.Progress | None = None
        self._event_came = self._began
        self._best: float | None = None
        self.later = ""

    @property
    def seconds(self) -> float:
        """Since the command began."""
        return time.monotonic() - self._began

    @property
    def silence(self) -> float:
        """Seconds since the last report."""
        return time.monotonic() - self._spoken

    def spoke(self) -> None:
        self._spoken = time.monotonic()

    def begin(self, activity: str) -> None:
        """Something else is being done from now on; if that has no name, what was done before."""
        now = (activity, time.monotonic()) if activity else self._before
        self._before = self._activity, self._activity_began
        self._activity, self._activity_began = now

    def hear(self, event: plltool.Progress) -> None:
        """A round is over. The lnL of a replicate belongs to other data."""
        self.spoke()
        self._event, self._event_came = event, time.monotonic()
        if event.stage == self.later:
            self.later = ""
        if event.stage != REPLICATE_STAGE:
            self._best = event.lnl if self._best is None else max(self._best, event.lnl)

    def facts(self) -> Facts:
        now, event, left = time.monotonic(), self._event, 0.0
        if event is not None and event.left is not None:
            left = max(0.0, event.left - (now - self._event_came))
        known = now - self._activity_began, self._best, now - self._began, left or None, self.later
        if event is not None and (event.stage == REPLICATE_STAGE or self._event_came > self._activity_began):
            return Facts(event.name, *known, *name_counts(event))
        return Facts(self._activity, *known)


def name_counts(event: plltool.Progress) -> tuple[str, str, str]:
    """Round, moves where there may be some, and the tree where several are climbed at the same time."""
    has_moves = event.radius or event.stage == PERTURB
    moves = count(event.moves, "move") if has_moves else ""
    return event.count, moves, f"tree {event.start}" if event.start else ""


class JsonLines:
    """One JSON object a line, to a file that may be a pipe, or to stderr; nothing where there is no path.

    Each has "event": begin, log, progress, heartbeat or end, and what belongs to it.
    """

    def __init__(self, path: str | None):
        self._path = path
        self._stream: TextIO | None = None

    def open(self, append: bool) -> None:
        """Raises InputError if the file cannot be written. What it has already stays in front on request."""
        if self._path == JSON_TO_STDERR:
            self._stream = sys.stderr
        elif self._path is not None:
            self._stream = open_to_append(Path(self._path))
            if not append and Path(self._path).is_file():
                self._stream.truncate(0)

    def write(self, event: str, **facts: Any) -> None:
        if self._stream is not None:
            with suppress(OSError):  # nobody reads it any more; the run goes on
                self._stream.write(json.dumps({"event": event, **facts}) + "\n")
                self._stream.flush()

    def close(self) -> None:
        if self._stream is not None and self._stream is not sys.stderr:
            self._stream.close()


def open_to_append(path: Path) -> TextIO:
    """Text that keeps names of any bytes; InputError if it cannot be written."""
    with explained(f"{path}: cannot write the file"):
        return open(path, "a", encoding="utf-8", errors="surrogateescape")


def open_log(path: Path) -> TextIO:
    """The log of a run, whose present content stays for now.

    Until it is closed it is locked against other runs, which would write the same results. The lock is the open file's,
    so that nothing is left of it, whatever ends the process.
    """
    stream = open_to_append(path)
    if not path.is_file():  # a device or a pipe, which any number of runs may write to
        return stream
    if is_taken(stream):
        stream.close()
        raise InputError(f"{path}: another run is writing results with this prefix; --prefix names other files")
    return stream


def about(seconds: float) -> str:
    """A duration that is only guessed, to two digits at most."""
    if seconds < 99.5:
        return f"~{seconds:.0f} s" if seconds >= 9.95 else f"~{seconds:.1f} s"
    return f"~{seconds / 60:.0f} min" if seconds < 99.5 * 60 else f"~{seconds / 3600:.0f} h"


# --- progress in one line of a terminal -------------------------------------------------------------------

GAP = "  "  # between two fields
WIDE, NARROW = 20, 10  # characters of the bar itself, in a wide terminal and in a narrow one

# A field is a list of texts, from the longest to the shortest, each with the turn in which it gives way to the next
# one where the line is too long; the first turn is 0. The last text stays.
Field = list[tuple[str, int]]
LAST = 99


def draw_progress(facts: Facts, columns: int, in_colour: bool = False) -> str:
    """The line for a terminal of `columns` columns, the last of which stays free."""
    best = facts.best_lnl
    fields: list[tuple[Field, dict[str, Any]]] = [
        (_bar(facts), {"fg": "cyan"}),
        (_time_left(facts), {}),
        ([] if best is None else [(f"lnL {best:.3f}", 9), (f"lnL {best:.0f}", 11)], {"bold": True}),
        (_activity(facts), {}),
        ([(facts.round, 6)], {}),
        ([(_clock(facts.seconds), 4)], {}),
        ([(facts.moves, 2)], {}),
        ([(facts.tree, 0)], {}),
    ]
    texts = fit([[*field, ("", LAST)] for field, _ in fields], columns - 1)
    if in_colour:
        styled = zip(texts, [style for _, style in fields], strict=True)
        texts = [click.style(text, **style) if text and style else text for text, style in styled]
    return GAP.join(filter(None, texts))


def fit(fields: Sequence[Field], width: int) -> list[str]:
    """A text of each field, for a line of at most `width` characters; no text if they do not fit at their shortest."""
    chosen = [0] * len(fields)
    while True:
        texts = [field[k][0] for field, k in zip(fields, chosen, strict=True)]
        if len(GAP.join(filter(None, texts))) <= width:
            return texts
        turns = [(field[k][1], number) for number, (field, k) in enumerate(zip(fields, chosen, strict=True))]
        turn, number = min(turns)
        if turn == LAST:
            return [""] * len(fields)
        chosen[number] += 1


def _bar(facts: Facts) -> Field:
    if facts.left is None:
        return []
    share = facts.seconds / max(facts.seconds + facts.left, 1e-9)
    wide, narrow = (f"[{'#' * int(share * width):-<{width}}]" for width in (WIDE, NARROW))
    return [(wide, 1), (narrow, 3)]


def _time_left(facts: Facts) -> Field:
    if facts.left is None:
        return []
    left = about(facts.left)
    return [(f"{left} left{facts.and_later}", 5), (f"{left} left", 10), (left, 12)]


def _activity(facts: Facts) -> Field:
    """What is being done, with fewer and fewer words."""
    words = facts.activity.split()
    shorter = [(" ".join(words[:number]), 8) for number in range(len(words) - 1, 1, -1)]
    return [(facts.activity, 7), (facts.activity.replace(" radius", ""), 8), *shorter, (words[0], 10)]


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"
