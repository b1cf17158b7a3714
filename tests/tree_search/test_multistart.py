"""Several starts: hopeless climbs are given up without changing the winner; a search may be stopped at any event."""

import math
from itertools import groupby

import numpy as np
import pytest
from interruptions import Stop
from small_alignments import hard_taxa

from plltool.analyses.search.analysis import search
from plltool.errors import InputError
from plltool.io.newick import parse_newick
from plltool.progress import Forecast
from plltool.run.evaluation import evaluate
from plltool.tree_search import state
from plltool.tree_search.effort import SearchOptions
from plltool.tree_search.multistart import _distances
from plltool.tree_search.state import ClimbState, Cursor, stages_with_hope

SETTINGS = {"model": "JC", "device": "numpy", "seed": 5}


def test_no_hope_means_further_behind_than_twice_what_a_rival_gained_from_there(monkeypatch):
    monkeypatch.setattr(state, "ABANDON_STAGES", 0)
    rival = [-100.0, -50.0, -40.0]
    assert stages_with_hope([-164.9], [rival]) == 1  # the rival gained 60 from here, and 5 are allowed besides
    assert stages_with_hope([-165.1], [rival]) == 0
    assert stages_with_hope([-90.0, -65.1], [rival]) == 1
    assert stages_with_hope([-90.0, -65.0], [rival]) == 2
    assert stages_with_hope([-90.0, -55.0, -45.1], [[-80.0, -60.0, -50.0]]) == 3
    assert stages_with_hope([-90.0, -65.1, -45.0], [[-80.0, -60.0, -50.0], rival]) == 1
    assert stages_with_hope([-200.0], []) == 1


def test_neither_the_first_stages_nor_the_last_one_count():
    rival = [-50.0, -50.0, -50.0, -50.0, -50.0]
    assert stages_with_hope([-90.0, -90.0, -90.0, -50.0], [rival]) == 4
    assert stages_with_hope([-50.0, -50.0, -50.0, -90.0], [rival]) == 3
    assert stages_with_hope([-50.0, -50.0, -50.0, -50.0, -90.0], [rival]) == 5, "its tree is there to be fused"


@pytest.fixture(scope="module")
def few(data_dir):
    """Name to sequence: 14 taxa of the hard set."""
    return hard_taxa(data_dir, 14)


def test_giving_up_does_not_change_the_winner(few, monkeypatch):
    monkeypatch.setattr(state, "ABANDON_STAGES", 1)
    settings = {**SETTINGS, "options": SearchOptions("fast", starts=4, radii=(1,)), "workers": 1}
    found = search(few, start="random", **settings)
    monkeypatch.setattr(state, "ABANDON_FACTOR", math.inf)
    patient = search(few, start="random", **settings)
    assert np.argmax(found.start_lnls) == np.argmax(patient.start_lnls)
    given_up = [a < b for a, b in zip(found.start_lnls, patient.start_lnls, strict=True)]
    assert any(given_up), "else nothing was tested"
    assert found.lnl >= max(found.start_lnls) - 0.01
    assert found.counters["instructions"] < patient.counters["instructions"]


def test_climbs_at_the_same_time_end_as_those_in_turn(few):
    heard = []
    options = SearchOptions("fast", starts=4, radii=(1, 2), perturbations=6)
    settings = {**SETTINGS, "options": options, "start": "random", "seed": 3}
    in_turn = search(few, **settings, workers=1)
    found = search(few, **settings, workers=3, threads=3, listener=heard.append)
    assert (found.lnl, found.newick, found.start_lnls) == (in_turn.lnl, in_turn.newick, in_turn.start_lnls)
    assert {event.start for event in heard if event.stage == "nni"} == {1, 2, 3, 4}
    assert {event.start for event in heard if event.stage == "perturb"} == {0, 1, 2, 3, 4}
    assert all(event.left >= event.stage_left >= 0 for event in heard)
    assert found.counters["instructions"] >= in_turn.counters["instructions"]


def test_a_climb_is_judged_by_those_before_it_whether_or_not_it_went_on():
    rivals = [[-60.0, -55.0, -50.0, -50.0, -50.0]]
    climbed = ClimbState(None, [], Cursor(-40.0, (-99.0, -90.0, -80.0, -70.0, -40.0)))
    judged = climbed.judge(rivals)
    assert judged.cursor.given_up
    assert (judged.lnl, judged.cursor.marks) == (-70.0, (-99.0, -90.0, -80.0, -70.0))
    assert climbed.judge([]) is climbed


def test_a_search_of_several_processes_may_be_stopped(few):
    found = search(few, listener=Stop(3), options=SearchOptions("fast", starts=9), workers=2, **SETTINGS)
    assert found.interrupted
    assert len(found.start_lnls) < 9
    fixed = evaluate(few, found.tree, found.model, fixed=True, device="numpy")
    assert fixed.lnl == pytest.approx(found.lnl, rel=1e-10)


