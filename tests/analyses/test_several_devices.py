"""Runs whose patterns several devices divide: the results of one device, up to the order of the sums."""

import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from small_alignments import variable

from plltool.analyses.machine.bench.run import bench
from plltool.analyses.machine.compare import compare
from plltool.analyses.search.analysis import search
from plltool.analyses.supports import ultrafast
from plltool.analyses.supports.alrt import alrt
from plltool.analyses.supports.bootstrap import bootstrap
from plltool.analyses.supports.ultrafast import ultrafast_bootstrap
from plltool.analyses.toolbox.check import check
from plltool.errors import DeviceError, InputError, PlltoolWarning
from plltool.hardware import Hardware, parse_hardware
from plltool.io import checkpoint as files
from plltool.processes.ranks import Crew, Seat
from plltool.run import engines
from plltool.run.inputs import resolve_inputs
from plltool.run.likelihood import Likelihood
from plltool.run.memory import plan_memory, share_hardware, share_with_crew
from plltool.tree.splits import rf_distance
from plltool.tree_search.effort import SearchOptions

TREE = "(t01,t02,(t03,(t04,(t05,(t06,(t07,t08))))));"
RTOL = 1e-11  # the order of sums differs
OPTIONS = SearchOptions("fast", starts=1, radii=(1, 2), perturbations=2)
SETTINGS = {"model": "HKY+G2", "seed": 5, "workers": 1, "threads": 1, "options": OPTIONS}
TWO = [
    pytest.param("numpy,numpy", id="numpy-numpy"),
    pytest.param("intel,pocl", id="intel-pocl", marks=pytest.mark.opencl),
]


@pytest.fixture
def two(request):
    """A pair of devices; PoCL twice, or any twice, where there is no Intel."""
    from plltool.engine.opencl.device import list_devices

    if request.param != "intel,pocl":
        return request.param
    platforms = " ".join(device.platform.lower() for device in list_devices()[0])
    return request.param if "intel" in platforms and "portable" in platforms else "opencl,opencl"


def answers(data, model, device, brlen="linked", share=None):
    """Everything that a likelihood tells of a tree, as arrays."""
    with Likelihood(data, TREE, model, device=device, threads=1, brlen=brlen, share=share) as likelihood:
        inner = likelihood._likelihood
        lnl, slopes = inner.all_derivatives()
        found = {"lnl": likelihood.lnl(), "parts": likelihood.part_lnl(), "sites": likelihood.site_lnl()}
        found |= {"derivatives": lnl, "slopes": slopes}
        if not inner.has_site_rates:
            _, matrices, masses = inner.rate_matrix_gradient()
            found |= {"matrices": np.concatenate(matrices), "masses": np.concatenate(masses)}
        likelihood.optimise()
        return found | {"optimum": likelihood.lnl()}


MODELS = ["HKY{2.5}+FU{0.3/0.2/0.2/0.3}+G4{0.4}", "GTR+PSR4", "HKY{2.5}+ASC_LEWIS+G4{0.4}", "12.12"]


@pytest.mark.parametrize("two", TWO, indirect=True)
@pytest.mark.parametrize("model", MODELS)
def test_a_fixed_tree(few, two, model):
    data = variable(few) if "ASC" in model else few
    expected, found = answers(data, model, "numpy"), answers(data, model, two, share=(0.55, 0.45))
    for name, values in expected.items():
        tolerance = 1e-8 if name == "optimum" else RTOL
        assert np.allclose(found[name], values, rtol=tolerance, atol=tolerance * np.abs(values).max()), name


@pytest.fixture(scope="module")
def parts_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("parts") / "few.part"
    path.write_text("HKY+G4, a = 1-60\nGTR+PSR4, b = 61-80\nJC, c = 81-150\n")
    return path


@pytest.mark.parametrize("two", TWO[:1], indirect=True)
@pytest.mark.parametrize("brlen", ["linked", "unlinked"])
def test_parts_of_several_shapes(few, parts_file, two, brlen):
    expected, found = (answers(few, parts_file, *asked) for asked in (("numpy", brlen), (two, brlen, (0.5, 0.5))))
    for name in ("lnl", "parts", "sites", "derivatives", "slopes"):
        assert np.allclose(found[name], expected[name], rtol=RTOL, atol=RTOL * np.abs(expected[name]).max()), name


