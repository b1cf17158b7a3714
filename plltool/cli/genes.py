"""``plltool genes``: trees of many genes, the tree of all of them, and how far they agree."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from plltool import Hardware
from plltool.cli import options
from plltool.cli.command import command, given_command
from plltool.cli.concordance import scf_option, scfl_option
from plltool.cli.option_values import PATH
from plltool.cli.outputs import Outputs, file_options
from plltool.cli.reporting import Reporter
from plltool.cli.terminal import print_results


@dataclass(frozen=True)
class GenesTask:
    """The genes, and how the work is done and reported."""

    folder: Path
    model: str | None
    brlen: str
    reading: options.Reading
    seed: int
    outgroup: tuple[str, ...]
    scf: int
    scfl: bool
    workers: int | None
    as_json: bool
    quiet: bool
    json_progress: str | None


task_options = options.packed(
    "task",
    GenesTask,
    click.argument("folder", type=PATH, metavar="FOLDER"),
    options.model_option,
    options.brlen_option,
    options.gene_reading_options,
    options.seed_option,
    options.outgroup_option,
    scf_option,
    scfl_option,
    options.workers_option("genes to search"),
    options.json_option,
    *options.progress_options,
)


@command(
    examples=("plltool genes alignments --model GTR+F+G4 --effort fast --prefix run",),
)
@task_options
@options.effort_options
@options.hardware_options
@file_options("genes", source="folder")
def genes(task: GenesTask, effort: options.Effort, hardware: Hardware, outputs: Outputs) -> None:
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
                checkpoint=outputs.checkpoints[0],
                search_checkpoint=outputs.checkpoints[1],
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
