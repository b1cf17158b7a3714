"""No bit of a result depends on the order in the file, the way in which a tree is written, threads and processes."""

import re

import dendropy
import numpy as np
import pytest

import plltool
from plltool.tree_search.effort import SearchOptions

ON = [pytest.param("cpu", marks=pytest.mark.opencl), "numpy"]
QUICK = SearchOptions("fast", radii=(2,), perturbations=1)
N_SITES = 120
FIRST = 40  # columns of the first part
PARTS = ("GTR+FO+G4", "HKY+F")  # the models of the two parts


@pytest.fixture(scope="module")
def given(data_dir):
    """Names and letters (n_taxa, n_sites): 9 taxa, 2 of them the same, and columns that occur several times."""
    text = (data_dir / "simulated.fasta").read_text()
    rows = {name: "".join(lines.split()) for name, lines in re.findall(r">(\S+)\n([^>]*)", text)}
    names = ["t07", *sorted(rows)[1:-1:4], "t30"]
    return names, np.array([list(rows[name][:N_SITES]) for name in names])


@pytest.fixture(scope="module")
def shuffled(given):
    """The same alignment in another order, and for each of its columns the one that it was."""
    names, letters = given
    rng = np.random.default_rng(5)
    taxa, columns = rng.permutation(len(names)), rng.permutation(N_SITES)
    return ([names[taxon] for taxon in taxa], letters[taxa][:, columns]), columns


def parts_of(columns):
    """The text of a partition file: the first part has the columns that were among the first before the shuffle."""
    lines = []
    for model, chosen in zip(PARTS, (columns < FIRST, columns >= FIRST), strict=True):
        lines.append(f"{model}, p{len(lines)} = {','.join(map(str, np.flatnonzero(chosen) + 1))}\n")
    return "".join(lines)


def write_parts(folder, columns):
    path = folder / f"{len(list(folder.iterdir()))}.part"
    path.write_text(parts_of(columns))
    return path


def write_otherwise(newick, seed=1):
    """The same tree, seeded at another inner node and with the children of every node in another order."""
    tree = dendropy.Tree.get(data=newick, schema="newick", preserve_underscores=True, rooting="force-unrooted")
    rng = np.random.default_rng(seed)
    inner = [node for node in tree if not node.is_leaf() and node is not tree.seed_node]
    tree.reseed_at(inner[rng.integers(len(inner))], suppress_unifurcations=True)
    for node in list(tree):
        children = node.child_nodes()
        if children:
            node.set_child_nodes([children[k] for k in rng.permutation(len(children))])
    written = tree.as_string("newick", suppress_rooting=True, real_value_format_specifier=".17g")
    assert written.strip() != newick.strip()
    return written


def bits(result):
    """Everything that must not differ, without times."""
    trace = [(event.stage, event.round, event.radius, event.lnl.hex(), event.chosen) for event in result.trace]
    lnls = [result.lnl.hex(), *(lnl.hex() for lnl in result.start_lnls), *(part.lnl.hex() for part in result.parts)]
    return lnls, result.newick, [part.model for part in result.parts], result.n_patterns, trace


@pytest.mark.parametrize("device", ON)
def test_a_search(given, shuffled, device):
    settings = {"model": "GTR+FO+I+G4", "seed": 3, "options": QUICK, "device": device, "workers": 1}
    first, again = plltool.search(given, **settings), plltool.search(shuffled[0], **settings)
    assert any(event.chosen for event in first.trace)
    assert bits(first) == bits(again)
    assert first.texts()["best.nwk"] == again.texts()["best.nwk"]
    assert first.tree.names == tuple(sorted(given[0]))


@pytest.mark.parametrize(
    ("device", "brlen"), [pytest.param("cpu", "scaled", marks=pytest.mark.opencl), ("numpy", "unlinked")]
)
def test_a_search_of_parts(given, shuffled, tmp_path, device, brlen):
    found = []
    for alignment, columns in ((given, np.arange(N_SITES)), shuffled):
        path = write_parts(tmp_path, columns)
        settings = {"seed": 3, "options": QUICK, "device": device, "workers": 1, "brlen": brlen}
        found.append(plltool.search(alignment, model=path, **settings))
    assert bits(found[0]) == bits(found[1])


@pytest.mark.parametrize("device", ON)
def test_the_start_tree_as_it_is_written(given, shuffled, device):
    settings = {"model": "HKY+F+G4", "options": QUICK, "device": device}
    start = plltool.search(given, model="JC", options=SearchOptions("fast", radii=(1,)), device=device).newick
    other = write_otherwise(start)
    first = plltool.search(given, start=start, **settings)
    assert bits(first) == bits(plltool.search(shuffled[0], start=other, **settings))


def test_the_constraint_as_it_is_written(given, shuffled):
    names = sorted(given[0])
    constraint = f"(({names[0]},{names[5]},{names[3]}),({names[1]},{names[8]}),{names[2]},{names[7]});"
    other = f"({names[7]},({names[8]},{names[1]}),{names[2]},({names[3]},{names[5]},{names[0]}));"
    settings = {"model": "JC", "start": "random", "options": QUICK, "device": "numpy"}
    first = plltool.search(given, constraint=constraint, **settings)
    assert bits(first) == bits(plltool.search(shuffled[0], constraint=other, **settings))


