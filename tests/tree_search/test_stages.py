"""The stages of a climb: how far radii widen, when rounds end, and the rules that end a climb."""

import numpy as np
import pytest
from helpers import likelihood_of, make_tree, many_taxa, mix, random_ends, simulate_codes
from interruptions import Stop
from oracles.substitution import gamma_category_means
from small_alignments import primates

from plltool.analyses.search.analysis import search
from plltool.errors import EngineError
from plltool.io.newick import parse_newick
from plltool.model.model import Model
from plltool.model.model_string import parse_model
from plltool.optimise.polish import polish
from plltool.progress import Forecast
from plltool.run.evaluation import evaluate
from plltool.tree.moves import random_tree
from plltool.tree.splits import rf_distance
from plltool.tree.topology import restrict_tree
from plltool.tree_search.climb import Round
from plltool.tree_search.effort import LARGE_ALIGNMENT, SearchOptions, SearchPlan
from plltool.tree_search.parsimony import parsimony_tree
from plltool.tree_search.stages import STAGE_EPSILON, Stage, TreeSearch, planned_stages
from plltool.tree_search.state import Cursor, is_significant

PLENTY = 10 * STAGE_EPSILON


def climb(monkeypatch, gains, radii=(2, 4, 8, 16)):
    """(radius, number of joints or None) of all rounds of a search in which rounds gain ``gains[radius]``.

    Only the first round at each radius gains; its gain is reported, and the tree does not change.
    """
    rng = np.random.default_rng(1)
    sequences = {f"t{k}": "".join(rng.choice(list("ACGT"), 40)) for k in range(8)}
    rounds = []

    def climb_round(likelihood, lnl, radius, joints=None):
        first = all(radius != before for before, _ in rounds)
        rounds.append((radius, None if joints is None else len(joints)))
        gain, n_moves, n_joints = gains.get(radius, (0.0, 0, 0)) if first else (0.0, 0, 0)
        return Round(lnl + gain, n_moves, np.arange(n_joints) + likelihood.tree.n_taxa)

    monkeypatch.setattr("plltool.tree_search.stages.climb_round", climb_round)
    options = SearchOptions(starts=1, radii=radii, perturbations=0)
    stages = []
    search(sequences, "JC", device="numpy", options=options, listener=lambda progress: stages.append(progress.stage))
    return rounds, stages


def test_radii_widen_as_long_as_they_gain(monkeypatch):
    rounds, stages = climb(monkeypatch, {4: (PLENTY, 1, 3)})
    # NNI; the first radius, without gain; the second, again where it changed; the third, without gain
    assert rounds == [(1, None), (2, None), (4, None), (4, 3), (8, None)]
    assert stages[:8] == ["start", "nni", "spr", "model", "spr", "spr", "model", "spr"]
    assert set(stages[8:]) == {"polish"}
    rounds, _ = climb(monkeypatch, {4: (PLENTY, 0, 0)}, radii=(2, 4, 8))
    assert rounds == [(1, None), (2, None), (4, None), (8, None)], "a round that only lengthens branches is the last"
    for n_gaining in range(4):
        rounds, _ = climb(monkeypatch, dict.fromkeys((4, 8, 16)[:n_gaining], (PLENTY, 1, 1)))
        whole = [radius for radius, joints in rounds if joints is None]
        assert whole == [1, *(2, 4, 8, 16)[: 2 + n_gaining]]


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
    plan = SearchPlan()
    TreeSearch(likelihood, plan, Forecast(planned_stages(plan)), Stop(), Cursor()).climb()
    assert likelihood.tree.lengths.sum() == pytest.approx(true_length, rel=0.5)  # see MEAN_RATE_RTOL in test_lengths.py


