"""The bytes of a user's file, unpacked where it is gzipped."""

from __future__ import annotations

import gzip
import os
import zlib

from plltool.errors import InputError

_GZIP_MAGIC = b"\x1f\x8b"
_UTF8_MARK = b"\xef\xbb\xbf"


def read_content(path: str | os.PathLike[str]) -> bytes:
    """The content of a file, gzipped or not, which its first bytes tell.

    Raises
    ------
    InputError
        If it cannot be read, or is a broken or incomplete gzip file.
    """
    source = os.fspath(path)
    try:
        with open(source, "rb") as file:
            content = file.read()
        return gzip.decompress(content) if content.startswith(_GZIP_MAGIC) else content
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{source}: found a broken or incomplete gzip file ({error})") from error
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL character
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise InputError(f"{source}: cannot read the file: {reason}") from error


def read_text(path: str | os.PathLike[str]) -> bytes:
    """The content of a text file, LF at the end of each line, no UTF-8 byte order mark; errors as of `read_content`."""
    return read_content(path).removeprefix(_UTF8_MARK).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
