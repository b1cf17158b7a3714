"""What notebooks show: of a result a picture and a table, which pandas gets, too, and of a run a progress bar."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

from plltool.errors import InputError, count
from plltool.io.newick import parse_nodes
from plltool.progress import Progress
from plltool.reports.blocks import Content, Items, Row, Table, write_html
from plltool.reports.plots import Markup, element, read_part
from plltool.reports.tree_blocks import Drawn, MarkedTree, TreePicture

if TYPE_CHECKING:
    import pandas


SHOWN_ROWS = 12  # of a table
_WIDEST = 48  # letters of a cell
_LARGE = 100.0  # numbers beyond this have decimals, others significant digits


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
        drawn, rows, warnings = self._drawn(), self._rows(), getattr(self, "warnings", ())
        content: list[Content] = [repr(self).strip("<>")]
        if isinstance(drawn, MarkedTree):
            content.append(drawn)
        elif drawn is not None:
            newick, kinds = drawn
            content.append(TreePicture(parse_nodes(newick, "the tree").ladderized(), kinds))
        if rows:
            more = len(rows) - SHOWN_ROWS
            caption = f"The first {SHOWN_ROWS} of {len(rows)} rows of to_dataframe()" if more > 0 else "to_dataframe()"
            written = [[_write_value(value) for value in row.values()] for row in rows[:SHOWN_ROWS]]
            content.append(Table(caption, tuple(rows[0]), written))
        if warnings:
            content += [f"{count(len(warnings), 'warning')}:", Items(warnings)]
        style = element("style", Markup(read_part("notebook.css")))
        return element("div", style, *map(write_html, content), class_="plltool")

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


def _write_value(value: Any) -> str:
    if isinstance(value, float):
        return "-" if math.isnan(value) else f"{value:.3f}" if abs(value) > _LARGE else f"{value:.4g}"
    text = ", ".join(map(_write_value, value)) if isinstance(value, tuple) else str(value)
    return "-" if value is None else text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"


_PER_CENT = 100.0
_KNOWN, _UNKNOWN = "{percentage:3.0f} %|{bar}| {elapsed} {desc}", "{elapsed} {desc}"


class ProgressBar:
    """A bar that shows the progress of a run, a `listener`: a widget in a notebook, a line on a terminal.

        with plltool.ProgressBar() as bar:
            result = plltool.search("primates.phy", listener=bar)

    It tells the stage, the round, lnL, and about how long the run will still take.

    Parameters
    ----------
    settings : of tqdm, such as `leave=False` or `ncols=80`

    Raises InputError if tqdm is not installed.
    """

    def __init__(self, **settings: Any):
        try:
            from tqdm.auto import tqdm
        except ImportError:
            raise InputError("a progress bar needs tqdm: pip install 'plltool[notebook]'") from None
        self._format_interval = tqdm.format_interval
        self._bar = tqdm(total=_PER_CENT, bar_format=_UNKNOWN, **settings)

    def __call__(self, event: Progress) -> None:
        """Show an event."""
        facts = [f"{event.name}, {event.count}", f"lnL {event.lnl:.3f}"]
        if event.left is not None:
            facts.append(f"about {self._format_interval(event.left)} left")
            self._bar.bar_format = _KNOWN
            self._bar.n = _PER_CENT * event.seconds / max(event.seconds + event.left, 1e-9)
        self._bar.set_description_str(", ".join(facts))  # which draws it

    def close(self) -> None:
        """End the bar, and leave it on the screen."""
        self._bar.n = self._bar.total
        self._bar.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self._bar.close()  # where the run stopped
