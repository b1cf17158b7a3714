"""Trees without short branches, and as NEXUS; dendropy reads what is written."""

import pytest

from plltool.io.newick import parse_newick
from plltool.io.newick_writer import collapse_newick, write_newick, write_nexus
from plltool.io.tree_files import read_nexus_trees

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
    inner = set(nodes.parents)
    assert sorted(label for node, label in enumerate(nodes.labels) if node not in inner) == sorted(NAMES)
