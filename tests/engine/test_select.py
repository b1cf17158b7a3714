"""Choice of engine, device and layout."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

from plltool.engine import select
from plltool.engine.opencl.device import Device
from plltool.engine.select import choose_layout, engine_bytes, find_device, make_engine, rank_devices
from plltool.errors import DeviceError, InputError

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
    shares_host_memory=True,
    vector_width=4,
    handle=None,
)
INTEL = replace(CPU, index="1:0", platform="Intel(R) OpenCL", version="OpenCL 3.1 LINUX", name="EPYC", vector_width=8)
GPU = replace(
    CPU,
    index="2:0",
    platform="NVIDIA CUDA",
    version="OpenCL 3.0 CUDA",
    name="NVIDIA H200",
    kind="gpu",
    compute_units=132,
    shares_host_memory=False,
)
INTEGRATED = replace(GPU, index="3:0", platform="Intel(R) OpenCL Graphics", name="Iris", shares_host_memory=True)
NO_DOUBLE = replace(GPU, index="4:0", name="Toy", has_double=False, problem="no double precision")
ALL = [NO_DOUBLE, CPU, INTEL, INTEGRATED, GPU]

PART_PATTERNS = [(1,), (3,), (400,), (10_000,), (1, 1, 1), (37, 5, 900), (3,) * 100]


def small_data(n_patterns=40):
    rng = np.random.default_rng(5)
    return rng.integers(1, 16, size=(4, n_patterns), dtype=np.uint8), np.ones(n_patterns)


def make_small(**options):
    codes, weights = small_data()
    return make_engine(codes, weights, 4, 2, 4, (codes.shape[1],), 3, **options)


@pytest.fixture
def no_opencl(monkeypatch):
    """As if pyopencl were not installed."""
    monkeypatch.setitem(sys.modules, "pyopencl", None)


@pytest.fixture
def found(monkeypatch):
    """A function that sets the devices which `list_devices` finds."""

    def use(*devices, problems=()):
        monkeypatch.setattr(select, "list_devices", lambda: (list(devices), list(problems)))

    return use


@pytest.fixture
def failing_engines(monkeypatch):
    """No OpenCL engine can be made; returns the devices that were tried."""
    tried = []

    def fail(_request, device):
        tried.append(device.index)
        raise DeviceError(f"{device.label}: kernels do not build:\n\n  line 1\n" + 1000 * "log\n")

    monkeypatch.setattr(select.EngineRequest, "opencl_engine", fail)
    return tried


class TestRanking:
    def test_order(self):
        assert [d.index for d in rank_devices(ALL)] == ["2:0", "3:0", "1:0", "0:0"]

    def test_equals_keep_the_order_of_the_platforms(self):
        assert rank_devices([CPU, replace(CPU, index="5:0")])[0] is CPU

    def test_accelerators_come_last(self):
        other = replace(CPU, index="5:0", kind="other", shares_host_memory=True)
        assert rank_devices([other, CPU])[0] is CPU


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
            ("Intel(R)", "3:0"),
        ],
    )
    def test_names(self, wanted, index):
        assert find_device(ALL, wanted).index == index

    def test_unknown_names_list_what_there_is(self):
        with pytest.raises(DeviceError, match=r"'Radeon'; devices found: 0:0 pthread.*; 1:0 EPYC") as caught:
            find_device([CPU, INTEL], "Radeon")
        assert "\n" not in str(caught.value)

    @pytest.mark.parametrize("wanted", ["opencl", "gpu", "0:0", "x", ""])
    def test_nothing_there(self, wanted):
        with pytest.raises(DeviceError, match="devices found: none"):
            find_device([], wanted)

    @pytest.mark.parametrize("wanted", ["4:0", "Toy"])
    def test_unusable_devices_say_why(self, wanted):
        with pytest.raises(DeviceError, match=r"4:0 Toy \(NVIDIA CUDA\): no double precision"):
            find_device(ALL, wanted)


class TestLayout:
    @pytest.mark.parametrize("part_patterns", PART_PATTERNS)
    @pytest.mark.parametrize("cores", [1, 2, 64])
    @pytest.mark.parametrize("device", [CPU, INTEL], ids=["pocl", "intel"])
    def test_cpu(self, device, cores, part_patterns):
        device = replace(device, compute_units=cores)
        layout = choose_layout(device, 4, 4, 20, part_patterns)
        assert (layout.vw, layout.lane_per_item, layout.tile_major) == (device.vector_width, False, True)
        assert 1 <= layout.tile_blocks * layout.vw <= 32
        assert layout.n_blocks <= 1.25 * sum(layout.part_blocks)
        assert len(layout.groups) <= max(8 * cores, 2) + len(part_patterns)
        assert layout.tile_blocks == 1 or layout.n_tiles >= 4 * cores

    @pytest.mark.parametrize(("device", "blocks"), [(CPU, 8), (INTEL, 4)])
    def test_tiles_hold_32_patterns_of_large_data(self, device, blocks):
        assert choose_layout(device, 4, 4, 100, (5_000,)).tile_blocks == blocks

    @pytest.mark.parametrize("part_patterns", PART_PATTERNS)
    def test_gpu(self, part_patterns):
        layout = choose_layout(GPU, 4, 4, 20, part_patterns)
        assert (layout.vw, layout.tile_blocks, layout.lane_per_item, layout.tile_major) == (64, 1, True, False)
        assert len(layout.groups) == layout.n_tiles

    def test_groups_of_a_gpu_are_bounded(self):
        assert len(choose_layout(GPU, 4, 4, 20, (10_000_000,)).groups) <= 65_536

    def test_a_group_fits_the_largest_buffer(self):
        device = replace(CPU, compute_units=1, max_allocation=2**23)
        n_slots = 300
        layout = choose_layout(device, 4, 4, 100, (5_000,), n_slots=n_slots)
        assert len(layout.groups) > 8  # of one core
        tile_bytes = layout.slot_bytes // layout.n_tiles * n_slots
        assert layout.groups[:, 1].max() * tile_bytes <= device.max_allocation

    @pytest.mark.parametrize("device", [CPU, INTEL, GPU], ids=["pocl", "intel", "gpu"])
    def test_precision_changes_nothing_else(self, device):
        double = choose_layout(device, 4, 4, 20, (500,))
        assert choose_layout(device, 4, 4, 20, (500,), precision="single") == replace(double, precision="single")

    @pytest.mark.parametrize(("device", "vw"), [(CPU, 2), (CPU, 4), (INTEL, 8), (GPU, 32), (GPU, 64)])
    def test_lanes_asked_for(self, device, vw):
        assert choose_layout(device, 4, 4, 20, (500,), vw=vw).vw == vw

    @pytest.mark.parametrize(("device", "vw"), [(CPU, 8), (CPU, 1), (INTEL, 16), (INTEL, 3), (GPU, 4)])
    def test_lanes_that_the_device_cannot_use(self, device, vw):
        with pytest.raises(DeviceError, match=f"cannot use blocks of {vw} lanes"):
            choose_layout(device, 4, 4, 20, (500,), vw=vw)

    def test_unknown_precision(self):
        with pytest.raises(InputError, match="'half', expected one of: double, single"):
            choose_layout(CPU, 4, 4, 20, (500,), precision="half")


class TestBytes:
    def test_by_hand(self):
        layout = choose_layout(CPU, 4, 4, 10, (256,))  # 64 blocks of 4 in 8 tiles of 8, one group each
        assert (layout.n_tiles, len(layout.groups)) == (8, 8)
        clas = 7 * 256 * 4 * 4 * 8
        scales = 7 * 256 * 4
        tips, weights = 10 * 256, 2 * 256 * 8
        assert engine_bytes(layout, 7, n_weight_sets=2) == clas + scales + tips + weights + 8 * 4 + 8 * 16 + 4

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
        codes, weights = small_data(300)
        sets = np.stack([weights, weights])
        engine, _ = make_engine(codes, sets, 4, 2, 4, (200, 100), 5, device="opencl", precision=precision)
        with engine:
            assert sum(sizes) == engine_bytes(engine.layout, 5, n_weight_sets=2)


class TestWithoutOpenCL:
    def test_auto_takes_numpy_and_says_why(self, no_opencl):
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

    def test_lanes_that_numpy_cannot_use(self, no_opencl):
        with pytest.raises(DeviceError, match="numpy cannot use blocks of 8 lanes, only of 1, 2, 4"):
            make_small(device="numpy", vw=8)

    def test_unknown_precision(self, no_opencl):
        with pytest.raises(InputError, match="'half'"):
            make_small(device="numpy", precision="half")


class TestAutomatic:
    def test_failing_devices_lead_to_numpy(self, found, failing_engines):
        found(*ALL, problems=["platform 9 does not list its devices"])
        engine, reason = make_small()
        assert engine.name == "numpy"
        assert failing_engines == ["2:0", "3:0", "1:0", "0:0"]
        assert "platform 9" in reason
        assert "4:0 Toy (NVIDIA CUDA): no double precision" in reason
        assert "0:0 pthread-AMD EPYC (Portable Computing Language): kernels do not build: line 1 log" in reason
        assert "pip install" not in reason
        assert "\n" not in reason
        assert len(reason) < 2000

    def test_a_device_asked_for_does_not_fall_back(self, found, failing_engines):
        found(CPU, GPU)
        with pytest.raises(DeviceError, match="kernels do not build"):
            make_small(device="gpu")
        assert failing_engines == ["2:0"]

    def test_the_first_device_that_works_is_taken(self, found, monkeypatch):
        found(CPU, GPU)
        made = object()

        def engine_on(_request, device):
            if device.kind == "gpu":
                raise DeviceError(f"{device.label}: out of memory")
            return made

        monkeypatch.setattr(select.EngineRequest, "opencl_engine", engine_on)
        engine, reason = make_small(threads=1)
        assert engine is made
        assert "0:0 pthread-AMD EPYC (Portable Computing Language), 1 of 2 cores" in reason
        assert "NVIDIA H200 (NVIDIA CUDA): out of memory" in reason

    def test_a_gpu_that_is_too_small_is_refused_before_anything_is_allocated(self, found):
        pytest.importorskip("pyopencl")
        found(replace(GPU, memory=1000))
        with pytest.raises(DeviceError, match=r"needs 0\.0 GiB, has 0\.0 GiB"):
            make_small(device="gpu")

    @pytest.mark.parametrize(("limit", "obeyed"), [(None, False), ("1", True), ("2", False)])
    def test_intel_obeys_threads_only_by_its_variable(self, found, monkeypatch, limit, obeyed):
        found(INTEL)
        monkeypatch.setattr(select.EngineRequest, "opencl_engine", lambda _request, _device: None)
        monkeypatch.delenv(select.INTEL_THREADS_VARIABLE, raising=False)
        if limit is not None:
            monkeypatch.setenv(select.INTEL_THREADS_VARIABLE, limit)
        _, reason = make_small(threads=1)
        assert ("1 of 2 cores" in reason) == obeyed
        assert (select.INTEL_THREADS_VARIABLE in reason) != obeyed


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

    def test_unknown_name(self):
        with pytest.raises(DeviceError, match="no OpenCL device is called 'no such device'; devices found: 0:0"):
            make_small(device="no such device")
