"""Placement of sequences on a reference tree: against an oracle that attaches them, and what is refused."""

import json
from functools import cache

import dendropy
import numpy as np
import pytest
from oracles.likelihood import pruning
from oracles.substitution import gamma_category_means
from scipy.optimize import minimize

import plltool
from plltool.analyses.placement import queries as placement
from plltool.analyses.placement.analysis import Placement, PlacementFilter
from plltool.analyses.placement.queries import PLACE_TIE
from plltool.errors import InputError
from plltool.io.newick_writer import write_newick
from plltool.tree.moves import random_tree

ROWS = {
    "Homo_s": "ACGTACGTACGTTTGAACGGCTTA",
    "Pan_t": "ACGTACGTACGATTGAACGGCTCA",
    "Lemur_c": "ACGAACCTAGGATTCAACGACTTG",
    "Mus_m": "TCGAACCTAGGATACCGCGATTTG",
    "Rat": "TCGAACCTTGGATACAGCGATCTG",
}
TREE = "((Homo_s:0.1,Pan_t:0.08):0.12,Lemur_c:0.2,(Mus_m:0.1,Rat:0.15):0.21);"
QUERIES = {
    "whole": "ACGTACCTAGGATTGAACGACTTA",
    "begin": "ACGAACCTARG-------------",
    "end": "------------TACCGCGATTTG",
    "as_Rat": "TCGAACCTTGGATACAGCGATCTG",
    "as_end": "??????????--TACCGCGATTTG",
}
STATES = dict(zip("ACGTR-?", (1, 2, 4, 8, 5, 15, 15), strict=True))
GAMMA = "JC+G4{0.6}"
ALL = {"heuristic": 1.0, "filter_acc_lwr": 1.0, "filter_max": 99}
QUICK = {"device": "numpy", "fixed": True}
SLID = {"raxml_blo": False}  # the branch keeps its length: lnL is that of the tree with the three lengths of a place
SAME = {"rel": 1e-10}  # sums over patterns in another order; lnL of columns without data comes from the reference
# lnL that places may be below those of scipy: the last steps promise less than PLACE_PRECISION each
NEAR = 1e-3


def jukes_cantor(rates):
    """The oracle's components of equal weight."""
    q = np.full((4, 4), 1 / 3) - np.eye(4) * 4 / 3
    return [(1 / len(rates), [0.25] * 4, q * rate) for rate in rates]


COMPONENTS = jukes_cantor(gamma_category_means(0.6, 4))


def reference():
    """The tree as results number its branches."""
    return plltool.evaluate(ROWS, TREE, GAMMA, **QUICK).tree


def oracle_lnl(tree, branch, lengths, query, components=COMPONENTS, given=ROWS):
    """lnL of each site with a query on a branch; lengths to its first and second end, and of the pendant branch."""
    n = tree.n_taxa
    rows = [*(given[name] for name in tree.names), query]
    columns = [[STATES[row[site]] for row in rows] for site in range(len(query))]
    old = [tuple(node + (node >= n) for node in pair) for pair in tree.ends.tolist()]
    node = 2 * n - 1
    (first, second), kept = old[branch], [pair for k, pair in enumerate(old) if k != branch]
    own = [length for k, length in enumerate(tree.lengths.tolist()) if k != branch]
    return pruning([*kept, (first, node), (second, node), (n, node)], [*own, *lengths], columns, components)


@cache
def best_by_scipy(branch, query):
    """lnL with the place on a branch of the reference and the pendant length optimised."""
    tree = reference()
    whole = tree.lengths[branch]

    def loss(at):
        first = np.clip(at[0], 1e-6, 1 - 1e-6) * whole
        return -oracle_lnl(tree, branch, [first, whole - first, np.exp(at[1])], query).sum()

    bounds = [(0, 1), (np.log(1e-6), np.log(10))]
    return max(
        -minimize(loss, [share, np.log(pendant)], method="L-BFGS-B", bounds=bounds).fun
        for share, pendant in ((0.3, 0.1), (0.9, 0.01))
    )


def attached(tree, place):
    """Lengths to the first and second end of the branch, and of the pendant branch, of a reported place."""
    first = int(tree.ends[place.branch, 0])
    root = int(tree.neighbours[0, 0])  # where the text of the tree begins
    lower = {node: branch for node, _, branch in tree.directed_from(root)}
    rest = tree.lengths[place.branch] - place.distal
    ends = (place.distal, rest) if lower.get(first) == place.branch else (rest, place.distal)
    return [*ends, place.pendant]


