"""Who may import whom: a package imports those before it, never those after it (CONTRIBUTING.md)."""

import ast
from pathlib import Path

import pytest

import plltool

PACKAGE = Path(plltool.__file__).parent
BASE = {"errors", "constants", "hardware", "children"}
DATA = BASE | {"alignment", "tree", "model", "statistics"}
SEARCH = DATA | {"engine", "optimise", "tree_search"}
MAY_IMPORT = {
    "plltool": {"constants"},
    **dict.fromkeys(BASE, BASE),
    **dict.fromkeys(("alignment", "tree", "model", "statistics"), DATA),
    "io": DATA | {"io"},
    "engine": DATA | {"engine"},
    "optimise": DATA | {"engine", "optimise"},
    "tree_search": SEARCH,
    "run": SEARCH | {"io", "run"},
    "analyses": SEARCH | {"io", "run", "analyses"},
    "cli": {"plltool", "cli", "errors", "constants"},
}
THIRD_PARTY_HOMES = {
    "pyopencl": ("engine/opencl/",),
    "click": ("cli/",),
    "dendropy": ("io/", "run/", "analyses/"),
    "lazy_loader": ("__init__.py",),
}
MODULES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))


def layer_of(parts):
    """The layer of a module, given the parts of its name below the package; "plltool" for the namespace itself."""
    return parts[0] if parts else "plltool"


def imported_names(path):
    """Dotted names of everything that a module imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            if node.module == "plltool":
                for alias in node.names:
                    is_module = (PACKAGE / alias.name).is_dir() or (PACKAGE / f"{alias.name}.py").exists()
                    yield f"plltool.{alias.name}" if is_module else "plltool"
            else:
                yield node.module


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_imports(module):
    own = layer_of([part for part in module.with_suffix("").parts if part != "__init__"])
    for name in imported_names(PACKAGE / module):
        top, *rest = name.split(".")
        if top == "plltool":
            assert layer_of(rest) in MAY_IMPORT[own], f"{module} imports {name}"
        homes = THIRD_PARTY_HOMES.get(top)
        assert homes is None or module.as_posix().startswith(homes), f"{module} imports {name}"


def test_every_layer_has_a_rule():
    assert {layer_of(path.with_suffix("").parts) for path in MODULES} - {"__init__"} == MAY_IMPORT.keys() - {"plltool"}
