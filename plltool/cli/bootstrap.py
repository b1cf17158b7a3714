"""``plltool bootstrap``, and the supports that a search makes of its tree."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

import plltool
from plltool import Hardware, registry
from plltool.cli import options
from plltool.cli.command import SUPPORTS, command
from plltool.cli.option_values import PATH, NumberOr
from plltool.cli.outputs import Outputs, file_options
from plltool.cli.support import kinds_option
from plltool.constants import EFFORT_NAMES, FBP, REPLICATE_KINDS, SUPPORT_KINDS, UFBOOT

EXIT_INTERRUPTED = 128 + signal.SIGINT
AUTOMATIC = ("auto", "autoMRE", "autoFC")
WRITE_SHARE = 20  # the file of trees is written again when it has grown by one part in this many


@dataclass(frozen=True, kw_only=True)
class ReplicateChoice:
    """How the trees of replicates are searched, and whether their alignments are written."""

    rapid: bool = options.option(
        help="Start the search of each replicate from the tree of an earlier one, and hold the model (Stamatakis et al."
        " 2008)."
    )
    replicate_effort: str | None = options.option(
        choices=EFFORT_NAMES,
        help="How hard to search the tree of each replicate.  [default: fast, with SPR radii 5 and 10, with --rapid 5]",
    )
    write_replicates: bool = options.option(help="Also write the resampled alignments.")

    def check(self, task: options.SearchTask) -> None:
        """Raise UsageError for resampled alignments with added sites, which may be billions."""
        if self.write_replicates and task.reading.changes_sites:
            raise click.UsageError("--write-replicates goes without --constant-sites and --site-weights")

    def settings(self) -> dict[str, Any]:
        """Keywords of `plltool.search_supports` and `plltool.bootstrap`."""
        return {"rapid": self.rapid, "options": plltool.replicate_options(self.replicate_effort, self.rapid)}


@dataclass(frozen=True, kw_only=True)
class SupportChoice:
    """The supports that a search makes of its tree: the number of replicates, or a test of it, and the kinds."""

    bootstrap: int | str | None = options.option(
        type=NumberOr(*AUTOMATIC),
        metavar="N|auto|autoMRE|autoFC",
        help="Also search N resampled alignments, or as many as a test finds enough (Pattengale et al. 2010).",
    )
    supports: tuple[str, ...] = options.filled_by(
        kinds_option(
            SUPPORT_KINDS,
            "",
            "Supports of the tree: fbp (Felsenstein 1985; the default with --bootstrap), tbe (Lemoine et al. 2018),"
            " and rootstrap (of the root, under a model that is not time-reversible, Naser-Khdour et al. 2022) need"
            " --bootstrap; ufboot (after Minh et al. 2013), sh-alrt (Guindon et al. 2010), abayes (Anisimova et al."
            " 2011), lbp (Adachi & Hasegawa 1996b) and sprta (De Maio et al. 2025) do not.",
        )
    )
    how: ReplicateChoice = options.filled_by(options.packed("how", ReplicateChoice, SUPPORTS))

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds that were asked for, otherwise "fbp" if there are replicates."""
        return self.supports or (FBP,) * (self.bootstrap is not None)

    def check(self, task: options.SearchTask) -> None:
        by_replicates = [kind for kind in self.kinds if kind in REPLICATE_KINDS]
        if by_replicates and self.bootstrap is None:
            raise click.UsageError(f"--supports {by_replicates[0]} needs replicates: --bootstrap N or --bootstrap auto")
        for name, given in vars(self.how).items():
            if given and self.bootstrap is None:
                raise click.UsageError(f"--{name.replace('_', '-')} is for --bootstrap")
        self.how.check(task)

    def choose(self, outputs: Outputs) -> Outputs:
        """The files of a search that makes these supports alone."""
        if self.bootstrap is None:
            outputs = outputs.without("unfinished replicates")
        return outputs if UFBOOT in self.kinds else outputs.without("ufboot")

    def make(
        self,
        result: plltool.SearchResult,
        sequences: plltool.Sequences,
        task: options.SearchTask,
        hardware: Hardware,
        outputs: Outputs,
        listener: Callable[[plltool.Progress], None],
    ) -> tuple[plltool.SearchResult, list[str], bool]:
        """Make the supports and write their files.

        Returns the result of the search, which may be a better one than before, lines about the supports, and whether
        they were interrupted.
        """
        files = ReplicateFiles(outputs)
        how: dict[str, Any] = {"replicates": self.bootstrap, "workers": task.workers, **self.how.settings()}
        for name in registry.SUPPORT_FOLDERS:
            how[name.replace(".", "_")] = outputs.path(name)
        how |= {"listener": listener, "taken": files.take, **asdict(hardware)}
        made = plltool.search_supports(result, self.kinds, **how)
        lines = []
        if made.bootstrap is not None:
            files.write()
            lines += describe_bootstrap(made.bootstrap)
            if self.how.write_replicates:
                files.write_alignments(sequences, task, len(made.bootstrap.trees))
        if made.supports.kinds:
            outputs.write(made.supports.texts())
            lines += made.supports.describe()
        return made.result, lines, made.interrupted


