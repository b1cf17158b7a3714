"""Numbers as a reader likes them."""

from __future__ import annotations


def share(value: float) -> str:
    return f"{100.0 * value:.1f} %"


def count(number: int, noun: str) -> str:
    """A number of things, which are several unless there is one."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def duration(seconds: float) -> str:
    """A time in the units that suit it."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, hours = seconds / 60.0, seconds / 3600.0
    return f"{minutes:.1f} min" if hours < 1 else f"{hours:.1f} h"


def score(value: float | None) -> str:
    """A score, or a hyphen where there is none."""
    return "-" if value is None else f"{value:.3f}"
