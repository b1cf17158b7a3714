"""``plltool genes``: trees of many genes, the tree of all of them, and how far they agree."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

import click

import plltool
from plltool import Hardware, SearchOptions
from plltool.cli import options
from plltool.cli.command import command, given_command
from plltool.cli.concordance import scf_option, scfl_option
from plltool.cli.option_values import PATH
from plltool.cli.outputs import Outputs, file_options


@dataclass(frozen=True, kw_only=True)
class GenesTask:
    """The genes, and how the work is done and reported."""

    folder: Path = options.filled_by(click.argument("folder", type=PATH, metavar="FOLDER"))
    model: str | None = options.filled_by(options.model_option)
    brlen: str = options.filled_by(options.brlen_option)
    reading: options.FileReading = options.filled_by(options.file_reading_options)
    seed: int = options.filled_by(options.seed_option)
    outgroup: tuple[str, ...] = options.filled_by(options.outgroup_option)
    scf: int = options.filled_by(scf_option)
    scfl: bool = options.filled_by(scfl_option)
    workers: int | None = options.filled_by(options.workers_option("genes to search"))
    telling: options.Telling = options.filled_by(options.telling_options)
    effort: SearchOptions = options.filled_by(options.effort_options)
    hardware: Hardware = options.filled_by(options.hardware_options)


@command()
@options.packed("task", GenesTask)
@file_options("genes", source="folder")
def genes(task: GenesTask, outputs: Outputs) -> None:
    """Find the tree of each gene in FOLDER and the tree of all genes together, and compute concordance factors.

    FOLDER has one alignment per gene: FASTA, PHYLIP or NEXUS, compressed or not. Genes may lack taxa. For the tree of
    all genes, each gene is a partition with its own model.

    Give the same command again to continue after an interruption.
    """
    outputs.claim()
    reporter = task.telling.reporter(outputs)
    with reporter, ExitStack() as stack:
        stack.enter_context(outputs.checkpointed())
        how = options.keywords(task, "seed", "brlen", "workers") | vars(task.reading) | asdict(task.hardware)
        how |= {"options": task.effort, "quartets": task.scf, "likelihood": task.scfl}
        how |= {"outgroup": task.outgroup or None, "listener": reporter.progress}
        how["checkpoint"], how["search_checkpoint"] = outputs.checkpoints
        found = outputs.go_on_or_start_over(lambda: plltool.genes(task.folder, task.model, **how))
        outputs.finish(found.texts(given_command()))
        outputs.forget_checkpoints()
        lines = [f"genes: {len(found.genes)}", f"lnL: {found.search.lnl:.6f}", *found.concordance.supports.describe()]
        lines.append(f"seconds: {found.seconds:.1f}")
        reporter.write_log(*lines)
    task.telling.print(found, [*lines, *outputs.describe()])
