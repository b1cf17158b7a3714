"""`plltool compare`: exit 0 or 3, the traces side by side, and where and how two searches part."""

import json
import re
import shutil

import numpy as np
import pytest
from oracles.constraint import edge_splits
from small_alignments import hard_taxa, primates, write_fasta

from plltool.analyses.machine.compare import compare, compare_records
from plltool.engine.contract import InstructionWord
from plltool.engine.numpy_engine import NumpyEngine
from plltool.hardware import Hardware
from plltool.io.newick import parse_newick
from plltool.tree_search.effort import SearchOptions

QUICK = ("--model", "HKY+F", "--start", "random", "--radius", "3")


def test_widths_agree(plltool, small):
    result = plltool("compare", small, "--a", "numpy:vw=1", "--b", "numpy:vw=4", *QUICK, status=0)
    assert "Robinson-Foulds distance: 0" in result.stdout
    assert "branch score distance: 0.000000" in result.stdout
    assert "no difference in moves, or in lnL above 0.01" in result.stdout
    assert "nni 1" in result.stdout


@pytest.mark.opencl
def test_numpy_and_opencl_agree(plltool, small):
    plltool("compare", small, "--a", "numpy:vw=2", "--b", "opencl", *QUICK, status=0)


def test_a_difference_exits_3(plltool, small):
    arguments = ("--a", "numpy:precision=single", "--b", "numpy", "--tolerance", "0", *QUICK)
    told = "the tree of a after this round agree, so that only rounding, or optimised values, differ:"
    assert told in plltool("compare", small, *arguments, status=3).stdout
    found = json.loads(plltool("compare", small, *arguments, "--json", status=3).stdout)
    assert found["agree"] is False
    assert found["first_difference"] == 0
    assert found["difference"] != 0
    assert len(found["trace"]) > 3
    assert found["command"].startswith("plltool compare ")
    assert "a" not in found, "the record is that of a"


def test_a_specification_that_cannot_be_read(plltool, small):
    plltool("compare", small, "--a", "numpy:wv=2", "--b", "numpy", status=1, told="wv=2")


def test_replicates_of_both_have_the_same_trees(plltool, small):
    arguments = ("--a", "numpy:vw=1", "--b", "numpy:vw=4", "--bootstrap", "2", "--json", *QUICK)
    found = json.loads(plltool("compare", small, *arguments, status=0).stdout)
    assert found["replicates"] == [0, 0]


# --- an engine that is broken on purpose -------------------------------------------------------------------


def test_a_broken_engine_is_found_and_its_first_moves_are_told(plltool, data_dir, monkeypatch, tmp_path):
    """Scores of insertions without the subtree: the two searches part in the first round that moves."""
    insert = NumpyEngine._insert

    def broken(self, row):
        return insert(self, row) * (1 + row[3] % 7 if self.layout.vw == 2 else 1)

    monkeypatch.setattr(NumpyEngine, "_insert", broken)
    arguments = ("--a", "numpy:vw=4", "--b", "numpy:vw=2", "--model", "JC", "--start", "random", "--effort", "fast")
    few = write_fasta(tmp_path / "few.fasta", hard_taxa(data_dir, 20))
    result = plltool("compare", few, *arguments, "--radius", "1", "--prefix", tmp_path / "two")
    assert result.exit_code == 3, result.stdout + result.stderr
    assert "in moves, or in lnL above 0.01: row 2 of the table" in result.stdout
    assert "only a moved" in result.stdout
    assert "promising" in result.stdout
    assert "the tree of a before this round agree, so that the decisions differ" in result.stdout
    assert "the results DIFFER" in result.stdout
    report = re.sub(r"\s+", " ", (tmp_path / "two.txt").read_text())
    first = re.search(r"\n(nni 1) +(\S+) +(\S+) +(\S+)  <", result.stdout)
    assert " ".join(first.groups()) in report, "the rounds are in the report"
    assert "First round that differs: nni 1 " in report
    for line in re.findall(r"only [ab] moved .*", result.stdout):
        assert f"- {line} " in report
    assert "Likelihoods of the tree of search a before they part: agree" in report
    assert "The search began from 1 random starting tree" in report
    assert "of the given tree" not in report, "the methods are those of a search"


