"""Trees and alignments of other libraries: the same names, topology and lengths, in both directions."""

import sys
from collections import UserDict, UserString
from io import StringIO
from types import SimpleNamespace

import Bio.Align
import dendropy
import numpy as np
import pytest
from Bio import AlignIO, Phylo
from Bio.Seq import Seq
from Bio.SeqRecord import SeqRecord
from refusals import refused

from plltool.alignment.states import DNA, PROTEIN
from plltool.constants import DEFAULT_BRANCH_LENGTH
from plltool.errors import InputError
from plltool.io.bridge import alignment_from_object, nodes_from_object
from plltool.io.newick import parse_newick, unrooted_tree
from plltool.io.newick_writer import write_newick
from plltool.tree.moves import random_tree

NASTY_NAMES = ("Homo_sapiens", "Pan paniscus", "it's", "", "(a,b);", "é", "a\nb")
ROOTED = "((a:1,b_c:2):3,(d,e:5):4);"
UNROOTED = f"(a:1.0,b_c:2.0,(d:{DEFAULT_BRANCH_LENGTH},e:5.0):7.0);"


def tree_from_object(given, names=None):
    return unrooted_tree(*nodes_from_object(given), names)


def read_dendropy(text, **options):
    return dendropy.Tree.get(data=text, schema="newick", **{"preserve_underscores": True} | options)


def read_biopython(text):
    return Phylo.read(StringIO(text), "newick")


def read_matrix(rows, datatype="dna", kind=dendropy.DnaCharacterMatrix):
    """A matrix of 'label sequence' rows, each sequence having 6 characters."""
    text = (
        f"#NEXUS\nbegin data; dimensions ntax={len(rows)} nchar=6; format datatype={datatype} gap=- missing=?;\n"
        "matrix\n" + "\n".join(rows) + "\n;end;\n"
    )
    return kind.get(data=text, schema="nexus", preserve_underscores=True)


