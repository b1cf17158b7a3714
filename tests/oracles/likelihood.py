"""Slow, obvious tree likelihoods: what the engines and the search are checked against. Imports nothing of plltool.

A tree is a list of (node, node) branches with a list of lengths, tips being 0 .. n_tips-1. A column gives each tip's
set of states as a bit mask, or the likelihoods of its states as a list. A model is a list of mixture components
(weight, frequencies, rate matrix), the rate matrix with the component's rate multiplied in.
"""

import math
from itertools import product

import numpy as np
from oracles.codons import IUPAC
from scipy import linalg


def transition_matrices(components, lengths):
    """P(t) of each component and branch: (component, branch, state, state)."""
    return np.array([linalg.expm(np.multiply.outer(np.asarray(lengths, dtype=float), q)) for _, _, q in components])


def orient(branches, root):
    """(parent, child, branch index) of every branch, parents before their children."""
    neighbours = {}
    for index, (a, b) in enumerate(branches):
        neighbours.setdefault(a, []).append((b, index))
        neighbours.setdefault(b, []).append((a, index))
    order, queue, seen = [], [root], {root}
    while queue:
        node = queue.pop()
        for child, index in neighbours.get(node, ()):
            if child not in seen:
                seen.add(child)
                order.append((node, child, index))
                queue.append(child)
    return order


def with_root(branches, lengths, n_tips, branch, share):
    """Branches and lengths of a tree whose root, node n_tips, lies on a branch, at a share of it from its first end.

    All functions here begin at node n_tips and go away from it, so they serve processes that are not reversible.
    """
    moved = [tuple(node + (node >= n_tips) for node in pair) for pair in branches]
    a, b = moved[branch]
    moved[branch] = (n_tips, a)
    given = list(lengths)
    own = given[branch]
    given[branch] = share * own
    return [*moved, (n_tips, b)], [*given, (1 - share) * own]


def dna_columns(sequences, names, sites=slice(None)):
    """Columns of DNA as bit masks of A, C, G, T for the taxa of these names; `sites` are a slice or numbers."""
    masks = {letter: sum(1 << "ACGT".index(base) for base in bases) for letter, bases in IUPAC.items()}
    return np.array([[masks[letter] for letter in sequences[name]] for name in names])[:, sites].T.tolist()


def tip_likelihoods(cell, n_states):
    """{state: likelihood} of the states that a cell allows: all 1 if it is a set."""
    if isinstance(cell, list):
        return {state: value for state, value in enumerate(cell) if value > 0}
    return {state: 1.0 for state in range(n_states) if cell >> state & 1}


def site_likelihood(branches, lengths, column, components, known=None):
    """The likelihood of one column by summing over every state of every inner node. Up to 6 tips.

    `known` {node: state} holds inner nodes to one state each: the joint probability of the column and these states.
    """
    n_tips = len(column)
    root = n_tips
    inner = sorted({node for branch in branches for node in branch if node >= n_tips})
    total = 0.0
    all_p = transition_matrices(components, lengths).tolist()
    for (weight, frequencies, _), p in zip(components, all_p, strict=True):
        n_states = len(frequencies)
        oriented = orient(branches, root)
        for states in product(range(n_states), repeat=len(inner)):
            state_of = dict(zip(inner, states, strict=True))
            if any(state_of[node] != state for node, state in (known or {}).items()):
                continue
            term = weight * frequencies[state_of[root]]
            for parent, child, branch in oriented:
                row = p[branch][state_of[parent]]
                if child < n_tips:
                    term *= sum(row[state] * x for state, x in tip_likelihoods(column[child], n_states).items())
                else:
                    term *= row[state_of[child]]
            total += term
    return total


def brute_force(branches, lengths, columns, components):
    """lnL of each column."""
    return np.array([math.log(site_likelihood(branches, lengths, column, components)) for column in columns])


def pruning(branches, lengths, columns, components):
    """lnL of each column by Felsenstein's pruning, rooted at the first inner node; trees of any size and depth.

    Everything is a logarithm, by component and state, from the P matrices to the root: nothing can underflow, and no
    component is lost however far it falls behind another on the way. An impossible state is minus infinity.
    """
    cells = np.array(columns)  # (column, tip), or with likelihoods (column, tip, state)
    n_tips = cells.shape[1]
    weights, frequencies = (np.array(column, dtype=float) for column in list(zip(*components, strict=True))[:2])
    states = np.arange(frequencies.shape[1])[:, None]
    with np.errstate(divide="ignore"):
        log_p = np.log(transition_matrices(components, lengths))
        sets = cells.T[:, None, :] >> states & 1 if cells.ndim == 2 else cells.transpose(1, 2, 0)
        tips = np.log(sets[:, None])  # (tip, 1, state, column), for every component
    cla = dict(enumerate(tips))  # (component, state, column) of each node, without the branch above it
    for parent, child, branch in reversed(orient(branches, n_tips)):
        above = np.logaddexp.reduce(log_p[:, branch, :, :, None] + cla.pop(child)[:, None], axis=2)
        cla[parent] = cla[parent] + above if parent in cla else above
    by_state = np.log(weights[:, None] * frequencies)[..., None] + cla[n_tips]
    return np.logaddexp.reduce(by_state, axis=(0, 1))


# central differences of fourth order: points, and weights of the first and the second derivative
POINTS = (-2, -1, 0, 1, 2)
FIRST = (1 / 12, -2 / 3, 0.0, 2 / 3, -1 / 12)
SECOND = (-1 / 12, 4 / 3, -5 / 2, 4 / 3, -1 / 12)


def derivative(f, t, h):
    """f'(t) and f''(t); their errors are of the order of h^4, and of the rounding of f over h and h^2."""
    values = [f(t + k * h) for k in POINTS]
    first = sum(w * v for w, v in zip(FIRST, values, strict=True)) / h
    second = sum(w * v for w, v in zip(SECOND, values, strict=True)) / h**2
    return first, second


def mixed_derivative(f, t, u, h, g):
    """d2 f / dt du at (t, u), steps h and g."""
    return sum(
        w * v * f(t + i * h, u + j * g)
        for i, w in zip(POINTS, FIRST, strict=True)
        for j, v in zip(POINTS, FIRST, strict=True)
        if w and v
    ) / (h * g)
