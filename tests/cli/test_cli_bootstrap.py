"""The bootstrap command, and supports that a search makes."""

import json
import logging
import re
import signal

import pytest
from small_alignments import hard_taxa, write_fasta

from plltool.analyses.supports.replicates import Replicator
from plltool.constants import SUPPORT_KINDS
from plltool.errors import DeviceError
from plltool.io.checkpoint import remove_checkpoint
from plltool.io.files import read_record
from plltool.io.tree_files import read_tree_set
from plltool.tree.splits import distances
from plltool.tree_search.ufboot_search import UfbootSearch


def test_bootstrap(plltool, small, tmp_path):
    common = ("bootstrap", small, "--replicates", "3", "--model", "JC", "--device", "numpy", "--workers", "1")
    done = plltool(*common, "--prefix", tmp_path / "run", "--write-replicates", status=0)
    trees = tmp_path / "run.bootstraps.nwk"
    assert "replicates: 3 in " in done.stdout
    assert f"bootstrap trees: {trees}" in done.stdout.splitlines()
    assert "replicate 3/3" in done.stderr
    assert len(trees.read_text().splitlines()) == 3
    assert sorted(path.name for path in tmp_path.glob("run.replicate.*")) == [
        f"run.replicate.{k}.fasta" for k in (1, 2, 3)
    ]
    # a resampled alignment leads to its replicate's tree
    quick = ("--model", "JC", "--device", "numpy", "--effort", "fast")
    plltool("search", tmp_path / "run.replicate.2.fasta", *quick, status=0)
    both = read_tree_set([trees, tmp_path / "run.replicate.2.fasta.plltool.best.nwk"])
    assert distances(both)[1, 3] <= 2  # of 6: another start tree may end at another optimum
    remove_checkpoint(tmp_path / "run.bootstrap.checkpoint")
    plltool(*common, "--prefix", tmp_path / "run", status=1, told="run.bootstraps.nwk: exists already")
    trees.rename(tmp_path / "trees.nwk")
    plltool(*common, "--prefix", tmp_path / "run", "--write-replicates", status=1, told="fasta: exists already")
    (tmp_path / "trees.nwk").rename(trees)
    tree = tmp_path / "tree.nwk"
    tree.write_text(trees.read_text().splitlines()[0])
    stranger = plltool(*common, "--prefix", tmp_path / "other", "--tree", tree, "--outgroup", "x", status=1)
    assert stranger.stderr.splitlines()[-1] == "plltool: error: the outgroup's taxon 'x' is not in the alignment"
    plltool(*common, "--prefix", tmp_path / "run", "--tree", tree, "--supports", "fbp,tbe", "--redo", status=0)
    assert (tmp_path / "run.support.tbe.nwk").exists()


def test_supports_of_a_root(plltool, tmp_path):
    tree, trees, prefix = tmp_path / "tree.nwk", tmp_path / "trees.nwk", tmp_path / "run"
    tree.write_text("((a,b),(c,(d,e)));\n")
    trees.write_text("((a,b),(c,(d,e)));\n(a,(b,(c,(d,e))));\n")
    done = plltool(
        "support", "--tree", tree, "--replicates", trees, "--supports", "fbp,rootstrap", "--prefix", prefix, status=0
    )
    assert "root: 50 % of the replicates  'a', 'b' | others\n" in done.stdout
    assert "root: 50 % of the replicates  'a' | others\n" in done.stdout
    assert "(a" in (tmp_path / "run.support.rootstrap.nwk").read_text()
    assert "removed" not in done.stderr


