"""Compare partitioned analyses with Debian's RAxML 8 and IQ-TREE 2: optimised lnL of a topology, and searches.

    python scripts/benchmarks/compare_partitions.py DATA_DIR REFERENCE_DIR [--set NAME ...] [--brlen LINKAGE ...]
        [--program NAME ...] [--device DEVICE] [--limit SECONDS] [--output FILE.json]

The sets are dna59 (8 parts) and the four DNA parts of cynmix; each part has GTR+F+G4. DATA_DIR holds dna59.phy.gz,
dna59.part and cynmix.nex; REFERENCE_DIR holds trees/NAME.start.nwk; without that file a parsimony tree is made. Every
program starts from that tree on one thread: RAxML with -q (linked) and -q -M (unlinked; it cannot scale), IQ-TREE with
-q, -p and -Q. The script prints wall seconds of the whole process, the program's own lnL, and plltool's optimised lnL
of each final tree: the rivals count ambiguous characters differently under +F, which makes a difference of 0.5 here.
"""

import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from rivals import IQTREE, comparison_parser, is_there, parsimony_tree, plain_alignment, report_row, run, write_phylip

import plltool
from plltool.constants import LINKAGES

Files = tuple[Path, Path, Path]  # alignment, partition, tree

SETS = ("dna59", "cynmix")
PROGRAMS = ("plltool", "iqtree", "raxml")
CYNMIX_DNA = (166, {"COI": (167, 1244), "EF1a": (1245, 1611), "LWRh": (1612, 2092), "28S": (2093, 3246)})
IQTREE_OPTION = {"linked": "-q", "scaled": "-p", "unlinked": "-Q"}
PRINTED = {"raxml": r"Final GAMMA(?:-based Score of best tree|  likelihood:) (-[\d.]+)", "iqtree": r"FOUND : (-[\d.]+)"}


def write_data(name: str, data: Path, folder: Path) -> tuple[Path, Path]:
    """Write alignment and partition file in forms that every program reads."""
    partition = folder / f"{name}.part"
    if name == "cynmix":
        skipped, parts = CYNMIX_DNA
        whole = plltool.read_alignment(data / "cynmix.nex")
        rows = {taxon: row[skipped:] for taxon, row in zip(whole.names, whole.rows, strict=True)}
        alignment = write_phylip(folder / "cynmix.phy", rows)
        ranges = [f"DNA, {part} = {first - skipped}-{last - skipped}" for part, (first, last) in parts.items()]
        partition.write_text("\n".join(ranges) + "\n")
    else:
        alignment = plain_alignment(data, name, folder)
        shutil.copy(data / f"{name}.part", partition)
    return alignment, partition


def prepare(name: str, data: Path, reference: Path, folder: Path) -> tuple[Path, Path, Path]:
    """The same and a start tree."""
    alignment, partition = write_data(name, data, folder)
    start = folder / f"{name}.start.nwk"
    given = reference / "trees" / f"{name}.start.nwk"
    if given.exists():
        shutil.copy(given, start)
    else:
        start.write_text(parsimony_tree(alignment, str(partition), seed=1) + "\n")
    return alignment, partition, start


def make_command(program: str, files: Files, brlen: str, search: bool, device: str) -> list[Any]:
    """The command line of one run; empty if the program has no such analysis."""
    alignment, partition, tree = files
    if program == "plltool":
        task = ["search", alignment, "--start", tree] if search else ["evaluate", alignment, "--tree", tree]
        options = ["--device", device, "--threads", "1", "--prefix", "plltool", "--redo", "--quiet"]
        return ["plltool", *task, "--model", partition, "--brlen", brlen, *options]
    if program == "iqtree":
        options = ["-te", tree] if not search else ["-t", tree, "-ninit", "1"]
        precision = [] if search else ["-me", "0.001"]
        command = [IQTREE, "-s", alignment, "-m", "GTR+F+G4", IQTREE_OPTION[brlen], partition, *options, *precision]
        return [*command, "-nt", "1", "-pre", "iqtree", "-redo", "-seed", "1", "--keep-ident"]
    if brlen == "scaled":
        return []
    task = ["-f", "d"] if search else ["-f", "e", "-e", "0.001"]
    linkage = ["-M"] if brlen == "unlinked" else []
    command = ["raxmlHPC", *task, *linkage, "-m", "GTRGAMMA", "-q", partition, "-s", alignment, "-t", tree]
    return [*command, "-n", "run", "-p", "1"]


def time_run(program: str, files: Files, brlen: str, search: bool, options: Any) -> dict[str, Any] | None:
    """Seconds, the program's lnL, and plltool's lnL of the final tree; None if there is nothing to run."""
    command = make_command(program, files, brlen, search, options.device)
    if not command or not is_there(command[0]):
        return None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        done = run(command, folder, limit=options.limit, strict=False)
        if done.status:
            return {"seconds": done.seconds, "exit": done.status}
        if program == "plltool":
            return {"seconds": done.seconds, "lnl": read_lnl(folder, search)}
        row = {"seconds": done.seconds, "lnl": float(re.findall(PRINTED[program], done.printed)[-1])}
        if search:
            tree = folder / {"raxml": "RAxML_bestTree.run", "iqtree": "iqtree.treefile"}[program]
            judge = make_command("plltool", (files[0], files[1], tree), brlen, False, options.device)
            run(judge, folder)
            row["by_plltool"] = read_lnl(folder, search=False)
        return row


def read_lnl(folder: Path, search: bool) -> float:
    """lnL from the record of a search or an evaluation."""
    return float(json.loads((folder / ("plltool.json" if search else "plltool.evaluate.json")).read_text())["lnl"])


def main() -> None:
    parser = comparison_parser(__doc__, SETS, PROGRAMS)
    parser.add_argument("--brlen", action="append", choices=LINKAGES)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--limit", type=float, default=600, help="seconds after which a run is given up")
    options = parser.parse_args()
    results: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        for data_set in options.set or SETS:
            files = prepare(data_set, options.data, options.reference, Path(name))
            for brlen in options.brlen or LINKAGES:
                for search in (False, True):
                    for program in options.program or PROGRAMS:
                        row = time_run(program, files, brlen, search, options)
                        if row is not None:
                            task = "search" if search else "evaluate"
                            row = {"set": data_set, "brlen": brlen, "task": task, "program": program, **row}
                            report_row(results, row, options.output)


if __name__ == "__main__":
    main()
