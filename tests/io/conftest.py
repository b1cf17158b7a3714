"""Files that tests of readers write."""

import pytest


@pytest.fixture
def write(tmp_path):
    """A function that writes text or bytes to a file of the name given, and returns its path as text."""

    def write(content, name="x"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return write
