"""Supports from replicate trees against a slow oracle and values by hand, and their invariance under re-rooting."""

import numpy as np
import pytest
from dendropy import Tree as DendropyTree
from oracles.transfer import transfer_support
from refusals import refused
from tree_samples import dendropy_list, dendropy_sides, similar_trees

from plltool.analyses.supports.support import load_target, supports
from plltool.io.newick import parse_newick
from plltool.run.inputs import as_tree
from plltool.run.supports import format_support
from plltool.tree.splits import members_of, splits_of


def named_sides(tree):
    """The names on the side without taxon 0, for each branch."""
    return [frozenset(tree.names[taxon] for taxon in members_of(split)) for split in splits_of(tree)]


@pytest.mark.parametrize(("n_taxa", "n_trees", "swaps"), [(4, 3, 1), (6, 5, 1), (13, 8, 2), (66, 6, 5)])
def test_supports_are_those_of_the_oracle(n_taxa, n_trees, swaps):
    texts = similar_trees(n_taxa, n_trees + 1, swaps, seed=2)
    tree = parse_newick(texts[0], "test")
    names = frozenset(tree.names)
    replicates = [[*dendropy_sides(other)] for other in dendropy_list(texts[1:])]
    found = supports(tree, [parse_newick(text, "test") for text in texts[1:]], ("fbp", "tbe"))
    for branch, side in enumerate(named_sides(tree)):
        if 1 < len(side) < n_taxa - 1:
            share = sum(side in sides or names - side in sides for sides in replicates) / n_trees
            assert found.values["fbp"][branch] == pytest.approx(100 * share, rel=1e-12)
            expected = transfer_support(side, replicates, names)
            assert found.values["tbe"][branch] == pytest.approx(expected, rel=1e-12)
        else:
            assert np.isnan([found.values["fbp"][branch], found.values["tbe"][branch]]).all()


def test_by_hand():
    tree = parse_newick("(a,(b,c),(d,(e,f)));", "test")
    trees = [parse_newick(text, "test") for text in ("(a,(b,c),(d,(e,f)));", "(b,(a,c),(d,(e,f)));")]
    found = supports(tree, trees, ["fbp", "tbe"])
    assert found.newick("fbp").replace(":0.1", "") == "(a,(b,c)50,(d,(e,f)100)100);"
    assert found.newick("tbe").replace(":0.1", "") == "(a,(b,c)0.5,(d,(e,f)1)1);"
    assert found.newick().replace(":0.1", "") == "(a,(b,c)50/0.5,(d,(e,f)100/1)100/1);"
    assert found.newick("tbe", "fbp").replace(":0.1", "") == "(a,(b,c)0.5/50,(d,(e,f)1/100)1/100);"
    annotated = "(a,(b,c)[&fbp=50,tbe=0.5],(d,(e,f)[&fbp=100,tbe=1])[&fbp=100,tbe=1]);"
    assert f"tree supports = [&U] {annotated}\n" in found.nexus().replace(":0.1", "")
    record = found.as_record()
    assert record["tree"] == found.newick()
    assert {kind: (row["unit"], row["replicates"]) for kind, row in record["kinds"].items()} == {
        "fbp": ("per cent", 2),
        "tbe": ("0 to 1", 2),
    }
    rows = {",".join(row["taxa"]): (row["fbp"], row["tbe"]) for row in record["branches"]}
    assert rows.keys() >= {"b,c", "e,f"}
    assert rows["b,c"] == (50, 0.5)


@pytest.mark.parametrize("outgroup", [["t3"], None])
def test_supports_stay_with_their_branches(outgroup):
    texts = similar_trees(15, 9, 2, seed=5)
    found = supports(texts[0], [parse_newick(text, "test") for text in texts[1:]], outgroup=outgroup)
    expected = dict(zip(named_sides(found.tree), found.values["fbp"], strict=True))
    names = frozenset(found.tree.names)
    written = DendropyTree.get(data="[&U]" + found.newick("fbp"), schema="newick")
    n_labels = 0
    for node in written.preorder_internal_node_iter(exclude_seed_node=True):
        side = frozenset(leaf.taxon.label for leaf in node.leaf_iter())
        side = side if found.tree.names[0] not in side else names - side
        assert float(node.label) == pytest.approx(expected[side], rel=1e-5)
        n_labels += 1
    assert n_labels == 12


def test_replicates_with_multifurcations():
    found = supports("(a,(b,c),(d,(e,f)));", ["(a,b,c,d,e,f);", "(a,b,c,d,(e,f));"], ("fbp", "tbe"))
    assert found.newick("fbp").replace(":0.1", "") == "(a,(b,c)0,(d,(e,f)50)0);"
    assert found.newick("tbe").replace(":0.1", "") == "(a,(b,c)0,(d,(e,f)0.5)0.25);"  # def is one taxon from ef


