"""Fields of a dataclass from which options of the command line follow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any


def setting(
    default: Any,
    help: str,
    *names: str,
    choices: Sequence[str] = (),
    parse: Callable[[str], Any] | None = None,
    metavar: str | None = None,
    expert: bool = False,
    **bounds: float | bool,
) -> Any:
    """A field, which a command that takes its dataclass has as an option.

    Parameters
    ----------
    help : the help of the option
    names : its names; --FIELD without any
    parse : makes the value from the text of the option; InputError if it cannot
    metavar : what the help calls the value
    expert : whether the option is for experts
    bounds : min, max, min_open, max_open: of click's ranges
    """
    known = {"choices": choices, "parse": parse, "metavar": metavar}
    given = {key: value for key, value in known.items() if value}
    return field(default=default, metadata={"help": help, "names": names, "expert": expert, **given, **bounds})
