"""How long plltool takes to start: to import, to print its help, and to end the first round of a search.

    python scripts/benchmarks/measure_startup.py [NAME=PYTHON ...] [--repetitions N] [--output FILE.json]

Each PYTHON is an interpreter of an environment with plltool, for example one before and one after a change; by default
the one that runs this script. They take turns. A first run of each, which fills the caches of bytecode and kernels, is
not counted. Times are seconds from the start of the process:

- python: an interpreter that does nothing
- import: ``import plltool``
- help: ``plltool search --help``
- first round: ``plltool search data/primates.phy`` up to the first "progress" of ``--json-progress``
- first round, CPU: the same in processor time, which depends less on what else the machine does
- search: the same search as a whole
"""

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rivals import cpu_seconds, make_parser, save, today

ALIGNMENT = Path(__file__).resolve().parents[2] / "data" / "primates.phy"
COMMAND = "from plltool.cli import main; main(prog_name='plltool')"
WHERE = "import plltool; print(plltool.__file__)"


def run(python: str, variables: dict[str, str], code: str, *arguments: str) -> float:
    """Seconds of one process."""
    began = time.perf_counter()
    subprocess.run([python, "-P", "-c", code, *arguments], env=variables, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def search(python: str, variables: dict[str, str], folder: str) -> dict[str, float]:
    """Seconds to the end of the first round, processor seconds to there, and seconds of the whole search."""
    options = ["--prefix", f"{folder}/run", "--redo", "--json-progress", "-"]
    command = [python, "-P", "-c", COMMAND, "search", str(ALIGNMENT), *options]
    began = time.perf_counter()
    with subprocess.Popen(
        command, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        while json.loads(process.stderr.readline())["event"] != "progress":
            pass
        first, cpu = time.perf_counter() - began, cpu_seconds(process.pid)
        process.stderr.read()
    return {"first round": first, "first round, CPU": cpu, "search": time.perf_counter() - began}


def measure(python: str, variables: dict[str, str]) -> dict[str, float]:
    """One run of everything."""
    with tempfile.TemporaryDirectory() as folder:
        return {
            "python": run(python, variables, "pass"),
            "import": run(python, variables, "import plltool"),
            "help": run(python, variables, COMMAND, "search", "--help"),
            **search(python, variables, folder),
        }


def find_commit(python: str) -> str | None:
    """The commit of the plltool that an interpreter imports, if that is a checkout."""
    done = subprocess.run([python, "-P", "-c", WHERE], capture_output=True, text=True, check=True)
    folder = str(Path(done.stdout.strip()).parent)
    commit = subprocess.run(["git", "-C", folder, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    return commit.stdout.strip() or None


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("installed", nargs="*", metavar="NAME=PYTHON", default=[f"plltool={sys.executable}"])
    parser.add_argument("--repetitions", type=int, default=7)
    asked = parser.parse_args()
    pythons = dict(entry.split("=", 1) for entry in asked.installed)
    samples: dict[str, list[dict[str, float]]] = {name: [] for name in pythons}
    with tempfile.TemporaryDirectory() as bytecode:
        variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        variables["PYTHONPYCACHEPREFIX"] = bytecode
        for python in pythons.values():
            measure(python, variables)
        for _ in range(asked.repetitions):
            for name, python in pythons.items():
                samples[name].append(measure(python, variables))
    rows: dict[str, dict[str, Any]] = {}
    for name, runs in samples.items():
        rows[name] = {"commit": find_commit(pythons[name])}
        for what in runs[0]:
            values = [sample[what] for sample in runs]
            rows[name][what] = {"median": round(statistics.median(values), 3), "least": round(min(values), 3)}
    print(f"{'':26}{'median':>10}{'least':>10}  seconds")
    for name, row in rows.items():
        for what in samples[name][0]:
            print(f"{name + ' ' + what:26}{row[what]['median']:10.3f}{row[what]['least']:10.3f}")
    machine = f"{len(os.sched_getaffinity(0))} cores, {platform.platform()}"
    facts = {"benchmark": "start-up", "date": today(), "machine": machine, "python_version": platform.python_version()}
    save(asked.output, facts | {"repetitions": asked.repetitions, "seconds": rows})


if __name__ == "__main__":
    main()
