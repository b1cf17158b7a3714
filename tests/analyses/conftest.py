"""A small alignment for the tests of the Python interface, and devices that fail."""

import pytest
from interruptions import lost
from small_alignments import hard_taxa, primates


@pytest.fixture(scope="session")
def sequences(data_dir):
    """Name to sequence: 7 primates, 300 sites."""
    return primates(data_dir, 7, 300)


@pytest.fixture(scope="session")
def few(data_dir):
    """Name to sequence: 8 taxa, 150 sites."""
    return hard_taxa(data_dir, 8, 150)


@pytest.fixture
def always(monkeypatch):
    """Reports and checkpoints after every sample."""
    for name in ("REPORT_SECONDS", "SAVE_SECONDS", "constants.CHECKPOINT_PATIENCE"):
        monkeypatch.setattr(f"plltool.analyses.sampling.analysis.{name}", 0.0)


@pytest.fixture
def failing(monkeypatch):
    """Let OpenCL devices fail: ``failing(n)`` raises an error at every launch from the n-th on.

    It returns a list with the number of launches, and may be called again, such as for no failures.
    """
    cl = pytest.importorskip("pyopencl")
    from plltool.engine.opencl.engine import OpenCLEngine

    launch = OpenCLEngine._launch

    def fail(first, error=lost, last=10**9):
        launches = [0]

        def counted(self, *arguments, **named):
            launches[0] += 1
            if first <= launches[0] <= last:
                raise error(cl)
            return launch(self, *arguments, **named)

        monkeypatch.setattr(OpenCLEngine, "_launch", counted)
        return launches

    return fail