def test_searches_that_part_in_their_second_climb(data_dir, monkeypatch, tmp_path):
    """Scores of b are broken from the second start tree on: the likelihoods are those of the tree there."""
    insert, starts = NumpyEngine._insert, []

    def broken(self, row):
        return insert(self, row) * (1 + row[3] % 7 if len(starts) == 4 and self.layout.vw == 2 else 1)

    monkeypatch.setattr(NumpyEngine, "_insert", broken)
    few = write_fasta(tmp_path / "few.fasta", hard_taxa(data_dir, 20))
    how = {"model": "JC", "start": "random", "options": SearchOptions(effort="fast", starts=2, radii=(1,))}

    def listen(event):
        starts.extend([event] if event.stage == "start" else [])

    found = compare(few, Hardware("numpy", vw=4), Hardware("numpy", vw=2), listener=listen, **how)
    before = found.a.trace[found.first_difference - 1]
    assert before is [event for event in found.a.trace if event.stage == "start"][1]
    assert found.before.answers[0].lnl == pytest.approx(before.lnl, abs=1e-6)


@pytest.mark.opencl
def test_a_broken_kernel_is_found(plltool, small, monkeypatch, tmp_path):
    """One line of a copy of the kernels' folder: P matrices are transposed."""
    from plltool.engine.opencl.kernels import find_kernel_folder

    copy = tmp_path / "kernels"
    shutil.copytree(find_kernel_folder(), copy)
    source = copy / "pmatrices.cl"
    sound = source.read_text()
    line = "#define ENTRY(i, j) ((i) * N_STATES + (j))"
    assert sound.count(line) == 1
    source.write_text(sound.replace(line, "#define ENTRY(i, j) ((j) * N_STATES + (i))"))
    monkeypatch.setattr("plltool.engine.opencl.kernels.find_kernel_folder", lambda: copy)
    result = plltool("compare", small, "--a", "numpy", "--b", "opencl", *QUICK)
    assert result.exit_code == 3, result.stdout + result.stderr
    assert "above 0.01: row 1 of the table" in result.stdout
    assert "the tree of a after this round differ:" in result.stdout
    assert "the results DIFFER" in result.stdout


# --- one tree ----------------------------------------------------------------------------------------------


def test_the_likelihood_of_a_tree_on_two_devices(plltool, small, some_tree, tmp_path):
    arguments = ("--tree", some_tree, "--model", "HKY+F+G4", "--a", "numpy:vw=1", "--b", "numpy:vw=4")
    result = plltool("compare", small, *arguments, "--prefix", tmp_path / "two", status=0)
    record = json.loads((tmp_path / "two.compare.json").read_text())
    evaluated = plltool("evaluate", small, some_tree, "--model", "HKY+F+G4", "--device", "numpy", "--json", status=0)
    assert record["lnl"] == pytest.approx(json.loads(evaluated.stdout)["lnl"], abs=1e-6)
    (pair,) = record["comparison"]["pairs"]
    assert all(abs(pair[name]) < 1e-9 for name in ("lnl", "site_lnl", "slope"))
    assert "the likelihoods agree" in result.stdout
    assert "Largest differences" in (tmp_path / "two.txt").read_text()


def test_a_wrong_derivative_of_one_branch_is_found(plltool, data_dir, small, some_tree, monkeypatch):
    """A tenth is added to the slopes in the length of the fifth taxon's branch where VW is 2; lnL stays right."""
    derivative = NumpyEngine._derivative

    def broken(self, row):
        lnl, first, second = derivative(self, row)
        is_wrong = self.layout.vw == 2 and row[InstructionWord.B] == ~4
        return np.stack([lnl, first + 0.1 * is_wrong, second])

    monkeypatch.setattr(NumpyEngine, "_derivative", broken)
    arguments = ("--tree", some_tree, "--model", "JC", "--a", "numpy:vw=1", "--b", "numpy:vw=2", "--fixed", "--json")
    result = plltool("compare", small, *arguments, status=3)
    (pair,) = json.loads(result.stdout)["comparison"]["pairs"]
    assert f"('{sorted(primates(data_dir, 6))[4]}' | others)" in pair["slope_in"]
    assert abs(pair["lnl"]) < 1e-9


