"""Who may import whom: `scripts/checks/layout.py` reads it from the drawing in CONTRIBUTING.md."""

from collections import Counter
from pathlib import Path

import layout
import pytest


@pytest.mark.parametrize("module", layout.MODULES)
def test_imports(module):
    assert not layout.find_violations(module)


def test_imports_against_the_order_are_found(tmp_path, monkeypatch):
    path = layout.PACKAGE / "tree" / "new.py"
    text = "import numpy, plltool.alignment.cells\ndef late():\n    import click\n    from plltool.engine import base\n"
    monkeypatch.setitem(layout.MODULES, "plltool.tree.new", path)
    monkeypatch.setattr(type(path), "read_text", lambda *_, **__: text)
    expected = {"plltool.tree.new imports click", "plltool.tree.new imports plltool.engine.base"}
    assert set(layout.find_violations("plltool.tree.new")) == expected


def test_no_modules_import_each_other():
    assert not layout.find_cycles(layout.map_imports())


def test_cycles_are_found():
    assert layout.find_cycles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"d", "a"}}) == [["b", "c"], ["d"]]


def test_every_layer_has_a_rule():
    assert set(map(layout.layer_of, layout.MODULES)) == layout.MAY_IMPORT.keys()


def test_no_two_test_modules_have_one_name():
    """pytest imports test modules by their bare names, so that it could collect only one of two."""
    names = Counter(path.name for path in Path(__file__).parent.rglob("test_*.py"))
    assert not [name for name, count in names.items() if count > 1]


def test_a_drawing():
    text = "    roof | left\n\n    left right | base\n    base | ground\n    ground = a b\nnot | this\n"
    ground, names = {"a", "b"}, layout.read_drawing(text)
    assert names["roof"] == {"roof", "left", "base"} | ground
    assert names["right"] == {"right", "base"} | ground
    assert names["a"] == ground
    assert set(names) == {"plltool", "__main__", "roof", "left", "right", "base"} | ground
