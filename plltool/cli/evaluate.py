"""``plltool evaluate``: the likelihood of a given topology."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import plltool
from plltool.cli import options
from plltool.cli.command import command
from plltool.cli.option_values import PATH, WRITTEN
from plltool.cli.outputs import Outputs, file_options
from plltool.cli.tree_command import TreeTask, describe_fit, tree_task_options


@dataclass(frozen=True, kw_only=True)
class SiteChoice:
    """What to tell of each site, and of branch lengths."""

    site_lnl: Path | None = options.option(
        type=WRITTEN,
        help="Write the lnL of each site to FILE. A name that ends in .sitelh gets TREE-PUZZLE's format, which"
        " CONSEL reads.",
    )
    site_rates: Path | None = options.option(type=WRITTEN, help="Write the posterior mean rate of each site to FILE.")
    pmsf: Path | None = options.option(
        type=WRITTEN,
        help="Write the posterior mean frequencies of each site (PMSF) under a mixture of profiles, such as LG+C20+G4,"
        " to FILE, for --site-frequencies.",
    )
    site_frequencies: Path | None = options.option(
        type=PATH,
        help="Use the frequencies of each site in FILE, from --pmsf or IQ-TREE's .sitefreq, in place of the model's.",
    )
    length_errors: bool = options.option(
        help="Compute standard errors of the branch lengths, for the given model; they are in the record (--json)."
    )
    root_scan: bool = options.option(
        help="Print the lnL of the root on each branch, under a model that is not time-reversible, such as UNREST."
    )


@command()
@options.tree_option
@options.packed("sites", SiteChoice)
@tree_task_options()
@file_options("evaluate")
@options.view_options
def evaluate(tree: Path, sites: SiteChoice, task: TreeTask, outputs: Outputs, views: options.Views) -> None:
    """Compute the log-likelihood of ALIGNMENT on a given TREE.

    Branch lengths and free model parameters are optimised, unless --fixed is given.
    """
    own: dict[str, Any] = {name: bool(given) for name, given in vars(sites).items()}
    own["site_frequencies"] = sites.site_frequencies
    result = task.run(
        lambda data, given, shared: plltool.evaluate(data, given, **own, **shared),
        *(tree, outputs),
        named=(
            (sites.site_lnl, lambda result: result.format_site_lnl(sites.site_lnl or "")),
            (sites.site_rates, lambda result: result.format_site_rates()),
            (sites.pmsf, lambda result: result.format_pmsf()),
        ),
        views=asdict(views),
    )
    lines = describe_fit(result)
    lines += [f"root: lnL {place.lnl:.6f}  {', '.join(place.taxa)} | others" for place in result.root_places or ()]
    lines += options.describe_short_branches(result, views)
    task.telling.print(result, [*lines, *outputs.describe(tree=result.newick)])
