"""Slow, obvious coalescents: densities by walking through the intervals, and three taxa by simulation.

Imports nothing of plltool.
"""

import math

import numpy as np
from scipy import integrate


def log_density(tips, inner, size):
    """The logarithm of the density of a tree with tips and inner nodes at these heights; size(t) is the population.

    Between two events, k lineages meet with the rate k (k - 1) / 2 / size(t); each meeting has the density 1 / size(t).
    """
    events = sorted([(height, 0) for height in tips] + [(height, 1) for height in inner])
    total, lineages, before = 0.0, 0, 0.0
    for height, is_inner in events:
        pairs = lineages * (lineages - 1) / 2
        if pairs:
            total -= pairs * integrate.quad(lambda t: 1 / size(t), before, height, limit=200, epsabs=1e-12)[0]
        if is_inner:
            total -= math.log(size(height))
        lineages += -1 if is_inner else 1
        before = height
    return total


def simulate_three(tips, size, rng, n):
    """Trees of three tips at some heights, numbers or (n,), drawn n times, by waiting times.

    Returns (n,) the height of the cherry, of the root, and which tip is not in the cherry.
    """
    tips = np.array([np.broadcast_to(tip, n) for tip in tips])
    order = np.argsort(tips, axis=0)
    _, second, third = np.take_along_axis(tips, order, axis=0)
    early = second + rng.exponential(size, n)  # the first two meet before the third begins
    is_early = early < third
    late = third + rng.exponential(size / 3, n)
    cherry = np.where(is_early, early, late)
    root = np.where(is_early, third, late) + rng.exponential(size, n)
    outside = np.where(is_early, order[2], rng.integers(0, 3, n))
    return cherry, root, outside


def jc_three(cherry, root, outside, rate, tips, counts):
    """(n,) lnL of three taxa under Jukes and Cantor's model on many trees at once.

    counts : columns of each kind: all equal, tip 0 differs, tip 1 differs, tip 2 differs, all differ
    """

    def stays(length):
        return np.exp(-4 / 3 * rate * length)

    below = [np.where(outside == k, root - tips[k], cherry - tips[k]) for k in range(3)]
    inner = root - cherry
    # the branch of the tip outside the cherry goes on to the cherry's node, where all three meet
    a, b, c = (stays(below[k] + np.where(outside == k, inner, 0.0)) for k in range(3))
    ab, ac, bc, abc = a * b, a * c, b * c, a * b * c
    same = (1 + 3 * (ab + ac + bc) + 6 * abc) / 64
    differs = [(1 + 3 * own - others - 2 * abc) / 64 for own, others in ((bc, ab + ac), (ac, ab + bc), (ab, ac + bc))]
    none = (1 - ab - ac - bc + 2 * abc) / 64
    kinds = np.log(np.array([same, *differs, none]))
    return np.asarray(counts) @ kinds
