"""``plltool schema``: the JSON Schema of the records of runs."""

from __future__ import annotations

import json

import click

import plltool
from plltool.cli.command import command
from plltool.cli.terminal import print_line
from plltool.registry import ANALYSES

RESULTS = {name: own.results for name, own in ANALYSES.items() if own.results}


@command()
@click.argument("of", type=click.Choice(tuple(RESULTS)), required=False, metavar="[COMMAND]")
def schema(of: str | None) -> None:
    """Print the JSON Schema (draft 2020-12) of the record that COMMAND writes, or prints with `--json`.

    Without COMMAND, print the schema of the records of all commands. Records of another version of plltool may
    have other keys; `$id` has the version.
    """
    names = [name for own in (RESULTS.values() if of is None else [RESULTS[of]]) for name in own]
    print_line(json.dumps(plltool.json_schema(*(getattr(plltool, name) for name in names)), indent=1))
