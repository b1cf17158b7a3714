"""Joint states at inner nodes: the most probable states of all of them together (Pupko et al. 2000).

Where sites have rates or classes of a mixture, those of a site are chosen together with its states: of all categories,
the one whose most probable states, joint with the category and the data, are the most probable. Likewise, whether each
node is on or off under a covarion model is chosen with its state. Everything is computed on the host, in logarithms.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plltool.alignment.patterns import Patterns
from plltool.alignment.resampling import batches
from plltool.arrays import FloatArray, IndexArray
from plltool.model.components import Components
from plltool.tree.topology import Tree


def joint_states(
    tree: Tree, lengths: FloatArray, components: Components, patterns: Patterns
) -> tuple[FloatArray, IndexArray]:
    """The most probable states of all inner nodes together, where branches have these `lengths` (n_edges,).

    Returns (n_patterns,) log-probability of these states, their category and the data, and (n_taxa - 2, n_patterns) the
    states of the data.
    """
    with np.errstate(divide="ignore"):  # a change may be impossible
        changes = np.log(np.stack([components.transition_matrices(float(length)) for length in lengths], axis=1))
        masses = np.log(components.masses())
    best = np.full(patterns.n_patterns, -np.inf)
    states = np.zeros((tree.n_taxa - 2, patterns.n_patterns), dtype=np.intp)
    n_hidden = components.n_states // patterns.states.n_states
    tips = np.where(np.tile(patterns.states.state_sets, n_hidden), 0.0, -np.inf)  # of each code
    for some in batches(patterns.n_patterns, tree.n_nodes * components.n_states):
        for change, mass in zip(changes, masses, strict=True):
            value, own = _trace(tree, change, mass, tips[patterns.codes[:, some]])
            better = value > best[some]
            best[some] = np.where(better, value, best[some])
            states[:, some] = np.where(better, own, states[:, some])
    return best, states % patterns.states.n_states


def _trace(tree: Tree, changes: FloatArray, mass: FloatArray, tips: FloatArray) -> tuple[FloatArray, IndexArray]:
    """Values and states of one component: (n_patterns,), (n_taxa - 2, n_patterns).

    `changes` (n_edges, n_states, n_states) and `mass` (n_states,) are logarithms of the transition probabilities and of
    the component's weight times its frequencies; `tips` (n_taxa, n_patterns, n_states) 0 where a state is allowed, -inf
    elsewhere.
    """
    n_taxa, n_patterns, n_states = tips.shape
    root = int(tree.neighbours[0, 0])
    visits = [visit for visit in tree.directed_from(root) if not (tree.is_rooted and visit[0] == 0)]
    values = np.zeros((tree.n_nodes, n_patterns, n_states))
    values[:n_taxa] = tips
    choices = np.empty((tree.n_nodes, n_patterns, n_states), dtype=np.uint8)
    for node, parent, branch in reversed(visits):
        for state in range(n_states):
            options = values[node] + changes[branch, state]
            choices[node, :, state] = options.argmax(axis=1)
            values[parent, :, state] += options.max(axis=1)
    at_root = values[root] + mass
    found: npt.NDArray[np.intp] = np.empty((tree.n_nodes, n_patterns), dtype=np.intp)
    found[root] = at_root.argmax(axis=1)
    for node, parent, _ in visits:
        found[node] = choices[node, np.arange(n_patterns), found[parent]]
    return at_root.max(axis=1), found[n_taxa:]
