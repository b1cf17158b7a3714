"""What commands on given trees have in common: from the options to the result and its files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from plltool import Hardware
from plltool.cli import options
from plltool.cli.command import given_command
from plltool.cli.option_values import PATH
from plltool.cli.outputs import Outputs

if TYPE_CHECKING:
    from plltool import Sequences


class TreeResult(Protocol):
    """What the analyses of given trees return."""

    @property
    def lnl(self) -> float: ...

    @property
    def texts(self) -> Callable[..., dict[str, str]]: ...


R = TypeVar("R", bound="TreeResult")


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

    def one_tree(self, path: Path) -> Callable[[Sequences], object]:
        """For `run`: the tree in a file."""
        return lambda data: options.load_tree(path, data, self.brlen, self.resolve)

    def run(
        self,
        analyse: Callable[..., R],
        load: Callable[[Sequences], object],
        hardware: Hardware,
        outputs: Outputs,
        also: Callable[[R], None] = lambda _: None,
        **views: Any,
    ) -> R:
        """Analyse the trees, report the progress and write the files, which are claimed already.

        analyse : an analysis, with its particular arguments
        load : reads the tree, or the trees, for the taxa of the alignment
        also : writes the files that the user has named
        views : arguments of the result's `texts`
        """
        with self.telling.reporter(outputs) as reporter:
            data = options.load_alignment(self.alignment, self.reading)
            result = analyse(
                data,
                load(data),
                self.model,
                brlen=self.brlen,
                fixed=self.fixed,
                outgroup=self.outgroup or None,
                listener=reporter.progress,
                **asdict(hardware),
            )
            outputs.write(result.texts(given_command(), **views))
            also(result)
            outputs.remove_stale()
            outputs.write_report()
            reporter.write_log(f"lnL: {result.lnl:.6f}")
        return result


def tree_task_options(metavar: str = "[TREE]") -> options.Decorator:
    """The options of a `TreeTask`, and the argument for the tree or trees."""
    argument = click.argument("tree_argument", type=PATH, required=False, metavar=metavar)
    task = options.packed("task", TreeTask)
    return lambda command: task(argument(command))
