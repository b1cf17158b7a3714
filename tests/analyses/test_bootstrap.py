"""Bootstrap replicates: what they depend on, and that each is the search of its resampled alignment."""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from interruptions import Stop
from small_alignments import primates as taxa

from plltool.analyses.search.analysis import search
from plltool.analyses.supports import replicates
from plltool.analyses.supports.bootstrap import bootstrap, replicate_options, resampled_alignments
from plltool.analyses.supports.support import supports
from plltool.engine import select
from plltool.errors import InputError
from plltool.io import checkpoint
from plltool.io.alignment_reader import read_alignment
from plltool.io.newick_writer import write_newick
from plltool.run import memory
from plltool.run.evaluation import evaluate
from plltool.tree.splits import branch_splits, members_of, rf_distance, splits_of
from plltool.tree.topology import restrict_tree
from plltool.tree_search.effort import SearchOptions

MODEL = "K80+G4"  # no frequencies, which would be those of all sites and not of the drawn ones
PARTS = "HKY+F, one = 1-200\nJC, two = 201-400, 402-898\n"  # column 401 is in no part


def same(a, b):
    return rf_distance(a, b) == 0 and (np.sort(a.lengths) == np.sort(b.lengths)).all()


@pytest.fixture(scope="module")
def three(sequences):
    return bootstrap(sequences, MODEL, replicates=3, seed=4, device="numpy", workers=1)


def test_a_replicate_depends_on_seed_and_number_only(sequences, three):
    others = bootstrap(sequences, MODEL, replicates=2, seed=4, device="numpy", workers=2)
    assert others.lnls == three.lnls[:2]
    assert all(same(a, b) for a, b in zip(others.trees, three.trees, strict=False))
    assert len(set(three.lnls)) == 3
    assert bootstrap(sequences, MODEL, replicates=1, seed=5, device="numpy").lnls[0] not in three.lnls


def test_each_is_the_search_of_its_alignment(sequences, three):
    alignments = resampled_alignments(sequences, MODEL, replicates=3, seed=4)
    for own, tree, lnl in zip(alignments, three.trees, three.lnls, strict=True):
        again = evaluate(own, tree, MODEL, device="numpy")
        assert lnl - 0.01 < again.lnl < lnl + 3.0  # lengths and model to 1 each, and no polish
        assert again.lnl >= search(own, MODEL, device="numpy", effort="fast").lnl - 0.5


def test_a_model_that_is_given_is_kept(primates):
    fixed = "HKY{1.0/9.0}+FU{0.3/0.3/0.1/0.3}+G4{0.4}"
    kept = bootstrap(primates, fixed, replicates=1, seed=4, device="numpy")
    held = bootstrap(
        primates, fixed, replicates=1, seed=4, device="numpy", options=SearchOptions("fast", optimise_parameters=False)
    )
    assert kept.lnls == held.lnls


def test_parts_are_resampled_by_themselves(primates, tmp_path):
    scheme = tmp_path / "two.part"
    scheme.write_text(PARTS)
    sequences = read_alignment(primates)
    resampled = next(resampled_alignments(sequences, scheme, replicates=1, seed=1))
    columns = [set(), set()]
    old = np.array([list(row) for row in sequences.rows])
    new = np.array([list(row) for row in resampled.rows])
    for part, ranges in zip(columns, ([*range(200)], [*range(200, 400), *range(401, 898)]), strict=True):
        part.update(map(tuple, old[:, ranges].T.tolist()))
        assert all(tuple(column) in part for column in new[:, ranges].T.tolist())
    assert (old[:, 400] == new[:, 400]).all()
    assert (old != new).any()
    found = bootstrap(sequences, scheme, replicates=1, brlen="unlinked", device="numpy")
    assert found.trees[0].lengths.shape == (21, 2)
    assert 0 <= np.nanmin(supports(found.trees[0], found.trees, ["tbe"]).values["tbe"]) == 1


def test_duplicates_come_back_in_an_order_by_chance(data_dir):
    sequences = taxa(data_dir, 5, 300)
    first = next(iter(sequences.values()))
    sequences |= {f"twin{k}": first for k in range(2)}
    found = bootstrap(sequences, "JC", replicates=12, device="numpy", workers=1)
    shares = supports(found.trees[0], found.trees).values["fbp"]
    assert np.nanmin(shares) < 100  # of three identical sequences no two are always the closest


