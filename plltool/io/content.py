"""The bytes of a user's file or of standard input, unpacked if they are gzipped, within the limits of memory."""

from __future__ import annotations

import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from pathlib import Path
from typing import IO
from weakref import WeakSet

from plltool.constants import STDIN
from plltool.errors import InputError
from plltool.hardware import available_memory

CONTENT_MEMORY_SHARE = 0.25  # of the free memory that the content of a file may take; parsed data need more
MAX_GZIP_RATIO = 500  # unpacked to packed size; real alignments reach 250, gzip's limit is 1,030
TRUSTED_CONTENT = 1 << 28  # unpacked bytes up to which any ratio is accepted
_GZIP_MAGIC = b"\x1f\x8b"
_UTF8_MARK = b"\xef\xbb\xbf"
_CHUNK = 1 << 24  # bytes

_folder: ContextVar[Path | None] = ContextVar("folder", default=None)  # see `names_files`
_spent: WeakSet[object] = WeakSet()  # the standard inputs that have been read


def source_name(path: str | os.PathLike[str]) -> str:
    """What messages call a file; InputError for an object that is not the name of one."""
    try:
        source = os.fspath(path)
    except TypeError:
        raise InputError(f"found an object of type {type(path).__name__}, expected the name of a file") from None
    return "standard input" if source == STDIN else source


def read_content(path: str | os.PathLike[str]) -> bytes:
    """The content of a file, or of standard input for the path ``-``; its first bytes tell whether it is gzipped."""
    source = source_name(path)
    try:
        with nullcontext(_take_stdin()) if os.fspath(path) == STDIN else open(find_file(path), "rb") as file:
            packed = _read_chunks(file, source)
        if not packed.startswith(_GZIP_MAGIC):
            return packed
        with gzip.GzipFile(fileobj=io.BytesIO(packed)) as unpacked:  # which may have several members
            return _read_chunks(unpacked, source, max(TRUSTED_CONTENT, MAX_GZIP_RATIO * len(packed)))
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{source}: found a broken or incomplete gzip file ({error})") from error
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL character
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise InputError(f"{source}: cannot read the file: {reason}") from error


@contextmanager
def names_files(path: str | os.PathLike[str]) -> Iterator[None]:
    """Look for files that are not there beside `path`, the file that names them."""
    token = _folder.set(Path(path).parent)
    try:
        yield
    finally:
        _folder.reset(token)


def find_file(path: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """The path itself, or that beside the file that names it, see `names_files`."""
    folder = _folder.get()
    return path if folder is None or os.path.exists(path) else folder / path


def read_text(path: str | os.PathLike[str]) -> bytes:
    """The content of a text file, LF at the end of each line, no UTF-8 byte order mark."""
    return read_content(path).removeprefix(_UTF8_MARK).replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _take_stdin() -> IO[bytes]:
    """Standard input, which can be read only once."""
    if sys.stdin is None:
        raise InputError("standard input: found it closed, expected data")
    if sys.stdin in _spent:
        raise InputError(f"standard input: {STDIN!r} can be read only once; name a file instead")
    _spent.add(sys.stdin)
    return sys.stdin.buffer


def _read_chunks(file: IO[bytes] | gzip.GzipFile, source: str, believable: int | None = None) -> bytes:
    """All of a file that may be endless; InputError once it exceeds the free memory or `believable` bytes."""
    chunks: list[bytes] = []
    n_bytes, room = 0, int(CONTENT_MEMORY_SHARE * available_memory())
    while chunk := file.read(_CHUNK):
        chunks.append(chunk)
        n_bytes += len(chunk)
        if believable is not None and n_bytes > believable:
            raise InputError(
                f"{source}: found a gzip file that unpacks to more than {believable} bytes, over {MAX_GZIP_RATIO} times"
                " its size, expected an alignment, a tree or a model; unpack it if it is one"
            )
        if n_bytes > room:
            raise InputError(f"{source}: found more than {room} bytes, expected a file that fits the free memory")
    return b"".join(chunks)
