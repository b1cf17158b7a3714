"""Searches that are stopped, resumed, refused: what a user sees of checkpoints, and true kills of a process."""

import itertools
import signal
import subprocess
import sys

import pytest
from small_alignments import primates, write_fasta

from plltool.analyses.sampling.analysis import SampleCourse
from plltool.analyses.supports.replicates import Replicator
from plltool.cli.outputs import Outputs
from plltool.cli.reporting import Reporter
from plltool.io.files import read_record, write_text
from plltool.io.tree_files import read_tree

LONG = ("--device", "numpy", "--model", "JC", "--starts", "4", "--perturbations", "3", "--workers", "1")
# A process that kills itself after some events
SUICIDE = """
import itertools, os, signal, sys
from plltool.cli import main, reporting
number, events, told = int(sys.argv.pop(1)), itertools.count(1), reporting.Reporter.progress
def progress(self, event):
    if next(events) == number:
        os.kill(os.getpid(), signal.SIGKILL)
    told(self, event)
reporting.Reporter.progress = progress
main(prog_name="plltool")
"""


@pytest.fixture
def run(plltool, small, tmp_path, monkeypatch):
    """Search with prefix `run`; `stop` is a signal, and the number of the event at which this process gets it."""

    def call(*options, stop=None, status=None):
        events, told = itertools.count(1), Reporter.progress

        def progress(self, event):
            if stop is not None and next(events) == stop[1]:
                signal.raise_signal(stop[0])
            told(self, event)

        with monkeypatch.context() as patched:
            patched.setattr(Reporter, "progress", progress)
            return plltool("search", small, *LONG, "--prefix", tmp_path / "run", *options, status=status)

    return call


def kill(small, tmp_path, n_events):
    """The same in a process that is killed at an event; returns its exit code."""
    given = ("search", small, *LONG, "--prefix", tmp_path / "run")
    command = [sys.executable, "-c", SUICIDE, str(n_events), *map(str, given)]
    return subprocess.run(command, capture_output=True, check=False).returncode


def outcome(tmp_path):
    """Of the last run, as far as that must not depend on interruptions."""
    record = read_record(tmp_path / "run.json")
    return record["lnl"], record["start_lnls"], record["model"], (tmp_path / "run.best.nwk").read_bytes()


@pytest.fixture(scope="module")
def expected(plltool, data_dir, tmp_path_factory):
    """What a run reaches that nobody stops."""
    folder = tmp_path_factory.mktemp("whole")
    path = write_fasta(folder / "small.fasta", primates(data_dir, 6, 300))
    plltool("search", path, *LONG, "--prefix", folder / "run", status=0)
    return outcome(folder)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL])
def test_the_same_command_goes_on(run, small, tmp_path, expected, number):
    if signal.getsignal(number) == signal.SIG_IGN:
        pytest.skip("the signal is ignored, as under nohup")
    if number == signal.SIGKILL:
        assert kill(small, tmp_path, 20) == -number
    else:
        stopped = run(stop=(number, 20), status=128 + number)
    folder = tmp_path / "run.checkpoint"
    assert folder.is_dir()
    assert read_tree(folder / "best.nwk").n_taxa == 6
    if number == signal.SIGTERM:
        assert f"saved in {folder}; the same command continues from there" in stopped.stderr
        assert not (tmp_path / "run.best.nwk").exists()
    if number == signal.SIGINT:
        assert "the search was interrupted" in read_record(tmp_path / "run.json")["warnings"][-1]
    run(status=0)
    assert outcome(tmp_path) == expected
    assert not folder.exists()
    log = (tmp_path / "run.log").read_text()
    assert log.count("plltool ") >= 2, "the log of both runs"
    assert f"resuming the search from {folder}" in log


@pytest.mark.slow
def test_killed_again_and_again(small, tmp_path, expected):
    """SIGKILL after some events, again and again, until the search is through."""
    codes = []
    while len(codes) < 100 and 0 not in codes:
        codes.append(kill(small, tmp_path, 12))
    assert len(codes) > 1
    assert outcome(tmp_path) == expected


