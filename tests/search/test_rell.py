"""The ultrafast bootstrap: estimated lnL against resampled alignments, the choice of trees, supports of IQ-TREE."""

import numpy as np
import pytest

from plltool.alignment.patterns import compress
from plltool.api import Likelihood, evaluate, search
from plltool.io.alignment_reader import read_alignment, read_sequences
from plltool.search.progress import StopSearch
from plltool.search.rell import RellPool, draw_weights
from plltool.tree.topology import Tree
from plltool.tree.tree_set import members_of, splits_of
from plltool.ultrafast import ultrafast_bootstrap

MODEL = "K80{4.0}+G4{0.5}"

# iqtree2 2.0.7 -s primates.phy -m GTR+F+G4 -B 1000 -seed 3: per cent, by the clade without Tarsius
IQTREE = {
    "Homo_sapiens Pan": 91,
    "Homo_sapiens Pan Gorilla": 100,
    "Homo_sapiens Pan Gorilla Pongo": 94,
    "Homo_sapiens Pan Gorilla Pongo Hylobates": 99,
    "Macaca_fuscata M_mulatta": 97,
    "Macaca_fuscata M_mulatta M_fascicularis": 92,
    "Macaca_fuscata M_mulatta M_fascicularis M_sylvanus": 100,
    "Homo_sapiens Pan Gorilla Pongo Hylobates Macaca_fuscata M_mulatta M_fascicularis M_sylvanus": 95,
}


@pytest.fixture(scope="module")
def primates(data_dir):
    return data_dir / "primates.phy"


@pytest.fixture(scope="module")
def best(primates):
    return search(primates, MODEL, device="numpy", effort="fast")


def test_weights_are_those_of_sites_drawn_from_each_part():
    patterns = [np.array([0, 1, 1, 2]), np.array([1, 0])]
    weights = draw_weights(patterns, 4000, np.random.default_rng(2))
    assert weights.shape == (5, 4000)
    assert (weights[:3].sum(axis=0) == 4).all()
    assert (weights[3:].sum(axis=0) == 2).all()
    assert weights.mean(axis=1) == pytest.approx([1, 2, 1, 1, 1], abs=0.08)  # five standard errors


def test_estimates_are_lnls_of_the_resampled_alignment(primates, best):
    sequences = read_sequences(primates)
    patterns = compress(read_alignment(primates))
    weights = draw_weights([patterns.site_pattern], 3, np.random.default_rng(1))
    with Likelihood(primates, best.tree, MODEL, device="numpy") as likelihood:
        sites = likelihood.site_lnl()
    by_pattern = np.empty(patterns.n_patterns)
    by_pattern[patterns.site_pattern] = sites
    found = RellPool(weights, np.random.default_rng(0)).estimate(by_pattern)
    first_site = np.unique(patterns.site_pattern, return_index=True)[1]
    for column in range(3):
        columns = np.repeat(first_site, weights[:, column])
        resampled = dict(zip(sequences.names, (row.decode() for row in sequences.columns(columns)), strict=True))
        lnl = evaluate(resampled, best.tree, MODEL, fixed=True, device="numpy").lnl
        assert found[column] == pytest.approx(lnl, rel=1e-11)


class Fake:
    """A likelihood whose sites are known."""

    def __init__(self, tree, sites):
        self.tree = tree
        self.sites = np.array(sites, dtype=float)

    def site_lnl(self):
        return self.sites


def test_each_alignment_keeps_its_best_tree(best):
    weights = np.array([[9, 0, 5], [0, 9, 5]], dtype=np.uint16)
    pool = RellPool(weights, np.random.default_rng(0))
    first, second = other_topologies(best.tree, 2)
    pool.add(Fake(first, [-1, -2]))
    pool.add(Fake(first, [0, 0]))  # the same topology again: not looked at
    assert pool.chosen.tolist() == [0, 0, 0]
    pool.add(Fake(second, [-2, -1]))  # better where the second pattern counts, as good on the third alignment
    assert pool.chosen.tolist()[:2] == [0, 1]
    assert len(pool.trees) == 2


def other_topologies(tree, number):
    """Trees that differ by exchanged tips."""
    trees = []
    for k in range(number):
        ends = tree.ends.copy()
        ends[tree.ends == k] = k + 4
        ends[tree.ends == k + 4] = k
        trees.append(Tree.from_edges(tree.names, ends, tree.lengths))
    return trees


def test_ties_are_broken_evenly(best):
    weights = np.full((1, 6000), 10, dtype=np.uint16)
    pool = RellPool(weights, np.random.default_rng(3))
    first, second, third = other_topologies(best.tree, 3)
    pool.add(Fake(first, [-1.0]))
    pool.add(Fake(second, [-1.02]))
    pool.add(Fake(third, [-0.99]))
    assert np.bincount(pool.chosen) == pytest.approx(2000, abs=200)  # five standard deviations
    pool.add(Fake(best.tree, [-0.5]))
    assert (pool.chosen == 3).all()


@pytest.mark.opencl
def test_supports_are_near_those_of_iqtree(primates):
    best = search(primates, "GTR+F+G4", device="opencl")
    found = ultrafast_bootstrap(primates, best.tree, best.models, device="opencl")
    names = found.tree.names
    values = dict(zip(splits_of(found.tree), found.values["ufboot"], strict=True))
    shares = {frozenset(names[i] for i in members_of(split)): 100 * value for split, value in values.items()}
    differences = [shares[frozenset(clade.split())] - value for clade, value in IQTREE.items()]
    assert np.abs(differences).max() < 6  # two samples of 1000 of some 90 % differ by up to 4
    assert abs(np.mean(differences)) < 2


def test_interruption(primates, best):
    sequences = read_sequences(primates)

    def stop(event):
        assert event.stage == "ufboot"
        raise StopSearch

    small = {name: row[:200].decode() for name, row in zip(sequences.names, sequences.rows, strict=True)}
    found = ultrafast_bootstrap(small, best.tree, MODEL, device="numpy", replicates=20, listener=stop)
    assert 0 <= np.nanmin(found.values["ufboot"]) <= np.nanmax(found.values["ufboot"]) <= 1
    assert found.n_replicates == {"ufboot": 20}
