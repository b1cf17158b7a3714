"""One exception class per cause; the command line prints any of them as one line and exits with 1.

What a user should know of a run that goes on is a `PlltoolWarning`.
"""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from numbers import Integral

_MAX_SHOWN = 60  # characters of a user's text in a message
_MAX_LISTED = 5  # names in a message


def shorten(text: str) -> str:
    """A text for a message, the end left out if it is very long."""
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 3] + "..."


def show_object(found: object) -> str:
    """An object for a message: on one line, shortened."""
    return shorten(" ".join(repr(found).split()))


def show_name(name: str) -> str:
    """A name, or another text of a user's, for a message: quoted, on one line, shortened if that is very long."""
    shown, kept = shorten(name), min(len(name), _MAX_SHOWN)
    while len(repr(shown)) > _MAX_SHOWN + len("''"):  # bytes that are no text take six characters each
        kept -= 1
        shown = name[:kept] + "..."
    return repr(shown)


def list_names(names: Iterable[str]) -> str:
    """The first few names and the number of the others."""
    names = list(names)
    listed = ", ".join(map(show_name, names[:_MAX_LISTED]))
    return listed if len(names) <= _MAX_LISTED else f"{listed} and {len(names) - _MAX_LISTED} more"


def count(number: int, noun: str, several: str = "") -> str:
    """A number of things, such as 1 site, 2 sites; `several` is the plural if it is not formed by an s."""
    return f"{number} {noun if number == 1 else several or f'{noun}s'}"


def show_size(n_bytes: int, up: bool = False) -> str:
    """A number of bytes for a message, such as 512K, rounded down or `up`; K is 1024 bytes."""
    for unit, power in (("G", 30), ("M", 20), ("K", 10)):
        if n_bytes >= 10 << power:
            return f"{-(-n_bytes >> power) if up else n_bytes >> power}{unit}"
    return f"{n_bytes} bytes"


class PlltoolError(Exception):
    """Something plltool can explain; the message is one complete line."""


class InputError(PlltoolError):
    """Your data: names the file, the taxon or line, the position, what was found and what was expected."""


class CheckpointError(InputError):
    """A checkpoint that a run cannot continue from: it belongs to another run, or is damaged."""


class DeviceError(PlltoolError):
    """Your machine: a device that is missing, fails to build a kernel or runs out of memory."""


class DeviceLostError(DeviceError):
    """A `device` that fails while it works, after it has passed its test."""

    device: object = None


class DeviceMemoryError(DeviceError):
    """A device that has less memory than it was thought to have; less may do, see `engine/storage.py`.

    Attributes
    ----------
    cla_bytes : what the engine that failed held for conditional likelihoods; None if it was never made
    """

    cla_bytes: int | None = None


class MemoryShortageError(DeviceError):
    """Too little memory for the conditional likelihoods of even a few patterns at a time.

    Parameters
    ----------
    what : what is too small
    found, least : bytes that it has, and that it needs
    n_taxa : of the tree
    """

    def __init__(self, what: str, found: int, least: int, n_taxa: int):
        expected = f"expected at least {show_size(least, up=True)}"
        super().__init__(
            f"{what}: found {show_size(found)}, {expected}: {n_taxa} taxa need that for conditional likelihoods"
        )
        self._given = what, found, least, n_taxa

    def of_share(self, share: float) -> MemoryShortageError:
        """The same error where this was but a share of all memory."""
        what, found, least, n_taxa = self._given
        return MemoryShortageError(what, math.ceil(found / share), math.ceil(least / share), n_taxa)

    def __reduce__(self) -> tuple[type[MemoryShortageError], tuple[str, int, int, int]]:
        return type(self), self._given


class EngineError(PlltoolError):
    """Our bug, or numbers outside what the engine can represent; names the pattern, branch or parameter."""


@contextmanager
def errors_at(where: str) -> Iterator[None]:
    """Put where it arose in front of the message of an InputError."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Turn an error of the system into an InputError: `what`, such as "FILE: cannot read the file", and the reason."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{what}: {error.strerror}") from error


def check_least(what: str, found: int, least: int) -> None:
    """Raise InputError unless a number, called `what`, is whole and not less than the least one allowed."""
    if isinstance(found, bool) or not isinstance(found, Integral):
        raise InputError(f"{what}: found {found!r}, expected a whole number of at least {least}")
    if found < least:
        raise InputError(f"{what}: found {found}, expected at least {least}")


def check_kind(what: str, found: object, kind: type | tuple[type, ...], expected: str) -> None:
    """Raise InputError unless an argument, called `what`, is of a kind, of which `expected` says what it is."""
    if not isinstance(found, kind):
        raise InputError(f"{what}: found {show_object(found)}, expected {expected}")


def check_one_of(what: str, found: str, allowed: Collection[str]) -> None:
    """Raise InputError if a word, called `what`, is not among those allowed."""
    if found not in allowed:
        raise InputError(f"{what}: found {found!r}, expected one of: {', '.join(allowed)}")


class PlltoolWarning(UserWarning):
    """Something that a user should know of a run that goes on, such as a driver that cannot be used."""


def warn_caller(message: str) -> None:
    """Give a `PlltoolWarning` for the line of code outside plltool that called it."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "plltool":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, PlltoolWarning, stacklevel=level)
