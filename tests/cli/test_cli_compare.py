"""`plltool compare`: exit 0 or 3, the traces side by side, and where and how two searches part."""

import json
import re
import shutil

import pytest
from samples import small_records

from plltool.analyses.machine.compare import compare_records
from plltool.engine.numpy_engine import NumpyEngine
from plltool.io.newick import parse_newick

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
    arguments = ("--a", "numpy:precision=single", "--b", "numpy", "--tolerance", "0", "--json", *QUICK)
    result = plltool("compare", small, *arguments, status=3)
    found = json.loads(result.stdout)
    assert found["agree"] is False
    assert found["first_difference"] == 0
    assert found["difference"] != 0
    assert len(found["a"]["trace"]) > 3
    assert found["command"].startswith("plltool compare ")


def test_a_specification_that_cannot_be_read(plltool, small):
    result = plltool("compare", small, "--a", "numpy:wv=2", "--b", "numpy", status=1)
    assert "wv=2" in result.stderr


@pytest.mark.parametrize("arguments", [(), ("--a", "numpy")])
def test_half_a_question_is_a_usage_error(plltool, small, arguments):
    result = plltool("compare", small, *arguments, status=2)
    assert "--a and --b" in result.stderr


# --- an engine that is broken on purpose -------------------------------------------------------------------


def test_a_broken_engine_is_found_and_its_first_moves_are_told(plltool, data_dir, monkeypatch, tmp_path):
    """Scores of insertions without the subtree: the two searches part in the first round that moves."""
    insert = NumpyEngine._insert

    def broken(self, row):
        return insert(self, row) * (1 + row[3] % 7 if self.layout.vw == 2 else 1)

    monkeypatch.setattr(NumpyEngine, "_insert", broken)
    arguments = ("--a", "numpy:vw=4", "--b", "numpy:vw=2", "--model", "JC", "--start", "random", "--effort", "fast")
    few = tmp_path / "few.fasta"
    few.write_text(">".join((data_dir / "hard.fasta").read_text().split(">")[:21]))
    result = plltool("compare", few, *arguments, "--radius", "1")
    assert result.exit_code == 3, result.stdout + result.stderr
    assert "in moves, or in lnL above 0.01: row 2 of the table" in result.stdout
    assert "only a moved" in result.stdout
    assert "promising" in result.stdout
    assert "the results DIFFER" in result.stdout


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
    assert "the results DIFFER" in result.stdout


# --- records ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def records(plltool, data_dir, tmp_path_factory):
    """Three runs: twice the same, and one from another seed that has stopped at the start tree."""
    folder = tmp_path_factory.mktemp("records")
    small = folder / "small.fasta"
    small.write_text("".join(f">{name}\n{sequence}\n" for name, sequence in small_records(data_dir, 6)))
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
    assert found.rf == len(splits(again[0]) ^ splits(again[1]))


def splits(tree):
    """Each inner branch as the set of taxa on the side without the first."""
    found = set()
    for a, b in tree.ends.tolist():
        if a >= tree.n_taxa and b >= tree.n_taxa:
            side, stack = set(), [(a, b)]
            while stack:
                node, parent = stack.pop()
                if node < tree.n_taxa:
                    side.add(tree.names[node])
                else:
                    stack += [(other, node) for other in tree.neighbours[node].tolist() if other != parent]
            found.add(frozenset(side if tree.names[0] not in side else set(tree.names) - side))
    return found


def test_records_of_other_taxa_are_refused(plltool, records, tmp_path):
    changed = tmp_path / "changed.json"
    changed.write_text(records[0].read_text().replace("Lemur_catta", "Lemur"))
    result = plltool("compare", records[0], changed, status=1)
    assert "found a tree of other taxa" in result.stderr


@pytest.mark.parametrize(
    ("key", "value"), [("trace", 7), ("trace", [{"lnl": 1}]), ("trace", ["x"]), ("tree", 5), ("lnl", "x")]
)
def test_a_record_that_cannot_be_read(plltool, records, tmp_path, key, value):
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(json.loads(records[0].read_text()) | {key: value}))
    result = plltool("compare", records[0], changed, status=1)
    assert "expected" in result.stderr or "must be" in result.stderr


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


def test_a_folder_takes_no_start_tree(plltool, tmp_path):
    plltool("compare", tmp_path, "--a", "numpy", "--b", "numpy", "--start", "x.nwk", status=2)


@pytest.fixture
def different(plltool, small, tmp_path):
    """Searches a, and others by what is different."""
    names = [line[1:] for line in small.read_text().splitlines() if line.startswith(">")]
    groups, other = tmp_path / "groups.nwk", tmp_path / "other.fasta"
    groups.write_text(f"(({names[0]},{names[1]}),{names[2]},{names[3]});")
    turned = str.maketrans("ACGT", "CGTA")  # of the same size, and the same lnL under JC
    lines = small.read_text().splitlines()
    other.write_text("".join(f"{line if line.startswith('>') else line.translate(turned)}\n" for line in lines))
    found = {}
    for name, path, options in (
        ("a", small, ()),
        ("same", small, ()),
        ("data", other, ()),
        ("model", small, ("--model", "HKY")),
        ("start", small, ("--start", "random")),
        ("effort", small, ("--effort", "thorough")),
        ("constraint", small, ("--constraint", groups)),
    ):
        run = ("search", path, "--device", "numpy", "--model", "JC", "--effort", "fast", *options)
        assert plltool(*run, "--prefix", tmp_path / name).exit_code == 0
        found[name] = tmp_path / f"{name}.json"
    return found


def test_what_is_not_the_same_search_is_told_first(plltool, different):
    def note(name):
        return plltool("compare", different["a"], different[name]).stdout.splitlines()[0]

    assert note("same").startswith("a: ")
    told = "note: the settings differ: "
    assert note("model").startswith(f"{told}model JC and HKY")
    assert note("start") == f"{told}start parsimony and random"
    assert re.match(f"{told}.*perturbations \\d+ and \\d+", note("effort"))
    assert re.match(f"{told}.*constraint none and tree [0-9a-f]+", note("constraint"))


def test_other_data_are_refused(plltool, different):
    refused = plltool("compare", different["a"], different["data"], status=1)
    found = f"found a run of another alignment than in {different['a']}, expected runs of the same data"
    assert refused.stderr == f"plltool: error: {different['data']}: {found}\n"
