"""Progress on a terminal is one line that is overwritten; elsewhere one line per round."""

import errno
import io
import json
import logging
import math
import os
import signal
import time
from types import SimpleNamespace

import pytest
from command_line import Screen

from plltool import progress
from plltool.cli import heartbeat, reporting
from plltool.cli.heartbeat import Facts, draw_progress
from plltool.cli.reporting import Reporter, describe_progress
from plltool.errors import InputError
from plltool.progress import Progress, StopSearch, announce


@pytest.fixture(autouse=True)
def no_colour(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")


def test_a_bar_on_a_terminal(monkeypatch):
    terminal = Screen()
    monkeypatch.setattr("sys.stderr", terminal)
    reporter = Reporter(quiet=False)
    reporter.progress(Progress("start", 1, -10.0, 0, 0, 0.5, stage_left=0.25, left=600.0))
    reporter.progress(Progress("spr", 1, -9.0, 3, 5, 1.0, stage_left=0.0, left=300.0))
    reporter.emit(logging.makeLogRecord({"msg": "by the way", "levelno": logging.INFO}))
    before, after = terminal.getvalue().split("plltool: by the way\n")
    assert "\n" not in before
    bar = f"[{20 * '-'}]"
    assert f"{bar}  ~10 min left  lnL -10.000  start  round 1  0:00:00" in before
    assert "[----------]  ~5 min left  lnL -9.000  spr radius 5  round 1  0:00:00  3 moves" in before
    assert "~5 min left" in after, "the bar is drawn once more below a message"


FACTS = {
    "activity": "spr radius 10",
    "activity_seconds": 2.0,
    "best_lnl": -12345.678901,
    "seconds": 5025.0,
    "left": 5025.0,
    "later": "supports",
    "round": "round 3/20",
    "moves": "12 moves",
    "tree": "tree 12",
}


@pytest.mark.parametrize("activity", ["spr radius 10", "parsimony trees to estimate the difficulty"])
def test_the_bar_fits_any_width(activity):
    """From 40 columns up it has the time left, the lnL and the stage, in that order; words are whole."""
    facts = Facts(**FACTS | {"activity": activity})
    widest = draw_progress(facts, 1000)
    bar = "[##########----------]"
    rest = f"lnL -12345.679  {activity}  round 3/20  1:23:45  12 moves  tree 12"
    assert widest == f"{bar}  ~84 min left, then supports  {rest}"
    words = {*widest.replace(",", "").split(), "left,", "[#####-----]", "-12346"}
    for columns in range(1, 160):
        line = draw_progress(facts, columns)
        assert len(line) < columns
        assert set(line.split()) <= words, line
        if columns >= 40:
            assert line.index("~84 min left") < line.index(" lnL -12345.679 ") < line.index(activity.split()[0])
    assert "lnL" not in draw_progress(Facts(**FACTS | {"best_lnl": None}), 80)


def test_a_line_that_a_narrower_terminal_has_wrapped_is_erased(monkeypatch):
    terminal = Screen()
    monkeypatch.setattr("sys.stderr", terminal)
    columns = [120]
    monkeypatch.setattr(reporting.terminal, "count_columns", lambda stream: columns[0])
    reporter = Reporter(quiet=False)
    event = Progress("spr", 1, -9.0, 3, 5, 1.0, stage_left=0.0, left=300.0)
    reporter.progress(event)
    columns[0] = len(terminal.getvalue()) // 3
    reporter.progress(event)
    assert "\x1b[3A\r\x1b[J" in terminal.getvalue()


def test_the_clock_is_that_of_the_whole_run(monkeypatch, tmp_path):
    """Each step of a search counts its own seconds, and the supports begin at 0."""
    now = [0.0]
    monkeypatch.setattr(heartbeat.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(reporting.job, "given_command", lambda: "plltool search x")
    log = tmp_path / "x.log"
    reporter = Reporter(True, log)
    with log.open("w") as reporter._file:
        reporter.expect("bootstrap")
        for seconds, stage in ((10.0, "ufboot"), (70.0, "bootstrap")):
            now[0] = seconds
            reporter.progress(Progress(stage, 1, -1.0, 0, 0, 0.5, 100, 5.0, 5.0))
    lines = log.read_text().splitlines()
    assert [float(line.split(" s ")[0]) for line in lines] == [10.0, 70.0]
    assert lines[0].endswith("left: ~5.0 s, then bootstrap")
    assert lines[1].endswith("left: ~5.0 s")


def test_describe_progress():
    line = describe_progress(Progress("spr", 2, -1234.5, 7, 10, 0.0), 61.25)
    assert line.split() == ["61.2", "s", "spr", "radius", "10", "round", "2", "lnL", "-1234.500000", "7", "moves"]
    line = describe_progress(Progress("perturb", 3, -1.0, 0, 0, 1.0, n_rounds=20, stage_left=34.2, left=250.0), 1.0)
    assert line.split("lnL")[0].split() == ["1.0", "s", "perturb", "round", "3/20"]
    assert line.endswith("0 moves  left: stage ~34 s, all ~4 min")
    for left, told in (((0.0, 1.4), ""), ((0.3, 30.0), "left: ~30 s"), ((60.0, 60.0), "left: ~60 s")):
        line = describe_progress(Progress("nni", 3, -1.0, 0, 1, 1.0, stage_left=left[0], left=left[1]), 1.0)
        assert line.endswith(f"0 moves  {told}".rstrip()), "what is over soon is noise"
    line = describe_progress(Progress("bootstrap", 50, -1.0, 0, 0, 20.0, n_rounds=1000), 40.0)
    assert line.endswith("lnL -1.000000  left: at most ~6 min"), "50 took 20 s, 950 take 380"


def test_an_interrupt_ends_the_search_at_the_next_event_and_the_second_one_at_once(monkeypatch):
    monkeypatch.setattr("sys.stderr", Screen())
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


class InterruptedFile(io.RawIOBase):
    """A file that gets SIGINT within its first write, which holds the lock of the buffer before it."""

    def __init__(self):
        self.content = b""

    def writable(self):
        return True

    def write(self, data):
        first = not self.content
        self.content += data
        if first:
            signal.raise_signal(signal.SIGINT)
        return len(data)


def test_an_interrupt_in_the_midst_of_a_write(monkeypatch):
    file = InterruptedFile()
    monkeypatch.setattr("sys.stderr", io.TextIOWrapper(io.BufferedWriter(file), write_through=True))
    event = Progress("nni", 1, -1.0, 0, 1, 1.0)
    monkeypatch.setattr(reporting.job, "given_command", lambda: "plltool search x")
    reporter = Reporter(quiet=False)
    with reporter, reporter.interrupts_wait(), pytest.raises(StopSearch):
        reporter.progress(event)
    shown = file.content.decode().splitlines()
    assert [line for line in shown if "interrupted" in line] == [f"plltool: warning: {reporting.INTERRUPTED}"]


def test_generations_have_a_line_now_and_then(capsys, monkeypatch):
    clock = iter([0.5, 1.5, 9.0, 10.6, 11.0, 12.0])
    monkeypatch.setattr(heartbeat.Heartbeat, "seconds", property(lambda _: next(clock)))
    reporter = Reporter(quiet=False)
    for generation in (10, 20, 30, 40, 50, 60):
        reporter.progress(Progress("sample", generation, -1.0, 0, 0, 1.0, 60))
    shown = [line.split() for line in capsys.readouterr().err.splitlines()]
    assert [words[-3] for words in shown] == ["10/60", "40/60", "60/60"]


def test_an_interrupt_is_told_before_the_round_is_over(capsys, impatient):
    reporter = Reporter(quiet=False)
    with reporter, reporter.interrupts_wait():
        signal.raise_signal(signal.SIGINT)
        deadline = time.monotonic() + 30
        while not (shown := capsys.readouterr().err) and time.monotonic() < deadline:
            time.sleep(0.01)
    assert reporting.INTERRUPTED in shown


@pytest.fixture
def impatient(monkeypatch):
    """Heartbeats come after a fiftieth of a second of silence."""
    monkeypatch.setattr(reporting, "HEARTBEAT_SECONDS", 0.02)
    monkeypatch.setattr(reporting.job, "given_command", lambda: "plltool search x")


def work_for_long(reporter):
    with reporter:
        reporter.progress(Progress("spr", 2, -12.5, 3, 5, 1.0, stage_left=40.0, left=80.0))
        reporter.progress(Progress("spr", 3, -13.5, 0, 5, 1.0, stage_left=40.0, left=80.0))
        announce("spr radius 10")
        time.sleep(0.3)


def test_a_heartbeat_where_a_round_takes_long(monkeypatch, capsys, tmp_path, impatient):
    log = tmp_path / "x.log"
    work_for_long(Reporter(False, log))
    for text in (capsys.readouterr().err, log.read_text()):
        beats = [line for line in text.splitlines() if "working on" in line]
        assert len(beats) > 2
        assert "working on spr radius 10 for 0 s  best lnL -12.500000  left: ~80 s" in beats[-1]


def test_no_heartbeat_on_stderr_if_quiet(capsys, tmp_path, impatient):
    log = tmp_path / "x.log"
    work_for_long(Reporter(True, log))
    assert capsys.readouterr().err == ""
    assert "working on" in log.read_text()


def test_the_bar_is_drawn_anew_on_a_terminal(monkeypatch, impatient):
    terminal = Screen()
    monkeypatch.setattr("sys.stderr", terminal)
    work_for_long(Reporter(False))
    assert terminal.getvalue().count("] ") > 4
    assert terminal.getvalue().count("  spr radius 10  ") > 2
    assert "\n" not in terminal.getvalue()


def test_what_is_left_is_not_told_once_it_is_over(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(heartbeat.time, "monotonic", lambda: now[0])
    told = heartbeat.Heartbeat()
    assert told.facts().as_record() == {
        "activity": "reading", "activity_seconds": 0.0, "best_lnl": None, "seconds": 0.0, "left": None
    }  # fmt: skip
    told.hear(Progress("nni", 1, -7.0, 1, 1, 0.0, left=10.0))
    now[0] += 4
    assert told.facts().left == pytest.approx(6.0)
    now[0] += 7
    assert told.facts().left is None
    assert "left" not in told.facts().describe()
    told.hear(Progress("bootstrap", 1, -3.0, 0, 0, 0.0))
    assert told.facts().best_lnl == -7.0, "lnL of a replicate is that of other data"


def test_compiling_is_told_and_what_was_done_before_goes_on(impatient, caplog, monkeypatch):
    caplog.set_level("INFO", "plltool")
    monkeypatch.setattr(progress, "CLOCK", SimpleNamespace(seconds=0.0, told=False))
    monkeypatch.setattr(progress, "NOTICEABLE", 0.0)
    with Reporter(quiet=True) as reporter:
        announce("spr radius 10")
        for _ in range(2):
            with progress.compiling():
                assert reporter._heartbeat.facts().activity == "compiling kernels"
            assert reporter._heartbeat.facts().activity == "spr radius 10"
    assert [line for line in caplog.messages if "compiled" in line] == [
        "kernels are compiled for this kind of data; later runs take them from a cache"
    ]


def fail_with_a_warning():
    logging.getLogger("plltool").warning("some\nwarning")
    raise ZeroDivisionError


def test_json_lines(capsys, tmp_path, impatient):
    path = tmp_path / "progress.jsonl"
    path.write_text('{"event": "earlier"}\n')
    with pytest.raises(ZeroDivisionError), Reporter(True, None, str(path), append=True):
        fail_with_a_warning()
    work_for_long(Reporter(True, None, str(path), append=True))
    found = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["event"] for line in found[:4]] == ["earlier", "begin", "log", "end"]
    assert found[2] == {"event": "log", "level": "warning", "message": "some warning"}
    assert found[3]["problem"].startswith("ZeroDivisionError")
    events = [line for line in found[4:] if line["event"] == "progress"]
    assert [(line["stage"], line["round"], line["lnl"], line["left"]) for line in events] == [
        ("spr", 2, -12.5, 80.0), ("spr", 3, -13.5, 80.0)
    ]  # fmt: skip
    beat = next(line for line in reversed(found) if line["event"] == "heartbeat")
    assert (beat["activity"], beat["best_lnl"]) == ("spr radius 10", -12.5)
    assert math.isclose(beat["left"], 80.0, abs_tol=5)


def test_json_on_stderr_is_alone_there(plltool, small, data_dir):
    options = ("--model", "JC", "--device", "numpy", "--effort", "fast", "--json-progress", "-")
    result = plltool("search", small, *options, status=0)
    found = [json.loads(line) for line in result.stderr.splitlines()]
    kinds = [line["event"] for line in found]
    assert (kinds[0], kinds[-1]) == ("begin", "end")
    assert {"log", "progress"} <= set(kinds)
    assert found[0]["command"].startswith("plltool search ")
    assert found[-1]["problem"] is None


def test_heartbeats_change_no_digit(plltool, small, tmp_path, monkeypatch):
    trees = []
    for name, seconds in (("a", 1e9), ("b", 0.001)):
        monkeypatch.setattr(reporting, "HEARTBEAT_SECONDS", seconds)
        options = ("--model", "JC", "--device", "numpy", "--effort", "fast", "--prefix", tmp_path / name)
        assert plltool("search", small, *options).exit_code == 0
        record = json.loads((tmp_path / f"{name}.json").read_text())
        trees.append((record["lnl"], record["tree"], record["model"]))
    assert trees[0] == trees[1]
    assert "working on" in (tmp_path / "b.log").read_text()


def test_a_json_file_that_cannot_be_written(plltool, small, tmp_path):
    result = plltool("search", small, "--device", "numpy", "--json-progress", tmp_path / "none" / "x", status=1)
    assert "cannot write the file" in result.stderr


def test_a_log_that_cannot_be_written_any_more_stays_locked(monkeypatch, tmp_path, capsys):
    """So that no other run writes results with its prefix; what follows in the log is lost, the run goes on."""

    def fail():
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(reporting.job, "given_command", lambda: "plltool search x")
    log = tmp_path / "x.log"
    with Reporter(True, log) as reporter:
        monkeypatch.setattr(reporter._file, "flush", fail)
        reporter.write_log("one")
        reporter.write_log("two")
        with pytest.raises(InputError, match=r"x\.log: another run is writing results with this prefix"):
            heartbeat.open_log(log)
    assert capsys.readouterr().err == f"plltool: warning: {log}: the log ends here: No space left on device\n"
    assert "two" not in log.read_text()
    heartbeat.open_log(log).close()


def test_a_log_may_be_a_device(tmp_path):
    log = tmp_path / "x.log"
    log.symlink_to(os.devnull)
    with heartbeat.open_log(log), heartbeat.open_log(log) as stream:
        stream.write("anything")
