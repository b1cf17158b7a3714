"""Write the manual pages, build/man/*.1, from the help of the commands.

    python scripts/tools/make_man_pages.py [FOLDER]

`packaging/build_backend.py` calls this for each wheel, and `pip install` puts them where `man plltool` finds them.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from plltool.cli import main
from plltool.cli.command import Command
from plltool.cli.options import OPTIONS
from plltool.constants import VERSION

FOLDER = Path(__file__).resolve().parents[2] / "build" / "man"
COMPLETION = {
    "bash": 'eval "$(_PLLTOOL_COMPLETE=bash_source plltool)"',
    "zsh": 'eval "$(_PLLTOOL_COMPLETE=zsh_source plltool)"',
    "fish": "_PLLTOOL_COMPLETE=fish_source plltool | source",
}


def make_pages() -> dict[str, str]:
    """The text of each page by the name of its file."""
    return {
        f"{'-'.join(path)}.1": "\n".join(_page(path, command)) + "\n" for path, command in _walk(("plltool",), main)
    }


def _walk(path: tuple[str, ...], command: click.Command) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        for name, own in command.commands.items():
            yield from _walk((*path, name), own)


def _page(path: tuple[str, ...], command: click.Command) -> Iterator[str]:
    name = " ".join(path)
    ctx = click.Context(command, info_name=name, **main.context_settings)
    paragraphs = [re.sub(r"\s+", " ", text).strip() for text in (command.help or "").split("\n\n")]
    yield f'.TH "{"-".join(path).upper()}" "1" "" "plltool {VERSION}" "plltool manual"'
    yield from (".SH NAME", f"{_escape('-'.join(path))} \\- {_escape(paragraphs[0].rstrip('.'))}")
    yield from (".SH SYNOPSIS", f"\\fB{_escape(name)}\\fR {_escape(' '.join(command.collect_usage_pieces(ctx)))}")
    yield ".SH DESCRIPTION"
    for paragraph in paragraphs:
        yield from (".PP", _escape(paragraph))
    for title, records in _sections(command, ctx):
        yield f".SH {title.upper()}"
        for record in records:
            yield from _entry(*record)
    if isinstance(command, click.Group):
        yield ".SH COMMANDS"
        for own, child in command.commands.items():
            yield from _entry(f"{name} {own}", f"{child.get_short_help_str(200)} See {'-'.join((*path, own))}(1).")
    if isinstance(command, Command):
        yield from _files_and_examples(command)
    if path == ("plltool",):
        yield from (".SH COMPLETION", ".PP", "A line in the start-up file of the shell completes commands and options:")
        for shell, line in COMPLETION.items():
            yield from _entry(shell, line)
    else:
        yield from (".SH SEE ALSO", f"{'-'.join(path[:-1])}(1)")


def _sections(command: click.Command, ctx: click.Context) -> Iterable[tuple[str, list[tuple[str, str]]]]:
    """Titles of sections of options, and the options and their help in each."""
    if isinstance(command, Command):
        return command.option_sections(ctx).items()
    return [(OPTIONS, list(filter(None, (option.get_help_record(ctx) for option in command.get_params(ctx)))))]


def _files_and_examples(command: Command) -> Iterator[str]:
    if command.own.files:
        yield from (".SH FILES", ".PP", _escape(command.own.remark))
        for row in command.own.files:
            yield from _entry(f"PREFIX.{row.ending}", row.help)
    yield ".SH EXAMPLES"
    for example in command.own.examples:
        yield from (".PP", ".nf", _escape(example), ".fi")


def _entry(term: str, text: str) -> Iterator[str]:
    yield from (".TP", f"\\fB{_escape(term)}\\fR", _escape(re.sub(r"\s+", " ", text)))


def _escape(text: str) -> str:
    """Text as roff takes it: a minus that can be copied, and no line that looks like a request."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + escaped if escaped.startswith((".", "'")) else escaped


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for file_name, text in make_pages().items():
        (folder / file_name).write_text(text, encoding="utf-8")
