"""``plltool place``: sequences on the branches of a reference tree."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import plltool
from plltool.cli.command import command
from plltool.cli.option_values import PATH
from plltool.cli.options import option, packed, reference_tree_option
from plltool.cli.outputs import Outputs, file_options
from plltool.cli.tree_command import TreeTask, describe_fit
from plltool.constants import FILTER_MOST, FILTER_WEIGHT, PLACE_HEURISTIC


@dataclass(frozen=True, kw_only=True)
class ReferenceTask(TreeTask):
    """The same for an alignment that an option names."""

    alignment: Path = option(
        "--reference",
        "--ref-msa",
        required=True,
        type=PATH,
        metavar="ALIGNMENT",
        help="Alignment of the reference sequences.",
    )


@dataclass(frozen=True, kw_only=True)
class PlacementChoice:
    """What to place, how many branches to try, and which places to report."""

    queries: tuple[Path, ...] = option(
        "--queries",
        "--query",
        required=True,
        multiple=True,
        type=PATH,
        help="Sequences to place, FASTA, PHYLIP or NEXUS, aligned to the columns of the reference. May be repeated.",
    )
    dyn_heur: float = option(
        min=0,
        max=1,
        min_open=True,
        default=PLACE_HEURISTIC,
        help="Optimise lengths only on the best-scoring branches that together have this share of the weight.",
    )
    no_heur: bool = option(help="Optimise the lengths on all branches.")
    raxml_blo: bool | None = option(
        "--raxml-blo/--no-raxml-blo",
        default=None,
        help="Also optimise the length of the branch at each placement, as RAxML does, for every query or for none."
        " The default is to do so for queries with several placements that are almost equally good.",
    )
    filter_acc_lwr: float = option(
        min=0,
        max=1,
        default=FILTER_WEIGHT,
        help="Write the best placements of a query until their likelihood weights add up to this; 1 is no limit.",
    )
    filter_min_lwr: float = option(
        min=0,
        max=1,
        default=0.0,
        help="Leave out placements with a smaller likelihood weight, except the best one.",
    )
    filter_max: int = option(min=1, default=FILTER_MOST, help="Maximum number of placements to write for each query.")
    graft: bool = option(help="Also write a tree of the reference and all queries that are placed.")


@command()
@reference_tree_option
@packed("choice", PlacementChoice)
@packed("task", ReferenceTask)
@file_options("place")
def place(tree: Path, choice: PlacementChoice, task: TreeTask, outputs: Outputs) -> None:
    """Place sequences, such as reads, on the branches of a reference tree, each independently.

    Branch lengths and free parameters are optimised on the reference first, unless --fixed is given. The reference tree
    then stays as it is. --graft also attaches all queries to it, in a tree of their own.
    """
    own = {**vars(choice), "names": task.reading.names}
    dyn_heur, no_heur = own.pop("dyn_heur"), own.pop("no_heur")
    own["heuristic"] = 1.0 if no_heur else dyn_heur
    result = task.run(lambda data, given, shared: plltool.place(data, given, **own, **shared), tree, outputs)
    task.telling.print(result, [*describe_fit(result), *result.describe_placements(), *outputs.describe()])
