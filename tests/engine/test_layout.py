"""Where each number lies: Figures 1 and 2 of Izquierdo-Carrasco et al. 2013, padding, tiles, groups and parts."""

import numpy as np
import pytest
from helpers import evaluate_edges, jukes_cantor_mixture, mix, numpy_engine

from plltool.engine import contract
from plltool.engine import program as prog
from plltool.engine.base import EngineData
from plltool.engine.layout import Layout
from plltool.engine.storage import plan_storage
from plltool.errors import EngineError

# The figures' CLA: 4 sites, 2 rates, DNA. Each entry is (site, rate, state) as printed from left to right.
FIGURE_1 = [(site, rate, state) for site in range(4) for rate in range(2) for state in "ACGT"]
FIGURE_2 = [
    *[(0, 0, "A"), (1, 0, "A"), (0, 0, "C"), (1, 0, "C"), (0, 0, "G"), (1, 0, "G"), (0, 0, "T"), (1, 0, "T")],
    *[(0, 1, "A"), (1, 1, "A"), (0, 1, "C"), (1, 1, "C"), (0, 1, "G"), (1, 1, "G"), (0, 1, "T"), (1, 1, "T")],
    *[(2, 0, "A"), (3, 0, "A"), (2, 0, "C"), (3, 0, "C"), (2, 0, "G"), (3, 0, "G"), (2, 0, "T"), (3, 0, "T")],
    *[(2, 1, "A"), (3, 1, "A"), (2, 1, "C"), (3, 1, "C"), (2, 1, "G"), (3, 1, "G"), (2, 1, "T"), (3, 1, "T")],
]


def figure_values(order):
    """The CLA of ((tip)) propagated by JC at rates 0.5 and 1.5, t = 0.3, in the order of a figure.

    Site s of the tip has state s, so every value differs by its (site == state, rate).
    """
    values = []
    for site, rate, state in order:
        decay = np.exp(-4 / 3 * (0.5, 1.5)[rate] * 0.3)
        values.append((1 + 3 * decay) / 4 if "ACGT"[site] == state else (1 - decay) / 4)
    return np.array(values)


FIGURE_CODES = np.array([[1, 2, 4, 8]])
FIGURES = pytest.mark.parametrize(("vw", "order"), [(1, FIGURE_1), (2, FIGURE_2)], ids=["figure1", "figure2"])


def two_rates():
    return mix([(0.5, np.full(4, 0.25), np.ones((4, 4)), rate) for rate in (0.5, 1.5)])


@FIGURES
def test_numpy_clas_lie_as_in_the_paper(vw, order):
    engine = numpy_engine(2, FIGURE_CODES, np.ones(4), [two_rates()], vw=vw)
    engine.run(prog.propagate(1, ~0, 0), np.array([0.3]))
    np.testing.assert_allclose(engine._clas[1].ravel(), figure_values(order), rtol=1e-14)


@pytest.mark.opencl
@FIGURES
def test_opencl_clas_lie_as_in_the_paper(opencl_device, vw, order):
    cl = pytest.importorskip("pyopencl")
    from plltool.engine.opencl.engine import OpenCLEngine

    # OpenCL C has no double1: a single lane is the variant with lanes
    layout = Layout(4, 2, 1, (4,), vw, lane_per_item=vw == 1, tile_major=False)
    data = EngineData(FIGURE_CODES, np.ones(4))
    with OpenCLEngine(layout, plan_storage(layout, 2), data, opencl_device) as engine:
        engine.set_model([two_rates().components])
        engine.run(prog.propagate(1, ~0, 0), np.array([0.3]))
        stored = np.empty(2 * 32)
        cl.enqueue_copy(engine._queue, stored, engine._chunks[0].storage["clas"])
    np.testing.assert_allclose(stored[32:], figure_values(order), rtol=1e-14)


