"""Compare `plltool select-model` with ModelFinder, `iqtree2 -m MF`: the choices by BIC, their scores, CPU seconds.

    python scripts/benchmarks/compare_model_choice.py DATA_DIR REFERENCE_DIR [--set NAME ...] [--program NAME ...]
        [--device DEVICE] [--cpu-limit SECONDS] [--mset NAMES] [--no-free-rates] [--output FILE.json]

Both programs get the same tree and one thread; IQ-TREE is therefore spared the search for a tree that it begins with.
It is trees/NAME.start.nwk of REFERENCE_DIR, or, where there is none, a parsimony tree of plltool. abglobin is a set of
codons. cynmix, four genes, is in parts, which both programs may merge (greedily, `-m MF+MERGE`), with scaled lengths;
cynmix-all has its morphology as well, in which cells with several states count as unknown; it has +ASC, which IQ-TREE
adds where all columns vary. --mset restricts IQ-TREE to
some matrices, and --no-free-rates both programs, which the row tells.

Then plltool, and IQ-TREE where it knows the matrix, optimise both choices on that tree and compute BIC. CPU seconds are
those of the whole process. A program that needs more than --cpu-limit is stopped: its row has no model, `stopped` is
true, and `fitted` counts the models that it had printed by then. Rows are added to those that FILE.json has.
"""

import argparse
import math
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compare_partitions import CYNMIX_DNA, prepare
from rivals import IQTREE, comparison_parser, load, parsimony_tree, plain_alignment, report_row, run, write_phylip

import plltool
from plltool.alignment.states import MULTISTATE
from plltool.io.model_reader import read_scheme
from plltool.model.nucleotides import symmetry
from plltool.model.other_data import GTR, split_name
from plltool.model.spec import ModelSpec

SETS = ("primates", "avian", "dna150", "dna101", "dna218", "dna59", "aa140", "abglobin", "cynmix", "cynmix-all")
PROGRAMS = ("plltool", "iqtree")
FILES = {"avian": "avian_ovomucoids"}  # names of alignments that differ from those of their trees
CODONS, IN_PARTS, MIXED = ("abglobin",), ("cynmix",), "cynmix-all"


@dataclass(frozen=True)
class Task:
    """What both programs get; `partition` is empty, or the file that names the parts.

    If `morphology` is not 0 but a number of columns, these come first, and IQ-TREE gets two files.
    """

    alignment: Path
    tree: Path
    is_codons: bool = False
    partition: str = ""
    morphology: int = 0

    @classmethod
    def of(cls, name: str, data: Path, reference: Path, folder: Path) -> "Task":
        """That of a set, with the files that it needs in `folder`."""
        if name == MIXED:
            return cls(*write_mixed(data, folder), morphology=CYNMIX_DNA[0])
        if name in IN_PARTS:
            alignment, scheme, tree = prepare(name, data, reference, folder)
            return cls(alignment, tree, partition=str(scheme))
        if name in CODONS:
            tree = folder / "start.nwk"
            whole, alignment = plltool.read_alignment(data / f"{name}.nuc"), folder / f"{name}.phy"
            write_phylip(alignment, dict(zip(whole.names, whole.rows, strict=True)))
            tree.write_text(parsimony_tree(alignment, "GY+F3X4", seed=1) + "\n")
            return cls(alignment, tree, is_codons=True)
        alignment = plain_alignment(data, FILES.get(name, name), folder)
        return cls(alignment, reference.resolve() / "trees" / f"{name}.start.nwk")

    @property
    def for_iqtree(self) -> list[str]:
        """The arguments of IQ-TREE that name the data and the tree."""
        given = ["-te", str(self.tree), "-nt", "1", "-keep-ident", "-seed", "1"]
        if not self.morphology:
            given = ["-s", str(self.alignment), *given]
        return [*given, *(["-st", "CODON"] if self.is_codons else [])]

    def in_one_file(self, scheme: str) -> str:
        """IQ-TREE's partition file with the columns of the whole alignment."""
        if not self.morphology:
            return scheme
        moved = re.sub(r"genes\.phy:([^;]*)", lambda text: move_columns(text[1], self.morphology), scheme)
        return moved.replace("morphology.phy:", "")

    def write_parts(self, path: Path, ranges: Sequence[str], models: Sequence[str] = ()) -> None:
        """A partition file for IQ-TREE, with parts p0, p1 and so on of these columns, and perhaps their models."""
        sets = []
        for number, text in enumerate(ranges):
            own, file = text.replace(",", ""), ""
            if self.morphology:
                is_first = int(re.split(r"\D", own)[0]) <= self.morphology
                file = "morphology.phy: MORPH, " if is_first else "genes.phy: DNA, "
                own = own if is_first else move_columns(own, -self.morphology)
            sets.append(f"charset p{number} = {file}{own};")
        chosen = ", ".join(f"{name}: p{number}" for number, name in enumerate(models))
        lines = ["#nexus", "begin sets;", *sets, *([f"charpartition c = {chosen};"] if models else []), "end;"]
        path.write_text("\n".join(lines) + "\n")

    @property
    def for_plltool(self) -> list[str]:
        """The same for plltool, except parts."""
        given = [str(self.alignment), "--tree", str(self.tree), "--threads", "1"]
        return [*given, *(["--data-type", "codon"] if self.is_codons else [])]


