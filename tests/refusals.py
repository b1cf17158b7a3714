"""What messages of refused input have in common, for tests of all folders."""

import re

import pytest

from plltool.errors import InputError

LINE = r"[^\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]*"  # without any end of a line that Python knows


def refused(message, start=""):
    """The code within raises an InputError of one line, which begins with `start` and has the message in it."""
    return pytest.raises(InputError, match=rf"\A{re.escape(str(start))}{LINE}{re.escape(message)}{LINE}\Z")
