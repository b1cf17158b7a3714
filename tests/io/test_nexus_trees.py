"""Trees of NEXUS files: names, translations and numbers; dendropy reads the same."""

import pytest

from plltool.errors import InputError
from plltool.io.bridge import nodes_from_object
from plltool.io.nexus_trees import read_nexus_trees
from plltool.io.tree_files import read_tree_set

TEXT = b"""#NEXUS
[a comment [in a comment]]
begin taxa; dimensions ntax=4; taxlabels a 'b c' d_e 'f''s'; end;
begin trees;
  translate 1 a, 2 'b c', 3 d_e, x 'f''s';
  tree * one = [&U] ((1:0.1,2:.2)90:.1,3:1,x[a tip]:1e-2);
  tree 'the other; = one' = [&R] ((a,'b c'),(d_e,'f''s'));
end;
"""


def tips(nodes):
    inner = set(nodes.parents)
    return [label for node, label in enumerate(nodes.labels) if node not in inner]


def test_names_and_lengths():
    one, other = read_nexus_trees(TEXT, "x")
    assert tips(one) == tips(other) == ["a", "b c", "d_e", "f's"]
    assert one.lengths[3] == 0.2


def test_dendropy_reads_the_same():
    dendropy = pytest.importorskip("dendropy")
    found = dendropy.TreeList.get(data=TEXT.decode(), schema="nexus", preserve_underscores=True)
    for ours, theirs in zip(read_nexus_trees(TEXT, "x"), found, strict=True):
        nodes, _ = nodes_from_object(theirs)
        assert tips(ours) == tips(nodes)
        assert ours.parents == nodes.parents


def test_taxa_by_their_numbers():
    text = b"#nexus\nbegin taxa; taxlabels a b c 'd e'; end; begin trees; tree t = ((1,2),3,4); end;"
    assert [tips(nodes) for nodes in read_nexus_trees(text, "x")] == [["a", "b", "c", "d e"]]


def test_unrooted_trees_and_other_blocks():
    text = b"#nexus\nbegin notes; tree n = (a); end; begin trees; utree t = ((a,b),c,d); end;"
    assert [tips(nodes) for nodes in read_nexus_trees(text, "x")] == [["a", "b", "c", "d"]]


def test_a_name_that_is_also_a_number_is_a_name():
    text = b"#nexus\nbegin taxa; taxlabels 2 1 3 4; end; begin trees; tree t = ((1,2),3,4); end;"
    assert [tips(nodes) for nodes in read_nexus_trees(text, "x")] == [["1", "2", "3", "4"]]


@pytest.mark.parametrize(
    ("trees", "problem"),
    [
        ("tree t ((a,b),c,d);", "line 2: found a tree without NAME = ... ;"),
        ("tree t = ((a,b),c,d)", "line 2: found a tree without NAME = ... ;"),
        ("tree t = ((a,b),c,d;", "line 2: tree 't':1:12: found ';', expected"),
        ("translate 1 a 2 b; tree t = ((a,b),c,d);", "line 2: found '1 a 2 b' in a translation"),
        ("translate" + " 1" * 5000 + ";", "in a translation"),
        ("", "found no tree"),
    ],
)
def test_what_cannot_be_read(tmp_path, trees, problem):
    path = tmp_path / "x.nex"
    path.write_text(f"#NEXUS\nbegin trees; {trees} end;" if trees.endswith(";") else f"#NEXUS\nbegin trees; {trees}")
    with pytest.raises(InputError) as caught:
        read_tree_set([path])
    assert problem in str(caught.value)
    assert len(str(caught.value)) < 400


def test_what_dendropy_hangs_on(tmp_path):
    path = tmp_path / "x.nex"
    path.write_bytes(b"#nexus\nBEGIN TAXA; D-3,[e f; end;\nbegin trees; translate 1 a, 2 'b c', ")
    with pytest.raises(InputError, match="found a comment without end"):
        read_tree_set([path])
