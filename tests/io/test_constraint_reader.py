"""Constraint trees from Newick text: what is read, and what is refused in one line."""

import gzip

import pytest

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
    with pytest.raises(InputError) as caught:
        read_constraint(text, NAMES)
    assert str(caught.value) == message


def test_from_a_file_gzipped_or_not(tmp_path):
    plain, packed = tmp_path / "c.nwk", tmp_path / "c.nwk.gz"
    plain.write_text("((a,b),c,d);\n")
    packed.write_bytes(gzip.compress(b"((a,b),c,d);\r\n"))
    assert read_constraint(plain, NAMES).n_splits == read_constraint(packed, NAMES).n_splits == 1
    with pytest.raises(InputError, match="cannot read the file"):
        read_constraint(tmp_path / "none", NAMES)


def test_a_constraint_in_nexus(tmp_path):
    path = tmp_path / "constraint.nex"
    path.write_text("#NEXUS\nbegin trees;\ntranslate 1 a, 2 'f g';\ntree x = [&R] ((1,b),(c,(d,2)));\nend;\n")
    assert read_constraint(path, NAMES).n_splits == 2
