"""What results are in a notebook: a picture and a table, and the table for pandas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from plltool.errors import InputError
from plltool.reports.blocks import Drawn, Row

if TYPE_CHECKING:
    import pandas


class Shown:
    """A result that notebooks show, and whose table becomes a DataFrame.

    The line of `repr` is the title. A class says what else there is: a tree, the rows of a table, warnings.
    """

    no_rows: ClassVar[str] = "found no rows, expected at least one"  # why there is no table

    def _drawn(self) -> Drawn | None:
        """The tree of the result, None without one."""
        return None

    def _rows(self) -> Sequence[Row]:
        """The rows of the table, each with the same columns."""
        return ()

    def _repr_html_(self) -> str:
        """What a notebook shows: static HTML, which takes the colours of the page."""
        from plltool.reports.page import write_result

        return write_result(repr(self), self._drawn(), self._rows(), getattr(self, "warnings", ()))

    def to_dataframe(self) -> pandas.DataFrame:
        """The table of the result for pandas, with a row for each of what it is about; the class lists the columns.

        Raises InputError if pandas is not installed, or there is no table.
        """
        rows = self._rows()
        if not rows:
            raise InputError(f"table of {type(self).__name__}: {self.no_rows}")
        try:
            import pandas
        except ImportError:
            raise InputError("a DataFrame needs pandas: pip install 'plltool[notebook]'") from None
        return pandas.DataFrame(rows)