def test_errors(tmp_path):
    tree, path = "(a,b,(c,d));", tmp_path / "trees.nwk"
    path.write_text("(a,b,(c,x));")
    with refused("trees.nwk: tree 1: the taxa are not those of the tree: missing from the tree: 'd'"):
        supports(tree, path)
    with refused("supports: found 'alrt', expected some of: fbp, tbe"):
        supports(tree, path, ("alrt",))
    with refused("supports: found none, expected some of: fbp, tbe"):
        supports(tree, path, ())
    with refused("the outgroup's taxon 'x' is not in the tree"):
        supports(tree, [tree], outgroup=["x"])
    with refused("supports: found 'tbe', expected some of: fbp"):
        supports(tree, [tree]).newick("tbe")
    with refused("replicate tree 2: found no root, expected one, with two branches"):
        supports(ROOTED[0], [ROOTED[0], "((a,b),c,(d,e));"], ["rootstrap"])


def test_transfer_supports_of_another_program():
    """`iqtree2 -s data/primates.phy -m HKY -b 20 -seed 7 --tbe` of IQ-TREE 2.0.7: its 20 trees and its .tbe.tree."""
    shape = "(tar,lem,(((({apes}),hyl),{macaques}),sai));"
    apes, macaques = "(((hom,pan),gor),pon)", "(((fus,mul),fas),syl)"
    texts = [
        "(tar,lem,((((((hom,pan),gor),hyl),pon),(((fus,mul),fas),syl)),sai));",
        *15 * [shape.format(apes=apes, macaques=macaques)],
        shape.format(apes=apes, macaques="((fus,mul),(fas,syl))"),
        *3 * [shape.format(apes="((hom,(pan,gor)),pon)", macaques=macaques)],
    ]
    tree = parse_newick(texts[1], "test")
    found = supports(tree, [parse_newick(text, "test") for text in texts], ("fbp", "tbe"))
    assert found.newick("tbe").replace(":0.1", "") == (
        "(tar,lem,((((((hom,pan)0.85,gor)1,pon)0.983,hyl)1,(((fus,mul)1,fas)0.975,syl)1)1,sai)1);"
    )
    assert found.newick("fbp").replace(":0.1", "") == (
        "(tar,lem,((((((hom,pan)85,gor)100,pon)95,hyl)100,(((fus,mul)100,fas)95,syl)100)100,sai)100);"
    )


def test_the_first_of_several_trees(tmp_path, caplog):
    path = tmp_path / "trees.nwk"
    path.write_text("(a,(b,c),(d,e));\n(b,(a,c),(d,e));\n")
    assert supports(path, path).newick("fbp").replace(":0.1", "") == "(a,(b,c)50,(d,e)100);"
    assert caplog.messages == [f"{path}: found several trees, the first one is taken"]
    path.write_text("(a,(b,c),(d,e)); whatever")
    assert load_target(path).tree.n_taxa == 5
    assert len(caplog.messages) == 1


def test_trees_with_multifurcations(tmp_path):
    """Their branches have the supports that they have in a tree that resolves them; no branch is made up."""
    replicates = ["(a,(b,c),(d,(e,f)));", "(b,(a,c),(d,(e,f)));"]
    nexus = tmp_path / "tree.nex"
    text = "((1:1,2:1,c:1):2,(d:1,(e:1,f:1)80:3):1)"
    nexus.write_text(f"#NEXUS\nbegin trees;\ntranslate 1 a, 2 b;\ntree x = [&R] {text};\nend;\n")
    found = supports(nexus, replicates, ("fbp", "tbe"))
    assert found.newick("fbp") == "(a:1.0,b:1.0,c:1.0,(d:1.0,(e:1.0,f:1.0)100:3.0)100:3.0);"
    turned = supports(nexus, replicates, ("fbp", "tbe"), ["f", "e"])
    assert turned.newick("tbe") == "((a:1.0,b:1.0,c:1.0)1:3.0,d:1.0,(e:1.0,f:1.0)1:3.0);"
    assert [branch["taxa"] for branch in found.as_record()["branches"]] == [["d", "e", "f"], ["e", "f"]]
    ordered = found.in_order(("tbe", "fbp"))
    assert list(ordered.values) == ["tbe", "fbp"]
    assert ordered.newick("fbp") == found.newick("fbp")
    assert supports("(a,b,c,d,e,f);", [replicates[0]]).describe()[0].endswith("(per cent, 1 replicate)")
    star = supports("(a,b,c,d,e,f);", replicates)
    assert star.newick().replace(":0.1", "") == "(a,b,c,d,e,f);"
    assert star.as_record()["branches"] == []
    everyone = supports("((a,b),(c,d,(e,f)));", replicates)
    assert everyone.newick("fbp") == "(a,b,(c,d,(e,f)100)0);"


def test_an_outgroup_that_is_no_clade(caplog):
    found = supports("((a,b),(c,d),(e,f));", ["(a,b,(c,d),(e,f));"], outgroup=["e", "a"])
    assert found.newick().replace(":0.1", "") == "(((a,b)0,(c,d)100)100,e,f);"
    assert caplog.messages == ["the outgroup is not one clade: 'f' lies within it; 'e' alone is used as the outgroup"]


