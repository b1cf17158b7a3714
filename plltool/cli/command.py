"""A command as plltool's are: its help lists files and examples; errors say what may have been meant."""

import shlex
import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from difflib import SequenceMatcher, get_close_matches
from pathlib import Path

import click

from plltool.cli.options import EXPERT, METAVARS, OPTIONS, read_options
from plltool.cli.task import Task
from plltool.cli.terminal import Context, stdout_errors_are_told

CONTINUED = " \\"  # the end of a line of a command that goes on


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

    `commands.txt` and the registry declare these; `callback` gets a `Task`.
    """

    def __init__(self, name: str, callback: Callable[[Task], None]):
        self.own = read_options(name)
        super().__init__(
            name.split()[-1],
            params=self.own.params,
            callback=lambda **values: callback(Task(self.own, values)),
            help=self.own.help.rstrip(),
            short_help=self.own.summary,
        )
        for option in self.params:
            if isinstance(option, click.Option):
                known = (word for kind, word in METAVARS.items() if isinstance(option.type, kind))
                option.metavar = option.metavar or next(known, None)
                if option.show_default is None:
                    option.show_default = not option.is_flag

    def option_sections(self, ctx: click.Context) -> dict[str, list[tuple[str, str]]]:
        """Options and their help by the titles of their sections: those without a title first, for experts last."""
        sections: dict[str, list[tuple[str, str]]] = {OPTIONS: []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and isinstance(param, click.Option):  # newer versions of click have arguments here
                sections.setdefault(self.own.titles.get(str(param.name), OPTIONS), []).append(record)
        return dict(sorted(sections.items(), key=lambda section: section[0] == EXPERT))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, records in self.option_sections(ctx).items():
            with formatter.section(title):
                formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.own.files:
            with formatter.section("Files"):
                formatter.write_text(self.own.remark)
                formatter.write_dl([(f"PREFIX.{row.ending}", row.help) for row in self.own.files])
        with formatter.section("Examples" if len(self.own.examples) > 1 else "Example"):
            for example in self.own.examples:
                formatter.write(wrap_example(example, formatter.current_indent, formatter.width))


def command(function: Callable[[Task], None]) -> Command:
    """Make a command of a function, with its name."""
    return Command(function.__name__.replace("_", "-"), function)


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


ALIGNMENT = ("FILE",)  # the alignment has no option
AS_CLOSE = 0.1  # difference of difflib's ratios, which are at most 1, below which one name is as likely as another

_ROWS = (line.split(": ") for line in Path(__file__).with_name("other_programs.txt").read_text("utf-8").splitlines())
_TABLE = {row[0]: tuple(row[1].split(" | ")) for row in _ROWS if len(row) > 1}
ELSEWHERE = {name: meant for name, meant in _TABLE.items() if name.startswith("-")}  # options of other programs
OTHER_COMMANDS = {name: meant[0] for name, meant in _TABLE.items() if name not in ELSEWHERE}  # programs and their words


def hint_at_option(unknown: str, given: Sequence[str], known: Iterable[str], command: str) -> tuple[str, str]:
    """An unknown option as it was given, and what may have been meant, to be written behind it; empty if unclear.

    `unknown` is the option as the parser has cut it: the -b of -bb; `command` is empty if there is none.
    """
    token, value = _find(unknown, given)
    names = list(known)
    if token not in ELSEWHERE:
        long = [name[2:] for name in names if name.startswith("--")]  # no short option is close to another
        # options of which it is a word come first
        close = [name for name in long if token[2:] in name.split("-")]
        close = close or _closest(token[2:], [name for name in long if name[:1] == token[2:3]])
        return token, _ask([f"--{name}" for name in close] if token.startswith("--") else [])
    if ELSEWHERE[token] == ALIGNMENT:
        return token, _ask([f"plltool {command or 'search'} {value}"])
    texts = ELSEWHERE[token]
    here = [text for text in texts if text.split()[0] in names]
    here += [text.removeprefix(f"{command} ") for text in texts if command and text.startswith(f"{command} ")]
    elsewhere = [f"plltool {text}" for text in texts if not text.startswith("--")]
    return token, _ask(here[:1] or elsewhere or texts)


def hint_at_line(given: Sequence[str], commands: Mapping[str, Collection[str]], command: str) -> str:
    """What is wrong with a line of several unknown options, and how plltool writes it; empty if that is not known.

    `command` may be empty: then the first of `commands`, with their options, that has most of the options.
    """
    possible = [_translate(_pair(given), own, commands[own]) for own in ([command] if command else commands)]
    words, unknown, left_out = min(possible, key=lambda found: len(found[2]))
    if len(unknown) < 2 or len(unknown) == len(left_out):
        return ""
    without = f", without {' '.join(left_out)}" if left_out else ""
    return f"no such options: {' '.join(unknown)}{_ask([f'plltool {shlex.join(words)}{without}'])}"


def _pair(given: Sequence[str]) -> list[tuple[str, str]]:
    """The options with what stands behind them, or nothing; an argument that stands behind none has no option."""
    pairs: list[tuple[str, str]] = []
    for argument in given:
        option, _, value = argument.partition("=")
        if argument.startswith("-") and len(argument) > 1:
            pairs.append((option, value))
        elif pairs and pairs[-1][0] and not pairs[-1][1]:
            pairs[-1] = pairs[-1][0], argument
        else:
            pairs.append(("", argument))
    return pairs


def _translate(
    pairs: Sequence[tuple[str, str]], command: str, known: Collection[str]
) -> tuple[list[str], list[str], list[str]]:
    """A line of `command`, the options that it does not know, and those among them that have no like."""
    words, unknown, left_out, kinds = [command], [], [], []
    for option, value in pairs:
        meant = [] if not option else [option] if option in known else _meant(option, command, known)
        if option and option not in known:
            unknown.append(option)
            if not meant:
                left_out.append(option)
                continue
        if meant[:1] == ["--supports"] and meant[1:]:
            kinds += meant[1:]
        elif meant != list(ALIGNMENT) and (value or not set(meant) & set(words)):
            words += meant
        if value and not (len(meant) > 1 and value.isdigit()):  # such as the replicates of -B
            words.append(value.lower() if value == "AUTO" else value)
    return [*words, *(["--supports", ",".join(kinds)] if kinds else [])], unknown, left_out


def _meant(option: str, command: str, known: Collection[str]) -> list[str]:
    """The words that another program's option is for a command; none if it has none."""
    for text in ELSEWHERE.get(option, ()):
        words = text.removeprefix(f"{command} ").split()
        if text in ALIGNMENT or words[0] in known:
            return words
    return []


