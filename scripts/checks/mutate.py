#!/usr/bin/env python3
"""Break one line at a time and check that a test fails.

Each mutant is applied to a copy of the repository, in which a few fast tests run. The exit status is 1 if a mutant
survives, or if its line is not there exactly once.

Mutants are in `mutants.toml`: for each file what a mutant breaks, the text that stands there, the text in its place,
and the tests.

    scripts/checks/mutate.py                 all mutants
    scripts/checks/mutate.py kernels/ pi     those whose file or description contains one of the words
    scripts/checks/mutate.py --check         only check that every mutant's line is there exactly once; takes no time

Tests run with the interpreter that runs this script. Mutants called "wide" are in code that is compiled only for
vectors of 8 lanes or more: they need a driver for those, such as Intel's from pip. Without one their tests are skipped,
and they count as not run.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
TIMEOUT = 300  # seconds for one mutant; an endless loop counts as caught


@dataclass(frozen=True)
class Mutant:
    """`old` stands in `file` exactly once; `tests` are pytest's arguments, "-k" and its expression last."""

    what: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


def split_tests(text: str) -> tuple[str, ...]:
    """The arguments in "FILE" or "FILE -k EXPRESSION"."""
    file, option, expression = text.partition(" -k ")
    return (file, "-k", expression) if option else (file,)


def read_mutants(path: Path) -> list[Mutant]:
    """The mutants of a table in TOML."""
    with open(path, "rb") as stream:
        files = tomllib.load(stream)
    return [
        Mutant(what, file, old, new, split_tests(tests))
        for file, rows in files.items()
        for what, (old, new, tests) in rows.items()
    ]


MUTANTS = read_mutants(Path(__file__).with_name("mutants.toml"))


def copy_repository(folder: Path) -> None:
    """Copy what the tests need, with the kernels inside the package, where the copy finds them first."""
    ignore = shutil.ignore_patterns("__pycache__")
    for name in ("plltool", "kernels", "tests", "data", "scripts", "docs"):
        shutil.copytree(REPOSITORY / name, folder / name, ignore=ignore)
    shutil.copy(REPOSITORY / "pyproject.toml", folder)
    (folder / "plltool" / "kernels").symlink_to(folder / "kernels")


def run(folder: Path, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=TIMEOUT
    )


def check_import(folder: Path) -> None:
    """The copy is what Python imports there, whatever is installed."""
    code = "import plltool, plltool.kernels; print(plltool.__file__, plltool.kernels.__file__, sep='\\n')"
    found = run(folder, ["-c", code]).stdout.split()
    if len(found) != 2 or not all(Path(path).is_relative_to(folder) for path in found):
        raise SystemExit(f"Python imports {found}, not the copy in {folder}")


def run_tests(folder: Path, tests: tuple[str, ...]) -> tuple[int, str]:
    """pytest's exit status (1: a test failed) and the last lines of its output."""
    options = ["-o", "addopts=", "-x", "-q", "--tb=no", "-p", "no:cacheprovider"]
    try:
        done = run(folder, ["-m", "pytest", *options, *tests])
    except subprocess.TimeoutExpired:
        return 1, "timed out"
    return done.returncode, " | ".join(done.stdout.strip().splitlines()[-2:])


def find_staleness(mutant: Mutant, text: str) -> str:
    """Why a mutant cannot be applied to the `text` of its file; empty if it can."""
    count = text.count(mutant.old)
    return "" if count == 1 else f"STALE: {mutant.old!r} is {count} times in {mutant.file}"


def check_mutants(mutants: list[Mutant]) -> list[str]:
    """What is wrong with mutants as they stand in the repository: their lines, and the files of their tests."""
    problems = []
    for mutant in mutants:
        file = REPOSITORY / mutant.file
        problem = find_staleness(mutant, file.read_text(encoding="utf-8")) if file.exists() else "the file is gone"
        lost = [name for name in mutant.tests if name.endswith(".py") and not (REPOSITORY / name).exists()]
        problems += [
            f"{mutant.file}: {mutant.what}: {found}" for found in (problem, *map("no {}".format, lost)) if found
        ]
    return problems


def try_mutant(mutant: Mutant, folder: Path) -> str:
    """ "caught", or why not. The copy is as before afterwards."""
    file = folder / mutant.file
    original = file.read_text(encoding="utf-8")
    if problem := find_staleness(mutant, original):
        return problem
    file.write_text(original.replace(mutant.old, mutant.new), encoding="utf-8")
    try:
        status, output = run_tests(folder, mutant.tests)
    finally:
        file.write_text(original, encoding="utf-8")
    if status < 0:
        return "caught"  # a crash
    return {0: f"SURVIVED: {output}", 1: "caught"}.get(status, f"NOT RUN: {output}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="only mutants whose file or description contains one of these")
    parser.add_argument("--list", action="store_true", help="only list them")
    parser.add_argument("--check", action="store_true", help="only check that each line is there exactly once")
    parser.add_argument("--no-baseline", action="store_true", help="do not check first that the tests pass unbroken")
    options = parser.parse_args()
    words = options.words or [""]
    chosen = [m for m in MUTANTS if any(word in m.file or word in m.what for word in words)]
    if options.list:
        print("\n".join(f"{m.file}: {m.what}" for m in chosen))
        return 0
    if options.check:
        problems = check_mutants(chosen)
        print("\n".join([*problems, f"{len(chosen)} mutants, {len(problems)} problems"]))
        return 1 if problems else 0
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        copy_repository(folder)
        check_import(folder)
        unusable = set()
        if not options.no_baseline:
            for tests in dict.fromkeys(mutant.tests for mutant in chosen):
                status, output = run_tests(folder, tests)
                if status != 0 or "passed" not in output:
                    unusable.add(tests)
                    print(f"unbroken code fails or skips {' '.join(tests)}: {output}", flush=True)
        for mutant in chosen:
            start = time.perf_counter()
            verdict = "NOT RUN, see above" if mutant.tests in unusable else try_mutant(mutant, folder)
            failed += verdict != "caught"
            print(f"{time.perf_counter() - start:5.1f} s  {mutant.file}: {mutant.what}: {verdict}", flush=True)
    print(f"{len(chosen)} mutants, {failed} problems")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
