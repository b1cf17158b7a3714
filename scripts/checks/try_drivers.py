"""Run plltool on OpenCL drivers that crash, hang or lack double precision, without the hardware that they drive.

    python scripts/checks/try_drivers.py [--output FILE] [--case NAME ...]

Debian's ``intel-opencl-icd`` can be told to simulate a GPU, which compiles everything and computes nothing
(``SetCommandStreamReceiver=1``). ``mesa-opencl-icd`` has rusticl, and ``libpocl2`` has PoCL 3.1, which run on the CPU.
On each the script runs `plltool devices`, and evaluates a tree with `--device auto` and with the device by its index,
twice, so that the second run finds the outcome of the device's test; and in single precision, in which rusticl
computes. Other programs of this machine are not told of the drivers.

A case whose library is missing is skipped. The exit status is 1 if a command crashes, hangs, prints a traceback, or if
`auto`, or single precision on rusticl, does not end with the same log-likelihood as numpy in double precision.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DATA = Path(__file__).resolve().parents[2] / "data" / "primates.phy"
LIBRARIES = Path("/usr/lib/x86_64-linux-gnu")
INTEL, RUSTICL = LIBRARIES / "intel-opencl" / "libigdrcl.so", LIBRARIES / "libRusticlOpenCL.so.1"
CASES = {  # the library, and the variables that make it show a device
    f"intel-{family}": (
        INTEL,
        {"NEOReadDebugKeys": "1", "SetCommandStreamReceiver": "1", "ProductFamilyOverride": family},
    )
    for family in ("skl", "tgllp", "dg2", "pvc")
} | {"rusticl": (RUSTICL, {"RUSTICL_ENABLE": "llvmpipe"}), "pocl": (LIBRARIES / "libpocl.so.2", {})}
LIMIT = 200  # seconds, more on a busy machine; a device's test takes 60 at most, and likewise more
SEARCH = ["search", str(DATA), "--model", "JC", "--effort", "fast", "--device", "numpy", "--prefix", "n"]
EVALUATE = ["evaluate", str(DATA), "--tree", "tree.nwk", "--model", "JC", "--fixed", "--redo", "--prefix"]


def run_plltool(folder: Path, variables: dict[str, str], *arguments: str) -> dict[str, object]:
    """Run a command in a folder: its exit status, seconds and the last lines of what it writes."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), **variables}
    began = time.monotonic()
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", "plltool", *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        out, err = child.communicate(timeout=LIMIT * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)))
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGKILL)
        out, err = child.communicate()
    lines = [
        line for line in (err + out).splitlines() if any(word in line for word in ("device", "lnL", "test ", "rror"))
    ]
    return {"status": child.returncode, "seconds": round(time.monotonic() - began, 1), "lines": lines}


def try_case(name: str, folder: Path) -> dict[str, dict[str, object]]:
    """What the commands say on the drivers of a case."""
    library, variables = CASES[name]
    (folder / "vendors").mkdir()
    (folder / "vendors" / "only.icd").write_text(f"{library}\n")
    variables = {**variables, "OCL_ICD_VENDORS": str(folder / "vendors")}
    made: dict[str, dict[str, object]] = {}
    for number in (1, 2):
        for device in ("auto", "0:0"):
            made[f"evaluate --device {device}, run {number}"] = run_plltool(
                folder, variables, *EVALUATE, "run", "--device", device
            )
    single = "--device", "0:0", "--precision", "single"
    made["evaluate --precision single"] = run_plltool(folder, variables, *EVALUATE, "run", *single)
    made["devices"] = run_plltool(folder, variables, "devices")
    return made


def find_lnl(run: dict[str, object]) -> str | None:
    return next((line for line in run["lines"] if line.startswith("lnL: ")), None)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", choices=CASES, action="append", help="one of the cases only; may be repeated")
    parser.add_argument("--output", type=Path, help="a JSON file for what was seen")
    options = parser.parse_args()
    report: dict[str, object] = {}
    failed = False
    for name in options.case or CASES:
        if not CASES[name][0].exists():
            print(f"{name}: skipped, there is no {CASES[name][0]}")
            continue
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            run_plltool(folder, {}, *SEARCH)
            (folder / "n.best.nwk").rename(folder / "tree.nwk")
            expected = find_lnl(run_plltool(folder, {}, *EVALUATE, "numpy", "--device", "numpy"))
            report[name] = made = try_case(name, folder)
        for command, seen in made.items():
            good = seen["status"] in (0, 1) and "Traceback" not in "".join(seen["lines"])
            if "auto" in command or (name == "rusticl" and "single" in command):
                good &= expected is not None and find_lnl(seen) == expected
            failed |= not good
            print(f"{name}: {command}: {'' if good else 'FAILED, '}status {seen['status']}, {seen['seconds']} s")
            for line in seen["lines"]:
                print(f"    {line}")
    if options.output:
        options.output.write_text(json.dumps(report, indent=1) + "\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
