"""Files: their bytes, unpacked and within the limits of memory; JSON records; writing as a whole or not at all."""

from __future__ import annotations

import io
import json
import math
import os
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from importlib import import_module
from pathlib import Path
from typing import IO, Any, TypeAlias
from weakref import WeakSet

from plltool.constants import PARTIAL_ENDING, STDIN
from plltool.errors import InputError, check_kind, explained, show_name
from plltool.hardware import available_memory

FileName: TypeAlias = str | os.PathLike[str]
RECORD_KEYS = (
    "lnl", "model", "n_taxa", "n_sites", "n_patterns", "device", "reason", "seconds", "tree", "seed", "start_lnls",
    "brlen", "parts", "parameters", "layout", "counters", "warnings", "version", "driver", "software",
    "command",
)  # fmt: skip
_NEW_FILE_MODE = 0o666  # what open() asks for, less the user's mask


class Recorded(ABC):
    """A result that becomes JSON: `as_record` has it as strings, numbers, lists and dictionaries."""

    @abstractmethod
    def as_record(self, command: str | None = None) -> dict[str, Any]:
        """The result for JSON; `command` is the command line that made it, if there was one."""

    def to_json(self, command: str | None = None) -> str:
        """`as_record` as JSON text."""
        return json.dumps(self.as_record(command), indent=1, allow_nan=False)


