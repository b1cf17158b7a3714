"""Options that several commands share; nothing heavy is imported here, so that ``--help`` is instant."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, cast

import click

import plltool
from plltool import Hardware, SearchOptions
from plltool.cli.command import DEVICE, EXPERT, OUTPUT, SEARCH, given_command, put_under
from plltool.cli.job import WORKERS
from plltool.cli.option_values import (
    PATH,
    DataType,
    Threads,
    Workers,
    WrittenPath,
    completes,
    parse_constant_sites,
)
from plltool.cli.outputs import Outputs
from plltool.cli.reporting import Reporter
from plltool.cli.terminal import print_results
from plltool.constants import (
    COLLAPSE_LENGTH,
    DEFAULT_CODON_MODEL,
    DEFAULT_GENOTYPE_MODEL,
    DEFAULT_LINKAGE,
    DEFAULT_MODEL,
    DEFAULT_MULTISTATE_MODEL,
    DEFAULT_PROTEIN_MODEL,
    DEFAULT_SEED,
    LINKAGES,
    NAME_KINDS,
    START_KINDS,
    UNLINKED,
    WHOLE,
)
from plltool.errors import InputError

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
BOUNDS = ("min", "max", "min_open", "max_open")  # of click's ranges of numbers


def option(*names: str, **settings: Any) -> Any:
    """A field of a dataclass for `packed`, which an option of click fills; it is called --FIELD without `names`."""
    return field(metadata={"names": names, **settings})


def filled_by(decorator: Decorator) -> Any:
    """A field of a dataclass for `packed`, which an argument or options that several commands share fill."""
    return field(metadata={"decorator": decorator})


def packed(keyword: str, kind: type[Any], title: str = "", **more: Mapping[str, Any]) -> Decorator:
    """Adds an option for each field of the dataclass `kind` to a command, which gets them as one, named `keyword`.

    Fields are made by `option`, `filled_by` or `plltool.settings.setting`. With a `title` the options have a section of
    their own in the help, except for those that are for experts. `more` has further settings of click, by fields.
    """
    made = {row.name: _make_option(row, more.get(row.name, {})) for row in fields(kind) if row.metadata}
    experts = [row.name for row in fields(kind) if row.metadata.get("expert")]

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def with_packed(**values: Any) -> Any:
            given = {name: values.pop(name) for name in made}
            return command(**values, **{keyword: kind(**given)})

        wrapped: Callable[..., Any] = with_packed
        for make in reversed(made.values()):
            wrapped = make(wrapped)
        return put_under(EXPERT, *experts)(put_under(title, *made)(wrapped)) if title else wrapped

    return decorate


def _make_option(row: Field[Any], more: Mapping[str, Any]) -> Decorator:
    settings = {**row.metadata, **more}
    if "decorator" in settings:
        return cast("Decorator", settings["decorator"])
    names = settings.pop("names") or (f"--{row.name.replace('_', '-')}",)
    settings.pop("expert", None)
    if row.default is not MISSING:
        settings["default"] = row.default
    if parse := settings.pop("parse", None):
        settings["callback"] = _parsed_by(parse)
    bounds = {name: settings.pop(name) for name in BOUNDS if name in settings}
    if bounds:
        settings["type"] = (click.IntRange if str(row.type).startswith("int") else click.FloatRange)(**bounds)
    if choices := settings.pop("choices", ()):
        settings["type"] = click.Choice(choices, case_sensitive=settings.pop("case_sensitive", True))
    if row.type == "bool" and "/" not in names[0]:
        settings["is_flag"] = True
    return click.option(*names, row.name, **settings)


def _parsed_by(parse: Callable[[str], Any]) -> Callable[[click.Context, click.Parameter, str | None], Any]:
    """A callback of an option; an InputError becomes one of the option, whose name it need not repeat."""

    def callback(_ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
        try:
            return None if value is None else parse(value)
        except InputError as error:
            raise click.BadParameter(str(error).removeprefix(f"{param.name}: ")) from error

    return callback


def keywords(task: Any, *names: str) -> dict[str, Any]:
    """The fields of these names as keywords of a function of the library, which calls them so."""
    return {name: getattr(task, name) for name in names}


def option_or_argument(option: str, name: str = "", **settings: Any) -> Decorator:
    """An option of a command in place of its argument NAME_argument; exactly one of them must be given."""
    name = name or option.lstrip("-")

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @click.option(option, name, type=PATH, **settings)
        @functools.wraps(command)
        def with_one(**values: Any) -> Any:
            ctx = click.get_current_context()
            by_option, by_argument = values.pop(name), values.pop(f"{name}_argument")
            if by_option and by_argument:
                first = by_argument if isinstance(by_argument, Path) else by_argument[0]
                raise click.UsageError(f"found {first} as an argument and also {option}, expected only one", ctx)
            if not (by_option or by_argument):
                raise click.UsageError(f"missing {option.lstrip('-').upper()}, as an argument or by {option}", ctx)
            ctx.params[name] = by_option or by_argument
            return command(**values, **{name: ctx.params[name]})

        return with_one

    return decorate


alignment_argument = click.argument("alignment", type=PATH, metavar="ALIGNMENT")
model_option = click.option(
    "--model",
    metavar="MODEL|FILE",
    **completes(),
    help="Substitution model, such as HKY+FO+G4, or a file: the JSON record of a run, a partition file of RAxML or"
    " RAxML-NG, or NEXUS with charsets, which gives each partition of the alignment its own model."
    f"  [default: {DEFAULT_MODEL} for DNA, {DEFAULT_PROTEIN_MODEL} for proteins, {DEFAULT_CODON_MODEL} for codons,"
    f" {DEFAULT_MULTISTATE_MODEL} for morphology, {DEFAULT_GENOTYPE_MODEL} for VCF files]",
)
brlen_option = click.option(
    "--brlen",
    type=click.Choice(LINKAGES),
    default=DEFAULT_LINKAGE,
    help="Branch lengths of partitions: the same (linked), proportional, with a scaler for each partition (scaled), or"
    " separate (unlinked).",
)


@dataclass(frozen=True, kw_only=True)
class FileReading:
    """How files of alignments are read; None leaves names whole, with a note if they have blanks."""

    data_type: str = option(
        type=DataType(),
        default="auto",
        **completes(*DataType.words, files=False),
        help="Kind of data in the alignment: auto, dna, rna, protein, codon, or codon2 for another genetic code by"
        " NCBI's number; bin is binary, and morph, also called multi, has as many states as it shows.",
    )
    names: str | None = option(
        choices=NAME_KINDS,
        help="Take the whole FASTA header as the name of the taxon, or only its first word, as IQ-TREE and RAxML-NG do."
        f"  [default: {WHOLE}]",
    )


@dataclass(frozen=True, kw_only=True)
class Reading(FileReading):
    """The same, with constant sites and weights of columns."""

    constant_sites: tuple[int, ...] | None = option(
        parse=parse_constant_sites,
        metavar="A,C,G,T",
        help="Add constant sites: how many have A, C, G and T, such as 310,190,205,295. Use it for DNA alignments that"
        " have only variable sites.",
    )
    site_weights: Path | None = option(
        type=PATH,
        metavar="FILE",
        help="File with a whole number for each column, between blanks or line ends: how often the column counts.",
    )

    @property
    def changes_sites(self) -> bool:
        """Whether columns stand for other numbers of sites than one."""
        return self.constant_sites is not None or self.site_weights is not None


file_reading_options, reading_options = packed("reading", FileReading), packed("reading", Reading)
seed_option = click.option(
    "--seed", type=click.IntRange(min=0), default=DEFAULT_SEED, help="Seed for all random choices."
)
outgroup_option = click.option(
    "--outgroup", multiple=True, metavar="NAME[,NAME]...", help="Taxa to root the written tree with; may be repeated."
)
constraint_option = click.option(
    "--constraint",
    type=PATH,
    help="File with a tree of all or some taxa, Newick or NEXUS, such as ((Homo,Pan),Gorilla,Pongo,Macaca); every tree"
    " of the search contains all its splits. It may have multifurcations; taxa that it lacks go anywhere.",
)
resolve_option = click.option(
    "--resolve",
    type=click.IntRange(min=0),
    metavar="SEED",
    help="Resolve multifurcations of a tree file at random, with this seed.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
quiet_option = click.option("--quiet", is_flag=True, help="Print only warnings and errors on stderr.")


@dataclass(frozen=True, kw_only=True)
class Telling:
    """How a command tells of its work."""

    as_json: bool = filled_by(json_option)
    quiet: bool = filled_by(quiet_option)
    json_progress: str | None = option(
        type=WrittenPath(path_type=str),
        **completes(),
        help="Write progress and messages to FILE as JSON, one object a line; - is stderr, which then has nothing else"
        " but a final error.",
    )

    def reporter(self, outputs: Outputs) -> Reporter:
        """What reports the progress, and keeps the log among the `outputs`."""
        return Reporter(self.quiet, outputs.log, self.json_progress, append=outputs.resumes)

    def print(self, found: Any, lines: Sequence[str]) -> None:
        """Print the record of a result as JSON, or lines for people."""
        print_results(lines, found.to_json(given_command()) if self.as_json else None)


telling_options = packed("telling", Telling)
hardware_options = packed(
    "hardware",
    Hardware,
    DEVICE,
    device=completes("auto", "numpy", "opencl", "cpu", "gpu", "all", files=False),
    threads={"type": Threads()},
)


@dataclass(frozen=True, kw_only=True)
class StartChoice:
    """Where a search starts: "parsimony", "random" or a tree file, and the seed for nodes that need resolving."""

    start: str = option(
        default="parsimony",
        metavar="parsimony|random|FILE",
        **completes(*START_KINDS),
        help="Start tree, or how to make it. A file, Newick or NEXUS, need not have branch lengths; with --brlen"
        " unlinked it may have a tree for each partition.",
    )
    resolve: int | None = filled_by(resolve_option)

    def load(self, alignment: plltool.Sequences, brlen: str = DEFAULT_LINKAGE) -> str | plltool.Tree:
        """The kind of start tree, or the tree from the file."""
        return self.start if self.start in START_KINDS else load_tree(self.start, alignment, brlen, self.resolve)


start_options = packed("start", StartChoice, SEARCH)
effort_options = packed("effort", SearchOptions, SEARCH)
_TREE_HELP = (
    "Tree file, Newick or NEXUS, with or without branch lengths; with --brlen unlinked it may have a tree for each"
    " partition."
)
reference_tree_option = click.option("--tree", required=True, type=PATH, help=_TREE_HELP)
tree_option = option_or_argument("--tree", help=f"{_TREE_HELP} It may also be an argument.")
fixed_option = click.option(
    "--fixed", is_flag=True, help="Use branch lengths and parameters as they are given; optimise nothing."
)


def workers_option(what: str) -> Decorator:
    """--workers, the number of `what`, such as "genes to search"."""
    return click.option(
        WORKERS,
        type=Workers(),
        metavar=Workers.name,
        help=f"Number of {what} in parallel, each in a process with its share of the threads; mpi: one on each rank of"
        " an MPI job but the first.  [default: as many as threads, on a GPU 1]",
    )


@dataclass(frozen=True, kw_only=True)
class SearchTask:
    """What a search and a bootstrap have in common: the data, the model, and how the work is done and reported."""

    alignment: Path = filled_by(alignment_argument)
    model: str | None = filled_by(model_option)
    brlen: str = filled_by(brlen_option)
    reading: Reading = filled_by(reading_options)
    seed: int = filled_by(seed_option)
    outgroup: tuple[str, ...] = filled_by(outgroup_option)
    constraint: Path | None = filled_by(constraint_option)
    workers: int | None = filled_by(workers_option("searches to run"))
    telling: Telling = filled_by(telling_options)

    def settings(self, hardware: Hardware) -> dict[str, Any]:
        """Keywords of `plltool.search` and `plltool.bootstrap`."""
        own = keywords(self, "seed", "brlen", "constraint", "workers")
        return {"outgroup": self.outgroup or None, **own, **asdict(hardware)}


search_task_options = packed("task", SearchTask)


@dataclass(frozen=True, kw_only=True)
class Views:
    """Other ways in which the tree is written: as NEXUS, and without inner branches of at most `collapse`."""

    nexus: bool = option(help="Also write the tree as NEXUS.")
    collapse: float = option(
        min=0,
        default=COLLAPSE_LENGTH,
        metavar="LENGTH",
        help="Leave internal branches up to this length out of the collapsed tree.",
    )


view_options = packed("views", Views, OUTPUT)


def describe_short_branches(result: plltool.SearchResult | plltool.EvaluationResult, views: Views) -> list[str]:
    """How many inner branches the collapsed tree lacks, if there is one."""
    _, number = result.collapsed(views.collapse)
    return [f"internal branches of (near-)zero length, at most {views.collapse:g}: {number}"] if number else []


def load_alignment(path: Path, reading: Reading) -> plltool.Sequences:
    how = keywords(reading, "names", "constant_sites", "site_weights")
    return plltool.read_alignment(path, reading.data_type, **how)


def load_tree(path: str | Path, alignment: plltool.Sequences, brlen: str, resolve: int | None) -> plltool.Tree:
    """The tree in a file; where lengths are unlinked, with the lengths of each part, if the file has them."""
    return plltool.read_tree(path, alignment.names, resolve, brlen == UNLINKED)
