"""``plltool bootstrap``, and what the replicates of a search have in common with it."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from plltool.cli.options import (
    PATH,
    OutputChoice,
    alignment_argument,
    brlen_option,
    constraint_option,
    data_type_option,
    hardware_options,
    json_progress_option,
    load_alignment,
    model_option,
    outgroup_option,
    output_options,
    packed,
    quiet_option,
    seed_option,
    split_outgroup,
)
from plltool.cli.outputs import claim_files, claim_folder, print_line
from plltool.cli.reporting import Reporter, tells_of_checkpoint
from plltool.cli.support import (
    MAPPED_KINDS,
    SEARCH_KINDS,
    claim_supports,
    kinds_option,
    support_path,
    write_supports,
)
from plltool.constants import EFFORT_NAMES, SUPPORT_KINDS
from plltool.errors import InputError
from plltool.hardware import Hardware

if TYPE_CHECKING:
    from plltool.alignment.alignment import Sequences
    from plltool.alignment.partition import Dataset
    from plltool.analyses.bootstrap import BootstrapResult
    from plltool.run.results import SearchResult
    from plltool.tree.topology import Tree
    from plltool.tree_search.progress import Listener

EXIT_INTERRUPTED = 128 + signal.SIGINT
AUTOMATIC = ("auto", "autoMRE", "autoFC")
WRITE_SHARE = 20  # the file of trees is written anew once it has grown by one of so many parts


class NumberOfReplicates(click.ParamType):
    """A number from 1 on, or the name of a test."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        if isinstance(value, int) or value in AUTOMATIC:
            return int(value) if isinstance(value, int) else str(value)
        if value.isdecimal() and int(value) > 0:
            return int(value)
        self.fail(f"found {value!r}, expected a whole number from 1 on, or one of: {', '.join(AUTOMATIC)}", param, ctx)


replicate_effort_option = click.option(
    "--replicate-effort",
    type=click.Choice(EFFORT_NAMES),
    help="How hard to search each replicate's tree; by default fast, but with SPR radii 5 and 10, with --rapid 5.",
)
rapid_option = click.option(
    "--rapid",
    is_flag=True,
    help="Begin each replicate's search with the tree of an earlier one, and hold the model (Stamatakis et al. 2008).",
)
write_replicates_option = click.option(
    "--write-replicates", is_flag=True, help="Write the resampled alignments, too: PREFIX.replicate.N.fasta."
)


