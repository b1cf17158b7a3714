"""The ultrafast bootstrap: supports of IQ-TREE, when it ends, and that it goes on with the same bits."""

from contextlib import suppress

import numpy as np
import pytest
from interruptions import PowerCut, Stop
from small_alignments import hard_taxa
from small_alignments import primates as taxa

from plltool.analyses.search.analysis import search
from plltool.analyses.supports import ultrafast
from plltool.analyses.supports.ultrafast import ultrafast_bootstrap
from plltool.errors import InputError
from plltool.io import checkpoint as files
from plltool.io.checkpoint import remove_checkpoint
from plltool.model.partition import without_duplicates
from plltool.optimise.likelihood import TreeLikelihood
from plltool.progress import StopSearch
from plltool.run.evaluation import evaluate
from plltool.run.inputs import resolve_inputs
from plltool.seeds import ULTRAFAST, generator
from plltool.tree.splits import members_of, splits_of
from plltool.tree_search.ufboot_search import UfbootSearch, draw_weights

MODEL = "K80{4.0}+G4{0.5}"

# iqtree2 2.0.7 -s primates.phy -m GTR+F+G4 -B 1000 -seed 3: per cent, by the clade without Tarsius
IQTREE = {
    "Homo_sapiens Pan": 91,
    "Homo_sapiens Pan Gorilla": 100,
    "Homo_sapiens Pan Gorilla Pongo": 94,
    "Homo_sapiens Pan Gorilla Pongo Hylobates": 99,
    "Macaca_fuscata M_mulatta": 97,
    "Macaca_fuscata M_mulatta M_fascicularis": 92,
    "Macaca_fuscata M_mulatta M_fascicularis M_sylvanus": 100,
    "Homo_sapiens Pan Gorilla Pongo Hylobates Macaca_fuscata M_mulatta M_fascicularis M_sylvanus": 95,
}


@pytest.fixture(scope="module")
def few(data_dir):
    """Name to sequence: 7 taxa of the hard set, one of them twice."""
    few = hard_taxa(data_dir, 7, 150)
    return few | {"twin": next(iter(few.values()))}


@pytest.fixture(scope="module")
def tree(few):
    return search(few, "JC", device="numpy", effort="fast").tree


@pytest.fixture
def _soon_over(monkeypatch):
    """Six excursions, three tests; every state is written."""
    monkeypatch.setattr(files, "CHECKPOINT_PATIENCE", 0.0)
    for name, value in (("STEP", 2), ("LEAST", 6), ("MOST", 6), ("DIFFERENCE", -1.0), ("CORRELATION", 1.1)):
        monkeypatch.setattr(ultrafast, f"UFBOOT_{name}", value)


@pytest.mark.opencl
def test_supports_are_near_those_of_iqtree(primates):
    best = search(primates, "GTR+F+G4", device="opencl")
    found = ultrafast_bootstrap(primates, best.tree, best.models, device="opencl", workers=1)
    names = found.tree.names
    values = dict(zip(splits_of(found.tree), found.values["ufboot"], strict=True))
    shares = {}
    for split, value in values.items():
        side = frozenset(names[i] for i in members_of(split))
        shares[side] = shares[frozenset(names) - side] = value
    differences = [shares[frozenset(clade.split())] - value for clade, value in IQTREE.items()]
    assert np.abs(differences).max() < 9  # four seeds: up to 8; IQ-TREE's differ by up to 2
    assert abs(np.mean(differences)) < 2


def test_interruption(data_dir):
    small, stop = taxa(data_dir, n_sites=200), Stop()
    best = search(small, MODEL, device="numpy", effort="fast")
    run = {"device": "numpy", "replicates": 20, "workers": 1, "listener": stop}
    found = ultrafast_bootstrap(small, best.tree, MODEL, **run)
    assert [event.stage for event in stop.heard] == ["ufboot"]
    assert 0 <= np.nanmin(found.values["ufboot"]) <= np.nanmax(found.values["ufboot"]) <= 100
    assert found.n_replicates == {"ufboot": 20}


CASES = {
    "twins": {"model": "JC"},
    "constraint": {"model": "HKY{2.0}+G2{0.7}"},
    "unlinked": {"model": "parts", "brlen": "unlinked"},
}


@pytest.fixture
def make_run(few, tree, tmp_path):
    """The arguments of a run by the name of a case."""

    def make(case):
        run = {
            "device": "numpy",
            "workers": 1,
            "replicates": 50,
            "seed": 3,
            "tree": tree,
            "alignment": few,
            **CASES[case],
        }
        if case == "unlinked":
            run["model"] = str(tmp_path / "scheme")
            (tmp_path / "scheme").write_text("HKY+G2, one = 1-70\nJC, two = 71-150\n")
        if case == "constraint":
            side = max((list(members_of(split)) for split in splits_of(tree)), key=lambda some: 4 - abs(4 - len(some)))
            rest = [name for i, name in enumerate(tree.names) if i not in side]
            run["constraint"] = f"(({','.join(tree.names[i] for i in side)}),{','.join(rest)});"
        return run

    return make


