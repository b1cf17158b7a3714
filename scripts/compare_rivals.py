"""Time whole searches beside Debian's RAxML 8 and IQ-TREE 2 from the same start trees, and re-evaluate every result.

    python scripts/compare_rivals.py DATA_DIR REFERENCE_DIR [--set NAME ...] [--program NAME ...] [--output FILE.json]

DATA_DIR holds NAME.phy or NAME.phy.gz; REFERENCE_DIR holds trees/NAME.start.nwk and search.json with figures from
another machine. Every program runs GTR+F+G4 on 2 threads; wall seconds of the whole process. Every final tree's
lengths and model are optimised again by both rivals at a fine epsilon: two, because branch lengths have local optima
(RAxML stops 0.6 below on dna354) and because IQ-TREE counts ambiguous characters differently under +F.
Programs that are not installed are left out.
"""

import argparse
import gzip
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

DEFAULT_SETS = ("dna101", "dna150", "dna218", "dna354", "dna500")
THREADS = "2"


def search_command(program: str, alignment: Path, start: Path, folder: Path) -> tuple[list[str], Path]:
    """The command line of one search, and the file that its tree will be in."""
    if program.startswith("plltool"):
        device = program.partition(":")[2] or "auto"
        prefix = folder / "plltool"
        command = ["plltool", "search", alignment, "--model", "GTR+F+G4", "--start", start, "--threads", THREADS]
        return [*map(str, command), "--device", device, "--prefix", str(prefix), "--redo"], folder / "plltool.best.nwk"
    if program == "raxml":
        command = ["raxmlHPC-PTHREADS-AVX", "-T", THREADS, "-f", "d", "-m", "GTRGAMMA", "-s", alignment, "-t", start]
        return [*map(str, command), "-n", "run", "-w", str(folder), "-p", "1"], folder / "RAxML_bestTree.run"
    if program == "iqtree-fast":
        command = ["iqtree2", "-s", alignment, "--seqtype", "DNA", "-m", "GTR+F+G4", "-t", start, "-fast"]
        options = ["-nt", THREADS, "-pre", str(folder / "iqtree"), "-redo", "-quiet", "--keep-ident", "-seed", "1"]
        return [*map(str, command), *options], folder / "iqtree.treefile"
    raise ValueError(f"no program is called {program!r}")


def judge_by_raxml(alignment: Path, tree: Path, folder: Path) -> float | None:
    """lnL of a tree after RAxML optimised lengths and model."""
    command = ["raxmlHPC-PTHREADS-AVX", "-T", THREADS, "-f", "e", "-e", "0.0001", "-m", "GTRGAMMA", "-s", alignment]
    return printed_lnl([*command, "-t", tree, "-n", "judge", "-w", folder], r"Final GAMMA\s+likelihood: (-[\d.]+)")


def judge_by_iqtree(alignment: Path, tree: Path, folder: Path) -> float | None:
    """lnL of a tree after IQ-TREE optimised lengths and model."""
    command = ["iqtree2", "-s", alignment, "--seqtype", "DNA", "-m", "GTR+F+G4", "-te", tree, "-nt", THREADS]
    options = ["-me", "0.0001", "--keep-ident", "-pre", folder / "judge", "-redo"]
    return printed_lnl([*command, *options], r"Optimal log-likelihood: (-[\d.]+)")


def printed_lnl(command: list[Any], pattern: str) -> float | None:
    """The last number that `pattern` finds in what a command prints; None if it is not installed or prints none."""
    if shutil.which(command[0]) is None:
        return None
    output = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False).stdout
    found = re.findall(pattern, output)
    return float(found[-1]) if found else None


def run(program: str, alignment: Path, start: Path) -> dict[str, Any] | None:
    """One search: seconds, the program's own lnL where it is plltool, and the judges'."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command, tree = search_command(program, alignment, start, folder)
        if shutil.which(command[0]) is None:
            return None
        began = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
        seconds = time.perf_counter() - began
        if done.returncode or not tree.exists():
            print(f"{program}: exit {done.returncode}: {done.stderr[-500:]}", file=sys.stderr)
            return None
        record = folder / "plltool.json"
        own = json.loads(record.read_text())["lnl"] if record.exists() else None
        return {
            "seconds": round(seconds, 2),
            "own_lnl": own,
            "raxml_lnl": judge_by_raxml(alignment, tree, folder),
            "iqtree_lnl": judge_by_iqtree(alignment, tree, folder),
        }


def plain_alignment(data: Path, name: str, folder: Path) -> Path:
    """The alignment uncompressed, as the rivals want it."""
    path = data / f"{name}.phy"
    if path.exists():
        return path.resolve()
    plain = folder / f"{name}.phy"
    plain.write_bytes(gzip.decompress((data / f"{name}.phy.gz").read_bytes()))
    return plain


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("reference", type=Path)
    parser.add_argument("--set", action="append", help=f"default: {' '.join(DEFAULT_SETS)}")
    parser.add_argument("--program", action="append", help="plltool[:DEVICE], raxml, iqtree-fast; default: all three")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    search_file = options.reference / "search.json"
    elsewhere = json.loads(search_file.read_text()) if search_file.exists() else {}
    results: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as name:
        for data_set in options.set or DEFAULT_SETS:
            alignment = plain_alignment(options.data, data_set, Path(name))
            start = (options.reference / "trees" / f"{data_set}.start.nwk").resolve()
            results[data_set] = {}
            for program in options.program or ("plltool", "iqtree-fast", "raxml"):
                row = run(program, alignment, start)
                if row is not None:
                    results[data_set][program] = row
                    print(data_set, program, row, flush=True)
            for program, row in elsewhere.get(data_set, {}).items():
                print(f"    elsewhere: {program}: {row['seconds']} s, {row['lnl']}")
    if options.output:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        options.output.write_text(json.dumps({"date": now, "threads": THREADS, "sets": results}, indent=1))


if __name__ == "__main__":
    main()
