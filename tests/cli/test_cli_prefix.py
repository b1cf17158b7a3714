"""Runs that follow each other, or meet, under one prefix: what older ones left, and what is refused before any work."""

import signal
import subprocess
import time

import pytest
from command_line import RUN

from plltool.analyses.supports.replicates import Replicator
from plltool.io.checkpoint import has_checkpoint
from plltool.registry import ANALYSES, SHARED

QUICK = ("--model", "JC", "--device", "numpy", "--workers", "1")


@pytest.fixture
def prefix(tmp_path):
    return tmp_path / "run"


def support_files(prefix):
    """The support files that exist, of all kinds that plltool knows."""
    return [path for row in SHARED["supports"] for path in row.present(prefix) if path.exists()]


def test_supports_of_another_tree_do_not_stay(plltool, small, prefix):
    search = ("search", small, *QUICK, "--effort", "fast", "--prefix", prefix)
    assert plltool(*search, "--supports", "abayes").exit_code == 0
    mine = prefix.with_name("run.support.mine.nwk")
    mine.write_text("(a,b,c);")
    assert plltool(*search, "--seed", 2, "--redo").exit_code == 0
    assert not support_files(prefix)
    assert prefix.with_name("run.best.nwk").exists()
    assert mine.exists()


def test_commands_share_a_prefix(plltool, small, prefix):
    """Each writes its own files beside those of a search, and none of the search's changes."""
    options = ("--model", "JC", "--device", "numpy", "--prefix", prefix)
    assert plltool("search", small, *options, "--effort", "fast").exit_code == 0
    best = prefix.with_name("run.best.nwk")
    trees = prefix.with_name("trees.nwk")
    trees.write_text(2 * best.read_text())
    reports = written(SHARED["reports"], prefix)
    before = {path: path.read_bytes() for path in prefix.parent.iterdir() if path not in reports}
    for command, *given in (
        ("evaluate", "--tree", best),
        ("test", "--trees", trees, "--replicates", 10),
        ("ancestral", "--tree", best),
        ("alrt", "--tree", best, "--replicates", 10),
        ("bootstrap", "--replicates", 1),
    ):
        plltool(command, small, *options, *given, status=0)
        assert {path: path.read_bytes() for path in before} == before


def written(table, prefix):
    """The paths of a table's rows."""
    return {path for row in table for path in row.present(prefix)}


@pytest.mark.parametrize(
    ("command", "given"),
    [
        ("search", ("--nexus", "--collapse", "1", "--supports", "abayes")),
        ("evaluate", ("--tree", "T", "--nexus", "--collapse", "1")),
        ("test", ("--trees", "T", "--replicates", 10)),
        ("ancestral", ("--tree", "T")),
        ("concordance", ("--tree", "T")),
        ("alrt", ("--tree", "T", "--replicates", 10)),
        ("bootstrap", ("--tree", "T", "--replicates", 1, "--write-replicates")),
    ],
)
def test_what_is_written_stands_in_the_table_and_in_the_help_and_is_not_replaced_unasked(
    plltool, small, prefix, tmp_path, command, given, names
):
    table = ANALYSES[command].files
    tree = tmp_path / "tree"
    tree.write_text(2 * "({},{},({},({},({},{}))));\n".format(*names))
    before = set(tmp_path.iterdir())
    given = [tree if value == "T" else value for value in given]
    run = (command, small, "--model", "JC", "--device", "numpy", "--prefix", prefix, *given)
    plltool(*run, status=0)
    found = set(tmp_path.iterdir()) - before
    assert found <= written(table, prefix)
    assert len(found) > 2
    shown = plltool(command, "--help").stdout
    for row in table:
        assert f"\n  PREFIX.{row.ending} " in shown
    if command != "bootstrap":  # which goes on
        before = {path: path.read_bytes() for path in tmp_path.iterdir()}
        plltool(*run, status=1, told="exists already; --redo replaces it, --prefix names other files")
        assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
        plltool(*run, "--redo", status=0)