@pytest.mark.parametrize("two", TWO, indirect=True)
def test_a_search(few, two):
    expected = search(few, device="numpy", **SETTINGS)
    found = search(few, device=two, share=(0.6, 0.4), **SETTINGS)
    assert rf_distance(found.tree, expected.tree) == 0
    assert abs(found.lnl - expected.lnl) < 0.01
    held = [shard["patterns"] for shard in found.layout["shards"]]
    assert held == [round(0.6 * sum(held)), sum(held) - round(0.6 * sum(held))]
    again = search(few, device=two, share=(0.6, 0.4), **SETTINGS)
    assert (again.newick, float(again.lnl).hex()) == (found.newick, float(found.lnl).hex())


def test_supports(few, monkeypatch):
    monkeypatch.setattr(ultrafast, "UFBOOT_STEP", 1)
    monkeypatch.setattr(ultrafast, "UFBOOT_MOST", 2)
    one, several = ({"device": device, "model": "HKY+G2"} for device in ("numpy", "numpy,numpy"))
    several["share"] = (0.5, 0.5)
    asked = {"replicates": 20, "seed": 2}
    for analysis in (lambda **how: alrt(few, TREE, **how).supports, partial(ultrafast_bootstrap, few, TREE, workers=1)):
        found, expected = (analysis(**asked, **settings).newick() for settings in (several, one))
        assert re.sub(r":[0-9.e-]+", "", found) == re.sub(r":[0-9.e-]+", "", expected)
    replicas = [bootstrap(few, replicates=2, seed=2, workers=1, **settings) for settings in (several, one)]
    assert np.allclose(*(made.lnls for made in replicas), rtol=1e-6)


def test_a_run_goes_on_with_the_shares_of_its_checkpoint(few, tmp_path, monkeypatch):
    """Another measurement would give other sums; without the record of the first one the checkpoint is refused."""
    monkeypatch.setattr(files, "CHECKPOINT_PATIENCE", 0.0)
    monkeypatch.setattr(engines, "_MEASURED", {})
    monkeypatch.setattr(engines.several, "measure_shares", lambda *_: (0.7, 0.3))
    run = {"device": ["numpy", "numpy"], "checkpoint": tmp_path / "saved", **SETTINGS}
    expected = search(few, **run)
    monkeypatch.setattr(engines, "_MEASURED", {})
    monkeypatch.setattr(engines.several, "measure_shares", lambda *_: (0.2, 0.8))
    events = []
    again = search(few, listener=events.append, **run)
    assert (again.newick, float(again.lnl).hex()) == (expected.newick, float(expected.lnl).hex())
    assert again.layout == expected.layout
    assert not events
    with pytest.raises(InputError, match="share: the checkpoint has"):
        search(few, share=(0.5, 0.5), **run)


@pytest.mark.opencl
class TestFailures:
    def test_the_patterns_move_and_the_run_goes_on(self, few, failing):
        run = {"device": "numpy,cpu", "share": (0.5, 0.5), **SETTINGS}
        launches = failing(10**9)
        expected = search(few, **run)
        for share in (0.3, 0.8):
            failing(int(share * launches[0]))
            with pytest.warns(PlltoolWarning, match="device cpu has failed, its patterns move to numpy") as told:
                found = search(few, **run)
            assert len([one for one in told if "move" in str(one.message)]) == 1
            assert rf_distance(found.tree, expected.tree) == 0
            assert abs(found.lnl - expected.lnl) < 1e-6

    def test_the_last_device_that_fails_ends_the_run(self, few, failing):
        failing(40)
        with (
            pytest.warns(PlltoolWarning, match="its patterns move to"),
            pytest.raises(DeviceError, match="INVALID_COMMAND_QUEUE") as info,
        ):
            search(few, device="opencl,cpu", share=(0.5, 0.5), **SETTINGS)
        assert "\n" not in str(info.value)

    def test_all_means_every_device_but_only_one_driver_of_the_cpu(self, few):
        from plltool.engine.opencl.device import list_devices
        from plltool.engine.several import name_devices

        named = name_devices(Hardware(device="all")).words
        kinds = [next(device.kind for device in list_devices()[0] if device.index == word) for word in named]
        assert kinds.count("cpu") <= 1
        expected = search(few, device=list(named), **SETTINGS)
        assert search(few, device="all", **SETTINGS).lnl == pytest.approx(expected.lnl, abs=1e-6)


