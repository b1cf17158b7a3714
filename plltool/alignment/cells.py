"""The cells of tables of named states."""

from __future__ import annotations

from typing import NamedTuple

from plltool.alignment.states import EITHER, StateSpace
from plltool.errors import show_name

_MAX_LISTED = 5  # states in one message


class CellTable(NamedTuple):
    """The names of a table's columns, and the cell that each byte of its rows stands for."""

    columns: tuple[str, ...]
    cells: tuple[str, ...]

    def describe_misfit(self, byte: int, site: int, states: StateSpace) -> str:
        """The end of a message on a cell, in a column from 0, with another name than those of the states."""
        cell = self.cells[byte]
        wrong = next(name for name in cell.split(EITHER) if name not in states.symbols)
        within = f" in {show_name(cell)}" if wrong != cell else ""
        more = f" and {states.n_states - _MAX_LISTED} more" if states.n_states > _MAX_LISTED else ""
        legal = f"one of the states {', '.join(states.symbols[:_MAX_LISTED])}{more}"
        found = f"column {show_name(self.columns[site])}: found {show_name(wrong)}{within}"
        return f"{found}, expected {legal}, several with '{EITHER}' between, or '?'"
