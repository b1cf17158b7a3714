"""Files of placements: read as dendropy reads their trees, with names of all kinds; what is wrong with bad ones."""

import json

import dendropy
import pytest
from refusals import refused

from plltool.io.jplace import JplaceRow, format_jplace, parse_jplace

TREE = "('a{7}':0.1{0},b:2e-1{3},('it''s':0.1{2},(d:0.3{1},e:0.1{4}):0.05{9}):0.15{6});"
ROW = JplaceRow(9, -10.5, 0.75, 0.01, 0.02)


def read(text):
    return parse_jplace(text.encode(), "x.jplace")


def test_numbers_stand_for_the_branches_that_dendropy_finds():
    found = read(format_jplace(TREE, [(("q", "r"), [ROW, JplaceRow(3, -11.0, 0.25, 0.0, 0.1)])], {}))
    tree = dendropy.Tree.get(data=TREE, schema="newick", is_parse_jplace_tokens=True, preserve_underscores=True)
    expected = {
        edge.edge_number: {leaf.taxon.label for leaf in edge.head_node.leaf_iter()}
        for edge in tree.postorder_edge_iter()
        if edge.tail_node is not None
    }
    children = found.nodes.children()

    def taxa_below(node):
        below = children[node]
        return set().union(*map(taxa_below, below)) if below else {found.nodes.labels[node]}

    assert {number: taxa_below(node) for number, node in found.node_of.items()} == expected
    assert found.queries == ((("q", "r"), (ROW, JplaceRow(3, -11.0, 0.25, 0.0, 0.1))),)


def test_fields_in_any_order_multiplicities_and_a_number_at_the_root():
    """As pplacer writes them."""
    fields = ["distal_length", "edge_num", "like_weight_ratio", "likelihood", "pendant_length", "post_prob"]
    entry = {"p": [[0.01, 9, 0.75, -10.5, 0.02, 0.5]], "nm": [["q", 1], ["r", 3]]}
    given = {"version": 3, "tree": TREE.replace(";", "{10};"), "fields": fields, "placements": [entry]}
    found = read(json.dumps(given))
    assert found.queries == ((("q", "r"), (ROW,)),)
    assert set(found.node_of) == {0, 1, 2, 3, 4, 6, 9}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"tree": "(a:1{0},b:1{1},c:1);"}, "tree: found 2 different numbers of branches, expected one at each of 3"),
        ({"tree": "(a:1{0},b:1{1},c:1{1});"}, "tree: found 2 different numbers of branches"),
        ({"tree": "(a:1{0},b"}, "tree:1:7: found the end of the text"),
        ({"fields": ["edge_num"]}, "fields: 'likelihood' is not in list, expected edge_num, likelihood"),
        ({"placements": [{"p": [[8, -1, 1, 0, 0]], "n": ["q"]}]}, "query 1: found branch 8, expected a number"),
        ({"placements": [{"p": [], "n": ["q"]}]}, "query 1: found no place, expected at least one"),
        ({"placements": [{"p": [[9, -1, 1, 0]], "n": ["q"]}]}, "query 1: found IndexError"),
        ({"placements": [{"p": [[9, None, 1, 0, 0]], "n": ["q"]}]}, "query 1: found TypeError"),
        ({"placements": [{"p": [[9, 1e999, 1, 0, 0]], "n": ["q"]}]}, "query 1: found a number that is not finite"),
        ({"placements": [{"p": [[9, -1, 1, 0, 0]]}]}, "query 1: found KeyError"),
    ],
)
def test_what_is_wrong_is_told_in_a_line(change, problem):
    entry = {"p": [list(ROW)], "n": ["q"]}
    given = {"tree": TREE, "fields": list(JplaceRow._fields), "placements": [entry]} | change
    with refused(problem, "x.jplace: "):
        read(json.dumps(given))