@pytest.mark.usefixtures("_soon_over")
@pytest.mark.parametrize("case", CASES)
def test_stopped_at_every_excursion_and_resumed(make_run, case, tmp_path, monkeypatch):
    """Each call makes one excursion, and all together those of the run that nobody stopped."""
    if case == "twins":  # settled by the second test
        monkeypatch.setattr(ultrafast, "UFBOOT_LEAST", 4)
        monkeypatch.setattr(ultrafast, "UFBOOT_DIFFERENCE", 1.0)
    run, whole, listen = make_run(case), [], Stop(error=PowerCut)
    expected = ultrafast_bootstrap(listener=whole.append, **run)
    folder, parts = tmp_path / "saved", listen.heard
    for _ in whole:
        with pytest.raises(PowerCut):
            ultrafast_bootstrap(listener=listen, checkpoint=folder, **run)
    found = ultrafast_bootstrap(listener=listen, checkpoint=folder, **run)
    assert [(event.round, event.lnl.hex()) for event in parts] == [(event.round, event.lnl.hex()) for event in whole]
    assert [event.round for event in whole] == list(range(1, 5 if case == "twins" else 7))
    assert found.values["ufboot"].tobytes() == expected.values["ufboot"].tobytes()
    remove_checkpoint(folder)
    assert not folder.exists()


@pytest.fixture(scope="module")
def kept():
    """Where `unstopped` is kept for the next test."""
    return []


@pytest.fixture
def unstopped(kept, _soon_over, make_run):
    """The supports of the twins after six excursions that nobody stopped."""
    if not kept:
        kept.append(ultrafast_bootstrap(**make_run("twins")).values["ufboot"])
    return kept[0]


@pytest.mark.usefixtures("_soon_over")
@pytest.mark.parametrize("n_events", [1, 4, 5])
def test_stopped_anywhere_and_resumed_at_once(make_run, unstopped, n_events, tmp_path):
    """One process goes on to the end; an interruption or an error, between two excursions or within one."""
    run, listen = make_run("twins"), Stop(n_events, StopSearch if n_events == 1 else PowerCut)
    with suppress(PowerCut):
        ultrafast_bootstrap(listener=listen, checkpoint=tmp_path, **run)
    found = ultrafast_bootstrap(listener=listen, checkpoint=tmp_path, **run)
    assert [event.round for event in listen.heard] == [1, 2, 3, 4, 5, 6]
    assert found.values["ufboot"].tobytes() == unstopped.tobytes()


@pytest.mark.usefixtures("_soon_over")
def test_a_failure_within_an_excursion_costs_that_alone(make_run, unstopped, monkeypatch, tmp_path):
    """What is saved is not what the excursion has changed by then."""
    monkeypatch.setattr(files, "CHECKPOINT_PATIENCE", 1e9)  # the state waits until the end
    run = make_run("twins")
    climb, calls = UfbootSearch._climb_back, []

    def broken(self, joints, meet):
        calls.append(joints)
        lnl = climb(self, joints, meet)
        if len(calls) == 4:
            raise PowerCut
        return lnl

    monkeypatch.setattr(UfbootSearch, "_climb_back", broken)
    with pytest.raises(PowerCut):
        ultrafast_bootstrap(checkpoint=tmp_path, **run)
    found = ultrafast_bootstrap(checkpoint=tmp_path, **run)
    assert len(calls) == 7
    assert found.values["ufboot"].tobytes() == unstopped.tobytes()


@pytest.mark.usefixtures("_soon_over")
def test_several_processes(make_run, tmp_path, monkeypatch):
    """The bits of one process, also if the run is stopped within a batch and goes on with another number of them."""
    monkeypatch.setattr(ultrafast, "UFBOOT_STEP", 3)
    run, whole = make_run("unlinked"), []
    expected = ultrafast_bootstrap(listener=whole.append, **run)
    for numbers in ((2, 1), (1, 3)):
        listen, folder = Stop(4), tmp_path / f"{numbers[0]} first"  # the first of the second batch
        for workers in numbers:
            found = ultrafast_bootstrap(listener=listen, checkpoint=folder, **run | {"workers": workers})
        heard, told = ([(event.round, event.lnl.hex()) for event in events] for events in (listen.heard, whole))
        assert heard == told
        assert found.values["ufboot"].tobytes() == expected.values["ufboot"].tobytes()


@pytest.mark.usefixtures("_soon_over")
def test_excursions_of_a_batch_start_from_its_beginning(make_run, monkeypatch):
    """What they find is known to the next batch. Each has its own source of random numbers."""
    make, calls, sources = UfbootSearch.__call__, [], []

    def heard(self, number, starts, known):
        found = make(self, number, starts, known)
        if number is not None:  # otherwise the optimum's own trees
            calls.append((number, [tree.lengths.tobytes() for tree in starts], known, found))
        return found

    def draw(seed, purpose, number=0):
        sources.append(number)
        return generator(seed, purpose, number)

    monkeypatch.setattr(ultrafast, "generator", draw)
    monkeypatch.setattr(ultrafast, "UFBOOT_STEP", 3)
    monkeypatch.setattr(UfbootSearch, "__call__", heard)
    ultrafast_bootstrap(**make_run("twins"))
    numbers, starts, known, found = zip(*calls, strict=True)
    assert sources == [0, 1, 2, 3, 4, 5, 6], "the first one draws the weights"
    assert numbers == (0, 1, 2, 3, 4, 5)
    assert starts[0] == starts[1] == starts[2] != starts[3] == starts[4] == starts[5]
    assert {own.optimum.lengths.tobytes() for own in found[:3]} & set(starts[3])
    assert known[3] == known[0].union(*({one.key for one in own.met} for own in found[:3]))
    assert known[3] == known[5] > known[0]


