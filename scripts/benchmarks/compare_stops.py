"""What the stop rules cost in lnL and save in time: `default` searches with each, from the same start trees.

    python scripts/benchmarks/compare_stops.py DATA_DIR REFERENCE_DIR [--set NAME ...] [--program RULE ...] [--starts N]
        [--output FILE.json]

A program is a rule, as `--stop` takes it: epsilon, rf or kh. DATA_DIR holds NAME.phy or NAME.phy.gz. REFERENCE_DIR is
not read. Start trees are those of seeds 1 to N. Every search has one thread; the seconds are those of the processor,
user and system, of the whole process.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

from rivals import comparison_parser, plain_alignment, report_row, run

from plltool.constants import STOP_RULES

SETS = ("primates", "dna59", "dna101", "dna125", "aa140", "dna150", "dna218", "dna354", "dna500", "dna1288")


def search(alignment: Path, rule: str, seed: int, folder: Path) -> dict[str, Any]:
    """CPU seconds, lnL and the number of perturbations of one search."""
    command = ["plltool", "search", alignment, "--stop", rule, "--seed", seed, "--threads", 1]
    spent = run([*command, "--prefix", folder / "run", "--redo", "--quiet"])
    record = json.loads((folder / "run.json").read_text())
    perturbations = sum(event["stage"] == "perturb" for event in record["trace"])
    found = {"device": record["device"], "lnl": record["lnl"], "perturbations": perturbations}
    return {**found, "cpu_seconds": spent.cpu_seconds}


def main() -> None:
    parser = comparison_parser(__doc__, SETS, STOP_RULES)
    parser.add_argument("--starts", type=int, default=3, help="start trees of each set; default: 3")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for data_set in options.set or SETS:
            alignment = plain_alignment(options.data, data_set, folder)
            for seed in range(1, options.starts + 1):
                for rule in options.program or STOP_RULES:
                    found = search(alignment, rule, seed, folder)
                    report_row(rows, {"set": data_set, "rule": rule, "seed": seed, **found}, options.output)


if __name__ == "__main__":
    main()