def test_a_search_with_supports(plltool, small, tmp_path, caplog):
    with caplog.at_level(logging.DEBUG, "plltool"):
        done = plltool(
            *("search", small, "--model", "JC", "--device", "numpy", "--effort", "fast", "--workers", "1"),
            *("--bootstrap", "2", "--supports", "tbe,abayes,fbp,tbe", "--prefix", tmp_path / "run"),
            status=0,
        )
    assert caplog.text.index("now: polish") < caplog.text.index("now: bootstrap")
    record = json.loads((tmp_path / "run.support.json").read_text())
    assert list(record["kinds"]) == ["tbe", "abayes", "fbp"], "in the order asked for"
    assert record["tree"] + "\n" == (tmp_path / "run.support.nwk").read_text()
    for branch in record["branches"]:
        assert f"){branch['tbe']:.3g}/{round(branch['abayes'], 3):g}/{branch['fbp']:.3g}:" in record["tree"]
    named = (tmp_path / "run.support.nex").read_text()
    assert named.index("[&tbe=") < named.index(",abayes=") < named.index(",fbp=")
    assert record["kinds"]["fbp"]["replicates"] == 2
    assert {branch["fbp"] for branch in record["branches"]} <= {0, 50, 100}
    assert len(record["branches"]) == 3
    lines = done.stdout.splitlines()
    assert [line.split(": ")[0] for line in lines if line.split(": ")[0] in SUPPORT_KINDS] == ["tbe", "abayes", "fbp"]
    assert any(line.startswith("fbp: ") and line.endswith("(per cent, 2 replicates)") for line in lines)
    told = {line.split(f"{tmp_path}/run.support.")[1] for line in lines if "run.support." in line}
    assert told == {"nwk", "tbe.nwk", "abayes.nwk", "fbp.nwk", "nex", "json"}
    plltool("search", small, "--supports", "ufboot", "--prefix", tmp_path / "run2", "--bootstrap", "x", status=2)


def test_wrong_usage_removes_no_checkpoint(plltool, small, tmp_path):
    state = tmp_path / "run.checkpoint" / "climb-1.state"
    state.parent.mkdir()
    state.touch()
    for wrong in (["--supports", "tbe"], ["--write-replicates"], ["--rapid"], ["--replicate-effort", "fast"]):
        assert plltool("search", small, "--prefix", tmp_path / "run", "--redo", *wrong).exit_code == 2
        assert state.exists()
    assert plltool("search", "missing.fasta", "--prefix", tmp_path / "run", "--redo").exit_code == 1
    assert state.exists()


def test_rapid_replicates(plltool, small, tmp_path):
    run = ("--model", "JC", "--device", "numpy", "--workers", "1", "--rapid")
    plltool("bootstrap", small, "--replicates", "12", *run, "--prefix", tmp_path / "alone", status=0)
    plltool("search", small, "--effort", "fast", "--bootstrap", "12", *run, "--prefix", tmp_path / "run", status=0)
    trees = (tmp_path / "alone.bootstraps.nwk").read_text()
    assert trees.count("\n") == 12
    assert (tmp_path / "run.bootstraps.nwk").read_text() == trees


def test_replicates_of_a_search_are_kept(plltool, small, tmp_path, monkeypatch):
    """What fails after two replicates goes on with the third."""
    run = ("search", small, "--model", "JC", "--device", "numpy", "--effort", "fast", "--workers", "1")
    options = ("--bootstrap", "3", "--supports", "fbp", "--prefix", tmp_path / "run")
    whole, made, broken = Replicator.__call__, [], [2]

    def make(self, number, before, report=None):
        if number in broken:
            raise DeviceError("the device is gone")
        made.append(number)
        return whole(self, number, before, report)

    monkeypatch.setattr(Replicator, "__call__", make)
    failed = plltool(*run, *options, status=1)
    assert failed.stderr.splitlines()[-1] == "plltool: error: the device is gone"
    assert made == [0, 1]
    broken.clear()
    plltool(*run, *options, status=0)
    assert made == [0, 1, 2]
    assert not list(tmp_path.glob("*.checkpoint"))
    trees = (tmp_path / "run.bootstraps.nwk").read_text()
    assert plltool(*run, *options, "--redo").exit_code == 0
    assert made == [0, 1, 2, 0, 1, 2]
    assert (tmp_path / "run.bootstraps.nwk").read_text() == trees


