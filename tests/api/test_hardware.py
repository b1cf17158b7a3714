"""DEVICE[:SETTING=VALUE]..., as `plltool compare` reads it."""

import pytest

from plltool.errors import InputError
from plltool.hardware import Hardware, parse_hardware


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("auto", Hardware()),
        ("numpy:vw=2", Hardware("numpy", vw=2)),
        ("0:1", Hardware("0:1")),
        ("0:1:vw=8:precision=single:threads=3", Hardware("0:1", "single", 8, 3)),
        ("vw=4", Hardware(vw=4)),
    ],
)
def test_parse(text, expected):
    assert parse_hardware(text) == expected


@pytest.mark.parametrize("text", ["numpy:vw=0", "numpy:vw=two", "numpy:precision=half", "numpy:width=2", "numpy:vw="])
def test_what_cannot_be_read_is_named(text):
    with pytest.raises(InputError, match=text.rsplit(":")[-1]):
        parse_hardware(text)
