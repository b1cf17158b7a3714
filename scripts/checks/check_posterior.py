#!/usr/bin/env python3
"""Compare how often topologies are sampled with their exact posterior probabilities: six taxa, 105 topologies.

    scripts/checks/check_posterior.py --generations 36000 --output results.json
    scripts/checks/check_posterior.py --moves InformedRegraft,NodeSlider,BranchMultiplier

The model is Jukes and Cantor's, lengths have the prior exponential(10), and the eight columns contradict each other, so
that many topologies are possible. The marginal likelihood of each is the mean over lengths drawn from the prior, by
Felsenstein's recursion in a few lines of numpy. Runs of one chain begin at draws from the prior; a tenth of each is
burn-in. Standard errors are those of the draws and of the differences between runs. The exit status is 1 if the mean
of the squared differences over squared standard errors, of topologies with a probability above 0.004, is above 2.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from plltool.alignment.alignment import Sequences
from plltool.alignment.patterns import compress, encode
from plltool.alignment.states import DNA
from plltool.analyses.sampling.chains import Chains, Heated
from plltool.analyses.sampling.likelihoods import EngineLikelihoods
from plltool.analyses.sampling.priors import Exponential
from plltool.analyses.sampling.runs import make_moves
from plltool.analyses.sampling.state import State, StateSpace, sampling_slots
from plltool.analyses.sampling.tree import from_tree
from plltool.engine.storage import Slots
from plltool.hardware import Hardware
from plltool.model.model import Model
from plltool.model.model_string import parse_model
from plltool.run.engines import open_engine
from plltool.tree.moves import random_tree

ROWS = ["ACGTAACA", "ACGTACCA", "ACTTAGCC", "ATTTCGCA", "GTTTCACC", "GTGTCATA"]
PRIOR = Exponential(10.0)
LEAST_SHARE = 0.004  # of a topology whose difference counts; rarer ones are seen too seldom in a run
MOST_DEVIATION = 2.0
BATCH = 20_000  # draws at once

Nested: TypeAlias = "int | tuple[Nested, Nested]"  # what hangs from taxon 0
Splits: TypeAlias = frozenset[int]


def all_trees(n_taxa: int) -> list[Nested]:
    """All topologies, as pairs that hang from taxon 0."""
    trees: list[Nested] = [(1, 2)]
    for taxon in range(3, n_taxa):
        trees = [grown for tree in trees for grown in insert(tree, taxon)]
    return trees


def insert(tree: Nested, taxon: int) -> Iterator[Nested]:
    """The trees with one taxon more."""
    yield tree, taxon
    if isinstance(tree, tuple):
        yield from ((grown, tree[1]) for grown in insert(tree[0], taxon))
        yield from ((tree[0], grown) for grown in insert(tree[1], taxon))


def splits_of(tree: Nested) -> Splits:
    """The sets of taxa below inner branches, as bits."""
    found = set()

    def walk(node: Nested) -> int:
        if not isinstance(node, tuple):
            return 1 << node
        below = walk(node[0]) | walk(node[1])
        found.add(below)
        return below

    top = walk(tree)
    return frozenset(found - {top})


def draw_likelihoods(tree: Nested, n: int, rng: np.random.Generator) -> np.ndarray:
    """(n,) likelihoods of a topology with lengths from the prior."""
    tips = [np.eye(4)[["ACGT".index(letter) for letter in row]][None] for row in ROWS]
    lengths = iter(rng.exponential(1.0 / PRIOR.rate, (2 * len(ROWS) - 3, n)))

    def pass_branch(below: np.ndarray) -> np.ndarray:
        kept = np.exp(-4.0 / 3.0 * next(lengths))[:, None, None]
        return kept * below + (1.0 - kept) * below.mean(axis=2, keepdims=True)

    def partials(node: Nested) -> np.ndarray:
        if not isinstance(node, tuple):
            return tips[node]
        return pass_branch(partials(node[0])) * pass_branch(partials(node[1]))

    sites = (pass_branch(partials(tree)) * tips[0]).sum(axis=2) / 4.0
    return np.asarray(sites.prod(axis=1))


def integrate(draws: int, rng: np.random.Generator) -> dict[Splits, tuple[float, float]]:
    """The posterior probability of each topology, and its standard error."""
    means, errors = {}, {}
    for tree in all_trees(len(ROWS)):
        sums = np.zeros(2)
        for _ in range(draws // BATCH):
            values = draw_likelihoods(tree, BATCH, rng)
            sums += values.sum(), (values**2).sum()
        mean, square = sums / draws
        means[splits_of(tree)] = mean
        errors[splits_of(tree)] = ((square - mean**2) / draws) ** 0.5
    whole = sum(means.values())
    return {key: (mean / whole, errors[key] / whole) for key, mean in means.items()}


def splits_of_state(state: State) -> Splits:
    topology = state.topology
    splits = topology.splits()
    return frozenset(splits[node] for node in range(topology.n_taxa, topology.n_nodes) if node != topology.top)


def sample(
    names: list[str], runs: int, generations: int, seed: int
) -> tuple[list[dict[Splits, float]], dict[str, Any]]:
    """The share of each topology in each run, and of each move that was accepted; all moves if none are named."""
    taxa, rng = tuple(f"t{k}" for k in range(len(ROWS))), np.random.default_rng(seed)
    rows = Sequences(taxa, tuple(row.encode() for row in ROWS), "columns", DNA)
    part = compress(encode(rows, DNA, np.arange(rows.n_sites)))
    space = StateSpace(taxa, (Model(parse_model("JC")),), (), PRIOR)
    moves = [move for move in make_moves(space, [part]) if not names or type(move).__name__ in names]
    topologies = [from_tree(random_tree(taxa, rng))[0] for _ in range(runs)]
    draws = rng.exponential(1.0 / PRIOR.rate, (runs, 2 * len(taxa) - 3)).tolist()
    states = [space.start(topology, [0.0, *own]) for topology, own in zip(topologies, draws, strict=True)]
    counts: list[dict[Splits, int]] = [{} for _ in range(runs)]
    slots = Slots(sampling_slots(len(taxa), runs))
    with open_engine([part], space.models, slots, Hardware.of(threads=1))[0] as engine:
        likelihoods = EngineLikelihoods(space, engine, runs)  # type: ignore[arg-type]  # JC has no categories
        chains = Chains(
            [moves] * runs, likelihoods, states, Heated(0.0, 1), rng, [rng] * runs, tuning=generations // 10
        )
        for _ in range(generations):
            chains.advance()
            for run, found in enumerate(counts if chains.generation >= generations // 10 else []):
                key = splits_of_state(chains.cold(run))
                found[key] = found.get(key, 0) + 1
    accepted = sum(own.accepted.sum(axis=1) for own in chains.runs)
    rates = accepted / np.maximum(1, sum(own.tried.sum(axis=1) for own in chains.runs))
    shares = [{key: n / sum(found.values()) for key, n in found.items()} for found in counts]
    return shares, {move.name: round(float(rate), 3) for move, rate in zip(moves, rates, strict=True)}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--generations", type=int, default=6000)
    parser.add_argument("--runs", type=int, default=24)
    parser.add_argument("--draws", type=int, default=400_000, help="of lengths, for each topology")
    parser.add_argument("--moves", default="", help="classes of moves, A,B; all by default")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path)
    asked = parser.parse_args()
    exact = integrate(asked.draws, np.random.default_rng(asked.seed))
    began = time.process_time()
    shares, accepted = sample([own for own in asked.moves.split(",") if own], asked.runs, asked.generations, asked.seed)
    seconds = time.process_time() - began
    common = sorted((key for key, (p, _) in exact.items() if p > LEAST_SHARE), key=lambda key: -exact[key][0])
    if not common:
        sys.exit(f"found no topology with more than {LEAST_SHARE:g} of the probability; more --draws find them")
    rows = np.array([[own.get(key, 0.0) for key in common] for own in shares])
    found, error = rows.mean(axis=0), rows.std(axis=0, ddof=1) / len(rows) ** 0.5
    p, p_error = np.array([exact[key] for key in common]).T
    apart = (found - p) / np.hypot(error, p_error)
    deviation = float((apart**2).mean())
    print(f"{len(shares)} runs of {asked.generations} generations, {seconds:.0f} s; {len(common)} topologies")
    for row in zip(p, found, apart, strict=True):
        print("exact {:.4f}  sampled {:.4f}  {:5.2f} errors apart".format(*row))
    print(f"mean square of errors apart: {deviation:.2f}; largest difference {np.abs(found - p).max():.4f}")
    print("accepted:", accepted)
    if asked.output:
        told = {
            "moves": asked.moves or "all", "runs": asked.runs, "generations": asked.generations, "draws": asked.draws,
            "seed": asked.seed, "exact": p.tolist(), "exact_error": p_error.tolist(), "sampled": found.tolist(),
            "errors_apart": apart.tolist(), "mean_square": deviation, "accepted": accepted,
        }  # fmt: skip
        asked.output.write_text(json.dumps(told, indent=1) + "\n")
    return int(deviation > MOST_DEVIATION)


if __name__ == "__main__":
    sys.exit(main())
