#!/usr/bin/env python3
"""Compare the topologies that `plltool sample` has found with their exact probabilities, which need no chain.

    scripts/benchmarks/exact_topologies.py DS2.fasta ds2.run1.t ds2.run2.t --references DS2.run1.trprobs.gz

The model is JC, branch lengths have the prior Exp(10) and all topologies the same, as in the references of
`compare_mrbayes.py`. The marginal likelihood of a topology is found by importance sampling: the mean of likelihood
times prior over the density of what is drawn. Branch lengths have about gamma distributions, and cube roots of those
are nearly normal (Wilson & Hilferty 1931), so cube roots are drawn, from a multivariate t distribution with the means
and covariances of the samples. If the chains were wrong, fewer draws would count, and the mean would stay the same.

The topologies are those sampled most often, and probabilities are those among them. Standard errors of what chains
have sampled are from batches. ASDSF is that of the splits of these topologies.
"""

import argparse
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from compare_mrbayes import read_topologies
from rivals import save
from scipy.special import gammaln, logsumexp

import plltool
from plltool.analyses.sampling.samples import split_deviation
from plltool.constants import DEFAULT_BURNIN
from plltool.io.tree_files import read_tree_set, write_splits
from plltool.tree.splits import branch_splits, everyone

RATE = 10.0  # of the prior of a branch length
FREEDOM = 80.0  # degrees of freedom of the t distribution
BATCHES = 50

Topology = frozenset[int]  # of the splits of the internal branches


def draw_marginal(held: plltool.Likelihood, samples: np.ndarray, n: int, seed: int) -> tuple[float, float]:
    """The logarithm of the marginal likelihood of a topology, and the share of `n` draws that count.

    `samples` (n_samples, n_edges) are branch lengths of the topology.
    """
    roots, n_edges, rng = np.cbrt(samples), samples.shape[1], np.random.default_rng(seed)
    mean, factor = roots.mean(axis=0), np.linalg.cholesky(np.cov(roots.T))
    constant = gammaln((FREEDOM + n_edges) / 2) - gammaln(FREEDOM / 2) - n_edges / 2 * np.log(FREEDOM * np.pi)
    constant -= np.log(np.diag(factor)).sum()
    weights = np.full(n, -np.inf)
    for k in range(n):
        deviates = rng.standard_normal(n_edges) * np.sqrt(FREEDOM / rng.chisquare(FREEDOM))
        drawn = mean + factor @ deviates
        if drawn.min() > 0.0:
            lengths = drawn**3
            density = constant - (FREEDOM + n_edges) / 2 * np.log1p(deviates @ deviates / FREEDOM)
            density -= np.log(3.0 * drawn**2).sum()  # of the lengths, not of their cube roots
            prior = n_edges * np.log(RATE) - RATE * lengths.sum()
            weights[k] = held.log_density(np.log(lengths), model=False) + prior - density
    whole = logsumexp(weights)
    return whole - np.log(n), np.exp(2.0 * whole - logsumexp(2.0 * weights)) / n


def split_shares(topologies: list[Topology], shares: np.ndarray) -> dict[int, float]:
    """The shares of splits, from those of topologies."""
    found: Counter[int] = Counter()
    for topology, share in zip(topologies, shares.tolist(), strict=True):
        found.update(dict.fromkeys(topology, share))
    return dict(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("alignment", type=Path)
    parser.add_argument("trees", type=Path, nargs="+", help="sampled trees of each run")
    parser.add_argument("--references", type=Path, nargs="*", default=[], help="tables of topologies (.trprobs.gz)")
    parser.add_argument("--topologies", type=int, default=6, help="how many; default 6")
    parser.add_argument("--draws", type=int, default=100_000, help="for each topology; default 100000")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, help="write the figures as JSON")
    options = parser.parse_args()

    trees = read_tree_set(options.trees, burnin=DEFAULT_BURNIN)
    names = trees.names
    members, kinds = np.unique(trees.members.reshape(trees.n_trees, -1), axis=0, return_inverse=True)
    often = np.argsort(-np.bincount(kinds))[: options.topologies]
    topologies = [frozenset(trees.splits[k] for k in members[kind].tolist()) for kind in often.tolist()]
    batches = np.array_split(kinds == often[:, None], BATCHES, axis=1)
    counts = np.array([batch.sum(axis=1) for batch in batches])  # [batch][topology]
    sampled = counts.sum(axis=0) / counts.sum()
    of_batches = counts / counts.sum(axis=1, keepdims=True)
    sampled_error = of_batches.std(axis=0, ddof=1) / np.sqrt(BATCHES)

    tips = {1 << taxon: taxon for taxon in range(1, len(names))} | {everyone(len(names)) - 1: 0}
    marginals, counting = np.empty(len(often)), np.empty(len(often))
    for k, kind in enumerate(often.tolist()):
        inner_splits = [trees.splits[split] for split in members[kind].tolist()]
        no_lengths = [np.nan] * len(names)
        newick = write_splits(names, inner_splits, no_lengths[3:], [""] * len(inner_splits), no_lengths)
        held = plltool.Likelihood(options.alignment, newick, "JC", threads=1)
        own, places = kinds == kind, {split: place for place, split in enumerate(inner_splits)}
        inner, pendant = trees.lengths.reshape(trees.n_trees, -1)[own], trees.pendants[own]
        splits = branch_splits(held.tree, names)
        columns = [pendant[:, tips[split]] if split in tips else inner[:, places[split]] for split in splits]
        marginals[k], counting[k] = draw_marginal(held, np.column_stack(columns), options.draws, options.seed + k)
    exact = np.exp(marginals - logsumexp(marginals))
    relative = np.sqrt((1.0 / counting - 1.0) / options.draws)  # the standard error of a marginal likelihood
    exact_error = exact * np.sqrt((1.0 - 2.0 * exact) * relative**2 + (exact**2 * relative**2).sum())

    print(f"{len(often)} topologies, {100 * (counts.sum() / trees.n_trees):.2f} % of {trees.n_trees} sampled trees")
    print("log marginal likelihood  exact (error)     sampled (error)   difference in errors")
    differences = (sampled - exact) / np.hypot(sampled_error, exact_error)
    for row in zip(marginals, exact, exact_error, sampled, sampled_error, differences, strict=True):
        print("{:23.4f}  {:.5f} ({:.5f})  {:.5f} ({:.5f})  {:+.1f}".format(*row))

    def show(name: str, shares: np.ndarray) -> float:
        deviation = split_deviation([split_shares(topologies, exact), split_shares(topologies, shares)])
        print(f"{name}: ASDSF to the exact ones {deviation:.6f}, shares", " ".join(f"{share:.5f}" for share in shares))
        return deviation

    figures: dict[str, Any] = {
        "alignment": options.alignment.name,
        "draws": options.draws,
        "log_marginal_likelihood": marginals.tolist(),
        "share_of_draws_that_count": counting.tolist(),
        "exact": exact.tolist(),
        "exact_error": exact_error.tolist(),
        "sampled": sampled.tolist(),
        "sampled_error": sampled_error.tolist(),
        "asdsf_of_sampled": show("sampled", sampled),
        "references": [],
        "asdsf_of_references": [],
    }
    for path in options.references:
        table, weights = read_topologies(path, names)
        rows = [frozenset(table.splits[k] for k in table.of_tree(row).tolist()) for row in range(table.n_trees)]
        found = weights[[rows.index(topology) for topology in topologies]]
        figures["references"].append((found / found.sum()).tolist())
        figures["asdsf_of_references"].append(show(path.name, found / found.sum()))
    save(options.output, figures)


if __name__ == "__main__":
    main()