def test_every_place_is_the_best_on_its_branch(device):
    result = plltool.place(ROWS, TREE, sequences(QUERIES), GAMMA, fixed=True, device=device, **SLID, **ALL)
    tree = result.tree
    assert [query.names for query in result.placements] == [("whole",), ("begin",), ("end", "as_end"), ("as_Rat",)]
    for query in result.placements:
        text = QUERIES[query.names[0]]
        assert sorted(place.branch for place in query.places) == list(range(tree.n_edges))
        lnl = np.array([place.lnl for place in query.places])
        assert np.all(np.diff(lnl) <= 0)
        weights = np.exp(lnl - lnl[0])
        assert [place.weight for place in query.places] == pytest.approx(weights / weights.sum(), rel=1e-9)
        for place in query.places:
            assert place.lnl == pytest.approx(oracle_lnl(tree, place.branch, attached(tree, place), text).sum(), **SAME)
        best = query.places[0]
        assert best.lnl >= best_by_scipy(best.branch, text) - NEAR


def sequences(rows, source="queries"):
    return plltool.Sequences(tuple(rows), tuple(row.encode() for row in rows.values()), source, None, least=1)


def best_of_three(tree, branch, start, query, **oracle):
    """lnL with all three lengths at the place optimised by scipy."""

    def loss(logs):
        return -oracle_lnl(tree, branch, np.exp(logs), query, **oracle).sum()

    bounds = [(np.log(1e-6), np.log(10))] * 3
    return -minimize(loss, np.log(np.maximum(start, 1e-3)), method="L-BFGS-B", bounds=bounds).fun


def test_the_length_of_the_branch_is_free(monkeypatch):
    monkeypatch.setattr(placement, "PLACE_BATCH", 1)  # columns without data count, too
    result = plltool.place(ROWS, TREE, sequences(QUERIES), GAMMA, raxml_blo=True, **QUICK, **ALL)
    slid = plltool.place(ROWS, TREE, sequences(QUERIES), GAMMA, **SLID, **QUICK).best()
    for query in result.placements:
        text, best = QUERIES[query.names[0]], query.places[0]
        start = attached(result.tree, best)
        assert best.lnl == pytest.approx(best_of_three(result.tree, best.branch, start, text), abs=NEAR)
        assert best.lnl >= slid[query.names[0]].lnl
        assert 0 <= best.distal <= result.tree.lengths[best.branch]


@pytest.mark.parametrize(("seed", "device"), [(5, "numpy"), pytest.param(7, "opencl", marks=pytest.mark.opencl)])
def test_close_rivals_are_judged_with_the_length_of_the_branch_free(seed, device):
    """Of t5, another place wins while the branch keeps its length; t6 has no close rival."""
    rows, newick = simulated(seed, n_taxa=7, mean_length=0.1, n_sites=60, left_out=("t5", "t6"))
    queries = {name: rows.pop(name) for name in ("t5", "t6")}
    given = rows, newick, sequences(queries), "JC"
    result = plltool.place(*given, device=device, **ALL)
    slid = plltool.place(*given, device=device, **SLID, **ALL)
    (close, sure), (close_before, sure_before) = result.placements, slid.placements
    given_to = {"components": jukes_cantor([1.0]), "given": rows}
    oracle = {
        place.branch: best_of_three(result.tree, place.branch, attached(slid.tree, place), queries["t5"], **given_to)
        for place in close_before.places
    }
    branches = sorted(oracle, key=oracle.get, reverse=True)[: len(close.places)]
    assert [place.branch for place in close.places] == branches
    assert [place.lnl for place in close.places] == pytest.approx([oracle[branch] for branch in branches], abs=NEAR)
    assert close_before.places[0].branch != branches[0]
    assert sure_before.places[0].lnl - sure_before.places[1].lnl > PLACE_TIE
    assert sure == sure_before


def simulated(seed, n_taxa, mean_length, n_sites, left_out):
    """Sequences of JC by name, and the tree on which they evolved, without some of its taxa."""
    rng = np.random.default_rng(seed)
    tree = random_tree([f"t{number}" for number in range(n_taxa)], rng)
    tree.lengths[:] = rng.exponential(mean_length, tree.n_edges)
    made = plltool.simulate(tree, "JC", n_sites, seed)
    rest = dendropy.Tree.get(data=write_newick(tree), schema="newick")
    rest.prune_taxa_with_labels(left_out)
    rest.deroot()
    rows = dict(zip(made.names, made.sequences, strict=True))
    return rows, rest.as_string("newick", suppress_rooting=True)


