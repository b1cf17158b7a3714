"""Newick: what is read, what is refused and how, and that everything written reads back the same."""

import gzip
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from plltool.constants import DEFAULT_BRANCH_LENGTH, MIN_BRANCH_LENGTH
from plltool.errors import InputError
from plltool.io.newick import parse_newick, parse_nodes
from plltool.io.newick_writer import write_newick
from plltool.io.tree_files import read_tree
from plltool.tree.moves import random_tree
from plltool.tree.splits import branch_score_distance, rf_distance

NAMES = ["a", "b", "c", "d", "e"]
PLAIN = "(a:1.0,b:2.0,(c:3.0,(d:4.0,e:5.0):6.0):7.0);"


def read(text, names=None, resolve_seed=None):
    return parse_newick(text, "in.nwk", names, resolve_seed)


def rewrite(text, names=None, **options):
    return write_newick(read(text, names), **options)


def refuses(message, *given, call=read, **options):
    """Exactly with this message."""
    with pytest.raises(InputError, match=rf"\A{re.escape(message)}\Z"):
        call(*given, **options)


# --- reading --------------------------------------------------------------------------------------------

RESOLVE = "expected 3; resolve such nodes at random with --resolve SEED"


def lengths_of_tips(tree):
    return [tree.lengths[tree.edges[tip, 0]] for tip in range(tree.n_taxa)]


def test_plain():
    tree = read(PLAIN)
    assert tree.names == tuple(NAMES)
    assert lengths_of_tips(tree) == [1, 2, 3, 4, 5]
    assert tree.lengths.sum() == 28


@pytest.mark.parametrize(
    "text",
    [
        "(e:5,d:4,(c:3,(b:2,a:1):7):6);",  # rooted elsewhere
        "((e:5,d:4):6,(b:2,a:1):7,c:3);",
        "((a:1,b:2):3,(c:3,(d:4,e:5):6):4);",  # a root with two branches
        "(a:1,(b:2,(c:3,(d:4,e:5):6):7):0);",  # a root in the middle of a tip's branch
        "((a:1,b:2,(c:3,(d:4,e:5):6):7):9);",  # a root with one branch
        "(a:1,b:2,((c:3,((d:1.5):2.5,e:5):6):3):4);",  # nodes with one child
        "((((a:0.5):.5,b:2):3,(c:3,(d:4,e:5):6):4));",  # both
        " \r\n( a : 1 ,\tb:2,\n(c:3,(d:4,e:5)0.99:6)'a label':7) root : 3 ; and more",
        "[&R] (a:1[x[nested] 'quote],b[y]:2,(c:3,(d:4,e:[&z]5):6):7)[];",
        "('a':1,'b':2,('c':3,('d':4,'e':5):6):7);",
        "  5 1\n(a:1,b:2,(c:3,(d:4,e:5):6):7);  / * PAML's */",
        "(a:1e0,b:.2E+1,(c:30e-1,(d:4.,e:+5):6):7);",
    ],
)
def test_spellings_of_one_tree(text):
    assert rewrite(text, NAMES) == PLAIN


BARE = ["A_b", "_", "it's", 'a"b', "é_ü", "x{1}", "a=b", "-1", "1e5", "#1", "\u00a0x", "a\x01b"]
QUOTED = {"'a b'": "a b", "'it''s'": "it's", "''''": "'", "''": "", "'[x](,:;)'": "[x](,:;)"}


@pytest.mark.parametrize(("written", "label"), [*zip(BARE, BARE, strict=True), *QUOTED.items()])
def test_labels(written, label):
    assert read(f"({written},b,c);").names == (label, "b", "c")


