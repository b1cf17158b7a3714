"""The stages of a climb: how far radii widen, and when rounds end."""

import numpy as np
import pytest
from helpers import many_taxa

from plltool.analyses.search import search
from plltool.constants import STAGE_EPSILON
from plltool.errors import EngineError
from plltool.tree_search.climb import Round
from plltool.tree_search.effort import SearchOptions, SearchPlan
from plltool.tree_search.progress import Forecast, StopSearch
from plltool.tree_search.stages import Stage, TreeSearch, planned_stages
from plltool.tree_search.state import Cursor

PLENTY = 10 * STAGE_EPSILON


def climb(monkeypatch, gains, radii=(2, 4, 8, 16)):
    """(radius, number of joints or None) of all rounds of a search in which rounds gain ``gains[radius]``.

    Only the first round at each radius gains; its gain is reported, and the tree does not change.
    """
    rng = np.random.default_rng(1)
    sequences = {f"t{k}": "".join(rng.choice(list("ACGT"), 40)) for k in range(8)}
    rounds = []

    def climb_round(likelihood, lnl, radius, joints=None, constraint=None):
        first = all(radius != before for before, _ in rounds)
        rounds.append((radius, None if joints is None else len(joints)))
        gain, n_moves, n_joints = gains.get(radius, (0.0, 0, 0)) if first else (0.0, 0, 0)
        return Round(lnl + gain, n_moves, np.arange(n_joints) + likelihood.tree.n_taxa)

    monkeypatch.setattr("plltool.tree_search.stages.climb_round", climb_round)
    options = SearchOptions(starts=1, radii=radii, perturbations=0)
    stages = []
    search(
        sequences,
        "JC",
        device="numpy",
        options=options,
        listener=lambda progress: stages.append(progress.stage),
    )
    return rounds, stages


def test_radii_widen_as_long_as_they_gain(monkeypatch):
    rounds, stages = climb(monkeypatch, {4: (PLENTY, 1, 3)})
    # NNI; the first radius, without gain; the second, again where it changed; the third, without gain
    assert rounds == [(1, None), (2, None), (4, None), (4, 3), (8, None)]
    assert stages == ["start", "nni", "spr", "model", "spr", "spr", "model", "spr", "polish"]


@pytest.mark.parametrize("n_gaining", range(4))
def test_the_widest_radius_is_reached_if_all_gain(monkeypatch, n_gaining):
    radii = (2, 4, 8, 16)
    rounds, _ = climb(monkeypatch, dict.fromkeys(radii[1 : 1 + n_gaining], (PLENTY, 1, 1)))
    whole = [radius for radius, joints in rounds if joints is None]
    assert whole == [1, *radii[: min(4, 2 + n_gaining)]]


def test_a_round_that_only_lengthens_branches_is_the_last(monkeypatch):
    rounds, _ = climb(monkeypatch, {4: (PLENTY, 0, 0)}, radii=(2, 4, 8))
    assert rounds == [(1, None), (2, None), (4, None), (8, None)]


def test_numbers_that_fail_come_with_the_values_of_the_model(monkeypatch):
    def climb_round(*_, **__):
        raise EngineError("the likelihood of pattern 3 is not positive and finite")

    monkeypatch.setattr("plltool.tree_search.stages.climb_round", climb_round)
    sequences = {f"t{k}": "ACGTTGCAAC"[k:] + "ACGTTGCAAC"[:k] for k in range(6)}
    with pytest.raises(EngineError, match=r"pattern 3 .*; model HKY\{.*\}\+FE\+G4\{.*\}$") as info:
        search(sequences, "HKY+FE+G4", device="numpy")
    assert "\n" not in str(info.value)


def test_a_start_tree_with_lengths_on_a_wrong_scale():
    """From 3.4 times the true lengths, where sites sit in neighbouring rate categories."""
    likelihood = many_taxa("JC+G4{0.5}")
    true_length = likelihood.tree.lengths.sum()
    likelihood.tree.lengths *= 3.4

    def stop(_):
        raise StopSearch

    plan = SearchPlan()
    TreeSearch(likelihood, plan, Forecast(planned_stages(plan)), stop, Cursor()).climb()
    assert likelihood.tree.lengths.sum() == pytest.approx(true_length, rel=0.5)  # see MEAN_RATE_RTOL in test_lengths.py


@pytest.mark.parametrize(("lnl", "least"), [(-1e4, 1.0), (-3e5, 3.0), (-2e6, 5.0)], ids=["epsilon", "share", "most"])
def test_the_least_gain_grows_with_lnl_up_to_a_bound(lnl, least):
    stage = Stage("spr", 1.0, 5, share=1e-5, most=5.0)
    assert stage.is_over(least - 0.01, lnl)
    assert not stage.is_over(least + 0.01, lnl)