def test_an_identical_sequence_is_beside_its_twin():
    twins = sequences({f"twin of {taxon}": row for taxon, row in ROWS.items()})
    result = plltool.place(ROWS, TREE, twins, GAMMA, **QUICK, **ALL)
    for taxon, query in zip(ROWS, result.placements, strict=True):
        own = int(result.tree.edges[result.tree.names.index(taxon), 0])
        twin = next(place for place in query.places if place.branch == own)
        assert (twin.distal, twin.pendant) == pytest.approx((0, 0), abs=1e-5)
        assert twin.lnl == pytest.approx(result.lnl, abs=1e-3), "a twin at no distance costs nothing"


def test_fragments_of_the_reference(data_dir):
    """Branches are long, and the way to the end of a branch is a valley for the pendant length alone."""
    tree = "((((Tarsius_syrichta:0.48,Lemur_catta:0.33):0.25,Saimiri_sciureus:0.44):0.11,((M_mulatta:0.02,"
    tree += "M_fascicularis:0.06):0.04,(Macaca_fuscata:0.02,M_sylvanus:0.07):0.01):0.24):0.11,Hylobates:0.17,"
    tree += "(Pongo:0.13,(Gorilla:0.06,(Homo_sapiens:0.05,Pan:0.06):0.02):0.07):0.04);"
    queries = data_dir / "queries" / "fragments.fasta"
    result = plltool.place(data_dir / "primates.phy", tree, queries, "K80{20}+G4{0.4}", **QUICK)
    for name, place in result.best().items():
        taxon = result.tree.names[int(result.tree.ends[place.branch].min())]
        assert name.startswith(f"{taxon}_")
        assert place.pendant == pytest.approx(0, abs=1e-4)


def test_parts_have_their_own_models(tmp_path):
    """The columns of the second part, in which a query has no data, are those of the reference."""
    scheme = tmp_path / "parts.txt"
    scheme.write_text("JC, one = 1-12\nJC+G4{0.6}, two = 13-24\n")
    result = plltool.place(ROWS, TREE, sequences(QUERIES), str(scheme), brlen="linked", **SLID, **QUICK, **ALL)
    for query in result.placements:
        for place in query.places[:3]:
            at = result.tree, place.branch, attached(result.tree, place), QUERIES[query.names[0]]
            expected = oracle_lnl(*at, jukes_cantor([1.0]))[:12].sum() + oracle_lnl(*at)[12:].sum()
            assert place.lnl == pytest.approx(expected, **SAME)


def test_proteins():
    letters = str.maketrans("CGT", "WLE")
    rows = {name: row.translate(letters) for name, row in ROWS.items()}
    queries = {"q": QUERIES["whole"].translate(letters), "r": "---------LLAEEWBX-------"}
    result = plltool.place(rows, TREE, sequences(queries), "LG+I{0.1}+G4{0.8}", **SLID, **QUICK)
    for query in result.placements:
        text = grafted(result, query)
        lnl = plltool.evaluate(rows | {query.names[0]: queries[query.names[0]]}, text, result.model, **QUICK).lnl
        assert query.places[0].lnl == pytest.approx(lnl, **SAME)


def grafted(result, query):
    """The reference as Newick with a query at its best place, through dendropy's reading of jplace."""
    text = json.loads(result.jplace())
    best = next(own["p"][0] for own in text["placements"] if own["n"] == list(query.names))
    row = dict(zip(text["fields"], best, strict=True))
    tree = dendropy.Tree.get(data=text["tree"], schema="newick", is_parse_jplace_tokens=True, preserve_underscores=True)
    edge = next(edge for edge in tree.postorder_edge_iter() if edge.edge_number == row["edge_num"])
    joint, tip, below = dendropy.Node(), dendropy.Node(), edge.head_node
    tip.taxon = tree.taxon_namespace.new_taxon(query.names[0])
    above, length = edge.tail_node, edge.length
    above.remove_child(below)
    above.add_child(joint)
    joint.edge.length = max(length - row["distal_length"], 1e-6)
    joint.add_child(below)
    joint.add_child(tip)
    below.edge.length, tip.edge.length = max(row["distal_length"], 1e-6), row["pendant_length"]
    return tree.as_string("newick", unquoted_underscores=True, suppress_rooting=True)