def test_sizes_of_parts_that_never_share_a_tile():
    layout = Layout(4, 4, 3, (5, 9), vw=4, tile_blocks=2)
    assert (layout.n_parts, layout.n_patterns) == (2, 14)
    assert layout.part_blocks == (2, 3)
    assert layout.part_tiles == (1, 2)
    assert (layout.n_tiles, layout.n_blocks, layout.n_lanes) == (3, 6, 24)
    assert layout.block_values == 4 * 4 * 4
    assert layout.block_bytes == 64 * 8 + 16 * 4
    assert layout.slot_bytes == 6 * (64 * 8 + 16 * 4)
    assert layout.lane_of_pattern.tolist() == [*range(5), *range(8, 17)]
    assert layout.block_part.tolist() == [0, 0, 1, 1, 1, 1]
    assert layout.tile_used_blocks.tolist() == [2, 2, 1]


@pytest.mark.parametrize(("n_patterns", "n_blocks"), [(1, 1), (3, 1), (4, 1), (5, 2), (8, 2), (9, 3)])
def test_a_part_is_padded_to_whole_blocks(n_patterns, n_blocks):
    layout = Layout(4, 1, 2, (n_patterns,), vw=4)
    assert layout.part_blocks == (n_blocks,)
    assert layout.n_lanes == 4 * n_blocks


def test_padding_is_undetermined_and_weighs_nothing():
    layout = Layout(4, 1, 2, (3, 1), vw=2, tile_blocks=2)
    codes = layout.pad_codes(np.array([[1, 2, 4, 8], [8, 4, 2, 1]]))
    assert codes.dtype == np.uint8
    # [tile][taxon][block in tile][lane]
    assert codes.tolist() == [[[[1, 2], [4, 15]], [[8, 4], [2, 15]]], [[[8, 15], [15, 15]], [[1, 15], [15, 15]]]]
    assert layout.pad_weights(np.array([1.0, 2.0, 3.0, 4.0])).tolist() == [1, 2, 3, 0, 4, 0, 0, 0]
    many = Layout(20, 1, 1, (1,), vw=2, n_codes=25).pad_codes(np.array([[3]]))
    assert (many.dtype, many.ravel().tolist()) == (np.uint8, [3, 20])


def test_codes_of_many_states_take_as_many_bytes_as_they_need():
    assert Layout(8, 1, 2, (1,), 1).code == np.uint8
    assert Layout(20, 1, 2, (1,), 1, n_codes=256 - 21).code == np.uint8  # 20 states and none are codes of their own
    assert Layout(20, 1, 2, (1,), 1, n_codes=257 - 21).code == np.uint16
    assert Layout(122, 1, 2, (1,), 1, n_codes=(1 << 16) - 123).code == np.uint16
    assert Layout(122, 1, 2, (1,), 1, n_codes=(1 << 16) - 122).code == np.uint32
    with pytest.raises(EngineError, match="2147483526 codes of 122 states, expected at most 2147483648"):
        Layout(122, 1, 2, (1,), 1, n_codes=(1 << 31) - 122)


@pytest.mark.parametrize("max_groups", [1, 2, 3, 5, 64])
@pytest.mark.parametrize("parts", [(1,), (37,), (5, 9), (40, 1, 17)])
def test_groups_cover_every_tile_once_in_order(parts, max_groups):
    layout = Layout(4, 1, 2, parts, vw=2, tile_blocks=3, max_groups=max_groups)
    first, count, part = layout.groups.T
    covered = [(tile, p) for f, c, p in zip(first, count, part, strict=True) for tile in range(f, f + c)]
    assert [tile for tile, _ in covered] == list(range(layout.n_tiles))
    assert [p for _, p in covered] == layout.block_part[:: layout.tile_blocks].tolist()
    assert len(layout.groups) <= max_groups + len(parts)
    assert [int(part[g]) for g in layout.part_first_group] == list(range(len(parts)))
    assert all(g == 0 or part[g - 1] == part[g] - 1 for g in layout.part_first_group)


