"""Objects as arrays and back, bit for bit, for checkpoints: a class declares with `saved` which attributes are kept.

The arrays are a text, which is JSON, and one array for each type of elements, in which those of all arrays follow each
other. In the text None, a number, a text or a list stands for itself. Every other value is an object with one name,
that of a declared class or of what it is, such as "tuple".
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

Arrays = Mapping[str, npt.NDArray[Any]]
T = TypeVar("T")

TEXT = "text"
MOST_BITS = 10_000  # of a number that JSON has; Python refuses long decimal ones
_SAVED: dict[str, tuple[type, tuple[str, ...]]] = {}  # declared classes by name


def saved(*attributes: str) -> Callable[[type[T]], type[T]]:
    """Declare which attributes of a class are saved; if none is named, all fields of a dataclass or named tuple.

    An object that is read has these attributes and those of its class. Its `__init__` is not called.
    """

    def declare(cls: type[T]) -> type[T]:
        assert cls.__name__ not in _SAVED, f"another class {cls.__name__} is saved"
        all_fields = tuple(own.name for own in fields(cls)) if is_dataclass(cls) else getattr(cls, "_fields", ())
        _SAVED[cls.__name__] = cls, attributes or all_fields
        return cls

    return declare


def to_arrays(value: object) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a value, for `from_arrays`; raises TypeError if a class in it is not declared."""
    writer = _Writer()
    text = json.dumps(writer.write(value)).encode()
    elements = {kind: np.concatenate(arrays) for kind, arrays in writer.elements.items()}
    return {TEXT: np.frombuffer(text, np.uint8), **elements}


def from_arrays(arrays: Arrays) -> Any:
    """The value that was given to `to_arrays`."""
    return _Reader(arrays).read(json.loads(arrays[TEXT].tobytes()))


class _Writer:
    def __init__(self) -> None:
        self.elements: dict[str, list[npt.NDArray[Any]]] = {}
        self._names: dict[tuple[Any, ...], int] = {}  # names of taxa, which many trees share: they are written once

    def write(self, value: Any) -> Any:
        """A value as JSON has it."""
        match value:
            case int() if value.bit_length() > MOST_BITS:
                return {"int": hex(value)}
            case None | bool() | int() | float() | str():
                return value
            case np.generic():
                return value.item()
            case list():
                return [self.write(one) for one in value]
        name = type(value).__name__
        if name in _SAVED:
            return {name: [self.write(getattr(value, attribute)) for attribute in _SAVED[name][1]]}
        match value:
            case np.ndarray():
                order: Literal["F", "C"] = "F" if value.flags.fnc else "C"
                self.elements.setdefault(value.dtype.str, []).append(value.ravel(order))
                return {"array": [value.dtype.str, list(value.shape), order]}
            case tuple() if value and all(isinstance(one, str) for one in value):
                if value in self._names:
                    return {"same": self._names[value]}
                self._names[value] = len(self._names)
                return {"names": list(value)}
            case tuple():
                return {"tuple": [self.write(one) for one in value]}
            case Mapping():
                return {"dict": [[self.write(key), self.write(one)] for key, one in value.items()]}
            case set() | frozenset():
                return {"set": [self.write(one) for one in sorted(value)]}
            case bytes():
                return {"bytes": value.hex()}
            case np.random.Generator():
                return {"generator": value.bit_generator.state}
        raise TypeError(f"{name} is not declared as saved")


class _Reader:
    def __init__(self, arrays: Arrays):
        self._arrays = arrays
        self._read = dict.fromkeys(arrays, 0)  # number of elements of each array
        self._names: list[tuple[str, ...]] = []

    def read(self, written: Any) -> Any:
        """The value that JSON stands for."""
        if isinstance(written, list):
            return [self.read(one) for one in written]
        if not isinstance(written, dict):
            return written
        ((name, content),) = written.items()
        if name in _SAVED:
            return self._build(*_SAVED[name], self.read(content))
        match name:
            case "array":
                kind, shape, order = content
                first = self._read[kind]
                self._read[kind] = end = first + int(np.prod(shape, dtype=np.intp))
                return self._arrays[kind][first:end].reshape(shape, order=order).copy(order)
            case "same":
                return self._names[content]
            case "names":
                self._names.append(tuple(content))
                return self._names[-1]
            case "tuple":
                return tuple(self.read(content))
            case "dict":
                return dict(self.read(content))
            case "int":
                return int(content, 16)
            case "set":
                return set(self.read(content))
            case "bytes":
                return bytes.fromhex(content)
            case "generator":
                rng = np.random.default_rng(0)
                rng.bit_generator.state = content
                return rng
        raise ValueError(f"{name} is no kind of value that is saved")

    def _build(self, cls: type, attributes: tuple[str, ...], values: list[Any]) -> Any:
        if issubclass(cls, tuple):
            return cls(*values)
        made = cls.__new__(cls)
        made.__dict__.update(zip(attributes, values, strict=True))
        return made
