"""Kill runs at random moments, with SIGKILL, and check that they end with the same bits after they are resumed.

    python scripts/checks/kill_test.py ALIGNMENT [--kills 20] [--seed 1] -- OPTIONS OF plltool search
    python scripts/checks/kill_test.py ALIGNMENT --command sample -- OPTIONS OF plltool sample

The first run is not killed. Every other search must end with the same tree, supports (if OPTIONS ask for some), lnL and
lnL of the start trees, to the last bit; samples with the same files of all runs and the same summaries. Every second
time only the process itself is killed, not its child processes. The exit status is 1 if a run ends differently or a
search leaves a checkpoint behind.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Kind:
    """A command: its options by default; the record, and what of it must be the same; other files; its checkpoint."""

    options: list[str]
    record: str
    keys: tuple[str, ...]
    files: tuple[str, ...]
    keeps_checkpoint: bool = False


KINDS = {
    "search": Kind(
        ["--starts", "2", "--perturbations", "6", "--threads", "1"],
        "json",
        ("lnl", "tree", "start_lnls", "model"),
        ("best.nwk", "support.nwk"),
    ),
    "sample": Kind(
        ["--model", "GTR+FO+G4", "--generations", "4000", "--sample-every", "20", "--threads", "1"],
        "sample.json",
        ("posterior", "generations", "acceptance", "swaps", "converged"),
        ("run1.t", "run1.p", "run2.t", "run2.p", "consensus.nwk", "mcc.nwk", "credible.tsv"),
        keeps_checkpoint=True,  # more generations go on from it
    ),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("alignment", type=Path)
    parser.add_argument("--command", choices=KINDS, default="search")
    parser.add_argument("--kills", type=int, default=20, help="number of runs, each of which is killed once")
    parser.add_argument("--seed", type=int, default=1, help="seed of the moments")
    at = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    given = parser.parse_args(sys.argv[1:at])
    kind = KINDS[given.command]
    options = sys.argv[at + 1 :] or kind.options
    rng = random.Random(given.seed)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "plltool", given.command, str(given.alignment), "--quiet", *options]
        began = time.monotonic()
        expected = run_to_end(command, Path(folder) / "whole", kind)
        seconds = time.monotonic() - began
        print(f"uninterrupted: {seconds:.1f} s")
        failures = 0
        for number in range(given.kills):
            prefix, saved = Path(folder) / f"killed-{number}", None
            while saved is None:
                moment = rng.uniform(0.0, seconds)
                saved = kill(command, prefix, moment, group=number % 2 == 0)
                seconds = moment if saved is None else seconds
            began = time.monotonic()
            same = run_to_end(command, prefix, kind) == expected
            left = not kind.keeps_checkpoint and any(prefix.parent.glob(prefix.name + ".*checkpoint"))
            failures += not same or left
            verdict = "the same bits" if same else "DIFFERENT"
            print(
                f"killed after {moment:6.2f} s: {', '.join(saved) or 'nothing saved'}; resumed for "
                f"{time.monotonic() - began:6.2f} s: {verdict}{', CHECKPOINT LEFT' if left else ''}",
                flush=True,
            )
    print(f"{given.kills - failures} of {given.kills} as if nothing had happened")
    return 1 if failures else 0


def run_to_end(command: list[str], prefix: Path, kind: Kind) -> tuple[dict[str, object], list[bytes]]:
    """Run to the end; return the result in the record, and the files that there are."""
    subprocess.run([*command, "--prefix", str(prefix)], check=True, stdout=subprocess.DEVNULL)
    record = json.loads(Path(f"{prefix}.{kind.record}").read_text(encoding="utf-8"))
    files = [Path(f"{prefix}.{name}") for name in kind.files]
    return {key: record[key] for key in kind.keys}, [path.read_bytes() for path in files if path.exists()]


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
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return None


if __name__ == "__main__":
    sys.exit(main())
