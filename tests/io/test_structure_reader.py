"""Structures in dot-bracket notation, and partitions made of them."""

import pytest

from plltool.errors import InputError
from plltool.io.model_reader import read_scheme
from plltool.io.partition_reader import read_structure
from plltool.run.inputs import resolve_inputs

ROWS = dict.fromkeys("abcd", "ACGUACGUAC")


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "rna.str"
        path.write_text(text)
        return str(path)

    return write


@pytest.mark.parametrize("text", ["((.[.))]..\n", " ((.[\r\n.))]\n..", "<<.(.>>)..", "{[.<.]}>.."])
def test_brackets_that_cross(write, text):
    found = read_structure(write(text))
    assert found.pairs == ((1, 7), (2, 6), (4, 8))
    assert found.unpaired == ((3, 3), (5, 5), (9, 10))
    assert found.n_sites == 10


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(.))", "found ')' at position 4, expected '(' before it"),
        ("(.]", "found ']' at position 3, expected '[' before it"),
        (".((.).", "found '(' at position 2, expected a closing bracket after it"),
        (".[(.].", "found '(' at position 3, expected a closing bracket after it"),
        ("(.A.)", "found 'A' at position 3, expected '.' or one of the brackets"),
        (" \n", "found an empty file, expected a structure in dot-bracket notation"),
    ],
)
def test_errors(write, text, message):
    path = write(text)
    with pytest.raises(InputError) as caught:
        read_structure(path)
    assert str(caught.value).startswith(f"{path}: {message}")


def test_partitions_of_a_structure(write, tmp_path):
    path = write("((.[.))]..")
    lines = f"S16B, stems = pairs{{{path}}}\nJC, loops = unpaired{{{path}}}\n"
    sets = f"#NEXUS begin sets; charset s = pairs{{{path}}}; charset l = unpaired{{{path}}};"
    nexus = tmp_path / "x.nex"
    nexus.write_text(f"{sets} charpartition p = S16B: s, JC: l; end;")
    for scheme in (lines, str(nexus)):
        parts = resolve_inputs(ROWS, scheme)[0].parts
        assert [part.ranges for part in parts] == ["1:7, 2:6, 4:8", "3, 5, 9-10"]
    nexus.write_text(f"{sets} end;")
    assert [str(spec.model) for spec in read_scheme(str(nexus))] == ["S16+F+G4", "None"]
    nexus.write_text("#NEXUS begin sets; charset s = 1:7 2:6, 8:4; end;")
    assert [str(some) for some in read_scheme(str(nexus))[0].ranges] == ["1:7", "2:6", "4:8"]


def test_structures_that_do_not_fit(write):
    for text, message in (
        ("((.)).", "partition 'x': found a structure of 6 columns, expected 10 as in"),
        ("..........", "partition 'x': found no brackets in"),
    ):
        with pytest.raises(InputError, match=message):
            resolve_inputs(ROWS, f"S16, x = pairs{{{write(text)}}}")
    with pytest.raises(InputError, match="partition 'x': found no dot in"):
        resolve_inputs(ROWS, f"JC, x = unpaired{{{write('()')}}}")
