"""Values of sites as text: a table, or TREE-PUZZLE's format of likelihoods, which CONSEL reads."""

from __future__ import annotations

import re
from collections.abc import Sequence
from os import PathLike, fspath
from typing import Any

import numpy as np

from plltool.arrays import FloatArray
from plltool.errors import InputError, show_name
from plltool.io.files import read_text, source_name

PUZZLE_ENDING = ".sitelh"


def format_sites(name: str, values: FloatArray) -> str:
    """A table of site, from 1, and a value (n_sites,) called `name`, separated by a tab."""
    rows = [f"{site}\t{value!r}" for site, value in enumerate(values.tolist(), start=1)]
    return "\n".join([f"site\t{name}", *rows]) + "\n"


def format_frequencies(frequencies: FloatArray) -> str:
    """Frequencies of states (n_sites, n_states) as IQ-TREE's file .sitefreq: a line of a site, from 1, and numbers."""
    rows = enumerate(frequencies.tolist(), start=1)
    return "".join(f"{site} {' '.join(map(repr, row))}\n" for site, row in rows)


def read_frequencies(path: str | PathLike[str], n_sites: int, symbols: Sequence[str]) -> FloatArray:
    """Frequencies (n_sites, n_states) of the states `symbols` from such a file, which may have its lines in any order.

    Raises InputError if it cannot be read, or does not have one line with these numbers for each site.
    """
    source, rows = source_name(path), dict[int, list[float]]()
    text = read_text(path).decode("utf-8", "surrogateescape")
    for number, words in enumerate(map(str.split, text.splitlines()), start=1):
        if not words:
            continue
        site, where = words[0], f"{source}: line {number}"
        if not re.fullmatch("[0-9]{1,9}", site) or not 1 <= int(site) <= n_sites:
            raise InputError(f"{where}: found {show_name(site)}, expected the number of a site, 1 to {n_sites}")
        if int(site) in rows:
            raise InputError(f"{where}: site {site} is given twice")
        try:
            rows[int(site)] = list(map(float, words[1:]))
        except ValueError as error:
            raise InputError(f"{where}: {error}") from None
        if len(words) != len(symbols) + 1:
            expected = f"{len(symbols)} frequencies ({' '.join(symbols)})"
            raise InputError(f"{where}: found {len(words) - 1} numbers, expected {expected}")
    missing = next((site for site in range(1, n_sites + 1) if site not in rows), None)
    if missing is not None:
        raise InputError(f"{source}: found no frequencies of site {missing}")
    return np.array([rows[site] for site in range(1, n_sites + 1)])


def format_puzzle(site_lnl: FloatArray) -> str:
    """lnL (n_trees, n_sites) in TREE-PUZZLE's format: the numbers of trees and sites, then a line for each tree.

    Sites that are in no part (NaN) are left out.
    """
    known = site_lnl[:, ~np.isnan(site_lnl).any(axis=0)]
    lines = [f"{len(known)} {known.shape[1]}"]
    lines += [f"Tree{number:<6d}" + " ".join(map(repr, row)) for number, row in enumerate(known.tolist(), start=1)]
    return "\n".join(lines) + "\n"


def format_for(path: str | PathLike[str], site_lnl: FloatArray) -> str:
    """lnL (n_sites,) in the format that the file's name asks for: for CONSEL if it ends in PUZZLE_ENDING."""
    is_puzzle = fspath(path).endswith(PUZZLE_ENDING)
    return format_puzzle(site_lnl[None]) if is_puzzle else format_sites("lnl", site_lnl)


def site_rows(**columns: FloatArray | None) -> list[dict[str, Any]]:
    """A row for each site, from 1, with what is known of it: (n_sites,) by the name of the column."""
    known = {name: values.tolist() for name, values in columns.items() if values is not None}
    rows = zip(*known.values(), strict=True)
    return [{"site": site, **dict(zip(known, row, strict=True))} for site, row in enumerate(rows, start=1)]
