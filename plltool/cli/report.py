"""``plltool report``: a page on the runs that share a prefix."""

from __future__ import annotations

from pathlib import Path

import click

import plltool
from plltool.cli.command import command
from plltool.cli.option_values import PATH
from plltool.cli.reporting import Reporter
from plltool.cli.terminal import print_results
from plltool.registry import SHARED


@command()
@click.argument("prefix", type=PATH)
def report(prefix: Path) -> None:
    """Write PREFIX.html and PREFIX.txt, a report of the runs whose files begin with PREFIX.

    Most commands write both at their end, unless --no-report is given. This command makes them again, from the records
    alone.
    """
    with Reporter(quiet=False):
        written = plltool.report(prefix).write()
    kinds = {f".{row.ending}": row.what for row in SHARED["reports"]}
    print_results([f"{kinds[path.suffix]}: {path}" for path in written])
