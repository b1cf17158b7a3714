"""What benchmarks share: programs that are run and measured, data that all read, arguments, and files of figures."""

import argparse
import gzip
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import dendropy
import numpy as np

import plltool
from plltool.alignment.patterns import compress
from plltool.io.alignment_formats import format_phylip
from plltool.io.newick_writer import write_newick
from plltool.run.inputs import as_tree_set, resolve_inputs
from plltool.tree_search import parsimony

IQTREE, RAXML = "iqtree2", "raxmlHPC-PTHREADS-AVX"
STOPPED = -signal.SIGKILL, -signal.SIGXCPU, 124  # how a program ends at a limit; the last is that of timeout(1)


@dataclass(frozen=True)
class Spent:
    """What a program took, how it ended and what it printed."""

    cpu_seconds: float
    seconds: float
    resident_bytes: int
    load: tuple[float, float]  # of the machine, before and after
    status: int
    printed: str

    @property
    def stopped(self) -> bool:
        """Whether it ended at a limit."""
        return self.status in STOPPED


def is_there(program: str) -> bool:
    """Whether a program is installed."""
    return shutil.which(program) is not None


def run(
    command: Sequence[object], folder: Path | None = None, *, limit: float = 0, cpu_limit: int = 0, strict: bool = True
) -> Spent:
    """Run a program in a folder, with limits of seconds if not 0; if strict, a program that fails ends the script."""
    words = [*(["timeout", str(limit)] if limit else []), *map(str, command)]
    bound = partial(resource.setrlimit, resource.RLIMIT_CPU, (cpu_limit, cpu_limit)) if cpu_limit else None
    load, began = os.getloadavg()[0], time.perf_counter()
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(words, cwd=folder, stdout=out, stderr=out, preexec_fn=bound)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - began
        out.seek(0)
        printed = out.read()
    cpu, loads = used.ru_utime + used.ru_stime, (round(load, 1), round(os.getloadavg()[0], 1))
    spent = Spent(round(cpu, 2), round(seconds, 2), 1024 * used.ru_maxrss, loads, process.returncode, printed)
    if strict and spent.status and not spent.stopped:
        raise SystemExit(f"{' '.join(words)}: exit status {spent.status}\n{printed[-2000:]}")
    return spent


def least_seconds(
    works: Sequence[Callable[[], object]], repetitions: int, clock: Callable[[], float] = time.process_time
) -> list[float]:
    """Of each piece of work, which take turns; the first turn does not count."""
    spent = np.empty((repetitions + 1, len(works)))
    for turn in spent:
        for number, work in enumerate(works):
            began = clock()
            work()
            turn[number] = clock() - began
    return [float(value) for value in spent[1:].min(axis=0)]


def cpu_seconds(process: int) -> float:
    """Processor seconds, user and system, of a process that runs, as Linux tells them."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run_iqtree(alignment: Path, prefix: Path, *options: object, cpu_limit: int = 0) -> Spent:
    """Run IQ-TREE 2 on an alignment, on one thread unless an option says otherwise; its files are PREFIX.*."""
    threads = [] if "-T" in options else ["-T", 1]
    command = [IQTREE, "-s", alignment, *options, *threads, "--prefix", prefix, "--keep-ident", "-redo", "-quiet"]
    return run(command, cpu_limit=cpu_limit)


def printed_lnl(command: Sequence[object], pattern: str) -> float | None:
    """The last number that matches `pattern` in a command's output; None without one, or if it is not installed."""
    found = re.findall(pattern, run(command, strict=False).printed) if is_there(str(command[0])) else []
    return float(found[-1]) if found else None


def plain_alignment(data: Path, name: str, folder: Path) -> Path:
    """The alignment as an uncompressed file, which the rivals need."""
    path = data / f"{name}.phy"
    if path.exists():
        return path.resolve()
    plain = folder / f"{name}.phy"
    for packed in (data / f"{name}.phy.gz", data / "treebase" / f"{name}.fasta.gz"):
        if packed.exists():
            plain.write_bytes(gzip.decompress(packed.read_bytes()))
            return plain
    base, _, size = name.partition("_")
    whole = plltool.read_alignment(next(data.glob(f"{base}_*.phy.gz")))
    return write_phylip(plain, {taxon: row[: int(size)] for taxon, row in zip(whole.names, whole.rows, strict=True)})


