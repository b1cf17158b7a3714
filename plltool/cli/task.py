"""A running command: the values of its options, and what commands do with them, from the files to the result."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import plltool
from plltool.cli.job import given_command
from plltool.cli.options import PREFIX_ENDING, Options
from plltool.cli.outputs import Outputs, claim_files, named_outputs, write_named
from plltool.cli.reporting import Reporter
from plltool.cli.terminal import print_results
from plltool.constants import START_KINDS, STDIN, UNLINKED
from plltool.errors import InputError

FOLDER = "folder"  # the value of a command that reads all files of one
BEHIND = "_argument"  # in the name of an argument that an option may give in its place
EXIT_INTERRUPTED = 128 + signal.SIGINT


class Task:
    """The values of a command's options, by their names, as attributes."""

    def __init__(self, own: Options, values: Mapping[str, Any]):
        self._own, given = own, dict(values)
        for name, (kind, names) in own.packed.items():
            given[name] = kind(**{key: given.pop(key) for key in names})
        for argument in [name for name in given if name.endswith(BEHIND)]:
            name = argument.removesuffix(BEHIND)
            given[name] = self._choose(name, given[name], given.pop(argument))
        if "outgroup" in given:
            given["outgroup"] = given["outgroup"] or None
        vars(self).update(given)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...

    def _choose(self, name: str, by_option: Any, by_argument: Any) -> Any:
        """The value of an option or of the argument in its place, exactly one of which must be given."""
        option = next(param.opts[0] for param in self._own.params if param.name == name)
        if by_option and by_argument:
            first = by_argument if isinstance(by_argument, Path) else by_argument[0]
            raise click.UsageError(f"found {first} as an argument and also {option}, expected only one")
        if not (by_option or by_argument):
            raise click.UsageError(f"missing {option.lstrip('-').upper()}, as an argument or by {option}")
        return by_option or by_argument

    @cached_property
    def outputs(self) -> Outputs:
        """The files that the command writes with --prefix, or without it beside the file that it reads."""
        prefix, source = self.prefix, self._own.source
        if prefix is None and source:
            read = getattr(self, source)
            if read.is_dir() and source != FOLDER:
                raise InputError(f"{read}: cannot read the file: it is a folder")
            read = read if read.name else read.absolute()
            prefix = read.parent / (("stdin" if read == Path(STDIN) else read.name) + PREFIX_ENDING)
        return Outputs(self._own.files, prefix, self.redo, getattr(self, "report", False))

    def claim_named(self) -> None:
        """Make sure that the files which options name can be written, where there are no others."""
        claim_files(named_outputs(), self.redo)

    def keywords(self, *names: str) -> dict[str, Any]:
        """Values as keywords of a function of the library, which calls them so; the hardware is several."""
        found: dict[str, Any] = {}
        for name in names:
            found |= asdict(self.hardware) if name == "hardware" else {name: getattr(self, name)}
        return found

    @property
    def changes_sites(self) -> bool:
        """Whether columns stand for other numbers of sites than one."""
        return self.constant_sites is not None or self.site_weights is not None

    def read_alignment(self, path: Path) -> plltool.Sequences:
        return plltool.read_alignment(path, self.data_type, **self.keywords("names", "constant_sites", "site_weights"))

    def read_tree(self, path: str | Path, data: plltool.Sequences, multifurcations: bool = False) -> plltool.Tree:
        """The tree in a file; where lengths are unlinked, with the lengths of each part, if the file has them."""
        unlinked = getattr(self, "brlen", "") == UNLINKED
        return plltool.read_tree(path, data.names, self.resolve, unlinked, multifurcations)

    def read_start(self, data: plltool.Sequences) -> str | plltool.Tree | None:
        """The kind of start tree, None for the default, or the tree from the file."""
        return self.start if self.start in (None, *START_KINDS) else self.read_tree(self.start, data)

    def reporter(self) -> Reporter:
        """What reports the progress, and keeps the log among the outputs."""
        return Reporter(self.quiet, self.outputs.log, self.json_progress, append=self.outputs.resumes)

    @contextmanager
    def run(self) -> Iterator[tuple[Reporter, plltool.Sequences]]:
        """A run on an alignment that can be interrupted, and continues from its checkpoint."""
        self.outputs.claim()
        reporter = self.reporter()
        with reporter, reporter.interrupts_wait():
            data = self.read_alignment(self.alignment)
            with self.outputs.checkpointed():  # after the input, so that --redo loses nothing if that is wrong
                yield reporter, data

    def analyse_tree(
        self,
        analyse: Callable[..., Any],
        *,
        several: bool = False,
        named: Sequence[tuple[Path | None, Callable[[Any], str]]] = (),
        views: Mapping[str, Any] | None = None,
        **own: Any,
    ) -> Any:
        """Claim the files, analyse the tree in a file, report the progress, and write the files; returns the result.

        analyse : a function of the alignment, the tree, `own` keywords and those that all analyses of trees share
        several : whether it takes all trees of the file
        named : files that the user has named, and what makes their texts from the result
        views : arguments of the result's `texts`
        """
        self.outputs.claim()
        with self.reporter() as reporter:
            data = self.read_alignment(self.alignment)
            if several:
                own["trees"] = plltool.read_trees(self.tree, data.names, self.resolve)
            else:
                own["tree"] = self.read_tree(self.tree, data, multifurcations=analyse is plltool.evaluate)
            own |= self.keywords("model", "brlen", "fixed", "outgroup", "hardware") | {"listener": reporter.progress}
            found = analyse(data, **own)
            self.outputs.write(found.texts(given_command(), **(views or {})))
            for path, write in named:
                if path:
                    write_named(path, write(found))
            self.outputs.remove_stale()
            self.outputs.write_report()
            reporter.write_log(f"lnL: {found.lnl:.6f}")
        return found

    def print(self, found: Any, lines: Sequence[str], tree: str = "") -> None:
        """Print the record of a result as JSON, or lines for people and the files, or without files the `tree`."""
        record = found.to_json(given_command()) if self.as_json else None
        print_results([*lines, *self.outputs.describe(tree)], record)


def end(code: int) -> None:
    """End the command with a status, unless that is 0."""
    if code:
        click.get_current_context().exit(code)


def describe_fit(found: Any) -> list[str]:
    """The lnL and the models of a result."""
    return [f"lnL: {found.lnl:.6f}", *found.describe_models()]


def describe_short_branches(found: plltool.SearchResult | plltool.EvaluationResult, length: float) -> list[str]:
    """How many inner branches the collapsed tree lacks, if there is one."""
    _, number = found.collapsed(length)
    return [f"internal branches of (near-)zero length, at most {length:g}: {number}"] if number else []
