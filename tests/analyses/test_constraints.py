"""Whole searches under a constraint: the tree obeys, twins included; what cannot be is refused in one line."""

import numpy as np
import pytest
from oracles.constraint import edge_splits, nested_splits, newick, obeys, random_nested
from small_alignments import hard_taxa

from plltool.analyses.search.analysis import search
from plltool.analyses.supports.bootstrap import bootstrap
from plltool.analyses.supports.ultrafast import ultrafast_bootstrap
from plltool.errors import InputError
from plltool.io.alignment_reader import read_alignment
from plltool.io.newick import parse_newick
from plltool.tree.splits import branch_splits
from plltool.tree_search.effort import SearchOptions

FAST = {"model": "JC", "device": "numpy", "options": SearchOptions("fast", radii=(5,))}


@pytest.fixture(scope="module")
def few(data_dir):
    """Name to sequence: 13 taxa of the hard set."""
    return hard_taxa(data_dir, 13)


def random_constraint(rng, names, n_members):
    nested = ()
    while not nested_splits(nested):
        nested = random_nested(rng, [names[i] for i in rng.choice(len(names), n_members, replace=False)], 0.4)
    return nested


@pytest.mark.parametrize(
    ("start", "n_members", "effort", "starts"),
    [("parsimony", 13, "fast", 1), ("parsimony", 7, "default", 1), ("random", 6, "fast", 2)],
)
def test_the_tree_found_obeys(few, start, n_members, effort, starts):
    nested = random_constraint(np.random.default_rng(n_members), list(few), n_members)
    options = SearchOptions(effort, radii=(5,), perturbations=2, starts=starts)
    found = search(few, start=start, constraint=newick(nested) + ";", seed=3, **FAST | {"options": options})
    assert obeys(found.tree.ends, found.tree.names, nested)


def test_a_split_of_the_best_tree_changes_nothing_but_the_way(few):
    best = search(few, seed=1, **FAST)
    splits = edge_splits(best.tree.ends, best.tree.names, frozenset(few))
    one, other = min(sorted(map(sorted, split)) for split in splits)
    held = search(few, seed=1, constraint=f"(({','.join(one)}),{','.join(other)});", **FAST)
    assert held.lnl == pytest.approx(best.lnl, abs=0.05)  # what the criteria of a search leave open


def test_a_start_tree_that_breaks_it_is_refused_naming_the_split(few):
    names = list(few)
    start = search(few, start="random", seed=2, **FAST).tree
    inside, outside = start.neighbours[:2, 0]
    assert inside != outside, "the first two taxa are no cherry"
    with pytest.raises(InputError) as caught:
        search(few, start=start, constraint=f"(({names[0]},{names[1]}),{','.join(names[2:6])});", **FAST)
    split = f"{names[0]!r}, {names[1]!r} | {', '.join(map(repr, names[2:6]))}"
    assert str(caught.value) == f"the start tree breaks the constraint, it lacks the split {split}"


def test_a_start_tree_that_obeys_is_taken(few):
    names = list(few)
    nested = (tuple(names[:3]), *names[3:8])
    start = parse_newick(f"({newick(tuple(names[:3]))},{','.join(names[3:])});", "here", names, 1)
    found = search(few, start=start, constraint=newick(nested) + ";", **FAST)
    assert obeys(found.tree.ends, found.tree.names, nested)


def test_trees_as_constraints(few):
    """A Tree over some of the taxa and a dendropy tree say the same as their Newick text."""
    names = list(few)
    text = f"(({names[5]},{names[0]}),{names[9]},{names[2]});"
    tree = parse_newick(text, "here")
    found = [search(few, constraint=given, **FAST) for given in (text, tree, tree.to_dendropy())]
    assert found[0].newick == found[1].newick == found[2].newick
    assert obeys(found[0].tree.ends, names, ((names[5], names[0]), names[9], names[2]))


@pytest.mark.parametrize(
    ("nested", "n_searched"),
    [
        ((("t0", "u0"), "t1", "t2", "t3"), 9),  # twins that are one cherry
        ((("t0", "t1"), ("u0", "t2"), "t3"), 10),  # that are to be kept apart
        ((("u0", "t1"), "t2", "t3"), 9),  # the second of them only
        ((("t0", "t1"), ("v0", "t2"), "t3"), 10),  # a third one that is free
        ((("t0", "t1"), ("v0", "u0", "t2"), "t3"), 10),
        ((("t0", "t1"), ("u0", "t2"), ("v0", "t3"), "t4"), 11),
    ],
)
def test_twins_go_where_the_constraint_wants_them(few, nested, n_searched):
    rows = list(few.values())[:9]
    data = {f"t{i}": row for i, row in enumerate(rows)} | {"u0": rows[0], "v0": rows[0]}
    found = search(data, constraint=newick(nested) + ";", seed=5, **FAST)
    assert obeys(found.tree.ends, found.tree.names, nested)
    assert len(found.tree.names) == 11
    cherries = np.count_nonzero(found.tree.lengths <= 1e-6)
    assert cherries >= 11 - n_searched, "those left out are back on branches of the least length"


