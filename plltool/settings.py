"""Settings as fields of a dataclass, from which options of the command line follow, and as keywords of a function."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, ParamSpec, TypeVar


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


P = ParamSpec("P")
R = TypeVar("R")
_ELSEWHERE = {  # options of the command that another function has
    ("search", "bootstrap"): "; plltool.search_supports makes replicates of a result",
    ("search", "supports"): "; plltool.search_supports computes supports of a result",
}


def takes_keywords(settings: Any) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function ``f(..., **keywords: Unpack[settings])``, where `settings` is a TypedDict.

    A call with a keyword that is neither a parameter nor a key of `settings` raises TypeError before anything is done.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        known = (*inspect.signature(function).parameters, *sorted(settings.__optional_keys__))

        @functools.wraps(function)
        def checked(*args: P.args, **keywords: P.kwargs) -> R:
            for name in keywords:
                if name not in known:
                    raise TypeError(_describe_unknown(function.__qualname__, name, known))
            return function(*args, **keywords)

        return checked

    return decorate


def _describe_unknown(function: str, name: str, known: tuple[str, ...]) -> str:
    """Python's own message, and the most similar name."""
    import difflib

    similar = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {similar[0]!r}?" if similar else _ELSEWHERE.get((function, name), "")
    return f"{function.removesuffix('.__init__')}() got an unexpected keyword argument {name!r}{hint}"
