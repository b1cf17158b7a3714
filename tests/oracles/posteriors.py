"""Slow, obvious posterior distributions of small trees: what chains are checked against. Imports nothing of plltool.

Trees and columns are those of `oracles.likelihood`; a model here is GTR with rates over sites from any shape.
"""

import numpy as np
from oracles.likelihood import orient
from oracles.substitution import q_matrix
from scipy import special


def all_topologies(n_tips):
    """The branches of every unrooted binary tree of tips 0 .. n_tips - 1; inner nodes are numbered from n_tips on."""
    trees = [[(0, n_tips), (1, n_tips), (2, n_tips)]]
    for tip in range(3, n_tips):
        grown = []
        for tree in trees:
            for place, (a, b) in enumerate(tree):
                inner = n_tips + tip - 2
                grown.append([*tree[:place], *tree[place + 1 :], (a, inner), (inner, b), (tip, inner)])
        trees = grown
    return trees


def splits_of(branches, n_tips):
    """The sets of tips on the sides of inner branches without tip 0."""
    below = {tip: frozenset([tip]) for tip in range(n_tips)}
    found = set()
    for _, child, _ in reversed(orient(branches, 0)):
        if child >= n_tips:
            below[child] = frozenset().union(*(below[c] for p, c, _ in orient(branches, 0) if p == child))
            found.add(below[child])
    return frozenset(split for split in found if 1 < len(split) < n_tips - 1)


class SiteModel:
    """GTR with a share of invariable sites and four rates from quantiles of a gamma distribution of mean 1."""

    def __init__(self, exchangeabilities, frequencies, alpha, pinv):
        q = q_matrix(exchangeabilities, frequencies)
        root = np.sqrt(frequencies)
        values, vectors = np.linalg.eigh(q * root[:, None] / root[None, :])
        self._values, self._right, self._left = values, vectors / root[:, None], vectors.T * root[None, :]
        rates = special.gammaincinv(alpha, (2 * np.arange(4) + 1) / 8) / alpha
        self.frequencies = frequencies
        self.rates = np.append(0.0, rates)
        self.weights = np.append(pinv, np.full(4, (1 - pinv) / 4))

    def transitions(self, length):
        """(category, state, state)"""
        decays = np.exp(self._values[None, :] * self.rates[:, None] * length)
        return (self._right[None] * decays[:, None, :]) @ self._left


def simulate(rng, branches, lengths, n_tips, model, n_sites):
    """(n_tips, n_sites) states of columns that evolve along a tree."""
    category = rng.choice(5, n_sites, p=model.weights)
    states = {n_tips: rng.choice(4, n_sites, p=model.frequencies)}
    for parent, child, branch in orient(branches, n_tips):
        rows = model.transitions(lengths[branch])[category, states[parent]].cumsum(axis=1)
        states[child] = np.minimum((rng.random(n_sites)[:, None] > rows).sum(axis=1), 3)
    return np.array([states[tip] for tip in range(n_tips)])


def log_likelihood(branches, lengths, states, model):
    """lnL of columns (n_tips, n_sites) by pruning."""
    n_tips = len(states)
    clas = {}
    for parent, child, branch in reversed(orient(branches, n_tips)):
        p = model.transitions(lengths[branch])
        above = p[:, :, states[child]] if child < n_tips else p @ clas[child]
        clas[parent] = clas[parent] * above if parent in clas else above
    by_category = np.einsum("s,csn->cn", model.frequencies, clas[n_tips])
    return float(np.log(model.weights @ by_category).sum())


def number_of_trees(n_tips):
    """(2 n - 5)!!, the number of unrooted binary trees."""
    return int(np.prod(range(1, 2 * n_tips - 4, 2)))
