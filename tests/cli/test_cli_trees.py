"""The commands that take trees only: distances, consensus, supports."""

import json
from pathlib import Path

import pytest

TREES = "((a:1,b:1):1,c:1,d:1);\n((a:1,c:1):2,b:1,d:1);\n((a:1,b:1):3,c:1,d:1);\n"


@pytest.fixture
def trees(tmp_path):
    path = tmp_path / "trees.nwk"
    path.write_text(TREES)
    return path


def test_distances(plltool, trees, tmp_path):
    one, two, three = (f"{trees}:{number}" for number in (1, 2, 3))

    def table(*rows):
        lines = [("tree", one, two, three), *((name, *row) for name, row in zip((one, two, three), rows, strict=True))]
        return "".join("\t".join(line) + "\n" for line in lines)

    assert plltool("trees", "distances", trees).stdout == table("020", "202", "020")
    assert plltool("trees", "distances", trees, "--relative").stdout == table("010", "101", "010")
    assert plltool("trees", "distances", trees, "--kind", "wrf").stdout == table("032", "305", "250")
    pairs = plltool("trees", "distances", trees, "--kind", "wrf", "--pairs").stdout
    assert pairs == f"tree\tother\tdistance\n{one}\t{two}\t3\n{one}\t{three}\t2\n{two}\t{three}\t5\n"
    record = json.loads(plltool("trees", "distances", trees, "--kind", "branch-score", "--json").stdout)
    assert record["kind"] == "branch-score"
    assert record["trees"] == [one, two, three]
    assert record["distances"][1][2] == pytest.approx(13**0.5)
    output = tmp_path / "d.tsv"
    done = plltool("trees", "distances", trees, trees, "--output", output)
    assert (done.stdout, done.stderr) == ("", f"plltool: distances: {output}\n")
    lines = output.read_text().splitlines()
    assert len(lines) == 7
    assert lines[0] == "\t".join(["tree", one, two, three, one, two, three])
    assert plltool("trees", "distances", trees, "--kind", "wrf", "--relative").exit_code == 2


def test_consensus(plltool, trees):
    assert plltool("trees", "consensus", trees).stdout == "(a:1.0,b:1.0,(c:1.0,d:1.0)66.6667:2.0);\n"
    assert plltool("trees", "consensus", trees, "--rule", "strict").stdout == "(a:1.0,b:1.0,c:1.0,d:1.0);\n"
    assert plltool("trees", "consensus", "nowhere").exit_code == 1


def test_a_consensus_without_the_first_trees(plltool, tmp_path):
    """Shares and lengths of the rest, by hand: of four trees and of three, a quarter is one tree and none."""
    long, short = tmp_path / "long.t", tmp_path / "short.t"
    long.write_text("((a:9,b:9):9,c:9,d:9);\n" + "((a:1,c:1):2,b:1,d:1);\n" * 3)
    short.write_text("((a:1,b:1):4,c:1,d:1);\n" * 3 + "((a:1,c:1):2,b:1,d:1);\n")
    assert plltool("trees", "consensus", long, "--burnin", 0.25).stdout == "(a:1.0,(b:1.0,d:1.0)100:2.0,c:1.0);\n"
    both = plltool("trees", "consensus", long, short, "--burnin", 0.49).stdout
    assert both == "(a:1.0,(b:1.0,d:1.0)66.6667:2.0,c:1.0);\n"


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files have no names here")
def test_standard_output_that_goes_to_a_file_is_not_replaced(plltool, trees, tmp_path):
    link = tmp_path / "stdout"  # as /dev/stdout is one
    with (tmp_path / "x.nwk").open("w") as stream:
        link.symlink_to(f"/proc/self/fd/{stream.fileno()}")
        done = plltool("trees", "consensus", trees, "--output", link, "--redo", status=1)
        assert "stdout: cannot write the file: it stands for an open file, expected that file's name" in done.stderr
        assert link.is_symlink()


def test_what_a_killed_run_has_left_is_removed(plltool, trees, tmp_path, monkeypatch):
    tree = tmp_path / "best.nwk"
    tree.write_text("((a:1,b:1):1,c:1,d:1);")

    def die(*_):
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", die)
        patch.setattr("os.unlink", die)
        plltool("support", tree, trees, "--prefix", tmp_path / "r[1]")
    (partial,) = tmp_path.glob(".r*")
    others = [
        tmp_path / f".r{end}" for end in ("[1].support.nwk.20261127", "1.support.nwk.abcdefgh.partial", "[1].x.partial")
    ]
    for path in others:
        path.write_text("an editor's")
    plltool("support", tree, trees, "--prefix", tmp_path / "r[1]", status=0)
    assert not partial.exists()
    assert all(path.exists() for path in others)