def move_columns(ranges: str, by: int) -> str:
    """Ranges of columns with other numbers; steps, behind a backslash, stay."""
    return re.sub(r"(?<![\d\\])\d+", lambda found: str(int(found[0]) + by), ranges)


def write_mixed(data: Path, folder: Path) -> tuple[Path, Path, bool, str]:
    """All of cynmix: the first four fields of a `Task`; for IQ-TREE also files of morphology and genes."""
    whole, (n_first, genes) = plltool.read_alignment(data / "cynmix.nex"), CYNMIX_DNA
    unknown = bytes(whole.sets)
    rows = [row.translate(bytes.maketrans(unknown, b"?" * len(unknown))).decode() for row in whole.rows]
    for name, first, last in (("whole", 0, None), ("morphology", 0, n_first), ("genes", n_first, None)):
        cut = {taxon: row[first:last] for taxon, row in zip(whole.names, rows, strict=True)}
        write_phylip(folder / f"{name}.phy", cut)
    parts = folder / "all.part"
    lines = [f"DNA, {name} = {first}-{last}" for name, (first, last) in genes.items()]
    parts.write_text("\n".join([f"MK+ASC, morphology = 1-{n_first}", *lines]) + "\n")
    tree = folder / "start.nwk"
    tree.write_text(parsimony_tree(folder / "whole.phy", str(parts), seed=1) + "\n")
    return folder / "whole.phy", tree, False, str(parts)