def test_missing_lengths():
    """The default, but nothing where the other half of the branch has a length."""
    assert read("(a,b,(c,d));").lengths.tolist() == [DEFAULT_BRANCH_LENGTH] * 5
    for text in ("((a:1,b:1),(c:1,d:1):3);", "((a:1,b:1):3,(c:1,d:1));"):
        assert rewrite(text) == "(a:1.0,b:1.0,(c:1.0,d:1.0):3.0);"
    assert rewrite("((a:1,b:1),(c:1,d:1));") == f"(a:1.0,b:1.0,(c:1.0,d:1.0):{DEFAULT_BRANCH_LENGTH});"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "in.nwk:1:1: found the end of the text, expected '('"),
        ("A;", "in.nwk:1:1: found 'A', expected '('"),
        ("#NEXUS\n", "in.nwk:1:1: found '#NEXUS', expected '('"),
        ("(a,b,\n\nc", "in.nwk:3:2: found the end of the text, expected ':', ',' or ')'"),
        ("(a,b,c)", "in.nwk:1:8: found the end of the text, expected a label, ':' or ';'"),
        ("(a,b,c)x", "in.nwk:1:9: found the end of the text, expected ':' or ';'"),
        ("(a,b,c):1", "in.nwk:1:10: found the end of the text, expected ';'"),
        ("(a,b,c));", "in.nwk:1:8: found ')', expected a label, ':' or ';'"),
        ("(a,b,c;", "in.nwk:1:7: found ';', expected ':', ',' or ')'"),
        ("(a,b,c:1 2);", "in.nwk:1:10: found '2', expected ',' or ')'"),
        ("(a,,c);", "in.nwk:1:4: found ',', expected a taxon name or '('"),
        ("(a,b,());", "in.nwk:1:7: found ')', expected a taxon name or '('"),
        ("(a,\nb c,d);", "in.nwk:2:3: found 'c', expected ':', ',' or ')'"),
        ("('a'b,c,d);", "in.nwk:1:5: found 'b', expected ':', ',' or ')'"),
        ("(a:,b,c);", "in.nwk:1:4: found ',', expected a branch length"),
        ("(a,'b,c);", "in.nwk:1:4: found the end of the text, expected a quote that closes the one here"),
        ("(a,'b''c,d);", "in.nwk:1:4: found the end of the text, expected a quote that closes the one here"),
        ("(a,[b,[c],d);", "in.nwk:1:4: found the end of the text, expected a ']' that closes the comment here"),
        ("(a,b],c);", "in.nwk:1:5: found ']', expected a '[' before it"),
        ("(a,b);", "in.nwk: found a tree of 2 taxa, expected at least 3"),
        ("((a));", "in.nwk: found a tree of 1 taxa, expected at least 3"),
        ("(a,b,a,b,c);", "in.nwk: the tree has the same taxon more than once: 'a', 'b'"),
        ("(x,(a,b,c),y);", f"in.nwk: the node above 'a', 'b', 'c' has 4 branches, {RESOLVE}"),
        (
            "((a,(b,c),d,e,(f)),(g,h));",
            f"in.nwk: the node above 'a', 'b', 'c', 'd', 'e' and 1 more has 6 branches, {RESOLVE}",
        ),
    ],
)
def test_what_is_no_tree_is_refused_with_its_place(text, message):
    refuses(message, text)


@pytest.mark.parametrize("length", ["nan", "-inf", "inf", "1e999", "1_0", "0x1", "1e", "--1", "abc", "'1'", "٣"])
def test_what_is_no_length_is_refused(length):
    with pytest.raises(InputError, match=r"^in\.nwk:1:9: found .*, expected a branch length$"):
        read(f"(a:1, b:{length},c);")


# --- names ----------------------------------------------------------------------------------------------


def test_tips_are_numbered_as_in_the_alignment():
    tree = read(PLAIN, ["e", "c", "a", "b", "d"])
    assert tree.names == ("e", "c", "a", "b", "d")
    assert lengths_of_tips(tree) == [5, 3, 1, 2, 4]


