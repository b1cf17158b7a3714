"""Every analysis and tool, declared once in `registry.txt`: its command, its files, and its part of a report.

The command line with its help and `--redo`, ranks of MPI, reports, manual pages and tests of the documentation read
`ANALYSES`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from glob import escape
from pathlib import Path

from plltool.constants import SUPPORT_KINDS

ANY_NUMBER = "N"  # in an ending: a number from 1 on
ANY_KIND = "KIND"  # in an ending: each kind of support
LOG, CHECKPOINT = "log", "checkpoint"
BEFORE_TREE, AFTER_TREE, AFTER_MODEL = "before-tree", "after-tree", "after-model"  # places in a report


def name_file(prefix: Path, ending: str) -> Path:
    """PREFIX.ENDING."""
    return prefix.parent / f"{prefix.name}.{ending}"


@dataclass
class OutputFile:
    """A file that a command writes, PREFIX.ENDING."""

    ending: str  # the end of its name; N stands for any number, KIND for each kind of support
    what: str  # what it holds, a noun
    when: str = ""  # when it is written, or what else to know; empty if it always is

    def __post_init__(self) -> None:
        last = self.ending.split(".")[-1]
        self.is_log, self.is_checkpoint = last == LOG, last == CHECKPOINT  # a checkpoint is a folder with a run's state
        self.help = f"{self.what}, {self.when}" if self.when else self.what

    def present(self, prefix: Path) -> list[Path]:
        """The paths of this file that may exist: all kinds, and the numbers that there are."""
        if ANY_KIND in self.ending:
            return [name_file(prefix, self.ending.replace(ANY_KIND, kind)) for kind in SUPPORT_KINDS]
        if ANY_NUMBER not in self.ending:
            return [name_file(prefix, self.ending)]
        pattern = self.ending.replace(ANY_NUMBER, "[0-9]*")
        return sorted(prefix.parent.glob(f"{escape(prefix.name)}.{pattern}"))


Table = tuple[OutputFile, ...]


@dataclass(frozen=True)
class Analysis:
    """An analysis or a tool: a command, with a module of its name in `plltool.cli`."""

    name: str
    group: str  # the title above it in the help
    summary: str  # a line of the help
    files: Table  # all that it may write with a prefix
    examples: tuple[str, ...]  # command lines
    results: tuple[str, ...]  # the public classes of its results, whose records it writes or prints with --json
    record: str  # ending of the record that reports read, if it has the keys of a run
    own_choices: tuple[str, ...]  # what this record need not share with others of a prefix, "model" or "tree"
    section: str  # MODULE.NAME: a module of `plltool.reports` has a function of this name for its sections and methods
    needs_run: bool  # whether that needs the record of its run
    order: int  # counts its records, sections and sentences in reports
    where: str  # where its sections stand
    by_ranks: bool  # whether the ranks of an MPI job share its likelihoods
    by_workers: bool  # whether it has --workers


def split_words(given: str | Iterable[str]) -> tuple[str, ...]:
    """The words of a text with commas, or given as they are."""
    return tuple(filter(None, map(str.strip, given.split(",")))) if isinstance(given, str) else tuple(given)


def _read_declarations() -> tuple[dict[str, Table], dict[str, Analysis]]:
    """The tables of files that several commands write, by their names, and the commands; `registry.txt` says how."""
    shared: dict[str, Table] = {}
    analyses: dict[str, Analysis] = {}
    group = ""
    _, *blocks = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").split("\n\n")
    for head, *lines in map(str.splitlines, blocks):
        files: list[OutputFile] = []
        examples: list[str] = []
        given: dict[str, str] = {}
        for line in lines:
            sign, _, rest = line.partition(" ")
            if sign == "=":
                given = dict(word.partition("=")[::2] for word in rest.split())
            elif sign == "$":
                examples.append(rest)
            else:
                files += shared[rest] if sign == "+" else [OutputFile(*line.split(" | "))]
        sign, _, name = head.partition(" ")
        if sign == "==":
            group = name
        elif sign == "+":
            shared[name] = tuple(files)
        else:
            name, summary = head.split(" | ")
            analyses[name] = Analysis(
                *(name, group, summary, tuple(files), tuple(examples)),
                results=split_words(given.get("result", "")),
                record=given.get("record", ""),
                own_choices=split_words(given.get("own_choices", "")),
                section=given.get("section", ""),
                needs_run="needs_run" in given,
                order=int(given.get("order", 0)),
                where=given.get("where", AFTER_TREE),
                by_ranks="by_ranks" in given,
                by_workers="by_workers" in given,
            )
    return shared, analyses


SHARED, ANALYSES = _read_declarations()
IN_REPORTS = sorted(ANALYSES.values(), key=lambda declared: declared.order)
BOOTSTRAPS = "bootstraps.nwk"
SUPPORT_FOLDERS = "bootstrap.checkpoint", "ufboot.checkpoint", "adopted.checkpoint"
REPLICATE_FOLDER = SUPPORT_FOLDERS[0]
_CPUS = ("", "-SSE3", "-AVX", "-AVX2")  # at the ends of names of RAxML's commands
FRONT_ENDS = {  # programs whose options and files `plltool.front_ends` has, and the names of their commands
    **{"iqtree": ("iqtree", "iqtree2", "iqtree3"), "raxml-ng": ("raxml-ng",), "epa-ng": ("epa-ng",)},
    "FastTree": ("FastTree", "fasttree", "FastTreeMP"),
    "raxmlHPC": tuple(f"raxmlHPC{threads}{cpu}" for threads in ("", "-PTHREADS") for cpu in _CPUS),
}
