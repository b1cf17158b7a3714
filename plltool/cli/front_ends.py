"""``plltool front-ends``: commands with the names and options of other programs, for pipelines that call these."""

from __future__ import annotations

import shlex
import stat
import sys
from pathlib import Path

import click

import plltool
from plltool.cli.command import command
from plltool.cli.option_values import PATH
from plltool.cli.terminal import print_results
from plltool.errors import InputError, explained
from plltool.registry import FRONT_ENDS

OURS = "# written by `plltool front-ends`\n"


@command()
@click.argument("folder", type=PATH, metavar="DIR")
@click.argument("programs", nargs=-1, type=click.Choice(tuple(FRONT_ENDS)), metavar="[PROGRAM]...")
@click.option("--redo", is_flag=True, help="Replace front ends of another installation.")
def front_ends(folder: Path, programs: tuple[str, ...], redo: bool) -> None:
    """Write small executables into the folder DIR that take the options of other programs and write their files, and
    let plltool do the work.

    The PROGRAMs are iqtree, raxml-ng, FastTree, epa-ng and raxmlHPC; without any, all are written, under all names that
    they are called by. A file that is not a front end of plltool is never replaced; one that calls another Python is,
    with --redo.
    """
    start = f"#!/bin/sh\n{OURS}exec {shlex.quote(sys.executable)} -P -m plltool.front_ends"
    names = [(folder / name, own) for own in programs or FRONT_ENDS for name in FRONT_ENDS[own]]
    chosen = [(path, f'{start} {program} "$@"\n') for path, program in names]
    for path, text in chosen:
        found = path.read_bytes() if path.is_file() else None
        if path.is_dir() or (found is not None and OURS.encode() not in found):
            raise InputError(f"{path}: exists already, and is not a front end of plltool")
        if found not in (None, text.encode()) and not redo:
            raise InputError(f"{path}: exists already, for another installation of plltool; --redo replaces it")
    with explained(f"{folder}: cannot write into the folder"):
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in chosen:
            plltool.write_text(path, text)
            path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    print_results([f"front end: {path}" for path, _ in chosen])