@pytest.mark.parametrize(
    ("names", "differences"),
    [
        ([*NAMES, "f"], "missing from the tree: 'f'"),
        (NAMES[:4], "unknown to the alignment: 'e'"),
        (
            list("abcfghijk"),
            "missing from the tree: 'f', 'g', 'h', 'i', 'j' and 1 more; unknown to the alignment: 'd', 'e'",
        ),
    ],
)
def test_other_taxa_are_refused(names, differences):
    refuses(f"in.nwk: the taxa are not those of the alignment: {differences}", PLAIN, names)
    refuses("the alignment has the same taxon more than once: 'a'", PLAIN, [*NAMES, "a"])


@pytest.mark.parametrize(
    ("text", "names", "lengths"),
    [
        ("(x:1,y:2,'Homo sapiens':3);", ["Homo sapiens", "x", "y"], [3, 1, 2]),
        ("(x:1,y:2,Homo_sapiens:3);", ["Homo sapiens", "x", "y"], [3, 1, 2]),
        ("(x:1,y:2,Homo:3);", ["Homo sapiens (human)", "x", "y z"], [3, 1, 2]),  # the first word of a name
        ("(x:1,y:2,a_b_c:3);", ["a b_c", "x", "y"], [3, 1, 2]),  # only some underscores are blanks
        ("(x:1,a_b:2,'a b':3);", ["a b", "a_b", "x"], [3, 2, 1]),  # the exact name is preferred
        # IQ-TREE 2.0.7 tells of it: "it's -> it_s", "x(y) -> x_y_", "[br] -> _br_", "com,ma -> com_ma"
        ("(it_s:1,x_y_:2,_br_:3);", ["it's", "x(y)", "[br]"], [1, 2, 3]),
        ("(it_s:1,com_ma:2,plain|x/y-1.z:3);", ["it's", "com,ma man", "plain|x/y-1.z"], [1, 2, 3]),
        # branches that PAML and HyPhy tell apart
        ("(x#1:1,y $2:2,'z'#3.5:3);", ["x", "y", "z"], [1, 2, 3]),
        ("(x{FG}:1,y_a{FG}:2{0},z:1e-1{});", ["x", "y a", "z"], [1, 2, 0.1]),
        ("(x:1 #1,y#1:2,z:3)#2;", ["x", "y#1", "z"], [1, 2, 3]),
    ],
)
def test_labels_that_stand_for_names(text, names, lengths):
    tree = read(text, names)
    assert tree.names == tuple(names)
    assert lengths_of_tips(tree) == lengths


HOMINIDS = ["Homo sapiens", "Homo erectus", "x"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("(x,y,Homo);", HOMINIDS),  # of two names
        ("(x,'Homo',Homo_erectus);", HOMINIDS),  # in quotes it is a whole name
        ("(x,Homo_erectus,erectus);", HOMINIDS),
        ("(Homo,Homo_sapiens,x);", HOMINIDS),  # both would be one taxon
        ("(it_s,x_y_,z);", ["it's", "it;s", "x(y)"]),  # of two names
        ("(x,y,'a_b');", ["a b", "x", "y"]),  # in quotes an underscore is an underscore
        ("(x,a_b,z);", ["x", "a b", "a_b"]),  # the exact name is there
        ("(x,y,a_b_c);", ["x", "a b_c", "a_b c"]),  # two names would do
        ("(x,y,a_b_c,a);", ["x", "y", "a b c"]),  # two labels would do
        ("(x,y,z#1,z{FG});", ["x", "y", "z"]),
        ("(x,y,'z#1');", ["x", "y", "z"]),
    ],
)
def test_labels_that_stand_for_no_single_name(text, names):
    with refused("the taxa are not those of the alignment"):
        read(text, names)


@pytest.mark.parametrize(
    ("behind", "label"),
    [
        (":1[98]", "98"),  # RAxML_bipartitionsBranchLabels
        ("[0.98]:1", "0.98"),
        (":1[98/.7]", "98/.7"),
        ("12:1[98]", "12"),
        (":1[&&NHX:S=Homo sapiens:B=98:D=N]", "98"),
        (":1[&&NHX:S=a]", ""),
        (":1[98 %]", ""),
        (":1[]", ""),
    ],
)
def test_supports_in_comments(behind, label):
    nodes = parse_nodes(f"((a[1],b:2[&&NHX:B=3]){behind},c,d[4]);", "in.nwk")
    assert sorted(nodes.labels) == sorted(["", label, *"abcd"])


