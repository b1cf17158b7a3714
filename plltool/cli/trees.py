"""Commands on given trees, and on files of trees."""

import json
import shutil
import sys
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import click

import plltool
from plltool.cli.command import Command, Group, command
from plltool.cli.job import given_command
from plltool.cli.options import read_options
from plltool.cli.outputs import write_or_print
from plltool.cli.reporting import Reporter
from plltool.cli.task import Task, describe_fit, describe_short_branches
from plltool.cli.terminal import print_line, print_results
from plltool.constants import DRAWING_WIDTH
from plltool.errors import count

SHOWN_TAXA = 40  # a search on a terminal ends with a drawing of its tree if it has at most this many taxa


# --- the likelihood of a tree, and what follows from it -------------------------------------------------------


@command
def evaluate(task: Task) -> None:
    own = {name: bool(getattr(task, name)) for name in ("site_lnl", "site_rates", "pmsf", "length_errors", "root_scan")}
    result = task.analyse_tree(
        plltool.evaluate,
        named=(
            (task.site_lnl, lambda result: result.format_site_lnl(task.site_lnl)),
            (task.site_rates, lambda result: result.format_site_rates()),
            (task.pmsf, lambda result: result.format_pmsf()),
        ),
        views=task.keywords("nexus", "collapse"),
        site_frequencies=task.site_frequencies,
        **own,
    )
    lines = describe_fit(result)
    if n_lacking := result.tree.n_edges - len(result.tree.own_branches):
        lacking = count(n_lacking, "branch", "branches")
        lines.append(f"nodes of more than three branches stay: the tree lacks {lacking}")
    lines += [f"root: lnL {place.lnl:.6f}  {', '.join(place.taxa)} | others" for place in result.root_places or ()]
    task.print(result, [*lines, *describe_short_branches(result, task.collapse)], result.newick)


@command
def alrt(task: Task) -> None:
    result = task.analyse_tree(plltool.alrt, kinds=task.supports, **task.keywords("replicates", "seed"))
    lines = [*describe_fit(result), f"supports: {'/'.join(task.supports)}"]
    task.print(result, lines, result.supports.newick())


@command
def test(task: Task) -> None:
    result = task.analyse_tree(
        plltool.topology_tests,
        several=True,
        named=[(task.site_lnl, lambda result: result.format_site_lnl())],
        **task.keywords("replicates", "seed"),
    )
    model_tree = [] if result.model_tree is None else [f"model optimised on: tree {result.model_tree + 1}"]
    task.print(result, [*result.describe_models(), *model_tree, *result.format_table()])


@command
def ancestral(task: Task) -> None:
    result = task.analyse_tree(plltool.ancestral_states)
    task.print(result, describe_fit(result))


@command
def date(task: Task) -> None:
    names = "seed dates name_column date_column root clock_rate clock_error coalescent relaxed lengths"
    result = task.analyse_tree(plltool.date, **task.keywords(*names.split()))
    task.print(result, [*describe_fit(result), *result.describe_dates()])


@command
def place(task: Task) -> None:
    names = "queries", "raxml_blo", "filter_acc_lwr", "filter_min_lwr", "filter_max", "graft", "names"
    heuristic = 1.0 if task.no_heur else task.dyn_heur
    result = task.analyse_tree(plltool.place, heuristic=heuristic, **task.keywords(*names))
    task.print(result, [*describe_fit(result), *result.describe_placements()])


# --- a tree and others ----------------------------------------------------------------------------------------


@command
def concordance(task: Task) -> None:
    _sort_files(task)
    if task.alignment is None and not task.gcf:
        raise click.UsageError("found neither gene trees nor an alignment, expected at least one")
    if task.alignment is None and task.scfl:
        raise click.UsageError("--scfl needs an alignment")
    task.outputs.claim()
    with task.reporter() as reporter:
        data = None if task.alignment is None else task.read_alignment(task.alignment)
        how = task.keywords("model", "seed", "brlen", "fixed", "outgroup", "hardware")
        how |= {"quartets": task.scf, "likelihood": task.scfl, "listener": reporter.progress}
        found = plltool.concordance(task.tree, list(task.gcf) or None, data, **how)
        task.outputs.finish(found.texts(given_command()))
    task.print(found, found.supports.describe())


def _sort_files(task: Task) -> None:
    """Tell by the options given what the arguments FILES are: a tree and gene trees, or beside --tree the alignment."""
    rest, what = task.files, "alignment"
    if task.tree is None:
        if not rest:
            raise click.UsageError("missing TREE, as an argument or by --tree")
        task.tree, rest, what = rest[0], rest[1:], "gcf"
    given = getattr(task, what)
    if rest and (given or (len(rest) > 1 and what == "alignment")):
        beside = f"--{what}" if given else "--tree and an alignment"
        raise click.UsageError(f"found {rest[-1]} as an argument and also {beside}, expected only one")
    if rest:
        setattr(task, what, rest[0] if what == "alignment" else rest)


