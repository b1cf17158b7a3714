"""A search that is stopped anywhere and resumed ends with the same bits as an uninterrupted one."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from interruptions import PowerCut, Stop
from small_alignments import hard_taxa

from plltool.analyses.search.analysis import search
from plltool.codec import to_arrays
from plltool.errors import InputError
from plltool.io import checkpoint as files
from plltool.io.checkpoint import remove_checkpoint
from plltool.run import engines
from plltool.tree.topology import restrict_tree
from plltool.tree_search import state
from plltool.tree_search.effort import SearchOptions
from plltool.tree_search.state import ClimbState

SETTINGS = {"device": "numpy", "seed": 5, "workers": 1}
OPTIONS = SearchOptions("fast", starts=2, radii=(1, 2), perturbations=5, nstop=2)
SHORT = replace(OPTIONS, starts=1, radii=(1,), perturbations=2)


@pytest.fixture(scope="module")
def few(data_dir):
    """Name to sequence: 9 taxa of the hard set, one of them twice."""
    few = hard_taxa(data_dir, 9, 150)
    return few | {"twin": next(iter(few.values()))}


@pytest.fixture(autouse=True)
def _every_state_is_written(monkeypatch):
    monkeypatch.setattr(files, "CHECKPOINT_PATIENCE", 0.0)


@pytest.fixture
def screened(monkeypatch):
    """Searches of this process have a screen, however few the patterns."""
    monkeypatch.setattr(engines, "SCREENING_SIZE", 1)


def describe(event):
    """The parts of an event that do not depend on the clock."""
    return event.stage, event.round, event.lnl.hex(), event.moves, event.radius


def outcome(result):
    """Everything that resuming must not change, as text of all bits."""
    return result.newick, float(result.lnl).hex(), result.model, [float(lnl).hex() for lnl in result.start_lnls]


CASES = {
    "dna": ("HKY+FO+G2", OPTIONS, "linked"),
    "given up": ("JC", replace(OPTIONS, starts=4, perturbations=0), "linked"),
    "rf": ("JC+R2", replace(OPTIONS, stop="rf"), "linked"),
    "kh": ("JC+I", replace(OPTIONS, stop="kh", starts=1), "linked"),
    "psr": ("HKY+PSR3", replace(OPTIONS, starts=1, perturbations=2), "linked"),
    "parts": ("parts", replace(OPTIONS, perturbations=2), "scaled"),
    "unlinked": ("parts", replace(OPTIONS, starts=1, perturbations=2), "unlinked"),
    "psr parts": ("psr parts", replace(OPTIONS, starts=1, perturbations=2), "scaled"),
    "psr beside gamma": ("psr beside gamma", replace(OPTIONS, starts=1, perturbations=2), "linked"),
}
SCHEMES = {
    "parts": "HKY+G2, one = 1-70\nJC, two = 71-150\n",
    "psr parts": "HKY+PSR3, one = 1-70\nJC+PSR2, two = 71-150\n",
    "psr beside gamma": "HKY+G2, one = 1-70\nJC+PSR3, two = 71-150\n",
}


@pytest.fixture
def make_run(tmp_path):
    """The arguments of a search by the name of a case."""

    def make(case):
        model, options, brlen = CASES[case]
        if model in SCHEMES:
            (tmp_path / "scheme").write_text(SCHEMES[model])
            model = str(tmp_path / "scheme")
        return {**SETTINGS, "model": model, "options": options, "brlen": brlen, "start": "random"}

    return make


@pytest.mark.usefixtures("screened")
@pytest.mark.parametrize("case", CASES)
def test_stopped_at_every_event_and_resumed(few, tmp_path, make_run, case, monkeypatch, caplog):
    """Each process makes one step; together they make those of an uninterrupted run."""
    if case != "dna":  # of which the trees of more taxa are stored in several orders
        few = dict([*few.items()][:7]) | {"twin": few["twin"]}
    if case == "given up":
        monkeypatch.setattr(state, "ABANDON_MARGIN", 0.0)
        caplog.set_level("INFO", "plltool")
    run, steps, listen = make_run(case), [], Stop(error=PowerCut)
    expected = search(few, listener=steps.append, **run)
    assert case != "given up" or "given up" in caplog.text
    folder = tmp_path / "saved"
    for _ in steps:
        with pytest.raises(PowerCut):
            search(few, listener=listen, checkpoint=folder, **run)
    found = search(few, listener=listen, checkpoint=folder, **run)
    assert [describe(event) for event in listen.heard] == [describe(event) for event in steps]
    assert outcome(found) == outcome(expected)
    remove_checkpoint(folder)
    assert not folder.exists()


def test_several_processes_are_resumed_by_one_or_several(few, tmp_path, make_run):
    run = make_run("dna") | {"options": replace(OPTIONS, starts=3, radii=(1,), perturbations=5)}
    expected = search(few, **run)
    for n_events, n_workers in ((9, 1), (13, 2)):
        folder = tmp_path / f"stopped-{n_events}"
        with pytest.raises(PowerCut):
            search(few, listener=Stop(n_events, PowerCut), checkpoint=folder, **{**run, "workers": 2})
        assert list(folder.glob("climb-*.state"))
        assert outcome(search(few, checkpoint=folder, **{**run, "workers": n_workers})) == outcome(expected)


def test_stopped_at_the_end_of_any_stage_and_resumed(few, tmp_path, make_run):
    """One process continues to the end."""
    run, steps = {**make_run("dna"), "options": SHORT}, []
    expected = search(few, listener=steps.append, **run)
    assert [step.round for step in steps if step.stage == "polish"][:2] == [1, 2]
    both = enumerate(pairwise(steps), start=1)
    ends = [k for k, (step, after) in both if step.stage != after.stage or step.stage == "polish"]
    for n_events in (*ends, len(steps)):
        folder = tmp_path / f"stopped-{n_events}"
        with pytest.raises(PowerCut):
            search(few, listener=Stop(n_events, PowerCut), checkpoint=folder, **run)
        rest = []
        assert outcome(search(few, listener=rest.append, checkpoint=folder, **run)) == outcome(expected)
        assert [describe(event) for event in rest] == [describe(event) for event in steps[n_events:]]


@pytest.mark.usefixtures("screened")
def test_states_may_be_of_different_times(few, tmp_path):
    """Any saved state leads to the same end; that of a climb may be older than those of later climbs, or missing."""
    run = {**SETTINGS, "model": "JC", "options": OPTIONS, "start": "random", "checkpoint": tmp_path / "saved"}
    expected = search(few, **run)
    for name in ("climb-1", "climb-2"):
        (tmp_path / "saved" / f"{name}.state").unlink()
        assert outcome(search(few, **run)) == outcome(expected)
        for ending in (".state", ".state.old"):
            (tmp_path / "saved" / f"{name}{ending}").unlink(missing_ok=True)
        assert outcome(search(few, **run)) == outcome(expected)


def test_the_best_tree_so_far_has_all_taxa(few, tmp_path):
    from plltool.io.tree_files import read_tree

    folder = tmp_path / "saved"
    lnls = []

    def listen(event):
        lnls.append(event.lnl)
        written = (folder / "best.nwk").read_text()
        assert float(written.split("]")[0].removeprefix("[lnL ")) == max(lnls)
        tree = read_tree(folder / "best.nwk", tuple(few))
        assert math.isfinite(tree.lengths.sum())

    search(few, "JC", options=OPTIONS, listener=listen, checkpoint=folder, **SETTINGS)
    assert len(lnls) > 5


DIFFERENT = {
    "alignment": {"alignment": "other"},
    "model": {"model": "HKY"},
    "seed": {"seed": 6},
    "start": {"start": "parsimony"},
    "perturbations": {"options": replace(OPTIONS, perturbations=4)},
    "radii": {"options": replace(OPTIONS, radii=(1, 3))},
    "layout": {"vw": 2},
}


@pytest.fixture(scope="module")
def stopped(few, tmp_path_factory):
    """A checkpoint and the run that it belongs to."""
    folder = tmp_path_factory.mktemp("stopped") / "saved"
    run = {**SETTINGS, "model": "JC", "options": OPTIONS, "start": "random", "checkpoint": folder}
    with pytest.raises(PowerCut):
        search(few, listener=Stop(3, PowerCut), **run)
    return run


@pytest.mark.parametrize("item", DIFFERENT)
def test_a_checkpoint_of_another_run_is_refused(few, stopped, item):
    change = dict(DIFFERENT[item])
    data = {name: row[:-1] + "A" for name, row in few.items()} if change.pop("alignment", None) else few
    with pytest.raises(InputError, match=rf"{item}: the checkpoint has .+, this command .+; --redo") as info:
        search(data, **{**stopped, **change})
    assert "\n" not in str(info.value)


def test_a_start_tree_is_part_of_the_run(few, tmp_path):
    run = {**SETTINGS, "model": "JC", "options": replace(OPTIONS, starts=1), "checkpoint": tmp_path / "saved"}
    tree = search(few, **{**run, "checkpoint": None}).tree
    with pytest.raises(PowerCut):
        search(few, start=tree, listener=Stop(1, PowerCut), **run)
    other = restrict_tree(tree, tree.names)
    other.lengths[0] *= 2
    with pytest.raises(InputError, match=r"start: the checkpoint has tree .+, this command tree "):
        search(few, start=other, **run)


def test_numbers_keep_every_bit(few, tmp_path):
    """What is read is what was saved, types, order and generator included."""
    saved = {}
    original = files.Checkpoint.save

    def save(self, name, state):
        saved[name] = to_arrays(state)
        original(self, name, state)
        found = to_arrays(self.load(name, ClimbState))
        assert found.keys() == saved[name].keys()
        for key, array in found.items():
            np.testing.assert_array_equal(array, saved[name][key])
            assert array.dtype == saved[name][key].dtype

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files.Checkpoint, "save", save)
        search(few, "GTR+FO+I+G2", options=SHORT, checkpoint=tmp_path / "saved", **SETTINGS)
    assert saved
