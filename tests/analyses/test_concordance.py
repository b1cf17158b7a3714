"""Concordance factors against their definitions, IQ-TREE and RAxML; trees with roots, multifurcations, or few taxa."""

import re
import shutil
import subprocess

import numpy as np
import pytest
from dendropy import Tree as DendropyTree
from oracles import concordance as oracle
from scipy import linalg
from tree_samples import dendropy_list, similar_trees

from plltool.analyses.concordance.analysis import concordance
from plltool.errors import InputError
from plltool.io.newick import parse_newick
from plltool.io.newick_writer import write_newick
from plltool.tree.moves import random_tree
from plltool.tree.splits import smaller_sides
from plltool.tree.topology import restrict_tree

# iqtree2 2.0.7 -t TREE -s data/primates.phy --scf 5000 -seed 3, TREE below: sCF, sDF1, sDF2, sN by branch length
TREE = (
    "(Gorilla:0.06,(Homo_sapiens:0.05,Pan:0.06):0.0253097,((Hylobates:0.17,(((Lemur_catta:0.36,Tarsius_syrichta:0.53)"
    ":0.289504,Saimiri_sciureus:0.47):0.11747,((M_fascicularis:0.057,(M_mulatta:0.023,Macaca_fuscata:0.016):0.0344597)"
    ":0.042026,M_sylvanus:0.075):0.263088):0.125172):0.0499692,Pongo:0.14):0.079923);"
)
IQTREE_SCF = {
    0.289504: (51.29, 27.55, 21.16, 82.2028),
    0.11747: (43.65, 31.65, 24.70, 83.033),
    0.125172: (51.59, 24.57, 23.85, 77.082),
    0.0499692: (44.91, 28.43, 26.66, 60.2956),
    0.079923: (57.90, 21.80, 20.30, 61.1694),
    0.0253097: (43.64, 25.15, 31.21, 45.4556),
    0.263088: (67.86, 15.37, 16.77, 88.497),
    0.042026: (53.03, 20.54, 26.43, 49.0262),
    0.0344597: (63.16, 23.03, 13.81, 32.6696),
}


def gene_trees(n_taxa=10, n_trees=14, lacking=True, seed=3):
    """A tree, and trees that differ from it by nearest-neighbour interchanges; every other one lacks taxa."""
    rng = np.random.default_rng(seed)
    base = random_tree([f"t{i}" for i in range(n_taxa)], rng)
    base.lengths[:] = rng.exponential(0.1, base.n_edges)
    genes = []
    for number in range(n_trees):
        tree = base.copy()
        for _ in range(3):
            branch = rng.choice(np.flatnonzero(tree.is_inner_branch))
            a, b = tree.ends[branch]
            swapped = [int(rng.choice([x for x in tree.neighbours[u] if x != v])) for u, v in ((a, b), (b, a))]
            ends = tree.ends.copy()
            for old, new, moved in ((a, b, swapped[0]), (b, a, swapped[1])):
                row = tree.edge_between(int(old), moved)
                ends[row] = [new if end == old else end for end in ends[row]]
            tree = type(tree).from_edges(tree.names, ends, tree.lengths)
        if lacking and number % 2:
            tree = restrict_tree(tree, sorted(rng.permutation(tree.names)[: rng.integers(4, n_taxa)]))
        genes.append(write_newick(tree))
    return write_newick(base), genes


def by_taxa(found):
    """The columns of each branch by the taxa on its smaller side."""
    sides = smaller_sides(found.supports.tree, found.supports.branches)
    rows = (dict(zip(found.columns, row, strict=True)) for row in zip(*found.columns.values(), strict=True))
    return dict(zip(map(frozenset, sides), rows, strict=True))


def row_of(found, taxa):
    """The columns of the branch that has these taxa on one side."""
    everyone = frozenset(found.supports.tree.names)
    rows = by_taxa(found)
    return rows.get(frozenset(taxa)) or rows[everyone - frozenset(taxa)]