def test_an_interrupt_during_the_ultrafast_bootstrap(plltool, small, tmp_path, monkeypatch):
    """Supports are written, but the run is not over: the same command goes on with the next excursion."""
    run = ("search", small, "--model", "JC", "--device", "numpy", "--effort", "fast", "--supports", "ufboot")
    run += ("--workers", 1)
    make, made = UfbootSearch.__call__, []

    def interrupted(self, number, *given):
        found = make(self, number, *given)
        made.extend([] if number is None else [number + 1])
        if made == [1, 2, 3] and number == 2:
            signal.raise_signal(signal.SIGINT)
        return found

    monkeypatch.setattr(UfbootSearch, "__call__", interrupted)
    stopped = plltool(*run, "--prefix", tmp_path / "run", status=130)
    assert "the ultrafast bootstrap was interrupted" in stopped.stderr
    assert (tmp_path / "run.support.ufboot.nwk").exists()
    assert {path.name for path in tmp_path.glob("*.checkpoint")} == {"run.checkpoint", "run.ufboot.checkpoint"}
    again = plltool(*run, "--prefix", tmp_path / "run", status=0)
    assert "resuming the ultrafast bootstrap after 3 excursions" in again.stderr
    assert " spr " not in again.stderr, "the search has ended"
    assert made == list(range(1, len(made) + 1))
    assert not list(tmp_path.glob("*.checkpoint"))
    supports = (tmp_path / "run.support.nwk").read_text()
    assert plltool(*run, "--prefix", tmp_path / "run", "--redo").exit_code == 0
    assert (tmp_path / "run.support.nwk").read_text() == supports


@pytest.mark.slow
def test_a_better_tree_takes_the_place_of_the_tree(plltool, data_dir, tmp_path):
    """A fast search of these taxa ends one unit below the best tree."""
    few, prefix = write_fasta(tmp_path / "few.fasta", hard_taxa(data_dir, 8)), tmp_path / "run"
    run = ("search", few, "--model", "HKY", "--device", "numpy", "--effort", "fast", "--seed", 3, "--prefix", prefix)
    assert plltool(*run, "--site-lnl", tmp_path / "sites.tsv").exit_code == 0
    before = read_record(f"{prefix}.json")
    done = plltool(*run, "--supports", "ufboot,abayes", "--site-lnl", tmp_path / "sites.tsv", "--redo", status=0)
    after = read_record(f"{prefix}.json")
    assert after["lnl"] > before["lnl"] + 0.5
    lines = done.stdout.splitlines()
    assert lines[0] == f"lnL before the ultrafast bootstrap met a better tree: {before['lnl']:.6f}"
    assert lines[1] == f"lnL: {after['lnl']:.6f}"
    assert "the ultrafast bootstrap met a better tree: lnL -8" in done.stderr
    assert after["warnings"][-1].startswith("the ultrafast bootstrap met a better tree; the search continued from it")
    assert (tmp_path / "run.best.nwk").read_text().strip() == after["tree"]
    labelled = (tmp_path / "run.support.ufboot.nwk").read_text().strip()
    assert re.sub(r"\)[0-9.]+:", "):", labelled) == after["tree"]
    sites = [float(line.split()[1]) for line in (tmp_path / "sites.tsv").read_text().splitlines()[1:]]
    assert sum(sites) == pytest.approx(after["lnl"], abs=1e-3)  # their printing
    assert not list(tmp_path.glob("*.checkpoint"))


def test_redo_begins_the_ultrafast_bootstrap_anew(plltool, small, tmp_path):
    damaged = tmp_path / "run.ufboot.checkpoint" / "ufboot.state"
    damaged.parent.mkdir()
    damaged.write_text("x")
    run = ("search", small, "--model", "JC", "--device", "numpy", "--effort", "fast", "--supports", "ufboot")
    refused = plltool(*run, "--prefix", tmp_path / "run", status=1)
    assert refused.stderr.splitlines() == [
        f"plltool: error: {damaged.parent}: a checkpoint of another run; --redo starts over"
    ]
    assert plltool(*run, "--prefix", tmp_path / "run", "--redo").exit_code == 0
    assert not list(tmp_path.glob("*.checkpoint"))


QUICK = ("--model", "JC", "--device", "numpy", "--workers", "1", "--replicate-effort", "fast")


