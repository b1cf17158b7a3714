"""Who may import whom: the right side imports the left, never the reverse (DESIGN.md, section 3)."""

import ast
from pathlib import Path

import pytest

import plltool

PACKAGE = Path(plltool.__file__).parent
BASE = {"plltool", "errors", "constants", "hardware", "workers"}
DATA = BASE | {"alignment", "tree", "model", "statistics"}
API = {"api", "bench", "climbers", "comparison", "live", "results", "resume", "session"}
API |= {"bootstrap", "replicates", "supports", "treesets", "ultrafast"}
API |= {"ancestral", "branch_support", "evaluation", "reports", "simulation", "topology_tests"}
MAY_IMPORT = {
    **dict.fromkeys(BASE, BASE),
    **dict.fromkeys(("alignment", "tree", "model", "statistics"), DATA),
    "io": DATA | {"io"},
    "engine": DATA | {"engine"},
    "optimise": DATA | {"engine", "optimise"},
    "search": DATA | {"engine", "optimise", "search"},
    **dict.fromkeys(API, DATA | {"io", "engine", "optimise", "search"} | API),
    "cli": DATA | {"io", "engine", "optimise", "search", "cli"} | API,
}
API_FILES = tuple(f"{name}.py" for name in sorted(API))
THIRD_PARTY_HOMES = {"pyopencl": ("engine/opencl/",), "click": ("cli/",), "dendropy": ("io/", *API_FILES)}
MODULES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))


def layer_of(parts):
    """The layer of a module, given the parts of its name below the package."""
    return parts[0] if parts else "plltool"


def imported_names(path):
    """Dotted names of everything that a module imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            if node.module == "plltool":
                yield from (f"plltool.{alias.name}" for alias in node.names if not alias.name.startswith("__"))
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


def test_the_test_sees_all_layers():
    assert {layer_of(path.with_suffix("").parts) for path in MODULES} - {"__init__"} == MAY_IMPORT.keys() - {"plltool"}
