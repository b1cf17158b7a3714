"""Locks that keep two runs from writing the same files; the system releases them, whatever ends the process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from plltool.errors import InputError, explained

try:
    import fcntl
except ImportError:  # not on Unix
    fcntl = None  # type: ignore[assignment]

LOCK_FILE = "lock"  # within a locked folder


def is_taken(stream: IO[Any]) -> bool:
    """Lock an open file; returns whether another run has locked it. Without support for locks no run has."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # a file system without locks
    return False


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Make a folder and lock it; at the end it is removed if it is empty.

    Raises InputError if another run has locked it, or it cannot be made.
    """
    path = folder / LOCK_FILE
    with ExitStack() as stack:
        stack.callback(_remove_if_empty, folder)  # once the lock is closed: Windows keeps files that are open
        with explained(f"{folder}: cannot make the folder"):
            folder.mkdir(exist_ok=True)
            stream = stack.enter_context(open(path, "ab"))
        if is_taken(stream) or not _is_same(stream, path):
            raise InputError(f"{folder}: another run is using it; --prefix names other files")
        try:
            yield
        finally:
            with suppress(PermissionError):  # Windows
                path.unlink(missing_ok=True)


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


def _is_same(stream: IO[bytes], path: Path) -> bool:
    """Whether the open file is still the one of that name: the run that had the lock removes it."""
    try:
        return os.path.samestat(os.fstat(stream.fileno()), os.stat(path))
    except FileNotFoundError:
        return False
