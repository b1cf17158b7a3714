"""Constraint trees from Newick text: what is read, and what is refused in one line."""

import gzip
import re
from pathlib import Path

import pytest
from refusals import refused

from plltool.errors import InputError
from plltool.io.tree_files import read_constraint

NAMES = ["a", "b", "c", "d", "e", "f g"]


@pytest.mark.parametrize(
    ("text", "members", "splits"),
    [
        ("((a,b),c,d);", 4, 1),
        ("((a,b),(c,d));", 4, 1),
        ("(((a:1,b:2)90:3,c)x,d,e);", 5, 2),
        ("((((a,b))),(c,(d,f_g)));", 5, 2),
        ("((a,b,c),d,e,'f g')[comment];(a,b);", 6, 1),
    ],
)
def test_what_is_read(text, members, splits):
    constraint = read_constraint(text, NAMES)
    assert (constraint.n_members, constraint.n_splits) == (members, splits)


@pytest.mark.parametrize("text", ["(a,b,c,d);", "((a,b),c);", "(a,b);", "(a);", "((a,b,c),d);", "(((a,b,c,d,e)));"])
def test_trees_without_inner_branches_are_no_constraint(text):
    assert read_constraint(text, NAMES) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("((a,x),(y,b));", "the constraint given: taxa of the constraint that are not in the alignment: 'x', 'y'"),
        ("((a,b),(b,c));", "the constraint given: the constraint has the same taxon more than once: 'b'"),
        ("((a,b),(c,d)", "the constraint given:1:13: found the end of the text, expected a label, ':', ',' or ')'"),
    ],
)
def test_what_is_refused(text, message):
    with pytest.raises(InputError, match=rf"\A{re.escape(message)}\Z"):
        read_constraint(text, NAMES)


NEXUS = "#NEXUS\nbegin trees;\ntranslate 1 a, 2 'f g';\ntree x = [&R] ((1,b),(c,(d,2)));\nend;\n"


@pytest.mark.parametrize(
    ("content", "splits"),
    [("((a,b),c,d);\n", 1), (gzip.compress(b"((a,b),c,d);\r\n", mtime=0), 1), (NEXUS, 2)],
    ids=["Newick", "packed", "NEXUS"],
)
def test_from_a_file(write, tmp_path, content, splits):
    assert read_constraint(Path(write(content)), NAMES).n_splits == splits
    with refused("cannot read the file"):
        read_constraint(tmp_path / "none", NAMES)