def test_all_devices(plltool, small, some_tree):
    result = plltool("compare", small, "--tree", some_tree, "--model", "JC", "--all", "--json", status=0)
    found = json.loads(result.stdout)["comparison"]
    labels = [own["label"] for own in found["devices"]]
    assert labels[:3] == ["numpy:vw=1", "numpy:vw=2", "numpy:vw=4"]
    assert labels[3:5] == ["numpy:precision=mixed", "numpy:precision=single"]
    assert len(found["pairs"]) == len(labels) * (len(labels) - 1) / 2


def test_all_devices_without_those_that_fail_their_test(plltool, small, some_tree, monkeypatch):
    broken = {"index": "0:0", "name": "Broken GPU", "double": True, "problem": "no answer within 60 s"}
    monkeypatch.setattr("plltool.analyses.machine.compare_likelihoods.devices", lambda: {"devices": [broken]})
    result = plltool("compare", small, "--tree", some_tree, "--model", "JC", "--all", status=0)
    assert "0:0 Broken GPU is left out: no answer within 60 s" in result.stderr


# --- records ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def records(plltool, data_dir, tmp_path_factory):
    """Three runs: twice the same, and one from another seed that has stopped at the start tree."""
    folder = tmp_path_factory.mktemp("records")
    small = write_fasta(folder / "small.fasta", primates(data_dir, 6, 300))
    for name, more in (("one", ()), ("two", ()), ("other", ("--seed", 9, "--perturbations", 0))):
        plltool("search", small, "--device", "numpy", *QUICK, "--prefix", folder / name, *more, status=0)
    return [folder / f"{name}.json" for name in ("one", "two", "other")]


def test_records_of_the_same_search_agree(plltool, records):
    result = plltool("compare", records[0], records[1], "--tolerance", "0", status=0)
    assert "difference 0.000000" in result.stdout
    assert "note:" not in result.stdout


def test_records_of_different_searches(plltool, records, tmp_path):
    record = json.loads(records[2].read_text())
    record["tree"] = record["tree"].replace("Tarsius_syrichta", "X").replace("Lemur_catta", "Tarsius_syrichta")
    record["tree"] = record["tree"].replace("X", "Lemur_catta")
    record["lnl"] -= 1.0
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(record))
    result = plltool("compare", records[0], changed, status=3)
    assert "note: the settings differ: seed 1 and 9" in result.stdout
    found = compare_records(records[0], changed)
    assert found.difference == pytest.approx(-1.0, abs=0.05)
    again = [parse_newick(run.record["tree"], "x", found.a.tree.names) for run in (found.a, found.b)]
    splits = [edge_splits(tree.ends, tree.names, frozenset(tree.names)) for tree in again]
    assert found.rf == len(splits[0] ^ splits[1])


def test_two_folders_of_records(plltool, records, tmp_path):
    """One search is the same in both, one has another seed, one is missing; records of other commands do not count."""
    folders = [tmp_path / "old", tmp_path / "new"]
    for folder in folders:
        folder.mkdir()
        shutil.copy(records[0], folder / "same.json")
        (folder / "same.evaluate.json").write_text("{}")
    shutil.copy(records[0], folders[0] / "other.json")
    shutil.copy(records[2], folders[1] / "other.json")
    shutil.copy(records[0], folders[0] / "lost.json")
    result = plltool("compare", *folders, "--tolerance", "0.5", "--prefix", tmp_path / "both", status=1)
    rows = result.stdout.splitlines()[:5]
    assert [row.split()[0] for row in rows] == ["record", "lost.json:", "other.json", "same.json", "3"]
    written = json.loads((tmp_path / "both.folder.json").read_text())
    assert [written[name] for name in ("n_agree", "n_differ", "n_failed")] == [2, 0, 1]
    assert (tmp_path / "both.compare.log").exists()
    assert f"{folders[1] / 'lost.json'}: no such record" in rows[1]
    assert rows[3].split()[-1] == "agree"