def test_replicates(given, shuffled, tmp_path):
    """Sites are drawn from the columns in their canonical order, so that not even a shuffle of columns matters."""
    found = []
    for alignment, columns in ((given, np.arange(N_SITES)), shuffled):
        path = write_parts(tmp_path, columns)
        settings = {"replicates": 2, "seed": 4, "options": QUICK, "device": "numpy", "workers": 1}
        found.append(plltool.bootstrap(alignment, path, **settings))
    assert [lnl.hex() for lnl in found[0].lnls] == [lnl.hex() for lnl in found[1].lnls]
    for first, again in zip(found[0].trees, found[1].trees, strict=True):
        assert first.names == again.names
        assert (first.ends == again.ends).all()


def test_resampled_alignments(given, shuffled):
    """Written in the file's order of taxa, with the same columns in any order."""
    order = [given[0].index(name) for name in shuffled[0][0]]
    rows = []
    for alignment in (given, shuffled[0]):
        sequences = {name: "".join(row) for name, row in zip(*alignment, strict=True)}
        made = next(plltool.resampled_alignments(sequences, "JC", replicates=1, seed=2))
        assert made.names == tuple(alignment[0])
        rows.append(np.array([list(row.decode()) for row in made.rows]))
    assert sorted(map(tuple, rows[0][order].T.tolist())) == sorted(map(tuple, rows[1].T.tolist()))


@pytest.mark.slow
def test_supports_by_resampled_lnl(given, shuffled):
    best = plltool.search(given, "HKY+F+G4", options=QUICK, device="numpy")
    kinds = ("ufboot", "sh-alrt", "abayes")
    again = plltool.search(shuffled[0], "HKY+F+G4", options=QUICK, device="numpy")
    found = [plltool.search_supports(result, kinds, workers=1).supports for result in (best, again)]
    assert found[0].texts() == found[1].texts()


def test_values_of_sites_are_in_the_order_of_the_file(given, shuffled, tmp_path):
    alignment, columns = shuffled
    tree = plltool.search(given, "JC", options=SearchOptions("fast", radii=(1,)), device="numpy").newick
    other = write_otherwise(tree)
    asked = {"site_lnl": True, "site_rates": True, "device": "numpy"}
    first = plltool.evaluate(given, tree, write_parts(tmp_path, np.arange(N_SITES)), **asked)
    again = plltool.evaluate(alignment, other, write_parts(tmp_path, columns), **asked)
    assert (first.lnl.hex(), first.newick) == (again.lnl.hex(), again.newick)
    assert (first.site_lnl[columns] == again.site_lnl).all()
    assert (first.site_rates[columns] == again.site_rates).all()
    with plltool.Likelihood(given, tree, "JC", device="numpy") as likelihood:  # sites alone tell which is which
        alone = likelihood.site_lnl()
    for site in (0, 7, N_SITES - 1):
        one = (given[0], given[1][:, [site]])
        with plltool.Likelihood(one, tree, "JC", device="numpy") as likelihood:
            assert likelihood.lnl() == pytest.approx(alone[site], rel=1e-11)  # the same sum in another order


@pytest.mark.slow
def test_ancestral_states_and_topology_tests(given, shuffled, tmp_path):
    alignment, columns = shuffled
    settings = {"start": "random", "options": SearchOptions("fast", radii=(1,)), "device": "numpy"}
    newicks = [plltool.search(given, model, seed=seed, **settings).newick for model, seed in (("JC", 1), ("HKY+F", 2))]
    parts = [write_parts(tmp_path, np.arange(N_SITES)), write_parts(tmp_path, columns)]
    pairs = [(given, newicks, parts[0]), (alignment, [write_otherwise(tree) for tree in newicks], parts[1])]
    states = [plltool.ancestral_states(data, own[0], model, device="numpy") for data, own, model in pairs]
    assert states[0].labelled == states[1].labelled
    first, again = (result.sequences() for result in states)
    assert first.keys() == again.keys()
    for node, sequence in first.items():
        assert "".join(np.array(list(sequence))[columns]) == again[node]
    assert [part.sites.tolist() for part in states[1].ancestors] == [
        np.flatnonzero(columns < FIRST).tolist(),
        np.flatnonzero(columns >= FIRST).tolist(),
    ]
    tests = [plltool.topology_tests(data, own, model, device="numpy") for data, own, model in pairs]
    assert tests[0].format_table() == tests[1].format_table()
    assert tests[0].newicks == tests[1].newicks
    assert (tests[0].tree_site_lnl[:, columns] == tests[1].tree_site_lnl).all()


# --- the same search, whatever the number of threads and processes -------------------------------------------------

THREADED = {"model": "GTR+FO+I+G4", "seed": 11, "options": SearchOptions("fast", starts=2, perturbations=2)}


@pytest.fixture(scope="module")
def on_one_thread(data_dir):
    return plltool.search(data_dir / "simulated.fasta", device="cpu", threads=1, workers=1, **THREADED)


@pytest.mark.opencl
@pytest.mark.parametrize(("threads", "workers"), [(1, 1), (2, 1), (2, 2)])
def test_threads_and_processes(data_dir, on_one_thread, threads, workers):
    again = plltool.search(data_dir / "simulated.fasta", device="cpu", threads=threads, workers=workers, **THREADED)
    assert again.layout == on_one_thread.layout
    assert bits(again) == bits(on_one_thread)