def test_check_and_compare_and_bench(few):
    facts = check(few, "HKY+G2", device="numpy,numpy", share=(0.5, 0.5))
    alone = check(few, "HKY+G2", device="numpy")
    assert facts["device_bytes"] == pytest.approx(alone["device_bytes"], rel=0.1)
    a, b = (parse_hardware(text) for text in ("numpy", "numpy,numpy:share=0.3,0.7"))
    found = compare(few, a, b, model="HKY+G2", options=OPTIONS, seed=5)
    assert abs(found.a.lnl - found.b.lnl) < 1e-6
    with pytest.raises(InputError, match="device: found 'numpy,numpy', expected one device only"):
        bench(b, quick=True)


class TestWorkers:
    @pytest.mark.opencl
    def test_processes_take_turns(self, few):
        data, models = resolve_inputs(few, "HKY+G2")
        own = share_hardware(3, 10, data.patterns, models, Hardware(device="numpy,cpu", share=(0.5, 0.5)))
        assert [one.device for one in own] == ["numpy", "cpu", "numpy"]

    def test_processes_share_threads_and_memory(self, few):
        data, models = resolve_inputs(few, "HKY+G2")
        several = Hardware(device="numpy,numpy", share=(0.5, 0.5), threads=4)
        own = share_hardware(3, 10, data.patterns, models, several)
        assert [one.device for one in own] == ["numpy", "numpy", "numpy"]
        assert all(one.threads == 1 and one.share is None for one in own)
        together = sum(one.memory for one in own[:2])
        (alone,) = share_hardware(1, 10, data.patterns, models, Hardware(device="numpy", threads=4))
        assert alone == Hardware(device="numpy", threads=4)
        offered = plan_memory(data.patterns, models, alone).offered_bytes
        assert own[0].memory == pytest.approx(offered / 2 / 2, rel=0.1), "two devices, two processes on the first"
        assert together <= offered
        assert share_hardware(None, 10, data.patterns, models, several) == (several,)

    @pytest.mark.opencl
    def test_ranks_of_a_crew_share_the_hardware_of_their_machines(self, few):
        """Two machines: three ranks on 8 cores beside rank 0, one on 6."""
        data, models = resolve_inputs(few, "HKY+G2")
        crew = Crew(None, [Seat(0, 3, 8), Seat(1, 3, 8), Seat(2, 3, 8), Seat(0, 1, 6)])
        several = Hardware(device="numpy,cpu", share=(0.9, 0.1), precision="single")
        plan = partial(plan_memory, data.patterns, models)
        own = share_with_crew(crew, 10, several, plan)
        assert [one.device for one in own] == ["numpy", "cpu", "numpy", "numpy"]
        assert [one.threads for one in own] == [2, 2, 2, 6]
        assert all(one.share is None and one.precision == "single" for one in own)
        offered = [plan_memory(data.patterns, models, replace(one, memory=None)).offered_bytes for one in own]
        fractions = [one.memory / bytes_there for one, bytes_there in zip(own, offered, strict=True)]
        assert fractions == pytest.approx([1 / 2, 1 / 2, 1 / 2, 1], rel=0.1), "two devices for three ranks, and for one"
        assert len(share_with_crew(crew, 2, several, plan)) == 2
        assert share_with_crew(crew, 1, several, plan) == (several,), "rank 0 does a single task itself"

    def test_starts_and_replicates(self, few):
        run = {"model": "HKY+G2", "seed": 5, "options": SearchOptions("fast", starts=2, radii=(1,), perturbations=1)}
        expected = search(few, device="numpy", workers=1, **run)
        found = search(few, device="numpy,numpy", share=(0.5, 0.5), workers=2, **run)
        assert rf_distance(found.tree, expected.tree) == 0
        assert abs(found.lnl - expected.lnl) < 0.01
        one, two = (
            bootstrap(few, "HKY+G2", replicates=2, seed=2, workers=workers, device=device)
            for workers, device in ((1, "numpy"), (2, "numpy,numpy"))
        )
        assert one.lnls == two.lnls, "each replicate has one device"


def test_a_device_that_is_missing_is_named(few):
    with pytest.raises(DeviceError, match=r"no OpenCL|pyopencl"):
        search(few, device="numpy,nowhere", share=(0.5, 0.5), **SETTINGS)
