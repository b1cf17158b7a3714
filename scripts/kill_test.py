"""Kill searches at random moments, with SIGKILL, and check that they end with the same bits after they are resumed.

    python scripts/kill_test.py ALIGNMENT [--kills 20] [--seed 1] -- OPTIONS OF plltool search

The first run is not killed. Every other run must end with the same tree, supports (if OPTIONS ask for some), lnL and
lnL of the start trees, to the last bit. Every second time only the process itself is killed, not its child processes.
The exit status is 1 if a run ends differently or leaves a checkpoint behind.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

KEYS = ("lnl", "tree", "start_lnls", "model")
RUN = "from plltool.cli import main; main(prog_name='plltool')"
DEFAULT_OPTIONS = ["--starts", "2", "--perturbations", "6", "--threads", "1"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("alignment", type=Path)
    parser.add_argument("--kills", type=int, default=20, help="number of runs, each of which is killed once")
    parser.add_argument("--seed", type=int, default=1, help="seed of the moments")
    at = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    options = sys.argv[at + 1 :] or DEFAULT_OPTIONS
    given = parser.parse_args(sys.argv[1:at])
    rng = random.Random(given.seed)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", RUN, "search", str(given.alignment), "--quiet", *options]
        began = time.monotonic()
        expected = run_to_end(command, Path(folder) / "whole")
        seconds = time.monotonic() - began
        print(f"uninterrupted: lnL {expected[0]['lnl']!r}, {seconds:.1f} s")
        failures = 0
        for number in range(given.kills):
            prefix, saved = Path(folder) / f"killed-{number}", None
            while saved is None:
                moment = rng.uniform(0.0, seconds)
                saved = kill(command, prefix, moment, group=number % 2 == 0)
                seconds = moment if saved is None else seconds
            began = time.monotonic()
            same = run_to_end(command, prefix) == expected
            left = any(prefix.parent.glob(prefix.name + ".*checkpoint"))
            failures += not same or left
            verdict = "the same bits" if same else "DIFFERENT"
            print(
                f"killed after {moment:6.2f} s: {', '.join(saved) or 'nothing saved'}; resumed for "
                f"{time.monotonic() - began:6.2f} s: {verdict}{', CHECKPOINT LEFT' if left else ''}",
                flush=True,
            )
    print(f"{given.kills - failures} of {given.kills} as if nothing had happened")
    return 1 if failures else 0


def run_to_end(command: list[str], prefix: Path) -> tuple[dict[str, object], list[bytes]]:
    """Run to the end; return the result in the record and the tree files, with supports and without."""
    subprocess.run([*command, "--prefix", str(prefix)], check=True, stdout=subprocess.DEVNULL)
    record = json.loads(Path(f"{prefix}.json").read_text(encoding="utf-8"))
    trees = [Path(f"{prefix}.{name}.nwk") for name in ("best", "support")]
    return {key: record[key] for key in KEYS}, [path.read_bytes() for path in trees if path.exists()]


def kill(command: list[str], prefix: Path, moment: float, group: bool) -> list[str] | None:
    """Run until `moment` (seconds); return the names of the states saved by then, None if the run ends before."""
    process = subprocess.Popen(
        [*command, "--prefix", str(prefix)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        process.wait(moment)
    except subprocess.TimeoutExpired:
        if group:
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait()
        return sorted(path.stem for path in prefix.parent.glob(prefix.name + ".*checkpoint/*.state"))
    for path in prefix.parent.glob(prefix.name + ".*"):
        path.unlink()
    return None


if __name__ == "__main__":
    sys.exit(main())
