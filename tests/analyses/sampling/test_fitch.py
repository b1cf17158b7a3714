"""Sets of states by Fitch's rule, beside the changes of the oracle."""

import numpy as np
import pytest
from oracles.parsimony import fitch_score
from sampling.toys import branches_of, draw_topology, make_parts, make_space

from plltool.alignment.encoding import make_alignment
from plltool.alignment.patterns import compress
from plltool.analyses.sampling.topology_moves import FitchSets, Regrafts, prune


@pytest.mark.parametrize("n_taxa", [4, 9])
def test_insertions_add_the_changes_of_whole_trees(n_taxa):
    """The trees with a tip in each place differ by as much as the oracle says; those left out add a constant."""
    space, rng = make_space("JC", n_taxa=n_taxa), np.random.default_rng(4)
    parts = [*make_parts(n_taxa, 60), *make_parts(n_taxa, 25)]
    codes, weights = np.concatenate([part.masks for part in parts], axis=1), np.concatenate([p.weights for p in parts])
    sets = FitchSets(parts)
    state = space.draw(draw_topology(space, rng), rng)
    tip = next(k for k in range(1, n_taxa) if state.topology.parent[k] != state.topology.top)
    rest, _ = prune(state.topology, tip)
    costs = sets.insertions(rest, sets.below(rest), sets.tips[tip])
    assert len(costs) == 2 * (n_taxa - 1) - 3
    regrafts = Regrafts.of(state.topology, tip, 2 * n_taxa)
    found = []
    for number, edge in enumerate(regrafts.edges):
        topology, _ = regrafts.neighbour(state, number) if number else (state.topology, None)
        branches, _ = branches_of(state._replace(topology=topology))
        found.append(fitch_score(branches, codes, weights) - costs[edge])
    assert set(found) == {found[0]}
    assert len(set(costs.values())) > 1


def test_sites_at_which_trees_do_not_differ_are_left_out():
    """One state alone, one that is found once, unknown ones; with R, which may be A or G, trees differ."""
    columns = ["AAAA", "AAAC", "AACG", "NNAC", "AACC", "ARCY", "AANC"]
    part = compress(make_alignment("abcd", ["".join(rows) for rows in zip(*columns, strict=True)], "toy"))
    assert FitchSets([part]).n_sites == len(["AACC", "ARCY"])