@dataclass(frozen=True)
class SupportChoice:
    """What a search shall say of its tree's branches: by so many replicates, or by a test; () for no supports."""

    bootstrap: int | str | None
    supports: tuple[str, ...]
    rapid: bool
    replicate_effort: str | None
    write_replicates: bool

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of supports: those asked for, or else "fbp" where there are replicates."""
        return self.supports or MAPPED_KINDS[:1] * (self.bootstrap is not None)

    def check(self) -> None:
        """Make sure that the choice makes sense."""
        mapped = [kind for kind in self.kinds if kind in MAPPED_KINDS]
        if mapped and self.bootstrap is None:
            raise click.UsageError(f"--supports {mapped[0]} takes replicates: --bootstrap N or --bootstrap auto")
        for name in ("rapid", "replicate_effort", "write_replicates"):
            if getattr(self, name) and self.bootstrap is None:
                raise click.UsageError(f"--{name.replace('_', '-')} is for --bootstrap")

    def claim(self, prefix: Path, redo: bool, resumes: bool) -> None:
        """Make sure that the files can be written; a search that `resumes` has its own.

        Raises InputError if there are supports on the way of another run: those of this one begin with what it finds.
        """
        from plltool.io.checkpoint import has_states

        claim_supports(prefix, redo, SEARCH_KINDS if resumes else ())
        if self.bootstrap is not None:
            ReplicateFiles(prefix).claim(redo or resumes, self.write_replicates)
        for folder in self._checkpoints(prefix):
            claim_folder(folder)
            if has_states(folder) and not (redo or resumes):
                raise InputError(f"{folder}: a checkpoint of supports, but none of this search; --redo starts over")

    def forget(self, prefix: Path) -> None:
        """Remove what is kept of supports on the way."""
        from plltool.io.checkpoint import remove_checkpoint

        for folder in self._checkpoints(prefix):
            remove_checkpoint(folder)

    def _checkpoints(self, prefix: Path) -> list[Path]:
        folders = [ReplicateFiles(prefix).checkpoint] if self.bootstrap is not None else []
        return [*folders, ultrafast_checkpoint(prefix)] if "ufboot" in self.kinds else folders


def support_tree(
    choice: SupportChoice,
    result: SearchResult,
    sequences: Sequences,
    data: Dataset,
    prefix: Path,
    outgroup: Sequence[str] | None,
    listener: Listener,
    settings: Mapping[str, Any],
) -> tuple[list[str], bool]:
    """Make the supports of a search's tree and write them; returns what to tell, and whether that was interrupted.

    `settings` are the seed, constraint, brlen, workers and hardware of the search.
    """
    import plltool
    from plltool.analyses.alrt import local_supports
    from plltool.analyses.bootstrap import bootstrap as make_replicates
    from plltool.analyses.bootstrap import replicate_options
    from plltool.analyses.support import UFBOOT, Supports
    from plltool.analyses.ultrafast import ultrafast_bootstrap

    found, lines, interrupted = Supports(result.tree, {}, {}), [], False
    if UFBOOT in choice.kinds:
        alone = {name: value for name, value in settings.items() if name != "workers"}
        alone |= {"listener": listener, "checkpoint": ultrafast_checkpoint(prefix)}
        found = found.joined(ultrafast_bootstrap(data, result.tree, result.models, **alone))
    local = [kind for kind in choice.kinds if kind in SUPPORT_KINDS]
    if local:
        own = {name: value for name, value in settings.items() if name not in ("workers", "constraint")}
        found = found.joined(local_supports(data, result.tree, result.models, local, **own))
    if choice.bootstrap is not None:
        files = ReplicateFiles(prefix)
        replicates = make_replicates(
            data,
            result.models,
            replicates=choice.bootstrap,
            rapid=choice.rapid,
            options=replicate_options(choice.replicate_effort, choice.rapid),
            listener=listener,
            taken=files.take,
            checkpoint=files.checkpoint,
            **settings,
        )
        interrupted = replicates.interrupted
        files.write()
        lines += describe_bootstrap(replicates, files.trees)
        if choice.write_replicates:
            lines.append(files.write_alignments(sequences, data, settings["seed"], len(replicates.trees)))
        mapped = [kind for kind in choice.kinds if kind in MAPPED_KINDS]
        if mapped and replicates.trees:
            found = found.joined(plltool.supports(result.tree, replicates.trees, mapped))
    if found.values:
        lines += write_supports(found.in_order(choice.kinds), prefix, outgroup)
    return lines, interrupted


def ultrafast_checkpoint(prefix: Path) -> Path:
    """The folder that holds where the ultrafast bootstrap stands."""
    return support_path(prefix, "ufboot.checkpoint")


support_options = packed(
    "choice",
    SupportChoice,
    click.option(
        "--bootstrap",
        type=NumberOfReplicates(),
        metavar="N|auto|autoMRE|autoFC",
        help="Search so many resampled alignments, too, or as many as a test says (Pattengale et al. 2010).",
    ),
    kinds_option(
        SEARCH_KINDS,
        "",
        "Of the tree's branches: fbp (Felsenstein 1985; the default with --bootstrap), tbe (Lemoine et al. 2018),"
        " ufboot (after Minh et al. 2013), sh-alrt (Guindon et al. 2010), abayes (Anisimova et al. 2011), these"
        " three without --bootstrap.",
    ),
    rapid_option,
    replicate_effort_option,
    write_replicates_option,
)


class ReplicateFiles:
    """The files of a bootstrap: its trees, which are there as soon as they are made, and resampled alignments."""

    def __init__(self, prefix: Path):
        self.prefix = prefix
        self.trees = support_path(prefix, "bootstraps.nwk")
        self.checkpoint = support_path(prefix, "bootstrap.checkpoint")
        self._lines: list[str] = []

    @property
    def resumable(self) -> bool:
        """Whether there are replicates to go on with."""
        from plltool.io.checkpoint import has_states

        return has_states(self.checkpoint)

    def claim(self, redo: bool, alignments: bool) -> None:
        """Make sure that files, `alignments` among them, can be written, and replicates kept."""
        older = f"{escape(self.prefix.name)}.replicate.*.fasta"
        claim_files([self.trees, *(self.prefix.parent.glob(older) if alignments else ())], redo)
        claim_folder(self.checkpoint)

    def forget(self) -> None:
        """Remove the replicates that are kept to go on with."""
        from plltool.io.checkpoint import remove_checkpoint

        remove_checkpoint(self.checkpoint)

    def take(self, tree: Tree) -> None:
        """One more tree; the file is whole at any time, and lacks a twentieth of the trees at most."""
        import numpy as np

        from plltool.io.newick import write_newick
        from plltool.run.results import mean_tree

        self._lines.append(write_newick(mean_tree(tree, np.ones(tree.lengths[0].size))) + "\n")
        if len(self._lines) % max(1, len(self._lines) // WRITE_SHARE) == 0:
            self.write()

    def write(self) -> None:
        """Write all trees so far."""
        from plltool.io.record import write_text

        write_text(self.trees, "".join(self._lines))

    def write_alignments(self, sequences: Sequences, data: Dataset, seed: int, number: int) -> str:
        """The resampled alignments, in FASTA; returns what to tell of them."""
        from plltool.analyses.bootstrap import resample_alignment
        from plltool.io.alignment_writer import format_fasta
        from plltool.io.record import write_text

        for k in range(number):
            rows = resample_alignment(sequences, data, seed, k)
            text = format_fasta(list(rows), [row.decode("ascii") for row in rows.values()])
            write_text(support_path(self.prefix, f"replicate.{k + 1}.fasta"), text)
        return f"resampled alignments: {support_path(self.prefix, 'replicate.N.fasta')}, N from 1 to {number}"


def describe_bootstrap(found: BootstrapResult, path: Path) -> list[str]:
    """What the replicates came to."""
    lines = ["interrupted: the replicates so far"] if found.interrupted else []
    lines += [str(found.convergence[-1])] if found.convergence else []
    return [*lines, f"bootstrap trees: {path} ({len(found.trees)} replicates, {found.seconds:.1f} s)"]


@click.command()
@alignment_argument
@click.option(
    "--replicates",
    type=NumberOfReplicates(),
    default="auto",
    show_default=True,
    metavar="N|auto|autoMRE|autoFC",
    help="How many, or a test after every 50 of whether they are enough (Pattengale et al. 2010); auto is autoMRE.",
)
@click.option("--tree", type=PATH, metavar="FILE", help="Write the supports of this tree's branches, too.")
@kinds_option(MAPPED_KINDS, "fbp", "With --tree: fbp (Felsenstein 1985), tbe (Lemoine et al. 2018), or both.")
@model_option
@brlen_option
@data_type_option
@seed_option
@outgroup_option
@constraint_option
@rapid_option
@replicate_effort_option
@write_replicates_option
@click.option("--workers", type=click.IntRange(min=1), help="Make so many replicates at the same time.")
@hardware_options
@output_options
@quiet_option
@json_progress_option
def bootstrap(
    alignment: Path,
    replicates: int | str,
    tree: Path | None,
    supports: tuple[str, ...],
    model: str | None,
    brlen: str,
    data_type: str,
    seed: int,
    outgroup: tuple[str, ...],
    constraint: Path | None,
    rapid: bool,
    replicate_effort: str | None,
    write_replicates: bool,
    workers: int | None,
    hardware: Hardware,
    output: OutputChoice,
    quiet: bool,
    json_progress: str | None,
) -> None:
    """Trees of resampled ALIGNMENTs, and how well they support a tree.

    Writes PREFIX.bootstraps.nwk, one tree a line, and with --tree the files of `plltool support`. Each replicate is a
    search of its own, parameters without values in braces are optimised for it anew; `--model run.json`, the record of
    a search, keeps those of the search. Replicate N depends on the seed and on N only.

    Example: plltool bootstrap data/primates.phy --tree run.best.nwk --model run.json --replicates 100 --prefix run
    """
    prefix = output.prefix or alignment.with_name(alignment.name + ".plltool")
    files = ReplicateFiles(prefix)
    resumes = files.resumable and not output.redo
    files.claim(output.redo or resumes, write_replicates)
    if tree is not None:
        claim_supports(prefix, output.redo, MAPPED_KINDS if resumes else ())
    import plltool
    from plltool.analyses.support import load_target
    from plltool.run.inputs import resolve_inputs
    from plltool.run.results import check_outgroup

    sequences = load_alignment(alignment, data_type)
    target = None if tree is None else load_target(tree, sequences.names)
    members = split_outgroup(outgroup, sequences.names)
    check_outgroup(members, sequences.names)
    reporter = Reporter(quiet, support_path(prefix, "bootstrap.log"), json_progress, append=resumes)
    with reporter, reporter.interrupts_wait(), tells_of_checkpoint(files.checkpoint):
        if output.redo:
            files.forget()
        data, models = resolve_inputs(sequences, model, brlen)
        found = plltool.bootstrap(
            data,
            models,
            replicates=replicates,
            seed=seed,
            rapid=rapid,
            options=plltool.replicate_options(replicate_effort, rapid),
            constraint=constraint,
            brlen=brlen,
            workers=workers,
            listener=reporter.progress,
            taken=files.take,
            checkpoint=files.checkpoint,
            **asdict(hardware),
        )
        files.write()
        lines = describe_bootstrap(found, files.trees)
        if write_replicates:
            lines.append(files.write_alignments(sequences, data, seed, len(found.trees)))
        if target is not None and found.trees:
            lines += write_supports(plltool.supports(target, found.trees, supports), prefix, members)
        if not found.interrupted:
            files.forget()
    for line in lines:
        print_line(line)
    if found.interrupted:
        click.get_current_context().exit(EXIT_INTERRUPTED)