class TestTrees:
    def test_there_and_back(self):
        rng = np.random.default_rng(1)
        tree = random_tree(NASTY_NAMES, rng)
        tree.lengths[:] = rng.exponential(0.1, tree.n_edges)
        dtree = tree.to_dendropy()
        assert tuple(taxon.label for taxon in dtree.taxon_namespace) == NASTY_NAMES
        assert not dtree.is_rooted
        for made in (dtree, tree.to_biopython()):
            again = tree_from_object(made, NASTY_NAMES)
            assert again.names == NASTY_NAMES
            assert again.warnings == ()
            assert write_newick(again) == write_newick(tree)

    def test_others_see_the_tree_that_newick_describes(self):
        tree = parse_newick("(A_1:1,b:2,(c:3,(d:4,e:5):6):7);", "test")
        text = tree.to_dendropy().as_string("newick", unquoted_underscores=True, suppress_rooting=True)
        assert text.strip() == write_newick(tree)
        file = StringIO()
        Phylo.write(tree.to_biopython(), file, "newick", format_branch_length="%.1f")
        assert file.getvalue().strip().replace("):0.0;", ");") == write_newick(tree)

    @pytest.mark.parametrize("rooting", ["[&R]", "[&U]"])
    def test_a_root_with_two_branches_is_removed(self, rooting):
        tree = tree_from_object(read_dendropy(rooting + ROOTED), ["a", "b_c", "d", "e"])
        assert write_newick(tree) == UNROOTED
        assert tree.warnings[0].startswith("dendropy tree: the tree is rooted, its root is removed")

    def test_biopython(self):
        assert write_newick(tree_from_object(read_biopython(ROOTED), ["a", "b_c", "d", "e"])) == UNROOTED
        assert write_newick(tree_from_object(read_biopython(ROOTED).root)) == UNROOTED
        with pytest.raises(InputError, match="Biopython tree: found a tip without a name"):
            tree_from_object(read_biopython("(a,b,);"))

    @pytest.mark.parametrize("library", ["ete3", "ete4"])
    def test_ete(self, library):
        ete = pytest.importorskip(library)
        tree = tree_from_object(ete.Tree(ROOTED), ["a", "b_c", "d", "e"])
        expected = UNROOTED if library == "ete4" else UNROOTED.replace(f"{DEFAULT_BRANCH_LENGTH}", "1.0")
        assert write_newick(tree) == expected

    def test_scikit_bio(self):
        """Its TreeNode has these attributes, and no dist."""
        nodes = [
            SimpleNamespace(name=name, length=own, children=[])
            for name, own in zip("abde", (1, 2, None, 5), strict=True)
        ]
        inner = [SimpleNamespace(name=None, length=own, children=nodes[k : k + 2]) for k, own in ((0, 3), (2, 4))]
        root = SimpleNamespace(name=None, length=None, children=inner)
        assert write_newick(tree_from_object(root)) == UNROOTED.replace("b_c", "b")

    def test_tips_without_taxa_go_by_their_labels(self):
        root = dendropy.Node()
        for label in "abc":
            root.add_child(dendropy.Node(label=label))
        assert tree_from_object(dendropy.Tree(seed_node=root)).names == ("a", "b", "c")
        root.add_child(dendropy.Node())
        with refused("found a tip without a name"):
            tree_from_object(dendropy.Tree(seed_node=root))

    def test_an_underscore_is_no_blank(self):
        with pytest.raises(InputError, match=r"missing from the tree: 'a b'; unknown to the alignment: 'a_b'"):
            tree_from_object(read_dendropy("(a_b,c,d);"), ["a b", "c", "d"])

    def test_blanks_that_dendropy_puts_for_underscores(self):
        dtree = read_dendropy("(Lemur_catta,Homo_s_1,c);", preserve_underscores=False)
        names = ["c", "Homo_s_1", "Lemur_catta"]
        assert tree_from_object(dtree, names).names == tuple(names)
        with pytest.raises(InputError, match=r"'a_b_c'; unknown to the alignment: 'a b_c', 'a_b c'"):
            parse_newick("('a b_c','a_b c',(x,y));", "test", ["a_b_c", "x", "y"])

    @pytest.mark.parametrize("length", [float("nan"), float("inf"), float("-inf")])
    def test_bad_lengths(self, length):
        dtree = read_dendropy("(a,b,c);")
        dtree.leaf_nodes()[1].edge_length = length
        with pytest.raises(InputError, match=f"found a branch of length {length}, expected a finite number"):
            tree_from_object(dtree)

    def test_a_deep_tree_needs_no_recursion(self):
        n_taxa = 5000
        text = "(" * n_taxa + "t" + "".join(f",t{i}:0.5):0.25" for i in range(n_taxa)) + ";"
        tree = parse_newick(text, "test")
        assert write_newick(tree_from_object(tree.to_dendropy(), tree.names)) == write_newick(tree)
        assert write_newick(tree_from_object(tree.to_biopython(), tree.names)) == write_newick(tree)

    @pytest.mark.parametrize("given", [None, 3, ["a", "b"], {"a": 1}])
    def test_what_is_no_tree(self, given):
        expected = "expected a file, Newick text, a plltool Tree, or a tree of dendropy, Biopython"
        with pytest.raises(InputError, match=rf"^tree: found an object of type {type(given).__name__}, {expected}"):
            tree_from_object(given)

    def test_without_biopython(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "Bio.Phylo.BaseTree", None)
        with pytest.raises(ImportError, match=r"^Tree\.to_biopython needs Biopython: pip install biopython$"):
            parse_newick("(a,b,c);", "test").to_biopython()


NAMES = ("a_b", "c d", "e")
ROWS = ("ACGT-?", "ACGTRN", "AYRNYC")
RECORDS = [SeqRecord(Seq(row), id=name) for name, row in zip(NAMES, ROWS, strict=True)]
CHARACTERS = np.array([list(row) for row in ROWS])


class Table(UserDict):
    """What polars has: columns by name, no index."""

    columns, to_numpy = property(list), None


class Letters(UserString):
    """A sequence of scikit-bio is as long as its text, and has its name there."""

    def __init__(self, row, name):
        super().__init__(row)
        self.metadata = {"id": name}


