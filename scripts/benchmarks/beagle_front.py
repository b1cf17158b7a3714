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

import argparse
import re
import sys
import tempfile
from pathlib import Path

from rivals import make_parser, run, save, today, write_nexus

import plltool

ALIGNMENT = Path(__file__).resolve().parents[2] / "data" / "primates.phy"
MODELS = {"DNA": "lset nst=6 rates=gamma;", "protein": "prset aamodelpr=fixed(lg);\nlset rates=gamma;"}


def write_data(alignment: str, path: Path) -> str:
    """Write an alignment for MrBayes, with taxa called t0, t1, ..., because it takes few names; returns the model."""
    data = plltool.read_alignment(alignment)
    rows = {f"t{number}": row.decode().replace("*", "?") for number, row in enumerate(data.rows)}
    write_nexus(path, rows, data.states.name)
    return MODELS[data.states.name]


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
    on_own = [] if own_library is None else ["env", f"LD_LIBRARY_PATH={own_library.parent}"]
    spent = run([*on_own, "mb", f"{name}.nex"], folder)
    (folder / f"{name}.log").write_text(spent.printed)
    rows = (folder / f"{name}.p").read_text().splitlines()[1:]
    return [line.split("\t") for line in rows], spent.cpu_seconds


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
        model = write_data(options.alignment, folder / "data.nex")
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
