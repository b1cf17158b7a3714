"""Whether runs of chains agree, and how many independent draws they are worth.

Vehtari, Gelman, Simpson, Carpenter & Bürkner 2021, Rank-normalization, folding, and localization: an improved R-hat,
Bayesian Analysis 16:667. Values are (n_runs, n_samples): each run is halved, and values are replaced by normal scores
of their ranks among all.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from plltool.arrays import FloatArray

FEWEST_SAMPLES = 8  # of a run; with fewer nothing can be said
COMMON_SHARE = 0.1  # of the trees of a run, from which on a split counts for ASDSF, as in MrBayes


def effective_size(values: FloatArray) -> float:
    """The bulk effective sample size (section 3.2, with Geyer's initial monotone sequence); NaN if it is unknown."""
    halves = _halves(values)
    if halves is None:
        return float("nan")
    scores = _normal_scores(halves)
    n_runs, n = scores.shape
    covariances = np.array([_autocovariances(row) for row in scores])
    within = covariances[:, 0].mean() * n / (n - 1)
    total = within * (n - 1) / n + (np.var(scores.mean(axis=1), ddof=1) if n_runs > 1 else 0.0)
    correlations = 1.0 - (within - covariances.mean(axis=0) * n / (n - 1)) / total
    correlations[0] = 1.0
    pairs = correlations[: n // 2 * 2].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs < 0)
    pairs = np.minimum.accumulate(pairs[: negative[0] if len(negative) else None])
    time = max(2.0 * pairs.sum() - 1.0, 1.0 / np.log10(n_runs * n))
    return float(n_runs * n / time)


def r_hat(values: FloatArray) -> float:
    """The larger one of rank-normalised split R-hat and of that of folded values (section 3.1); NaN if unknown."""
    halves = _halves(values)
    if halves is None:
        return float("nan")
    return max(_plain_r_hat(_normal_scores(x)) for x in (halves, np.abs(halves - np.median(halves))))


def split_deviation(shares: Sequence[dict[int, float]]) -> float:
    """The average standard deviation of split frequencies (Lakner et al. 2008), from the shares of splits by run.

    Splits count that one of the runs has in COMMON_SHARE of its trees; NaN if there are none, or one run only.
    """
    if len(shares) < 2:
        return float("nan")
    splits = {split for own in shares for split, share in own.items() if share >= COMMON_SHARE}
    table = [[own.get(split, 0.0) for own in shares] for split in splits]
    return float(np.std(table, axis=1, ddof=1).mean()) if table else float("nan")


def _halves(values: FloatArray) -> FloatArray | None:
    """(2 n_runs, n_samples // 2); None if there are too few values, or all are equal."""
    n = values.shape[1] // 2
    if values.shape[1] < FEWEST_SAMPLES or np.ptp(values) == 0:
        return None
    return np.concatenate([values[:, :n], values[:, -n:]])


def _normal_scores(values: FloatArray) -> FloatArray:
    """Normal quantiles of (rank - 3/8) / (number + 1/4); equal values share the mean of their ranks."""
    _, number, counts = np.unique(values.ravel(), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks = (last - (counts - 1) / 2)[number]
    inverse = NormalDist().inv_cdf
    scores = {rank: inverse((rank - 0.375) / (values.size + 0.25)) for rank in set(ranks.tolist())}
    return np.array([scores[rank] for rank in ranks.tolist()]).reshape(values.shape)


def _plain_r_hat(scores: FloatArray) -> float:
    """sqrt((between + within (n - 1) / n) / within)"""
    n = scores.shape[1]
    within = scores.var(axis=1, ddof=1).mean()
    if within == 0:
        return float("inf")
    return float(np.sqrt((n - 1) / n + scores.mean(axis=1).var(ddof=1) / within))


def _autocovariances(values: FloatArray) -> FloatArray:
    """(n,) at each lag, divided by n."""
    n = len(values)
    transform = np.fft.rfft(values - values.mean(), 2 * n)
    return np.asarray(np.fft.irfft(transform * transform.conj())[:n] / n)
