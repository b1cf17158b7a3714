"""The command line: one module per command, all errors one line, exit codes as docs/exit_codes.md lists them."""

import logging
import shlex
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from importlib import import_module
from itertools import groupby
from types import FrameType
from typing import Any, NoReturn

import click

from plltool.cli import job, terminal
from plltool.cli.command import Group, hint_at_command
from plltool.cli.options import declared_modules
from plltool.cli.terminal import ERROR, INTERNAL_ERROR, WARNING, drop_stdout, echo_message, usage_errors_in_colour
from plltool.constants import VERSION
from plltool.errors import PlltoolError, PlltoolWarning
from plltool.registry import ANALYSES

_log = logging.getLogger("plltool")

EXIT_ERROR = 1
EXIT_SIGNAL = 128  # plus the number of the signal
SIGPIPE = 13  # its number on Unix; Windows does not have it


class _Terminated(BaseException):
    """SIGTERM or SIGHUP, whose number it has, so that files are closed and the device is freed on the way out."""


@contextmanager
def _termination_raises() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise `_Terminated`, unless they are ignored, as nohup does."""

    def terminate(number: int, _frame: FrameType | None) -> None:
        raise _Terminated(number)

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]  # not on Windows
    before = {number: signal.getsignal(number) for number in numbers}
    caught = [number for number in numbers if before[number] != signal.SIG_IGN]
    for number in caught:
        signal.signal(number, terminate)
    try:
        yield
    finally:
        for number in caught:
            signal.signal(number, before[number])


@contextmanager
def _warnings_are_logged() -> Iterator[None]:
    """Log each different `PlltoolWarning` once, or write it to stderr where a command keeps no log."""
    told: set[str] = set()

    def tell(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if not issubclass(category, PlltoolWarning):
            show(message, category, *where, **more)
        elif str(message) not in told:
            told.add(str(message))
            if _log.handlers:
                _log.warning("%s", message)
            else:
                echo_message(str(message), WARNING)

    with warnings.catch_warnings():
        warnings.simplefilter("always", PlltoolWarning)
        show, warnings.showwarning = warnings.showwarning, tell
        yield


def _stop(ctx: click.Context, code: int, message: str, kind: str = "") -> NoReturn:
    """One line on stderr, the traceback before it with --debug, then exit."""
    if ctx.params["debug"]:
        traceback.print_exc()
    job.end(code, message, kind)
    echo_message(message, kind)
    ctx.exit(code)


def load_command(name: str) -> click.Command:
    module, _ = declared_modules()[name]
    command: click.Command = getattr(import_module(f"plltool.cli.{module}"), name.replace("-", "_"))
    return command


class MainGroup(Group):
    """The group of all commands; turns exceptions into messages and exit codes."""

    @property
    def commands(self) -> MutableMapping[str, click.Command]:
        """All commands, whose modules are imported."""
        return {name: load_command(name) for name in ANALYSES}

    @commands.setter
    def commands(self, _: MutableMapping[str, click.Command]) -> None:
        """The registry has the commands, whatever click sets."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(ANALYSES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return load_command(cmd_name) if cmd_name in ANALYSES else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        widest = max(map(len, ANALYSES))
        for title, members in groupby(ANALYSES.values(), key=lambda analysis: analysis.group):
            with formatter.section(title):
                formatter.write_dl([(f"{own.name:{widest}}", own.summary) for own in members])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Add a hint to the error for an unknown command."""
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            ctx.fail(f"no such command: {name}{hint_at_command(name, self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **extra: Any) -> click.Context:
        terminal.settle_process()
        command = shlex.join([info_name or "plltool", *args])
        job.join(args)
        try:
            with usage_errors_in_colour():
                ctx = super().make_context(info_name, args, *rest, **extra)
        except PlltoolError as error:
            raise click.ClickException(str(error)) from error
        ctx.meta[job.COMMAND_KEY] = command
        return ctx

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with usage_errors_in_colour(), _termination_raises(), _warnings_are_logged():
                return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except PlltoolError as error:
            _stop(ctx, EXIT_ERROR, str(error), ERROR)
        except KeyboardInterrupt:
            _stop(ctx, EXIT_SIGNAL + signal.SIGINT, "interrupted")
        except _Terminated as error:
            _stop(ctx, EXIT_SIGNAL + error.args[0], "terminated")
        except BrokenPipeError:
            # whoever read stdout has gone, as `head` does: exit as if by SIGPIPE, without a message at shutdown
            drop_stdout()
            sys.exit(EXIT_SIGNAL + SIGPIPE)
        except MemoryError as error:
            _stop(ctx, EXIT_ERROR, f"out of memory: {error}", ERROR)
        except Exception as error:
            if isinstance(error, OSError) and error.filename:  # such as a name that is too long
                _stop(ctx, EXIT_ERROR, f"{error.filename}: {error.strerror}", ERROR)
            message = f"{type(error).__name__}: {error}; please report it with --debug"
            _stop(ctx, EXIT_ERROR, message, INTERNAL_ERROR)


@click.group(cls=MainGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="plltool")
@click.option("--debug", is_flag=True, help="Show where an error arose.")
def main(debug: bool) -> None:
    """Maximum-likelihood phylogenetic trees, computed on an OpenCL device.

    `plltool COMMAND --help` shows the options of a command, the files that it writes, and examples. To begin:
    `plltool search ALIGNMENT`.

    Files that are read may be compressed by gzip, bzip2 or xz; the name - stands for standard input.
    """