def hint_at_command(unknown: str, known: Iterable[str]) -> str:
    """What may have been meant by an unknown command, likewise."""
    if Path(unknown).is_file():
        return _ask([f"plltool search {unknown}"])
    if unknown.lower() in OTHER_COMMANDS:
        return _ask([OTHER_COMMANDS[unknown.lower()]])
    return _ask(_closest(unknown, list(known)))


def _closest(unknown: str, known: Sequence[str]) -> list[str]:
    """The names that are about as close as the closest one, if any is."""
    found = get_close_matches(unknown, known)
    ratios = [SequenceMatcher(None, unknown, name).ratio() for name in found]
    return [name for name, ratio in zip(found, ratios, strict=True) if ratio > ratios[0] - AS_CLOSE]


def _ask(meant: Sequence[str]) -> str:
    return f"; did you mean {' or '.join(meant)}?" if meant else ""


def _find(unknown: str, given: Sequence[str]) -> tuple[str, str]:
    """The option as it was given, and its value."""
    for number, argument in enumerate(given):
        token, equals, value = argument.partition("=")
        if token == unknown or (token.startswith(unknown) and not unknown.startswith("--")):
            following = given[number + 1] if number + 1 < len(given) else "FILE"
            return token, value if equals else following
    return unknown, "FILE"
