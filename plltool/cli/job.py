"""The running command: its line, and what it does as one of the ranks of an MPI job.

Rank 0 alone writes to the terminal and to the user's files. With ``--workers mpi`` the other ranks do its tasks.
Otherwise they take the same decisions from copies of these files, in a folder of their own, which they also write to.
"""

import os
import sys
import tempfile
from glob import escape
from itertools import pairwise
from pathlib import Path

import click

from plltool.cli.options import BY_RANKS, WORKERS
from plltool.cli.terminal import ERROR, echo_message
from plltool.errors import InputError, PlltoolError
from plltool.processes import ranks
from plltool.registry import ANALYSES

COMMAND_KEY = "plltool.command"  # in click's meta: the command line as it was given
TOGETHER = 5.0  # seconds within which an error that all ranks have reaches all of them

_stderr: int | None = None  # a copy of what `silence` has closed
_folder: tempfile.TemporaryDirectory[str] | None = None


def given_command() -> str:
    return str(click.get_current_context().meta[COMMAND_KEY])


def join(args: list[str]) -> None:
    """Join the job, if a launcher has started several processes. Raises ClickException if that fails.

    A rank that does tasks for rank 0 does not return from here before there are no more.
    """
    if not ranks.launched_size() or ranks.current() is not None:
        return
    command = next((word for word in args if not word.startswith("-")), None)
    if command is None:
        return
    analysis = ANALYSES.get(command)
    try:
        asks = (WORKERS, BY_RANKS) in pairwise(args) or f"{WORKERS}={BY_RANKS}" in args
        if analysis and analysis.by_workers and asks:
            line = ranks.form(_say_alone)
            if line is None:
                return
            silence()
            ranks.serve(line)
            sys.exit()
        if not (analysis and analysis.by_ranks):
            raise InputError(f"{command}: found {ranks.launched_size()} ranks, expected a single process")
        own = ranks.join(_say_alone)
    except PlltoolError as error:
        if ranks.launched_number():
            sys.exit(1)
        raise click.ClickException(str(error)) from error
    if own.number:
        silence()


def silence() -> None:
    """Let nothing more reach stdout and stderr, except the error of this rank alone."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    global _stderr
    _stderr = os.dup(sys.stderr.fileno())
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(nowhere, stream.fileno())


def is_first() -> bool:
    """Whether this process writes for all: it is alone, or rank 0."""
    own = ranks.current()
    return own is None or own.number == 0


def own_prefix(prefix: Path) -> Path:
    """The prefix for rank 0; for another rank one in a temporary folder, with copies of the files that rank 0 sees."""
    own = ranks.current()
    if own is None:
        return prefix
    found = own.of_first(lambda: {path.relative_to(prefix.parent): path.read_bytes() for path in _files(prefix)})
    if own.number == 0:
        return prefix
    global _folder
    _folder = tempfile.TemporaryDirectory(prefix="plltool-rank-")
    for name, content in found.items():
        path = Path(_folder.name) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return Path(_folder.name) / prefix.name


def _files(prefix: Path) -> list[Path]:
    """All files of a prefix, those in the folders of its checkpoints, too."""
    paths = sorted(prefix.parent.glob(f"{escape(prefix.name)}.*"))
    return [inner for path in paths for inner in (path, *sorted(path.rglob("*"))) if inner.is_file()]


def end(code: int, message: str, kind: str) -> None:
    """Before an error ends this process: wait for the other ranks, which may have it too, or else end them all."""
    own = ranks.current()
    if own is None or own.all_end(TOGETHER if kind == ERROR else 0.0):
        return
    _say_alone(message, kind)
    own.abort(code)


def _say_alone(message: str, kind: str = ERROR) -> None:
    """Say why this rank ends the job."""
    if _stderr is not None:
        os.dup2(_stderr, sys.stderr.fileno())
    echo_message(f"rank {ranks.launched_number()}: {message}", kind)
    sys.stderr.flush()
    if _folder is not None:
        _folder.cleanup()
