"""The same search gives the same bits in every round, whatever the number of threads and processes."""

from dataclasses import replace

import pytest

from plltool.analyses.search.analysis import search
from plltool.tree_search.effort import SearchOptions

SETTINGS = {"model": "GTR+FO+I+G4", "seed": 11, "options": SearchOptions("fast", starts=2, perturbations=2)}


def bits(result):
    """Everything that must not differ: the result, and every round on the way, without times."""
    trace = [
        (event.stage, event.round, event.radius, event.lnl.hex(), event.chosen)
        for event in (replace(event, start=0) for event in result.trace)
    ]
    lnls = [result.lnl.hex(), *(lnl.hex() for lnl in result.start_lnls)]
    return lnls, result.newick, result.model, trace


@pytest.fixture(scope="module")
def on_one_thread(data_dir):
    return search(data_dir / "simulated.fasta", device="cpu", threads=1, workers=1, **SETTINGS)


@pytest.mark.opencl
@pytest.mark.parametrize(("threads", "workers"), [(1, 1), (2, 1), (2, 2)])
def test_on_a_device(data_dir, on_one_thread, threads, workers):
    again = search(data_dir / "simulated.fasta", device="cpu", threads=threads, workers=workers, **SETTINGS)
    assert again.layout == on_one_thread.layout
    assert bits(again) == bits(on_one_thread)


def test_on_numpy(data_dir):
    settings = SETTINGS | {"model": "HKY+F", "options": SearchOptions("fast", starts=1, radii=(1,))}
    runs = [search(data_dir / "hard.fasta", device="numpy", **settings) for _ in range(2)]
    assert bits(runs[0]) == bits(runs[1])
    assert any(event.chosen for event in runs[0].trace)