@pytest.mark.usefixtures("_soon_over")
def test_resampled_alignments_are_taken_in_turn(make_run, few, monkeypatch):
    reweighted, taken = TreeLikelihood.reweighted, []

    def heard(self, weights):
        taken.append(weights)
        return reweighted(self, weights)

    monkeypatch.setattr(TreeLikelihood, "reweighted", heard)
    ultrafast_bootstrap(**make_run("constraint"))
    weights = without_duplicates(resolve_inputs(few, "JC")[0])[0].patterns[0].weights
    drawn = draw_weights([weights], 50, generator(3, ULTRAFAST))
    assert np.array_equal(np.transpose(taken), drawn[:, :12])  # three times 1 and 3
    assert len({column.tobytes() for column in taken}) == 12


@pytest.mark.usefixtures("_soon_over")
def test_checkpoints_that_are_refused(make_run, tree, tmp_path):
    run = make_run("constraint") | {"checkpoint": tmp_path / "saved"}
    ultrafast_bootstrap(**run)
    other = tree.with_lengths(2 * tree.lengths)
    for change, item in (
        ({"seed": 4}, "seed: the checkpoint has 3, this command 4"),
        ({"replicates": 51}, "replicates: the checkpoint has 50, this command 51"),
        ({"constraint": None}, "constraint: the checkpoint has tree "),
        ({"tree": other}, "tree: the checkpoint has tree "),
        ({"model": "JC"}, "model: the checkpoint has HKY"),
    ):
        with pytest.raises(InputError, match=f"saved: a checkpoint of another run: {item}.*; --redo starts over"):
            ultrafast_bootstrap(**(run | change))
    for path in (tmp_path / "saved").glob("*.state*"):
        path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(InputError, match=r"ufboot\.state: a damaged checkpoint: its digest .*; --redo starts over"):
        ultrafast_bootstrap(**run)


def test_numbers_that_make_no_sense(few, tree):
    with pytest.raises(InputError, match="replicates: found 0, expected at least 1"):
        ultrafast_bootstrap(few, tree, "JC", replicates=0)
    with pytest.raises(InputError, match="seed: found -1, expected at least 0"):
        ultrafast_bootstrap(few, tree, "JC", seed=-1)


def test_a_better_tree_is_reported(data_dir, few, tree, caplog, monkeypatch):
    """The tree that was given keeps its place; the better one is as good as the message says."""
    monkeypatch.setattr(ultrafast, "UFBOOT_STEP", 2)
    monkeypatch.setattr(ultrafast, "UFBOOT_MOST", 4)
    alone = hard_taxa(data_dir, 9, 150)
    poor = search(alone, "JC", start="random", device="numpy", effort="fast", listener=Stop())
    run = {"device": "numpy", "replicates": 20, "workers": 1}
    found = ultrafast_bootstrap(alone, poor.tree, "JC", **run)
    assert (found.tree.ends == poor.tree.ends).all()
    lnls = [evaluate(alone, own, "JC", device="numpy").lnl for own in (found.better.tree, poor.tree)]
    assert found.better.lnl == pytest.approx(lnls[0], abs=0.5)  # ROUND_EPSILON
    assert found.better.lnl_before == pytest.approx(lnls[1], abs=0.05)
    assert found.better.lnl > found.better.lnl_before + 1
    assert [line for line in caplog.messages if "met a better tree" in line] == [
        f"the ultrafast bootstrap met a better tree: lnL {found.better.lnl:.6f}, before {found.better.lnl_before:.6f}; "
        "a search that starts from it may find better ones yet"
    ]
    monkeypatch.undo()
    caplog.clear()
    assert ultrafast_bootstrap(few, tree, "JC", **run).better is None
    assert "better" not in caplog.text


@pytest.mark.slow
def test_a_star_settles(caplog):
    """Where there is no signal supports go on changing at random, but less and less."""
    rng = np.random.default_rng(1)
    root = rng.integers(4, size=400)
    rows = np.where(rng.random((8, 400)) < 0.2, rng.integers(4, size=(8, 400)), root)
    star = {f"taxon{k}": "".join(row) for k, row in enumerate(np.array(list("ACGT"))[rows])}
    best, heard = search(star, "JC", device="numpy", effort="fast"), []
    found = ultrafast_bootstrap(star, best.tree, "JC", device="numpy", workers=1, listener=heard.append)
    assert len(heard) < ultrafast.UFBOOT_MOST
    assert "not settled" not in caplog.text
    assert np.nanmax(found.values["ufboot"]) < 90
