"""What the record of samples has besides their summaries, so that a report can draw them, in bounded numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from plltool.analyses.sampling.convergence import COMMON_SHARE, FEWEST_SAMPLES
from plltool.analyses.sampling.posterior import Posterior, Summary
from plltool.analyses.sampling.samples import COLUMNS, Samples
from plltool.tree.splits import smaller_side

MOST_TRACED = 12  # numbers whose traces are kept: those of MrBayes' first columns, then those with the least sizes
MOST_POINTS = 200  # of a trace, for each run
MOST_LOOKS = 25  # at ASDSF
MOST_CREDIBLE = 20  # topologies
DIGITS = 7  # of a value in a trace


def describe_posterior(found: Posterior) -> dict[str, Any]:
    """The summaries, without values that are unknown."""
    numbers = {
        name: {key: value for key, value in own._asdict().items() if np.isfinite(value)}
        for name, own in found.numbers.items()
    }
    return {
        "samples": found.n_samples,
        "numbers": numbers,
        "asdsf": found.deviation if np.isfinite(found.deviation) else None,
        "consensus": found.consensus,
        "mcc": found.mcc,
        "credible_topologies": len(found.credible),
        "credible": [
            {"probability": own.probability, "cumulative": own.cumulative} for own in found.credible[:MOST_CREDIBLE]
        ],
    }


def describe_trace(samples: Samples, numbers: dict[str, Summary]) -> dict[str, Any]:
    """Some numbers of some samples of all runs, the burn-in included: evenly spaced ones, and the last one."""
    chosen = sorted({*range(0, len(samples), -(-len(samples) // MOST_POINTS)), len(samples) - 1})
    values, wanted = samples.numbers()[:, chosen], choose_numbers(numbers)
    traced = {
        name: [[float(f"{value:.{DIGITS}g}") for value in row] for row in values[:, :, k].tolist()]
        for k, name in enumerate(samples.columns)
        if name in wanted
    }
    return {"generations": [samples.generations[number] for number in chosen], "numbers": traced}


def choose_numbers(numbers: dict[str, Summary]) -> set[str]:
    """The names of the numbers to trace: of those that are not always there, the ones with the least sizes."""
    others = sorted(
        numbers.keys() - set(COLUMNS), key=lambda name: (np.nan_to_num(numbers[name].size, nan=np.inf), name)
    )
    return {*COLUMNS, *others[: MOST_TRACED - len(COLUMNS)]}


def describe_deviations(samples: Samples, tuning: int, burnin: float) -> list[dict[str, Any]]:
    """ASDSF after some of the generations, each without a burn-in of its own; nothing for one run.

    Nothing is said until a run has FEWEST_SAMPLES after its burn-in, nor where no split counts.
    """
    if samples.n_runs < 2:
        return []
    ends = dict.fromkeys(np.linspace(1, len(samples), min(MOST_LOOKS, len(samples))).round().astype(int).tolist())
    firsts = {end: samples.first_after(tuning, burnin, end) for end in ends}
    found = {end: samples.deviation(first, end) for end, first in firsts.items() if end - first >= FEWEST_SAMPLES}
    return [
        {"generation": samples.generations[end - 1], "asdsf": deviation}
        for end, deviation in found.items()
        if math.isfinite(deviation)
    ]


def describe_splits(samples: Samples, names: Sequence[str], first: int) -> list[dict[str, Any]]:
    """The splits that count for ASDSF, with the share of the trees of each run that have them; the commonest first."""
    shares = [samples.split_shares(run, first) for run in range(samples.n_runs)]
    common = {split for own in shares for split, share in own.items() if share >= COMMON_SHARE}
    table = {split: [own.get(split, 0.0) for own in shares] for split in common}
    order = sorted(common, key=lambda split: (-sum(table[split]), split))
    return [{"taxa": smaller_side(split, names), "shares": table[split]} for split in order]
