#!/usr/bin/env python3
"""Prints the layout of the package: modules per package, long modules, imports against the order, import cycles.

The order is that of the drawing in CONTRIBUTING.md; `tests/test_layers.py` holds the package to it. The exit status is
1 if an import goes against the order or modules import each other in a circle.
"""

import argparse
import ast
import re
import sys
from collections.abc import Iterator, Mapping, Set
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "plltool"
LONG = 400  # lines from which on a module is listed


def read_drawing(text: str) -> dict[str, set[str]]:
    """Which rooms each one may import, from the lines of a drawing: those on which it stands, and all below them.

    "plltool" is the public namespace itself, in which names are imported when they are first used.
    """
    may_import: dict[str, set[str]] = {"plltool": {"constants"}, "__main__": {"cli"}}
    for line in reversed(re.findall(r"^    ([a-z_ ]+[|=][a-z_ ]+)$", text, re.MULTILINE)):
        rooms, stands_on = (side.split() for side in re.split("[|=]", line))
        if rooms == ["ground"]:
            may_import |= {name: set(stands_on) for name in (*stands_on, "ground")}
            continue
        for room in rooms:
            below = set() if "plltool" in stands_on else set().union(*(may_import[name] for name in stands_on))
            may_import[room] = {room, *stands_on} | below
    del may_import["ground"]
    return {room: below - {"ground"} for room, below in may_import.items()}


MAY_IMPORT = read_drawing((PACKAGE.parent / "CONTRIBUTING.md").read_text(encoding="utf-8"))
CONVENIENCES = {  # methods of the public `Tree` whose work is done above, imported when they are called
    "plltool.tree.topology": {"plltool.io.bridge", "plltool.reports.tree_drawing"}
}
THIRD_PARTY_HOMES = {  # where other packages may be imported
    "pyopencl": ("engine/opencl/",),
    "click": ("cli/",),
    "mpi4py": ("processes/ranks.py",),
    "dendropy": ("io/", "tree/topology.py"),
    "Bio": ("io/bridge.py", "tree/topology.py"),
    "matplotlib": ("reports/tree_drawing.py",),
    "pandas": ("reports/shown.py",),
    "tqdm": ("reports/shown.py",),
    "lazy_loader": ("__init__.py",),
}


def find_modules() -> dict[str, Path]:
    """The files of all modules by their dotted names."""
    modules = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        modules[".".join(part for part in parts if part != "__init__")] = path
    return modules


MODULES = find_modules()


def layer_of(module: str) -> str:
    """The top module or package that a module of plltool belongs to."""
    return ".".join(module.split(".")[1:2]) or "plltool"


def find_imports(path: Path, at_run_time: bool = False) -> Iterator[str]:
    """Dotted names of all modules that a file imports, in functions too; `at_run_time`: not those for type checkers."""
    waiting: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while waiting:
        node = waiting.pop()
        if at_run_time and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        waiting += ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise ValueError(f"{path}: line {node.lineno}: relative import")
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                yield submodule if submodule in MODULES else str(node.module)


def find_violations(module: str) -> list[str]:
    """The imports of a module that go against the order."""
    path = MODULES[module]
    violations = []
    for name in find_imports(path):
        top = name.split(".")[0]
        if name in CONVENIENCES.get(module, ()):
            continue
        if top == "plltool" and layer_of(name) not in MAY_IMPORT[layer_of(module)]:
            violations.append(f"{module} imports {name}")
        if not path.relative_to(PACKAGE).as_posix().startswith(THIRD_PARTY_HOMES.get(top, "")):
            violations.append(f"{module} imports {name}")
    return violations


def map_imports() -> dict[str, set[str]]:
    """The modules of plltool that each of them imports when the program runs."""
    return {
        module: (set(find_imports(path, at_run_time=True)) & MODULES.keys()) - CONVENIENCES.get(module, set())
        for module, path in MODULES.items()
    }


def find_cycles(imports: Mapping[str, Set[str]]) -> list[list[str]]:
    """Groups of modules that import each other in a circle."""
    reachable = {}
    for module in imports:
        reached: set[str] = set()
        waiting = [module]
        while waiting:
            onward = imports[waiting.pop()] - reached
            reached |= onward
            waiting += onward
        reachable[module] = reached
    groups = {tuple(sorted(other for other in reachable[m] if m in reachable[other])) for m in imports}
    return [list(group) for group in sorted(groups) if group]


def main() -> int:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    lines = {module: len(path.read_text(encoding="utf-8").splitlines()) for module, path in MODULES.items()}
    packages: dict[str, list[int]] = {}
    for module, path in MODULES.items():
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        packages.setdefault(package, []).append(lines[module])
    width = max(map(len, MODULES))
    for package, sizes in packages.items():
        print(f"{package:{width}} {len(sizes):3} modules {sum(sizes):6} lines")
    print(f"\nmodules of {LONG} lines or more:")
    for module, size in sorted(lines.items(), key=lambda item: -item[1]):
        if size >= LONG:
            print(f"{module:{width}} {size:18} lines")
    violations = [violation for module in MODULES for violation in find_violations(module)]
    cycles = [" <-> ".join(cycle) for cycle in find_cycles(map_imports())]
    print("\nimports against the order:", "".join(f"\n  {line}" for line in violations) or "none")
    print("import cycles:", "".join(f"\n  {line}" for line in cycles) or "none")
    return 1 if violations or cycles else 0


if __name__ == "__main__":
    sys.exit(main())