@pytest.mark.parametrize("factor", [3.4, 1.0])
def test_two_optima_of_the_lengths_are_told(factor):
    """From 3.4 times the true lengths, where the first fit of lengths under a fixed alpha stays; the better is kept."""
    likelihood, plan = many_taxa("JC+G4{0.5}", 60), SearchPlan(radii=(1,))
    true_length = likelihood.tree.lengths.sum()
    likelihood.tree.lengths *= factor
    search = TreeSearch(likelihood, plan, Forecast(planned_stages(plan)), lambda _: None, Cursor())
    search.climb()
    cursor = search.polish().cursor
    other, length = cursor.polish.other, likelihood.tree.lengths.sum()
    assert length == pytest.approx(true_length, rel=0.5)  # see MEAN_RATE_RTOL in test_lengths.py
    assert likelihood.lnl() == pytest.approx(cursor.lnl, rel=1e-12)
    if factor == 1.0:
        assert np.isnan(other.lnl)
    else:
        assert other.length > 2 * length
        assert other.lnl < likelihood.lnl() - 1


def simulated():
    """The likelihood under GTR+G4 of sequences with alpha 0.2 and many transitions, on their tree."""
    rng = np.random.default_rng(1)
    n_taxa, n_sites = 24, 800
    ends, lengths = random_ends(rng, n_taxa, 0.4)
    rates = np.ones((4, 4))
    rates[0, 2] = rates[2, 0] = rates[1, 3] = rates[3, 1] = 8.0
    mixture = mix([(0.25, [0.25] * 4, rates, rate) for rate in gamma_category_means(0.2, 4)])
    codes = simulate_codes(rng, ends, lengths, n_taxa, n_sites, mixture)
    tree = make_tree(ends, lengths, n_taxa)
    return likelihood_of(tree, codes, np.ones(n_sites), Model(parse_model("GTR+G4")))


def test_lengths_and_model_fit_before_the_first_move():
    """4 below their optimum; 12 if lengths are held while the model changes."""
    likelihood, plan = simulated(), SearchPlan()
    TreeSearch(likelihood, plan, Forecast(planned_stages(plan)), Stop(), Cursor()).climb()
    start = likelihood.lnl()
    assert polish(likelihood) - start < 9.0


@pytest.fixture
def misled(monkeypatch):
    """Rounds of moves go to a random tree, whatever its lnL."""

    def climb_round(likelihood, lnl, radius, joints=None):
        likelihood.tree.assign(random_tree(likelihood.tree.names, np.random.default_rng(4)))
        likelihood.topology_changed()
        return Round(likelihood.lnl(), 0, np.zeros(0, dtype=np.int64))

    monkeypatch.setattr("plltool.tree_search.stages.climb_round", climb_round)


@pytest.mark.parametrize(
    "model", ["HKY+G4", pytest.param("3.3b", marks=pytest.mark.slow)], ids=["reversible", "rooted"]
)
def test_no_search_ends_below_its_start_tree(misled, data_dir, tmp_path, model):
    """Even if all moves lead down; also if the search is stopped at every event and resumed."""
    records = (data_dir / "simulated.fasta").read_text().split(">")[1:]
    alignment = dict(map(str.split, records[:5]))
    true_tree = restrict_tree(parse_newick((data_dir / "simulated.nwk").read_text(), "the true tree"), tuple(alignment))
    settings = {"device": "numpy", "effort": "fast"}
    found = search(alignment, model, start=true_tree, **settings)
    given = evaluate(alignment, true_tree, model, device="numpy")
    assert rf_distance(found.tree, given.tree) == 0
    assert found.lnl > given.lnl - 0.01
    stop = Stop()
    for _ in found.trace:
        search(alignment, model, start=true_tree, listener=stop, checkpoint=tmp_path / "saved", **settings)
    again = search(alignment, model, start=true_tree, checkpoint=tmp_path / "saved", **settings)
    assert (again.lnl, again.newick) == (found.lnl, found.newick)
    assert [event.stage for event in stop.heard] == [event.stage for event in found.trace]


@pytest.mark.opencl
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_search_ends_above_the_start_tree_that_it_made(data_dir, monkeypatch, seed):
    starts = []

    def spy(*args):
        starts.append(parsimony_tree(*args))
        return starts[-1].copy()

    monkeypatch.setattr("plltool.run.task.parsimony_tree", spy)
    alignment = dict(map(str.split, (data_dir / "hard.fasta").read_text().split(">")[1:]))
    del alignment["t61"]  # the same as t07
    found = search(alignment, "HKY+FE", effort="fast", seed=seed)
    assert len(starts) == 1
    assert found.lnl > evaluate(alignment, starts[0], "HKY+FE").lnl + 1.0


