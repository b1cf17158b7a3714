"""Options that several commands share; nothing heavy is imported here, so that ``--help`` is instant."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from plltool import Hardware
from plltool.cli.command import DEVICE, EXPERT, OUTPUT, SEARCH, put_under
from plltool.cli.job import WORKERS
from plltool.cli.option_values import (
    PATH,
    DataType,
    Threads,
    Workers,
    WrittenPath,
    completes,
    parse_constant_sites,
    parse_memory,
    parse_radii,
    parse_share,
)
from plltool.constants import (
    COLLAPSE_LENGTH,
    DEFAULT_CODON_MODEL,
    DEFAULT_EFFORT,
    DEFAULT_GENOTYPE_MODEL,
    DEFAULT_LINKAGE,
    DEFAULT_MODEL,
    DEFAULT_MULTISTATE_MODEL,
    DEFAULT_PROTEIN_MODEL,
    DEFAULT_SEED,
    EFFORT_NAMES,
    LINKAGES,
    NAME_KINDS,
    PRECISIONS,
    START_KINDS,
    STOP_RULES,
    UNLINKED,
    WHOLE,
)

if TYPE_CHECKING:
    from plltool import EvaluationResult, SearchOptions, SearchResult, Sequences, Tree

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


@dataclass(frozen=True)
class Reading:
    """How alignments are read; None leaves names whole, with a note if they have blanks."""

    data_type: str
    names: str | None
    constant_sites: tuple[int, ...] | None = None


@dataclass(frozen=True)
class StartChoice:
    """Where a search starts: "parsimony", "random" or a tree file, and the seed for nodes that need resolving."""

    start: str
    resolve: int | None

    def load(self, alignment: Sequences, brlen: str = DEFAULT_LINKAGE) -> str | Tree:
        """The kind of start tree, or the tree from the file."""
        return self.start if self.start in START_KINDS else load_tree(self.start, alignment, brlen, self.resolve)


@dataclass(frozen=True)
class Effort:
    """How hard to search; None leaves it to the effort."""

    effort: str
    starts: int | None
    perturbations: int | None
    nstop: int | None
    radii: tuple[int, ...] | None
    epsilon: float | None
    stop: str | None

    def options(self) -> SearchOptions:
        """The same as the search knows it."""
        import plltool

        return plltool.SearchOptions(**{field.name: getattr(self, field.name) for field in fields(self)})


@dataclass(frozen=True)
class SearchTask:
    """What a search and a bootstrap have in common: the data, the model, and how the work is done and reported."""

    alignment: Path
    model: str | None
    brlen: str
    reading: Reading
    seed: int
    outgroup: tuple[str, ...]
    constraint: Path | None
    workers: int | None
    as_json: bool
    quiet: bool
    json_progress: str | None

    def settings(self, hardware: Hardware) -> dict[str, Any]:
        """Keywords of `plltool.search` and `plltool.bootstrap`."""
        return {
            "outgroup": self.outgroup or None,
            "seed": self.seed,
            "brlen": self.brlen,
            "constraint": self.constraint,
            "workers": self.workers,
            **asdict(hardware),
        }


@dataclass(frozen=True)
class Views:
    """Other ways in which the tree is written: as NEXUS, and without inner branches of at most `collapse`."""

    nexus: bool
    collapse: float


def packed(
    keyword: str, kind: type[Any], *options: Decorator, title: str = "", experts: Sequence[str] = ()
) -> Decorator:
    """Adds options to a command, which gets them as one dataclass `kind`, named `keyword`.

    With a `title` they have a section of their own in the help, except for those that are for `experts`.
    """
    names = [field.name for field in fields(kind)]

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def with_packed(**values: Any) -> Any:
            packed = kind(**{name: values.pop(name) for name in names if name in values})
            return command(**values, **{keyword: packed})

        wrapped: Callable[..., Any] = with_packed
        for option in reversed(options):
            wrapped = option(wrapped)
        return put_under(EXPERT, *experts)(put_under(title, *names)(wrapped)) if title else wrapped

    return decorate


def option_or_argument(option: str, name: str = "", **settings: Any) -> Decorator:
    """An option of a command in place of its argument NAME_argument; exactly one of them must be given."""
    name = name or option.lstrip("-")

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @click.option(option, name, type=PATH, metavar="FILE", **settings)
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
    show_default=True,
    help="Branch lengths of partitions: the same (linked), proportional, with a scaler for each partition (scaled), or"
    " separate (unlinked).",
)
_FILE_OPTIONS = (
    click.option(
        "--data-type",
        type=DataType(),
        default="auto",
        show_default=True,
        **completes(*DataType.words, files=False),
        help="Kind of data in the alignment: auto, dna, rna, protein, codon, or codon2 for another genetic code by"
        " NCBI's number; bin is binary, and morph, also called multi, has as many states as it shows.",
    ),
    click.option(
        "--names",
        type=click.Choice(NAME_KINDS),
        help="Take the whole FASTA header as the name of the taxon, or only its first word, as IQ-TREE and RAxML-NG do."
        f"  [default: {WHOLE}]",
    ),
)
gene_reading_options = packed("reading", Reading, *_FILE_OPTIONS)  # each gene is a part, without constant sites
reading_options = packed(
    "reading",
    Reading,
    *_FILE_OPTIONS,
    click.option(
        "--constant-sites",
        callback=parse_constant_sites,
        metavar="A,C,G,T",
        help="Add constant sites: how many have A, C, G and T, such as 310,190,205,295. Use it for DNA alignments that"
        " have only variable sites.",
    ),
)
seed_option = click.option(
    "--seed", type=click.IntRange(min=0), default=DEFAULT_SEED, show_default=True, help="Seed for all random choices."
)
outgroup_option = click.option(
    "--outgroup",
    multiple=True,
    metavar="NAME[,NAME]...",
    help="Taxa to root the written tree with; may be repeated.",
)
constraint_option = click.option(
    "--constraint",
    type=PATH,
    metavar="FILE",
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

json_progress_option = click.option(
    "--json-progress",
    type=WrittenPath(path_type=str),
    metavar="FILE",
    **completes(),
    help="Write progress and messages to FILE as JSON, one object a line; - is stderr, which then has nothing else but"
    " a final error.",
)

hardware_options = packed(
    "hardware",
    Hardware,
    click.option(
        "--device",
        metavar="DEVICE",
        default="auto",
        show_default=True,
        **completes("auto", "numpy", "opencl", "cpu", "gpu", "all", files=False),
        help="Device: auto, numpy, opencl, cpu, gpu, an index such as 0:0, or a part of a name that `plltool devices`"
        " shows. Several, such as 0:0,1:0, or all, divide the patterns among them.",
    ),
    click.option(
        "--precision",
        type=click.Choice(PRECISIONS),
        default="double",
        show_default=True,
        help="Precision of the arithmetic; mixed stores in single and sums in double.",
    ),
    click.option(
        "--vw", type=click.IntRange(min=1), help="Number of patterns per vector.  [default: what suits the device]"
    ),
    click.option(
        "--threads",
        type=Threads(),
        metavar="N",
        help="Maximum number of CPU cores to use, or auto for all of them.  [default: auto]",
    ),
    click.option(
        "--memory",
        callback=parse_memory,
        metavar="SIZE",
        help="Memory for conditional likelihoods, such as 2G or 500M.  [default: what the device offers]",
    ),
    click.option(
        "--share",
        callback=parse_share,
        metavar="N,N[,N]...",
        help="Shares of the patterns that several devices take, such as 0.6,0.4.  [default: measured]",
    ),
    title=DEVICE,
    experts=("precision", "vw", "share"),
)
start_options = packed(
    "start",
    StartChoice,
    click.option(
        "--start",
        default="parsimony",
        show_default=True,
        metavar="parsimony|random|FILE",
        **completes(*START_KINDS),
        help="Start tree, or how to make it. A file, Newick or NEXUS, need not have branch lengths; with --brlen"
        " unlinked it may have a tree for each partition.",
    ),
    resolve_option,
    title=SEARCH,
)
effort_options = packed(
    "effort",
    Effort,
    click.option(
        "--effort",
        type=click.Choice(EFFORT_NAMES),
        default=DEFAULT_EFFORT,
        show_default=True,
        help="How hard to search; the options below override what it sets.",
    ),
    click.option(
        "--starts", type=click.IntRange(min=1), help="Number of start trees; the best tree found from any of them wins."
    ),
    click.option(
        "--perturbations",
        type=click.IntRange(min=0),
        help="Maximum number of times to perturb the best trees and search again.",
    ),
    click.option(
        "--nstop",
        type=click.IntRange(min=1),
        help="Stop after this many perturbations in a row without a gain in lnL.",
    ),
    click.option(
        "--radius",
        "radii",
        callback=parse_radii,
        metavar="N[,N]...",
        help="Radii of the SPR stages, in branches; the next one is tried as long as a stage gains.",
    ),
    click.option(
        "--epsilon",
        type=click.FloatRange(min=0, min_open=True),
        help="End the search from a start tree when a round gains less lnL than this.",
    ),
    click.option(
        "--stop",
        type=click.Choice(STOP_RULES),
        help="When the search from a start tree ends: once a round gains less than --epsilon (epsilon), a stage hardly"
        " changes the tree (rf), or its gain is not significant (kh).",
    ),
    title=SEARCH,
)
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


model_options = (model_option, brlen_option, reading_options)  # of data, in the order of the help
progress_options = (quiet_option, json_progress_option)
search_task_options = packed(
    "task",
    SearchTask,
    alignment_argument,
    *model_options,
    seed_option,
    outgroup_option,
    constraint_option,
    workers_option("searches to run"),
    json_option,
    *progress_options,
)
view_options = packed(
    "views",
    Views,
    click.option("--nexus", is_flag=True, help="Also write the tree as NEXUS."),
    click.option(
        "--collapse",
        type=click.FloatRange(min=0),
        default=COLLAPSE_LENGTH,
        show_default=True,
        metavar="LENGTH",
        help="Leave internal branches up to this length out of the collapsed tree.",
    ),
    title=OUTPUT,
)


def describe_short_branches(result: SearchResult | EvaluationResult, views: Views) -> list[str]:
    """How many inner branches the collapsed tree lacks, if there is one."""
    _, number = result.collapsed(views.collapse)
    return [f"internal branches of (near-)zero length, at most {views.collapse:g}: {number}"] if number else []


def load_alignment(path: Path, reading: Reading) -> Sequences:
    """The alignment in a file."""
    import plltool

    return plltool.read_alignment(path, reading.data_type, names=reading.names, constant_sites=reading.constant_sites)


def load_tree(path: str | Path, alignment: Sequences, brlen: str, resolve: int | None) -> Tree:
    """The tree in a file; where lengths are unlinked, with those of each part, if the file has them."""
    import plltool

    return plltool.read_tree(path, alignment.names, resolve, brlen == UNLINKED)
