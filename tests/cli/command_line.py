"""What tests of the command line share: a process of it, all its commands, a stream that claims to be a terminal."""

import io
import sys

import click

from plltool.cli import main

RUN = [sys.executable, "-c", "from plltool.cli import main; main(prog_name='plltool')"]


class Screen(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self):
        return True


def all_commands(group=main, path=()):
    """(words, command) of all that are no groups of commands."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from all_commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command
