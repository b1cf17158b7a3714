"""A shell completes commands, options, choices and files."""

import pytest

from plltool.cli import main


def complete(monkeypatch, capsys, line):
    """The kind and the value of what bash is offered for the last word of a line."""
    words = line.split(" ")
    monkeypatch.setenv("_PLLTOOL_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    with pytest.raises(SystemExit):
        main(prog_name="plltool")
    return [tuple(item.split(",", 1)) for item in capsys.readouterr().out.split()]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("plltool sea", [("plain", "search")]),
        ("plltool search --effo", [("plain", "--effort")]),
        ("plltool search --effort th", [("plain", "thorough")]),
        ("plltool search x --device op", [("plain", "opencl")]),
        ("plltool search x --start pa", [("plain", "parsimony"), ("file", "pa")]),
        ("plltool search x --model ge", [("file", "ge")]),
        ("plltool search pri", [("file", "pri")]),
        ("plltool support --tree be", [("file", "be")]),
        ("plltool alrt x --supports ab", [("plain", "abayes")]),
        ("plltool trees con", [("plain", "consensus")]),
    ],
)
def test_completion(monkeypatch, capsys, line, expected):
    assert complete(monkeypatch, capsys, line) == expected
