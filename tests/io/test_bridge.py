"""The dendropy bridge: names byte for byte, the same topology and lengths, in both directions."""

import dendropy
import numpy as np
import pytest

from plltool.alignment.states import DNA, PROTEIN
from plltool.constants import DEFAULT_BRANCH_LENGTH, MIN_BRANCH_LENGTH
from plltool.errors import InputError
from plltool.io.bridge import alignment_from_dendropy, from_dendropy, to_dendropy
from plltool.io.newick import parse_newick, write_newick
from plltool.tree.random_tree import random_tree

NASTY_NAMES = ("Homo_sapiens", "Pan paniscus", "it's", "", "(a,b);", "é", "a\nb")


def read_dendropy(text):
    return dendropy.Tree.get(data=text, schema="newick", preserve_underscores=True)


def read_matrix(rows, datatype="dna", kind=dendropy.DnaCharacterMatrix):
    """A matrix of 'label sequence' rows, each sequence having 6 characters."""
    text = (
        f"#NEXUS\nbegin data; dimensions ntax={len(rows)} nchar=6; format datatype={datatype} gap=- missing=?;\n"
        "matrix\n" + "\n".join(rows) + "\n;end;\n"
    )
    return kind.get(data=text, schema="nexus", preserve_underscores=True)


def test_there_and_back():
    rng = np.random.default_rng(1)
    tree = random_tree(NASTY_NAMES, rng)
    tree.lengths[:] = rng.exponential(0.1, tree.n_edges)
    dtree = to_dendropy(tree)
    assert tuple(taxon.label for taxon in dtree.taxon_namespace) == NASTY_NAMES
    assert not dtree.is_rooted
    again = from_dendropy(dtree, NASTY_NAMES)
    assert again.names == NASTY_NAMES
    assert write_newick(again) == write_newick(tree)


def test_dendropy_sees_the_tree_that_newick_describes():
    tree = parse_newick("(A_1:1,b:2,(c:3,(d:4,e:5):6):7);", "test")
    text = to_dendropy(tree).as_string("newick", unquoted_underscores=True, suppress_rooting=True)
    assert text.strip() == write_newick(tree)


@pytest.mark.parametrize("rooting", ["[&R]", "[&U]"])
def test_a_root_with_two_branches_is_taken_away(rooting):
    dtree = read_dendropy(rooting + "((a:1,b_c:2):3,(d,e:5):4);")
    tree = from_dendropy(dtree, ["a", "b_c", "d", "e"])
    assert write_newick(tree) == f"(a:1.0,b_c:2.0,(d:{DEFAULT_BRANCH_LENGTH},e:5.0):7.0);"


def test_tips_without_taxa_go_by_their_labels():
    root = dendropy.Node()
    for label in "abc":
        root.add_child(dendropy.Node(label=label))
    assert from_dendropy(dendropy.Tree(seed_node=root)).names == ("a", "b", "c")


def test_multifurcations():
    dtree = read_dendropy("(a:1,b:1,c:1,d:1);")
    with pytest.raises(InputError, match="dendropy tree: the node above 'a', 'b', 'c', 'd' has 4 branches"):
        from_dendropy(dtree)
    assert sorted(from_dendropy(dtree, resolve_seed=1).lengths.tolist()) == [MIN_BRANCH_LENGTH, 1, 1, 1, 1]


def test_names_must_match_exactly():
    with pytest.raises(InputError, match=r"missing from the tree: 'a b'; unknown to the alignment: 'a_b'"):
        from_dendropy(read_dendropy("(a_b,c,d);"), ["a b", "c", "d"])


@pytest.mark.parametrize("length", [float("nan"), float("inf"), float("-inf")])
def test_bad_lengths(length):
    dtree = read_dendropy("(a,b,c);")
    dtree.leaf_nodes()[1].edge_length = length
    with pytest.raises(InputError, match=f"found a branch of length {length}, expected a finite number"):
        from_dendropy(dtree)


def test_a_tip_without_a_name():
    root = dendropy.Node()
    root.add_child(dendropy.Node())
    with pytest.raises(InputError, match="found a tip without a taxon or label"):
        from_dendropy(dendropy.Tree(seed_node=root))


def test_a_deep_tree_needs_no_recursion():
    n_taxa = 5000
    text = "(" * n_taxa + "t" + "".join(f",t{i}:0.5):0.25" for i in range(n_taxa)) + ";"
    tree = parse_newick(text, "test")
    assert write_newick(from_dendropy(to_dendropy(tree), tree.names)) == write_newick(tree)


def test_alignment():
    matrix = read_matrix(["a_b ACGT-?", "'c d' acgtRN", "e A{CT}(AG){ACGT}YC"])
    names, sequences, states = alignment_from_dendropy(matrix)
    assert states is DNA
    assert names == ("a_b", "c d", "e")
    assert sequences == ("ACGT-?", "ACGTRN", "AYRNYC")


def test_a_cell_that_no_letter_stands_for():
    matrix = read_matrix(["a ACGT(-A)A", "b ACGTAA"])
    with pytest.raises(InputError, match=r"taxon 'a', position 5: found .*, which no IUPAC letter stands for"):
        alignment_from_dendropy(matrix)


def test_proteins():
    matrix = read_matrix(["a ACDXWY", "b EF-BVV", "c GHIKLM"], "protein", dendropy.ProteinCharacterMatrix)
    assert alignment_from_dendropy(matrix)[1:] == (("ACDXWY", "EF-BVV", "GHIKLM"), PROTEIN)


def test_only_dna_and_proteins():
    matrix = dendropy.StandardCharacterMatrix.from_dict({"a": "01"})
    with pytest.raises(InputError, match="found a StandardCharacterMatrix, expected a DnaCharacterMatrix or a Protein"):
        alignment_from_dendropy(matrix)
