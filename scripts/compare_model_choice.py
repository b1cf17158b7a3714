"""Compare `plltool select-model` with ModelFinder, `iqtree2 -m MF`: the choices by BIC, their scores, CPU seconds.

    python scripts/compare_model_choice.py DATA_DIR REFERENCE_DIR [--set NAME ...] [--program NAME ...]
        [--device DEVICE] [--output FILE.json]

Both programs get trees/NAME.start.nwk of REFERENCE_DIR and one thread; IQ-TREE is therefore spared the search for a
tree that it begins with. Then plltool, and IQ-TREE where it knows the matrix, optimise both choices on that tree and
compute BIC. CPU seconds are those of the whole process. Rows are added to those that FILE.json has.
"""

import json
import math
import re
import resource
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from compare_rivals import comparison_parser, plain_alignment, report_row

import plltool
from plltool.model.model_string import parse_model
from plltool.model.nucleotides import is_nucleotide, symmetry
from plltool.model.spec import ModelSpec

SETS = ("primates", "avian", "dna150", "dna101", "dna218", "dna59", "aa140")
PROGRAMS = ("plltool", "iqtree")
FILES = {"avian": "avian_ovomucoids"}  # names of alignments that differ from those of their trees


def run_timed(command: list[str], folder: Path) -> float:
    """CPU seconds of a program."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 2)


def choose(program: str, alignment: Path, tree: Path, device: str, folder: Path) -> dict[str, Any]:
    """The choice of a program, and its CPU seconds."""
    if program == "plltool":
        command = ["plltool", "select-model", str(alignment), "--tree", str(tree), "--threads", "1"]
        seconds = run_timed([*command, "--device", device, "--prefix", "own", "--quiet"], folder)
        record = json.loads((folder / "own.select-model.json").read_text())
        found = record["model_choice"]
        fitted = {"fitted": len(found["candidates"])}
        return {"model": found["best"], "cpu_seconds": seconds, **fitted}
    command = ["iqtree2", "-s", str(alignment), "-te", str(tree), "-m", "MF", "-nt", "1", "-seed", "1"]
    seconds = run_timed([*command, "-pre", "theirs", "-keep-ident"], folder)
    log = (folder / "theirs.log").read_text()
    best = re.search(r"Best-fit model: (\S+) chosen according to BIC", log)
    assert best is not None
    fitted = {"fitted": len(re.findall(r"^ *[0-9]+  \S+ +[0-9.]+ +[0-9]+ +[0-9.]+ ", log, re.MULTILINE))}
    return {"model": best[1], "cpu_seconds": seconds, **fitted}


def iqtree_name(spec: ModelSpec) -> str:
    """A specification as IQ-TREE reads it."""
    if is_nucleotide(spec.name):
        frequencies = {"equal": "+FQ", "empirical": "+F", "optimised": "+FO"}[spec.frequency_mode]
        name = symmetry(spec.name) + frequencies
    else:
        name = spec.name + ("+F" if spec.frequency_mode == "empirical" else "")
    return name + str(spec.sites).replace("+IO", "+I")


def judge(model: str, alignment: Path, tree: Path, device: str, folder: Path) -> dict[str, Any]:
    """BIC of a model on the tree by either program; None where IQ-TREE does not know it."""
    result = plltool.evaluate(alignment, tree, model, device=device, threads=1)
    n_branches = 2 * result.n_taxa - 3
    n_parameters = result.parameters["n_free_parameters"] + n_branches
    judged: dict[str, Any] = {"bic": n_parameters * math.log(result.n_sites) - 2 * result.lnl, "lnl": result.lnl}
    command = ["iqtree2", "-s", str(alignment), "-te", str(tree), "-m", iqtree_name(parse_model(model)), "-nt", "1"]
    done = subprocess.run([*command, "-pre", "judge", "-redo", "-keep-ident"], cwd=folder, capture_output=True)
    score = None
    if done.returncode == 0:
        score = re.search(r"\(BIC\) score: ([0-9.]+)", (folder / "judge.iqtree").read_text())
    return judged | {"iqtree_bic": None if score is None else float(score[1])}


def main() -> None:
    parser = comparison_parser(__doc__, SETS, PROGRAMS)
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    results = json.loads(options.output.read_text()) if options.output and options.output.exists() else []
    for name in options.set or SETS:
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            alignment = plain_alignment(options.data, FILES.get(name, name), folder)
            tree = options.reference.resolve() / "trees" / f"{name}.start.nwk"
            for program in options.program or PROGRAMS:
                row = choose(program, alignment, tree, options.device, folder)
                row |= judge(row["model"], alignment, tree, options.device, folder)
                report_row(results, {"set": name, "program": program, **row}, options.output)


if __name__ == "__main__":
    main()