@pytest.fixture
def made(monkeypatch):
    """The numbers of the replicates that are made, in order."""
    numbers, make = [], Replicator.__call__

    def count(self, number, before, report=None):
        numbers.append(number)
        return make(self, number, before, report)

    monkeypatch.setattr(Replicator, "__call__", count)
    return numbers


@pytest.fixture
def bootstrap(plltool, small, tmp_path):
    """Call the command for a number of replicates; its exit status must be the one given."""
    run = ("bootstrap", small, *QUICK, "--prefix", tmp_path / "run")
    return lambda number, *more, status=0: plltool(*run, "--replicates", number, *more, status=status)


def test_replicates_that_are_there_are_not_made_again(bootstrap, tmp_path, made):
    """The same command says so, can add supports, and removes nothing; larger numbers add more; --redo starts over."""
    trees = tmp_path / "run.bootstraps.nwk"
    bootstrap(2, "--write-replicates")
    first = trees.read_text()
    assert ", all from an earlier run: a larger number adds more, --redo starts over\n" in bootstrap(2).stdout
    tree = tmp_path / "tree.nwk"
    tree.write_text(first.splitlines()[0])
    bootstrap(2, "--tree", tree)
    bootstrap(2, "--tree", tree, "--supports", "fbp,tbe")
    assert (tmp_path / "run.support.tbe.nwk").exists()
    assert made == [0, 1]
    assert trees.read_text() == first
    more = bootstrap(4)
    assert made == [0, 1, 2, 3]
    assert "replicates: 4 in " in more.stdout
    assert ", 2 of them from an earlier run\n" in more.stdout
    assert trees.read_text().startswith(first)
    assert trees.read_text().count("\n") == 4
    assert len([*tmp_path.glob("run.replicate.*")]) == 2, "those of the first run stay"
    for number in (1, 1):
        bootstrap(number, "--redo")
        assert trees.read_text() == first.splitlines(keepends=True)[0]
    assert made == [0, 1, 2, 3, 0, 0]


@pytest.mark.parametrize(
    ("given", "change", "what"),
    [
        ((), ("--seed", "2"), "seed: the checkpoint has 1, this command 2"),
        ((), ("--rapid",), "rapid: the checkpoint has False"),
        ((), ("--model", "HKY"), "model: the checkpoint has JC, this command HKY"),
        ((), ("--names", "first-word"), "names: the checkpoint has whole, this command first-word"),
        (
            ("--constant-sites", "10,20,0,30"),
            ("--constant-sites", "10,20,0,31"),
            "constant sites: the checkpoint has [10, 20, 0, 30], this command [10, 20, 0, 31]",
        ),
    ],
)
def test_replicates_of_another_run_are_not_added_to(bootstrap, tmp_path, given, change, what):
    bootstrap(1, *given)
    trees = (tmp_path / "run.bootstraps.nwk").read_text()
    refused = bootstrap(2, *change, status=1)
    assert f"run.bootstrap.checkpoint: a checkpoint of another run: {what}" in refused.stderr
    assert (tmp_path / "run.bootstraps.nwk").read_text() == trees


def test_two_runs_cannot_make_the_same_replicates(bootstrap, plltool, small, tmp_path, monkeypatch):
    """Whichever of `bootstrap` and `search --bootstrap` comes second is refused before it begins."""
    search = ("search", small, *QUICK, "--effort", "fast", "--bootstrap", "1", "--prefix", tmp_path / "run")
    make, answers = Replicator.__call__, []

    def meanwhile(self, number, before, report=None):
        if len(answers) < 2:
            answers.append(None)
            answers[-1] = bootstrap(1, status=1) if len(answers) == 1 else plltool(*search, "--redo", status=1)
        return make(self, number, before, report)

    monkeypatch.setattr(Replicator, "__call__", meanwhile)
    assert plltool(*search).exit_code == 0
    bootstrap(1, "--redo")
    for refused in answers:
        assert refused.stderr.strip().endswith(
            "run.bootstrap.checkpoint: another run is using it; --prefix names other files"
        )
