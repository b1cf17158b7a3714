"""Choice of engine, device and layout."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

from plltool.engine import select, several
from plltool.engine.base import EngineData
from plltool.engine.layout import DataShape, choose_layout
from plltool.engine.opencl.device import Device
from plltool.engine.select import find_device, make_engine, plan_engine, rank_devices
from plltool.engine.storage import Slots, engine_bytes, plan_storage, tile_bytes
from plltool.errors import DeviceError, InputError, PlltoolWarning
from plltool.hardware import Hardware

GIB = 2**30
CPU = Device(
    index="0:0",
    platform="Portable Computing Language",
    version="OpenCL 3.0 PoCL 3.0-rc2  Linux, LLVM 14.0.6",
    name="pthread-AMD EPYC",
    driver="3.0",
    kind="cpu",
    has_double=True,
    compute_units=2,
    memory=4 * GIB,
    max_allocation=GIB,
    max_group_items=4096,
    local_memory=512 << 10,
    shares_host_memory=True,
    vector_width=4,
    handle=None,
)
INTEL = replace(
    CPU,
    index="1:0",
    platform="Intel(R) OpenCL",
    version="OpenCL 3.1 LINUX",
    name="EPYC",
    vector_width=8,
    single_width=16,
)
GPU = replace(
    CPU,
    index="2:0",
    platform="NVIDIA CUDA",
    version="OpenCL 3.0 CUDA",
    name="NVIDIA H200",
    kind="gpu",
    compute_units=132,
    max_group_items=1024,
    local_memory=48 << 10,
    shares_host_memory=False,
)
INTEGRATED = replace(GPU, index="3:0", platform="Intel(R) OpenCL Graphics", name="Iris", shares_host_memory=True)
NO_DOUBLE = replace(GPU, index="4:0", name="Toy", has_double=False)
ALL = [NO_DOUBLE, CPU, INTEL, INTEGRATED, GPU]

PART_PATTERNS = [(1,), (3,), (400,), (10_000,), (1, 1, 1), (37, 5, 900), (3,) * 100]


def small_data(n_patterns=40):
    rng = np.random.default_rng(5)
    return EngineData(rng.integers(1, 16, size=(4, n_patterns), dtype=np.uint8), np.ones(n_patterns))


def make_small(**hardware):
    return make_engine(small_data(), DataShape(4, 2, 4, (40,)), Slots(3), Hardware(**hardware))


def layout_of(device, n_states, n_components, n_taxa, part_patterns, precision="double", vw=None, n_codes=0):
    return choose_layout(device, DataShape(n_states, n_components, n_taxa, part_patterns, n_codes), precision, vw)


@pytest.fixture
def no_opencl(monkeypatch):
    """As if pyopencl were not installed."""
    monkeypatch.setitem(sys.modules, "pyopencl", None)


@pytest.fixture
def found(monkeypatch):
    """A function that sets the devices which `list_devices` finds, and how their tests end."""

    def use(*devices, problems=(), faults=()):
        monkeypatch.setattr(select, "list_devices", lambda: (list(devices), list(problems)))
        monkeypatch.setattr(select, "find_fault", lambda device: dict(faults).get(device.index))

    return use


@pytest.fixture
def failing_engines(monkeypatch):
    """No OpenCL engine can be made; returns the devices that were tried."""
    tried, open_on = [], select.open_on

    def fail(device, *given):
        if device is None:
            return open_on(device, *given)
        tried.append(device.index)
        raise DeviceError(f"{device.label}: kernels do not build:\n\n  line 1\n" + 1000 * "log\n")

    monkeypatch.setattr(select, "open_on", fail)
    return tried


@pytest.mark.parametrize(
    ("devices", "ranked"),
    [
        (ALL, ["2:0", "1:0", "0:0", "3:0"]),
        ([CPU, replace(CPU, index="5:0")], ["0:0", "5:0"]),  # equals keep the order of the platforms
        ([replace(CPU, index="5:0", kind="other", shares_host_memory=True), CPU], ["0:0", "5:0"]),
    ],
    ids=["all", "equals", "an accelerator"],
)
def test_ranking(devices, ranked):
    assert [device.index for device in rank_devices(devices)] == ranked


class TestNames:
    @pytest.mark.parametrize(
        ("wanted", "index"),
        [
            ("opencl", "2:0"),
            ("cpu", "1:0"),
            ("gpu", "2:0"),
            ("GPU", "2:0"),
            ("0:0", "0:0"),
            (" 3:0 ", "3:0"),
            ("portable", "0:0"),
            ("PoCL", "0:0"),
            ("epyc", "1:0"),
            ("pthread", "0:0"),
            ("h200", "2:0"),
            ("Intel(R)", "1:0"),
            ("iris", "3:0"),
        ],
    )
    def test_names(self, wanted, index):
        assert find_device(ALL, wanted).index == index

    @pytest.mark.parametrize(
        ("devices", "wanted", "message"),
        [
            ([CPU, INTEL], "Radeon", r"'Radeon'; devices found: 0:0 pthread.*; 1:0 EPYC.*"),
            *(([], wanted, "devices found: none") for wanted in ("opencl", "gpu", "0:0", "x", "")),
            ([CPU], "gpu", r"^there is no GPU that OpenCL can use; devices found: 0:0 pthread.*"),
            *(
                (ALL, own, r"4:0 Toy \(NVIDIA CUDA\): no double precision.* --precision single")
                for own in ("4:0", "Toy")
            ),
        ],
    )
    def test_what_cannot_be_found_says_why(self, devices, wanted, message):
        with pytest.raises(DeviceError, match=rf"\A.*{message}\Z"):
            find_device(devices, wanted)

    def test_single_precision_does_without_double(self):
        assert find_device(ALL, "Toy", precision="single") is NO_DOUBLE
        assert [d.index for d in rank_devices(ALL, "single")] == ["4:0", "2:0", "1:0", "0:0", "3:0"]
        on_cpu = replace(NO_DOUBLE, kind="cpu")
        layouts = [layout_of(device, 4, 4, 20, (500,), precision="single") for device in (NO_DOUBLE, on_cpu, GPU)]
        assert layouts[0] == layouts[1] == replace(layouts[2], has_double=False)


class TestLayout:
    @pytest.mark.parametrize("part_patterns", PART_PATTERNS)
    @pytest.mark.parametrize("cores", [1, 2, 64])
    @pytest.mark.parametrize("device", [CPU, INTEL], ids=["pocl", "intel"])
    def test_cpu(self, device, cores, part_patterns):
        device = replace(device, compute_units=cores)
        layout = layout_of(device, 4, 4, 20, part_patterns)
        assert (layout.vw, layout.lane_per_item, layout.tile_major) == (device.vector_width, False, True)
        assert 1 <= layout.tile_blocks * layout.vw <= 32
        assert layout.n_blocks <= 1.25 * sum(layout.part_blocks)
        assert len(layout.groups) <= max(8 * cores, 2) + len(part_patterns)
        assert layout.tile_blocks == 1 or layout.n_tiles >= 4 * cores

    @pytest.mark.parametrize(("device", "blocks"), [(CPU, 8), (INTEL, 4)])
    def test_tiles_hold_32_patterns_of_large_data(self, device, blocks):
        assert layout_of(device, 4, 4, 100, (5_000,)).tile_blocks == blocks

    @pytest.mark.parametrize("part_patterns", PART_PATTERNS)
    def test_gpu(self, part_patterns):
        layout = layout_of(GPU, 4, 4, 20, part_patterns)
        assert (layout.vw, layout.tile_blocks, layout.lane_per_item, layout.tile_major) == (64, 1, True, False)
        assert len(layout.groups) == layout.n_tiles

    def test_groups_of_a_gpu_are_bounded(self):
        assert len(layout_of(GPU, 4, 4, 20, (10_000_000,)).groups) <= 65_536

    @pytest.mark.parametrize(
        ("device", "precision", "lanes"),
        [
            (replace(CPU, single_width=4), "single", 4),
            (replace(CPU, single_width=8), "single", 8),
            (CPU, "mixed", 4),
            (INTEL, "single", 16),
            (INTEL, "mixed", 16),
            (INTEL, "rough", 16),
            (GPU, "single", 64),
            (GPU, "rough", 64),
            (GPU, "mixed", 64),
        ],
    )
    def test_single_clas_fill_the_vectors(self, device, precision, lanes):
        """Twice as many lanes where the compiler handles them; where sums are double, only for the widest vectors."""
        double = layout_of(device, 4, 4, 20, (5_000,))
        single = layout_of(device, 4, 4, 20, (5_000,), precision=precision)
        assert single.vw == lanes
        assert replace(single, vw=double.vw, tile_blocks=double.tile_blocks) == replace(double, precision=precision)

    def test_a_rough_engine_has_its_own_precision_where_that_is_faster(self):
        shape, slots = DataShape(4, 1, 20, (5_000,)), Slots(60)
        layouts = [plan_engine(device, shape, slots, Hardware(), rough=True).layout for device in (INTEL, GPU, None)]
        assert [layout.precision for layout in layouts] == ["rough", "rough", "double"]

    @pytest.mark.parametrize(("device", "vw"), [(CPU, 2), (CPU, 4), (INTEL, 8), (GPU, 32), (GPU, 64)])
    def test_lanes_asked_for(self, device, vw):
        assert layout_of(device, 4, 4, 20, (500,), vw=vw).vw == vw

    @pytest.mark.parametrize(
        ("n_states", "n_components", "local_memory", "staged"),
        [(4, 4, 48 << 10, True), (8, 47, 48 << 10, True), (8, 48, 48 << 10, False), (4, 4, 1023, False)],
    )
    def test_matrices_of_a_gpu_are_staged_where_they_fit(self, n_states, n_components, local_memory, staged):
        device = replace(GPU, local_memory=local_memory)
        assert layout_of(device, n_states, n_components, 20, (500,)).staged_matrices == staged
        assert not layout_of(CPU, n_states, n_components, 20, (500,)).staged_matrices

    @pytest.mark.parametrize("vw", [32, 64])
    def test_a_cpu_device_in_the_shape_of_a_gpu(self, vw):
        """So that the kernels of a GPU can be tried without one; fewer registers gain nothing, and compile longer."""
        gpu = layout_of(GPU, 4, 4, 20, (500,), vw=vw)
        assert gpu.cut_kernels
        assert layout_of(CPU, 4, 4, 20, (500,), vw=vw) == replace(gpu, cut_kernels=False)
        assert not layout_of(CPU, 4, 4, 20, (500,)).cut_kernels

    @pytest.mark.parametrize(("device", "vw"), [(CPU, 8), (CPU, 1), (INTEL, 16), (INTEL, 3), (GPU, 4)])
    def test_lanes_that_the_device_cannot_use(self, device, vw):
        with pytest.raises(DeviceError, match=f"cannot use blocks of {vw} lanes"):
            layout_of(device, 4, 4, 20, (500,), vw=vw)


class TestManyStates:
    def test_a_gpu_takes_fewer_lanes(self):
        assert layout_of(GPU, 61, 4, 20, (500,), n_codes=70).vw == 32

    @pytest.mark.parametrize("precision", ["double", "mixed", "single"])
    @pytest.mark.parametrize(
        ("n_states", "workers", "own", "tile", "vw"),
        [
            *((*case, vw) for case in [(9, 2, 5, 9), (16, 3, 6, 16), (17, 3, 6, 9), (20, 4, 5, 10)] for vw in (32, 64)),
            *((61, 11, 6, 16, vw) for vw in (32, 64)),
            (122, 21, 6, 16, 32),
            (122, 16, 8, 16, 64),  # 1,024 work-items at most
        ],
    )
    def test_workers_share_the_states_on_a_gpu(self, n_states, workers, own, tile, vw, precision):
        layout = layout_of(GPU, n_states, 4, 20, (500,), precision, vw)
        assert (layout.state_workers, layout.own_states, layout.column_tile) == (workers, own, tile)
        assert layout.own_states * workers >= n_states
        assert layout.group_items == vw * workers <= 1024
        assert layout.local_bytes <= 48 << 10

    @pytest.mark.parametrize(
        ("items", "local_memory", "workers", "tile", "local_bytes"),
        [
            (1024, 48 << 10, 21, 16, 8 * 16 * (126 + 32)),
            (256, 48 << 10, 8, 16, 8 * 16 * (128 + 32)),  # what AMD's drivers tell
            (100, 48 << 10, 3, 16, 8 * 16 * (123 + 32)),
            (1024, 16 << 10, 21, 12, 8 * 12 * (126 + 32)),
            (1024, 6 << 10, 21, 4, 21 * 32 * 8),  # the sums over states
            (16, 1 << 10, 1, 1, 8 * (122 + 32)),
        ],
    )
    def test_a_smaller_device_gets_fewer_workers_and_smaller_tiles(
        self, items, local_memory, workers, tile, local_bytes
    ):
        device = replace(GPU, max_group_items=items, local_memory=local_memory)
        layout = layout_of(device, 122, 4, 20, (500,))
        job = 3 * (4 * 8 + 8) + 12 * 8 + 24  # three operands, twelve pointers, five numbers, each with padding
        job += (3 * 8 + 2 * 4) + (20 * 8 + 6 * 4)  # where numbers go, and the task: addresses and sizes, and numbers
        assert (layout.state_workers, layout.column_tile, layout.local_bytes) == (workers, tile, local_bytes + job)

    @pytest.mark.parametrize(("device", "n_states"), [(CPU, 61), (INTEL, 20), (GPU, 4), (GPU, 8)])
    def test_nobody_else_shares_states(self, device, n_states):
        layout = layout_of(device, n_states, 4, 20, (500,))
        assert not layout.shared_states
        assert layout.group_items == (64 if device is GPU else 1)

    def test_the_table_of_state_sets_reaches_the_engine(self):
        codes, table = np.array([[0, 20, 21], [3, 3, 3]]), np.zeros((22, 20), dtype=np.uint8)
        table[:20], table[20], table[21, :2] = np.eye(20), 1, 1
        data = EngineData(codes, np.ones(3), table)
        engine, _ = make_engine(data, DataShape(20, 1, 2, (3,), data.n_codes), Slots(1), Hardware("numpy"))
        assert engine.layout.n_codes == 22
        assert engine._tips[0, 0, 0, :, :3].sum(axis=0).tolist() == [1, 20, 2]


class TestBytes:
    def test_by_hand(self):
        layout = layout_of(CPU, 4, 4, 10, (256,))  # 64 blocks of 4 in 8 tiles of 8, one group each, and their sum
        assert (layout.n_tiles, len(layout.groups)) == (8, 8)
        clas = 7 * 256 * 4 * 4 * 8
        scales = 7 * 256 * 4 * 4
        tips, weights = 10 * 256, 256 * 8
        expected = clas + scales + tips + weights + 8 * 4 + 8 + 4 + 16 * 4 * 8
        assert engine_bytes(layout, plan_storage(layout, 7)) == expected

    @pytest.mark.opencl
    @pytest.mark.parametrize("precision", ["double", "single"])
    def test_what_the_engine_allocates(self, monkeypatch, precision):
        cl = pytest.importorskip("pyopencl")
        sizes = []

        class CountedBuffer(cl.Buffer):
            def __init__(self, context, flags, size=0, hostbuf=None):
                super().__init__(context, flags, size, hostbuf)
                sizes.append(self.size)

        monkeypatch.setattr(cl, "Buffer", CountedBuffer)
        data, shape = small_data(300), DataShape(4, 2, 4, (200, 100))
        for memory in (None, 40_000):
            sizes.clear()
            engine, _ = make_engine(data, shape, Slots(5), Hardware("opencl", precision, memory=memory))
            with engine:
                assert engine.resident == (memory is None)
                assert sum(sizes) == engine_bytes(engine.layout, engine.storage)
                assert sum(sizes) == engine.counters.peak_bytes == engine.counters.bytes_held


SHAPE = DataShape(4, 4, 50, (100_000,))
CLA_BYTES = 16 * 8 + 4  # of a pattern, GTR+G4


class TestMemory:
    """What is held where: 100,000 patterns fill the blocks of every device."""

    @pytest.fixture(autouse=True)
    def host(self, monkeypatch):
        monkeypatch.setattr(select, "available_memory", lambda: 10 * GIB)

    @pytest.mark.parametrize("fitting", [None, 160], ids=["everything", "some of the extra slots"])
    def test_a_device_that_holds(self, fitting):
        large = replace(GPU, memory=80 * GIB, max_allocation=20 * GIB)
        memory = fitting and fitting * plan_engine(large, SHAPE, Slots(1), Hardware()).layout.slot_bytes
        plan = plan_engine(large, SHAPE, Slots(150, 50), Hardware(memory=memory))
        assert plan.storage.resident
        assert plan.storage.n_slots == (fitting or 200)
        assert len(plan.storage.runs) == 1

    @pytest.mark.parametrize("device", [CPU, INTEL, GPU, None], ids=["pocl", "intel", "gpu", "numpy"])
    def test_tasks_that_stream_well(self, device):
        """They take many patterns in turn on CPUs, few patterns at once, and all patterns at once elsewhere."""
        slots = Slots(150, 20, 50, streams_from=64)
        many = plan_engine(device, SHAPE, slots, Hardware())
        assert many.offered >= many.useful == many.memory == many.storage.n_bytes(many.layout)
        assert many.storage.launch_share == 1.0
        assert many.storage.resident == (device in (GPU, None))
        if not many.storage.resident:
            assert many.storage.n_slots == 200
            assert many.storage.buffer_tiles == (len(many.layout.groups),)
            one = plan_engine(device, SHAPE, slots, Hardware(threads=1))
            assert one.storage.buffer_tiles == (1,)
            assert one.layout == many.layout
        shape = replace(SHAPE, part_patterns=(1000,))
        few = plan_engine(device, shape, slots, Hardware())
        assert few.storage.resident
        assert few.storage.n_slots == 170
        if device in (CPU, INTEL):
            rounds = Slots(150, streams_from=16)
            assert not plan_engine(device, shape, rounds, Hardware(threads=1)).storage.resident

    @pytest.mark.parametrize("device", [CPU, INTEL, GPU, None], ids=["pocl", "intel", "gpu", "numpy"])
    def test_a_tenth(self, device):
        memory = 100_000 * 150 * CLA_BYTES // 10
        plan = plan_engine(device, SHAPE, Slots(150, 20, 50), Hardware(memory=memory))
        assert not plan.storage.resident
        assert plan.storage.n_slots == 200
        held = plan.storage.n_bytes(plan.layout)
        if device in (GPU, None):
            assert 0.8 * memory < held <= memory
        else:
            assert held == len(plan.layout.groups) * tile_bytes(plan.layout, 200) <= memory
        assert plan.layout == plan_engine(device, SHAPE, Slots(150, 20, 50), Hardware(memory=100 * GIB)).layout

    @pytest.mark.parametrize("device", [CPU, GPU, None], ids=["pocl", "gpu", "numpy"])
    def test_too_little(self, device):
        with pytest.raises(DeviceError, match=r"^memory: found 10000 bytes, expected at least \d+[KM]: \d+ taxa need"):
            plan_engine(device, SHAPE, Slots(150, 50), Hardware(memory=10_000))

    @pytest.mark.parametrize(
        ("device", "expected"),
        [
            (replace(GPU, memory=5 * GIB), 0.9 * 5 * GIB),
            (replace(CPU, memory=5 * GIB), 5 * GIB),  # less than the host has left
            (replace(CPU, memory=50 * GIB), 0.8 * 10 * GIB),
            (replace(INTEGRATED, memory=50 * GIB), 0.8 * 10 * GIB),
            (None, 0.8 * 10 * GIB),
        ],
    )
    def test_what_is_offered(self, device, expected):
        tips = 40 * 50 * 100_000
        assert plan_engine(device, SHAPE, Slots(1), Hardware()).offered == pytest.approx(expected, abs=tips)

    def test_available_memory(self, monkeypatch):
        monkeypatch.undo()
        assert 2**20 < select.available_memory() < 2**50

    @pytest.mark.opencl
    @pytest.mark.parametrize("failures", [1, 2, 100])
    def test_an_allocation_that_fails_is_tried_with_half(self, monkeypatch, caplog, failures):
        cl = pytest.importorskip("pyopencl")
        from plltool.engine.opencl.engine import OpenCLEngine

        hold, left = OpenCLEngine._hold_tiles, [failures]

        def fail(engine, n_tiles):
            left[0] -= 1
            if left[0] >= 0:
                raise cl.MemoryError("clEnqueueFillBuffer", cl.status_code.MEM_OBJECT_ALLOCATION_FAILURE)
            return hold(engine, n_tiles)

        monkeypatch.setattr(OpenCLEngine, "_hold_tiles", fail)
        arguments = small_data(400), DataShape(4, 2, 4, (400,)), Slots(3), Hardware("opencl")
        if failures > 10:
            with pytest.raises(DeviceError, match="expected at least"):
                make_engine(*arguments)
            return
        engine, _ = make_engine(*arguments)
        with engine:
            assert not engine.resident
            full = 3 * engine.layout.slot_bytes
            assert 0.5 < engine.storage.n_bytes(engine.layout) / (full / 2**failures) <= 1
        assert len([record for record in caplog.records if "trying with half" in record.message]) == failures


class TestWithoutOpenCL:
    def test_auto_takes_numpy_and_says_why(self, no_opencl):
        with pytest.warns(PlltoolWarning, match="pip install"):
            engine, reason = make_small()
        assert engine.name == "numpy"
        assert "pyopencl cannot be imported" in reason
        assert "pip install 'plltool[pocl]'" in reason
        assert "\n" not in reason

    @pytest.mark.parametrize("device", ["opencl", "cpu", "gpu", "0:0", "epyc"])
    def test_a_device_asked_for_fails(self, no_opencl, device):
        with pytest.raises(DeviceError, match="pyopencl cannot be imported"):
            make_small(device=device)

    @pytest.mark.parametrize("vw", [None, 1, 2, 4])
    @pytest.mark.parametrize("precision", ["double", "single"])
    def test_numpy_asked_for(self, no_opencl, vw, precision):
        engine, reason = make_small(device="NumPy", vw=vw, precision=precision)
        assert (engine.layout.vw, engine.layout.tile_blocks, engine.layout.precision) == (vw or 4, 1, precision)
        assert "asked for" in reason

    @pytest.mark.parametrize(
        ("settings", "message"),
        [({"vw": 8}, "numpy cannot use blocks of 8 lanes, only of 1, 2, 4"), ({"precision": "half"}, "'half'")],
    )
    def test_what_numpy_cannot_do(self, no_opencl, settings, message):
        with pytest.raises((DeviceError, InputError), match=message):
            make_small(device="numpy", **settings)


class TestAutomatic:
    def test_failing_devices_lead_to_numpy(self, found, failing_engines):
        found(*ALL, problems=["platform 9 does not list its devices"])
        with pytest.warns(PlltoolWarning, match="kernels do not build"):
            engine, reason = make_small()
        assert engine.name == "numpy"
        assert failing_engines == ["2:0", "1:0", "0:0", "3:0"]
        assert "platform 9" in reason
        assert "4:0 Toy (NVIDIA CUDA): no double precision" in reason
        assert "0:0 pthread-AMD EPYC (Portable Computing Language): kernels do not build: line 1 log" in reason
        assert "pip install" not in reason
        assert "\n" not in reason
        assert len(reason) < 2000

    def test_the_first_device_that_works_is_taken(self, found, monkeypatch):
        found(CPU, GPU)
        made = object()

        def engine_on(device, *_):
            if device.kind == "gpu":
                raise DeviceError(f"{device.label}: out of memory")
            return made

        monkeypatch.setattr(select, "open_on", engine_on)
        engine, reason = make_small(threads=1)
        assert engine is made
        assert "0:0 pthread-AMD EPYC (Portable Computing Language), 1 of 2 cores" in reason
        assert "NVIDIA H200 (NVIDIA CUDA): out of memory" in reason

    def test_devices_that_fail_their_test_are_skipped(self, found, monkeypatch):
        found(CPU, INTEL, GPU, faults={"2:0": "the driver crashes (SIGSEGV)", "1:0": "no answer within 60 s"})
        tried = []
        monkeypatch.setattr(select, "open_on", lambda device, *_: tried.append(device.index))
        _, reason = make_small()
        assert tried == ["0:0"]
        assert reason.startswith("OpenCL device 0:0 ")
        assert "2:0 NVIDIA H200 (NVIDIA CUDA): the driver crashes (SIGSEGV); 1:0 EPYC" in reason
        assert "no answer within 60 s" in reason

    def test_a_device_is_tested_when_it_is_its_turn(self, found, monkeypatch):
        tested = []
        found(CPU, INTEL, GPU)
        monkeypatch.setattr(select, "find_fault", lambda device: tested.append(device.index))
        assert next(select.find_automatic("double")[0]) is GPU
        assert tested == ["2:0"]

    @pytest.mark.parametrize(
        ("fault", "message", "tried"),
        [
            ("the driver crashes", r"^device 'gpu' cannot be used: 2:0 NVIDIA H200 .*: the driver crashes$", []),
            (None, "kernels do not build", ["2:0"]),
        ],
        ids=["fails its test", "no engine"],
    )
    def test_a_device_asked_for_does_not_fall_back(self, found, failing_engines, fault, message, tried):
        found(CPU, GPU, faults={"2:0": fault})
        with pytest.raises(DeviceError, match=message):
            make_small(device="gpu")
        assert failing_engines == tried

    def test_all_devices_fail_their_test(self, found):
        found(CPU, faults={"0:0": "no answer within 60 s"})
        with pytest.warns(PlltoolWarning, match=r"no answer within 60 s.*pip install"):
            engine, _ = make_small()
        assert engine.name == "numpy"

    def test_a_fork_does_without_opencl(self, found, monkeypatch):
        found(CPU)
        assert select.find_devices()[0] == [CPU]
        monkeypatch.setattr("os.getpid", lambda: -1)  # a fork has another number and the memory of this process
        with pytest.warns(PlltoolWarning, match=r"\(OpenCL hangs in a fork [^;]*; start processes by [^;]*\)$"):
            engine, _ = make_small()
        assert engine.name == "numpy"
        for device in ("cpu", "all", "cpu,gpu"):
            with pytest.raises(DeviceError, match="OpenCL hangs in a fork"):
                several.find_used_devices(several.name_devices(Hardware(device)))

    def test_all_are_those_that_pass(self, monkeypatch):
        monkeypatch.setattr(several, "find_devices", lambda: (ALL, []))
        monkeypatch.setattr(several, "find_fault", lambda device: "crashes" if device is GPU else None)
        assert several.name_devices(Hardware("all")).device == "1:0,3:0"

    @pytest.mark.parametrize(("limit", "used"), [(1, 1), (2, 2), (None, 2)])
    def test_intel_has_the_threads_of_its_first_context(self, found, monkeypatch, limit, used):
        found(INTEL)
        monkeypatch.setattr(select, "open_on", lambda *_: None)
        monkeypatch.delenv(select.INTEL_THREADS_VARIABLE, raising=False)
        monkeypatch.setattr(select.INTEL_THREADS, "limit", limit)
        with pytest.warns(PlltoolWarning) if used != 1 else nullcontext():
            _, reason = make_small(threads=1)
        assert f"{used} of 2 cores" in reason
        assert ("start a new process" in reason) == (used != 1)

    def test_numpy_in_place_of_a_device_is_a_warning(self, found):
        found(problems=["platform 9 does not list its devices"])
        with pytest.warns(PlltoolWarning) as caught:
            engine, reason = make_small()
        assert engine.name == "numpy"
        assert [str(warning.message) for warning in caught] == [reason]
        assert caught[0].filename == __file__


@pytest.mark.opencl
class TestWithOpenCL:
    def test_auto_takes_a_device(self):
        engine, reason = make_small()
        with engine:
            assert engine.name == "opencl"
        assert "chosen automatically" in reason

    @pytest.mark.parametrize("precision", ["double", "single"])
    def test_by_index(self, precision):
        engine, reason = make_small(device="0:0", precision=precision)
        with engine:
            assert engine.name == "opencl"
            assert engine.layout.precision == precision
        assert "asked for by '0:0'" in reason
