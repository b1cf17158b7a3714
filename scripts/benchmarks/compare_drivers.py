"""Compare the CPU time of whole searches on several OpenCL drivers of this machine.

    python scripts/benchmarks/compare_drivers.py DATA_DIR [--set NAME ...] [--driver NAME ...] [--rounds N]
        [--output FILE.json]

Every driver searches DATA_DIR/NAME.phy in turn, round after round, with one thread and the same seed: a default search
under GTR+F+G4 from a parsimony tree. A first search of each, which compiles the kernels, is not counted. Seconds are
user and system time of the whole process, which other work on the machine disturbs less than wall time. The ratio of a
driver is the median over the rounds of its seconds over those of the first driver in the same round.
"""

import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from rivals import make_parser, run, save, today


def time_search(alignment: Path, driver: str, folder: Path) -> dict[str, float]:
    """CPU seconds and lnL of one search."""
    prefix = folder / "search"
    options = ["--model", "GTR+F+G4", "--seed", "1", "--threads", "1", "--device", driver]
    plltool = Path(sys.executable).with_name("plltool")
    command = [plltool, "search", alignment, *options, "--prefix", prefix, "--redo", "--quiet"]
    spent = run(command)
    return {"cpu_seconds": spent.cpu_seconds, "lnl": json.loads(prefix.with_suffix(".json").read_text())["lnl"]}


def compare_set(alignment: Path, drivers: list[str], rounds: int) -> dict[str, Any]:
    """The searches of every driver, and the ratios to the first one."""
    runs: dict[str, list[dict[str, float]]] = {driver: [] for driver in drivers}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds + 1):
            for driver in drivers:
                runs[driver].append(time_search(alignment, driver, Path(folder)))
                print(alignment.stem, driver, runs[driver][-1], flush=True)
    counted = {driver: found[1:] for driver, found in runs.items()}
    ratios = {
        driver: [
            run["cpu_seconds"] / first["cpu_seconds"] for run, first in zip(found, counted[drivers[0]], strict=True)
        ]
        for driver, found in counted.items()
    }
    return {
        "searches": counted,
        "ratios": {driver: round(statistics.median(found), 2) for driver, found in ratios.items()},
    }


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("data", type=Path, metavar="DATA_DIR")
    parser.add_argument("--set", action="append", dest="sets", metavar="NAME")
    parser.add_argument("--driver", action="append", dest="drivers", metavar="NAME")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    arguments = parser.parse_args()
    drivers = arguments.drivers or ["intel", "pocl"]
    names = arguments.sets or ["dna101", "dna150", "dna354"]
    sets = {name: compare_set(arguments.data / f"{name}.phy", drivers, arguments.rounds) for name in names}
    figures = {"date": today(), "threads": 1, "rounds": arguments.rounds, "sets": sets}
    save(arguments.output, figures)
    print({name: found["ratios"] for name, found in sets.items()})


if __name__ == "__main__":
    main()