@command
def support(task: Task) -> None:
    task.outputs.claim()
    with Reporter(quiet=False):
        found = plltool.supports(task.tree, task.replicates, task.supports, task.outgroup)
        task.outputs.finish(found.texts())
    task.print(found, found.describe())


# --- pictures and files of trees ------------------------------------------------------------------------------


@command
def show(task: Task) -> None:
    kind = task.output.suffix.lower().removeprefix(".") if task.output else ""
    words = {task.output: kind, task.svg: "svg", task.pdf: "pdf", task.png: "png"}
    named = {path: word for path, word in words.items() if path}
    for option, given in (("--unrooted", task.unrooted), ("--latest", task.latest is not None)):
        if given and not named:
            raise click.UsageError(f"{option} is for --output, --svg, --pdf and --png")
    if task.unrooted and task.latest is not None:
        raise click.UsageError("--latest is for a tree with a root at the left, not for --unrooted")
    task.claim_named()
    if task.output and kind not in ("svg", "pdf", "png"):
        raise click.UsageError(f"--output: found {task.output}, expected a name that ends in .svg, .pdf or .png")
    with Reporter(quiet=False):
        drawing = plltool.show(task.tree, **task.keywords("root", "outgroup", "ladderize", "latest", "node_names"))
        for path, word in named.items():
            write = plltool.write_text if word == "svg" else plltool.write_bytes
            write(path, getattr(drawing, word)(task.width or DRAWING_WIDTH, task.supports, task.unrooted))
    print_results([f"picture: {path}" for path in named])
    if not named:
        columns = task.width or shutil.get_terminal_size().columns
        text = drawing.text(columns, task.supports, task.ascii_only or not _prints_lines())
        print_line(text.removesuffix("\n"))


def draw_small(tree: Path | str, n_taxa: int) -> None:
    """On a terminal draw a tree, a file or Newick text, if it has at most SHOWN_TAXA taxa."""
    if n_taxa <= SHOWN_TAXA and sys.stdout.isatty():
        columns = shutil.get_terminal_size().columns
        print_line("\n" + plltool.show(tree).text(columns, ascii_only=not _prints_lines()).removesuffix("\n"))


def _prints_lines() -> bool:
    """Whether stdout can show the lines that boxes are drawn with."""
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


@command
def simulate(task: Task) -> None:
    task.claim_named()
    with Reporter(quiet=False):
        made = plltool.simulate(str(task.tree), task.model, task.sites, task.seed)
    write_or_print(made.format_alignment(task.output or ""), task.output, "alignment")


_OWN = read_options("trees")
trees = Group("trees", short_help=_OWN.summary, help=_OWN.help.rstrip())


def _written(what: str) -> Callable[[Callable[[Task], str]], Command]:
    """A command of `trees` that returns the text which is written or printed, and `what` it has."""

    def decorate(function: Callable[[Task], str]) -> Command:
        def write(task: Task) -> None:
            task.claim_named()
            write_or_print(function(task), task.output, what)

        trees.add_command(made := Command(f"trees {function.__name__}", write))
        return made

    return decorate


@_written("distances")
def distances(task: Task) -> str:
    if task.relative and task.kind != "rf":
        raise click.UsageError("--relative is for --kind rf")
    with Reporter(quiet=True):
        trees = plltool.read_tree_set(task.files)
        matrix = plltool.tree_distances(trees, task.kind, task.relative).tolist()
    labels = trees.labels
    if task.as_json:
        return json.dumps(task.keywords("kind", "relative") | {"trees": labels, "distances": matrix}) + "\n"
    rows = [["tree", "other", "distance"]] if task.pairs else [["tree", *labels]]
    if task.pairs:
        rows += [[labels[a], labels[b], f"{matrix[a][b]:.9g}"] for a, b in combinations(range(len(labels)), 2)]
    else:
        rows += [[label, *(f"{value:.9g}" for value in row)] for label, row in zip(labels, matrix, strict=True)]
    return "".join("\t".join(row) + "\n" for row in rows)


@_written("consensus")
def consensus(task: Task) -> str:
    with Reporter(quiet=True):
        trees = plltool.read_tree_set(task.files, burnin=task.burnin)
        return plltool.write_consensus(plltool.consensus(trees, task.rule, task.threshold)) + "\n"


@_written("trees")
def root(task: Task) -> str:
    if not (task.root or task.outgroup):
        raise click.UsageError("expected --root or --outgroup")
    with Reporter(quiet=False):
        rooted = [newick for path in task.files for newick in plltool.root_trees(path, task.root, task.outgroup)]
    return "".join(f"{newick}\n" for newick in rooted)
