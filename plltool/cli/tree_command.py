"""What commands that ask something of a given tree have in common: from the options to the result and its files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from plltool.cli.options import OutputChoice, Question, load_alignment, load_tree, split_outgroup
from plltool.cli.outputs import claim_files, name_files, print_line
from plltool.cli.reporting import Reporter, given_command
from plltool.hardware import Hardware

if TYPE_CHECKING:
    from plltool.alignment.alignment import Sequences
    from plltool.run.results import Result

R = TypeVar("R", bound="Result")


def one_tree(path: Path, question: Question) -> Callable[[Sequences], object]:
    """For `ask_of_tree`: the tree in a file."""
    return lambda data: load_tree(path, data, question.brlen, question.resolve)


def ask_of_tree(
    ask: Callable[..., R],
    alignment: Path,
    load: Callable[[Sequences], object],
    question: Question,
    outgroup: tuple[str, ...],
    hardware: Hardware,
    output: OutputChoice,
    texts: Mapping[str, Callable[[R], str]],
) -> R:
    """Ask, tell of the progress, and write files if there is a prefix.

    Parameters
    ----------
    ask : an analysis, with all that is particular to it already among its arguments
    load : makes the tree, or the trees, for the taxa of the alignment
    texts : by the ending of their names, the files to write besides the record and the log
    """
    names = name_files(output.prefix, (*texts, "json", "log")) if output.prefix else {}
    claim_files([path for ending, path in names.items() if ending != "log"], output.redo)
    claim_files([names[ending] for ending in names if ending == "log"], redo=True)
    from plltool.io.record import write_record, write_text

    data = load_alignment(alignment, question.data_type)
    with Reporter(question.quiet, names.get("log"), question.json_progress) as reporter:
        result = ask(
            data,
            load(data),
            question.model,
            brlen=question.brlen,
            fixed=question.fixed,
            outgroup=split_outgroup(outgroup, data.names),
            listener=reporter.progress,
            **asdict(hardware),
        )
        for ending, text in texts.items():
            if ending in names:
                write_text(names[ending], text(result))
        if names:
            write_record(names["json"], result.as_record(given_command()))
        reporter.write_log(f"lnL: {result.lnl:.6f}")
    return result


def print_answer(result: Result, as_json: bool, lines: Sequence[str]) -> None:
    """The record as JSON, or lines for people."""
    from plltool.io.record import format_record

    if as_json:
        print_line(format_record(result.as_record(given_command())))
        return
    for line in lines:
        print_line(line)
