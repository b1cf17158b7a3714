"""Compare `plltool select-model` with ModelFinder, `iqtree2 -m MF`: the choices by BIC, their scores, CPU seconds.

    python scripts/compare_model_choice.py DATA_DIR REFERENCE_DIR [--set NAME ...] [--program NAME ...]
        [--device DEVICE] [--cpu-limit SECONDS] [--output FILE.json]

Both programs get trees/NAME.start.nwk of REFERENCE_DIR and one thread; IQ-TREE is therefore spared the search for a
tree that it begins with. Then plltool, and IQ-TREE where it knows the matrix, optimise both choices on that tree and
compute BIC. CPU seconds are those of the whole process. A program that needs more than --cpu-limit is stopped: its row
has no model, `stopped` is true, and `fitted` counts the models that it had printed by then. Rows are added to those
that FILE.json has.
"""

import json
import math
import re
import resource
import signal
import subprocess
import tempfile
from functools import partial
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


def run_timed(command: list[str], cpu_limit: int, folder: Path) -> dict[str, Any]:
    """CPU seconds of a program, and whether it was stopped at the limit."""
    limit = partial(resource.setrlimit, resource.RLIMIT_CPU, (cpu_limit, cpu_limit))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=folder, capture_output=True, preexec_fn=limit)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    stopped = done.returncode in (-signal.SIGKILL, -signal.SIGXCPU)
    if not stopped:
        done.check_returncode()
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"cpu_seconds": round(seconds, 2), "stopped": stopped}


def choose(program: str, alignment: Path, tree: Path, device: str, cpu_limit: int, folder: Path) -> dict[str, Any]:
    """The choice of a program, None if it was stopped; its CPU seconds; and how many models it fitted."""
    own = ["plltool", "select-model", alignment, "--tree", tree, "--threads", "1", "--device", device]
    theirs = ["iqtree2", "-s", alignment, "-te", tree, "-m", "MF", "-nt", "1", "-seed", "1", "-keep-ident"]
    command, log, fitted, chosen = {
        "plltool": ([*own, "--prefix", "own"], "own.select-model.log", r"^(\S+) +lnL -", r"\nmodel +lnL .*\n(\S+)"),
        "iqtree": (
            [*theirs, "-pre", "theirs"],
            "theirs.log",
            r"^ *[0-9]+  (\S+) +[0-9.]+ +[0-9]+ +[0-9.]+ ",
            r"Best-fit model: (\S+) chosen according to BIC",
        ),
    }[program]
    timed = run_timed([*map(str, command)], cpu_limit, folder)
    text = (folder / log).read_text()
    found = re.search(chosen, text)
    assert timed["stopped"] or found is not None
    return {
        "model": None if found is None else found[1],
        **timed,
        "fitted": len(set(re.findall(fitted, text, re.MULTILINE))),
    }


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
    parser.add_argument("--cpu-limit", type=int, default=3600, metavar="SECONDS")
    options = parser.parse_args()
    results = json.loads(options.output.read_text()) if options.output and options.output.exists() else []
    for name in options.set or SETS:
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            alignment = plain_alignment(options.data, FILES.get(name, name), folder)
            tree = options.reference.resolve() / "trees" / f"{name}.start.nwk"
            for program in options.program or PROGRAMS:
                row = choose(program, alignment, tree, options.device, options.cpu_limit, folder)
                if row["model"] is not None:
                    row |= judge(row["model"], alignment, tree, options.device, folder)
                report_row(results, {"set": name, "program": program, **row}, options.output)


if __name__ == "__main__":
    main()
