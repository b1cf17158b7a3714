"""What docstrings and comments refer to exists: modules, files, and the names in backticks."""

import ast
import importlib
import io
import re
import tokenize
from functools import cache
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
FILES = sorted(path for folder in ("plltool", "scripts", "tests") for path in (REPOSITORY / folder).rglob("*.py"))
MODULES = {
    path.relative_to(REPOSITORY).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")
    for path in FILES
    if path.relative_to(REPOSITORY).parts[0] == "plltool"
}
FULL_NAME = re.compile(r"(?<![\w./-])plltool(?:\.[A-Za-z_]\w*)+(?![\w/]|[.:]\w)")
QUOTED_NAME = re.compile(r"(?<!`)`([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?:\(\))?`(?!`)")
PATH = re.compile(r"(?<![\w./-])(?:\w+/)+[\w-]+\.(?:py|md|sh|cl|h)\b")
FILE_NAME = re.compile(r"\w+\.(?:py|md|sh|cl|h|toml|nwk|json|txt)")
FOLDERS = ("", "plltool", "tests")  # that paths may be relative to, besides that of the file itself


def remarks(path):
    """The docstrings and comments of a file."""
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            yield ast.get_docstring(node) or ""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


@cache
def names_in_code():
    """Every name that occurs in code, and every word of the kernels."""
    kernels = [path.read_text(encoding="utf-8") for path in (REPOSITORY / "kernels").glob("*.[ch]*")]
    names = set(re.findall(r"\w+", " ".join(kernels)))
    for path in FILES:
        for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
            if token.type == tokenize.NAME:
                names.add(token.string)
    return names


def resolves(name):
    """Whether a dotted name is that of a module of plltool or of something in one."""
    module, _, rest = name, "", ""
    while module not in MODULES:
        module, dot, last = module.rpartition(".")
        if not dot:
            return False
        rest = f"{last}.{rest}".rstrip(".")
    found = importlib.import_module(module)
    for part in filter(None, rest.split(".")):
        fields = getattr(found, "__dataclass_fields__", {})
        if not hasattr(found, part) and part not in fields and part not in getattr(found, "__annotations__", {}):
            return False
        found = getattr(found, part, None)
    return True


def is_known(name):
    """Whether a name in backticks may be meant: of a module, its last part or an object in it, or any name in code."""
    if FILE_NAME.fullmatch(name):
        return name.endswith(("nwk", "json", "txt")) or any(REPOSITORY.glob(f"[!.]*/**/{name}"))
    first, _, rest = name.partition(".")
    if not rest:
        return first in names_in_code() or any(module.split(".")[-1] == first for module in MODULES)
    if f"plltool.{first}" in MODULES and any(m.startswith(f"plltool.{first}.{rest.split('.')[0]}") for m in MODULES):
        return resolves(f"plltool.{name}")
    homes = [module for module in MODULES if module.split(".")[-1] == first]
    return any(resolves(f"{module}.{rest}") for module in homes) or set(name.split(".")) <= names_in_code()


def find_lost(path, text):
    """The references of a text in the file `path` to what is not there."""
    folders = [path.parent, *(REPOSITORY / folder for folder in FOLDERS)]
    lost = [name for name in FULL_NAME.findall(text) if not resolves(name)]
    lost += [name for name in QUOTED_NAME.findall(text) if not name.startswith("plltool.") and not is_known(name)]
    return lost + [name for name in PATH.findall(text) if not any((folder / name).exists() for folder in folders)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(REPOSITORY).as_posix())
def test_references(path):
    assert [name for text in remarks(path) for name in find_lost(path, text)] == []


def test_lost_references_are_found():
    lost = ["plltool.gone", "plltool.tree.topology.no_such_name", "splits.no_name", "gone.py", "tree_search/gone.py"]
    here = ["plltool.tree.topology.Tree.unlink", "splits.distances", "optimise.lengths", "tree_search/effort.py"]
    text = " ".join(f"`{name}`" for name in lost + here)
    assert sorted(set(find_lost(REPOSITORY / "plltool" / "errors.py", text))) == sorted(lost)