def test_supports_of_other_kinds_do_not_stay(plltool, small, prefix):
    run = ("bootstrap", small, *QUICK, "--replicates", 1, "--prefix", prefix)
    assert plltool(*run).exit_code == 0
    trees = prefix.with_name("run.bootstraps.nwk")
    support = ("support", "--tree", trees, "--replicates", trees, "--prefix", prefix)
    assert plltool(*support, "--supports", "fbp,tbe").exit_code == 0
    plltool(*support, "--supports", "tbe", status=1, told="run.support.nwk: exists already")
    assert plltool(*support, "--supports", "tbe", "--redo").exit_code == 0
    left = sorted(path.name for path in support_files(prefix))
    assert left == ["run.support.json", "run.support.nex", "run.support.nwk", "run.support.tbe.nwk"]


def test_replicates_of_another_run_are_seen_before_the_search(plltool, small, prefix, monkeypatch):
    def interrupted(self, number, *rest, **named):
        if number == 1:
            raise KeyboardInterrupt
        return whole(self, number, *rest, **named)

    whole = Replicator.__call__
    progress = prefix.with_name("progress.jsonl")
    asked = ("bootstrap", small, *QUICK, "--replicates", 2, "--prefix", prefix, "--json-progress", progress)
    with monkeypatch.context() as patched:
        patched.setattr(Replicator, "__call__", interrupted)
        plltool(*asked, status=130)
    folder = prefix.with_name("run.bootstrap.checkpoint")
    assert has_checkpoint(folder)
    mine = prefix.with_name("run.support.sh-alrt.nwk")
    mine.write_text("(a,b,c);")  # which no bootstrap writes
    copy = prefix.with_name("tree.nwk")
    copy.write_bytes(prefix.with_name("run.bootstraps.nwk").read_bytes())
    tree = ("--tree", copy)
    again = plltool("bootstrap", small, *QUICK, "--replicates", 2, "--prefix", prefix, *tree, status=1)
    assert "run.support.sh-alrt.nwk: exists already" in again.stderr
    mine.unlink()
    prefix.with_name("run.bootstraps.nwk").unlink(missing_ok=True)
    search = ("search", small, *QUICK, "--effort", "fast", "--bootstrap", 2, "--prefix", prefix)
    refused = plltool(*search, status=1)
    assert refused.stderr.splitlines() == [f"plltool: error: {folder}: a checkpoint of another run; --redo starts over"]
    assert has_checkpoint(folder)
    assert plltool(*asked).exit_code == 0
    assert progress.read_text().count('"event": "begin"') == 2, "of both runs"


@pytest.mark.parametrize("name", ["checkpoint", "bootstrap.checkpoint", "ufboot.checkpoint"])
def test_a_file_in_the_place_of_a_checkpoint_is_seen_before_the_search(plltool, small, prefix, name):
    prefix.with_name(f"run.{name}").write_text("mine")
    refused = plltool(
        "search", small, *QUICK, "--bootstrap", 2, "--supports", "fbp,ufboot", "--prefix", prefix, status=1
    )
    assert refused.stderr.splitlines() == [f"plltool: error: {prefix}.{name}: cannot make the folder: it is a file"]