def test_workers_must_be_some(few):
    with pytest.raises(InputError, match="workers: found 0"):
        search(few, workers=0, **SETTINGS)


def test_each_climb_is_perturbed_before_the_climbs_are_fused_and_the_best_one_after_that(few, monkeypatch):
    monkeypatch.setattr(state, "ABANDON_FACTOR", math.inf)
    options = SearchOptions("fast", starts=3, radii=(1,), perturbations=11, nstop=9)
    heard = []
    settings = {**SETTINGS, "model": "HKY+FE", "listener": heard.append}
    found = search(few, start="random", options=options, workers=1, **settings)
    climb = ["start", "nni", "spr", "model", "perturb"]
    assert [stage for stage, _ in groupby(event.stage for event in heard)] == [
        *climb * 3,
        "fuse",
        "perturb",
        "fuse",
        "polish",
    ]
    steps = [event for event in heard if event.stage == "perturb"]
    assert [event.round for event in steps] == [1, 2] * 3 + [7, 8, 9, 10, 11]
    assert len({step.lnl for step in steps[:6]}) > 1, "else nothing was tested"
    fused = [event for event in heard if event.stage == "fuse"]
    assert [event.round for event in fused] == [1, 2, 1, 2]
    assert fused[0].lnl >= max(step.lnl for step in steps[:6])
    assert fused[2].lnl >= max(step.lnl for step in steps)
    assert found.lnl >= max(event.lnl for event in steps) - 0.01
    # each climb has a model of its own, and the engine must hold the winner's
    fixed = evaluate(few, found.tree, found.model, fixed=True, device="numpy")
    assert fixed.lnl == pytest.approx(found.lnl, rel=1e-10)


def test_what_is_left_of_the_perturbations_goes_to_the_next_best_climb(few, monkeypatch):
    monkeypatch.setattr(state, "ABANDON_FACTOR", math.inf)
    options = SearchOptions("fast", starts=2, radii=(1,), perturbations=9, nstop=1)
    heard = []
    found = search(few, start="random", options=options, workers=1, listener=heard.append, **SETTINGS | {"seed": 1})
    stages = [event.stage for event in heard]
    steps = [event for event in heard[stages.index("fuse") :] if event.stage == "perturb"]
    assert len(steps) == 2, "one of each tree, which fail"
    assert steps[1].lnl < steps[0].lnl, "the second tree, which is lower"
    assert found.lnl >= max(event.lnl for event in steps) - 0.01


@pytest.mark.parametrize("after", [1, 3, 8])
def test_a_search_that_is_stopped_returns_the_best_tree_so_far(few, after):
    listen, options = Stop(after), SearchOptions("fast", starts=2, perturbations=4)
    found = search(few, listener=listen, options=options, workers=1, **SETTINGS)
    assert found.interrupted
    assert any("interrupted" in line for line in found.warnings)
    assert len(listen.heard) == after
    assert found.lnl == max(event.lnl for event in listen.heard)
    fixed = evaluate(few, found.tree, found.model, fixed=True, device="numpy")
    assert fixed.lnl == pytest.approx(found.lnl, rel=1e-10)


def test_the_forecast_adds_up(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("plltool.progress.time.perf_counter", lambda: clock[0])
    costs = {"start": 1.0, "nni": 2.0, "perturb": 3.0, "polish": 1.0}
    monkeypatch.setattr("plltool.progress.STAGE_COSTS", costs)
    forecast = Forecast([("start", 1), ("nni", 0), ("perturb", 4), ("polish", 0)])
    forecast.begin()
    clock[0] = 5.0  # a unit of cost takes 5 seconds
    assert forecast.left(1) == (0.0, 5.0 * (2 + 12 + 1))
    forecast.begin()
    clock[0] = 9.0
    assert forecast.left(1) == (6.0, 6.0 + 5.0 * 13)
    clock[0] = 17.0  # 12 seconds for what should take 10
    assert forecast.left(2) == (0.0, 5.0 * 13)
    forecast.begin()
    clock[0] = 17.0 + 8.0  # a perturbation takes 8 seconds, so the price of a unit is 8/3
    assert forecast.left(1) == pytest.approx((24.0, 24.0 + 8 / 3))


def test_every_event_tells_what_is_left(few):
    heard = []
    options = SearchOptions("fast", perturbations=2)
    search(few, listener=heard.append, options=options, **SETTINGS)
    assert all(event.left >= event.stage_left >= 0 for event in heard)
    assert [event.n_rounds for event in heard if event.stage == "perturb"] == [2, 2]


def test_distances_between_the_climbs_are_of_all_pairs():
    """By hand: the first two trees share two of three splits, ab and ef; the third has only ef in common with them."""
    names = tuple("abcdef")
    texts = ("((a,b),(c,d),(e,f));", "((a,b),c,(d,(e,f)));", "((a,c),(b,d),(e,f));")
    trees = [parse_newick(text, "test", names) for text in texts]
    assert _distances(trees) == ((0, 2, 4), (2, 0, 4), (4, 4, 0))