def test_both_trees_in_the_report_mark_what_the_other_lacks(plltool, records, tmp_path):
    record = json.loads(records[0].read_text())
    names = re.findall(r"[A-Z]\w+", record["tree"])
    record["tree"] = record["tree"].replace(names[0], "X").replace(names[3], names[0]).replace("X", names[3])
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(record))
    plltool("compare", records[0], changed, "--prefix", tmp_path / "both", status=3)
    found = compare_records(records[0], changed)
    assert found.rf > 0
    page = (tmp_path / "both.html").read_text()
    caption = f"dots (in text stars) mark the {found.rf // 2} branches that the other lacks"
    assert page.count(caption) == 2
    layouts = re.findall(r'name="(layout-[^"]+)"', page)
    assert len(layouts) == 2 * len(set(layouts)) == 6, "the two choices of each tree are its own"
    text = (tmp_path / "both.txt").read_text()
    assert text.partition(caption)[0].count("*") == found.rf // 2


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        *(("trace", value, "expected") for value in (7, [{"lnl": 1}], ["x"])),
        ("tree", 5, "must be"),
        ("lnl", "x", "must be"),
        ("tree", "(Lemur,Pan,(Pongo,Gorilla));", "found a tree of other taxa"),
    ],
)
def test_a_record_that_cannot_be_read(plltool, records, tmp_path, key, value, message):
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(json.loads(records[0].read_text()) | {key: value}))
    plltool("compare", records[0], changed, status=1, told=message)


# --- folders ------------------------------------------------------------------------------------------------


def test_a_folder(plltool, small, tmp_path):
    folder = tmp_path / "suite"
    folder.mkdir()
    for name in ("one.fasta", "two.fasta"):
        shutil.copy(small, folder / name)
    (folder / "README.md").write_text("no alignment\n")
    arguments = ("compare", folder, "--a", "numpy:vw=1", "--b", "numpy:vw=2", *QUICK)
    result = plltool(*arguments, status=0)
    rows = result.stdout.splitlines()
    assert [row.split()[0] for row in rows] == ["alignment", "one.fasta", "two.fasta", "2"]
    assert [row.split()[-1] for row in rows[1:3]] == ["agree", "agree"]
    assert rows[3] == "2 alignments: 2 agree, 0 differ, 0 failed"
    (folder / "broken.fasta").write_text(">a\nACGT\n>b\nACG\n>c\nAC\n>d\nA\n")
    result = plltool(*arguments, "--json", status=1)
    found = json.loads(result.stdout)
    assert not found["agree"]
    assert ["error" in row for row in found["alignments"]] == [True, False, False]


def test_what_is_not_the_same_search_is_told_first(plltool, small, tmp_path, names):
    """And other data are refused."""
    groups, other = tmp_path / "groups.nwk", tmp_path / "other.fasta"
    groups.write_text(f"(({names[0]},{names[1]}),{names[2]},{names[3]});")
    turned = str.maketrans("ACGT", "CGTA")  # of the same size, and the same lnL under JC
    lines = small.read_text().splitlines()
    other.write_text("".join(f"{line if line.startswith('>') else line.translate(turned)}\n" for line in lines))
    first = tmp_path / "a.json"

    def compare(name, *options, path=small, status=None):
        run = ("search", path, "--device", "numpy", "--model", "JC", "--effort", "fast", *options)
        plltool(*run, "--no-report", "--prefix", tmp_path / name, status=0)
        return plltool("compare", first, tmp_path / f"{name}.json", status=status)

    def note(name, *options):
        return compare(name, *options).stdout.splitlines()[0]

    assert note("a").startswith("a: ")
    told = "note: the settings differ: "
    assert note("model", "--model", "HKY").startswith(f"{told}model JC and HKY")
    assert note("start", "--start", "random") == f"{told}start parsimony and random"
    assert re.match(f"{told}.*perturbations \\d+ and \\d+", note("effort", "--effort", "default"))
    assert re.match(f"{told}.*constraint none and tree [0-9a-f]+", note("constraint", "--constraint", groups))
    refused = compare("data", path=other, status=1)
    found = f"found a run of another alignment than in {first}, expected runs of the same data"
    assert refused.stderr == f"plltool: error: {tmp_path / 'data.json'}: {found}\n"
