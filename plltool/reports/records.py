"""The records that share a prefix: all that a report knows."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from plltool.errors import InputError, show_name
from plltool.io.files import read_content, read_object
from plltool.io.jplace import Jplace, parse_jplace
from plltool.io.newick import parse_nodes
from plltool.io.tree_files import find_branches
from plltool.registry import ANALYSES, BOOTSTRAPS, IN_REPORTS, name_file
from plltool.tree.rooted_nodes import RootedNodes
from plltool.tree.splits import everyone

_RUNS = sorted((own for own in IN_REPORTS if own.record), key=lambda own: len(own.own_choices))
ENDINGS = {own.name: own.record for own in _RUNS}  # of records; the first that there is tells of the data
RUN_KEYS = ("lnl", "model", "n_taxa", "n_sites", "tree", "device", "version", "warnings")
SUPPORTS, SUPPORT_KEYS = "support.json", ("kinds", "tree", "branches")
SAMPLES, SAMPLE_KEYS = "sample.json", ("posterior", "trace", "n_taxa", "n_sites", "device", "version", "warnings")
CONCORDANCE, CONCORDANCE_KEYS = "cf.json", (*SUPPORT_KEYS, "columns")
JPLACE, MUTATIONS, GENES = "jplace", "mutations.tsv", "genes.tsv"
MUTATION_COLUMNS = ("Node", "Parent", "Site", "From", "To", "Marginal", "Joint")
GENE_COLUMNS = ("Gene", "Taxa", "Sites", "Patterns", "lnL", "Model")
BOOTSTRAP_LOG = "bootstrap.log"
COMMAND = "command: "  # begins the line of a log that has the command

Record = dict[str, Any]
Row = dict[str, str]  # of a table, by the names of its columns


@dataclass(frozen=True, eq=False)
class Records:
    """The records of the runs that share a prefix."""

    prefix: Path  # start of the names of their files
    runs: dict[str, Record]  # the records by the commands that wrote them, in the order of `ENDINGS`
    supports: Record | None  # of PREFIX.support.json, None without it
    concordance: Record | None  # of PREFIX.cf.json, None without it; the evaluation in it is the last of `runs`
    samples: Record | None  # of PREFIX.sample.json, None without it
    placements: Jplace | None  # of PREFIX.jplace, None without it
    mutations: tuple[Row, ...]  # the rows of PREFIX.mutations.tsv
    genes: tuple[Row, ...]  # the rows of PREFIX.genes.tsv
    n_bootstraps: int  # number of bootstrap trees; 0 without any
    commands: tuple[str, ...]  # the command lines, as far as they are known
    left_out: tuple[str, ...] = ()  # a line for each record that does not belong to the first one

    @classmethod
    def read(cls, prefix: Path) -> Self:
        """Read what there is; InputError if a record cannot be read, or there is none.

        A record of other data than the first one is left out, and so is one of another model or tree, unless its
        analysis chooses models or trees itself.
        """
        found = {name: _read_if_there(prefix, end, RUN_KEYS, "the record of a run") for name, end in ENDINGS.items()}
        runs = {command: run for command, run in found.items() if run is not None}
        supports = _read_if_there(prefix, SUPPORTS, SUPPORT_KEYS, "supports of a tree")
        concordance = _read_if_there(prefix, CONCORDANCE, CONCORDANCE_KEYS, "concordance factors of a tree")
        if concordance is not None and "evaluation" in concordance:
            runs["concordance"] = concordance["evaluation"]
        first = next(iter(runs.values()), {})
        left_out = []
        for command, run in list(runs.items())[1:]:
            if (what := _find_difference(run, first, ANALYSES[command].own_choices)) is not None:
                left_out.append(f"the results of `{command}` are left out: they are of {what} than the rest")
                del runs[command]
        if "concordance" not in runs and concordance is not None and "evaluation" in concordance:
            concordance = None
        samples = _read_if_there(prefix, SAMPLES, SAMPLE_KEYS, "samples of a posterior distribution")
        if samples is not None and first and _data_of(samples) != _data_of(first):
            left_out.append("the results of `sample` are left out: they are of other data than the rest")
            samples = None
        placements, path = None, name_file(prefix, JPLACE)
        if path.exists() and ("place" in runs or not name_file(prefix, ENDINGS["place"]).exists()):
            placements = parse_jplace(read_content(path), str(path))
        path = name_file(prefix, BOOTSTRAPS)
        n_bootstraps = read_content(path).count(b";\n") if path.exists() else 0
        if not (runs or supports or concordance or samples or placements or n_bootstraps):
            endings = (*ENDINGS.values(), SUPPORTS, CONCORDANCE, SAMPLES, JPLACE, BOOTSTRAPS)
            expected = ", ".join(f"PREFIX.{ending}" for ending in endings)
            if prefix.is_file():
                begin = show_name(prefix.name.partition(".")[0])
                raise InputError(f"{prefix}: found a file, expected the prefix of the files of a run, such as {begin}")
            raise InputError(f"{prefix}: found no record of a run with this prefix, expected one of: {expected}")
        others = concordance or {}, samples or {}
        commands = [str(run["command"]) for run in (*runs.values(), *others) if run.get("command")]
        log = name_file(prefix, BOOTSTRAP_LOG)
        logged = read_content(log).decode("utf-8", "surrogateescape").splitlines() if log.exists() else []
        commands += [line.removeprefix(COMMAND) for line in logged if line.startswith(COMMAND)][-1:]  # the last one
        tables = (
            _read_rows(name_file(prefix, MUTATIONS), MUTATION_COLUMNS) if "ancestral" in runs else (),
            _read_rows(name_file(prefix, GENES), GENE_COLUMNS),
        )
        of_trees = (supports, concordance, samples, placements)
        return cls(prefix, runs, *of_trees, *tables, n_bootstraps, tuple(dict.fromkeys(commands)), tuple(left_out))

    @property
    def main(self) -> Record | None:
        """The record that tells of the tree and the model: the first there is."""
        return next(iter(self.runs.values()), None)

    @property
    def all_runs(self) -> dict[str, Record]:
        """The records that tell of data, device and warnings, by the commands; the first one is the main one."""
        return self.runs if self.samples is None else self.runs | {"sample": self.samples}

    @property
    def supports_are_of_main_tree(self) -> bool:
        """Whether there are supports, and the tree of the main record is theirs."""
        if self.supports is None:
            return False
        return self.main is None or _topology(self.supports["tree"]) == _topology(self.main["tree"])

    @property
    def tree(self) -> RootedNodes | None:
        """The tree of the main record, with supports if they belong to it; None without a tree."""
        main = self.main
        if self.supports is not None and self.supports_are_of_main_tree:
            return parse_nodes(self.supports["tree"], SUPPORTS)
        return None if main is None else parse_nodes(main["tree"], "the record")

    @property
    def model_choice(self) -> Record | None:
        """How the model was chosen, from `select-model` or from a search that chose it."""
        own = self.runs.get("search", {}).get("model_choice") or self.runs.get("select-model", {}).get("model_choice")
        return own if isinstance(own, dict) else None

    @property
    def chosen_model_is_used(self) -> bool:
        """Whether the main record is of the model that was chosen, or names no model."""
        choice, used = self.model_choice or {}, _models_of(self.main or {})
        best = [part["best"] for part in choice["parts"]] if "parts" in choice else [choice.get("best", "")]
        return not used or set(map(_strip_values, best)) == set(used)


def _read_if_there(prefix: Path, ending: str, keys: tuple[str, ...], what: str) -> Record | None:
    path = name_file(prefix, ending)
    return read_object(path, keys, what) if path.exists() else None


def _read_rows(path: Path, columns: tuple[str, ...]) -> tuple[Row, ...]:
    """The rows of a table that plltool wrote, none if there is no file; InputError if it lacks one of the columns."""
    if not path.exists():
        return ()
    text = read_content(path).decode("utf-8", "surrogateescape").rstrip("\n")
    header, *lines = (line.split("\t") for line in text.split("\n"))
    if missing := [column for column in columns if column not in header]:
        raise InputError(f"{path}: line 1: found no column {', '.join(missing)}, expected {', '.join(columns)}")
    for number, fields in enumerate(lines, start=2):
        if len(fields) != len(header):
            raise InputError(f"{path}: line {number}: found {len(fields)} fields, expected {len(header)}")
    return tuple(dict(zip(header, fields, strict=True)) for fields in lines)


def _find_difference(run: Record, first: Record, own_choices: Sequence[str]) -> str | None:
    """What the record of a run does not share with the first one: other data, another model or another tree."""
    if _data_of(run) != _data_of(first):
        return "other data"
    if "model" not in own_choices and _models_of(run) != _models_of(first):
        names = (" and ".join(dict.fromkeys(_models_of(record))) for record in (run, first))
        return "another model ({} instead of {})".format(*names)
    if "tree" not in own_choices and _topology(run["tree"]) != _topology(first["tree"]):
        return "another tree"
    return None


def _data_of(run: Record) -> tuple[Any, ...]:
    """What tells alignments apart."""
    return run["n_taxa"], run["n_sites"], run.get("data", {}).get("digest")


def _models_of(run: Record) -> list[str]:
    return [_strip_values(str(part["parameters"]["spec"])) for part in run.get("parts", ())]


def _strip_values(spec: str) -> str:
    """A model string without values, scalers, and what tells given values from optimised ones (+FU, +IO)."""
    return re.sub(r"\+(F([CEOQU]|[13]X4)?|BU?)(?=\+|$)|(?<=\+I)[COU](?=\+|$)", "", drop_braces(spec))


def drop_braces(text: str) -> str:
    """A text without what stands in braces, such as the values of a model string."""
    while (shorter := re.sub(r"\{[^{}]*\}", "", text)) != text:  # the innermost ones first
        text = shorter
    return text


def _topology(newick: str) -> tuple[dict[str, int], set[int]]:
    """The taxa and the splits of a tree: equal trees have equal ones."""
    nodes = parse_nodes(newick, "a record")
    numbers = number_taxa(nodes)
    return numbers, set(splits_above(nodes, numbers).values())


def number_taxa(nodes: RootedNodes) -> dict[str, int]:
    """The numbers of taxa in splits, in the order of their names."""
    return {name: number for number, name in enumerate(sorted(nodes.labels[tip] for tip in nodes.tips))}


def splits_above(nodes: RootedNodes, numbers: Mapping[str, int]) -> dict[int, int]:
    """The split of the branch above each node, see `plltool.tree.splits`."""
    return dict(find_branches(nodes, {tip: numbers[nodes.labels[tip]] for tip in nodes.tips}))


def split_of(taxa: Sequence[str], numbers: Mapping[str, int]) -> int:
    """The split with these taxa on one side."""
    one = sum(1 << numbers[name] for name in taxa)
    return one ^ everyone(len(numbers)) if one & 1 else one
