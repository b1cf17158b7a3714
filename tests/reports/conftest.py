"""The files of a search with supports and tests of trees."""

import pytest
from page_records import TREE, record_of_search, record_of_supports, record_of_tests, write


@pytest.fixture
def prefix(tmp_path):
    """The prefix of a search with supports and tests of trees."""
    write(tmp_path / "run.json", record_of_search())
    write(tmp_path / "run.support.json", record_of_supports())
    write(tmp_path / "run.test.json", record_of_tests())
    (tmp_path / "run.bootstraps.nwk").write_text((TREE.format("", "") + "\n") * 50)
    return tmp_path / "run"
