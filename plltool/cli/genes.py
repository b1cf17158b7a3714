"""``plltool genes``: trees of many genes, the tree of all of them, and how far they agree."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from plltool import Hardware
from plltool.cli.command import command, given_command
from plltool.cli.concordance import CF_FILES, scf_option, scfl_option
from plltool.cli.option_values import PATH
from plltool.cli.options import (
    Effort,
    Reading,
    brlen_option,
    effort_options,
    gene_reading_options,
    hardware_options,
    json_option,
    model_option,
    outgroup_option,
    packed,
    progress_options,
    seed_option,
    workers_option,
)
from plltool.cli.outputs import REPORT_FILES, OutputFile, Outputs, file_options
from plltool.cli.reporting import Reporter
from plltool.cli.terminal import print_results

FOLDER, SEARCH_FOLDER = "checkpoint", "search.checkpoint"
GENES_FILES = (
    OutputFile("genes.nwk", "gene trees", "one a line, in the order of the table"),
    OutputFile("genes.tsv", "table of genes", "separated by tabs: name, file, size, lnL, model"),
    OutputFile("genes.fasta", "alignment of all genes side by side"),
    OutputFile("genes.part", "partition file", "the columns of each gene and its model, for --model"),
    OutputFile("best.nwk", "tree of all genes", "with branch lengths"),
    OutputFile("best.model", "models of the genes in it", "a file for --model"),
    OutputFile("json", "record of its search", "JSON"),
    OutputFile("parts.nwk", "trees of genes in it", "with --brlen unlinked"),
    OutputFile("collapsed.nwk", "collapsed tree", "if internal branches are as short as the bound"),
    *CF_FILES,
    OutputFile("log", "log"),
    *REPORT_FILES,
    OutputFile(FOLDER, "state of an unfinished run", "a folder: the genes that are done"),
    OutputFile(SEARCH_FOLDER, "state of its last search", "a folder"),
)


@dataclass(frozen=True)
class GenesTask:
    """The genes, and how the work is done and reported."""

    folder: Path
    model: str | None
    brlen: str
    reading: Reading
    seed: int
    outgroup: tuple[str, ...]
    scf: int
    scfl: bool
    workers: int | None
    as_json: bool
    quiet: bool
    json_progress: str | None


task_options = packed(
    "task",
    GenesTask,
    click.argument("folder", type=PATH, metavar="FOLDER"),
    model_option,
    brlen_option,
    gene_reading_options,
    seed_option,
    outgroup_option,
    scf_option,
    scfl_option,
    workers_option("genes to search"),
    json_option,
    *progress_options,
)


@command(
    short_help="Find the trees of many genes, and gene and site concordance factors.",
    examples=("plltool genes alignments --model GTR+F+G4 --effort fast --prefix run",),
)
@task_options
@effort_options
@hardware_options
@file_options(GENES_FILES, source="folder")
def genes(task: GenesTask, effort: Effort, hardware: Hardware, outputs: Outputs) -> None:
    """Find the tree of each gene in FOLDER and the tree of all genes together, and compute concordance factors.

    FOLDER has one alignment per gene: FASTA, PHYLIP or NEXUS, gzipped or not. Genes may lack taxa. For the tree of all
    genes, each gene is a partition with its own model.

    Give the same command again to continue after an interruption.
    """
    outputs.claim()
    import plltool

    reporter = Reporter(task.quiet, outputs.log, task.json_progress, append=outputs.resumes)
    with reporter, ExitStack() as stack:
        stack.enter_context(outputs.checkpointed())
        found = outputs.go_on_or_start_over(
            lambda: plltool.genes(
                task.folder,
                task.model,
                data_type=task.reading.data_type,
                names=task.reading.names,
                seed=task.seed,
                options=effort.options(),
                brlen=task.brlen,
                outgroup=task.outgroup or None,
                quartets=task.scf,
                likelihood=task.scfl,
                workers=task.workers,
                listener=reporter.progress,
                checkpoint=outputs.path(FOLDER),
                search_checkpoint=outputs.path(SEARCH_FOLDER),
                **asdict(hardware),
            )
        )
        outputs.write(found.texts(given_command()))
        outputs.remove_stale()
        outputs.write_report()
        outputs.forget_checkpoints()
        lines = [f"genes: {len(found.genes)}", f"lnL: {found.search.lnl:.6f}", *found.concordance.supports.describe()]
        lines.append(f"seconds: {found.seconds:.1f}")
        for line in lines:
            reporter.write_log(line)
    print_results([*lines, *outputs.describe()], found.to_json(given_command()) if task.as_json else None)
