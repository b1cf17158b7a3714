"""What is in the JSON objects that plltool writes: what makes one declares its `Keys`, and here is its JSON Schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from functools import wraps
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from plltool.constants import VERSION
from plltool.errors import InputError, show_object

DIALECT = "https://json-schema.org/draft/2020-12/schema"
F = TypeVar("F", bound=Callable[..., Any])
_SIMPLE = {type(None): "null", None: "null", bool: "boolean", int: "integer", float: "number", str: "string"}
_OPEN = Any, object  # anything that JSON has
_DECLARED = "json_keys"  # attribute of a function: the keys of the object that it makes


class Keys:
    """The keys of a JSON object, by itself or as the decorator of the function that makes the object.

    `names` are attributes of the class whose `as_record` it decorates, which have their types, or KEY=ATTRIBUTE, or
    simple keys such as KEY:int, KEY:str? (which may be null) and KEY:float[]. Other keys are `types` by name, and those
    that an object may lack `maybe`. An `as_record` adds its keys to those of the classes above. `like` is what else has
    all its keys. A type is a type hint, a class or a function that makes an object, or `Keys`; [X] is a list of X, and
    (X, Y) one of both. What `Annotated` adds to a hint is the type.

    Of `names`, those that the function leaves out are read from its first argument: the attribute, what a function that
    is its type makes of it, the command line that was passed, or VERSION. Seconds are rounded. The keys are in this
    order, behind those of the classes above; `names` may have keys of `types`, too.
    """

    def __init__(self, names: str = "", /, maybe: dict[str, Any] | None = None, like: Any = None, **types: Any):
        self.names, self.maybe, self.like, self.types = names.split(), maybe or {}, like, types

    def __call__(self, maker: F) -> F:
        source = {word.partition(":")[0].partition("=")[0]: word.partition(":")[0] for word in self.names}
        place = {key: number for number, key in enumerate(dict.fromkeys([*source, *self.types, *self.maybe]))}

        @wraps(maker)
        def make(owner: Any, *given: Any, **named: Any) -> dict[str, Any]:
            made = maker(owner, *given, **named)
            missing = [key for key in source if key not in made]
            if not missing:
                return made
            known = {"version": VERSION, "command": next(iter((*given, *named.values())), None)}
            for key in missing:
                name = source[key].rpartition("=")[2]
                kind: Any = self.types.get(key)
                value = getattr(owner, name, known.get(key))
                made[key] = kind(value) if hasattr(kind, _DECLARED) else _plain(value)
            if "seconds" in missing:
                made["seconds"] = round(made["seconds"], 3)
            return {key: made[key] for key in sorted(made, key=lambda key: place.get(key, -1))}

        setattr(make, _DECLARED, self)
        return cast(F, make)


def _plain(value: Any) -> Any:
    """The value of an attribute as JSON has it."""
    if hasattr(value, "_asdict"):
        return value._asdict()
    if isinstance(value, (list, tuple)):
        return [_plain(own) for own in value]
    if hasattr(value, "as_record") or callable(value):
        return value.as_record() if hasattr(value, "as_record") else value()
    is_object = is_dataclass(value) and not isinstance(value, type)
    return asdict(value) if is_object else dict(value) if isinstance(value, Mapping) else value


def _read(owner: Any, word: str) -> tuple[str, Any]:
    """A key among the names of `Keys`, and its type."""
    key, simple, what = word.partition(":")
    if simple:
        kind: Any = next(own for own in _SIMPLE if own is not None and own.__name__ == what.rstrip("[]?"))
        return key, [kind] if what.endswith("[]") else (kind, None) if what.endswith("?") else kind
    name = key.rpartition("=")[2]
    value = getattr(owner, name, None)
    if hasattr(value, _DECLARED):
        kind = value
    elif isinstance(value, property):
        kind = get_type_hints(value.fget)["return"]
    else:
        kind = get_type_hints(owner, include_extras=True)[name]
    return key.partition("=")[0], kind


def _keys_of(kind: Any) -> tuple[dict[str, Any], set[str]]:
    """The types of all keys of the objects that `kind` makes, and which of the keys each object has."""
    if isinstance(kind, Keys):
        declared = [kind]
    elif isinstance(kind, type):
        makers = [vars(base).get("as_record") for base in reversed(kind.__mro__)]
        declared = [getattr(own, _DECLARED) for own in makers if hasattr(own, _DECLARED)]
    else:
        declared = [getattr(kind, _DECLARED)]
    if not declared:
        names = [own.name for own in fields(kind)] if is_dataclass(kind) else kind._fields
        declared = [Keys(" ".join(names))]
    types: dict[str, Any] = {}
    always: set[str] = set()
    for own in declared:
        if own.like is not None:
            types, always = _keys_of(own.like)
        given = dict((word, None) if word in own.types else _read(kind, word) for word in own.names) | own.types
        types |= given | own.maybe
        always = (always | given.keys()) - own.maybe.keys()
    return types, always


def schema_of(kind: Any) -> dict[str, Any]:
    """The JSON Schema of what `kind` becomes in JSON, a type as `Keys` has them. Objects have no other keys."""
    if isinstance(kind, list):
        return {"type": "array", "items": schema_of(kind[0])}
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return schema_of(kind.__metadata__[0])
    if isinstance(kind, tuple) or origin in (Union, UnionType):
        found = [schema_of(own) for own in (kind if isinstance(kind, tuple) else inner)]
        simple = all(own.keys() == {"type"} for own in found)
        return {"type": [own["type"] for own in found]} if simple else {"anyOf": found}
    if kind in _SIMPLE or kind in _OPEN:
        return {"type": _SIMPLE[kind]} if kind in _SIMPLE else {}
    if origin is tuple and inner[-1] is not Ellipsis:
        items = [schema_of(own) for own in inner]
        return {"type": "array", "prefixItems": items, "items": False, "minItems": len(items)}
    if origin in (list, tuple, Sequence):
        return {"type": "array", "items": schema_of(inner[0])}
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": schema_of(inner[1])}
    types, always = _keys_of(kind)
    properties = {name: schema_of(own) for name, own in types.items()}
    required = [name for name in types if name in always]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def json_schema(*results: type) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the records of a class of results, such as `SearchResult`, or of several.

    Its ``$id`` has the version of plltool, which records have as well. InputError for something else.
    """
    if not results or not all(isinstance(own, type) and hasattr(own, "as_record") for own in results):
        raise InputError(f"found {show_object(results)}, expected classes of results, such as plltool.SearchResult")
    name = f"urn:plltool:{VERSION}:{'+'.join(own.__name__ for own in results)}"
    return {"$schema": DIALECT, "$id": name, **schema_of(results if len(results) > 1 else results[0])}
