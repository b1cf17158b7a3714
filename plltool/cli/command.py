"""A command as plltool's are: its help lists the files that it writes, and examples."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import click

from plltool.cli.hints import hint_at_line, hint_at_option
from plltool.cli.terminal import Context, stdout_errors_are_told
from plltool.registry import ANALYSES, Table

OPTIONS = "Options"  # title of the first section of the help
SEARCH, SUPPORTS = "Search options", "Support options"  # titles of further sections
DEVICE, OUTPUT, EXPERT = "Device options", "Output options", "Expert options"
COMMAND_KEY = "plltool.command"  # in click's meta: the command line as it was given
METAVARS = {click.IntRange: "N", click.FloatRange: "X", click.Path: "FILE"}  # of options that have none of their own
CONTINUED = " \\"  # the end of a line of a command that goes on
_TITLES = "plltool_titles"  # attribute of a function: the titles that its parameters are under
PREFIX_ENDING = ".plltool"  # of the prefix, behind the name of the file that the command reads


def given_command() -> str:
    """The command line of the running command."""
    return str(click.get_current_context().meta[COMMAND_KEY])


class PrefixOption(click.Option):
    """--prefix of a command that writes the files of a `table`.

    `source` is the parameter whose file names the prefix where none is given; None if nothing is written then.
    """

    def __init__(self, names: Sequence[str], *, table: Table, source: str | None, **settings: Any):
        super().__init__(names, **settings)
        self.table = table
        self.source = source

    @property
    def remark(self) -> str:
        """What happens without the option."""
        if self.source is None:
            return "Without --prefix no files are written."
        return f"Without --prefix, PREFIX is {self.source.upper()}{PREFIX_ENDING}."


class HintingCommand(click.Command):
    """A command whose error for an unknown option says what may have been meant."""

    context_class = Context

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = list(args)  # parsing empties it
        try:
            with stdout_errors_are_told():  # of the help
                return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            name = "" if isinstance(self, click.Group) else str(self.name)
            group = ctx.find_root().command
            others = group.commands.values() if isinstance(group, click.Group) else ()
            commands = {str(own.name): _options(own) for own in others}
            if whole := hint_at_line(given, commands, name) if name in ("", *commands) else "":
                raise click.UsageError(whole, ctx) from None
            token, hint = hint_at_option(error.option_name, given, _options(self), name)
            raise click.UsageError(f"no such option: {token}{hint}", ctx) from None


def _options(command: click.Command) -> list[str]:
    return [name for option in command.params for name in option.opts if isinstance(option, click.Option)]


class Group(HintingCommand, click.Group):
    """A group of commands."""


class Command(HintingCommand):
    """A command whose help has sections of options, of the files that it writes with a prefix, and of examples.

    `examples`: command lines, by default those of the registry.
    """

    def __init__(self, *positional: Any, examples: Sequence[str] = (), **named: Any):
        super().__init__(*positional, **named)
        if self.short_help is None:
            self.short_help = ANALYSES[str(self.name)].summary
        self.examples = tuple(examples) or ANALYSES[str(self.name)].examples
        for option in self.params:
            if isinstance(option, click.Option):
                known = (word for kind, word in METAVARS.items() if isinstance(option.type, kind))
                option.metavar = option.metavar or next(known, None)
                if option.show_default is None:
                    option.show_default = not option.is_flag

    @property
    def prefix_option(self) -> PrefixOption | None:
        """The option that the names of its files begin with."""
        return next((option for option in self.params if isinstance(option, PrefixOption)), None)

    def option_sections(self, ctx: click.Context) -> dict[str, list[tuple[str, str]]]:
        """Options and their help by the titles of their sections: those without a title first, for experts last."""
        titles = getattr(self.callback, _TITLES, {})
        sections: dict[str, list[tuple[str, str]]] = {OPTIONS: []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and isinstance(param, click.Option):  # newer versions of click have arguments here
                sections.setdefault(titles.get(param.name, OPTIONS), []).append(record)
        return dict(sorted(sections.items(), key=lambda section: section[0] == EXPERT))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, records in self.option_sections(ctx).items():
            with formatter.section(title):
                formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        option = self.prefix_option
        if option is not None:
            with formatter.section("Files"):
                formatter.write_text(option.remark)
                formatter.write_dl([(f"PREFIX.{row.ending}", row.help) for row in option.table])
        with formatter.section("Examples" if len(self.examples) > 1 else "Example"):
            for example in self.examples:
                formatter.write(wrap_example(example, formatter.current_indent, formatter.width))


def put_under(title: str, *names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let the help of a command show parameters, by their names, in a section with a title."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        setattr(function, _TITLES, {**getattr(function, _TITLES, {}), **dict.fromkeys(names, title)})
        return function

    return decorate


def wrap_example(example: str, indent: int, width: int) -> str:
    """A command line, broken between its words as a shell allows it, with a newline at the end."""
    margin = " " * indent
    lines = textwrap.wrap(
        example,
        width - len(CONTINUED),
        initial_indent=margin,
        subsequent_indent=2 * margin,
        break_on_hyphens=False,
        break_long_words=False,
    )
    return f"{CONTINUED}\n".join(lines) + "\n"


command: Callable[..., Callable[[Callable[..., Any]], Command]] = partial(click.command, cls=Command)
