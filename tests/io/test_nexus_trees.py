"""Trees of NEXUS files and as NEXUS, without short branches: names, translations, numbers; dendropy reads the same."""

import pytest
from refusals import refused

from plltool.io.bridge import nodes_from_object
from plltool.io.newick import parse_newick, parse_nodes, parse_trees
from plltool.io.newick_writer import collapse_newick, write_newick, write_nexus
from plltool.io.tree_files import read_nexus_trees, read_tree_set

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
    return [nodes.labels[tip] for tip in nodes.tips]


def test_names_and_lengths():
    one, other = read_nexus_trees(TEXT, "x")
    assert tips(one) == tips(other) == ["a", "b c", "d_e", "f's"]
    assert one.lengths[3] == 0.2


def test_marks_of_branches_behind_translated_numbers():
    """As HyPhy and PAML write them; a name that has the mark stays."""
    marked = TEXT.replace(b"(1:0.1,2:.2)", b"(1{FG}:0.1,2#1:.2)").replace(b"x[a tip]", b"e{FG}")
    assert tips(next(read_nexus_trees(marked, "x"))) == ["a", "b c", "d_e", "e{FG}"]


def test_ignored_weights_of_trees_are_told(tmp_path, caplog):
    path = tmp_path / "x.nex"
    for (one, other), n_warnings in ((("1", "1"), 0), (("1", "2/3"), 1), ((".5", ".5"), 1)):
        path.write_text(TEXT.decode().replace("[&U]", f"[&U][&W {one}]").replace("[&R]", f"[&W {other}] [&R]"))
        caplog.clear()
        assert read_tree_set([path]).n_trees == 2
        assert sum("weights of trees" in message for message in caplog.messages) == n_warnings


def test_dendropy_reads_the_same():
    dendropy = pytest.importorskip("dendropy")
    found = dendropy.TreeList.get(data=TEXT.decode(), schema="nexus", preserve_underscores=True)
    for ours, theirs in zip(read_nexus_trees(TEXT, "x"), found, strict=True):
        nodes, _ = nodes_from_object(theirs)
        assert tips(ours) == tips(nodes)
        assert ours.parents == nodes.parents


def inner_labels(nodes):
    return [nodes.labels[node] for node, below in enumerate(nodes.children()) if below and node]


@pytest.mark.parametrize(
    ("newick", "label"),
    [
        ("(a,(b,c)[&tbe=0.5,fbp=66.7]:1,d)", "0.5/66.7"),  # plltool
        # BEAST
        ("(a[&rate=2]:1,(b,c)[&height_95%_HPD={1.0,2.0},posterior=0.98]:1[&rate=3],d)[&posterior=1.0]", "0.98"),
        ('(a,(b,c)[&prob=9.50000000e-01,prob(percent)="95"]:1[&length_mean=1],d)', "0.95"),  # MrBayes
        ('(a,(b,c):1[&!color=#ff0000,label="98"],d)', "98"),  # FigTree
        ("(a,(b,c)77[&posterior=0.5]:1,d)", "77"),  # a label wins
        ("(a,(b,c)[&posterior=0.5]77:1,d)", "77"),
        ("(a,(b,c)[&height=3]:1,d)", ""),
        ("(a,(b,c)[posterior=0.5]:1,d)", ""),  # no annotation
    ],
)
def test_supports_in_annotations(newick, label):
    text = f"#nexus\nbegin trees; [x] tree s_0 [&lnP=-5.0] = [&R] {newick}; end;".encode()
    (nodes,) = read_nexus_trees(text, "x")
    assert inner_labels(nodes) == [label]
    assert sorted(tips(nodes)) == ["a", "b", "c", "d"]
    assert nodes.labels == parse_nodes(f"{newick};", "x").labels
    assert len(list(parse_trees(f"{newick};\n{newick}; [&end]", "x"))) == 2


