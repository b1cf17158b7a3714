"""Progress in one line of a terminal, whose most important fields fit any width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from plltool.cli.heartbeat import Facts, about

GAP = "  "  # between two fields
WIDE, NARROW = 20, 10  # characters of the bar itself, in a wide terminal and in a narrow one

# A field is a list of texts, from the longest to the shortest, each with the turn in which it gives way to the next
# one where the line is too long; the first turn is 0. The last text stays.
Field = list[tuple[str, int]]
LAST = 99


def draw_progress(facts: Facts, columns: int, in_colour: bool = False) -> str:
    """The line for a terminal of `columns` columns, the last of which stays free."""
    fields: list[tuple[Field, dict[str, Any]]] = [
        (_bar(facts), {"fg": "cyan"}),
        (_time_left(facts), {}),
        (_lnl(facts), {"bold": True}),
        (_activity(facts), {}),
        ([(facts.round, 6), ("", LAST)], {}),
        ([(_clock(facts.seconds), 4), ("", LAST)], {}),
        ([(facts.moves, 2), ("", LAST)], {}),
        ([(facts.tree, 0), ("", LAST)], {}),
    ]
    texts = fit([field for field, _ in fields], columns - 1)
    if in_colour:
        styled = zip(texts, [style for _, style in fields], strict=True)
        texts = [click.style(text, **style) if text and style else text for text, style in styled]
    return GAP.join(filter(None, texts))


def fit(fields: Sequence[Field], width: int) -> list[str]:
    """A text of each field, for a line of at most `width` characters; no text if they do not fit at their shortest."""
    chosen = [0] * len(fields)
    while True:
        texts = [field[k][0] for field, k in zip(fields, chosen, strict=True)]
        if len(GAP.join(filter(None, texts))) <= width:
            return texts
        turns = [(field[k][1], number) for number, (field, k) in enumerate(zip(fields, chosen, strict=True))]
        turn, number = min(turns)
        if turn == LAST:
            return [""] * len(fields)
        chosen[number] += 1


def _bar(facts: Facts) -> Field:
    """How much of the work is over."""
    if facts.left is None:
        return [("", LAST)]
    share = facts.seconds / max(facts.seconds + facts.left, 1e-9)
    wide, narrow = (f"[{'#' * int(share * width):-<{width}}]" for width in (WIDE, NARROW))
    return [(wide, 1), (narrow, 3), ("", LAST)]


def _time_left(facts: Facts) -> Field:
    if facts.left is None:
        return [("", LAST)]
    left = about(facts.left)
    return [(f"{left} left{facts.and_later}", 5), (f"{left} left", 10), (left, 12), ("", LAST)]


def _lnl(facts: Facts) -> Field:
    if facts.best_lnl is None:
        return [("", LAST)]
    return [(f"lnL {facts.best_lnl:.3f}", 9), (f"lnL {facts.best_lnl:.0f}", 11), ("", LAST)]


def _activity(facts: Facts) -> Field:
    """What is being done, with fewer and fewer words."""
    words = facts.activity.split()
    shorter = [(" ".join(words[:number]), 8) for number in range(len(words) - 1, 1, -1)]
    return [(facts.activity, 7), (facts.activity.replace(" radius", ""), 8), *shorter, (words[0], 10), ("", LAST)]


def _clock(seconds: float) -> str:
    """Hours, minutes and seconds gone."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"