def test_two_runs_at_the_same_time(plltool, small, prefix):
    """The second one is refused, --redo or not, and removes nothing; what is killed leaves no lock."""
    search = ("search", small, *QUICK, "--starts", "20", "--prefix", prefix)
    first = subprocess.Popen([*RUN, *map(str, search)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    folder = prefix.with_name("run.checkpoint")
    deadline = time.monotonic() + 60
    while not has_checkpoint(folder) and first.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    first.send_signal(signal.SIGSTOP)  # it has all the time that the second one needs
    log = prefix.with_name("run.log").read_text()
    for options in ((), ("--redo",)):
        second = plltool(*search, *options, status=1)
        assert first.poll() is None
        assert second.stderr.splitlines() == [
            f"plltool: error: {prefix}.log: another run is writing results with this prefix; --prefix names other files"
        ]
    assert has_checkpoint(folder)
    first.kill()
    first.wait()
    assert prefix.with_name("run.log").read_text().startswith(log)
    plltool("search", small, *QUICK, "--effort", "fast", "--prefix", prefix, "--redo", status=0)


@pytest.mark.parametrize("command", ["alrt", "test", "ancestral", "bootstrap"])
def test_progress_as_json(plltool, small, prefix, command, names):
    tree = prefix.with_name("tree.nwk")
    texts = [f"({names[0]},{names[1]},(({names[2]},{names[3]}),({names[4]},{names[5]})));"]
    texts.append(texts[0].replace(names[1], "X").replace(names[2], names[1]).replace("X", names[2]))
    tree.write_text("\n".join(texts[: 1 + (command == "test")]))
    asked = {"bootstrap": ("--replicates", 2, "--workers", 1), "test": ("--trees", tree)}.get(command, ("--tree", tree))
    path = prefix.with_name("progress.jsonl")
    options = ("--model", "JC", "--device", "numpy", "--prefix", prefix, "--json-progress", path)
    plltool(command, small, *asked, *options, status=0)
    events = [line.split('"')[3] for line in path.read_text().splitlines()]
    assert events[0] == "begin"
    assert "progress" in events
    assert events[-1] == "end"


def test_reports_are_of_all_runs_and_only_if_wanted(plltool, small, prefix):
    html, text = prefix.with_name("run.html"), prefix.with_name("run.txt")
    search = ("search", small, *QUICK, "--effort", "fast", "--prefix", prefix)
    assert plltool(*search, "--no-report").exit_code == 0
    assert not html.exists()
    assert not text.exists()
    text.write_text("mine")
    alrt = ("alrt", small, "--model", "JC", "--device", "numpy", "--tree", prefix.with_name("run.best.nwk"))
    done = plltool(*alrt, "--replicates", 10, "--prefix", prefix, status=0)
    assert f"report: {html}" in done.stdout
    assert "run.txt: not written, because the existing file is not a plltool report" in done.stderr
    assert text.read_text() == "mine"
    assert "Final tree from each starting tree" in html.read_text()
    assert "sh-alrt" in html.read_text()
    assert plltool(*search, "--redo").exit_code == 0
    assert "sh-alrt" not in html.read_text()
    assert plltool("report", prefix.with_name("none")).stderr.startswith("plltool: error: ")


@pytest.mark.parametrize("given", ["", "/", "folder/", ".", "..", "folder/.."])
def test_a_prefix_is_the_start_of_names(plltool, small, given):
    result = plltool("search", small, *QUICK, "--prefix", given, status=2)
    expected = "expected the start of file names, such as run or folder/run"
    assert result.stderr.splitlines()[-1] == f"Error: Invalid value for '--prefix': found '{given}', {expected}"


def test_only_files_of_a_prefix_get_the_hint_at_it(plltool, tree_file, prefix):
    other = tree_file.with_name("other.nwk")
    other.write_text("mine")
    for command in (("show", tree_file, "--svg"), ("trees", "root", tree_file, "--root", "mad", "--output")):
        refused = plltool(*command, other)
        assert refused.stderr == f"plltool: error: {other}: exists already; --redo replaces it\n"
    prefix.with_name("run.support.nwk").write_text("mine")
    refused = plltool("support", "--tree", tree_file, "--replicates", tree_file, "--prefix", prefix)
    assert refused.stderr.endswith("run.support.nwk: exists already; --redo replaces it, --prefix names other files\n")


@pytest.fixture
def tree_file(tmp_path):
    path = tmp_path / "tree.nwk"
    path.write_text("((a:1,b:1):1,c:1,d:1);\n")
    return path


def test_a_file_is_no_prefix(plltool, prefix):
    record = prefix.with_name("run.json")
    record.write_text("{}")
    refused = plltool("report", record)
    expected = "expected the prefix of the files of a run, such as 'run'"
    assert refused.stderr == f"plltool: error: {record}: found a file, {expected}\n"