def test_replicates_obey_a_constraint(data_dir):
    small = taxa(data_dir, 8, 300)
    names = list(small)
    free = bootstrap(small, "JC", replicates=3, device="numpy", workers=1)
    assert names[:4] == ["Tarsius_syrichta", "Lemur_catta", "Homo_sapiens", "Pan"]
    text = "((Homo_sapiens,Lemur_catta),Pan,Tarsius_syrichta);"  # which nobody would find
    bound = bootstrap(small, "JC", replicates=3, device="numpy", workers=1, constraint=text)
    for found, obeys in ((free, False), (bound, True)):
        for tree in found.trees:
            kept = restrict_tree(tree, names[:4])
            assert _has_split(kept, {"Homo_sapiens", "Lemur_catta"}) == obeys


def _has_split(tree, side):
    sides = [{tree.names[taxon] for taxon in members_of(split)} for split in splits_of(tree)]
    return any(own == side or set(tree.names) - own == side for own in sides)


def test_automatic_numbers_and_interruption(data_dir):
    kept, stop = [], Stop(3)
    small = taxa(data_dir, 4, 300)
    found = bootstrap(small, "JC", replicates=9, device="numpy", workers=1, listener=stop, taken=kept.append)
    assert found.interrupted
    assert len(found.trees) == len(kept) == 3
    assert [(event.stage, event.round, event.n_rounds) for event in stop.heard] == [
        ("bootstrap", k, 9) for k in (1, 2, 3)
    ]
    enough = bootstrap(small, "JC", replicates="auto", device="numpy", workers=1)
    assert not enough.interrupted
    assert len(enough.trees) == 50 * len(enough.convergence)
    assert enough.convergence[-1].converged


def test_errors(primates):
    with pytest.raises(InputError, match="replicates: found 0, expected at least 1"):
        bootstrap(primates, replicates=0)
    with pytest.raises(InputError, match="replicates: found 'x', expected a number, auto, autoMRE or autoFC"):
        bootstrap(primates, replicates="x")
    with pytest.raises(InputError, match="seed: found -1"):
        bootstrap(primates, replicates=1, seed=-1)


def test_replicates_that_were_kept_are_not_made_again(primates, tmp_path, made):
    settings = {"model": "JC", "device": "numpy", "workers": 1, "checkpoint": tmp_path / "saved"}
    stopped = bootstrap(primates, replicates=3, listener=Stop(2), **settings)
    assert stopped.interrupted
    made.clear()
    found = bootstrap(primates, replicates=3, **settings)
    assert made == [2]
    fresh = bootstrap(primates, replicates=3, **{**settings, "checkpoint": None})
    assert [write_newick(tree) for tree in found.trees] == [write_newick(tree) for tree in fresh.trees]
    assert found.lnls == fresh.lnls


@pytest.fixture
def made(monkeypatch):
    """The numbers of the replicates that were searched, in order; each is saved as soon as it is there."""
    numbers = []
    monkeypatch.setattr(checkpoint, "CHECKPOINT_PATIENCE", 0.0)
    monkeypatch.setattr(replicates.Replicator, "__call__", count(numbers, replicates.Replicator.__call__))
    return numbers


QUICK = {"model": "JC", "device": "numpy", "workers": 1, "options": SearchOptions("fast", radii=(1,))}


def test_more_replicates_are_added_to_those_of_a_finished_run(primates, tmp_path, made):
    first = bootstrap(primates, replicates=2, checkpoint=tmp_path, **QUICK)
    assert (first.n_kept, made) == (0, [0, 1])
    again = bootstrap(primates, replicates=2, checkpoint=tmp_path, **QUICK)
    assert (again.n_kept, made) == (2, [0, 1])
    assert again.lnls == first.lnls
    more = bootstrap(primates, replicates=4, checkpoint=tmp_path, **QUICK)
    assert (more.n_kept, made) == (2, [0, 1, 2, 3])
    assert more.lnls == bootstrap(primates, replicates=4, **QUICK).lnls
    with pytest.raises(InputError, match=r"replicates: found 3, expected at least 4, which .* keeps already; --redo"):
        bootstrap(primates, replicates=3, checkpoint=tmp_path, **QUICK)


@pytest.mark.parametrize("rapid", [False, True])
def test_a_damaged_replicate_alone_is_made_again(primates, tmp_path, made, monkeypatch, caplog, rapid):
    monkeypatch.setattr(replicates, "RAPID_CHAINS", 1)
    run = QUICK | {"rapid": rapid, "checkpoint": tmp_path}
    whole = bootstrap(primates, replicates=4, **run)
    made.clear()
    damaged = tmp_path / "replicate-2.state"
    damaged.write_bytes(damaged.read_bytes()[:-100])
    (tmp_path / "replicate-3.state").unlink()
    found = bootstrap(primates, replicates=5, **run)
    assert made == [1, 2, 4]
    assert found.n_kept == 2
    assert found.lnls[:4] == whole.lnls
    assert [write_newick(tree) for tree in found.trees[:4]] == [write_newick(tree) for tree in whole.trees]
    for number in (2, 3):
        assert f"replicate {number} is missing or damaged and is computed again" in caplog.text
    made.clear()
    assert bootstrap(primates, replicates=5, **run).n_kept == 5
    assert made == []


