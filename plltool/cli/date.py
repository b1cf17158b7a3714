"""``plltool date``: a tree in time, from the dates on which its taxa were sampled."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import plltool
from plltool.cli.command import command
from plltool.cli.option_values import PATH
from plltool.cli.options import option, packed, seed_option, tree_option
from plltool.cli.outputs import Outputs, file_options
from plltool.cli.tree_command import TreeTask, describe_fit, tree_task_options
from plltool.constants import DATE_COALESCENTS, DATE_LENGTHS, DATE_ROOTS


@dataclass(frozen=True, kw_only=True)
class DateChoice:
    """The dates, and the clock."""

    dates: Path = option(
        required=True,
        type=PATH,
        help="Table of taxa and dates, separated by tabs or commas, with the names of its columns in the first line. A"
        " date is a year such as 2011.37, a day such as 2011-05-17, a partly unknown day such as 2011-05-XX, a range"
        " such as [2011.2:2011.5], or ? if it is unknown. Taxa that are not in the table have unknown dates.",
    )
    name_column: str | None = option(
        metavar="NAME", help="Column of taxa.  [default: name, strain, accession or taxon]"
    )
    date_column: str | None = option(
        metavar="NAME", help="Column of dates.  [default: the first with the word date, or year]"
    )
    root: str = option(
        choices=DATE_ROOTS,
        default=DATE_ROOTS[0],
        help="Root, unless there is an --outgroup: where the distances of the tips fit their dates best (best), where"
        " they vary least (min-dev), or beside the oldest tip (oldest).",
    )
    clock_rate: float | None = option(
        min=0,
        min_open=True,
        help="Rate of the clock in substitutions per site and year.  [default: by regression]",
    )
    clock_error: float | None = option(min=0, min_open=True, help="Standard error of --clock-rate.")
    coalescent: str | None = option(
        choices=DATE_COALESCENTS,
        help="Coalescent prior on node times, with a constant or a changing population size.  [default: none]",
    )
    relaxed: tuple[float, float] | None = option(
        type=(float, float),
        metavar="SLACK COUPLING",
        help="Relaxed clock, as with TreeTime's --relax, such as 1.0 0.5.  [default: a strict clock]",
    )
    lengths: str = option(
        choices=DATE_LENGTHS,
        default=DATE_LENGTHS[0],
        help="Branch lengths as they are optimised (input), or found again by TreeTime from the sequences (joint,"
        " marginal). auto is input if a branch is longer than 0.1 or TreeTime does not have the model, else joint.",
    )


@command()
@tree_option
@packed("choice", DateChoice)
@seed_option
@tree_task_options()
@file_options("date", source="alignment")
def date(tree: Path, choice: DateChoice, seed: int, task: TreeTask, outputs: Outputs) -> None:
    """Date the nodes of TREE by the dates on which taxa of ALIGNMENT were sampled, with TreeTime.

    Branch lengths and free parameters are optimised first, unless --fixed is given. TreeTime then finds the root, the
    rate of the clock and the dates. It needs TreeTime: pip install 'plltool[dating]'.
    """
    own = {"seed": seed, **asdict(choice)}
    result = task.run(lambda data, given, shared: plltool.date(data, given, **own, **shared), tree, outputs)
    task.telling.print(result, [*describe_fit(result), *result.describe_dates(), *outputs.describe()])
