"""The files of a run: named by a prefix, never overwritten unasked, known to be writable before the work begins."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from plltool.errors import InputError

if TYPE_CHECKING:
    from plltool.cli.options import Views
    from plltool.run.results import Result


@dataclass(frozen=True)
class OutputFiles:
    """What a run writes."""

    tree: Path
    record: Path
    log: Path
    models: Path
    part_trees: Path
    nexus: Path
    collapsed: Path
    checkpoint: Path

    @classmethod
    def of_prefix(cls, prefix: Path) -> OutputFiles:
        """PREFIX.best.nwk, PREFIX.json, PREFIX.log and so on.

        A search keeps in the folder PREFIX.checkpoint where it stands.
        """
        endings = ("best.nwk", "json", "log", "best.model", "parts.nwk", "best.nex", "collapsed.nwk", "checkpoint")
        return cls(*name_files(prefix, endings).values())

    def claim(self, redo: bool) -> None:
        """`claim_files` of results and log; the log of a run that left no results may be replaced."""
        claim_files([self.tree, self.record, self.models, self.part_trees, self.nexus, self.collapsed], redo)
        claim_files([self.log], redo=True)

    def claim_resumable(self, redo: bool) -> bool:
        """Likewise, and the checkpoint; returns whether there is one to go on from, whose results may be replaced."""
        from plltool.io.checkpoint import has_states

        resumes = has_states(self.checkpoint) and not redo
        self.claim(redo or resumes)
        claim_folder(self.checkpoint)
        return resumes

    def write(self, result: Result, command: str, views: Views) -> list[str]:
        """Write tree and record, other views of the tree, of named parts their models, and their trees if unlinked.

        Returns lines that name what was written besides tree, record and log. Raises InputError if a file cannot be
        written.
        """
        from plltool.io.record import write_record, write_text
        from plltool.io.tree_views import write_nexus

        write_text(self.tree, result.newick + "\n")
        write_record(self.record, result.as_record(command))
        trees = [part.newick for part in result.parts if part.newick is not None]
        collapsed, n_collapsed = result.collapsed(views.collapse)
        branches = "1 inner branch" if n_collapsed == 1 else f"{n_collapsed} inner branches"
        found = []
        for what, path, text in (
            ("trees of parts", self.part_trees, "\n".join(trees)),
            ("models of parts", self.models, result.model if result.parts[0].name else ""),
            ("tree as NEXUS", self.nexus, write_nexus(result.newick).strip() if views.nexus else ""),
            (f"tree without {branches} of at most {views.collapse:g}", self.collapsed, collapsed * bool(n_collapsed)),
        ):
            if text:
                write_text(path, text + "\n")
                found.append(f"{what}: {path}")
            else:
                path.unlink(missing_ok=True)  # that of an earlier run
        return found


def name_files(prefix: Path, endings: Iterable[str]) -> dict[str, Path]:
    """PREFIX.ENDING for each ending."""
    return {ending: prefix.parent / f"{prefix.name}.{ending}" for ending in endings}


def claim_files(paths: Iterable[Path], redo: bool) -> None:
    """Make sure that the files can be written when the work is done.

    Raises
    ------
    InputError
        If one exists and `redo` is not set, is a folder, is asked for twice, or its folder cannot be written to.
    """
    claimed: set[Path] = set()
    for path in paths:
        if path in claimed:
            raise InputError(f"{path}: cannot write two things to one file")
        claimed.add(path)
        if path.is_dir():
            raise InputError(f"{path}: cannot write the file: it is a folder")
        if path.exists() and not redo:
            raise InputError(f"{path}: exists already; --redo replaces it, --prefix names other files")
        try:
            with tempfile.TemporaryFile(dir=path.parent):
                pass
        except OSError as error:
            raise InputError(f"{path}: cannot write the file: {error.strerror}") from error


def claim_folder(path: Path) -> None:
    """Raise InputError if a folder of that name cannot be made, when the time comes, since something else has it."""
    if path.exists() and not path.is_dir():
        raise InputError(f"{path}: cannot make the folder: it is a file")


def describe_models(result: Result) -> list[str]:
    """The model, or a line for each part that has a name."""
    if not result.parts[0].name:
        return [f"model: {result.model}"]
    return [f"part {part.name}: lnL {part.lnl:.6f}, {part.n_sites} sites, model {part.model}" for part in result.parts]


def print_line(text: str) -> None:
    """A line on stdout, its names byte for byte whatever the locale."""
    click.echo(text.encode("utf-8", "surrogateescape"))