class TestAlignments:
    @pytest.mark.parametrize(
        "given",
        [
            dict(zip(NAMES, ROWS, strict=True)),
            {name: row.encode() for name, row in zip(NAMES, ROWS, strict=True)},
            dict(zip(NAMES, map(bytearray, map(str.encode, ROWS)), strict=True)),
            dict(zip(NAMES, CHARACTERS, strict=True)),
            dict(zip(NAMES, CHARACTERS.astype("S1"), strict=True)),
            dict(zip(NAMES, CHARACTERS.astype(object), strict=True)),
            dict(zip(NAMES, map(list, ROWS), strict=True)),
            dict(zip(NAMES, map(Seq, ROWS), strict=True)),
            dict(zip(NAMES, RECORDS, strict=True)),
            dict(zip(NAMES, map(UserString, ROWS), strict=True)),
            [Letters(row, name) for name, row in zip(NAMES, ROWS, strict=True)],
            list(zip(NAMES, ROWS, strict=True)),
            zip(NAMES, ROWS, strict=True),
            tuple([name, row] for name, row in zip(NAMES, ROWS, strict=True)),
            (NAMES, CHARACTERS),
            (np.array(NAMES), CHARACTERS.astype("S1")),
            (np.array(NAMES), CHARACTERS.astype("S1").view(np.uint8)[::-1][::-1]),
            RECORDS,
            Bio.Align.MultipleSeqAlignment(RECORDS),
        ],
        ids=lambda given: type(given).__name__,
    )
    def test_python_objects(self, given):
        found = alignment_from_object(given)
        assert (found.names, found.rows, found.states) == (NAMES, tuple(map(str.encode, ROWS)), DNA)

    def test_biopython_alignments(self):
        fasta = ">a x\nAC-GT\n>b\nACCGT\n>c\n-CCGT\n"
        for given in (AlignIO.read(StringIO(fasta), "fasta"), Bio.Align.read(StringIO(fasta), "fasta")):
            found = alignment_from_object(given)
            assert (found.names, found.rows) == (("a", "b", "c"), (b"AC-GT", b"ACCGT", b"-CCGT"))
            assert found.source == f"the {type(given).__name__} given"

    def test_pandas(self):
        pandas = pytest.importorskip("pandas")
        series = pandas.Series(ROWS, index=NAMES)
        tables = series.to_frame("seq"), series.rename_axis("name").reset_index(), Table(name=NAMES, seq=ROWS)
        for given in (series, pandas.DataFrame(CHARACTERS, index=NAMES), *tables):
            found = alignment_from_object(given)
            assert (found.names, found.rows) == (NAMES, tuple(map(str.encode, ROWS)))
        with pytest.raises(InputError, match="the Series given: found an object of type int as a taxon name"):
            alignment_from_object(pandas.Series(ROWS))

    @pytest.mark.parametrize("given", [None, 3, CHARACTERS, list(ROWS), [], RECORDS[0]])
    def test_what_is_no_alignment(self, given):
        with pytest.raises(InputError, match=r"^alignment: found an object of type .*, expected a file, a mapping"):
            alignment_from_object(given)

    @pytest.mark.parametrize(
        ("row", "found"),
        [
            (None, ": found an object of type NoneType"),
            (1.5, ": found an object of type float"),
            (np.zeros(6, np.uint8), ", site 1: found .*x00'"),
            (np.zeros(6, np.int8), ", position 1: found 0"),
            (["A", "GT"], ", position 2: found 'GT'"),
        ],
    )
    def test_what_is_no_sequence(self, row, found):
        with pytest.raises(InputError, match=rf"^the mapping given: taxon 'b'{found}, expected"):
            alignment_from_object({"a": "AC", "b": row, "c": "AC"})

    def test_names_without_a_row(self):
        with pytest.raises(InputError, match="alignment: found 2 names for 3 rows, expected a name for each row"):
            alignment_from_object((NAMES[:2], CHARACTERS))

    def test_dendropy(self):
        found = alignment_from_object(read_matrix(["a_b ACGT-?", "'c d' acgtRN", "e A{CT}(AG){ACGT}YC"]))
        assert (found.names, found.rows, found.states, found.told) == (NAMES, tuple(map(str.encode, ROWS)), DNA, True)

    def test_a_cell_that_no_letter_stands_for(self):
        matrix = read_matrix(["a ACGT(-A)A", "b ACGTAA"])
        with pytest.raises(InputError, match=r"taxon 'a', position 5: found .*, which no IUPAC letter stands for"):
            alignment_from_object(matrix)

    def test_dendropy_proteins(self):
        matrix = read_matrix(["a ACDXWY", "b EF-BVV", "c GHIKLM"], "protein", dendropy.ProteinCharacterMatrix)
        found = alignment_from_object(matrix)
        assert (found.rows, found.states) == ((b"ACDXWY", b"EF-BVV", b"GHIKLM"), PROTEIN)

    def test_only_dna_and_proteins(self):
        matrix = dendropy.StandardCharacterMatrix.from_dict({"a": "01"})
        with pytest.raises(InputError, match="found a StandardCharacterMatrix, expected a DnaCharacterMatrix or"):
            alignment_from_object(matrix)
