"""A tree or trees as an argument or by an option, and results as JSON."""

import json

import pytest

TREES = (
    "(Tarsius_syrichta,Lemur_catta,((Homo_sapiens,Pan),(Gorilla,Pongo)));\n"
    "(Tarsius_syrichta,Lemur_catta,((Homo_sapiens,Gorilla),(Pan,Pongo)));\n"
)
QUICK = ("--device", "numpy", "--model", "JC")


@pytest.fixture
def files(tmp_path):
    (tmp_path / "trees.nwk").write_text(TREES)
    (tmp_path / "tree.nwk").write_text(TREES.splitlines()[0])
    return tmp_path


def without_seconds(stdout):
    return [line for line in stdout.splitlines() if "seconds" not in line]


@pytest.mark.parametrize(
    ("command", "option", "file", "rest"),
    [
        ("evaluate", "--tree", "tree.nwk", QUICK),
        ("alrt", "--tree", "tree.nwk", (*QUICK, "--replicates", 10)),
        ("ancestral", "--tree", "tree.nwk", (*QUICK, "--redo")),
        ("test", "--trees", "trees.nwk", (*QUICK, "--replicates", 10)),
    ],
)
def test_the_tree_behind_the_alignment(plltool, small, files, command, option, file, rest):
    by_argument = plltool(command, small, files / file, *rest, status=0)
    by_option = plltool(command, small, option, files / file, *rest)
    assert without_seconds(by_argument.stdout) == without_seconds(by_option.stdout)
    both = plltool(command, small, files / file, option, files / file, *rest, status=2)
    assert f"found {files / file} as an argument and also {option}, expected only one" in both.stderr
    plltool(command, small, *rest, status=2, told=f"missing {option[2:].upper()}, as an argument or by {option}")


def test_support_by_arguments(plltool, files):
    tree, trees = files / "tree.nwk", files / "trees.nwk"
    by_option = plltool("support", "--tree", tree, "--replicates", trees, "--prefix", files / "a", "--json")
    by_argument = plltool("support", tree, trees, trees, "--json", status=0)
    assert (files / "tree.nwk.plltool.support.nwk").read_text() == (files / "a.support.nwk").read_text()
    found, expected = json.loads(by_argument.stdout), json.loads(by_option.stdout)
    assert found["branches"] == expected["branches"]
    assert found["kinds"]["fbp"]["replicates"] == 4
    assert sorted(branch["fbp"] for branch in found["branches"]) == [50.0, 50.0, 100.0]
    assert plltool("support", tree, trees, "--replicates", trees).exit_code == 2
    assert plltool("support", tree).exit_code == 2


def test_concordance_by_arguments(plltool, small, files):
    tree, trees = files / "tree.nwk", files / "trees.nwk"
    ways = (
        (tree, trees),
        (tree, "--gcf", trees),
        ("--tree", tree, "--gcf", trees),
        (tree, trees, "--alignment", small),
        (small, "--tree", tree, "--gcf", trees),
    )
    tables = []
    for number, way in enumerate(ways):
        plltool("concordance", *way, "--prefix", files / f"w{number}", status=0)
        tables.append((files / f"w{number}.cf.stat").read_text())
    assert tables[0] == tables[1] == tables[2]
    assert tables[3] == tables[4]
    assert tables[0] != tables[3]
    for wrong in (
        (tree, trees, "--gcf", trees),
        (small, "--alignment", small, "--tree", tree),
        (small, trees, "--tree", tree),
        (),
    ):
        assert plltool("concordance", *wrong).exit_code == 2


@pytest.mark.parametrize(
    ("command", "keys"),
    [
        (("search", "--effort", "fast"), {"lnl", "tree", "model"}),
        (("bootstrap", "--replicates", 2), {"trees", "lnls", "seed"}),
        (("sample", "--generations", 40, "--sample-every", 20, "--chains", 2), {"posterior", "priors"}),
        (("marginal-likelihood", "--generations", 60, "--sample-every", 2), {"log_marginal_likelihood", "error"}),
    ],
)
def test_results_as_json(plltool, small, files, command, keys):
    found = plltool(
        *(command[0], small, *command[1:], *QUICK, "--json", "--prefix", files / "run"),
        *(() if command[0] == "marginal-likelihood" else ("--workers", 1)),
        status=0,
    )
    record = json.loads(found.stdout)
    assert keys <= record.keys()
    if command[0] == "bootstrap":
        assert record["trees"] == (files / "run.bootstraps.nwk").read_text().splitlines()
