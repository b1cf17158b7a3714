"""Colour and folded lines go to terminals, as far as user and terminal allow; pipes and files get plain text."""

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import click
import pytest
from command_line import RUN, Screen

from plltool.cli import reporting, terminal
from plltool.cli.heartbeat import Facts, draw_progress
from plltool.cli.reporting import Reporter
from plltool.progress import Progress

ESCAPE = "\x1b"
OPTIONS = ("--model", "HKY+F", "--device", "numpy", "--effort", "fast", "--threads", "1")


@pytest.mark.parametrize(
    ("wishes", "on_a_terminal", "in_a_pipe"),
    [
        ({}, True, False),
        ({"TERM": "dumb"}, False, False),
        ({"NO_COLOR": "1"}, False, False),
        ({"NO_COLOR": ""}, True, False),
        ({"FORCE_COLOR": "1"}, True, True),
        ({"FORCE_COLOR": "0"}, True, False),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, True, True),
        ({"CLICOLOR_FORCE": "1"}, True, True),
        ({"CLICOLOR": "0"}, False, False),
        ({"CLICOLOR": "1"}, True, False),
        ({"CLICOLOR": "0", "CLICOLOR_FORCE": "1"}, True, True),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False, False),
    ],
)
def test_where_colours_go(monkeypatch, wishes, on_a_terminal, in_a_pipe):
    for name, value in wishes.items():
        monkeypatch.setenv(name, value)
    assert terminal.has_colour(Screen()) is on_a_terminal
    assert terminal.has_colour(io.StringIO()) is in_a_pipe


@pytest.fixture
def put_on_screen(monkeypatch):
    """Call a function while stdout and stderr are a terminal of 30 columns."""
    monkeypatch.setattr(terminal, "count_columns", lambda stream: 30)

    def call(function, *arguments):
        with monkeypatch.context() as patch:
            for name in ("stdout", "stderr"):
                patch.setattr(sys, name, Screen())
            return function(*arguments)

    return call


@pytest.mark.parametrize("columns", [5, 12, 30, 60, 200])
def test_folded_lines_lose_no_word(monkeypatch, columns):
    monkeypatch.setattr(terminal, "count_columns", lambda stream: columns)
    line = f"plltool: {click.style('warning:', bold=True)} a line of words, one {'x' * 40} is long, and {'y' * 9}"
    rows = terminal.fold(line, Screen()).split("\n")
    assert " ".join(row.strip() for row in rows) == line
    assert all(row.startswith("  ") for row in rows[1:])
    longest = max(len(word) for word in click.unstyle(line).split())
    if columns > longest + 2:
        assert all(len(click.unstyle(row)) <= columns for row in rows)
        widths = [len(click.unstyle(row)) for row in rows]
        following = [len(click.unstyle(row.split()[0])) for row in rows[1:]]
        assert all(width + 1 + word > columns for width, word in zip(widths, following, strict=False)), "not full"
    assert terminal.fold(line, io.StringIO()) == line


def test_a_row_that_is_just_full():
    """Nothing is appended to it, and a word that would need one column more begins the next row."""
    line = f"{'a' * 40} {'b' * 39} c"
    screen = Screen()  # which does not say how wide it is
    assert terminal.fold(line, screen) == f"{'a' * 40} {'b' * 39}\n  c"
    assert terminal.fold(f"{'a' * 40} {'b' * 40}", screen) == f"{'a' * 40}\n  {'b' * 40}"


def test_messages(put_on_screen):
    assert put_on_screen(terminal.format_message, "all\n is well") == "plltool: all is well"
    error = put_on_screen(terminal.format_message, "x.nwk: no such file, says the system", terminal.ERROR)
    assert error == f"plltool: {click.style('error:', fg='red', bold=True)} x.nwk: no such\n  file, says the system"
    assert "\x1b[33m" in put_on_screen(terminal.format_message, "beware", terminal.WARNING)


def test_results(put_on_screen):
    bold, key = (lambda text: click.style(text, bold=True)), (lambda text: click.style(text, fg="green", bold=True))
    assert put_on_screen(terminal.format_result, "lnL: -1.5") == f"{bold('lnL:')} {key('-1.5')}"
    assert put_on_screen(terminal.format_result, "seconds: 2") == f"{bold('seconds:')} 2"
    assert put_on_screen(terminal.format_result, "a table  with  headings") == bold("a table  with  headings")
    assert put_on_screen(terminal.format_result, "  1   2.0  a row") == "  1   2.0  a row"
    assert put_on_screen(terminal.format_result, "fbp: what this kind of support means") == (
        f"{bold('fbp:')} what this kind of support\n  means"
    )