def nan_to_null(value: Any) -> Any:
    """A number, or nested lists of numbers, with None in place of NaN and infinity, which JSON lacks."""
    if isinstance(value, list):
        return [nan_to_null(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def tabbed(rows: Iterable[Sequence[str]]) -> str:
    """A table as text: tabs between the cells, a row a line."""
    return "".join("\t".join(row) + "\n" for row in rows)


def write_record(path: FileName, record: Mapping[str, Any]) -> None:
    """Write a record as JSON, ASCII only for every locale.

    ValueError for a lack of `RECORD_KEYS` or a number that is not finite; other errors as `write_text`.
    """
    check_kind("record", record, Mapping, "what as_record() of a result returns")
    missing = [key for key in RECORD_KEYS if key not in record]
    if missing:
        raise ValueError(f"a run record lacks {', '.join(missing)}")
    write_text(path, json.dumps(record, indent=1, allow_nan=False) + "\n")


def read_record(path: FileName) -> dict[str, Any]:
    """Read what `write_record` wrote; errors as in `read_object`."""
    return read_object(path, RECORD_KEYS, "the record of a run")


def read_object(path: FileName, keys: Sequence[str], what: str) -> dict[str, Any]:
    """Read a JSON file, compressed or not, with one object that has these keys; `what` it should be, for messages.

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


def write_text(path: FileName, text: str) -> None:
    """Write a UTF-8 file as `write_bytes` does; surrogate escapes become the bytes that they stand for."""
    write_bytes(path, text.encode("utf-8", "surrogateescape"))


def write_bytes(path: FileName, content: bytes) -> None:
    """Write a file through a temporary one beside it: even a crash of the machine leaves the old file or the new one.

    What is written to a pipe or a device goes there. Raises InputError if a file cannot be written; the old one stays.
    """
    target = Path(path)
    with explained(f"{target}: cannot write the file"):
        if target.exists() and not target.is_file():
            target.write_bytes(content)
            return
        handle, temporary = tempfile.mkstemp(suffix=PARTIAL_ENDING, prefix=f".{target.name[:100]}.", dir=target.parent)
        try:
            with open(handle, "wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(handle)
            mask = os.umask(0)  # which can only be read by setting it
            os.umask(mask)
            os.chmod(temporary, _NEW_FILE_MODE & ~mask)
            os.replace(temporary, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        with suppress(PermissionError):  # on Windows, where folders cannot be opened
            folder = os.open(target.parent, os.O_RDONLY)
            try:
                os.fsync(folder)  # so that the renaming survives a crash of the machine
            finally:
                os.close(folder)


CONTENT_MEMORY_SHARE = 0.25  # of the free memory that the content of a file may take; parsed data need more
TRUSTED_CONTENT = 1 << 28  # unpacked bytes up to which any ratio is accepted
_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = b"\xff\xfe", b"\xfe\xff"
_CHUNK = 1 << 24  # bytes


_COMPRESSIONS = {  # by ending the name, how files start, Python's module, and the largest ratio that is believed
    ".gz": ("gzip", b"\x1f\x8b", "gzip", 500),  # real alignments reach 250, gzip's limit is 1,030
    ".bz2": ("bzip2", b"BZh", "bz2", 20_000),
    ".xz": ("xz", b"\xfd7zXZ\x00", "lzma", 20_000),
    ".zst": ("zstd", b"\x28\xb5\x2f\xfd", "compression.zstd", 20_000),  # from Python 3.14 on
}

_folder: ContextVar[Path | None] = ContextVar("folder", default=None)  # see `names_files`
_spent: WeakSet[object] = WeakSet()  # the standard inputs that have been read


def source_name(path: FileName) -> str:
    """What messages call a file; InputError for an object that is not the name of one."""
    try:
        source = os.fspath(path)
    except TypeError:
        raise InputError(f"found an object of type {type(path).__name__}, expected the name of a file") from None
    if not source:
        raise InputError("found an empty text, expected the name of a file")
    return "standard input" if source == STDIN else source


def read_content(path: FileName) -> bytes:
    """The content of a file, or of standard input for the path ``-``; its first bytes tell how it is compressed."""
    source, is_stdin = source_name(path), os.fspath(path) == STDIN
    if is_stdin and sys.stdin is None:
        raise InputError("standard input: found it closed, expected data")
    if is_stdin and sys.stdin in _spent:
        raise InputError(f"standard input: {STDIN!r} can be read only once; name a file instead")
    if is_stdin:
        _spent.add(sys.stdin)
    try:
        with nullcontext(sys.stdin.buffer) if is_stdin else open(find_file(path), "rb") as file:
            packed = _read_chunks(file, source)
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL character
        if "\n" in source:
            raise InputError(f"found the text {show_name(source)}, expected the name of a file") from error
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise InputError(f"{source}: cannot read the file: {reason}") from error
    for name, start, module, most in _COMPRESSIONS.values():
        if packed.startswith(start):
            try:
                unpacker: Any = import_module(module)
                with unpacker.open(io.BytesIO(packed)) as unpacked:  # a file may have several members
                    return _read_chunks(unpacked, source, max(TRUSTED_CONTENT, most * len(packed)))
            except InputError:
                raise
            except ImportError:
                found = f"found a {name} file, which this Python cannot read"
                raise InputError(f"{source}: {found}; unpack it, such as by {name} -d") from None
            except Exception as error:  # each module has errors of its own
                raise InputError(f"{source}: found a broken or incomplete {name} file ({error})") from error
    if packed.startswith(b"PK\x03\x04"):
        raise InputError(f"{source}: found a workbook or an archive (zip), expected a text; unpack or export it")
    return packed


def unpacked_name(path: FileName) -> str:
    """The name of a file without its folder and the ending of a compressed one."""
    name = os.path.basename(path)
    stem, ending = os.path.splitext(name)
    return stem if ending in _COMPRESSIONS else name


@contextmanager
def names_files(path: FileName) -> Iterator[None]:
    """Look for files that are not there beside `path`, the file that names them."""
    token = _folder.set(Path(path).parent)
    try:
        yield
    finally:
        _folder.reset(token)


def find_file(path: FileName) -> FileName:
    """The path itself, or that beside the file that names it, see `names_files`."""
    folder = _folder.get()
    return path if folder is None or os.path.exists(path) else folder / path


def read_text(path: FileName) -> bytes:
    """The content of a text file, LF at the end of each line, no byte order mark; UTF-16 becomes UTF-8."""
    content = read_content(path)
    if content.startswith(_UTF16_MARKS):
        content = content.decode("utf-16", "replace").encode()
    return content.removeprefix(_UTF8_MARK).replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _read_chunks(file: IO[bytes], source: str, believable: int | None = None) -> bytes:
    """All of a file that may be endless; InputError once it exceeds the free memory or `believable` bytes."""
    chunks: list[bytes] = []
    n_bytes, room = 0, int(CONTENT_MEMORY_SHARE * available_memory())
    while chunk := file.read(_CHUNK):
        chunks.append(chunk)
        n_bytes += len(chunk)
        if believable is not None and n_bytes > believable:
            found = f"found a compressed file that unpacks to more than {believable} bytes, beyond belief for its size"
            raise InputError(f"{source}: {found}, expected an alignment, a tree or a model; unpack it if it is one")
        if n_bytes > room:
            raise InputError(f"{source}: found more than {room} bytes, expected a file that fits the free memory")
    return b"".join(chunks)
