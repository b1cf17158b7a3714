"""Progress on a terminal is one line that is overwritten; elsewhere one line per round."""

import logging
import signal

import pytest

from plltool.cli.reporting import Reporter, describe_progress
from plltool.search.progress import Progress, StopSearch


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
    reporter = Reporter(quiet=False)
    reporter.progress(Progress("start", 1, -10.0, 0, 0, 0.5, stage_left=0.25, left=0.5))
    reporter.progress(Progress("spr", 1, -9.0, 3, 5, 1.0, stage_left=0.0, left=0.0))
    reporter.emit(logging.makeLogRecord({"msg": "by the way", "levelno": logging.INFO}))
    assert "\n" not in terminal.text.split("plltool: by the way")[0]
    assert "[##########----------]" in terminal.text
    assert "[####################]" in terminal.text


def test_describe_progress():
    line = describe_progress(Progress("spr", 2, -1234.5, 7, 10, 61.25))
    assert line.split() == ["61.2", "s", "spr", "radius", "10", "round", "2", "lnL", "-1234.500000", "7", "moves"]
    line = describe_progress(Progress("perturb", 3, -1.0, 0, 0, 1.0, n_rounds=20, stage_left=34.2, left=250.0))
    assert line.split("lnL")[0].split() == ["1.0", "s", "perturb", "round", "3/20"]
    assert line.endswith("0 moves  left: stage ~34 s, all ~4 min")


def test_an_interrupt_ends_the_search_at_the_next_event_and_the_second_one_at_once(monkeypatch):
    monkeypatch.setattr("sys.stderr", Terminal())
    event = Progress("nni", 1, -1.0, 0, 1, 1.0)
    started_with = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    before = signal.getsignal(signal.SIGINT)
    reporter = Reporter(quiet=True)
    with reporter.interrupts_wait():
        reporter.progress(event)
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(StopSearch):
            reporter.progress(event)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
    signal.signal(signal.SIGINT, started_with)