@pytest.mark.parametrize("seed", [1, 2])
def test_gene_trees_by_definition(seed):
    tree, genes = gene_trees(seed=seed)
    rows = by_taxa(concordance(tree, genes))
    own, others = dendropy_list([tree])[0], [DendropyTree.get(data=text, schema="newick") for text in genes]
    everyone = frozenset(f"t{i}" for i in range(10))
    complete = [other for other in others if len(other.leaf_nodes()) == 10]
    assert len(rows) == 7
    seen = set()
    for side, row in rows.items():
        around = oracle.quartets_around(own, side)
        *counts, decisive = oracle.gene_counts(around, others)
        seen |= {k for k, count in enumerate(counts) if count} | ({3} if decisive < len(genes) else set())
        assert [row[name] for name in ("gCF_N", "gDF1_N", "gDF2_N", "gN")] == [*counts, decisive]
        assert row["gDFP_N"] == decisive - sum(counts)
        shares = [row[name] for name in ("gCF", "gDF1", "gDF2", "gDFP")]
        np.testing.assert_allclose(shares, 100 * np.array([*counts, row["gDFP_N"]]) / decisive)
        quartets = [row[name] for name in ("qCF", "qDF1", "qDF2")]
        np.testing.assert_allclose(quartets, 100 * np.array(oracle.quartet_means(around, others)))
        assert row["IC"] == pytest.approx(oracle.certainty(side, everyone, complete), abs=1e-12)
    assert seen == {0, 1, 2, 3}, "else something was not tested"