def test_another_run_is_refused_and_redo_starts_over(plltool, run, small, tmp_path):
    run(stop=(signal.SIGTERM, 3))
    refused = run("--seed", 2, status=1)
    lines = refused.stderr.splitlines()
    assert lines[-1] == (
        f"plltool: error: {tmp_path}/run.checkpoint: a checkpoint of another run: "
        "seed: the checkpoint has 1, this command 2; --redo starts over"
    )
    assert "resuming" not in refused.stderr
    quick = ("--device", "numpy", "--model", "JC", "--effort", "fast", "--prefix", tmp_path / "run")
    again = plltool("search", small, *quick, "--redo", status=0)
    assert "resuming" not in again.stderr
    assert not (tmp_path / "run.checkpoint").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_interrupted_redo_is_resumed_by_its_own_command(plltool, run, small, tmp_path, expected, number):
    """It replaces the results of an earlier run, and is itself not begun once more."""
    prefix = ("--prefix", tmp_path / "run")
    quick = ("search", small, "--device", "numpy", "--model", "K80", "--effort", "fast", *prefix)
    assert plltool(*quick).exit_code == 0
    stopped = run("--redo", stop=(number, 20), status=128 + number)
    assert "resuming the search from" not in stopped.stderr, "it started over"
    folder = tmp_path / "run.checkpoint"
    assert list(folder.glob("*.state"))
    assert f"resuming the search from {folder}" in run("--redo", status=0).stderr
    assert outcome(tmp_path) == expected
    assert not folder.exists()
    plltool(*quick, status=1, told="run.best.nwk: exists already; --redo replaces it")
    assert plltool(*quick, "--redo").exit_code == 0, "a finished run starts over"


def test_redo_starts_over_where_its_checkpoint_cannot_be_used(run, small, tmp_path):
    """The command line is the same, but its alignment has changed, or its states are damaged."""
    run("--redo", stop=(signal.SIGTERM, 3))
    small.write_text(small.read_text().replace("A", "C", 1))
    folder = tmp_path / "run.checkpoint"
    stderr = run("--redo", stop=(signal.SIGTERM, 3)).stderr
    assert f"plltool: warning: {folder}: a checkpoint of another run: alignment: " in stderr
    for path in folder.glob("*.state*"):
        path.write_bytes(b"x")
    assert "a damaged checkpoint: " in run("--redo", status=0).stderr


def test_files_that_an_interrupted_run_has_not_claimed_are_not_replaced(run, tmp_path):
    run(stop=(signal.SIGTERM, 3))
    mine = tmp_path / "sites.tsv"
    mine.write_text("mine")
    refused = run("--site-lnl", mine, status=1)
    assert refused.stderr.endswith("sites.tsv: exists already; --redo replaces it\n")
    assert mine.read_text() == "mine"


def test_a_damaged_state_is_noticed(run, tmp_path, expected):
    """Of each climb the state before is used; without that the run is refused."""
    run(stop=(signal.SIGTERM, 20))
    folder = tmp_path / "run.checkpoint"
    for path in folder.glob("*.state"):
        path.write_bytes(path.read_bytes()[:-7])
    old = {path: path.read_bytes() for path in folder.glob("*.old")}
    assert old
    for path, content in old.items():
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    last = run(status=1).stderr.splitlines()[-1]
    assert last.startswith("plltool: error: ")
    assert ".state: a damaged checkpoint: its digest" in last
    assert last.endswith("--redo starts over")
    for path, content in old.items():
        path.write_bytes(content)
    without_old = {path.name.removesuffix(".old") for path in old}
    for path in folder.glob("*.state"):
        if path.name not in without_old:
            path.unlink()
    run(status=0)
    assert outcome(tmp_path) == expected


def test_a_damaged_first_state_begins_anew(run, tmp_path, expected):
    """There is no state before it, so that nothing else can be done; the other climbs go on."""
    run(stop=(signal.SIGTERM, 20))
    folder = tmp_path / "run.checkpoint"
    for path in folder.glob("*.old"):
        path.unlink()
    first = min(folder.glob("*.state"))
    first.write_bytes(first.read_bytes()[:-7])
    told = f"{str(first).removesuffix('.state')}: starting over, because the only saved state is damaged"
    assert told in run(status=0).stderr
    assert outcome(tmp_path) == expected


@pytest.mark.parametrize("damage", ["flipped", "emptied"])
def test_a_damaged_mark_throws_no_replicate_away(plltool, small, tmp_path, monkeypatch, damage):
    """Nor does it lead to advice that would."""
    run = ("bootstrap", small, "--model", "JC", "--device", "numpy", "--replicates", 4, "--workers", 1, "--prefix")
    assert plltool(*run, tmp_path / "whole").exit_code == 0
    made = []

    def make(self, number, *rest, **named):
        made.append(number)
        if len(made) == 3:
            raise KeyboardInterrupt
        return whole(self, number, *rest, **named)

    whole = Replicator.__call__
    monkeypatch.setattr(Replicator, "__call__", make)
    assert plltool(*run, tmp_path / "run").exit_code == 130
    trees = tmp_path / "run.bootstraps.nwk"
    trees.write_text("(what,a,stopped,run);")  # as one that is killed while it writes leaves it
    folder = tmp_path / "run.bootstrap.checkpoint"
    mark = folder / "mark.json"
    content = mark.read_bytes()
    at = content.index(b"bootstraps.nwk")
    mark.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :] if damage == "flipped" else b"")
    again = plltool(*run, tmp_path / "run", status=0)
    assert f"plltool: warning: {folder}: the checkpoint's mark is damaged; resuming" in again.stderr
    assert made[:3] + made[3:] == [0, 1, 2, 2, 3], "those that were kept are not made again"
    assert trees.read_text() == (tmp_path / "whole.bootstraps.nwk").read_text()


