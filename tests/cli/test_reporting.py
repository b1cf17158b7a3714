"""Progress on a terminal is one line that is overwritten; elsewhere one line per round."""

import logging

from plltool.cli.reporting import Reporter, describe_progress
from plltool.search.progress import Progress


class Terminal:
    """A stderr that claims to be a terminal."""

    def __init__(self):
        self.text = ""

    def isatty(self):
        return True

    def write(self, text):
        self.text += text

    def flush(self):
        pass


def test_a_bar_on_a_terminal(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    reporter = Reporter(quiet=False, n_stages=2)
    reporter.progress(Progress("start", 1, -10.0, 0, 0, 0.5))
    reporter.progress(Progress("spr", 1, -9.0, 3, 5, 1.0))
    reporter.emit(logging.makeLogRecord({"msg": "by the way", "levelno": logging.INFO}))
    assert "\n" not in terminal.text.split("plltool: by the way")[0]
    assert "[##########----------]" in terminal.text
    assert "[####################]" in terminal.text


def test_describe_progress():
    line = describe_progress(Progress("spr", 2, -1234.5, 7, 10, 61.25))
    assert line.split() == ["61.2", "s", "spr", "radius", "10", "round", "2", "lnL", "-1234.500000", "7", "moves"]