def test_marks_of_branches_are_no_labels():
    text = "((a,b){FG}:1,c,(d,e) #1);"
    assert set(parse_nodes(text, "in.nwk").labels) == {"", *"abcde"}
    assert rewrite(text) == rewrite("((a,b):1,c,(d,e));")
    refuses("in.nwk:1:8: found '2{FG', expected a branch length", "(a:1,b:2{FG,c:3);")


# --- multifurcations ------------------------------------------------------------------------------------


def test_multifurcations_are_resolved_by_the_seed():
    text = "((a:1,(b:2,c:3):4,d:5,e:6,(f:7):1):9,(g:9,h:9):1);"
    trees = [read(text, resolve_seed=seed) for seed in range(20)]
    assert write_newick(trees[3]) == write_newick(read(text, resolve_seed=3))
    assert len({write_newick(tree) for tree in trees}) > 10
    for tree in trees:
        assert sorted(tree.lengths.tolist()) == [*[MIN_BRANCH_LENGTH] * 3, 1, 2, 3, 4, 5, 6, 8, 9, 9, 10]


def test_a_binary_tree_needs_no_seed():
    assert write_newick(read(PLAIN, resolve_seed=1)) == PLAIN


# --- writing --------------------------------------------------------------------------------------------


def test_digits():
    text = "(a:0.123456789,b:1e-06,c:12345.678);"
    assert rewrite(text) == text


NEED_QUOTES = ["a b", "a\tb", "a\nb", "\x00", "\x85", "\u00a0", "", "it's", *"()[]{}:;,'\"="]


@pytest.mark.parametrize("name", [*NEED_QUOTES, "A_b", "é", "a.b|c-d", "#1", "a/b"])
def test_names_have_quotes_where_they_need_them(name):
    quoted = "'" + name.replace("'", "''") + "'"
    expected = quoted if name in NEED_QUOTES else name
    assert rewrite(f"(x,y,{quoted});", lengths=False) == f"(x,y,{expected});"


@pytest.mark.parametrize(
    ("outgroup", "expected"),
    [
        (None, "(a,b,(c,(d,e)));"),
        (["a"], "(a,b,(c,(d,e)));"),
        (["e"], "(((a,b),c),d,e);"),
        (["d", "e"], "((a,b),c,(d,e));"),
        (["c", "a", "b"], "(((a,b),c),d,e);"),
        (["b", "c", "d", "e"], "(a,b,(c,(d,e)));"),
    ],
)
def test_outgroup_is_a_clade_at_the_base(outgroup, expected):
    assert rewrite(PLAIN, lengths=False, outgroup=outgroup) == expected


@pytest.mark.parametrize(
    ("outgroup", "message"),
    [
        (["a", "x", "y"], "outgroup taxa that are not in the tree: 'x', 'y'"),
        ([], "an outgroup must be some of the taxa, found 0 of 5"),
        (NAMES, "an outgroup must be some of the taxa, found 5 of 5"),
        (["c", "d"], "the outgroup is not one clade: 'e' lies within it"),
    ],
)
def test_outgroups_that_cannot_be(outgroup, message):
    refuses(message, PLAIN, call=rewrite, outgroup=outgroup)


# --- files ----------------------------------------------------------------------------------------------


def test_files_plain_packed_and_with_a_mark(tmp_path):
    plain, packed = tmp_path / "t.nwk", tmp_path / "t.nwk.gz"
    content = "\ufeff(\u00e9,b,'c\r\nd');\n(other,tree,here);\n".encode()
    plain.write_bytes(content)
    packed.write_bytes(gzip.compress(content))
    for path in (plain, str(packed)):
        assert read_tree(path).names == ("\u00e9", "b", "c\nd")


