#!/usr/bin/env python3
"""Simulation-based calibration of clocks, and effective samples per second with and without trajectories.

    scripts/checks/check_clocks.py ranks --data-sets 200 --output ranks.json
    scripts/checks/check_clocks.py speed data/dated.fasta data/dated.tsv --generations 20000 --output speed.json

ranks: numbers and a tree are drawn from the prior, data are simulated on it, and the posterior is sampled. The rank of
each number that was drawn, among thinned samples, is uniform if all is right (Talts et al. 2018); z is the deviation of
the mean rank. Priors: a constant population with dated tips of which one is a range; a skygrid; births and deaths with
tips of one age and a share that is sampled; clocks are relaxed. The exit status is 1 if a chi-square test of ten bins
has p < 0.001 / number of tests.

speed: the smallest and median effective size of all columns, per second of processor time, with all moves and without
Hamiltonian trajectories.
"""

import argparse
import json
import logging
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from scipy import stats

import plltool
from plltool.analyses.sampling import runs
from plltool.analyses.sampling.time_moves import HamiltonianStep

TIPS = {"a": 0.0, "b": 0.0, "c": 0.4, "d": 1.1, "e": (0.2, 0.9)}
N_SITES, BINS, LEAST_P = 150, 10, 0.001
KEPT, DISCARDED, THINNED = 9, 4, 80  # samples of a run, those of its burn-in, and generations between two
PRIORS = {"rate": "lognormal(-2.5,0.4)", "spread": "lognormal(-1.2,0.4)", "population": "lognormal(0.3,0.5)"}
PRIORS |= {"grid_precision": "gamma(4,2)", "root": "gamma(9,4)", "diversification": "gamma(4,4)"}
PRIORS |= {"turnover": "uniform(0,1)"}
GRID, SHARE = (3, 1.5), 0.6

Node: TypeAlias = tuple[float, Any]  # a height, and a name or two nodes


def join_back(tips: dict[str, float], wait: Callable[[float, int], float], rng: np.random.Generator) -> Node:
    """A tree by joining random lineages back in time; `wait` draws the next time of k lineages after another."""
    later = sorted(((height, name) for name, height in tips.items()), reverse=True)
    alive: list[Node] = []
    now = 0.0
    while later or len(alive) > 1:
        upcoming = wait(now, len(alive)) if len(alive) > 1 else math.inf
        if later and later[-1][0] <= upcoming:
            alive.append(later.pop())
            now = alive[-1][0]
            continue
        first, second = (alive.pop(int(rng.integers(len(alive)))) for _ in range(2))
        alive.append((upcoming, (first, second)))
        now = upcoming
    return alive[0]


def draw_coalescent(rng: np.random.Generator, has_grid: bool) -> tuple[dict[str, float], dict[str, float], Node]:
    """Numbers, heights of tips, and a tree."""
    size = rng.lognormal(0.3, 0.5)
    logs, numbers = [math.log(size)], {"popSize": size}
    if has_grid:
        precision = rng.gamma(4.0, 1 / 2)
        logs += (logs[0] + np.cumsum(rng.normal(0.0, precision**-0.5, GRID[0] - 1))).tolist()
        numbers = {f"logPopSize{k + 1}": value for k, value in enumerate(logs)} | {"precision": precision}
    tips = {name: rng.uniform(*own) if isinstance(own, tuple) else own for name, own in TIPS.items()}
    width = GRID[1] / (GRID[0] - 1)

    def wait(now: float, k: int) -> float:
        left = rng.exponential(2.0 / (k * (k - 1)))
        while True:  # from step to step
            step = min(int(now / width + 1e-9), len(logs) - 1)
            end = math.inf if step == len(logs) - 1 else (step + 1) * width
            if now + left * math.exp(logs[step]) < end:
                return now + left * math.exp(logs[step])
            left -= (end - now) / math.exp(logs[step])
            now = end

    tree = join_back(tips, wait, rng)
    return numbers | {"height(e)": tips["e"]}, tips, tree


