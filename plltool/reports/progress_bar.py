"""A progress bar for notebooks and terminals, by tqdm."""

from __future__ import annotations

from typing import Any, Self

from plltool.errors import InputError
from plltool.progress import Progress

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

    Raises
    ------
    InputError
        If tqdm is not installed.
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