def test_a_test_of_the_number_counts_all_replicates_that_are_kept(data_dir, tmp_path, made):
    """It would have been satisfied with 50 replicates, but more are there already."""
    small = taxa(data_dir, 4, 300)
    enough = bootstrap(small, replicates="auto", **QUICK)
    assert len(enough.trees) == 50
    made.clear()
    bootstrap(small, replicates=52, checkpoint=tmp_path, **QUICK)
    found = bootstrap(small, replicates="auto", checkpoint=tmp_path, **QUICK)
    assert len(found.trees) == found.n_kept == 52
    assert made == [*range(52)]
    assert found.convergence[-1].converged


def count(made, call):
    def counted(self, number, before, report=None):
        made.append(number)
        return call(self, number, before, report)

    return counted


# --- rapid replicates -----------------------------------------------------------------------------------------------


@pytest.fixture
def short_chains(monkeypatch):
    """Two chains, each of which starts over after two replicates."""
    monkeypatch.setattr(replicates, "RAPID_CHAINS", 2)
    monkeypatch.setattr(replicates, "RAPID_LENGTH", 2)


RAPID_OPTIONS = replicate_options(rapid=True)
RAPID = {"model": MODEL, "rapid": True, "seed": 4, "device": "numpy"}


def test_rapid_replicates_begin_where_earlier_ones_ended(primates, short_chains, monkeypatch):
    make, begun = replicates.Replicator.__call__, []

    def call(self, number, before, report=None):
        begun.append((number, before))
        return make(self, number, before, report)

    monkeypatch.setattr(replicates.Replicator, "__call__", call)
    found = bootstrap(primates, replicates=7, workers=1, **RAPID)
    earlier = [None, None, 0, 1, None, None, 4]
    assert [number for number, _ in begun] == list(range(7))
    for (_, before), number in zip(begun, earlier, strict=True):
        assert before is (None if number is None else found.trees[number])
    plain = bootstrap(primates, MODEL, replicates=1, seed=4, device="numpy", workers=1)
    assert begun[7][1] is None
    assert 0 < plain.lnls[0] - found.lnls[0] < 10  # of the same alignment, the model's parameters held


@pytest.mark.usefixtures("short_chains")
def test_a_rapid_replicate_is_a_search_of_its_alignment(sequences):
    """With the parameters that are best for all sites, on whatever good tree."""
    found = bootstrap(sequences, replicates=3, workers=1, **RAPID | {"seed": 7})
    *_, own = resampled_alignments(sequences, MODEL, replicates=3, seed=7)
    values = evaluate(sequences, found.trees[0], MODEL, device="numpy").models[0].to_string()
    assert abs(evaluate(own, found.trees[2], values, device="numpy").lnl - found.lnls[2]) < 3
    assert found.lnls[2] > search(own, values, device="numpy", effort="fast").lnl - 3


def test_chains_share_what_there_is(primates, short_chains, caplog):
    """A replicate waits for the one before it, so that more processes than chains would be idle."""
    caplog.set_level("INFO", "plltool")
    bootstrap(primates, replicates=3, threads=8, workers=4, options=SearchOptions("fast", radii=(1,)), **RAPID)
    assert "replicates: 2 at a time, threads each: 4" in caplog.messages


def test_rapid_replicates_resume_and_share_the_work(sequences, short_chains, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "CHECKPOINT_PATIENCE", 0.0)
    fresh = bootstrap(sequences, replicates=4, workers=1, **RAPID)
    folder = tmp_path / "saved"
    assert bootstrap(sequences, replicates=4, workers=2, checkpoint=folder, listener=Stop(3), **RAPID).interrupted
    resumed = bootstrap(sequences, replicates=4, workers=1, checkpoint=folder, **RAPID)
    for found in (resumed, bootstrap(sequences, replicates=4, workers=2, **RAPID)):
        assert found.lnls == fresh.lnls
        assert [write_newick(tree) for tree in found.trees] == [write_newick(tree) for tree in fresh.trees]
    with pytest.raises(InputError, match="rapid: the checkpoint has True, this command False; --redo"):
        bootstrap(sequences, replicates=4, checkpoint=folder, options=RAPID_OPTIONS, **RAPID | {"rapid": False})


