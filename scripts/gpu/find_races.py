"""Run small analyses on Oclgrind, a simulated OpenCL device that reports data races and accesses out of bounds.

    python scripts/gpu/find_races.py [--quick | --case NAME ...] [--library liboclgrind-rt-icd.so]

CPUs run work-items one after another, so that races show on GPUs only, and there not always. Oclgrind (Price &
McIntosh-Smith 2015) compares all accesses of a kernel. Its library is Debian's: ``apt-get install oclgrind``. Every
case has 32 or 64 lanes, a work-item each, as on a GPU. `--quick` takes a few minutes of processor time, all cases an
hour or two. The exit status is 1 if there is a report, which is printed, or if a case fails.
"""

import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LIBRARIES = ("/usr/lib/oclgrind/liboclgrind-rt-icd.so", "/usr/local/lib/liboclgrind-rt-icd.so")
REPORT = re.compile(r"^(?:[\w-]+ data race|Invalid (?:read|write)|.*[Bb]arrier divergence|Unaligned).*", re.MULTILINE)
TREE = "(t0:0.1,t1:0.2,(t2:0.1,(t3:0.2,t4:0.1):0.1):0.1);"
LETTERS = {"dna": list("ACGT"), "protein": list("ARNDCQEGHILKMFPSTWYV"), "codon": ["AAA", "CCC", "GAT", "TTC", "ATG"]}

EVALUATE = ["evaluate", "{data}.fasta", "--tree", "tree.nwk"]
SEARCH = ["search", "{data}.fasta", "--effort", "fast", "--epsilon", "100"]
QUICK = {  # a name and a command each
    "DNA, all free": [*EVALUATE, "--model", "HKY+I+G4", "--vw", "32"],
    "DNA, single precision": [*EVALUATE, "--model", "JC", "--vw", "64", "--precision", "single"],
    "proteins": [*EVALUATE, "--fixed", "--model", "LG+G4", "--vw", "32"],
}
OTHERS = {
    "proteins, all lengths": [*EVALUATE, "--model", "LG+G4", "--vw", "32"],
    "DNA, search": [*SEARCH, "--model", "GTR+F+G4", "--vw", "32"],
    "DNA, search, 64 lanes": [*SEARCH, "--model", "HKY+F+I+G4", "--vw", "64"],
    "DNA, little memory": [*SEARCH, "--model", "GTR+F+G4", "--vw", "32", "--memory", "300K"],
    "DNA, per-site rates": [*EVALUATE, "--model", "GTR+F+PSR4", "--vw", "32"],
    "proteins, frequencies": [*EVALUATE, "--model", "GTR20+FO", "--vw", "32"],
    "proteins, mixture": [*EVALUATE, "--model", "LG4X", "--vw", "64"],
    "proteins, search": [*SEARCH, "--model", "LG+G4", "--vw", "32"],
    "proteins, single precision": [*EVALUATE, "--model", "LG+G4", "--vw", "64", "--precision", "single"],
    "DNA, chains": ["sample", "{data}.fasta", "--model", "GTR+F+G4", "--vw", "32", "--generations", "60"],
    "codons": [*EVALUATE, "--fixed", "--model", "GY", "--vw", "32"],
    "codons, all lengths": [*EVALUATE, "--model", "GY{{2/0.5}}", "--vw", "32"],
}


def write_data(folder: Path) -> None:
    """A few columns of five taxa for each kind of data, and their tree."""
    rng = random.Random(1)
    for kind, letters in LETTERS.items():
        first = rng.choices(letters, k=8)
        rows = [[rng.choice(letters) if rng.random() < 0.3 else letter for letter in first] for _ in range(5)]
        rows[1][2] = "-" * len(letters[0])
        (folder / f"{kind}.fasta").write_text("".join(f">t{i}\n{''.join(row)}\n" for i, row in enumerate(rows)))
    (folder / "tree.nwk").write_text(TREE)


def run_case(name: str, command: list[str], variables: dict[str, str], folder: Path) -> bool:
    """Run a command on the simulator and print what it reports; whether there is no report and no error."""
    kind = {"proteins": "protein", "codons": "codon"}.get(name.split(",")[0], "dna")
    words = [word.format(data=kind) for word in command] + ["--device", "0:0", "--prefix", "case", "--redo"]
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "plltool", *words], env=variables, cwd=folder, capture_output=True, text=True
    )
    reports = REPORT.findall(done.stdout + done.stderr)
    seconds = time.perf_counter() - began
    if "Oclgrind" not in done.stdout + done.stderr:
        print(f"{name}: did not run on Oclgrind: {done.stderr[-500:]}", flush=True)
        return False
    print(f"{name}: {len(reports)} reports, exit status {done.returncode}, {seconds:.0f} s", flush=True)
    if reports or done.returncode:
        print((done.stdout + done.stderr)[:3000])
    return not reports and not done.returncode


def find_library(parser: argparse.ArgumentParser, given: Path | None) -> Path:
    """Oclgrind's library, at the place given or where it usually is; an error of the parser if there is none."""
    for place in [given] if given else map(Path, LIBRARIES):
        if place.is_file():
            return place
    parser.error(f"found no {Path(LIBRARIES[0]).name}, expected Debian's package oclgrind or --library FILE")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--quick", action="store_true", help="run the first few cases only")
    which.add_argument("--case", action="append", choices=list(QUICK | OTHERS), metavar="NAME", help="run this case")
    parser.add_argument("--library", type=Path, help="Oclgrind's library for OpenCL loaders")
    options = parser.parse_args()
    library = find_library(parser, options.library)
    cases = QUICK if options.quick else QUICK | OTHERS
    cases = {name: cases[name] for name in options.case or cases}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_data(folder)
        (folder / "oclgrind.icd").write_text(f"{library}\n")
        variables = os.environ | {
            "OCL_ICD_VENDORS": name,
            "OCLGRIND_DATA_RACES": "1",
            "PYOPENCL_NO_CACHE": "1",
            "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
        }
        variables.pop("OCLGRIND_LOG", None)  # each context would begin the file anew
        clean = [run_case(case, command, variables, folder) for case, command in cases.items()]
    sys.exit(not all(clean))


if __name__ == "__main__":
    main()