def test_gene_trees_as_iqtree_counts_them(tmp_path):
    if shutil.which("iqtree2") is None:
        pytest.skip("iqtree2 is not installed")
    tree, genes = gene_trees(12, 30, seed=5)
    (tmp_path / "tree").write_text(tree)
    (tmp_path / "genes").write_text("\n".join(genes))
    command = ["iqtree2", "-t", "tree", "--gcf", "genes", "--prefix", "i", "-T", "1"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    lines = [line.split("\t") for line in (tmp_path / "i.cf.stat").read_text().splitlines() if line[0] != "#"]
    expected = [dict(zip(lines[0], [float(x or "nan") for x in line], strict=True)) for line in lines[1:]]
    lengths = {round(row["Length"], 5): row for row in expected}
    found = concordance(tree, genes)
    assert len(lengths) == len(found.labels) == 9
    for branch, row in zip(found.supports.branches, by_taxa(found).values(), strict=True):
        wanted = lengths[float(f"{found.supports.tree.lengths[branch]:.6g}").__round__(5)]
        for name in ("gCF_N", "gDFP_N", "gN"):
            assert row[name] == wanted[name]
        assert {row["gDF1_N"], row["gDF2_N"]} == {wanted["gDF1_N"], wanted["gDF2_N"]}
        assert row["gCF"] == pytest.approx(wanted["gCF"], abs=0.00501)  # two digits are printed


def test_certainty_as_raxml_has_it(tmp_path):
    """ICA as well, where no two rivals are equally frequent; RAxML takes such in another order."""
    if shutil.which("raxmlHPC") is None:
        pytest.skip("raxmlHPC is not installed")
    tree, genes = gene_trees(9, 40, lacking=False, seed=8)
    (tmp_path / "tree").write_text(tree)
    (tmp_path / "genes").write_text("\n".join(genes))
    command = ["raxmlHPC", "-f", "i", "-t", "tree", "-z", "genes", "-m", "GTRCAT", "-n", "x"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    text = (tmp_path / "RAxML_IC_Score_BranchLabels.x").read_text()
    expected = {float(length): tuple(map(float, pair.split(","))) for length, pair in
                re.findall(r":([0-9.e-]+)\[([-0-9.,]+)\]", text)}  # fmt: skip
    supports = concordance(tree, genes).supports
    assert len(expected) == len(supports.branches) == 6
    everyone, n_compared = frozenset(supports.tree.names), 0
    for branch, side in zip(supports.branches, smaller_sides(supports.tree, supports.branches), strict=True):
        ic, ica = expected[min(expected, key=lambda own: abs(own - supports.tree.lengths[branch]))]
        assert supports.values["ic"][branch] == pytest.approx(ic, abs=0.000501)  # three digits are printed
        counts = [count for count in oracle.rivals(frozenset(side), everyone, dendropy_list(genes))[1] if count > 2]
        if len(set(counts)) == len(counts):
            n_compared += 1
            assert supports.values["ica"][branch] == pytest.approx(ica, abs=0.000501)
    assert n_compared >= 2


def test_certainty_by_hand():
    """3 of 4 trees: 1 + 3/4 log2 3/4 + 1/4 log2 1/4; and a rival more frequent than the branch."""
    tree, other = "(a,b,(c,d));", "(a,c,(b,d));"
    value = 1 + 0.75 * np.log2(0.75) + 0.25 * np.log2(0.25)
    for trees, expected in (([tree] * 3 + [other], value), ([tree] + [other] * 3, -value), ([tree], 1), ([other], -1)):
        found = concordance(tree, trees).supports
        assert found.values["ic"][found.branches] == pytest.approx([expected])
        assert found.values["ica"][found.branches] == pytest.approx([expected])
    assert "ic" not in concordance("(a,b,(c,(d,e)));", [tree]).supports.kinds, "no gene tree has all taxa"


def test_neither_roots_nor_the_way_of_writing_matter():
    tree, genes = gene_trees()
    rooted = []
    for text in genes:
        other = DendropyTree.get(data=text, schema="newick")
        other.reroot_at_edge(other.leaf_nodes()[0].edge, update_bipartitions=True)
        rooted.append(other.as_string("newick", suppress_rooting=True))
    turned = DendropyTree.get(data=tree, schema="newick")
    turned.reroot_at_edge(turned.leaf_nodes()[-1].edge)
    again = turned.as_string("newick", suppress_rooting=True)
    rows = random_rows([f"t{i}" for i in range(10)], 40, 5)
    found, other = (concordance(t, g, rows, quartets=7, seed=2) for t, g in ((tree, genes), (again, rooted)))
    assert by_taxa(found).keys() == by_taxa(other).keys()
    for side, row in by_taxa(found).items():
        assert row == pytest.approx(by_taxa(other)[side], nan_ok=True)


def test_nodes_of_many_branches():
    """Around such a node: no interchanges; decisive is a gene tree with two of the subtrees at each end."""
    found = concordance("((a,b,c)7,(d,e),f);", ["((a,b),(d,f));", "((a,d),(b,f));", "(a,(d,e),f);", "((a,c),(d,e),f);"])
    one = row_of(found, "abc")
    assert [one[name] for name in ("gCF_N", "gDFP_N", "gN")] == [2, 1, 3]
    assert np.isnan([one["gDF1"], one["gDF2_N"], one["qCF"]]).all()
    other = row_of(found, "de")
    assert [other[name] for name in ("gCF_N", "gDF1_N", "gDF2_N", "gDFP_N", "gN")] == [2, 0, 0, 0, 2]
    assert sorted(found.around, key=str) == [("a", "f", "d", "e"), None]
    assert found.newick() == "(a,b,c,((d,e)100,f)7/66.7);"
    assert found.format_table().endswith("\tNA\tNA\n"), "neither a label nor a length"
    unresolved = row_of(concordance("((a,b),c,d);", ["(a,b,c,d);", "((a,b),c,d);"]), "ab")
    assert (unresolved["gCF_N"], unresolved["gDFP_N"], unresolved["gN"]) == (1, 1, 2)
    assert (unresolved["qCF"], unresolved["qDF1"]) == (50, 0)


def random_rows(names, n_sites, seed, letters="ACGT-N"):
    rng = np.random.default_rng(seed)
    return {name: "".join(rng.choice(list(letters), n_sites)) for name in names}


def test_sites_by_definition():
    """With no more quartets than asked for, all are taken; sites are those of each quartet."""
    tree, _ = gene_trees(7, 0)
    rows = random_rows([f"t{i}" for i in range(7)], 60, 4)
    own = dendropy_list([tree])[0]
    found = by_taxa(concordance(tree, alignment=rows, quartets=1000))
    assert len(found) == 4
    for side, row in found.items():
        means, numbers = oracle.site_means(oracle.quartets_around(own, side), rows)
        np.testing.assert_allclose([row[name] for name in ("sCF", "sDF1", "sDF2")], 100 * np.array(means))
        np.testing.assert_allclose([row[f"{name}_N"] for name in ("sCF", "sDF1", "sDF2")], numbers)
        assert row["sN"] == pytest.approx(sum(numbers))


def test_sites_as_iqtree_finds_them(data_dir):
    """IQ-TREE draws 5,000 quartets; here all are taken, at most 6,048. Its error is below 1 % of the sites."""
    found = concordance(TREE, alignment=data_dir / "primates.phy", quartets=7000)
    drawn = concordance(TREE, alignment=data_dir / "primates.phy", quartets=400, seed=3)
    rows = zip(found.supports.branches, by_taxa(found).values(), by_taxa(drawn).values(), strict=True)
    for branch, row, other in rows:
        wanted = IQTREE_SCF[float(f"{found.supports.tree.lengths[branch]:.6g}")]
        ours = (row["sCF"], *sorted((row["sDF1"], row["sDF2"])), row["sN"])
        assert ours == pytest.approx((wanted[0], *sorted(wanted[1:3]), wanted[3]), abs=0.6)
        assert other["sCF"] == pytest.approx(wanted[0], abs=3.5)


def test_quartets_without_decisive_sites_do_not_count():
    """a, b against c, d on the only decisive site; e has no data."""
    rows = {"a": "AA", "b": "AA", "c": "CA", "d": "CA", "e": "-A"}
    row = row_of(concordance("((a,b),c,(d,e));", alignment=rows), "ab")
    assert (row["sCF"], row["sCF_N"], row["sN"]) == (100, 0.5, 0.5)
    nothing = row_of(concordance("((a,b),c,(d,e));", alignment=dict.fromkeys("abcde", "AAC")), "ab")
    assert np.isnan(nothing["sCF"])
    assert nothing["sN"] == 0


FREQUENCIES = "F81+FU{0.1/0.2/0.3/0.4}"


@pytest.mark.parametrize("model", [FREQUENCIES, f"{FREQUENCIES}+I{{0.25}}"])
def test_sites_by_likelihood(device, model):
    """By the definition: likelihoods of subtrees given the state at their root; sites without any data are left out."""
    newick = "(a:0.1,b:0.3,((c:0.2,d:0.1):0.2,(e:0.4,f:0.3):0.1):0.2);"
    rows = random_rows("abcdef", 12, 5, "ACGT-") | {"e": "-" * 6 + "ACGTAC", "f": "--" + "ACGTACGTAC"}
    found = concordance(newick, alignment=rows, model=model, quartets=0, likelihood=True, fixed=True, device=device)
    tree = found.supports.tree
    rates = np.tile([0.1, 0.2, 0.3, 0.4], (4, 1))
    np.fill_diagonal(rates, 0)
    np.fill_diagonal(rates, -rates.sum(axis=1))
    rates /= -(np.diag(rates) @ [0.1, 0.2, 0.3, 0.4])
    process = [(0.25, 0 * rates), (0.75, rates / 0.75)] if "+I" in model else [(1.0, rates)]

    def given_state(site, node, came, rates):
        """The likelihoods of the subtree that hangs at `node`, seen from `came`, given each state at `node`."""
        if tree.is_tip(node):
            letter = rows[tree.names[node]][site]
            return np.array([float(letter in (state, "-")) for state in "ACGT"])
        likelihoods = np.ones(4)
        for child, branch in zip(tree.neighbours[node], tree.edges[node], strict=True):
            if child != came:
                likelihoods *= linalg.expm(rates * tree.lengths[branch]) @ given_state(site, int(child), node, rates)
        return likelihoods

    for branch, row in zip(found.supports.branches, by_taxa(found).values(), strict=True):
        subtrees = subtrees_of(tree, branch)
        expected = np.zeros(3)
        for site in range(12):
            if all(any(rows[name][site] != "-" for name in members) for _, _, members in subtrees):
                ends = [(root, end) for root, end, _ in subtrees]
                states = [sum(weight * given_state(site, *end, own) for weight, own in process) for end in ends]
                expected += oracle.expected_counts([own / own.sum() for own in states])
        numbers = [row[name] for name in ("sCFL_N", "sDFL1_N", "sDFL2_N")]
        np.testing.assert_allclose(numbers, expected, rtol=1e-8)
        np.testing.assert_allclose(row["sCFL"], 100 * expected[0] / expected.sum(), rtol=1e-8)
        assert row["sNL"] == pytest.approx(expected.sum(), rel=1e-8)


def subtrees_of(tree, branch):
    """Root, end of the branch and taxa of the four subtrees around a branch, in the order of the documentation."""

    def taxa_behind(node, came):
        if tree.is_tip(node):
            return {tree.names[node]}
        return set().union(*(taxa_behind(int(other), node) for other in tree.neighbours[node] if other != came))

    ends = []
    for node, other in (tree.ends[branch], tree.ends[branch][::-1]):
        roots = [int(root) for root in tree.neighbours[node] if root != other]
        found = [(root, int(node), taxa_behind(root, int(node))) for root in roots]
        ends.append(sorted(found, key=lambda own: min(own[2])))
    ends.sort(key=lambda end: min(end[0][2]))
    return [*ends[0], *ends[1]]


def test_likelihood_at_nodes_of_many_branches():
    """The mean over the pairs of subtrees at the node."""
    rows = random_rows("abcde", 30, 6, "ACGT")
    settings = {"model": "JC", "quartets": 0, "likelihood": True, "fixed": True, "device": "numpy"}
    whole = row_of(concordance("((a:.1,b:.2):.1,c:.1,d:.2,e:.3);", alignment=rows, **settings), "ab")
    pairs = []
    for left_out, kept in (("e", "c:.1,d:.2"), ("d", "c:.1,e:.3"), ("c", "d:.2,e:.3")):
        own = {name: row for name, row in rows.items() if name != left_out}
        found = concordance(f"((a:.1,b:.2):.1,{kept});", alignment=own, **settings)
        pairs.append(row_of(found, "ab")["sCFL_N"])
    assert whole["sCFL_N"] == pytest.approx(np.mean(pairs), rel=1e-9)
    assert np.isnan(whole["sDFL1"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "concordance: found neither gene trees nor an alignment, expected at least one"),
        ({"gene_trees": ["(a,b,(c,x));"]}, "the tree given: tree 1: taxa of the gene tree that are not in the tree: "),
        ({"gene_trees": ["(a,b,(c,a));"]}, "the tree given: tree 1: the gene tree has the same taxon more than once: "),
        ({"gene_trees": "(a,b,c);", "likelihood": True}, "concordance: found no alignment, expected one for site"),
        ({"alignment": dict.fromkeys("abc", "ACGT")}, "the tree given: the taxa are not those of the alignment"),
        ({"gene_trees": "(a,b,c);", "quartets": -1}, "quartets: found -1, expected at least 0"),
        ({"tree": "(a,b,c,d);", "gene_trees": "(a,b,(c,d));"}, "concordance: the tree has no internal branches"),
    ],
)
def test_errors(arguments, message):
    with pytest.raises(InputError) as error:
        concordance(**{"tree": "(a,b,(c,d));"} | arguments)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


def test_trees_of_the_program_and_of_text_are_the_same():
    texts = similar_trees(8, 4, 1, seed=2)
    trees = [parse_newick(text, "test") for text in texts]
    found, other = concordance(trees[0], trees[1:]), concordance(texts[0], texts[1:])
    assert found.format_table() == other.format_table()
    turned = type(trees[0]).from_edges(trees[0].names, trees[0].ends[::-1, ::-1], trees[0].lengths[::-1])
    again = by_taxa(concordance(turned, texts[1:]))
    for side, row in by_taxa(found).items():
        assert row == pytest.approx(again[side], nan_ok=True)
