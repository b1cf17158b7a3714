"""Objects that become arrays and come back."""

import hashlib
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import plltool
from plltool import codec
from plltool.codec import from_arrays, saved, to_arrays
from plltool.io.checkpoint import FORMAT


@saved()
class Pair(NamedTuple):
    first: object
    second: object


@saved()
@dataclass(frozen=True)
class Box:
    content: object
    label: str = "box"


@saved("kept")
class Partly:
    forgotten = "nothing"

    def __init__(self, kept, forgotten):
        self.kept = kept
        self.forgotten = forgotten


@dataclass
class Undeclared:
    content: list = field(default_factory=list)


def back(value):
    return from_arrays(to_arrays(value))


@pytest.mark.parametrize(
    "value",
    [None, True, 7, 2**127, 0.1 + 0.2, -0.0, np.inf, 1e-308, "a\udc80\0é", [], (), (1, (2, None)), ["x", [3.5]],
     b"\0\xff", {"a": 1, 2: (3,)}, {b"a"}, ("a", "b"),
     [("a", "b"), ("b",), ("a", "b"), ()], Pair(1, Box(Pair("x", [])))],
)  # fmt: skip
def test_values_come_back_as_they_were(value):
    found = back(value)
    assert type(found) is type(value)
    assert repr(found) == repr(value)


def test_numbers_of_numpy_become_plain_ones():
    found = back([np.float64(0.1), np.intp(3), np.bool_(True)])
    assert [*map(type, found)] == [float, int, bool]
    assert found == [0.1, 3, True]
    assert np.isnan(back(np.nan))
    assert back({b"b", b"a", b"c"}) == {b"a", b"b", b"c"}
    assert back(-(3**30_000)) == -(3**30_000), "more digits than Python shows"


@pytest.mark.parametrize("kind", ["float64", "float32", "int32", "intp", "uint8", "bool", "U5"])
def test_arrays_keep_type_shape_order_and_every_bit(kind):
    arrays = [np.arange(24).reshape(2, 3, 4).astype(kind), np.zeros((0, 2), kind), np.array(5).astype(kind)]
    arrays += [arrays[0].T, arrays[0][:, ::2]]
    for one, other in zip(back(arrays), arrays, strict=True):
        assert (one.dtype, one.shape, one.flags.fnc) == (other.dtype, other.shape, other.flags.fnc)
        assert one.tobytes() == other.tobytes()
        assert one.flags.owndata
        assert one.flags.writeable


def test_a_generator_goes_on():
    rng = np.random.default_rng(3)
    rng.random(5)
    found = back(rng)
    assert found.random(4).tolist() == rng.random(4).tolist()


def test_what_is_not_declared():
    """Some attributes of a class that is, and a class that is not."""
    found = back(Partly(np.ones(2), "much"))
    assert found.kept.tolist() == [1.0, 1.0]
    assert found.forgotten == "nothing"
    with pytest.raises(TypeError, match="Undeclared is not declared as saved"):
        to_arrays([Undeclared()])
    with pytest.raises(ValueError, match="Unknown is no kind"):
        from_arrays({"text": np.frombuffer(b'{"Unknown": []}', np.uint8)})


KEPT = 7, "ad5f3a25b4eaae22"  # the format of checkpoints, and a digest of what they keep of each class


def test_checkpoints_that_keep_other_attributes_have_another_format():
    root = Path(plltool.__file__).parent
    for path in root.rglob("*.py"):
        if "@saved(" in path.read_text(encoding="utf-8"):
            import_module(".".join(path.relative_to(root.parent).with_suffix("").parts))
    own = {name: kept for name, (cls, kept) in codec._SAVED.items() if cls.__module__.startswith("plltool.")}
    digest = hashlib.sha256(repr(sorted(own.items())).encode()).hexdigest()[:16]
    assert (FORMAT, digest) == KEPT, "another digest needs the next number in `plltool/io/checkpoint.py`"