def test_strides():
    """In blocks, for 5 slots and 7 tiles of 3 blocks."""
    tiles_first = Layout(4, 1, 2, (1,), 2, tile_blocks=3, tile_major=True)
    slots_first = Layout(4, 1, 2, (1,), 2, tile_blocks=3, tile_major=False)
    for layout, outer in ((tiles_first, "tile"), (slots_first, "slot")):
        tile_stride, slot_stride = layout.strides(5, 7)
        starts = sorted(tile * tile_stride + slot * slot_stride for tile in range(7) for slot in range(5))
        assert starts == [3 * i for i in range(35)]  # every place used once
        assert (tile_stride > slot_stride) == (outer == "tile")


def test_macros_name_everything_the_kernels_ask_for():
    macros = Layout(20, 2, 2, (1,), vw=4, tile_blocks=3, precision="single").macros()
    assert set(macros) == {
        *("-DN_STATES=20", "-DN_COMPONENTS=2", "-DVW=4", "-DMOST_BLOCKS=16", "-DLANE_PER_ITEM=0", "-DGROUP_ITEMS=1"),
        *("-DREAL=float", "-DREAL_BITS=32", "-DSUM=float", "-DCODE=uchar", "-DSCALE_BITS=32"),
        *("-DMANY_STATES=1", "-DPMATRIX_COLUMNS=12", "-DSTAGED_MATRICES=0", "-DTABLE_ROWS=0"),
        *("-DMATRIX_VALUES=420", "-DBRANCH_VALUES=840", "-DMODEL_VALUES=861", "-DEIGEN_VALUES=820"),
        *("-DREVERSIBLE=1", "-DDIFFERENCE_TABLES=1", "-DHAS_DOUBLE=1", "-DDOUBLE_LANES=4"),
        *(f"-D{name}={number}" for name, number in contract.macros().items()),
    }
    shared = Layout(20, 2, 2, (1,), vw=32, lane_per_item=True, state_workers=3, column_tile=10).macros()
    assert {macro.split("=")[0] for macro in shared} - {macro.split("=")[0] for macro in macros} == {
        *("-DSTATE_WORKERS", "-DOWN_STATES", "-DCOLUMN_TILE", "-DSHARED_DOUBLES", "-DJOB_BYTES")
    }


@pytest.mark.parametrize("vw", [2, 4, 8])
@pytest.mark.parametrize("precision", ["double", "single"])
def test_data_of_different_size_share_their_kernels(vw, precision):
    """All tiles of several blocks that `choose_layout` makes, that is up to 256 bytes of a value; others have room."""
    layouts = [Layout(4, 4, 2, (1,), vw, tile_blocks=n, precision=precision) for n in (1, 2, 4, 256)]
    one, two, four, many = (layout.macros() for layout in layouts)
    assert one != two == four != many
    assert [layout.most_blocks >= layout.tile_blocks for layout in layouts] == [True] * 4
    assert "-DMOST_BLOCKS=1" in one
    assert f"-DMOST_BLOCKS={256 // layouts[0].real.itemsize // vw}" in two


def test_codes_of_a_layout_reach_the_likelihood():
    """A pattern's weight and codes stay together through the padding."""
    codes = np.array([[1, 2, 4, 8, 1], [1, 2, 4, 8, 2]])
    mixtures = [jukes_cantor_mixture(), jukes_cantor_mixture()]
    engine = numpy_engine(0, codes, np.arange(1.0, 6.0), mixtures, (3, 2), vw=2)
    decay = np.exp(-4 / 3 * 0.2)
    same, differ = np.log((1 + 3 * decay) / 16), np.log((1 - decay) / 16)
    values = evaluate_edges(engine, [(~0, ~1, 0)], np.array([0.2]))
    np.testing.assert_allclose(values[0], [6 * same, 4 * same + 5 * differ], rtol=1e-14)
