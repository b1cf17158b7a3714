"""Several starts: hopeless ones are given up without changing the winner, and a search may be stopped at any event."""

import math

import pytest

from plltool.api import SearchOptions, StopSearch, evaluate, search
from plltool.search import driver
from plltool.search.driver import is_hopeless
from plltool.search.progress import Forecast

SETTINGS = {"model": "JC", "device": "numpy", "seed": 5}


def test_hopeless_means_further_behind_than_twice_what_the_leader_gained_from_there():
    leader = [-100.0, -50.0, -40.0]
    assert not is_hopeless([-164.9], leader)  # the leader gained 60 from here, and 5 are allowed besides
    assert is_hopeless([-165.1], leader)
    assert is_hopeless([-90.0, -65.1], leader)
    assert not is_hopeless([-90.0, -65.0], leader)
    assert is_hopeless([-90.0, -55.0, -45.1], leader)


@pytest.fixture(scope="module")
def few(data_dir):
    """Name to sequence: 14 taxa of the hard set."""
    records = (data_dir / "hard.fasta").read_text().split(">")[1:15]
    return {name: "".join(lines) for name, *lines in map(str.split, records)}


def test_giving_up_does_not_change_the_winner(few, monkeypatch):
    options = SearchOptions("fast", starts=4, radii=(1,))
    found = search(few, start="random", options=options, **SETTINGS)
    monkeypatch.setattr(driver, "ABANDON_FACTOR", math.inf)
    patient = search(few, start="random", options=options, **SETTINGS)
    assert (found.lnl, found.newick) == (patient.lnl, patient.newick)
    given_up = [a < b for a, b in zip(found.start_lnls, patient.start_lnls, strict=True)]
    assert any(given_up), "else nothing was tested"
    assert found.lnl >= max(found.start_lnls) - 0.01
    assert found.counters["instructions"] < patient.counters["instructions"]


def test_the_winner_goes_on_with_its_own_model(few):
    """The engine holds the last climb's model when the winner, an earlier one, is perturbed and polished."""
    options = SearchOptions("fast", starts=3, radii=(1,), perturbations=1)
    heard = []
    settings = {**SETTINGS, "model": "HKY+FE", "listener": heard.append}
    found = search(few, start="random", options=options, **settings)
    assert found.start_lnls.index(max(found.start_lnls)) < 2, "else nothing was tested"
    by_stage = {event.stage: event for event in heard}
    assert heard[-1].lnl == pytest.approx(found.lnl, rel=1e-10)
    best_climb = max(event.lnl for event in heard if event.stage == "model")
    assert by_stage["perturb"].lnl >= best_climb - 1e-6


@pytest.mark.parametrize("after", [1, 3, 8])
def test_a_search_that_is_stopped_returns_the_best_tree_so_far(few, after):
    heard = []

    def listen(event):
        heard.append(event)
        if len(heard) == after:
            raise StopSearch

    options = SearchOptions("fast", starts=2, perturbations=4)
    found = search(few, listener=listen, options=options, **SETTINGS)
    assert found.interrupted
    assert any("interrupted" in line for line in found.warnings)
    assert len(heard) == after
    assert found.lnl == max(event.lnl for event in heard)
    fixed = evaluate(few, found.tree, found.model, fixed=True, device="numpy")
    assert fixed.lnl == pytest.approx(found.lnl, rel=1e-10)


def test_the_forecast_adds_up(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("plltool.search.progress.time.perf_counter", lambda: clock[0])
    costs = {"start": 1.0, "nni": 2.0, "perturb": 3.0, "polish": 1.0}
    monkeypatch.setattr("plltool.search.progress.STAGE_COSTS", costs)
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