def test_names_that_are_not_utf8_keep_their_bytes(tmp_path):
    path = tmp_path / "t.nwk"
    path.write_bytes(b"(\xe9,b,c);")
    assert read_tree(path).names[0].encode("utf-8", "surrogateescape") == b"\xe9"


def test_all_reference_trees_round_trip(shared):
    paths = sorted((shared / "reference" / "trees").glob("*.nwk"))
    assert paths
    for path in paths:
        tree = read_tree(path)
        again = read(write_newick(tree), tree.names)
        assert branch_score_distance(tree, again) == 0
        assert write_newick(again) == write_newick(tree)


# --- size and chance ------------------------------------------------------------------------------------

N_DEEP = 20_000


def reads_back_the_same(tree):
    text = write_newick(tree)
    return write_newick(read(text, tree.names)) == text


def test_deep_nesting_needs_no_recursion():
    text = "(" * N_DEEP + "t" + "".join(f",t{i}:0.5):0.25" for i in range(N_DEEP)) + ";"
    tree = read(text)
    assert tree.n_taxa == N_DEEP + 1
    assert reads_back_the_same(tree)


def test_deep_comments_and_long_quotes():
    assert read(f"({'[' * N_DEEP}{']' * N_DEEP}a,b,c);").names == ("a", "b", "c")
    assert read(f"('{chr(39) * 2 * N_DEEP}',b,c);").names[0] == "'" * N_DEEP


any_name = st.text(st.characters(exclude_categories=["Cs"]), max_size=1000)
nasty_name = st.text("'\"_ \t\n()[]{}:;,=aé\u2028", max_size=8)


@given(
    names=st.lists(st.one_of(any_name, nasty_name), min_size=3, max_size=12, unique=True),
    seed=st.integers(0, 2**32),
    lengths=st.lists(st.floats(0, 1e300), min_size=21, max_size=21),
)
def test_whatever_is_written_reads_back(names, seed, lengths):
    tree = random_tree(names, np.random.default_rng(seed))
    tree.lengths[:] = lengths[: tree.n_edges]
    text = write_newick(tree)
    again = read(text, names)
    assert rf_distance(tree, again) == 0
    assert write_newick(again) == text
    assert read(text).names[0] == names[0]
    assert rf_distance(read(write_newick(tree, outgroup=names[:1])), tree) == 0


@settings(max_examples=300)
@given(
    text=st.one_of(st.text(), st.text("(),:;'[]ab1._- \n"), st.text("(),a;").map(lambda inner: f"(({inner}),b,c);")),
    names=st.one_of(st.none(), st.lists(st.text("ab_ ", max_size=3), max_size=4)),
    seed=st.one_of(st.none(), st.integers(0, 9)),
)
def test_any_text_gives_a_tree_or_a_one_line_error(text, names, seed):
    tree, message = None, ""
    try:
        tree = read(text, names, seed)
    except InputError as error:
        message = str(error)
    assert len(message.splitlines()) == (1 if tree is None else 0)
    assert tree is None or reads_back_the_same(tree)


@pytest.mark.parametrize("length", ["-1", "-1e-9"])
def test_negative_lengths_are_read_as_zero(length):
    tree = read(f"(a:{length},b:2,(c:1,d:{length}):{length});")
    assert write_newick(tree) == "(a:0.0,b:2.0,(c:1.0,d:0.0):0.0);"
    assert tree.warnings == ("in.nwk: 3 negative branch lengths read as 0",)
    assert read("(a:-0.5,b,c);").warnings == ("in.nwk: 1 negative branch length read as 0",)


@pytest.mark.parametrize("text", ["((a,b),(c,d));", "(a,(b,(c,d)));", "(((a,b),c,d));", "((((a,b),((c),d))));"])
def test_a_removed_root_is_told(text):
    is_rooted = text != "(((a,b),c,d));"
    expected = "in.nwk: the tree is rooted, its root is removed; --outgroup roots the result"
    assert read(text).warnings == ((expected,) if is_rooted else ())
    assert read(text).copy().warnings == ()
