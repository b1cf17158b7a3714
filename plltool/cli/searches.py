"""Commands that search or sample trees, and choose models."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import click

import plltool
from plltool import registry
from plltool.cli.command import command
from plltool.cli.job import given_command
from plltool.cli.outputs import Outputs, write_named
from plltool.cli.task import EXIT_INTERRUPTED, Task, describe_short_branches, end
from plltool.cli.terminal import print_results
from plltool.cli.trees import draw_small
from plltool.constants import FBP, REPLICATE_KINDS, REPLICATE_STAGE, UFBOOT
from plltool.errors import InputError

WRITE_SHARE = 20  # the file of trees is written again when it has grown by one part in this many
SHOWN = 10  # models in the table on the terminal

_log = logging.getLogger("plltool")


# --- search, with supports ------------------------------------------------------------------------------------


@command
def search(task: Task) -> None:
    kinds = task.supports or (FBP,) * (task.bootstrap is not None)
    _check_supports(task, kinds)
    if task.bootstrap is None:
        task.outputs = task.outputs.without("unfinished replicates")
    task.outputs = outputs = task.outputs if UFBOOT in kinds else task.outputs.without("ufboot")
    with task.run() as (reporter, sequences):
        reporter.expect("supports" if kinds else "")
        settings = _search_settings(task) | task.keywords("partitions", "time", "profile") | {"options": task.effort}
        settings |= {"start": task.read_start(sequences), "site_lnl": task.site_lnl is not None}
        settings |= {"listener": reporter.progress, "checkpoint": outputs.checkpoints[0]}
        result = outputs.go_on_or_start_over(lambda: plltool.search(sequences, task.model, **settings))
        _write_results(result, task)
        best, interrupted, told = result, result.interrupted, list[str]()
        if kinds and not interrupted:
            reporter.expect(REPLICATE_STAGE if task.bootstrap is not None and UFBOOT in kinds else "")
            best, told, interrupted = _make_supports(result, kinds, sequences, task, reporter.progress)
        lines = []
        if best is not result:
            outputs.withdraw("tree")
            _write_results(best, task)
            lines.append(f"lnL before the ultrafast bootstrap met a better tree: {result.lnl:.6f}")
        lines += _summarise(best, task)
        if task.site_lnl:
            lines.append(f"lnL of sites: {task.site_lnl}")
        outputs.write_report()
        lines += [*told, *outputs.describe()]
        if not interrupted:
            outputs.forget_checkpoints()
        reporter.write_log(*lines, *_describe_work(result))
        if task.profile:
            for line in _describe_profile(result):
                _log.info(line)
    print_results(lines, best.to_json(given_command()) if task.as_json else None)
    if not task.as_json:
        has_supports = bool(kinds) and not interrupted
        draw_small(outputs.path("support.nwk") if has_supports else best.newick, best.tree.n_taxa)
    end(EXIT_INTERRUPTED * interrupted)


def _check_supports(task: Task, kinds: tuple[str, ...]) -> None:
    """Raise UsageError for options of replicates without replicates."""
    by_replicates = [kind for kind in kinds if kind in REPLICATE_KINDS]
    if by_replicates and task.bootstrap is None:
        raise click.UsageError(f"--supports {by_replicates[0]} needs replicates: --bootstrap N or --bootstrap auto")
    for name in ("rapid", "replicate_effort", "write_replicates"):
        if getattr(task, name) and task.bootstrap is None:
            raise click.UsageError(f"--{name.replace('_', '-')} is for --bootstrap")
    _check_replicates(task)


def _search_settings(task: Task) -> dict[str, Any]:
    """Keywords of `plltool.search` and `plltool.bootstrap`."""
    return task.keywords("outgroup", "seed", "brlen", "constraint", "workers", "hardware")


def _write_results(result: plltool.SearchResult, task: Task) -> None:
    """Write what was found; if that fails, there still is the checkpoint."""
    outputs = task.outputs
    try:
        outputs.write(result.texts(given_command(), nexus=task.nexus, collapse=task.collapse))
        outputs.remove_stale()
        if task.site_lnl:
            write_named(task.site_lnl, result.format_site_lnl(task.site_lnl))
    except InputError as error:
        raise InputError(f"{error}; the same command tries again, from {outputs.checkpoints[0]}") from error


def _make_supports(
    result: plltool.SearchResult,
    kinds: tuple[str, ...],
    sequences: plltool.Sequences,
    task: Task,
    listener: Callable[[plltool.Progress], None],
) -> tuple[plltool.SearchResult, list[str], bool]:
    """Make the supports and write their files.

    Returns the result of the search, which may be a better one than before, lines about the supports, and whether
    they were interrupted.
    """
    outputs = task.outputs
    files = ReplicateFiles(outputs)
    how = _replicate_settings(task) | task.keywords("workers", "hardware") | {"replicates": task.bootstrap}
    how |= {name.replace(".", "_"): outputs.path(name) for name in registry.SUPPORT_FOLDERS}
    made = plltool.search_supports(result, kinds, listener=listener, taken=files.take, **how)
    lines = []
    if made.bootstrap is not None:
        lines += files.finish(made.bootstrap, sequences, task)
    if made.supports.kinds:
        outputs.write(made.supports.texts())
        lines += made.supports.describe()
    return made.result, lines, made.interrupted


def _summarise(result: plltool.SearchResult, task: Task) -> list[str]:
    lines = ["interrupted: the best tree so far"] if result.interrupted else []
    lines.append(f"lnL: {result.lnl:.6f}")
    if len(result.start_lnls) > 1:
        lines.append("lnL from each start tree: " + " ".join(f"{lnl:.6f}" for lnl in result.start_lnls))
    if result.interrupted:
        lines.append(f"checkpoint: {task.outputs.checkpoints[0]}; the same command continues from there")
    lines += [*result.describe_models(), f"seconds: {result.seconds:.1f}"]
    return [*lines, *describe_short_branches(result, task.collapse)]


def _describe_profile(result: plltool.SearchResult) -> list[str]:
    found = result.profile
    if found is None:
        return [f"profile: nothing to measure: {result.reason}"]
    batches = ", ".join(f"{name} {size:.0f}" for name, size in found["mean_batch"].items())
    return [
        f"profile: kernels ran {found['device_seconds']:.2f} of {result.seconds:.2f} s, host share "
        f"{100 * found['host_share']:.1f} %, {found['launches_per_second']:.0f} launches per second",
        f"profile: mean instructions per request: {batches}",
    ]


def _describe_work(result: plltool.SearchResult) -> list[str]:
    counters = result.counters
    sizes, requests = counters["request_instructions"], counters["requests"].items()
    sized = (f"{name} {number} x {sizes[name] / number:.0f} instructions" for name, number in requests)
    return [
        f"device: {result.device}",
        f"driver: {result.driver}",
        f"layout: {result.layout}",
        f"launches: {counters['launches']}, instructions: {counters['instructions']}",
        f"bytes to the device: {counters['bytes_to_device']}, from it: {counters['bytes_from_device']}",
        f"requests: {', '.join(sized)}",
    ]


# --- bootstrap ------------------------------------------------------------------------------------------------


@command
def bootstrap(task: Task) -> None:
    _check_replicates(task)
    if task.tree is None:
        task.outputs = task.outputs.without("supports")
    outputs = task.outputs
    with task.run() as (reporter, sequences):

        def make() -> tuple[plltool.BootstrapResult, ReplicateFiles]:
            files = ReplicateFiles(outputs)
            wanted = task.keywords("replicates", "tree") | {"kinds": task.supports, **_replicate_settings(task)}
            wanted |= {"listener": reporter.progress, "taken": files.take, **_search_settings(task)}
            folder = outputs.path(registry.REPLICATE_FOLDER)
            return plltool.bootstrap(sequences, task.model, checkpoint=folder, **wanted), files

        found, files = outputs.go_on_or_start_over(make)
        lines = files.finish(found, sequences, task)
        if found.supports is not None:
            outputs.write(found.supports.texts())
            lines += found.supports.describe()
        outputs.remove_stale(*registry.SHARED["alignments"] if outputs.resumes else ())
        outputs.write_report()
        if not found.interrupted:
            outputs.finish_checkpoint()
        reporter.write_log(*lines)
    task.print(found, lines)
    end(EXIT_INTERRUPTED * found.interrupted)


def _check_replicates(task: Task) -> None:
    """Raise UsageError for resampled alignments with added sites, which may be billions."""
    if task.write_replicates and task.changes_sites:
        raise click.UsageError("--write-replicates goes without --constant-sites and --site-weights")


def _replicate_settings(task: Task) -> dict[str, Any]:
    """Keywords of `plltool.search_supports` and `plltool.bootstrap`."""
    return {"rapid": task.rapid, "options": plltool.replicate_options(task.replicate_effort, task.rapid)}


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

    def finish(self, found: plltool.BootstrapResult, sequences: plltool.Sequences, task: Task) -> list[str]:
        """Write all trees, and the alignments if they are asked for; returns lines about the replicates."""
        self.write()
        if task.write_replicates:
            sequences.refuse_table("what resampled alignments are drawn from")
            how = task.keywords("seed", "brlen") | {"replicates": len(found.trees)}
            for k, own in enumerate(plltool.resampled_alignments(sequences, task.model, **how), start=1):
                rows = [row.decode("ascii") for row in own.rows]
                self._outputs.write({f"replicate.{k}.fasta": plltool.format_fasta(own.names, rows)})
        return _describe_bootstrap(found)


def _describe_bootstrap(found: plltool.BootstrapResult) -> list[str]:
    lines = ["interrupted: the replicates so far"] if found.interrupted else []
    lines += [str(found.convergence[-1])] if found.convergence else []
    number = len(found.trees)
    kept = f", {found.n_kept} of them from an earlier run" if found.n_kept else ""
    if number and found.n_kept == number and not found.interrupted:
        kept = ", all from an earlier run: a larger number adds more, --redo starts over"
    return [*lines, f"replicates: {number} in {found.seconds:.1f} s{kept}"]


# --- genes, models, posterior ---------------------------------------------------------------------------------


@command
def genes(task: Task) -> None:
    outputs = task.outputs
    outputs.claim()
    with task.reporter() as reporter, outputs.checkpointed():
        how = task.keywords("seed", "brlen", "workers", "data_type", "names", "outgroup", "hardware")
        how |= {"options": task.effort, "quartets": task.scf, "likelihood": task.scfl, "listener": reporter.progress}
        how["checkpoint"], how["search_checkpoint"] = outputs.checkpoints
        found = outputs.go_on_or_start_over(lambda: plltool.genes(task.folder, task.model, **how))
        outputs.finish(found.texts(given_command()))
        outputs.forget_checkpoints()
        lines = [f"genes: {len(found.genes)}", f"lnL: {found.search.lnl:.6f}", *found.concordance.supports.describe()]
        lines.append(f"seconds: {found.seconds:.1f}")
        reporter.write_log(*lines)
    task.print(found, lines)


@command
def select_model(task: Task) -> None:
    if task.partitions is None and task.merge is not None:
        raise click.UsageError("--merge needs --partitions")
    if task.partitions is not None and task.ascertainment:
        raise click.UsageError("--ascertainment cannot be used with --partitions: write +ASC in the partition file")
    if task.partitions is not None and task.also:
        raise click.UsageError("--also goes without --partitions")
    task.outputs.claim()
    with task.reporter() as reporter:
        sequences = task.read_alignment(task.alignment)
        common = task.keywords("criterion", "free_rates", "max_rates", "seed", "hardware")
        common["candidates"] = registry.split_words(task.candidates)
        choice: plltool.ModelChoice | plltool.SchemeChoice
        if task.partitions is None:
            common |= task.keywords("ascertainment", "also")
            choice = plltool.select_model(sequences, task.tree, **common)
        else:
            common |= task.keywords("merge", "brlen") | {"percent": task.cluster_percent}
            choice = plltool.select_scheme(sequences, task.partitions, task.tree, **common)
        task.outputs.finish(choice.texts(given_command()))
        reporter.write_log(*choice.table().splitlines())
    task.print(choice, [*choice.table(SHOWN).splitlines(), choice.describe(), f"seconds: {choice.seconds:.1f}"])


@command
def sample(task: Task) -> None:
    more = task.keywords("clock", "dates", "calibrations", "tree_prior", "clock_priors", "workers", "outgroup")
    _advance(task, plltool.sample, taken=task.outputs.write, **more)


@command
def marginal_likelihood(task: Task) -> None:
    _advance(task, plltool.marginal_likelihood)


def _advance(task: Task, work: Callable[..., plltool.SampleResult | plltool.MarginalLikelihood], **more: Any) -> None:
    """Let chains go on from their checkpoint, and write and print what they found."""
    outputs = task.outputs
    with task.run() as (reporter, sequences):
        how = task.keywords("model", "priors", "seed", "brlen", "hardware") | more
        how |= {"options": task.settings, "start": task.read_start(sequences)}
        how |= {"listener": reporter.progress, "checkpoint": outputs.checkpoints[0]}
        found = outputs.go_on_or_start_over(lambda: work(sequences, **how))
        outputs.finish(found.texts(given_command()))
        if not found.interrupted:
            outputs.finish_checkpoint()
        lines = [*found.describe(), f"seconds: {found.seconds:.1f}"]
        reporter.write_log(*lines)
    task.print(found, lines)
    end(EXIT_INTERRUPTED * found.interrupted)