@pytest.mark.parametrize("outgroup", [[a, b] for a in "abcd" for b in "abcd" if a < b])
def test_an_outgroup_that_only_the_resolution_makes_a_clade(outgroup, caplog):
    """Whichever two the arbitrary resolution has put together: the tree has no such clade."""
    star = "(a,b,c,d,(e,f));"
    replicates = ["((a,b),(c,d),(e,f));"]
    found = supports(star, replicates, outgroup=outgroup)
    assert found.outgroup == outgroup[:1]
    assert f"; '{outgroup[0]}' alone is used as the outgroup" in caplog.text
    assert found.newick().replace(":0.1", "") == "(a,b,c,d,(e,f)100);"
    caplog.clear()
    assert supports(star, replicates, outgroup=["f", "e"]).outgroup == ["f", "e"]
    assert caplog.text == ""


def test_other_programs_read_the_annotations():
    """DendroPy takes each kind of each branch from the NEXUS text; names with blanks and underscores stay."""
    text = "(a_1,('b 2',c),(d,(e,f)));"
    replicates = [parse_newick(other, "test") for other in (text, "('b 2',(a_1,c),(d,(e,f)));")]
    found = supports(text, replicates, ("fbp", "tbe"))
    read = DendropyTree.get(data=found.nexus(), schema="nexus", extract_comment_metadata=True)
    rows = {}
    for node in read.preorder_internal_node_iter(exclude_seed_node=True):
        values = [node.annotations.get_value(kind) for kind in ("fbp", "tbe")]
        rows[frozenset(leaf.taxon.label for leaf in node.leaf_iter())] = values
    assert rows == {
        frozenset(("b 2", "c")): ["50", "0.5"],
        frozenset("def"): ["100", "1"],
        frozenset("ef"): ["100", "1"],
    }
    assert {leaf.taxon.label for leaf in read.leaf_nodes()} == {"a_1", "b 2", "c", "d", "e", "f"}


ROOTED = ["((a,b),(c,(d,e)));", "(a,(b,(c,(d,e))));", "((a,b),(c,(d,e)));", "((d,e),((a,c),b));"]


def test_roots_by_hand(tmp_path):
    """Of four replicates two have the root between a b and c d e, one at a, and one above d e."""
    path = tmp_path / "replicates.nwk"
    path.write_text("\n".join(ROOTED))
    found = supports(ROOTED[0], path, ["fbp", "rootstrap"])
    assert found.tree.is_rooted
    assert found.newick().replace(":0.1", "").replace(":0.05", "") == "((a,b)75/50,(c,(d,e)100/25)75/50);"
    assert found.newick("rootstrap").replace(":0.1", "").replace(":0.05", "") == "((a,b)50,(c,(d,e)25)50);"
    assert "= [&R] " in found.nexus()
    assert found.root_places() == [(["a", "b"], 50.0), (["a"], 25.0), (["d", "e"], 25.0)]
    record = found.as_record()
    assert [(row["taxa"], row["fbp"], row["rootstrap"]) for row in record["branches"]] == [
        (["a", "b"], 75.0, 50.0),
        (["d", "e"], 100.0, 25.0),
    ]
    assert [row["taxa"] for row in found._rows()] == [("a", "b"), ("d", "e")]
    assert record["root_places"][1] == {"taxa": ["a"], "rootstrap": 25.0}
    assert found.describe()[2:] == [
        "root: 50 % of the replicates  'a', 'b' | others",
        "root: 25 % of the replicates  'a' | others",
        "root: 25 % of the replicates  'd', 'e' | others",
    ]
    unrooted = supports("((a,b),c,(d,e));", path, ["rootstrap"])
    assert unrooted.root_places() == found.root_places()
    trees = [as_tree(text, ("(root)", *"abcde")) for text in ROOTED]
    again = supports(trees[0], trees, ["fbp", "rootstrap"])
    assert again.as_record() | {"tree": record["tree"]} == record, "all but lengths, which a Tree always has"


def test_a_root_at_a_tip():
    """Its branch has no support but that of the root; roots on branches that the tree lacks count for none."""
    found = supports("(a,(b,(c,(d,e))));", [*ROOTED, "((b,c),(a,(d,e)));"], ["fbp", "tbe", "rootstrap"])
    text = found.newick("fbp", "rootstrap").replace(":0.1", "").replace(":0.05", "")
    assert text == "(a,(b,(c,(d,e)100/20)60/40)NA/20);"
    assert sum(value for _, value in found.root_places()) == pytest.approx(80)
    assert len(found.as_record()["branches"]) == 2
    assert len(found.branches) == 2


@pytest.mark.parametrize(
    ("value", "unit", "label"),
    [
        (94.19999999999999, "per cent", "94.2"),
        (100.0, "per cent", "100"),
        (2 / 3, "0 to 1", "0.667"),
        (1.0, "0 to 1", "1"),
        (-0.0001, "-1 to 1", "0"),
        (float("nan"), "per cent", "NA"),
    ],
)
def test_labels_are_rounded_alike(value, unit, label):
    assert format_support(value, unit) == label
