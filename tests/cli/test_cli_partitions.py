"""Partitions on the command line: what a run writes leads back to its lnL."""

import json

import pytest

from plltool.constants import LINKAGES

NUMPY = ("--device", "numpy")
PARTS = "HKY+F+G4, odd = 1-300\\2\nJC, even = 2-300\\2\n"


@pytest.fixture
def scheme(tmp_path):
    path = tmp_path / "small.part"
    path.write_text(PARTS)
    return path


@pytest.mark.parametrize("brlen", LINKAGES)
def test_what_is_written_is_read_back(plltool, small, scheme, tmp_path, brlen):
    prefix = tmp_path / "run"
    options = ("--brlen", brlen, *NUMPY)
    result = plltool("search", small, "--model", scheme, "--effort", "fast", "--prefix", prefix, *options, status=0)
    assert "partition odd: lnL -" in result.stdout
    assert f"models of partitions: {prefix}.best.model" in result.stdout
    record = json.loads((tmp_path / "run.json").read_text())
    assert record["brlen"] == brlen
    assert [(part["name"], part["sites"], part["n_sites"]) for part in record["parts"]] == [
        ("odd", "1-300\\2", 150),
        ("even", "2-300\\2", 150),
    ]
    assert sum(part["lnl"] for part in record["parts"]) == pytest.approx(record["lnl"], rel=1e-12)
    trees = tmp_path / "run.parts.nwk"
    assert trees.exists() == (brlen == "unlinked")
    tree = trees if trees.exists() else tmp_path / "run.best.nwk"
    for model in (tmp_path / "run.best.model", tmp_path / "run.json"):
        again = plltool("evaluate", small, "--tree", tree, "--model", model, "--fixed", "--json", *options, status=0)
        assert json.loads(again.stdout)["lnl"] == pytest.approx(record["lnl"], rel=1e-12)


def test_the_first_of_several_trees_is_taken_with_a_warning(plltool, small, tmp_path, names):
    trees = tmp_path / "t.nwk"
    trees.write_text("({},{},({},({},({},{}))));\n({},{},({},{},({},{})));\n".format(*names, *names))
    result = plltool("evaluate", small, "--tree", trees, "--model", "JC", "--fixed", *NUMPY, status=0)
    warning = f"plltool: warning: {trees}: found 2 trees, the first one is taken; --brlen unlinked takes one for each"
    assert sum(line.startswith(warning) for line in result.stderr.splitlines()) == 1
    trees.write_text(trees.read_text().splitlines()[0] + "\n\n")
    assert "found 2 trees" not in plltool("evaluate", small, "--tree", trees, "--model", "JC", *NUMPY).stderr


def test_files_of_an_earlier_run_go(plltool, small, scheme, tmp_path, names):
    """A run without parts does not leave the models of one with parts beside its own results."""
    arguments = ("evaluate", small, "--tree", tmp_path / "t.nwk", "--prefix", tmp_path / "run", "--fixed", *NUMPY)
    (tmp_path / "t.nwk").write_text("({},{},({},({},({},{}))));".format(*names))
    assert plltool(*arguments, "--model", scheme).exit_code == 0
    assert (tmp_path / "run.evaluate.model").read_text().count("\n") == 2
    plltool(*arguments, "--model", "JC", status=1, told="exists already")
    assert plltool(*arguments, "--model", "JC", "--redo").exit_code == 0
    assert not (tmp_path / "run.evaluate.model").exists()


def test_check_tells_of_parts(plltool, small, scheme):
    text = plltool("check", small, "--model", scheme, *NUMPY).stdout
    assert "partition odd: 150 sites, " in text
    facts = json.loads(plltool("check", small, "--model", scheme, *NUMPY, "--json").stdout)
    assert [part["model"] for part in facts["parts"]] == ["HKY+F+G4+B", "JC+B"]
    whole = json.loads(plltool("check", small, "--model", "JC", *NUMPY, "--json").stdout)
    assert facts["device_bytes"] > whole["device_bytes"]


def test_trees_of_parts_that_do_not_fit(plltool, small, scheme, tmp_path, names):
    shape = "({},{},({},({},({},{}))));"
    one, other = shape.format(*names), shape.format(*names[1:], names[0])
    path = tmp_path / "t.nwk"
    options = ("--tree", path, "--model", scheme, "--brlen", "unlinked", "--fixed", *NUMPY)
    for text, message in (
        (f"{one}\n{other}\n", "t.nwk: line 2: the topology differs from that in "),
        (f"{one}\n" * 3, "found branch lengths of 3 trees, expected 1 or one for each of 2 partitions"),
    ):
        path.write_text(text)
        result = plltool("evaluate", small, *options, status=1)
        assert message in result.stderr
    path.write_text(one)
    assert plltool("evaluate", small, *options).exit_code == 0


def test_search_starts_from_trees_of_parts(plltool, small, scheme, tmp_path, names):
    path = tmp_path / "t.nwk"
    path.write_text("".join("({}:{x},{},({},({},({},{}))));\n".format(*names, x=x) for x in (0.001, 3.0)))
    options = ("--start", path, "--brlen", "unlinked", "--effort", "fast", *NUMPY)
    plltool("search", small, "--model", scheme, "--prefix", tmp_path / "run", *options, status=0)


def test_one_part_has_nothing_to_unlink(plltool, small, tmp_path):
    options = ("--brlen", "unlinked", "--effort", "fast", *NUMPY)
    result = plltool("search", small, "--model", "JC", "--prefix", tmp_path / "run", *options, status=0)
    assert "model: JC" in result.stdout
    assert sorted(path.name for path in tmp_path.glob("run.*")) == [
        *("run.best.nwk", "run.html", "run.json", "run.log", "run.txt")
    ]


def test_trees_of_parts_in_nexus(plltool, small, scheme, tmp_path, names):
    """The same lengths of parts as from lines of Newick."""
    shape = "({}:0.1,{}:{},({}:0.3,({}:0.2,({}:0.1,{}:0.2):0.05):0.1):0.02);"
    trees = [shape.format(*names[:2], length, *names[2:]) for length in (0.2, 0.9)]
    lines, nexus = tmp_path / "t.nwk", tmp_path / "t.nex"
    lines.write_text("\n".join(trees) + "\n")
    nexus.write_text(f"#NEXUS\nbegin trees;\ntree a = {trees[0]}\ntree b = [&U] {trees[1]}\nend;\n")
    options = ("--model", scheme, "--brlen", "unlinked", "--fixed", *NUMPY)
    found, expected = (plltool("evaluate", small, "--tree", path, *options, status=0) for path in (nexus, lines))
    assert found.stdout == expected.stdout
    first = plltool("evaluate", small, "--tree", nexus, "--model", scheme, "--fixed", *NUMPY)
    assert first.stdout != found.stdout
    assert "t.nex: found 2 trees, the first one is taken; --brlen unlinked takes one for each partition" in first.stderr