@pytest.mark.parametrize(
    "copied",
    ["tree: /a folder/of a name/with blanks/x.nwk", f"model: HKY{{{'1.5' * 9}}} + F", "tree: " + "(a,b c)" * 9],
)
def test_what_is_copied_is_not_folded(put_on_screen, copied):
    """A path, a model or a tree would not be the same with a line break in it."""
    assert click.unstyle(put_on_screen(terminal.format_result, copied)) == copied


def test_the_bar_in_colour_is_no_wider():
    facts = Facts("spr radius 10", 2.0, -12345.678901, 50.0, 50.0, "", "round 3/20", "12 moves", "tree 12")
    for columns in range(1, 160):
        coloured = draw_progress(facts, columns, in_colour=True)
        assert click.unstyle(coloured) == draw_progress(facts, columns)
    assert click.style("lnL -12345.679", bold=True) in coloured


# --- the program in a terminal ---------------------------------------------------------------------------------


def run_in_terminal(columns, *arguments, **environment):
    """What `plltool` writes to a terminal, stdout and stderr, and its exit status."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    command = [*RUN, *map(str, arguments)]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=os.environ | environment
    ) as running:
        os.close(theirs)
        pieces = []
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:  # as Linux says that the other side is closed
                break
            if not piece:
                break
            pieces.append(piece)
    os.close(ours)
    return b"".join(pieces).decode().replace("\r\n", "\n"), running.returncode


def test_a_search_in_a_terminal(small, tmp_path):
    text, status = run_in_terminal(60, "search", small, *OPTIONS, "--prefix", tmp_path / "x")
    assert status == 0
    assert "\x1b[J" in text, "no line was drawn over"
    assert "working on" not in text
    assert not re.search(r"^ +\d+\.\d s  ", text, re.MULTILINE), "a line for each round, as in a pipe"
    assert re.search(r"\x1b\[1mlnL:\x1b\[0m \x1b\[32m\x1b\[1m-\d+\.\d+\x1b\[0m\n", text)
    shown = click.unstyle(text).replace("\x1b[J", "")
    rows = [row.rpartition("\r")[2] for row in shown.splitlines()]
    assert [row for row in rows if len(row) > 60 and not row.startswith(("model: ", "rates: "))] == [
        row for row in rows if len(row) > 60 and str(tmp_path) in row
    ]
    assert "└" in text, "the tree is drawn"
    for path in tmp_path.iterdir():
        assert ESCAPE not in path.read_text(), path


def test_a_terminal_without_colour(small):
    text, _ = run_in_terminal(80, "search", small, *OPTIONS, NO_COLOR="1")
    assert set(re.findall(r"\x1b\[[\d;]*([A-Za-z])", text)) <= {"J", "A"}, "the line is drawn over, nothing is painted"
    assert "\x1b[J" in text


def test_a_dumb_terminal(small):
    text, _ = run_in_terminal(80, "search", small, *OPTIONS, TERM="dumb")
    assert ESCAPE not in text
    assert re.search(r"^ +\d+\.\d s  start ", text, re.MULTILINE)


def test_errors_in_a_terminal(tmp_path):
    text, status = run_in_terminal(60, "check", tmp_path / "none.fasta")
    assert status == 1
    assert text.startswith(f"plltool: {click.style('error:', fg='red', bold=True)} ")
    text, status = run_in_terminal(60, "check", "--devise", "numpy")
    assert status == 2
    assert f"{click.style('Error:', fg='red', bold=True)} no such option: --devise; did you mean --device?" in text


def test_help_in_a_terminal():
    text, _ = run_in_terminal(60, "report", "--help")
    assert text.startswith(f"{click.style('Usage:', bold=True)} plltool report ")
    assert click.style("Options:", bold=True) in text
    assert max(len(row) for row in click.unstyle(text).splitlines()) <= 60


def test_colour_in_a_pipe_on_request(plltool, small, monkeypatch):
    arguments = ("check", small, "--device", "numpy")
    plain = plltool(*arguments)
    monkeypatch.setenv("FORCE_COLOR", "1")
    coloured = plltool(*arguments)
    assert ESCAPE not in plain.stdout
    assert click.style("taxa:", bold=True) in coloured.stdout
    assert click.unstyle(coloured.stdout) == plain.stdout
    assert ESCAPE not in plltool(*arguments, "--json").stdout


def test_results_printed_on_the_way_do_not_follow_the_bar(monkeypatch):
    screen = Screen()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", screen)
        patch.setattr(reporting.terminal, "print_results", lambda lines: screen.write("\n".join(lines)))
        reporter = Reporter(quiet=False)
        reporter.progress(Progress("nni", 1, -1.0, 0, 1, 1.0))
        reporter.print_results(["x.fasta  agree"])
    assert screen.getvalue().endswith("\r\x1b[Jx.fasta  agree")