@pytest.mark.parametrize(("lnl", "least"), [(-1e4, 1.0), (-3e5, 3.0), (-2e6, 5.0)], ids=["epsilon", "share", "most"])
def test_the_least_gain_grows_with_lnl_up_to_a_bound(lnl, least):
    stage = Stage("spr", 1.0, 5, share=1e-5, most=5.0)
    assert stage.is_over(least - 0.01, lnl)
    assert not stage.is_over(least + 0.01, lnl)


@pytest.mark.parametrize("n_events", [1, 2, 3])
def test_perturbations_go_on_with_the_random_numbers_of_before(monkeypatch, n_events):
    """A perturbation that finds nothing does not show what it has drawn, so the draws themselves are compared."""
    drawn, stop = [], Stop(n_events)

    def perturb(_likelihood, lnl, rng):
        drawn.append(rng.random())
        return lnl, 0

    monkeypatch.setattr("plltool.tree_search.stages.perturb", perturb)
    codes = 1 << np.random.default_rng(1).integers(0, 4, (8, 20))
    tree = make_tree(*random_ends(np.random.default_rng(2), 8), 8)
    likelihood = likelihood_of(tree, codes, np.ones(20), Model(parse_model("JC")))
    plan, cursor = SearchPlan(perturbations=4, nstop=9), Cursor()
    for _ in range(2):
        forecast = Forecast(planned_stages(plan))
        forecast.begin(cursor.spent)
        cursor = TreeSearch(likelihood, plan, forecast, stop, cursor).perturb(np.random.default_rng(5)).cursor
    assert drawn == np.random.default_rng(5).random(4).tolist()


def test_a_gain_is_significant_beyond_1_645_standard_errors():
    # 100 sites: half gain a + 1, half a - 1; standard error of the sum: sqrt(100 * 100 / 99) = 10.0504
    before, noise = np.zeros(100), np.tile([1.0, -1.0], 50)
    critical = 1.645 * 10.050378
    ones = np.ones(100)
    assert is_significant(before, noise + 1.001 * critical / 100, ones)
    assert not is_significant(before, noise + 0.999 * critical / 100, ones)
    assert not is_significant(noise + 1.0, noise, ones)  # a loss is none


def test_a_pattern_counts_as_often_as_it_occurs():
    difference, weights = np.array([1.2, -0.8, 0.3]), np.array([30.0, 10.0, 20.0])
    for shift in (-0.4, -0.2, 0.0):
        sites = np.repeat(difference + shift, weights.astype(int))
        apart = is_significant(np.zeros(60), sites, np.ones(60))
        assert is_significant(np.zeros(3), difference + shift, weights) == apart


def test_large_alignments_ask_for_significance():
    assert SearchOptions().plan(0.0, 1000, LARGE_ALIGNMENT // 1000).stop == "kh"
    assert SearchOptions().plan(0.0, 1000, LARGE_ALIGNMENT // 1000 - 1).stop == "epsilon"
    assert SearchOptions("thorough").plan(0.0, 1000, LARGE_ALIGNMENT // 1000).stop == "epsilon"
    assert SearchOptions(stop="rf").plan(0.0, 1000, LARGE_ALIGNMENT // 1000).stop == "rf"


@pytest.mark.parametrize("rule", ["rf", "kh"])
def test_a_climb_ends_where_its_rule_says_so(data_dir, rule):
    """A search from its own result changes nothing: lengths, one NNI round, and the polish."""
    few = primates(data_dir, 8, 300)
    settings = {"model": "JC", "device": "numpy"}
    best = search(few, **settings)
    stages = {}
    for name in ("epsilon", rule):
        heard = []
        options = SearchOptions(stop=name, perturbations=2)
        again = search(few, start=best.tree, options=options, listener=heard.append, **settings)
        assert again.lnl == pytest.approx(best.lnl, abs=0.01)
        stages[name] = list(dict.fromkeys(event.stage for event in heard))
    assert stages[rule] == ["start", "nni", "polish"]
    assert stages["epsilon"] == ["start", "nni", "spr", "model", "perturb", "polish"]
