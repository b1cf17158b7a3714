"""Values of sites as text: a table, or TREE-PUZZLE's format of likelihoods, which CONSEL reads."""

from __future__ import annotations

from os import PathLike, fspath
from typing import Any

import numpy as np

from plltool.arrays import FloatArray

PUZZLE_ENDING = ".sitelh"


def format_sites(name: str, values: FloatArray) -> str:
    """A table of site, from 1, and a value (n_sites,) called `name`, separated by a tab."""
    rows = [f"{site}\t{value!r}" for site, value in enumerate(values.tolist(), start=1)]
    return "\n".join([f"site\t{name}", *rows]) + "\n"


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