support_options = options.packed("choice", SupportChoice, SUPPORTS)


class ReplicateFiles:
    """The files of a bootstrap: its trees, written as they are made, and resampled alignments."""

    def __init__(self, outputs: Outputs):
        self._outputs = outputs
        self._lines: list[str] = []
        path = outputs.path(registry.BOOTSTRAPS)
        self._n_before = path.read_bytes().count(b"\n") if outputs.resumes and path.exists() else 0

    def take(self, newick: str) -> None:
        """One more tree. The file is never partial; it lacks at most a twentieth of the trees."""
        self._lines.append(newick + "\n")
        number = len(self._lines)
        if number > self._n_before and number % max(1, number // WRITE_SHARE) == 0:
            self.write()

    def write(self) -> None:
        self._outputs.write({registry.BOOTSTRAPS: "".join(self._lines)})

    def write_alignments(self, sequences: plltool.Sequences, task: options.SearchTask, number: int) -> None:
        sequences.refuse_table("what resampled alignments are drawn from")
        settings: dict[str, Any] = {"replicates": number, "seed": task.seed, "brlen": task.brlen}
        for k, own in enumerate(plltool.resampled_alignments(sequences, task.model, **settings), start=1):
            rows = [row.decode("ascii") for row in own.rows]
            self._outputs.write({f"replicate.{k}.fasta": plltool.format_fasta(own.names, rows)})


def describe_bootstrap(found: plltool.BootstrapResult) -> list[str]:
    lines = ["interrupted: the replicates so far"] if found.interrupted else []
    lines += [str(found.convergence[-1])] if found.convergence else []
    number = len(found.trees)
    kept = f", {found.n_kept} of them from an earlier run" if found.n_kept else ""
    if number and found.n_kept == number and not found.interrupted:
        kept = ", all from an earlier run: a larger number adds more, --redo starts over"
    return [*lines, f"replicates: {number} in {found.seconds:.1f} s{kept}"]


@command()
@options.search_task_options
@click.option(
    "--replicates",
    type=NumberOr(*AUTOMATIC),
    default="auto",
    metavar="N|auto|autoMRE|autoFC",
    help="Number of replicates, or a test after every 50 whether there are enough (Pattengale et al. 2010); auto is"
    " autoMRE.",
)
@click.option("--tree", type=PATH, help="Also write the supports of this tree.")
@kinds_option(
    REPLICATE_KINDS,
    "fbp",
    "With --tree, some of fbp (Felsenstein 1985), tbe (Lemoine et al. 2018), and under a model that is not"
    " time-reversible rootstrap, the support of the root (Naser-Khdour et al. 2022).",
)
@options.packed("how", ReplicateChoice)
@options.hardware_options
@file_options("bootstrap", source="alignment")
def bootstrap(
    task: options.SearchTask,
    replicates: int | str,
    tree: Path | None,
    supports: tuple[str, ...],
    how: ReplicateChoice,
    hardware: Hardware,
    outputs: Outputs,
) -> None:
    """Search the trees of resampled alignments, and compute how well they support a tree.

    Each replicate is a search of its own, which optimises parameters without values in braces. `--model run.json`, the
    record of a search, holds those of the search. Replicate N depends only on the seed and on N.

    The same command with a larger number adds replicates to those that there are.
    """
    how.check(task)
    if tree is None:
        outputs = outputs.without("supports")
    outputs.claim()
    reporter = task.telling.reporter(outputs)
    with reporter, reporter.interrupts_wait(), ExitStack() as stack:
        sequences = options.load_alignment(task.alignment, task.reading)
        stack.enter_context(outputs.checkpointed())  # after the input, so that --redo loses nothing if that is wrong

        def make() -> tuple[plltool.BootstrapResult, ReplicateFiles]:
            files = ReplicateFiles(outputs)
            wanted = {"replicates": replicates, "tree": tree, "kinds": supports, **how.settings()}
            wanted |= {"listener": reporter.progress, "taken": files.take, **task.settings(hardware)}
            folder = outputs.path(registry.REPLICATE_FOLDER)
            return plltool.bootstrap(sequences, task.model, checkpoint=folder, **wanted), files

        found, files = outputs.go_on_or_start_over(make)
        files.write()
        lines = describe_bootstrap(found)
        if how.write_replicates:
            files.write_alignments(sequences, task, len(found.trees))
        if found.supports is not None:
            outputs.write(found.supports.texts())
            lines += found.supports.describe()
        outputs.remove_stale(*registry.SHARED["alignments"] if outputs.resumes else ())
        outputs.write_report()
        if not found.interrupted:
            outputs.finish_checkpoint()
        reporter.write_log(*lines)
    task.telling.print(found, [*lines, *outputs.describe()])
    if found.interrupted:
        click.get_current_context().exit(EXIT_INTERRUPTED)
