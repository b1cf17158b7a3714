"""Fit a tree with IQ-TREE 3, from the library in PyPI's piqtree; its files are written as OUT.*.

    python scripts/benchmarks/iqtree3.py LIBRARY ALIGNMENT TREE MODEL OUT [--seed N] [OPTION ...]

LIBRARY is the file `_piqtree.*.so` of a wheel of piqtree 0.8 or later, for any version of Python. The OPTIONs are those
of IQ-TREE's command line, such as --scfl 1000. That needs --kernel-nonrev as well: in this library, IQ-TREE 3.1.2's
other kernel underflows there, and the factors are wrong. One thread.
"""

import argparse
import ctypes
import os
import sys
import tempfile
from pathlib import Path

import plltool


class Strings(ctypes.Structure):
    """An array of strings as the library takes it."""

    _fields_ = (("strings", ctypes.POINTER(ctypes.c_char_p)), ("length", ctypes.c_size_t))

    def __init__(self, texts: list[bytes]) -> None:
        super().__init__((ctypes.c_char_p * len(texts))(*texts), len(texts))


class Answer(ctypes.Structure):
    """What the library returns: a text, or an error."""

    _fields_ = (("text", ctypes.c_char_p), ("error", ctypes.c_char_p))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("library", "alignment", "tree"):
        parser.add_argument(name, type=Path)
    parser.add_argument("model")
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    given, others = parser.parse_known_args()
    # lazily, because fit_tree needs no symbols of Python, which may be another version
    library, out = ctypes.CDLL(str(given.library.resolve()), mode=os.RTLD_LAZY), given.out.resolve()
    library.fit_tree.restype = Answer
    data = plltool.read_alignment(given.alignment)
    names, rows = Strings([name.encode() for name in data.names]), Strings(list(data.rows))
    tree = given.tree.read_bytes().strip()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # the library chooses the names of its files
        texts = [ctypes.c_char_p(text) for text in (given.model.encode(), tree, " ".join(others).encode())]
        answer = library.fit_tree(ctypes.byref(names), ctypes.byref(rows), *texts[:2], False, given.seed, 1, texts[2])
        if answer.error:
            sys.exit(f"IQ-TREE 3: {answer.error.decode()}")
        for path in Path(folder).iterdir():
            plltool.write_bytes(Path(f"{out}.{path.name.partition('.')[2]}"), path.read_bytes())


if __name__ == "__main__":
    main()
