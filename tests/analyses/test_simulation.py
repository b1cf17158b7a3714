"""`simulate`: what evolved under a model is estimated back; models of every kind; parts; errors; the command."""

import math

import numpy as np
import pytest

from plltool.analyses.toolbox.simulate import simulate
from plltool.errors import InputError
from plltool.io.alignment_reader import read_alignment
from plltool.io.files import read_record
from plltool.run.evaluation import evaluate

TREE = "((a:0.1,b:0.2):0.05,(c:0.3,d:0.08):0.12,(e:0.15,f:0.02):0.2);"
MODEL = "GTR{1.5/4.0/0.8/1.2/5.0/1.0}+FU{0.32/0.18/0.21/0.29}+G4{0.5}"
N = 20_000


@pytest.fixture(scope="module")
def estimated():
    made = simulate(TREE, MODEL, N, seed=5)
    return evaluate(made.as_sequences(), TREE, "GTR+FO+G4", device="numpy")


def test_lengths_come_back(estimated):
    """Within 5 standard errors; that of a length t is sqrt(t / N) if every change is seen, more where some are not."""
    true = dict(zip("abcdef", (0.1, 0.2, 0.3, 0.08, 0.15, 0.02), strict=True))
    tree = estimated.tree
    for tip, name in enumerate(tree.names):
        found = tree.lengths[tree.edges[tip, 0]]
        assert abs(found - true[name]) < 5 * math.sqrt(2 * true[name] / N)
    assert tree.lengths.sum() == pytest.approx(0.85 + 0.37, rel=0.03)


def test_parameters_come_back(estimated):
    parameters = estimated.parameters
    assert parameters["alpha"] == pytest.approx(0.5, rel=0.1)
    assert list(parameters["rates"].values()) == pytest.approx([1.5, 4.0, 0.8, 1.2, 5.0, 1.0], rel=0.15)
    assert list(parameters["frequencies"].values()) == pytest.approx([0.32, 0.18, 0.21, 0.29], abs=0.01)


@pytest.mark.parametrize(
    "model", ["LG4X", "LG+C10+G4{0.7}", "JC+IU{0.5}", "K80{3}+R2{0.5/1.5}{0.5/0.5}", "WAG+IU{0.1}+G4{1}"]
)
def test_models_of_every_kind(model):
    made = simulate(TREE, model, 50, seed=1)
    assert [len(sequence) for sequence in made.sequences] == [50] * 6
    assert evaluate(made.as_sequences(), TREE, model, device="numpy", fixed=True).lnl < 0


def test_trees_with_multifurcations(tmp_path):
    """Tips of a star without length differ in nothing, and the tree may stand in a NEXUS file."""
    path = tmp_path / "star.nex"
    path.write_text("#NEXUS\nbegin trees; tree star = [&R] ((a:0,b:0,c:0,d:0):0,e:9,f:9); end;")
    made = simulate(str(path), "JC", 500, seed=1)
    assert made.names == tuple("abcdef")
    assert len(set(made.sequences[:4])) == 1
    assert len(set(made.sequences)) == 3


def test_a_tree_without_lengths():
    for tree in ("(a,b,(c,d));", "(a,b,c,d,e);"):
        assert simulate(tree, "JC", 5).warnings == (
            "all branch lengths are 0.1, the default; the tree may have no branch lengths",
        )
    assert simulate(TREE, "JC", 5).warnings == ()


def test_the_seed_decides():
    first, again, other = (simulate(TREE, MODEL, 100, seed).sequences for seed in (1, 1, 2))
    assert first == again != other


def test_parts(tmp_path):
    """Part b evolves ten times as fast, in every second column."""
    path = tmp_path / "parts.txt"
    path.write_text("JC+BU{0.1}, a = 1-400\\2\nJC+BU{2.0}, b = 2-400\\2\n")
    made = simulate(TREE, path, 400, seed=3)
    changes = np.array([len(set(column)) > 1 for column in zip(*made.sequences, strict=True)])
    assert changes[::2].mean() < 0.3 < 0.7 < changes[1::2].mean()


def test_trees_of_parts(tmp_path):
    """In part a only the first tip changes, in part b only the last one."""
    model, trees = tmp_path / "parts.txt", tmp_path / "trees.nwk"
    model.write_text("JC, a = 1-200\nJC, b = 201-400\n")
    text = "((a:{},b:0):0,(c:0,d:0):0,(e:0,f:{}):0);\n"
    trees.write_text(text.format(9, 0) + text.format(0, 9))
    made = simulate(trees, model, 400, seed=1)
    rows = np.array([list(sequence) for sequence in made.sequences])
    changed = rows != rows[2]
    assert changed[0, :200].sum() > 100 < changed[5, 200:].sum()
    assert not changed[1:5].any()
    assert not changed[0, 200:].any()
    assert not changed[5, :200].any()
    assert made.newick.startswith("(a:4.5")
    trees.write_text(text.format(9, 0) * 3)
    with pytest.raises(InputError, match="found branch lengths of 3 trees, expected 1 or one for each of 2 partitions"):
        simulate(str(trees), str(model), 400)


def test_errors(tmp_path):
    for arguments, message in (
        ((TREE, MODEL, 0), "at least 1"),
        ((TREE, "GTR+F", 10), "expected values"),
        ((TREE, "nonsense", 10), "nonsense"),
        (("(a:1,b:1,c:1", MODEL, 10), "tree"),
    ):
        with pytest.raises(InputError, match=message):
            simulate(*arguments)
    assert "no values for rates" in simulate(TREE, "HKY+FE", 10).warnings[0]
    assert simulate(TREE, "JC+B", 10).warnings == (
        "scalers of the branch lengths of partitions have no values; 1 is used",
    )


def test_command(data_dir, tmp_path):
    from click.testing import CliRunner

    from plltool.cli import main

    tree = tmp_path / "t.nwk"
    tree.write_text(TREE)

    def call(*arguments):
        common = ["simulate", "--tree", str(tree), "--sites", "120", "--seed", "4"]
        return CliRunner().invoke(main, [*common, *map(str, arguments)])

    fasta, phylip = tmp_path / "s.fasta", tmp_path / "s.phy"
    for path in (fasta, phylip):
        assert call("--model", MODEL, "--output", path).stderr == f"plltool: alignment: {path}\n"
        assert call("--model", MODEL, "--output", path).exit_code == 1
    expected = simulate(TREE, MODEL, 120, 4)
    for path in (fasta, phylip):
        read = read_alignment(path)
        assert read.names == expected.names
        assert tuple(row.decode() for row in read.rows) == expected.sequences
    assert call("--model", MODEL).stdout == fasta.read_text()
    record = tmp_path / "e.evaluate.json"
    arguments = ["evaluate", str(fasta), "--tree", str(tree), "--device", "numpy", "--prefix", str(tmp_path / "e")]
    assert CliRunner().invoke(main, arguments).exit_code == 0
    assert read_record(record)["n_taxa"] == 6
    assert call("--model", record).exit_code == 0
    assert call("--model", "GTR+F").exit_code == 1
