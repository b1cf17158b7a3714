#!/usr/bin/env python3
"""Repeat the experiments of the papers that plltool implements: the tables of docs/experiments.md.

    python scripts/experiments.py [EXPERIMENT ...] [--device auto] [--threads N] --output FILE.json

Experiments, each a number of runs of `plltool bench`:
- sizes: 15 taxa, 1,024 to 262,144 patterns (Izquierdo-Carrasco et al. 2013, table I)
- widths: the same with 2, 4 and 8 patterns side by side; for devices of the CPU
- states: 64 taxa, 1,000 patterns of 4, 20, 61 and 122 states, in double and single precision (Ayres et al. 2012,
  figure 1)
- columns: 62 taxa, 1 to 3,600 patterns of codons (Suchard & Rambaut 2009, figure 4)
- taxa: 4 to 62 taxa, 200 patterns of codons (the same)

What FILE.json holds of other experiments is kept. `time_gradients.py` makes the table of gradients.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

SIZES = [2**power for power in range(10, 19)]
STATES = (4, 20, 61, 122)
CODON_COLUMNS = (1, 10, 100, 500, 1000, 3600)
CODON_TAXA = (4, 8, 16, 32, 62)
KEPT = ("item", "states", "precision", "taxa", "patterns", "seconds", "pattern_nodes_per_second", "flops")

EXPERIMENTS = {  # options of each run of `plltool bench`
    "sizes": [["--shape", f"15x{patterns}"] for patterns in SIZES],
    "widths": [["--shape", f"15x{patterns}", "--vw", vw] for patterns in SIZES for vw in ("2", "4", "8")],
    "states": [
        ["--states", str(states), "--shape", "64x1000", "--precision", precision]
        for states in STATES
        for precision in ("double", "single")
    ],
    "columns": [["--states", "61", "--shape", f"62x{patterns}"] for patterns in CODON_COLUMNS],
    "taxa": [["--states", "61", "--shape", f"{taxa}x200"] for taxa in CODON_TAXA],
}


def bench(options: Sequence[str]) -> dict[str, Any]:
    """The record of one run of `plltool bench`."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "bench.json"
        code = "from plltool.cli import main; main(prog_name='plltool')"  # gpu_day.sh does not install plltool
        command = [sys.executable, "-c", code, "bench", *options, "--output", str(file), "--quiet"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        record: dict[str, Any] = json.loads(file.read_text())
    return record


def rows_of(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a run, with the width of vectors, and the device."""
    device = f"{record['device']}, {record['driver']}"
    return [
        {**{key: row[key] for key in KEPT}, "vw": row["layout"]["vw"], "device": device} for row in record["rows"]
    ]


def run_experiment(name: str, options: Sequence[str], most: int | None = None) -> Iterator[dict[str, Any]]:
    """The rows of an experiment, or of its first `most` runs."""
    for own in EXPERIMENTS[name][:most]:
        yield from rows_of(bench([*own, *options]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiments", nargs="*", metavar="EXPERIMENT", help="all by default")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    unknown = sorted(set(options.experiments) - set(EXPERIMENTS))
    if unknown:
        parser.error(f"found {', '.join(unknown)}, expected some of: {', '.join(EXPERIMENTS)}")
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    figures: dict[str, Any] = json.loads(options.output.read_text()) if options.output.exists() else {}
    common = ["--device", options.device, "--repetitions", str(options.repetitions)]
    common += ["--threads", str(options.threads)] if options.threads else []
    for name in options.experiments or EXPERIMENTS:
        figures |= {"date": datetime.now(UTC).date().isoformat(), "commit": commit, "command": sys.argv[1:], name: []}
        for row in run_experiment(name, common):
            figures[name].append(row)
            options.output.write_text(json.dumps(figures, indent=1) + "\n")
            print(name, row["item"], row["taxa"], row["patterns"], f"{row['seconds']:.3g} s", flush=True)


if __name__ == "__main__":
    main()
