#!/usr/bin/env python3
"""Run MrBayes on the library that `plltool beagle-library` builds, and compare its chains with those on BEAGLE.

    python scripts/benchmarks/beagle_front.py [ALIGNMENT] [--generations N] [--chains N] [--resource N]
        [--output FILE.json]

MrBayes, as it is installed, runs GTR+G4, or LG+G4 for proteins, twice from the same seed with `beaglescaling=always` in
double precision: on BEAGLE's own library, and on this one, which comes first on the path of the dynamic linker. All
sampled log-likelihoods, tree lengths and parameters must be the same to the digits that MrBayes prints. The exit status
is 1 if they are not.

Needs a C compiler, Python's headers, cffi, and MrBayes with BEAGLE: Debian's packages mrbayes and libhmsbeagle1v5.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from rivals import make_parser, save, today

import plltool

ALIGNMENT = Path(__file__).resolve().parents[2] / "data" / "primates.phy"
MODELS = {"dna": "lset nst=6 rates=gamma;", "protein": "prset aamodelpr=fixed(lg);\nlset rates=gamma;"}


def write_nexus(alignment: str, path: Path) -> str:
    """Write an alignment for MrBayes, with taxa called t0, t1, ..., because it takes few names; returns the model."""
    data = plltool.read_alignment(alignment)
    kind = "dna" if data.states.name == "DNA" else "protein"
    rows = "\n".join(f"t{number}  {row.decode().replace('*', '?')}" for number, row in enumerate(data.rows))
    size = f"ntax={len(data.names)} nchar={len(data.rows[0])}"
    head = f"#NEXUS\nbegin data;\ndimensions {size};\nformat datatype={kind} gap=- missing=?;\nmatrix\n"
    path.write_text(f"{head}{rows}\n;\nend;\n")
    return MODELS[kind]


def run_mrbayes(
    folder: Path, model: str, options: argparse.Namespace, own_library: Path | None
) -> tuple[list[list[str]], float]:
    """The rows of the file of parameters, and seconds of processor time."""
    name = "beagle" if own_library is None else "plltool"
    chosen = "" if own_library is None or options.resource is None else f"set beagleresource={options.resource};\n"
    (folder / f"{name}.nex").write_text(
        "begin mrbayes;\nset autoclose=yes nowarn=yes seed=7 swapseed=7;\n"
        f"set usebeagle=yes beagledevice=cpu beaglesse=no beagleprecision=double beaglescaling=always;\n{chosen}"
        f"execute {folder / 'data.nex'};\n{model}\n"
        f"mcmc ngen={options.generations} nruns=1 nchains={options.chains} samplefreq=100 printfreq=1000 "
        f"file={folder / name} savebrlens=yes;\nend;\n"
    )
    variables = dict(os.environ)
    if own_library is not None:
        variables["LD_LIBRARY_PATH"] = str(own_library.parent)
    began = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(["mb", f"{name}.nex"], cwd=folder, env=variables, capture_output=True, text=True, check=False)
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime
    (folder / f"{name}.log").write_text(done.stdout + done.stderr)
    path = folder / f"{name}.p"
    if done.returncode or not path.is_file():
        raise SystemExit(f"mb ended with status {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return [line.split("\t") for line in path.read_text().splitlines()[1:]], seconds


def main() -> int:
    parser = make_parser(__doc__)
    parser.add_argument("alignment", nargs="?", default=str(ALIGNMENT))
    parser.add_argument("--generations", type=int, default=10_000)
    parser.add_argument("--chains", type=int, default=2)
    parser.add_argument("--resource", type=int, help="number of the resource that MrBayes asks this library for")
    parser.add_argument("--folder", help="where files are kept; otherwise they are removed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(options.folder or temporary).resolve()
        library = plltool.build_beagle_library(folder, redo=True)
        model = write_nexus(options.alignment, folder / "data.nex")
        expected, seconds = run_mrbayes(folder, model, options, None)
        found, own_seconds = run_mrbayes(folder, model, options, library)
        log = (folder / "plltool.log").read_text()
    differ = [number for number, pair in enumerate(zip(found, expected, strict=False)) if pair[0] != pair[1]]
    same = not differ and len(found) == len(expected)
    last = expected[-1][1], found[-1][1]
    print(f"{len(expected) - 1} samples of {options.generations} generations; last lnL {last[0]}, {last[1]}")
    on_plltool = "Impl Name : plltool" in log
    print(f"BEAGLE {seconds:.1f} s, plltool {own_seconds:.1f} s; ran on plltool: {on_plltool}")
    print("every number is the same" if same else f"first difference: {expected[differ[0]]} {found[differ[0]]}")
    record = {"date": today(), "version": plltool.__version__, "alignment": Path(options.alignment).name}
    record |= {"generations": options.generations, "chains": options.chains, "samples": len(expected) - 1, "same": same}
    record |= {"beagle_seconds": seconds, "plltool_seconds": own_seconds}
    record |= {"resource": re.findall(r"Rsrc Name : (.*)", log)[:1], "beagle_lnl": [row[1] for row in expected[1:]]}
    save(options.output, record | {"plltool_lnl": [row[1] for row in found[1:]]})
    return 0 if same and on_plltool else 1


if __name__ == "__main__":
    sys.exit(main())
