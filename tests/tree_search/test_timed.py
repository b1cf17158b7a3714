"""Searches with a limited time, by a clock that only the events of the search move."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from interruptions import PowerCut, Stop
from small_alignments import hard_taxa

from plltool.analyses.search import analysis as searches
from plltool.analyses.search.analysis import search
from plltool.errors import InputError
from plltool.io import checkpoint as files
from plltool.progress import CLOCK, StopSearch
from plltool.tree_search import state
from plltool.tree_search.effort import SearchOptions
from plltool.tree_search.state import Deadline

SETTINGS = {"model": "JC", "device": "numpy", "seed": 3, "options": SearchOptions("fast", nstop=3)}


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    """The clock of deadlines."""
    clock = Clock()
    monkeypatch.setattr(state, "time", SimpleNamespace(perf_counter=clock))
    monkeypatch.setattr(searches, "perf_counter", clock)
    return clock


@pytest.fixture(scope="module")
def few(data_dir):
    """Name to sequence: 8 taxa of the hard set, one of them twice."""
    few = hard_taxa(data_dir, 8, 100)
    return few | {"twin": next(iter(few.values()))}


class Ticks(Stop):
    """A listener; every event took a second."""

    def __init__(self, clock, at=0, error=StopSearch):
        super().__init__(at, error)
        self._clock = clock

    def __call__(self, event):
        self._clock.now += 1
        super().__call__(event)

    @property
    def stages(self):
        return [event.stage for event in self.heard]


def test_a_deadline_leaves_room_for_the_longest_step_and_the_polish(clock):
    deadline = Deadline(60.0, clock.now)
    clock.now += 4
    deadline.end_step("start")  # the polish may take 4 as well
    clock.now += 7
    deadline.end_step("spr")
    clock.now += 1
    deadline.end_step("spr")
    assert (deadline.seconds, deadline.seconds_left) == (12, 48)
    clock.now += 36
    assert not deadline.is_due  # 12 left, 4 + 7 needed
    clock.now += 1
    assert deadline.is_due
    clock.now -= 7
    deadline.end_step("perturb")  # of 30
    assert deadline.is_due
    deadline.resume(20.0)
    assert deadline.seconds == 42, "what this process has used is not counted twice"
    later = Deadline(60.0, clock.now)
    later.resume(20.0)
    assert later.seconds == 20


def test_more_starts_and_perturbations_as_long_as_there_is_time(few, clock, caplog):
    caplog.set_level("INFO", "plltool")
    ticks = Ticks(clock)
    found = search(few, time=80, listener=ticks, **SETTINGS)
    assert len(found.start_lnls) > 2
    assert found.lnl == pytest.approx(max(found.start_lnls), abs=0.01)  # the branch of the twin
    n_before = ticks.stages.index("polish")
    assert 70 <= n_before <= 79
    assert set(ticks.stages[n_before:]) == {"polish"}
    assert "perturb" in ticks.stages
    assert 1 < ticks.stages.count("fuse") < 3 * ticks.stages.count("start"), "further climbs with the best three"
    assert ticks.stages.count("start") == len(found.start_lnls)
    assert [event.seconds for event in ticks.heard[:50]] == list(range(50))
    assert ticks.heard[9].left == 71
    assert "tree may differ" in found.warnings[-1]
    assert "80 s" in found.warnings[-1]
    assert any(message.startswith("time: 80 s") for message in caplog.messages)
    alone = search(few, **SETTINGS)
    assert found.lnl > alone.lnl - 0.05  # what the default criteria leave open
    assert "tree may differ" not in " ".join(alone.warnings)


def test_a_given_start_tree_is_perturbed_only(few, clock):
    start = search(few, **SETTINGS).tree
    ticks = Ticks(clock)
    found = search(few, start=start, time=60, listener=ticks, **SETTINGS)
    assert len(found.start_lnls) == 1
    assert ticks.stages.count("perturb") > 30


def test_too_little_time_for_a_round_of_moves(few, clock, tmp_path):
    """There is no result; more time goes on from the checkpoint."""
    ticks, saved = Ticks(clock), tmp_path / "saved"
    with pytest.raises(InputError, match=r"^time: 0\.5 s ran out before the first round of moves"):
        search(few, time=0.5, listener=ticks, checkpoint=saved, **SETTINGS)
    assert ticks.stages == ["start"]
    later = Ticks(clock)
    found = search(few, time=30, listener=later, checkpoint=saved, **SETTINGS)
    assert later.stages[0] == "nni"
    assert found.lnl == pytest.approx(search(few, **SETTINGS).lnl, abs=0.05)  # what the default criteria leave open


def test_compiling_does_not_count(few, clock, monkeypatch):
    monkeypatch.setattr(CLOCK, "seconds", 7.0)
    deadline = Deadline(10.0, clock.now)
    clock.now += 9
    CLOCK.seconds += 8
    deadline.end_step("start")
    assert deadline.seconds == pytest.approx(1.0)
    assert not deadline.is_due


@pytest.mark.parametrize("at", [1, 4, 30])
def test_an_interruption_is_no_end(few, clock, at):
    ticks = Ticks(clock, at)
    found = search(few, time=100, listener=ticks, **SETTINGS)
    assert found.interrupted
    assert len(ticks.heard) == at
    assert "polish" not in ticks.stages


@pytest.mark.parametrize("cuts", [[2], [40, 1]])
def test_the_time_before_a_power_cut_counts(few, clock, tmp_path, monkeypatch, cuts):
    monkeypatch.setattr(files, "CHECKPOINT_PATIENCE", 0.0)
    run = {"time": 50, "checkpoint": tmp_path / "saved", **SETTINGS}
    n_before = 0
    for cut in cuts:
        clock.now += 1000  # the machine is off
        ticks = Ticks(clock, cut, PowerCut)
        with pytest.raises(PowerCut):
            search(few, listener=ticks, **run)
        n_before += cut
    ticks = Ticks(clock)
    found = search(few, listener=ticks, **run)
    n_steps = n_before + ticks.stages.index("polish")
    assert 40 <= n_steps <= 49 + len(cuts), "the step that a power cut ends was saved before its second had passed"
    assert not found.interrupted
    again, told = search(few, **run), Ticks(clock)
    assert (again.lnl.hex(), again.newick, told.heard) == (found.lnl.hex(), found.newick, [])
    with pytest.raises(InputError, match="of another run: timed: the checkpoint has True, this command False"):
        search(few, **run | {"time": None})
    longer = search(few, **run | {"time": 90})
    assert longer.lnl.hex() == found.lnl.hex(), "it is over"


@pytest.mark.parametrize("time", [0, -1.0, float("inf"), float("nan")])
def test_times_that_make_no_sense(few, time):
    with pytest.raises(InputError, match=rf"^time: found {time}, expected a positive number of seconds$"):
        search(few, time=time, **SETTINGS)


def test_without_a_deadline_nothing_is_saved_of_it(few, tmp_path):
    """The states of other searches are the same to the bit from run to run."""
    folders = [tmp_path / name for name in "ab"]
    for folder in folders:
        search(few, checkpoint=folder, **SETTINGS | {"options": replace(SETTINGS["options"], radii=(1,))})
    states = [(folder / "climb-1.state").read_bytes().split(b"\n", 1)[1] for folder in folders]
    assert states[0] == states[1]
