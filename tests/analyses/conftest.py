"""A small alignment for the tests of the Python interface."""

import pytest


@pytest.fixture(scope="session")
def sequences(data_dir):
    """Name to sequence: 7 primates, 300 sites."""
    rows = [line.split() for line in (data_dir / "primates.phy").read_text().splitlines()[1:8]]
    return {name: sequence[:300] for name, sequence in rows}