def draw_births(rng: np.random.Generator) -> tuple[dict[str, float], dict[str, float], Node]:
    """The same of births and deaths, given that there are as many samples as tips.

    With u(t) for the probability of further samples, the number of samples of both sides of the root is negative
    binomial, and the other heights are independent with the distribution function u(t) / u(root).
    """
    n = len(TIPS)
    most = (1 - 2 / n) ** (n - 2) * (2 / n) ** 2  # of u^(n-2) (1-u)^2
    while True:
        growth, turnover, root = rng.gamma(4.0, 1 / 4), rng.random(), rng.gamma(9.0, 1 / 4)
        birth = growth / (1 - turnover)
        sampled, rest = birth * SHARE, birth * (1 - SHARE) - (birth - growth)
        decay = math.exp(-growth * root)
        u = sampled * (1 - decay) / (sampled + rest * decay)
        if rng.random() < u ** (n - 2) * (1 - u) ** 2 / most:
            break
    drawn = u * rng.random(n - 2)
    heights = sorted([*(-np.log(sampled * (1 - drawn) / (sampled + drawn * rest)) / growth).tolist(), root])
    tree = join_back(dict.fromkeys(TIPS, 0.0), lambda _, k: heights[n - k], rng)
    return {"diversificationRate": growth, "relativeDeathRate": turnover}, dict.fromkeys(TIPS, 0.0), tree


def branches(node: Node) -> Iterator[tuple[Node, Node]]:
    """All nodes below one, each with its parent, parents first."""
    if isinstance(node[1], tuple):
        for child in node[1]:
            yield child, node
            yield from branches(child)


def simulate(tree: Node, rate: float, spread: float, rng: np.random.Generator) -> dict[str, str]:
    """Sequences under Jukes and Cantor's model with a relaxed clock."""
    states, rows = {id(tree): rng.integers(0, 4, N_SITES)}, {}
    for node, parent in branches(tree):
        relative = rng.lognormal(-(spread**2) / 2, spread)
        is_new = rng.random(N_SITES) < 1 - math.exp(-4 / 3 * rate * relative * (parent[0] - node[0]))
        states[id(node)] = np.where(is_new, rng.integers(0, 4, N_SITES), states[id(parent)])
        if isinstance(node[1], str):
            rows[node[1]] = "".join("ACGT"[state] for state in states[id(node)])
    return rows


def rank_once(kind: str, seed: int) -> dict[str, int]:
    """The ranks of the numbers of one data set."""
    warnings.simplefilter("ignore")
    logging.getLogger("plltool").setLevel(logging.ERROR)
    rng = np.random.default_rng([seed, len(kind)])
    rate, spread = rng.lognormal(-2.5, 0.4), rng.lognormal(-1.2, 0.4)
    numbers, _, tree = draw_births(rng) if kind.startswith("birth") else draw_coalescent(rng, kind.startswith("sky"))
    numbers |= {"clockRate": rate, "clockSpread": spread, "treeHeight": tree[0]}
    rows = simulate(tree, rate, spread, rng)
    ends = {name: own if isinstance(own, tuple) else (own, own) for name, own in TIPS.items()}
    dates = {name: (2000.0 - high, 2000.0 - low) for name, (low, high) in ends.items()}
    dates = dict.fromkeys(TIPS, 2000.0) if kind.startswith("birth") else dates
    generations, share = (KEPT + DISCARDED) * THINNED, DISCARDED / (KEPT + DISCARDED)
    options = plltool.SampleOptions(generations, 1, 1, sample_every=THINNED, burnin=share)
    found = plltool.sample(
        rows, "JC", options=options, clock="relaxed", dates=dates, tree_prior=kind, seed=seed, workers=1,
        clock_priors=plltool.ClockPriors(**PRIORS), device="numpy",
    )  # fmt: skip
    kept = dict(zip(found.samples.columns, found.samples.numbers()[0, -KEPT:].T, strict=True))
    return {name: int((kept[name] < value).sum()) for name, value in numbers.items()}