def test_support(plltool, trees, tmp_path):
    tree = tmp_path / "best.nwk"
    tree.write_text("((a:1,b:1):1,c:1,d:1);")
    done = plltool(
        "support", "--tree", tree, "--replicates", trees, "--supports", "tbe,fbp", "--outgroup", "c,d", status=0
    )
    written = sorted(path.name for path in tmp_path.glob("best.nwk.plltool.*"))
    supports = [f"support{end}" for end in (".fbp.nwk", ".json", ".nex", ".nwk", ".tbe.nwk")]
    assert written == [f"best.nwk.plltool.{end}" for end in ("html", *supports, "txt")]
    assert "fbp: Felsenstein's bootstrap: " in done.stdout
    assert "tree with supports of one kind: " in done.stdout
    assert (tmp_path / "best.nwk.plltool.support.fbp.nwk").read_text() == "(a:1.0,b:1.0,(c:1.0,d:1.0)66.7:1.0);\n"
    both = (tmp_path / "best.nwk.plltool.support.nwk").read_text()
    assert both == "(a:1.0,b:1.0,(c:1.0,d:1.0)0.667/66.7:1.0);\n"
    assert "[&tbe=0.667,fbp=66.7]:1.0" in (tmp_path / "best.nwk.plltool.support.nex").read_text()
    record = json.loads((tmp_path / "best.nwk.plltool.support.json").read_text())
    assert record["branches"][0]["fbp"] == pytest.approx(200 / 3)
    assert record["tree"] + "\n" == both
    plltool("support", "--tree", tree, "--replicates", trees, status=1, told="exists already")
    intruder = plltool("support", "--tree", tree, "--replicates", trees, "--outgroup", "a,c", "--redo", status=0)
    assert "warning: the outgroup is not one clade" in intruder.stderr
    assert "'a' alone is used as the outgroup" in intruder.stderr
    assert (tmp_path / "best.nwk.plltool.support.fbp.nwk").read_text().startswith("(a:1.0,")
    rooted = ("--outgroup", "d", "--prefix", tmp_path / "rooted")
    assert plltool("support", "--tree", tree, "--replicates", trees, *rooted).exit_code == 0
    record = json.loads((tmp_path / "rooted.support.json").read_text())
    assert record["tree"] == "((a:1.0,b:1.0)66.7:1.0,c:1.0,d:1.0);"
    assert record["tree"] + "\n" == (tmp_path / "rooted.support.nwk").read_text()
    several = plltool("support", "--tree", trees, "--replicates", trees)
    assert several.stderr == f"plltool: warning: {trees}: found several trees, the first one is taken\n"
    told = "the outgroup's taxon 'x' is not in the tree"
    plltool("support", "--tree", tree, "--replicates", trees, "--outgroup", "x", "--redo", status=1, told=told)


def test_root(plltool, trees, tmp_path):
    assert plltool("trees", "root", trees, "--outgroup", "a").stdout.splitlines()[0] == (
        "(a:0.5,((c:1.0,d:1.0):1.0,b:1.0):0.5);"
    )
    output = tmp_path / "rooted.nwk"
    assert plltool("trees", "root", trees, "--root", "midpoint", "--output", output).exit_code == 0
    assert output.read_text().splitlines()[2] == "((a:1.0,b:1.0):1.5,(c:1.0,d:1.0):1.5);"
    assert plltool("trees", "root", trees).exit_code == 2
    unknown = plltool("trees", "root", trees, "--outgroup", "x", status=1)
    assert "trees.nwk: tree 1: the outgroup's taxon 'x' is not in the tree" in unknown.stderr


def test_a_record_stands_for_its_tree_and_an_alignment_for_none(plltool, data_dir, tmp_path):
    record = tmp_path / "run.json"
    record.write_text(json.dumps({"tree": "(a:1,b:1,(c:1,d:1):1);"}))
    tree = tmp_path / "tree.nwk"
    tree.write_text("(a:1,b:1,(c:1,d:1):1);")
    assert plltool("show", record).stdout == plltool("show", tree).stdout
    found = plltool("trees", "distances", record, tree, "--json")
    assert json.loads(found.stdout)["distances"] == [[0, 0], [0, 0]]
    for head in ("  4  1\n\n", "4 1 "):  # of PAML: the numbers of taxa and trees, as PHYLIP has those of taxa and sites
        tree.write_text(f"{head}(a:1,b:1,(c:1,d:1):1);\n// end\n")
        assert plltool("show", tree).stdout == plltool("show", record).stdout
    record.write_text("{}")
    assert "it lacks tree" in plltool("show", record).stderr
    alignment = data_dir / "primates.phy"
    for command in (("show",), ("trees", "consensus"), ("evaluate", alignment)):
        plltool(*command, alignment, status=1, told=f"{alignment}: found an alignment, expected a tree")


def test_show(plltool, trees, tmp_path):
    shown = plltool("show", trees, "--width", "20")
    assert "found several trees, the first one is taken" in shown.stderr
    assert shown.stdout.splitlines()[0].endswith(" a")
    picture = tmp_path / "tree.svg"
    assert plltool("show", trees, "--svg", picture).stdout == f"picture: {picture}\n"
    assert picture.read_text().startswith("<svg")
    assert plltool("show", trees, "--output", tmp_path / "other.SVG").exit_code == 0
    assert (tmp_path / "other.SVG").read_bytes() == picture.read_bytes()
    assert plltool("show", trees, "--unrooted").exit_code == 2
    rooted = plltool("show", trees, "--root", "mad")
    assert "tree.nwk" not in rooted.stdout
    assert "minimal ancestor deviation" in rooted.stderr


def test_a_kind_of_root_and_an_outgroup(plltool, tmp_path):
    path = tmp_path / "t.nwk"
    path.write_text("((a:1,b:1):1,c:1,d:1);\n")
    for arguments, problem in (
        (("--root", "outgroup"), "root: found 'outgroup' without an outgroup, expected the taxa of one"),
        (("--root", "mad", "--outgroup", "a"), "root: found 'mad' and an outgroup, expected only one"),
    ):
        assert plltool("trees", "root", path, *arguments).stderr.splitlines()[-1].endswith(problem)
