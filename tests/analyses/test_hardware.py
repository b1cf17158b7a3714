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


def test_sizes():
    texts = "1", "1000000", "3K", "500M", "2g", "1.5GiB", "2TB", " 7b "
    sizes = 1, 1_000_000, 3 * 1024, 500 * 1024**2, 2 * 1024**3, 3 * 512 * 1024**2, 2 * 1024**4, 7
    assert tuple(map(parse_size, texts)) == sizes


@pytest.mark.parametrize("text", ["500 MB", "", "0", "0.1", "-1G", "2X", "1e9", "G"])
def test_what_is_no_size(text):
    with pytest.raises(InputError, match=f"memory: found {text!r}, expected a size such as 2G"):
        parse_size(text)


def test_memory_is_bytes():
    with pytest.raises(InputError, match="memory: found 'much'"):
        parse_hardware("gpu:memory=much")
    with pytest.raises(InputError, match="memory: found '2G'"):
        Hardware(memory="2G")