@pytest.mark.parametrize(
    ("blocks", "names"),
    [
        ("taxa; taxlabels a[&!color=#ff] b[&x=1] c; end; begin trees; tree t = (1,2,3);", ["a", "b", "c"]),
        ("taxa; taxlabels a b c 'd e'; end; begin trees; tree t = ((1,2),3,4);", ["a", "b", "c", "d e"]),
        ("notes; tree n = (a); end; begin trees; utree t = ((a,b),c,d);", ["a", "b", "c", "d"]),
        ("taxa; taxlabels 2 1 3 4; end; begin trees; tree t = ((1,2),3,4);", ["1", "2", "3", "4"]),
    ],
    ids=["annotations of taxa", "taxa by their numbers", "other blocks, utree", "names that are numbers"],
)
def test_names_of_tips(blocks, names):
    nexus = f"#nexus\nbegin {blocks} end;".encode()
    assert [tips(nodes) for nodes in read_nexus_trees(nexus, "x")] == [names]


@pytest.mark.parametrize(
    ("trees", "problem"),
    [
        ("tree t ((a,b),c,d);", "line 2: found a tree without a name and a final semicolon"),
        ("tree t = ((a,b),c,d)", "line 2: found a tree without a name and a final semicolon"),
        ("tree t = ((a,b),c,d;", "line 2: tree 't':1:12: found ';', expected"),
        ("translate 1 a 2 b; tree t = ((a,b),c,d);", "line 2: found '1 a 2 b' in a translation"),
        ("translate" + " 1" * 5000 + ";", "in a translation"),
        ("", "found no tree"),
        ("end; BEGIN TAXA; D-3,[e f; end;\nbegin trees; translate 1 a, 2 'b c', ", "found a comment without end"),
    ],
)
def test_what_cannot_be_read(write, trees, problem):
    """dendropy hangs on the last one."""
    end = " end;" if trees.endswith(";") else ""
    with refused(problem) as caught:
        read_tree_set([write(f"#NEXUS\nbegin trees; {trees}{end}")])
    assert len(str(caught.value)) < 400


NAMES = ["a", "b c", "it's", "d_e", "x,(y);[z]", "🌳", "5-6", "n" * 1000]


@pytest.mark.parametrize(
    ("threshold", "expected", "number"),
    [
        (1e-7, "(a:1.0,b:1.0,((c:1.0,d:1.0):1e-06,(e:0.0,f:1.0):0.001):0.5);", 0),
        (1e-6, "(a:1.0,b:1.0,(c:1.0,d:1.0,(e:0.0,f:1.0):0.001):0.5);", 1),
        (0.01, "(a:1.0,b:1.0,(c:1.0,d:1.0,e:0.0,f:1.0):0.5);", 2),
        (1.0, "(a:1.0,b:1.0,c:1.0,d:1.0,e:0.0,f:1.0);", 3),
    ],
)
def test_inner_branches_are_collapsed_and_tips_stay(threshold, expected, number):
    newick = "(a:1,b:1,((c:1,d:1):1e-6,(e:0,f:1):.001):.5);"
    assert collapse_newick(newick, threshold) == (expected, number)


def test_a_tree_without_lengths_stays_as_it_is():
    assert collapse_newick("(a,b,(c,d));", 1.0) == ("(a,b,(c,d));", 0)


def test_a_deep_tree_is_collapsed():
    n = 20_000
    newick = "(x:1," * n + "a:1,b:1" + "):1e-6" * (n - 1) + ");"
    collapsed, number = collapse_newick(newick, 1e-6)
    assert number == n - 1
    assert collapsed.count("(") == 1
    assert collapsed.count(",") == n + 1


def test_names_survive_in_nexus():
    dendropy = pytest.importorskip("dendropy")
    quoted = ["'" + name.replace("'", "''") + "'" for name in NAMES]
    newick = f"({quoted[0]}:1,{quoted[1]}:1,({','.join(quoted[2:4])},({','.join(quoted[4:])})):.5);"
    text = write_nexus(write_newick(parse_newick(newick, "x", resolve_seed=1)))
    (tree,) = dendropy.TreeList.get(data=text, schema="nexus")
    assert sorted(taxon.label for taxon in tree.taxon_namespace) == sorted(NAMES)
    assert not tree.is_rooted
    (nodes,) = read_nexus_trees(text.encode(), "x")
    assert sorted(tips(nodes)) == sorted(NAMES)