def test_twins_only(few):
    """Fewer different sequences than a tree needs: duplicates are searched, and obey."""
    row, other = list(few.values())[:2]
    nested = (("t0", "t3"), "t1", ("t2", "t4"))
    found = search({f"t{i}": other if i == 4 else row for i in range(5)}, constraint=newick(nested) + ";", **FAST)
    assert obeys(found.tree.ends, found.tree.names, nested)


def test_a_constraint_without_inner_branches_is_a_warning(few):
    found = search(few, constraint=f"({','.join(few)});", **FAST)
    assert any(line.startswith("the constraint has no internal branch") for line in found.warnings)
    assert found.newick == search(few, **FAST).newick


def test_taxa_that_are_not_in_the_alignment_are_refused(few):
    names = list(few)
    text = f"(({names[0]},nobody),{names[1]},{names[2]});"
    message = "taxa of the constraint that are not in the alignment: 'nobody'"
    for given in (text, parse_newick(text, "here")):
        with pytest.raises(InputError, match=message):
            search(few, constraint=given, **FAST)


def test_parts_with_lengths_of_their_own(sequences, tmp_path):
    scheme = tmp_path / "two.part"
    scheme.write_text("JC, a = 1-150\nJC, b = 151-300\n")
    nested = (("Homo_sapiens", "Lemur_catta"), "Pan", "Gorilla", "Pongo")
    found = search(sequences, constraint=newick(nested) + ";", brlen="unlinked", **FAST | {"model": str(scheme)})
    assert obeys(found.tree.ends, found.tree.names, nested)


def test_replicates_obey(few):
    data = dict(list(few.items())[:6])
    names = list(data)
    data[names[5]] = data[names[0]]  # twins that are to be kept apart
    nested = ((names[0], names[4]), (names[5], names[2]), names[1], names[3])
    settings = {"constraint": newick(nested) + ";", "model": "JC", "device": "numpy", "seed": 4}
    options = SearchOptions("fast", radii=(2,))
    found = bootstrap(data, replicates=3, workers=1, options=options, **settings)
    assert all(obeys(tree.ends, tree.names, nested) for tree in found.trees)

    best = search(data, options=options, **settings)
    supports = ultrafast_bootstrap(data, best.tree, replicates=20, workers=1, **settings).values["ufboot"]
    for branch, split in enumerate(branch_splits(best.tree)):
        side = frozenset(name for bit, name in enumerate(best.tree.names) if split >> bit & 1)
        if frozenset([side, frozenset(names) - side]) in nested_splits(nested):
            assert supports[branch] == 100

    settings["constraint"] = newick(((names[0], names[5]), *names[1:5])) + ";"
    with pytest.raises(InputError, match="the tree given breaks the constraint, it lacks the split"):
        ultrafast_bootstrap(data, best.tree, replicates=20, **settings)


@pytest.mark.slow
@pytest.mark.opencl
@pytest.mark.parametrize("n_members", [150, 40])
def test_large_alignments(shared, n_members):
    data = read_alignment(shared / "data" / "dna150.phy")
    nested = random_constraint(np.random.default_rng(n_members), data.names, n_members)
    options = SearchOptions("fast", radii=(3,), perturbations=2)
    found = search(data, "JC", constraint=newick(nested) + ";", options=options, device="opencl")
    assert obeys(found.tree.ends, found.tree.names, nested)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "reached"), [("part", -56119.89), ("full", -57309.9)])
def test_constraints_that_contradict_the_data(shared, kind, reached):
    """RAxML-NG 1.2.2 reaches -56119.89 from a parsimony tree, and -57309.81."""
    folder = shared / "data" / "constraints"
    given = {"model": "GTR+FO+G4", "constraint": folder / f"dna56.cons{kind}.tree"}
    found = [search(folder / "dna56.phy", seed=seed, **given).lnl for seed in range(1, 6)]
    assert np.median(found) >= reached
