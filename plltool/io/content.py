"""The bytes of a user's file or of standard input, unpacked if they are compressed, within the limits of memory."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from importlib import import_module
from pathlib import Path
from typing import IO, Any, NamedTuple
from weakref import WeakSet

from plltool.constants import STDIN
from plltool.errors import InputError
from plltool.hardware import available_memory

CONTENT_MEMORY_SHARE = 0.25  # of the free memory that the content of a file may take; parsed data need more
TRUSTED_CONTENT = 1 << 28  # unpacked bytes up to which any ratio is accepted
_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = b"\xff\xfe", b"\xfe\xff"
_CHUNK = 1 << 24  # bytes


class _Compression(NamedTuple):
    """How compressed files start, Python's module that unpacks them, and the largest ratio that is believed."""

    name: str
    magic: bytes
    module: str
    max_ratio: int  # unpacked to packed size


_COMPRESSIONS = {
    ".gz": _Compression("gzip", b"\x1f\x8b", "gzip", 500),  # real alignments reach 250, gzip's limit is 1,030
    ".bz2": _Compression("bzip2", b"BZh", "bz2", 20_000),
    ".xz": _Compression("xz", b"\xfd7zXZ\x00", "lzma", 20_000),
}

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
    """The content of a file, or of standard input for the path ``-``; its first bytes tell how it is compressed."""
    source = source_name(path)
    try:
        with nullcontext(_take_stdin()) if os.fspath(path) == STDIN else open(find_file(path), "rb") as file:
            packed = _read_chunks(file, source)
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL character
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise InputError(f"{source}: cannot read the file: {reason}") from error
    kind = next((kind for kind in _COMPRESSIONS.values() if packed.startswith(kind.magic)), None)
    return packed if kind is None else _unpack(packed, source, kind)


def _unpack(packed: bytes, source: str, kind: _Compression) -> bytes:
    """The content of a compressed file, which may have several members."""
    unpacker: Any = import_module(kind.module)
    try:
        with unpacker.open(io.BytesIO(packed)) as unpacked:
            return _read_chunks(unpacked, source, max(TRUSTED_CONTENT, kind.max_ratio * len(packed)))
    except InputError:
        raise
    except Exception as error:  # each module has errors of its own
        raise InputError(f"{source}: found a broken or incomplete {kind.name} file ({error})") from error


def unpacked_name(path: str | os.PathLike[str]) -> str:
    """The name of a file without its folder and the ending of a compressed one."""
    name = os.path.basename(path)
    stem, ending = os.path.splitext(name)
    return stem if ending in _COMPRESSIONS else name


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
    """The content of a text file, LF at the end of each line, no byte order mark; UTF-16 becomes UTF-8."""
    content = read_content(path)
    if content.startswith(_UTF16_MARKS):
        content = content.decode("utf-16", "replace").encode()
    return content.removeprefix(_UTF8_MARK).replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _take_stdin() -> IO[bytes]:
    """Standard input, which can be read only once."""
    if sys.stdin is None:
        raise InputError("standard input: found it closed, expected data")
    if sys.stdin in _spent:
        raise InputError(f"standard input: {STDIN!r} can be read only once; name a file instead")
    _spent.add(sys.stdin)
    return sys.stdin.buffer


def _read_chunks(file: IO[bytes], source: str, believable: int | None = None) -> bytes:
    """All of a file that may be endless; InputError once it exceeds the free memory or `believable` bytes."""
    chunks: list[bytes] = []
    n_bytes, room = 0, int(CONTENT_MEMORY_SHARE * available_memory())
    while chunk := file.read(_CHUNK):
        chunks.append(chunk)
        n_bytes += len(chunk)
        if believable is not None and n_bytes > believable:
            raise InputError(
                f"{source}: found a compressed file that unpacks to more than {believable} bytes, beyond belief for its"
                " size, expected an alignment, a tree or a model; unpack it if it is one"
            )
        if n_bytes > room:
            raise InputError(f"{source}: found more than {room} bytes, expected a file that fits the free memory")
    return b"".join(chunks)