def test_a_run_that_is_killed_while_it_writes_may_begin_anew(plltool, small, binary, tmp_path, monkeypatch, some_tree):
    """It left some of its results, and has no checkpoint; other command lines may not replace them."""
    common = ("--device", "numpy", "--prefix", tmp_path / "run")
    for run, sites in (
        (("select-model", binary, "--tree", some_tree, "--no-free-rates", *common), None),
        (("evaluate", small, some_tree, "--model", "JC", "--site-lnl", tmp_path / "sites.tsv", *common), "sites.tsv"),
    ):
        calls = []

        def write(path, text, *, calls=calls, n=2 if sites is None else 3):
            calls.append(path)
            if len(calls) == n:
                raise KeyboardInterrupt
            write_text(path, text)

        with monkeypatch.context() as patched:
            patched.setattr("plltool.write_text", write, raising=False)
            assert plltool(*run).exit_code == 130
        assert calls[0].exists()
        plltool(*run, "--names", "whole", status=1, told="exists already")
        plltool(*run, status=0)
        plltool(*run, status=1, told="exists already")


def test_a_search_that_is_killed_when_all_is_written_may_begin_anew(plltool, small, tmp_path, monkeypatch):
    def forget(self):
        whole(self)
        raise KeyboardInterrupt

    whole = Outputs.forget_checkpoints
    run = ("search", small, "--device", "numpy", "--model", "JC", "--effort", "fast", "--prefix", tmp_path / "run")
    with monkeypatch.context() as patched:
        patched.setattr(Outputs, "forget_checkpoints", lambda self: forget(self) if self._written else whole(self))
        assert plltool(*run).exit_code == 130
    assert not (tmp_path / "run.checkpoint").exists()
    tree = (tmp_path / "run.best.nwk").read_text()
    plltool(*run, status=0)
    assert (tmp_path / "run.best.nwk").read_text() == tree


def test_nohup_is_respected(run):
    """A SIGHUP that is ignored when the command begins stays ignored."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        run(stop=(signal.SIGHUP, 3), status=0)
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize(
    ("name", "redo", "what"),
    [
        ("run.json", (), "run.json is damaged, but the states are of this run"),
        ("mark.json", ("--redo",), "the checkpoint's mark is damaged; resuming"),
    ],
)
@pytest.mark.parametrize("is_emptied", [False, True])
def test_damage_beside_the_states_loses_none_of_them(run, tmp_path, expected, name, redo, what, is_emptied):
    run(*redo, stop=(signal.SIGTERM, 5))
    folder = tmp_path / "run.checkpoint"
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(b"" if is_emptied else content)
    stderr = run(*redo, status=0).stderr
    assert what in stderr
    assert f"resuming the search from {folder}" in stderr
    assert outcome(tmp_path) == expected


@pytest.mark.parametrize("step", ["go", "_take"])
def test_an_alignment_that_changes(plltool, small, tmp_path, monkeypatch, step):
    """A kill leaves a checkpoint, at first without states; the same command says that its data are others."""
    given = ("sample", small, "--model", "JC", "--device", "numpy", "--workers", "1", "--prefix", tmp_path / "run")
    given = (*given, "--generations", "40", "--sample-every", "2")
    whole = getattr(SampleCourse, step)

    def kill(self, *found):
        if step == "_take":
            whole(self, *found)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(SampleCourse, step, kill)
        if step == "go":
            patched.setattr("plltool.remove_checkpoint", lambda _: None)  # a killed process removes nothing
        assert plltool(*given).exit_code == 130
    folder = tmp_path / "run.sample.checkpoint"
    assert ({path.name for path in folder.iterdir()} == {"mark.json", "run.json"}) == (step == "go")
    text = small.read_text()
    small.write_text(text.replace("A", "C", 1))
    refused = plltool(*given, status=1)
    assert f"{folder}: a checkpoint of another run: alignment: " in refused.stderr.splitlines()[-1]
    small.write_text(text)
    assert plltool(*given).exit_code == 0
