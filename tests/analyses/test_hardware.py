"""DEVICE[:SETTING=VALUE]..., as `plltool compare` reads it."""

import pytest

from plltool.errors import InputError
from plltool.hardware import Hardware, parse_hardware, parse_size


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("auto", Hardware()),
        ("numpy:vw=2", Hardware("numpy", vw=2)),
        ("0:1", Hardware("0:1")),
        ("0:1:vw=8:precision=single:threads=3", Hardware("0:1", "single", 8, 3)),
        ("vw=4", Hardware(vw=4)),
        ("gpu:memory=2G", Hardware("gpu", memory=2 << 30)),
    ],
)
def test_parse(text, expected):
    assert parse_hardware(text) == expected


@pytest.mark.parametrize("text", ["numpy:vw=0", "numpy:vw=two", "numpy:precision=half", "numpy:width=2", "numpy:vw="])
def test_what_cannot_be_read_is_named(text):
    with pytest.raises(InputError, match=text.rsplit(":")[-1]):
        parse_hardware(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", 1),
        ("1000000", 1_000_000),
        ("3K", 3 * 1024),
        ("500M", 500 * 1024**2),
        ("500 MB", None),
        ("2g", 2 * 1024**3),
        ("1.5GiB", 3 * 512 * 1024**2),
        ("2TB", 2 * 1024**4),
        (" 7b ", 7),
        ("", None),
        ("0", None),
        ("0.1", None),
        ("-1G", None),
        ("2X", None),
        ("1e9", None),
        ("G", None),
    ],
)
def test_sizes(text, expected):
    if expected is not None:
        assert parse_size(text) == expected
        return
    with pytest.raises(InputError, match=f"memory: found {text!r}, expected a size such as 2G"):
        parse_size(text)


def test_memory_is_bytes():
    with pytest.raises(InputError, match="memory: found 'much'"):
        parse_hardware("gpu:memory=much")
    with pytest.raises(InputError, match="memory: found '2G'"):
        Hardware(memory="2G")
