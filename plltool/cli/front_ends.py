"""``plltool front-ends``: commands with the names and options of other programs, for pipelines that call these."""

from __future__ import annotations

import shlex
import stat
import sys
from pathlib import Path

import click

from plltool.cli.command import command
from plltool.cli.option_values import PATH
from plltool.cli.terminal import print_results
from plltool.errors import InputError, explained
from plltool.registry import FRONT_ENDS

OURS = "# written by `plltool front-ends`\n"


@command()
@click.argument("folder", type=PATH, metavar="DIR")
@click.argument("programs", nargs=-1, type=click.Choice(tuple(FRONT_ENDS)), metavar="[PROGRAM]...")
def front_ends(folder: Path, programs: tuple[str, ...]) -> None:
    """Write small executables into the folder DIR that take the options of other programs and write their files, and
    let plltool do the work.

    The PROGRAMs are iqtree, raxml-ng, FastTree, epa-ng and raxmlHPC; without any, all are written, under all names that
    they are called by. A file that is not a front end of plltool is never replaced.
    """
    start = f"#!/bin/sh\n{OURS}exec {shlex.quote(sys.executable)} -P -m plltool.front_ends"
    chosen = [(folder / name, own) for own in programs or FRONT_ENDS for name in FRONT_ENDS[own]]
    for path, _ in chosen:
        if path.is_dir() or (path.exists() and OURS.encode() not in path.read_bytes()):
            raise InputError(f"{path}: exists already, and is not a front end of plltool")
    import plltool

    with explained(f"{folder}: cannot write into the folder"):
        folder.mkdir(parents=True, exist_ok=True)
        for path, program in chosen:
            plltool.write_text(path, f'{start} {program} "$@"\n')
            path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    print_results([f"front end: {path}" for path, _ in chosen])