@pytest.mark.parametrize("outgroup", [None, "Lemur_c", "Mus_m,Rat"])
def test_jplace_is_read_by_dendropy(outgroup):
    """A tree with the query attached as the file says has the likelihood that the file says."""
    result = plltool.place(ROWS, TREE, sequences(QUERIES), GAMMA, outgroup=outgroup, **SLID, **QUICK)
    text = json.loads(result.jplace("plltool place"))
    assert text["version"] == 3
    assert text["metadata"]["invocation"] == "plltool place"
    numbers = [int(piece.split("}")[0]) for piece in text["tree"].split("{")[1:]]
    assert numbers == list(range(result.tree.n_edges))
    for query in result.placements:
        row = QUERIES[query.names[0]]
        lnl = plltool.evaluate(ROWS | {query.names[0]: row}, grafted(result, query), GAMMA, **QUICK).lnl
        assert query.places[0].lnl == pytest.approx(lnl, **SAME)


def test_batches_change_nothing(monkeypatch, device):
    given = ROWS, TREE, sequences(QUERIES), GAMMA
    whole = plltool.place(*given, fixed=True, device=device)
    monkeypatch.setattr(placement, "PLACE_BATCH", 1)
    single = plltool.place(*given, fixed=True, device=device)
    for one, other in zip(whole.placements, single.placements, strict=True):
        assert one.names == other.names
        assert [p.branch for p in one.places] == [p.branch for p in other.places]
        assert [p.lnl for p in one.places] == pytest.approx([p.lnl for p in other.places], **SAME)
    assert single.counters["requests"]["placement scores"] == 12, "of 4 queries at 3 points"


def test_little_memory_changes_nothing():
    given = ROWS, TREE, sequences(QUERIES), GAMMA
    assert plltool.place(*given, **QUICK, memory=20_000).placements == plltool.place(*given, **QUICK).placements


def test_branches_are_chosen_by_their_weights(monkeypatch):
    scores = np.log([[0.5, 0.1, 0.25, 0.15], [0.1, 0.1, 0.1, 0.7]])
    monkeypatch.setattr(placement, "LEAST_BRANCHES", 3)
    queries, branches = placement.choose_branches(scores, 0.1)
    assert list(zip(queries.tolist(), branches.tolist(), strict=True)) == [
        (0, 0),
        (0, 2),
        (0, 3),
        (1, 3),
        (1, 0),
        (1, 1),
    ]
    monkeypatch.setattr(placement, "LEAST_BRANCHES", 1)
    queries, branches = placement.choose_branches(scores, 0.75)
    assert list(zip(queries.tolist(), branches.tolist(), strict=True)) == [(0, 0), (0, 2), (1, 3), (1, 0)]
    assert len(placement.choose_branches(scores, 1.0)[0]) == 8


@pytest.mark.parametrize(("seed", "taxon"), [(2, "t2"), (5, "t6"), (7, "t5")])
def test_a_place_far_from_the_middle_of_a_long_branch_is_found(monkeypatch, seed, taxon):
    """In these the middle scores so badly that, by it alone, another branch wins, by 40 to 110 lnL units."""
    monkeypatch.setattr(placement, "LEAST_BRANCHES", 1)
    rows, newick = simulated(seed, n_taxa=8, mean_length=0.3, n_sites=1500, left_out=[taxon])
    query = sequences({"query": rows.pop(taxon)})
    found = plltool.place(rows, newick, query, "JC", **QUICK).best()["query"]
    everywhere = plltool.place(rows, newick, query, "JC", heuristic=1.0, **QUICK).best()["query"]
    assert found.branch == everywhere.branch
    assert found.lnl == pytest.approx(everywhere.lnl, abs=1e-6)


def test_a_place_with_a_poor_score_is_found():
    """A short pendant branch on a long branch: its score has none of the weight, though its lnL is higher by 40."""
    left_out = [f"t{number}" for number in range(4, 12)]
    rows, newick = simulated(11, n_taxa=16, mean_length=0.1, n_sites=2000, left_out=left_out)
    query = sequences({"query": [rows.pop(name) for name in left_out][1]})
    tree = plltool.evaluate(rows, newick, "JC", device="numpy").tree
    given = rows, tree, query, "JC"
    found = plltool.place(*given, **SLID, **QUICK).best()["query"]
    everywhere = plltool.place(*given, heuristic=1.0, **SLID, **QUICK).best()["query"]
    assert found.branch == everywhere.branch
    assert found.lnl == pytest.approx(everywhere.lnl, abs=1e-6)


