"""Concordance factors by their definitions, with sets of names, quartet by quartet and site by site."""

import math
from itertools import combinations, product


def sides_of(tree):
    """Of a dendropy tree: all sides of all branches, as frozensets of names; both sides of each."""
    everyone = frozenset(leaf.taxon.label for leaf in tree.leaf_node_iter())
    below = {frozenset(leaf.taxon.label for leaf in node.leaf_iter()) for node in tree}
    return {side for one in below for side in (one, everyone - one)}


def quartets_around(tree, branch_side):
    """The four subtrees around the branch that has these taxa on one side, as ((A, B), (C, D)); maximal clades."""
    sides = sides_of(tree)
    everyone = frozenset(leaf.taxon.label for leaf in tree.leaf_node_iter())
    ends = []
    for whole in (branch_side, everyone - branch_side):
        inside = [side for side in sides if side and side < whole]
        maximal = [side for side in inside if not any(side < other for other in inside)]
        ends.append(tuple(sorted(maximal, key=min)))
    return tuple(sorted(ends, key=lambda end: min(min(side) for side in end)))


def gene_counts(around, gene_trees):
    """Decisive gene trees that have AB|CD, AC|BD, AD|BC, and all decisive ones."""
    (a, b), (c, d) = around
    counts = [0, 0, 0, 0]
    for tree in gene_trees:
        sides = sides_of(tree)
        taxa = frozenset().union(*sides)
        if all(side & taxa for side in (a, b, c, d)):
            counts[3] += 1
            for k, other in enumerate((b, c, d)):
                counts[k] += ((a | other) & taxa) in sides
    return counts


def quartet_means(around, gene_trees):
    """Mean shares of the quartets around a branch that gene trees resolve in each way."""
    totals, n = [0.0, 0.0, 0.0], 0
    for tree in gene_trees:
        sides = sides_of(tree)
        taxa = frozenset().union(*sides)
        chosen = list(product(*(sorted(side & taxa) for end in around for side in end)))
        if not chosen:
            continue
        n += 1
        for a, b, c, d in chosen:
            for k, (pair, rest) in enumerate((((a, b), (c, d)), ((a, c), (b, d)), ((a, d), (b, c)))):
                totals[k] += any(set(pair) <= side and not set(rest) & side for side in sides) / len(chosen)
    return [total / n for total in totals]


def rivals(side, everyone, gene_trees):
    """How many gene trees have a branch, and how many have each branch that contradicts it, descending."""
    found = {}
    for tree in gene_trees:
        for own in {frozenset((s, everyone - s)) for s in sides_of(tree)}:
            found[own] = found.get(own, 0) + 1
    halves = (side, everyone - side)
    against = [count for other, count in found.items() if all(x & y for x, y in product(halves, other))]
    return found.get(frozenset(halves), 0), sorted(against, reverse=True)


def certainty(side, everyone, gene_trees):
    """Internode certainty of a branch against the most frequent one that contradicts it."""
    own, others = rivals(side, everyone, gene_trees)
    rival = max(others, default=0)
    if own + rival == 0:
        return math.nan
    shares = [count / (own + rival) for count in (own, rival)]
    value = 1 + sum(share * math.log2(share) for share in shares if share)
    return value if own >= rival else -value


def site_counts(quartet, rows):
    """Sites that agree with AB|CD, AC|BD, AD|BC: the sequences of four taxa, of which only A, C, G, T are known."""
    counts = [0, 0, 0]
    for column in zip(*(rows[name] for name in quartet), strict=True):
        if set(column) <= set("ACGT"):
            a, b, c, d = column
            counts[0] += a == b != c == d
            counts[1] += a == c != b == d
            counts[2] += a == d != b == c
    return counts


def site_means(around, rows):
    """Mean shares and numbers of sites, over all quartets around a branch."""
    tables = [site_counts(quartet, rows) for quartet in product(*(sorted(side) for end in around for side in end))]
    shares = [[number / sum(table) for number in table] for table in tables if sum(table)]
    means = [sum(column) / len(shares) for column in zip(*shares, strict=True)] if shares else [math.nan] * 3
    return means, [sum(column) / len(tables) for column in zip(*tables, strict=True)]


def expected_counts(states):
    """Expected agreement of one site, from the probabilities of the states at the roots of A, B, C and D."""
    counts = [0.0, 0.0, 0.0]
    for x, y in combinations(range(len(states[0])), 2):
        for first, second in ((x, y), (y, x)):
            for k, four in enumerate(((first, first, second, second), (first, second, first, second),
                                      (first, second, second, first))):  # fmt: skip
                counts[k] += math.prod(own[state] for own, state in zip(states, four, strict=True))
    return counts
