"""Slow, obvious birth-death processes with sampling: differential equations along each branch of a tree.

Imports nothing of plltool.
"""

import math

import numpy as np
from scipy import integrate


def log_density(parent, heights, n, birth, death, sampling, share):
    """The logarithm of the density of a labelled tree, given the height of its root and samples on both sides of it.

    parent, heights : of nodes; tips are nodes 1 to n, and node 0 is above the root
    sampling, share : the rate at which lineages are sampled, which ends them, and the probability for those at height 0

    Along a lineage, back in time, the probability e of no samples and the density g of what is below it change by
    e' = d - (b + d + s) e + b e^2 and g' = -(b + d + s) g + 2 b e g.
    """

    def change(_, at):
        unseen, _ = at
        total = birth + death + sampling
        return [death - total * unseen + birth * unseen**2, -total + 2 * birth * unseen]

    how = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-13, "dense_output": True}
    solved = integrate.solve_ivp(change, (0.0, max(heights) * 1.01), [1.0 - share, 0.0], **how).sol
    root = parent.index(0)
    found = (n - 1) * math.log(2) - math.lgamma(n + 1) - 2 * math.log(1 - solved(heights[root])[0])
    for node in range(1, len(parent)):
        if node <= n:
            found += math.log(share if share and heights[node] == 0 else sampling)
        elif node != root:
            found += math.log(birth)
        if node != root:
            found += solved(heights[parent[node]])[1] - solved(heights[node])[1]
    return found


def probability_of_number(n, root, birth, death, share):
    """That n lineages are sampled at the end, of two that begin at the root's height, if each has samples.

    Their numbers are geometric (Kendall 1948); the sum of both is negative binomial.
    """
    decay = np.exp(-(birth - death) * root)
    further = birth * share * (1 - decay) / (birth * share + (birth * (1 - share) - death) * decay)
    return (n - 1) * further ** (n - 2) * (1 - further) ** 2


def stadler(tips, inner, birth, death, sampling):
    """As `log_density` up to a constant, of many trees at once, by the formulas of Stadler 2010, with p = 0.

    inner : arrays of heights, the root's first
    """
    total, gain = birth + death + sampling, birth - death - sampling
    c1 = np.sqrt(gain**2 + 4 * birth * sampling)
    c2 = -gain / c1

    def q(t):
        return 2 * (1 - c2**2) + np.exp(-c1 * t) * (1 - c2) ** 2 + np.exp(c1 * t) * (1 + c2) ** 2

    down = np.exp(-c1 * inner[0]) * (1 - c2)
    unseen = (total + c1 * (down - (1 + c2)) / (down + 1 + c2)) / (2 * birth)
    found = sum(np.log(q(t) / 4) for t in tips) - sum(np.log(q(t) / 4) for t in (inner[0], *inner))
    return found + (len(tips) - 2) * np.log(birth) + len(tips) * np.log(sampling) - 2 * np.log(1 - unseen)
