"""Slow, obvious parsimony: least changes by trying all states of the inner nodes, and Fitch's rule in sets.

A tree is a list of (node, node) pairs, tips being 0 .. n_tips-1; a column gives each tip's set of states as
a bit mask, and an array of codes has a row per tip. Nothing here uses plltool.
"""

from itertools import product

import numpy as np

DNA_STATES = (1, 2, 4, 8)


def least_changes(branches, column):
    """The least number of branches whose ends differ, over all states of all nodes. Up to 6 tips."""
    n_nodes = len(branches) + 1
    choices = [[state for state in DNA_STATES if state & code] for code in column]
    choices += [DNA_STATES] * (n_nodes - len(column))
    return min(sum(states[a] != states[b] for a, b in branches) for states in product(*choices))


def fitch_score(branches, codes, weights):
    """The same by Fitch's rule, rooted at tip 0, of all columns of an array `codes`, each times its weight."""
    neighbours = {}
    for a, b in branches:
        neighbours.setdefault(a, []).append(b)
        neighbours.setdefault(b, []).append(a)
    visits = [(0, None)]  # each node before those behind it
    for node, parent in visits:
        visits += [(child, node) for child in neighbours[node] if child != parent]
    states = dict(enumerate(codes))
    changes = np.zeros(codes.shape[1], dtype=int)
    for node, parent in reversed(visits[1:]):
        if parent not in states:
            states[parent] = states[node]
            continue
        shared = states[node] & states[parent]
        changes += shared == 0
        states[parent] = np.where(shared == 0, states[node] | states[parent], shared)
    return int(changes @ weights)


def changes_by_branch(branches, tip, new_node, codes, weights):
    """The changes of each tree that arises by inserting a tip into one of the branches, in their order."""
    totals = []
    for a, b in branches:
        others = [branch for branch in branches if branch != (a, b)]
        totals.append(fitch_score([*others, (a, new_node), (new_node, b), (tip, new_node)], codes, weights))
    return totals


def spr_neighbours(branches, radius):
    """The branches of each tree that one SPR move makes, as (tree, distance); inner nodes have three branches.

    The distance is 1 for branches that touch the one in which the subtree was, which is whole after pruning.
    """
    around = {}
    for a, b in branches:
        around.setdefault(a, set()).add(b)
        around.setdefault(b, set()).add(a)
    for joint in [node for node, others in around.items() if len(others) == 3]:
        for top in sorted(around[joint]):
            a, b = sorted(around[joint] - {top})
            seen, layer = {a, b}, [a, b]
            for distance in range(1, radius + 1):
                beyond = [(near, far) for near in layer for far in around[near] if far not in seen | {joint}]
                for near, far in beyond:
                    cut = {frozenset(pair) for pair in ((joint, a), (joint, b), (near, far))}
                    kept = [branch for branch in branches if frozenset(branch) not in cut]
                    yield [*kept, (a, b), (near, joint), (joint, far)], distance
                layer = [far for _, far in beyond]
                seen |= set(layer)
