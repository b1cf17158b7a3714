"""Small spaces of time trees, exact draws from their priors, and the oracle of coalescent densities."""

import math

import numpy as np
from oracles.coalescents import jc_three
from sampling.toys import PRIORS, draw_number, draw_value

import plltool
from plltool.analyses.sampling.parameters import find_parameters
from plltool.analyses.sampling.priors import LogNormal
from plltool.analyses.sampling.time_state import TimeNumber, TimeSpace
from plltool.analyses.sampling.tree import Topology
from plltool.analyses.sampling.tree_priors import ConstantPopulation
from plltool.model.model import Model
from plltool.model.model_string import parse_model

RATE, SPREAD, SIZE = LogNormal(-1.0, 0.5), LogNormal(-1.0, 0.5), LogNormal(0.5, 0.4)
DATED = (0.0, 0.7, 0.2, 1.5, 0.0)


def make_time_space(tips=DATED, relaxed=False, tree_prior=None, size=SIZE, model="JC", more=(), calibrations=()):
    """A space of time trees of these tips."""
    models = (Model(parse_model(model)),)
    numbers = [TimeNumber("clockRate", True, RATE)]
    if relaxed:
        numbers.append(TimeNumber("clockSpread", True, SPREAD))
    numbers += more or [TimeNumber("popSize", True, size)]
    names = tuple(f"t{k}" for k in range(len(tips)))
    parameters = tuple(find_parameters(models, PRIORS))
    prior = tree_prior or ConstantPopulation()
    ranges = tuple(tip if isinstance(tip, tuple) else (tip, tip) for tip in tips)
    return TimeSpace(names, models, parameters, ranges, 2000.0, tuple(numbers), prior, relaxed, calibrations)


def draw_tree(tips, size, rng):
    """A rooted tree and its heights by the constant coalescent: simulated back in time, pair by pair."""
    n = len(tips)
    parent, left, right = ([-1] * (2 * n) for _ in range(3))
    heights = [0.0, *tips, *[0.0] * (n - 1)]
    waiting = sorted(range(1, n + 1), key=lambda tip: heights[tip])
    alive, time, inner = [], 0.0, list(rng.permutation(np.arange(n + 1, 2 * n)))
    while waiting or len(alive) > 1:
        pairs = len(alive) * (len(alive) - 1) / 2
        meets = time + rng.exponential(size / pairs) if pairs else math.inf
        if waiting and heights[waiting[0]] <= meets:
            time = heights[waiting[0]]
            alive.append(waiting.pop(0))
            continue
        time, node = meets, int(inner.pop())
        a, b = (alive.pop(int(rng.integers(len(alive)))) for _ in range(2))
        heights[node], left[node], right[node] = time, a, b
        parent[a] = parent[b] = node
        alive.append(node)
    left[0], parent[alive[0]] = alive[0], 0
    return Topology(n + 1, parent, left, right), heights


def draw_state(space, rng):
    """An exact draw from the prior, with a constant coalescent."""
    numbers = [draw_number(own.prior, rng) for own in space.numbers]
    rooted, heights = draw_tree([rng.uniform(*own) for own in space.tips], numbers[-1], rng)
    rates = []
    if space.is_relaxed:
        rates = rng.lognormal(-(numbers[1] ** 2) / 2, numbers[1], rooted.n_nodes).tolist()
    return space.at((rooted, heights, tuple(numbers), rates, [draw_value(own, rng) for own in space.parameters]))


def rooted_key(time):
    """The clades of a rooted tree."""
    return frozenset(time.rooted.splits())


def rank_key(time):
    """The clades in the order of their heights: a labelled history."""
    splits = time.rooted.splits()
    inner = range(time.rooted.n_taxa, time.rooted.n_nodes)
    return tuple(splits[node] for node in sorted(inner, key=lambda node: time.heights[node]))


THREE = {"a": "ACGTACGTACGTACGTACGT", "b": "ACGTACGTACGTACGAACTT", "c": "ACGTACGGACTTACGTCCGA"}
THREE_DATES = {"a": 2000.0, "b": 1999.2, "c": 1998.5}  # THREE_TIPS
THREE_TIPS = (0.0, 0.8, 1.5)


def three_lnls(cherry, root, outside, rate, tips=THREE_TIPS):
    """(n,) lnL of the three taxa on many trees by the oracle."""
    rows = zip(*THREE.values(), strict=True)
    kinds = [[a == b == c, a != b == c, b != a == c, c != a == b, a != b != c != a] for a, b, c in rows]
    return jc_three(cherry, root, outside, rate, tips, np.sum(kinds, axis=0))


def assert_three_are_sampled(weights, outside, expected, prior_only=False, **asked):
    """A run has the means and mean squares of columns, and the cherries, that weighted draws of the posterior have.

    weights : (n,), of draws; outside : (n,) the tip that is not in the cherry; expected : (n,) by the column
    Within 5 of the standard errors of the draws and of the run.
    """
    options = plltool.SampleOptions(generations=4_000, chains=1, sample_every=4, burnin=0.1, prior_only=prior_only)
    found = plltool.sample(THREE, "JC", options=options, device="numpy", workers=1, seed=1, clock="strict", **asked)
    numbers = found.samples.numbers(found.first).reshape(-1, len(found.samples.columns))
    table = dict(zip(found.samples.columns, numbers.T, strict=True))
    for name, values in expected.items():
        for power in (1, 2):
            mean = weights @ values**power
            error = math.sqrt(weights**2 @ (values**power - mean) ** 2)
            spread = (table[name] ** power).std() / math.sqrt(found.posterior.numbers[name].size)
            away = abs((table[name] ** power).mean() - mean)
            assert away < 5 * math.hypot(error, spread), f"{name}: {(table[name] ** power).mean()}, expected {mean}"
    for tip in range(3):
        share = found.posterior.splits.get(sum(2 << k for k in range(3) if k != tip), 0.0)
        mean = weights @ (outside == tip)
        error = math.sqrt(weights**2 @ ((outside == tip) - mean) ** 2 + mean * (1 - mean) / 300)
        assert abs(share - mean) < 5 * error
