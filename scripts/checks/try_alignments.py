"""Run a fast search and what follows it on all alignments of a folder: none may fail, or fall below the search.

    python scripts/checks/try_alignments.py FOLDER|FILE ... [--commands check select-model alrt] [--output FILE.json]

Each alignment is searched with the default model of its kind and evaluated on the tree that was found; then come the
other commands. A line tells lnL, processor seconds, and what failed. The exit status is 1 if anything failed, or if the
evaluation ends more than 0.01 below the search.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import plltool

MORE = ("check", "select-model", "alrt")
TOLERANCE = 0.01  # lnL, the precision of an optimisation


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What `work` returns, or the error that it raises, and the processor seconds that it takes."""
    began = time.process_time()
    try:
        found = work()
    except plltool.PlltoolError as error:
        found = error
    return found, round(time.process_time() - began, 2)


def try_one(path: Path, commands: list[str]) -> dict[str, Any]:
    """Results, seconds and failures of one alignment."""
    row: dict[str, Any] = {"seconds": {}, "failures": {}}

    def attempt(name: str, work: Callable[[], Any]) -> Any:
        found, row["seconds"][name] = timed(work)
        if isinstance(found, Exception):
            row["failures"][name] = str(found)
            return None
        return found

    search = attempt("search", lambda: plltool.search(path, effort="fast", threads=1))
    if search is None:
        return row
    row |= {"taxa": search.tree.n_taxa, "search": round(search.lnl, 4)}
    again = attempt("evaluate", lambda: plltool.evaluate(path, search.tree, threads=1))
    if again is not None:
        row["evaluate"] = round(again.lnl, 4)
        if again.lnl < search.lnl - TOLERANCE:
            row["failures"]["evaluate"] = f"ends {search.lnl - again.lnl:.3f} below the search"
    calls: dict[str, Callable[[], Any]] = {
        "check": lambda: plltool.check(path, threads=1),
        "select-model": lambda: plltool.select_model(path, search.tree, free_rates=False, threads=1),
        "alrt": lambda: plltool.alrt(path, search.tree, threads=1, replicates=100),
    }
    for name in commands:
        attempt(name, calls[name])
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", nargs="+", type=Path)
    parser.add_argument("--commands", nargs="*", default=list(MORE), choices=MORE)
    parser.add_argument("--output", type=Path)
    asked = parser.parse_args()
    endings = (".fasta", ".fasta.gz", ".phy", ".phy.gz", ".nex", ".nex.gz")
    files = [path for place in asked.places for path in (sorted(place.iterdir()) if place.is_dir() else [place])]
    rows: dict[str, Any] = {}
    for path in files:
        if not path.name.endswith(endings):
            continue
        rows[path.name] = row = try_one(path, asked.commands)
        print(path.name, row.get("search"), row.get("evaluate"), row["seconds"], row["failures"] or "", flush=True)
        record = {"date": datetime.now(UTC).date().isoformat(), "alignments": rows}
        if asked.output:
            asked.output.write_text(json.dumps(record, indent=1) + "\n")
    return int(any(row["failures"] for row in rows.values()))


if __name__ == "__main__":
    sys.exit(main())