def check_ranks(asked: argparse.Namespace) -> tuple[dict[str, Any], bool]:
    """The p-values of uniform ranks, by prior and number."""
    told: dict[str, Any] = {"data_sets": asked.data_sets, "seed": asked.seed, "samples": KEPT, "thinned": THINNED}
    for kind in ("constant", f"skygrid({GRID[0]},{GRID[1]})", f"birth-death({SHARE})"):
        with ProcessPoolExecutor(asked.workers) as pool:
            seeds = range(asked.seed, asked.seed + asked.data_sets)
            ranks = list(pool.map(rank_once, [kind] * len(seeds), seeds))
        told[kind] = {}
        for name in ranks[0]:
            counts = np.histogram([own[name] for own in ranks], BINS, (0, KEPT + 1))[0]
            p = float(stats.chisquare(counts).pvalue)
            mean = counts @ np.arange(BINS) / counts.sum() - (BINS - 1) / 2
            z = float(mean / math.sqrt((BINS**2 - 1) / 12 / counts.sum()))  # which correlated samples leave as it is
            told[kind][name] = {"p": p, "z": z, "counts": counts.tolist()}
            print(f"{kind:18} {name:20} p {p:.3f} z {z:5.2f}  {' '.join(map(str, counts))}", flush=True)
    values = [own["p"] for kind in told.values() if isinstance(kind, dict) for own in kind.values()]
    return told, min(values) < LEAST_P / len(values)


def check_speed(asked: argparse.Namespace) -> tuple[dict[str, Any], bool]:
    """Effective sizes per second of processor time."""
    told: dict[str, Any] = {"alignment": asked.alignment, "generations": asked.generations, "seed": asked.seed}
    options = plltool.SampleOptions(asked.generations, 1, asked.chains, sample_every=10, burnin=0.25)
    make = runs.make_time_moves
    for kind, keeps in (("all moves", True), ("without trajectories", False)):
        runs.make_time_moves = lambda space, n_sites, keeps=keeps: [
            move for move in make(space, n_sites) if keeps or not isinstance(move, HamiltonianStep)
        ]
        began = time.process_time()
        found = plltool.sample(
            asked.alignment, asked.model, options=options, clock=asked.clock, dates=asked.dates, start="parsimony",
            tree_prior=asked.tree_prior, seed=asked.seed, workers=1, threads=1,
        )  # fmt: skip
        seconds = time.process_time() - began
        sizes = {name: own.size for name, own in found.posterior.numbers.items() if math.isfinite(own.size)}
        least = min(sizes, key=sizes.__getitem__)
        told[kind] = {"seconds": seconds, "sizes": sizes, "acceptance": found.acceptance}
        print(
            f"{kind}: {seconds:.0f} s, smallest ESS {sizes[least]:.0f} ({least}), {sizes[least] / seconds:.2f} a second"
        )
        print(f"   median {np.median(list(sizes.values())) / seconds:.2f}, rate {sizes['clockRate'] / seconds:.2f},"
              f" root {sizes['treeHeight'] / seconds:.2f} a second")  # fmt: skip
    return told, False


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    ranks = commands.add_parser("ranks")
    ranks.add_argument("--data-sets", type=int, default=200)
    ranks.add_argument("--workers", type=int, default=1)
    speed = commands.add_parser("speed")
    speed.add_argument("alignment")
    speed.add_argument("dates")
    speed.add_argument("--model", default="HKY+FO")
    speed.add_argument("--clock", default="relaxed")
    speed.add_argument("--tree-prior", default="constant")
    speed.add_argument("--chains", type=int, default=1)
    speed.add_argument("--generations", type=int, default=20_000)
    for own in (ranks, speed):
        own.add_argument("--seed", type=int, default=1)
        own.add_argument("--output", type=Path)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.getLogger("plltool").setLevel(logging.ERROR)
    told, is_bad = (check_ranks if asked.command == "ranks" else check_speed)(asked)
    if asked.output:
        asked.output.write_text(json.dumps(told, indent=1) + "\n")
    return int(is_bad)


if __name__ == "__main__":
    sys.exit(main())
