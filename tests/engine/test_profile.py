"""How long kernels run, by the device's clock: measured only where asked for, and changing nothing."""

import time

import numpy as np
import pytest
from agreement import Case
from helpers import make_tree

from plltool.analyses.search.analysis import search
from plltool.engine.base import EngineData
from plltool.engine.layout import DataShape
from plltool.engine.select import make_engine
from plltool.engine.storage import Slots
from plltool.hardware import Hardware
from plltool.optimise.likelihood import TreeLikelihood


@pytest.fixture(scope="module")
def data():
    case = Case(3, 12, (4_000,))
    return make_tree(case.ends, case.lengths, 12), case.codes, case.mixtures[0]


def engine_for(codes, device, profile=False):
    n_taxa, n_patterns = codes.shape
    shape = DataShape(4, 4, n_taxa, (n_patterns,))
    return make_engine(EngineData(codes, np.ones(n_patterns)), shape, Slots(30), Hardware(device), profile=profile)[0]


def counters_after_work(data, **options):
    """Counters of an engine that was closed after a few requests, and the wall time of these."""
    tree, codes, mixture = data
    engine = engine_for(codes, **options)
    with engine:
        began = time.perf_counter()
        likelihood = TreeLikelihood(tree, [mixture.as_model()], engine)
        for _ in range(5):
            likelihood.all_derivatives()
        likelihood.directed()
    return engine.counters, time.perf_counter() - began


@pytest.mark.opencl
def test_device_seconds(data):
    """Kernels run one after another, so they cannot run for longer than the work took; there is more than one."""
    counters, wall = counters_after_work(data, device="opencl", profile=True)
    assert 0 < counters.device_seconds <= wall
    assert counters.launches > 5


@pytest.mark.opencl
def test_kernels_without_an_answer_count_once_the_engine_closes(data):
    tree, codes, mixture = data
    engine = engine_for(codes, device="opencl", profile=True)
    with engine:
        likelihood = TreeLikelihood(tree, [mixture.as_model()], engine)
        likelihood.directed()
        assert engine.counters.device_seconds == 0
    assert engine.counters.device_seconds > 0


@pytest.mark.parametrize(
    "options",
    [
        {"device": "numpy"},
        {"device": "numpy", "profile": True},
        pytest.param({"device": "opencl"}, marks=pytest.mark.opencl),
    ],
)
def test_nothing_is_measured(data, options):
    counters, _ = counters_after_work(data, **options)
    assert counters.device_seconds is None


@pytest.mark.opencl
def test_a_search_finds_the_same_with_and_without(data_dir):
    alignment = data_dir / "primates.phy"
    plain, profiled = (search(alignment, device="opencl", profile=profile) for profile in (False, True))
    assert (plain.lnl, plain.newick, plain.model) == (profiled.lnl, profiled.newick, profiled.model)
    assert plain.profile is None
    assert "profile" not in plain.as_record()
    found = profiled.profile
    assert profiled.as_record()["profile"] == found
    assert found["host_share"] == pytest.approx(1 - found["device_seconds"] / profiled.seconds)
    assert 0 < found["host_share"] < 1
    assert found["launches_per_second"] == pytest.approx(profiled.counters["launches"] / profiled.seconds)
    assert found["mean_batch"].keys() == profiled.counters["requests"].keys()
    assert found["mean_batch"]["lnl"] == 11  # 10 newviews and one evaluation on 12 taxa
