"""Searches with less memory than all CLAs take, and what `plan_memory` foretells of it."""

import logging

import pytest

from plltool.analyses.search.analysis import search
from plltool.errors import DeviceError
from plltool.hardware import Hardware
from plltool.io.alignment_reader import read_alignment
from plltool.model.partition import without_duplicates
from plltool.run import engines
from plltool.run.evaluation import evaluate
from plltool.run.inputs import resolve_inputs
from plltool.run.likelihood import Likelihood
from plltool.run.memory import plan_memory
from plltool.tree.operations import round_slots, stack_slots

MODEL = "GTR+F+G4"
PEAK_RTOL = 0.05  # what a user is promised; how far walks go, hence the size of programs, depends on the data


def foretell(alignment, device, memory=None):
    data, models = resolve_inputs(alignment, MODEL)
    patterns = without_duplicates(data)[0].patterns
    return plan_memory(patterns, models, Hardware(device, memory=memory))


@pytest.mark.parametrize("least", [1, 10_000])
def test_a_tenth_of_the_memory_numpy(sequences, caplog, monkeypatch, least):
    """With a screen and without one."""
    monkeypatch.setattr(engines, "SCREENING_SIZE", least)
    caplog.set_level(logging.INFO, "plltool")
    tree = search(sequences, MODEL, device="numpy", effort="fast")
    assert "memory:" not in caplog.text
    streamed = search(sequences, MODEL, device="numpy", effort="fast", memory=100_000)
    assert (streamed.lnl, streamed.newick) == (tree.lnl, tree.newick)
    assert "memory: the patterns do not all fit" in caplog.text
    assert streamed.counters["launches"] > 2 * tree.counters["launches"]
    assert streamed.counters["peak_bytes"] < tree.counters["peak_bytes"]


@pytest.mark.opencl
@pytest.mark.parametrize(
    ("folder", "name"),
    [("data_dir", "primates.phy"), pytest.param("shared", "data/dna150.phy", marks=pytest.mark.slow)],
)
def test_a_tenth_of_the_memory(request, folder, name):
    """The same tree to the bit; with all and with little memory a search takes what was foretold."""
    alignment, run = read_alignment(request.getfixturevalue(folder) / name), {"device": "opencl", "workers": 1}
    plan = foretell(alignment, "opencl")
    assert plan.suffices
    tenth = plan.full_bytes // 10
    little = foretell(alignment, "opencl", tenth)
    assert not little.suffices
    assert little.full_bytes == plan.full_bytes
    whole, streamed = search(alignment, MODEL, **run), search(alignment, MODEL, memory=tenth, **run)
    assert (streamed.lnl, streamed.newick) == (whole.lnl, whole.newick)
    for result, foretold in ((whole, plan), (streamed, little)):
        assert result.counters["peak_bytes"] == pytest.approx(foretold.n_bytes, rel=PEAK_RTOL)
    assert streamed.counters["peak_bytes"] < whole.counters["peak_bytes"] / 4


def test_answers_of_a_likelihood_with_little_memory(sequences, device):
    tree = search(sequences, "HKY+F", device="numpy").tree
    answers = []
    for memory in (None, 50_000):
        with Likelihood(sequences, tree, MODEL, device=device, memory=memory) as likelihood:
            assert likelihood.engine.resident == (memory is None)
            assert likelihood.engine.n_slots == round_slots(7)
            lnl = likelihood.lnl()
            optimum = likelihood.optimise()
            answers.append((lnl, optimum, likelihood.newick(), likelihood.site_lnl().tolist()))
    assert answers[0] == answers[1]


def test_a_fixed_evaluation_takes_a_stack(sequences):
    tree = search(sequences, "HKY+F", device="numpy").tree
    result = evaluate(sequences, tree, MODEL, fixed=True, site_lnl=True, device="numpy")
    with Likelihood(sequences, tree, MODEL, device="numpy", lnl_only=True) as likelihood:
        assert likelihood.engine.n_slots == stack_slots(7)
        assert likelihood.lnl() == result.lnl
    assert result.site_lnl.sum() == pytest.approx(result.lnl, rel=1e-11)


def test_workers_share_the_memory(sequences):
    """With the process that they work for: while they do it holds no CLAs. Besides these there are tips and weights."""
    memory = 2 * foretell(sequences, "numpy").full_bytes
    options = {"effort": "fast", "starts": 2, "device": "numpy", "memory": memory}
    alone = search(sequences, MODEL, workers=1, **options)
    both = search(sequences, MODEL, workers=2, **options)
    assert (both.lnl, both.newick) == (alone.lnl, alone.newick)
    assert alone.counters["peak_bytes"] < both.counters["peak_bytes"] < 1.25 * memory


@pytest.mark.opencl
def test_the_record_counts_what_is_held_once_the_engine_is_closed(sequences):
    """All CLAs are released by then; a resident engine that still works holds as much as it ever did."""
    found = search(sequences, MODEL, device="opencl", effort="fast")
    for result in (found, evaluate(sequences, found.tree, MODEL, device="opencl")):
        with Likelihood(sequences, found.tree, MODEL, device="opencl") as likelihood:
            clas = likelihood.engine.cla_bytes
        assert result.counters["bytes_held"] < min(clas, result.counters["peak_bytes"] - clas)


def test_too_little(sequences):
    with pytest.raises(DeviceError, match=r"^memory: found 1000 bytes, expected at least \d+K: \d+ taxa need that for"):
        search(sequences, MODEL, device="numpy", memory=1000)