def choose(program: str, task: Task, options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """The choice of a program, None if it was stopped; its CPU seconds; and how many models it fitted.

    The choice is a model string, or the lines of a partition file, which for IQ-TREE are in NEXUS.
    """
    own = ["plltool", "select-model", *task.for_plltool, "--device", options.device, "--prefix", "own"]
    theirs = [IQTREE, *task.for_iqtree, "-pre", "theirs"]
    if task.partition:
        own += ["--partitions", task.partition, "--merge", "greedy"]
        parts = task.partition
        if task.morphology:
            parts = "parts.nex"
            own_parts = read_scheme(task.partition)
            task.write_parts(folder / parts, [" ".join(map(str, part.ranges)) for part in own_parts])
        theirs += ["-p", parts, "-m", "MF+MERGE"]
    else:
        theirs += ["-m", "MF", *(["-mset", options.mset] if options.mset else [])]
    if not options.free_rates:
        own.append("--no-free-rates")
        theirs += ["-mrate", "E,I,G,I+G"]
    command, log, fitted = {
        "plltool": (own, "own.select-model.log", r"(\S+) +lnL -"),
        "iqtree": (theirs, "theirs.log", r"^ *[0-9]+  (\S+) +[0-9.]+ +[0-9]+ +[0-9.]+ "),
    }[program]
    spent = run(command, folder, cpu_limit=options.cpu_limit)
    timed = {"cpu_seconds": spent.cpu_seconds, "stopped": spent.stopped}
    log_text = (folder / log).read_text()
    model = None
    if program == "plltool" and not timed["stopped"]:
        model = (folder / "own.select-model.model").read_text().strip()
    elif task.partition and not timed["stopped"]:
        model = task.in_one_file((folder / "theirs.best_scheme.nex").read_text())
    elif found := re.search(r"Best-fit model: (\S+) chosen according to BIC", log_text):
        model = found[1]
    assert timed["stopped"] or model is not None
    return {"model": model, **timed, "fitted": len(set(re.findall(fitted, log_text, re.MULTILINE)))}


def iqtree_name(spec: ModelSpec) -> str:
    """A specification as IQ-TREE reads it."""
    if spec.data == "DNA":
        frequencies = {"equal": "+FQ", "empirical": "+F", "optimised": "+FO"}[spec.frequency_mode]
        name = symmetry(spec.name) + frequencies
    elif spec.data == MULTISTATE:
        frequencies = {"equal": "+FQ", "empirical": "+F", "optimised": "+FO"}[spec.frequency_mode]
        name = {GTR: "GTRX"}.get(split_name(spec.name)[1], split_name(spec.name)[1]) + frequencies
    else:
        counted = {"empirical": "+F", "f1x4": "+F1X4", "f3x4": "+F3X4"}
        name = spec.name + counted.get(spec.frequency_mode, "")
    return name + str(spec.sites).replace("+IO", "+I") + ("+ASC" if spec.ascertainment else "")


def judge(model: str, task: Task, device: str, folder: Path) -> dict[str, Any]:
    """BIC of a choice on the tree by either program; None where a program does not know it."""
    scheme = folder / "scheme"
    scheme.write_text(model + "\n")
    judged: dict[str, Any] = {"bic": None, "lnl": None, "iqtree_bic": None}
    try:
        parts = read_scheme(str(scheme))
        alignment = plltool.read_alignment(task.alignment, "codon" if task.is_codons else None)
        result = plltool.evaluate(alignment, task.tree, str(scheme), device=device, threads=1)
    except plltool.InputError as problem:
        print(f"not judged: {problem}")
        return judged
    n_sites = sum(len(part.sites) for part in result.data.parts)
    n_parameters = result.parameters["n_free_parameters"] + 2 * result.n_taxa - 3
    judged |= {"bic": n_parameters * math.log(n_sites) - 2 * result.lnl, "lnl": result.lnl}
    names = [iqtree_name(part.model) for part in parts if part.model is not None]
    given = ["-m", names[0]]
    if task.partition:
        task.write_parts(folder / "judge.nex", [part.ranges for part in result.data.parts], names)
        given = ["-p", "judge.nex"]
    command = [IQTREE, *task.for_iqtree, *given, "-pre", "judge", "-redo"]
    if run(command, folder, strict=False).status == 0:
        score = re.search(r"\(BIC\) score: ([0-9.]+)", (folder / "judge.iqtree").read_text())
        assert score is not None
        judged["iqtree_bic"] = float(score[1])
    return judged


def main() -> None:
    parser = comparison_parser(__doc__, SETS, PROGRAMS)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--cpu-limit", type=int, default=3600, metavar="SECONDS")
    parser.add_argument("--mset", default="", metavar="NAMES", help="matrices that IQ-TREE may choose, such as LG,WAG")
    parser.add_argument("--no-free-rates", dest="free_rates", action="store_false", help="no +R among the candidates")
    options = parser.parse_args()
    results = load(options.output, [])
    for name in options.set or SETS:
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            task = Task.of(name, options.data, options.reference, folder)
            for program in options.program or PROGRAMS:
                row = choose(program, task, options, folder)
                row["free_rates"] = options.free_rates
                if options.mset and program == "iqtree":
                    row["mset"] = options.mset
                if row["model"] is not None:
                    row |= judge(row["model"], task, options.device, folder)
                report_row(results, {"set": name, "program": program, **row}, options.output)


if __name__ == "__main__":
    main()
