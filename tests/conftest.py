"""Where the tests find their data."""

import os
from pathlib import Path

import pytest

_REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The small inputs that come with the repository."""
    return _REPOSITORY / "data"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of larger alignments and reference results: $PLLTOOL_SHARED, or `shared` beside the repository."""
    folder = Path(os.environ.get("PLLTOOL_SHARED", _REPOSITORY.parent / "shared"))
    if not folder.is_dir():
        pytest.skip(f"no folder {folder}; set PLLTOOL_SHARED to where the larger alignments are")
    return folder
