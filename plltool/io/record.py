"""The JSON record of a run, and writing files as a whole or not at all."""

from __future__ import annotations

import json
import math
import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from plltool.errors import InputError, explained
from plltool.io.content import read_content, source_name

RECORD_KEYS = (
    "lnl", "model", "n_taxa", "n_sites", "n_patterns", "device", "reason", "seconds", "tree", "seed", "start_lnls",
    "brlen", "parts", "parameters", "layout", "counters", "warnings", "version", "driver", "software",
    "command",
)  # fmt: skip
_NEW_FILE_MODE = 0o666  # what open() asks for, less the user's mask


def format_record(record: Mapping[str, Any]) -> str:
    """The record as JSON text, ASCII only, so that names of any bytes survive every locale.

    Raises ValueError if a key of `RECORD_KEYS` is missing or a number is not finite.
    """
    missing = [key for key in RECORD_KEYS if key not in record]
    if missing:
        raise ValueError(f"a run record lacks {', '.join(missing)}")
    return json.dumps(record, indent=1, allow_nan=False)


class Recorded(ABC):
    """A result that becomes JSON: `as_record` has it as strings, numbers, lists and dictionaries."""

    @abstractmethod
    def as_record(self, command: str | None = None) -> dict[str, Any]:
        """The result for JSON; `command` is the command line that made it, if there was one."""

    def to_json(self, command: str | None = None) -> str:
        """`as_record` as JSON text."""
        return json.dumps(self.as_record(command), indent=1, allow_nan=False)


def nan_to_null(value: Any) -> Any:
    """A number, or nested lists of numbers, with None in place of NaN, which JSON lacks."""
    if isinstance(value, list):
        return [nan_to_null(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def write_record(path: str | os.PathLike[str], record: Mapping[str, Any]) -> None:
    """Write a record; errors as in `format_record` and `write_text`."""
    write_text(path, format_record(record) + "\n")


def read_record(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read what `write_record` wrote; errors as in `read_object`."""
    return read_object(path, RECORD_KEYS, "the record of a run")


def read_object(path: str | os.PathLike[str], keys: Sequence[str], what: str) -> dict[str, Any]:
    """Read a file that holds one JSON object, compressed or not.

    `keys`: the keys that it must have; `what`: what the file should be, for errors.

    Raises InputError if the file cannot be read, is not a JSON object, or lacks a key.
    """
    return parse_object(read_content(path), source_name(path), keys, what)


def parse_object(content: bytes, source: str, keys: Sequence[str], what: str) -> dict[str, Any]:
    """The JSON object in the content of a file; `source` is the file's name, for errors, otherwise as `read_object`."""
    try:
        record = json.loads(content)
    except (ValueError, RecursionError) as error:  # not JSON, not UTF-8, or nested a thousand times
        raise InputError(f"{source}: found something other than JSON ({error}), expected {what}") from error
    if not isinstance(record, dict):
        raise InputError(f"{source}: found a JSON {type(record).__name__}, expected {what}")
    missing = [key for key in keys if key not in record]
    if missing:
        raise InputError(f"{source}: not {what}, it lacks {', '.join(missing)}")
    return record


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a UTF-8 file as `write_bytes` does; surrogate escapes become the bytes that they stand for."""
    write_bytes(path, text.encode("utf-8", "surrogateescape"))


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file through a temporary one beside it: even a crash of the machine leaves the old file or the new one.

    What is written to a pipe or a device goes there. Raises InputError if a file cannot be written; the old one stays.
    """
    target = Path(path)
    with explained(f"{target}: cannot write the file"):
        if target.exists() and not target.is_file():
            target.write_bytes(content)
            return
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name[:100]}.", dir=target.parent)
        try:
            with open(handle, "wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(handle)
            os.chmod(temporary, _NEW_FILE_MODE & ~_user_mask())
            os.replace(temporary, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Make a renaming in the folder survive a crash of the machine, where folders can be opened."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except PermissionError:  # Windows
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _user_mask() -> int:
    """The process's mask of file permissions, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