def write_phylip(path: Path, rows: dict[str, Any]) -> Path:
    """Write sequences, text or bytes, in the form that every program reads; the path."""
    path.write_text(
        format_phylip(list(rows), [row.decode() if isinstance(row, bytes) else row for row in rows.values()])
    )
    return path


def write_nexus(path: Path, rows: dict[str, str], kind: str = "dna", commands: str = "") -> None:
    """Write sequences for MrBayes, and commands behind them."""
    matrix = "\n".join(f"{name} {row}" for name, row in rows.items())
    path.write_text(
        f"#NEXUS\nbegin data;\ndimensions ntax={len(rows)} nchar={len(next(iter(rows.values())))};\n"
        f"format datatype={kind} gap=- missing=?;\nmatrix\n{matrix}\n;\nend;\n{commands}"
    )


def as_iqtree_model(model: str) -> str:
    """A model of plltool with its values as IQ-TREE reads it."""
    return model.replace("/", ",").replace("+FU", "+F")


def side_below(node: dendropy.Node, taxa: Sequence[str]) -> frozenset[str]:
    """The side of the branch above a node of a tree of these `taxa` that lacks the first of them."""
    below = frozenset(leaf.taxon.label for leaf in node.leaf_iter())
    return below if taxa[0] not in below else frozenset(taxa) - below


def parsimony_tree(alignment: Path, model: str | None, seed: int) -> str:
    """A randomised parsimony tree of plltool, as Newick text; `model` may be a partition file."""
    data, _ = resolve_inputs(alignment, model)
    patterns = [compress(part) for part in data.alignments]
    masks = np.concatenate([part.masks for part in patterns], axis=1)
    weights = np.concatenate([part.weights for part in patterns])
    rng = np.random.default_rng(seed)
    return write_newick(parsimony.parsimony_tree(masks, weights, data.names, rng, radius=0))


def make_parser(description: str | None, *, required: bool = False) -> argparse.ArgumentParser:
    """A parser with --output, the file of the figures."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=required, metavar="FILE.json")
    return parser


def comparison_parser(
    description: str | None, sets: Sequence[str], programs: Sequence[str], *, strict: bool = True
) -> argparse.ArgumentParser:
    """The arguments that comparing scripts share: by default all `sets` and `programs`; if strict, no others."""
    parser = make_parser(description)
    parser.add_argument("data", type=Path)
    parser.add_argument("reference", type=Path)
    for name, values in (("--set", sets), ("--program", programs)):
        choices = values if strict else None
        parser.add_argument(name, action="append", choices=choices, help=f"default: {' '.join(values)}")
    return parser


def ultrafast_shares(rows: dict[str, Any], names: Sequence[str], *options: object) -> dict[int, float]:
    """The shares of all splits in the 1000 trees of IQ-TREE's ultrafast bootstrap; `names` are the order of taxa."""
    with tempfile.TemporaryDirectory() as folder:
        path = write_phylip(Path(folder) / "all.phy", rows)
        run_iqtree(path, path, "-B", 1000, "--wbtl", *options)
        return as_tree_set(Path(f"{path}.ufboot"), names).shares


def load(path: Path | None, otherwise: Any) -> Any:
    """The figures of an earlier run, if there are any."""
    return json.loads(path.read_text()) if path and path.exists() else otherwise


def save(path: Path | None, figures: Any) -> None:
    """Write figures to a file, if there is to be one; called after every run, because runs take long."""
    if path:
        path.write_text(json.dumps(figures, indent=1) + "\n")


def report_row(rows: list[dict[str, Any]], row: dict[str, Any], output: Path | None) -> None:
    """Add a row, print it, and write all rows."""
    rows.append(row)
    print(row, flush=True)
    save(output, rows)


def today() -> str:
    """The date of figures."""
    return datetime.now(UTC).date().isoformat()


def commit() -> str:
    """The commit that figures belong to."""
    return subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
