"""Simulate columns of an alignment that evolve along a tree."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plltool.arrays import FloatArray, IndexArray
from plltool.model.components import Components
from plltool.tree.topology import Tree

ROOT = 0  # where columns start; with a reversible model any node gives the same distribution


def evolve(tree: Tree, components: Components, n_sites: int, rng: np.random.Generator) -> npt.NDArray[np.int16]:
    """Simulate the states (n_taxa, n_sites) at the tips.

    For each column a component is drawn by its weight and a first state by the component's frequencies; along each
    branch the state changes by the component's P matrix. `tree` has one length per branch.
    """
    component = _draw(np.cumsum(components.weights)[None], np.zeros(n_sites, dtype=np.intp), rng)
    states = np.empty((tree.n_nodes, n_sites), dtype=np.int16)
    states[ROOT] = _draw(np.cumsum(components.frequencies, axis=1), component, rng)
    for node, parent, branch in tree.directed_from(ROOT):
        rows = components.transition_matrices(tree.lengths[branch]).cumsum(axis=2).reshape(-1, components.n_states)
        states[node] = _draw(rows, component * components.n_states + states[parent], rng)
    return states[: tree.n_taxa]


def _draw(cumulated: FloatArray, rows: IndexArray, rng: np.random.Generator) -> IndexArray:
    """Draw a column of each of the `rows` of a table of cumulated probabilities; all rows are searched at once."""
    n, width = cumulated.shape
    table = cumulated / cumulated[:, -1:] + np.arange(n)[:, None]  # row k from k to k + 1
    found = np.searchsorted(table.ravel(), rows + rng.random(len(rows)), side="right")
    return np.minimum(found - rows * width, width - 1)  # rounding may lead past the end of a row
