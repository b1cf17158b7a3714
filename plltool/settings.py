"""Settings as keywords of a function."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from numbers import Integral, Real
from os import PathLike
from typing import Any, ParamSpec, TypeVar

from plltool.errors import check_kind

P = ParamSpec("P")
R = TypeVar("R")
_ELSEWHERE = {  # options of the command that another function has
    ("search", "bootstrap"): "; plltool.search_supports makes replicates of a result",
    ("search", "supports"): "; plltool.search_supports computes supports of a result",
}
_KINDS: dict[str, tuple[Any, str]] = {  # by annotation, what it must be
    "Listener": (Callable, "a function"),
    "str | PathLike[str]": ((str, PathLike), "text or a path"),
}
_FIELDS = {"hardware": "; give the fields of plltool.Hardware as keywords, such as device=... and threads=..."}


def plain_number(value: Any) -> Any:
    """A number of another library, such as numpy's, as Python's own, which JSON has; anything else as it is."""
    if isinstance(value, Integral) and not isinstance(value, int):
        return int(value)
    return float(value) if isinstance(value, Real) and not isinstance(value, (int, float)) else value


def make_plain(options: Any) -> None:
    """Make the numbers of a frozen dataclass Python's own, see `plain_number`."""
    for name, value in vars(options).items():
        several = isinstance(value, (list, tuple))
        vars(options)[name] = tuple(map(plain_number, value)) if several else plain_number(value)


def takes_keywords(settings: Any) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function ``f(..., **keywords: Unpack[settings])``, where `settings` is a TypedDict.

    A call with a keyword that is neither a parameter nor a key of `settings` raises TypeError before anything is done;
    one whose options, listener or path is something else raises InputError.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        parameters = inspect.signature(function).parameters.values()
        named = [parameter.name for parameter in parameters if parameter.kind is not parameter.VAR_KEYWORD]
        known = (*named, *sorted(settings.__optional_keys__))
        written = {name: getattr(kind, "__forward_arg__", "") for name, kind in settings.__annotations__.items()}
        written |= {parameter.name: str(parameter.annotation) for parameter in parameters}  # annotations are texts
        kinds: dict[str, tuple[Any, str]] = {}  # by keyword, what it must be
        places: dict[str, str] = {}  # the fields of objects that the function takes, and how to write each one
        for name, kind in ((name, kind.removesuffix(" | None")) for name, kind in written.items()):
            if kind in _KINDS:
                kinds[name] = _KINDS[kind]
            elif is_dataclass(options := getattr(function, "__globals__", {}).get(kind)):
                kinds[name] = options, f"plltool.{kind}(...)"
                places |= {own.name: f"write {name}=plltool.{kind}({own.name}=...)" for own in fields(options)}

        @functools.wraps(function)
        def checked(*args: P.args, **keywords: P.kwargs) -> R:
            for name in keywords:
                if name not in known:
                    import difflib

                    called = function.__qualname__.removesuffix(".__init__")
                    hint = _ELSEWHERE.get((called, name)) or _FIELDS.get(name, "")
                    for similar in difflib.get_close_matches(name, (*known, *places), n=1):
                        hint = hint or f"; {f'did you mean {similar!r}?' if similar in known else places[similar]}"
                    # the words are Python's own
                    raise TypeError(f"{called}() got an unexpected keyword argument {name!r}{hint}")
                if name in kinds and not (keywords[name] is None and written[name].endswith(" | None")):
                    check_kind(name, keywords[name], *kinds[name])
                keywords[name] = plain_number(keywords[name])
            return function(*args, **keywords)

        return checked

    return decorate
