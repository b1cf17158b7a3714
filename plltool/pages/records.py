"""The records that share a prefix: all that a report knows."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plltool.errors import InputError
from plltool.io.content import read_content
from plltool.io.newick import parse_nodes
from plltool.io.record import read_object
from plltool.tree.rooted_nodes import RootedNodes

ENDINGS = {  # by the command that writes it, the ending of its record; the first that there is tells of the data
    "search": "json",
    "evaluate": "evaluate.json",
    "alrt": "alrt.json",
    "date": "date.json",
    "test": "test.json",
    "select-model": "select-model.json",
}
RUN_KEYS = ("lnl", "model", "n_taxa", "n_sites", "tree", "device", "version", "warnings")
SUPPORTS, SUPPORT_KEYS = "support.json", ("kinds", "tree", "branches")
BOOTSTRAPS, BOOTSTRAP_LOG = "bootstraps.nwk", "bootstrap.log"
COMMAND = "command: "  # begins the line of a log that has the command
_HASH_BITS = 128

Record = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Records:
    """The records of the runs that share a prefix.

    Attributes
    ----------
    prefix : start of the names of their files
    runs : the records by the commands that wrote them, in the order of `ENDINGS`
    supports : of PREFIX.support.json, None without it
    n_bootstraps : number of bootstrap trees; 0 without any
    commands : the command lines, as far as they are known
    """

    prefix: Path
    runs: dict[str, Record]
    supports: Record | None
    n_bootstraps: int
    commands: tuple[str, ...]

    @classmethod
    def read(cls, prefix: Path) -> Records:
        """Read what there is; InputError if a record cannot be read, or there is none."""
        runs = {}
        for command, ending in ENDINGS.items():
            path = name_file(prefix, ending)
            if path.exists():
                runs[command] = read_object(path, RUN_KEYS, "the record of a run")
        path, supports = name_file(prefix, SUPPORTS), None
        if path.exists():
            supports = read_object(path, SUPPORT_KEYS, "supports of a tree")
        path, n_bootstraps = name_file(prefix, BOOTSTRAPS), 0
        if path.exists():
            n_bootstraps = read_content(path).count(b";\n")
        if not (runs or supports or n_bootstraps):
            expected = ", ".join(f"PREFIX.{ending}" for ending in (*ENDINGS.values(), SUPPORTS, BOOTSTRAPS))
            raise InputError(f"{prefix}: found no record of a run with this prefix, expected one of: {expected}")
        commands = [str(run["command"]) for run in runs.values() if run.get("command")]
        commands += _logged_commands(name_file(prefix, BOOTSTRAP_LOG))
        return cls(prefix, runs, supports, n_bootstraps, tuple(dict.fromkeys(commands)))

    @property
    def main(self) -> Record | None:
        """The record that tells of the data and the model: the first there is."""
        return next(iter(self.runs.values()), None)

    @property
    def supports_are_of_main_tree(self) -> bool:
        """Whether there are supports, and the tree of the main record is theirs."""
        if self.supports is None:
            return False
        return self.main is None or _topology(self.supports["tree"]) == _topology(self.main["tree"])

    @property
    def tree(self) -> RootedNodes | None:
        """The tree of the main record, with supports if they are its own; None without a tree."""
        main = self.main
        if self.supports is not None and self.supports_are_of_main_tree:
            return parse_nodes(self.supports["tree"], SUPPORTS)
        return None if main is None else parse_nodes(main["tree"], "the record")

    @property
    def model_choice(self) -> Record | None:
        """How the model was chosen, from `select-model` or from a search that chose it."""
        own = self.runs.get("search", {}).get("model_choice") or self.runs.get("select-model", {}).get("model_choice")
        return own if isinstance(own, dict) else None


def name_file(prefix: Path, ending: str) -> Path:
    """PREFIX.ENDING."""
    return prefix.parent / f"{prefix.name}.{ending}"


def _logged_commands(log: Path) -> list[str]:
    """The last command in a log, which may be missing."""
    if not log.exists():
        return []
    lines = read_content(log).decode("utf-8", "surrogateescape").splitlines()
    return [line.removeprefix(COMMAND) for line in lines if line.startswith(COMMAND)][-1:]


def _topology(newick: str) -> frozenset[int]:
    """The splits of a tree as hashes: equal sets are those of equal trees."""
    nodes = parse_nodes(newick, "a record")
    children = nodes.children()
    hashes = [0 if below else _hash(label) for below, label in zip(children, nodes.labels, strict=True)]
    for node in range(len(hashes) - 1, 0, -1):
        hashes[nodes.parents[node]] ^= hashes[node]
    return frozenset(min(value, value ^ hashes[0]) for value in hashes[1:])


def _hash(name: str) -> int:
    return random.Random(name.encode("utf-8", "surrogateescape")).getrandbits(_HASH_BITS)
