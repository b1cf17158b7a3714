"""What commands on given trees have in common: from the options to the result and its files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

import plltool
from plltool import Hardware
from plltool.cli import options
from plltool.cli.command import given_command
from plltool.cli.option_values import PATH
from plltool.cli.outputs import Outputs, write_named

R = TypeVar("R")


@dataclass(frozen=True, kw_only=True)
class TreeTask:
    """What the analyses of given trees have in common: the data, the model, and how the work is done and reported."""

    alignment: Path = options.filled_by(options.alignment_argument)
    model: str | None = options.filled_by(options.model_option)
    brlen: str = options.filled_by(options.brlen_option)
    reading: options.Reading = options.filled_by(options.reading_options)
    fixed: bool = options.filled_by(options.fixed_option)
    resolve: int | None = options.filled_by(options.resolve_option)
    outgroup: tuple[str, ...] = options.filled_by(options.outgroup_option)
    telling: options.Telling = options.filled_by(options.telling_options)
    hardware: Hardware = options.filled_by(options.hardware_options)

    def run(
        self,
        analyse: Callable[[plltool.Sequences, Any, dict[str, Any]], R],
        tree: Path,
        outputs: Outputs,
        *,
        several: bool = False,
        named: Sequence[tuple[Path | None, Callable[[R], str]]] = (),
        views: Mapping[str, Any] | None = None,
    ) -> R:
        """Claim the files, analyse the tree in a file, report the progress, and write the files; returns the result.

        analyse : makes the result from the alignment, the tree, and the settings that all analyses of trees share
        several : whether it takes all trees of the file
        named : files that the user has named, and what makes their texts from the result
        views : arguments of the result's `texts`
        """
        outputs.claim()
        with self.telling.reporter(outputs) as reporter:
            data = options.load_alignment(self.alignment, self.reading)
            shared = options.keywords(self, "model", "brlen", "fixed") | asdict(self.hardware)
            shared |= {"outgroup": self.outgroup or None, "listener": reporter.progress}
            if several:
                found = analyse(data, plltool.read_trees(tree, data.names, self.resolve), shared)
            else:
                found = analyse(data, options.load_tree(tree, data, self.brlen, self.resolve), shared)
            result: Any = found
            outputs.write(result.texts(given_command(), **(views or {})))
            for path, write in named:
                if path:
                    write_named(path, write(result))
            outputs.remove_stale()
            outputs.write_report()
            reporter.write_log(f"lnL: {result.lnl:.6f}")
        return found


def describe_fit(result: Any) -> list[str]:
    """The lnL and the models of a result."""
    return [f"lnL: {result.lnl:.6f}", *result.describe_models()]


def tree_task_options(metavar: str = "[TREE]") -> options.Decorator:
    """The options of a `TreeTask`, and the argument for the tree or trees."""
    argument = click.argument("tree_argument", type=PATH, required=False, metavar=metavar)
    task = options.packed("task", TreeTask)
    return lambda command: task(argument(command))
