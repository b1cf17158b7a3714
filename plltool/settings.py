"""Settings as fields of a dataclass, from which options of the command line follow, and as keywords of a function."""

from __future__ import annotations

import functools
import inspect
import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, dataclass_transform

from plltool import constants

T = TypeVar("T")
LISTS = "choices", "forms"  # words whose values are several words


@functools.cache
def _read_table() -> dict[str, dict[str, tuple[list[str], str]]]:
    """The words and the help of each field, by class, in `settings.txt`."""
    table: dict[str, dict[str, tuple[list[str], str]]] = {}
    text = Path(__file__).with_name("settings.txt").read_text(encoding="utf-8")
    for line in re.sub(r"\n +", " ", text).splitlines():
        if line.startswith("["):
            table[line.strip("[]")] = block = {}
        elif line and not line.startswith("#"):
            words, _, help_text = line.partition(" | ")
            name, *own = words.split()
            block[name] = own, help_text
    return table


@dataclass_transform(frozen_default=True)
def with_options(cls: type[T]) -> type[T]:
    """Decorate a class, which becomes a frozen dataclass. Commands that take it have an option for some of its fields.

    They are in `settings.txt`; the metadata of each field has what `plltool.cli` makes its "option" of, and "forms".
    """
    module = sys.modules[cls.__module__]
    known = vars(constants) | vars(module)

    def read(key: str, value: str) -> Any:
        if key == "parse":  # by its name, for it may come later in the module
            return lambda text: getattr(module, value)(text)
        if key == "metavar":
            return value
        return known[value] if value.isupper() else value.split("|") if key in LISTS else json.loads(value)

    for name, (words, help_text) in _read_table()[cls.__name__].items():
        own = {key: read(key, value) for key, _, value in (word.partition("=") for word in words if "=" in word)}
        forms = own.pop("forms", None)
        own["names"] = tuple(word for word in words if word.startswith("--"))
        own |= {"help": help_text.format_map(known), "expert": "expert" in words}
        setattr(cls, name, field(default=getattr(cls, name), metadata={"option": own, "forms": forms}))
    return dataclass(frozen=True)(cls)


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
                    similar = difflib.get_close_matches(name, known, n=1)
                    hint = f"; did you mean {similar[0]!r}?" if similar else _ELSEWHERE.get((called, name), "")
                    raise TypeError(
                        f"{called}() got an unexpected keyword argument {name!r}{hint}"
                    )  # as Python says it
            return function(*args, **keywords)

        return checked

    return decorate
