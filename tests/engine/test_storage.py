"""Storage for CLAs: what is cut how, and how many slots a task gets."""

import numpy as np
import pytest

from plltool.engine.layout import Layout
from plltool.engine.storage import MAX_SCRATCH_BYTES, Slots, plan_storage, tile_bytes
from plltool.errors import DeviceError
from plltool.run.memory import search_slots

PARTS = [(1,), (1000,), (37, 5, 900), (3,) * 40 + (700,)]


def layout_of(parts, max_groups=6):
    return Layout(4, 2, 5, parts, vw=4, tile_blocks=2, max_groups=max_groups)


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("max_groups", [1, 6, 1000])
@pytest.mark.parametrize("capacity", [1, 2, 7, 45, 10_000])
@pytest.mark.parametrize("work_groups", [0, 1, 5])
def test_runs_take_every_tile_once_and_each_group_in_order(parts, max_groups, capacity, work_groups):
    layout = layout_of(parts, max_groups)
    storage = plan_storage(layout, 3, capacity * tile_bytes(layout, 3), work_groups=work_groups)
    assert storage.shared == (0 < work_groups <= capacity < layout.n_tiles)
    assert storage.resident == (capacity >= layout.n_tiles)
    assert (storage.resident or storage.shared) == (len(storage.runs) == 1)
    seen = {group: [] for group in range(len(layout.groups))}
    for run in storage.runs:
        group, first, count, part, place, begins = run.T
        assert count.min() > 0
        if storage.shared:
            assert storage.buffer_tiles[0] == work_groups
        else:
            assert count.sum() <= storage.buffer_tiles[0] <= capacity
            assert place.tolist() == (np.cumsum(count) - count).tolist()
        assert len(set(group.tolist())) == len(group)
        assert np.array_equal(part, layout.groups[group, 2])
        assert np.array_equal(begins, first == layout.groups[group, 0])
        for at, start, n in zip(group.tolist(), first.tolist(), count.tolist(), strict=True):
            seen[at] += range(start, start + n)
    for group, (first, count, _) in enumerate(layout.groups.tolist()):
        assert seen[group] == list(range(first, first + count))
    assert len(storage.buffer_tiles) == 1


def test_tiles_taken_one_after_another_share_slots():
    """125 tiles in 6 groups: 4 work-groups need room for 4 tiles."""
    layout = layout_of((1000,))
    tile = tile_bytes(layout, 3)
    shared = plan_storage(layout, 3, 100 * tile, work_groups=4)
    assert (len(shared.runs), shared.buffer_tiles, shared.n_bytes(layout)) == (1, (4,), 4 * tile)
    short = plan_storage(layout, 3, 4 * tile - 1, work_groups=4)
    assert (len(short.runs[0]), short.buffer_tiles, short.shared) == (3, (3,), False)


def test_a_run_takes_tiles_of_all_groups():
    layout = layout_of((1000,))  # 125 tiles in 6 groups
    storage = plan_storage(layout, 3, 13 * tile_bytes(layout, 3))
    assert [len(run) for run in storage.runs[:5]] == [6] * 5
    assert set(storage.runs[0][:, 2].tolist()) == {2}


@pytest.mark.parametrize("tiles", [1, 5, 60])
def test_buffers_are_bounded_by_the_largest_allocation(tiles):
    layout = layout_of((1000,))
    clas = 3 * layout.tile_blocks * layout.block_values * 8
    storage = plan_storage(layout, 3, max_allocation=tiles * clas + clas - 1)
    assert storage.resident
    assert sum(storage.buffer_tiles) == layout.n_tiles
    assert max(storage.buffer_tiles) <= tiles
    assert storage.n_bytes(layout) == 3 * layout.slot_bytes


@pytest.mark.parametrize(
    ("limits", "what"), [({"memory": 1600}, "memory"), ({"max_allocation": 1000}, "largest buffer of the device")]
)
def test_less_than_a_tile_is_refused(limits, what):
    """3 CLAs of 8 patterns, 2 components of 4 states in double; with counts of 4 bytes where those are counted, too."""
    needed = 3 * 8 * 2 * (4 * 8 + (4 if "memory" in limits else 0))
    (limit,) = limits.values()
    with pytest.raises(DeviceError, match=f"^{what}: found {limit} bytes, expected at least {needed} bytes: 5 taxa"):
        plan_storage(layout_of((1000,)), 3, **limits)


def test_slots():
    layout = layout_of((1000,))
    one, tile = layout.slot_bytes, tile_bytes(layout, 1)
    slots = Slots(10, 5, 7)
    assert slots.choose(layout, 100 * one) == 15
    assert slots.choose(layout, 12 * one) == 12
    assert slots.choose(layout, 10 * one) == 10
    assert slots.choose(layout, 10 * one - 1) == 17  # of the tiles that fit
    assert slots.choose(layout, 17 * tile - 1) == 16
    assert slots.choose(layout, 9 * tile) == 10
    large = layout_of((40_000_000,))
    assert MAX_SCRATCH_BYTES // large.slot_bytes == 0
    assert slots.choose(large, 100 * large.slot_bytes) == 10


@pytest.mark.parametrize(("n_taxa", "expected"), [(100, 3 * 98), (1000, 1024), (40_000, 3 * 39_998 // 4)])
def test_insertions_of_a_launch_that_makes_all_clas_of_the_tree(n_taxa, expected):
    """At most as many as the directed CLAs, 3 (n - 2); at least 1,024, and of many taxa a quarter."""
    slots = search_slots(n_taxa)
    assert slots.least + slots.streamed_extra == 3 * (n_taxa - 2) + expected
