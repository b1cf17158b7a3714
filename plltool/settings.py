"""Settings as keywords of a function."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

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
                    import difflib

                    called = function.__qualname__.removesuffix(".__init__")
                    hint = _find_place(function, name) or _ELSEWHERE.get((called, name), "")
                    similar = difflib.get_close_matches(name, known, n=1)
                    if similar and not hint:
                        hint = f"; did you mean {similar[0]!r}?"
                    # the words are Python's own
                    raise TypeError(f"{called}() got an unexpected keyword argument {name!r}{hint}")
            return function(*args, **keywords)

        return checked

    return decorate


def _find_place(function: Callable[..., Any], name: str) -> str:
    """A hint at the argument of a function that takes an object with a field of this name; "" if there is none."""
    for parameter in inspect.signature(function).parameters.values():
        kind = str(parameter.annotation).removesuffix(" | None")  # annotations are texts
        if name in getattr(getattr(function, "__globals__", {}).get(kind), "__dataclass_fields__", ()):
            return f"; write {parameter.name}=plltool.{kind}({name}=...)"
    return ""