@pytest.mark.usefixtures("short_chains")
def test_rapid_replicates_of_parts_and_duplicates(data_dir):
    small = taxa(data_dir, 6, 300)
    small["twin"] = next(iter(small.values()))
    found = bootstrap(small, "JC", replicates=7, rapid=True, device="numpy", workers=1)
    assert all(set(tree.names) == set(small) for tree in found.trees)
    scheme = "HKY+F, one = 1-100\nJC, two = 101-300"
    split = bootstrap(small, scheme, replicates=3, rapid=True, brlen="unlinked", device="numpy", workers=1)
    assert {tree.lengths.shape for tree in split.trees} == {(11, 2)}


def topologies(data_dir, monkeypatch, length, constraint=None, rapid=True):
    """Those of replicates of 300 sites whose searches leave the tree that they begin with, all branches that long."""
    monkeypatch.setattr(replicates, "RAPID_CHAINS", 1)
    monkeypatch.setattr(replicates, "RAPID_LENGTH", 300)

    def leave(_self, _parts, _models, start, _rng):
        return SimpleNamespace(tree=start.with_lengths(np.full(start.n_edges, length)), lnl=-1.0)

    monkeypatch.setattr(replicates.Replicator, "_search", leave)
    small = taxa(data_dir, 5, 300)
    settings = {"replicates": 300, "rapid": rapid, "device": "numpy", "workers": 1, "constraint": constraint}
    found = bootstrap(small, "JC", **settings)
    return Counter(frozenset(splits_of(tree)) for tree in found.trees)


def test_replicates_tell_what_sites_say_only(data_dir, monkeypatch):
    """A branch with less than a tenth of a substitution is nobody's finding: any may be in its place."""
    assert len(topologies(data_dir, monkeypatch, 0.11 / 300)) == 1
    for rapid in (True, False):
        drawn = topologies(data_dir, monkeypatch, 0.09 / 300, rapid=rapid)
        assert len(drawn) == 15
        assert max(drawn.values()) < 20 + 5 * np.sqrt(20)  # five standard deviations, for a fixed seed
    names = list(taxa(data_dir, 5))
    text = f"(({names[0]},{names[3]}),{','.join(names[1:3] + names[4:])});"
    assert len(topologies(data_dir, monkeypatch, 0.09 / 300, text)) == 3


def test_identical_sequences_part_where_the_drawn_sites_do_not_tell_them_from_others(data_dir):
    """A and its twin differ from B at one of 20 sites; without it, one of three resolutions has them together."""
    rng = np.random.default_rng(5)
    far = ["".join(rng.choice(list("ACGT"), 20)) for _ in range(3)]
    alignment = {
        "A": far[0],
        "twin": far[0],
        "B": "ACGT"["TGCA".index(far[0][0])] + far[0][1:],
        "C": far[1],
        "D": far[2],
    }
    found = bootstrap(alignment, "JC", replicates=200, seed=3, device="numpy", workers=1)
    pair = sum(1 << found.trees[0].names.index(name) for name in ("A", "twin"))
    share = np.mean([bool({pair, 31 - pair} & set(branch_splits(tree))) for tree in found.trees])
    silent = (1 - 1 / 20) ** 20
    assert abs(share - (1 - silent + silent / 3)) < 0.1  # three standard deviations


def replicates_by(primates, folder, device, vw=None):
    settings = {"replicates": 2, "workers": 1, "options": SearchOptions("fast", radii=(1,)), "checkpoint": folder}
    return bootstrap(primates, "JC", device=device, vw=vw, **settings)


def test_a_checkpoint_knows_the_device_that_was_chosen(primates, tmp_path, monkeypatch):
    """Whatever it was asked for by."""
    for module in (select, memory):
        monkeypatch.setattr(module, "find_automatic", lambda _: ([], ["none"]))
    folder = tmp_path / "saved"
    expected = replicates_by(primates, folder, "numpy")
    again = replicates_by(primates, folder, "auto")
    assert again.lnls == expected.lnls
    with pytest.raises(InputError, match=r"another run: layout: the checkpoint .*'vw': 4.*, this command .*'vw': 2"):
        replicates_by(primates, folder, "numpy", vw=2)


@pytest.mark.opencl
def test_a_checkpoint_of_another_device_is_refused(primates, tmp_path, monkeypatch):
    folder = tmp_path / "saved"
    with monkeypatch.context() as patched:
        for module in (select, memory):
            patched.setattr(module, "find_automatic", lambda _: ([], ["none"]))
        replicates_by(primates, folder, "auto")
    with pytest.raises(InputError, match="another run: device: the checkpoint has numpy, this command "):
        replicates_by(primates, folder, "auto")