def test_sequences_of_the_reference_are_no_queries():
    """The same placements as without them, bit for bit, also where the reference has parts."""
    for model in (GAMMA, "JC, b = 5-24\nJC, a = 1-4\n"):
        alone = plltool.place(ROWS, TREE, QUERIES, model, **QUICK)
        together = plltool.place(ROWS, TREE, {**ROWS, **QUERIES}, model, **QUICK)
        assert together.placements == alone.placements
        assert "5 sequences of the reference left out of the queries" in together.warnings
    with pytest.raises(
        InputError, match=r"taxon 'Rat' has the name of a taxon of the reference .*, but another sequence"
    ):
        plltool.place(ROWS, TREE, {**ROWS, "Rat": ROWS["Mus_m"]}, GAMMA, **QUICK)


def test_filters():
    places = [Placement(k, -float(k), weight, 0.1, 0.1) for k, weight in enumerate([0.6, 0.3, 0.08, 0.02])]

    def kept(**limits):
        return len(PlacementFilter(**limits).keep(places))

    assert [kept(accumulated=share) for share in (0.0, 0.5, 0.6, 0.7, 0.95, 1.0)] == [1, 1, 1, 2, 3, 4]
    assert [kept(accumulated=1.0, least_weight=share) for share in (0.0, 0.05, 0.3, 0.9)] == [4, 3, 2, 1]
    assert [kept(accumulated=1.0, most=most) for most in (1, 2, 9)] == [1, 2, 4]


VARIED = {name: row[8] + row[11] + row[13] + row[22] for name, row in ROWS.items()}  # no column is constant


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"queries": {"q": "ACGT"}}, r"queries: taxon 'q' has 4 sites, expected 24 as in the reference .* aligned"),
        ({"queries": {"Rat": 24 * "A"}}, r"queries: taxon 'Rat' has the name of a taxon of the reference"),
        ({"queries": {"q": 23 * "A" + "J"}}, r"queries: taxon 'q', site 24: found 'J', expected DNA"),
        ({"queries": {"q": 24 * "-"}}, r"queries: found nothing but gaps .*, expected a query with data"),
        ({"model": "UNREST"}, "is not time-reversible"),
        (
            {"alignment": VARIED, "queries": {"q": "ACGT"}, "model": "JC+ASC_LEWIS"},
            "placement cannot correct for ascertainment bias",
        ),
        ({"brlen": "unlinked"}, "brlen: found 'unlinked'"),
        ({"heuristic": 0.0}, "heuristic: found 0, expected a number above 0"),
        ({"filter_acc_lwr": 1.5}, "filter_acc_lwr: found 1.5, expected 0 .. 1"),
        ({"filter_min_lwr": -1.0}, "filter_min_lwr: found -1, expected 0 .. 1"),
        ({"filter_max": 0}, "filter_max: found 0, expected at least 1"),
    ],
)
def test_refused(changed, problem):
    given = {"alignment": ROWS, "model": GAMMA, "queries": QUERIES} | changed
    given["queries"] = sequences(given["queries"])
    with pytest.raises(InputError, match=problem):
        plltool.place(tree=TREE, **given, **QUICK)


def test_files(tmp_path):
    (tmp_path / "a.fa").write_text(f">whole\n{QUERIES['whole']}\n>empty\n{24 * '-'}\n")
    (tmp_path / "b.phy").write_text(f"1 24\nend {QUERIES['end']}\n")
    result = plltool.place(ROWS, TREE, [tmp_path / "a.fa", tmp_path / "b.phy"], GAMMA, **QUICK)
    assert [query.names for query in result.placements] == [("whole",), ("end",)]
    assert result.without_data == ("empty",)
    assert any("1 query without data (only gaps) not placed, first 'empty'" in line for line in result.warnings)
    assert result.n_taxa == 5
    (tmp_path / "c.fa").write_text(f">end\n{QUERIES['end']}\n")
    with pytest.raises(InputError, match=r"c.fa: taxon 'end' \(line 1\) is in .*b.phy, too; rename one of them"):
        plltool.read_queries([tmp_path / "b.phy", tmp_path / "c.fa"])
    with pytest.raises(InputError, match="queries: found no file"):
        plltool.read_queries([])
