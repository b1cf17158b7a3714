"""`marginal_likelihood` computes the probability of an alignment under a model and its priors, by stepping stones.

Chain k of K + 1 samples the density proportional to prior * likelihood^b_k, from the posterior, b_0 = 1, to the prior,
b_K = 0, where b_k = ((K - k) / K)^(1 / SHAPE) (Xie et al. 2011). With Z_k for the integral of this product, Z_0 is the
marginal likelihood, Z_K = 1, and Z_{k-1} / Z_k is the mean of likelihood^(b_{k-1} - b_k) over chain k. So the logarithm
of the marginal likelihood is the sum of the logarithms of K means. All chains of all runs advance together, and
neighbours exchange their states, see `plltool.analyses.sampling.chains`.

The standard error is that of the sum over k of mean_batch / mean - 1, to first order the error of the logarithm, over
batches of successive samples; so it has the correlation of samples and that of neighbouring chains.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any, NamedTuple, Unpack

import numpy as np

from plltool.analyses.sampling.analysis import prepare
from plltool.analyses.sampling.chains import Chains, RunState
from plltool.analyses.sampling.result import OF_RUN, TYPES, ChainsResult, swap_rates
from plltool.analyses.sampling.settings import Priors, SampleOptions, StoneOptions
from plltool.arrays import FloatArray
from plltool.codec import saved
from plltool.constants import DEFAULT_SEED, LINKED, SAMPLE_STAGE
from plltool.engine.requests import work_of
from plltool.errors import InputError
from plltool.hardware import Hardware, HardwareSettings
from plltool.io.checkpoint import Checkpoint
from plltool.progress import Listener, Progress, StopSearch, announce, ignore
from plltool.reports.blocks import Row
from plltool.run.inputs import AlignmentLike, ModelLike, TreeLike
from plltool.run.messages import remarks_on_data
from plltool.schema import Keys
from plltool.settings import takes_keywords

SHAPE = 0.3  # of the beta distribution whose quantiles the powers are
BATCHES = 20  # of the samples of a run
FEWEST_SWAPS = 0.1  # share of exchanges between neighbours below which steps are too far apart
MOST_ERRORS = 4.0  # standard errors of their difference by which two runs may differ
REPORT_SECONDS = 1.0
STATE_NAME = "stones"


def powers_of(n_steps: int) -> FloatArray:
    """The powers of the likelihood of n_steps + 1 chains, from 1 to 0."""
    return (np.arange(n_steps, -1, -1) / n_steps) ** (1.0 / SHAPE)


class Estimate(NamedTuple):
    """The logarithm of a marginal likelihood, its standard error, and what each step adds to it, (K,)."""

    value: float
    error: float
    steps: FloatArray


def estimate(lnls: FloatArray, powers: FloatArray) -> Estimate:
    """The estimate from samples of lnL, (n_runs, n_samples, K + 1), at least one for each batch."""
    logs = lnls[:, :, 1:] * (powers[:-1] - powers[1:])
    top = logs.max(axis=(0, 1))
    shares = np.exp(logs - top)
    means = shares.mean(axis=(0, 1))
    deviations = [(batch.mean(axis=0) / means - 1.0).sum() for own in shares for batch in np.array_split(own, BATCHES)]
    steps = top + np.log(means)
    return Estimate(float(steps.sum()), float(np.std(deviations, ddof=1)) / math.sqrt(len(deviations)), steps)


@saved()
@dataclass(frozen=True, eq=False)
class StonesReached:
    """What a checkpoint keeps: lnL of all samples, (n_samples, n_runs, K + 1), and the runs."""

    lnls: FloatArray
    runs: Sequence[RunState]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MarginalLikelihood(ChainsResult):
    """The marginal likelihood of a model; see `ChainsResult` for more attributes.

    The columns of its table are power, mean lnL, and what the step from the next lower power adds.

    Attributes
    ----------
    log_marginal_likelihood : natural logarithm of the probability of the alignment under model and priors
    error : its standard error
    runs : (n_runs,) the same from each run alone, with its standard error
    powers : (K + 1,) of the likelihood, from 1 to 0
    mean_lnls : (K + 1,) the mean lnL at each power
    steps : (K,) what each step adds, that from the posterior first
    n_samples : samples of each run behind the burn-in
    priors, options : as they were used
    """

    log_marginal_likelihood: float
    error: float
    runs: tuple[tuple[float, float], ...]
    powers: tuple[float, ...]
    mean_lnls: tuple[float, ...]
    steps: tuple[float, ...]
    n_samples: int
    priors: dict[str, str]
    options: StoneOptions

    def __repr__(self) -> str:
        return f"<MarginalLikelihood: {self.log_marginal_likelihood:.2f}, standard error {self.error:.2f}>"

    def _rows(self) -> Sequence[Row]:
        rows = zip(self.powers, self.mean_lnls, (*self.steps, 0.0), strict=True)
        return [{"power": power, "mean_lnl": lnl, "added": own} for power, lnl, own in rows]

    @Keys(
        "log_marginal_likelihood error runs powers mean_lnls steps swaps generations n_samples n_taxa n_sites"
        f" n_patterns priors options seed {OF_RUN}",
        **TYPES,
    )
    def as_record(self, command: str | None = None) -> dict[str, Any]:
        """All as strings, numbers, lists and dictionaries."""
        return {}

    def texts(self, command: str | None = None) -> dict[str, str]:
        """The files that `plltool marginal-likelihood` writes, by the ends of their names."""
        rows = ["\t".join(map(str, row.values())) for row in self._rows()]
        return {
            "marginal.tsv": "\n".join(["power\tmean_lnl\tadded", *rows]) + "\n",
            "marginal.json": self.to_json(command) + "\n",
        }

    def describe(self) -> list[str]:
        """Lines for people."""
        found = f"log marginal likelihood: {self.log_marginal_likelihood:.3f} (standard error {self.error:.3f})"
        alone = ", ".join(f"{value:.3f} ({error:.3f})" for value, error in self.runs)
        lines = [*super().describe(), found, f"of each run: {alone}"]
        swaps = [rate for rate in self.swaps if rate is not None]
        lines += [f"exchanges of neighbouring steps accepted: {min(swaps):.2f} to {max(swaps):.2f}"] if swaps else []
        return lines


@takes_keywords(HardwareSettings)
def marginal_likelihood(
    alignment: AlignmentLike,
    model: ModelLike | None = None,
    *,
    options: StoneOptions | None = None,
    priors: Priors | None = None,
    start: TreeLike | None = None,
    seed: int = DEFAULT_SEED,
    brlen: str = LINKED,
    listener: Listener = ignore,
    checkpoint: str | PathLike[str] | None = None,
    **hardware: Unpack[HardwareSettings],
) -> MarginalLikelihood:
    """The marginal likelihood of a model: the probability of the alignment, over all trees and parameters.

    The difference of two models' logarithms is that of the Bayes factor between them. See the head of this module for
    the method; parameters and errors are those of `plltool.sample` unless said here.

    Parameters
    ----------
    options : numbers of generations, steps and runs
    start : what each chain begins with
    brlen : whether parts share the branch lengths, scale them or have their own, as for `plltool.sample`
    listener : if it raises StopSearch, the samples so far are the result, if there are enough
    checkpoint : folder that keeps what is reached; the same call continues from there and ends with the same bits

    Raises InputError also if there are too few samples behind the burn-in.
    """
    began, asked = time.perf_counter(), Hardware.of(**hardware)
    options, priors = options or StoneOptions(), (priors or Priors()).canonical()
    options.check()
    powers = powers_of(options.steps)
    how = SampleOptions(options.generations, options.runs, options.steps + 1, 0.0, options.sample_every, options.burnin)
    more: dict[str, Any] = {"powers": tuple(powers.tolist()), "seed": seed, "brlen": brlen, "checkpoint": checkpoint}
    given = prepare(alignment, model, priors, start, asked, began, how, **more)
    run, setup = given.run, given.setup
    _count_burnin(options, setup.tuning, options.generations // options.sample_every)

    def attempt(hardware: Hardware) -> tuple[Chains, list[FloatArray], bool, dict[str, Any]]:
        use, likelihoods, engine = setup.open(options.runs, hardware)
        assert engine is not None, "there are data"
        with engine:
            run.engine_opened(use, use.reason, hardware)
            chains = setup.begin(likelihoods, range(options.runs))
            with run.open_checkpoint(given.identity | run.place(use.device_name, use.layout)) or nullcontext() as store:
                sampled, interrupted = _advance(chains, options, listener, store, began)
            return chains, sampled, interrupted, given.describe(use, work_of(engine))

    chains, sampled, interrupted, known = run.ask(attempt)
    kept = "" if checkpoint is None else f" and kept in {fspath(checkpoint)}"
    reached = f"interrupted at generation {chains.generation}{kept}" if interrupted else "generations"
    first = _count_burnin(options, setup.tuning, len(sampled), reached)
    lnls = np.array(sampled[first:]).swapaxes(0, 1)
    whole, alone = estimate(lnls, powers), [estimate(own[None], powers) for own in lnls]
    swaps, remarks = swap_rates(chains.runs), [*remarks_on_data(run.data, run.task.models, brlen)]
    if interrupted:
        remarks.append("the run was interrupted: the results are from the samples taken so far")
    low, high = (choose(alone, key=lambda own: own.value) for choose in (min, max))
    if high.value - low.value > MOST_ERRORS * math.hypot(low.error, high.error):
        differ = f"{high.value - low.value:.2f}, more than their standard errors allow"
        remarks.append(f"the runs differ by {differ}: use more generations")
    if any(rate is not None and rate < FEWEST_SWAPS for rate in swaps):
        remarks.append(f"fewer than {FEWEST_SWAPS:.0%} of the exchanges of some steps were accepted: use more steps")
    return MarginalLikelihood(
        log_marginal_likelihood=whole.value,
        error=whole.error,
        runs=tuple((own.value, own.error) for own in alone),
        powers=tuple(powers.tolist()),
        mean_lnls=tuple(lnls.mean(axis=(0, 1)).tolist()),
        steps=tuple(whole.steps.tolist()),
        swaps=swaps,
        generations=chains.generation,
        n_samples=lnls.shape[1],
        **known,
        priors=given.priors,
        options=options,
        seconds=run.seconds,
        warnings=run.warn(remarks),
        interrupted=interrupted,
    )


def _count_burnin(options: StoneOptions, tuning: int, n_samples: int, where: str = "generations") -> int:
    """The number of samples that are left out; InputError if too few are left, which says `where`."""
    first = max(math.ceil(options.burnin * n_samples), tuning // options.sample_every)
    if n_samples - first < BATCHES:
        found = f"found {max(0, n_samples - first)} samples of each run behind the burn-in"
        raise InputError(f"{where}: {found}, expected at least {BATCHES}")
    return first


def _advance(
    chains: Chains, options: StoneOptions, listener: Listener, store: Checkpoint | None, began: float
) -> tuple[list[FloatArray], bool]:
    """Let chains advance, from where a checkpoint has them if there is one.

    Returns lnL of all samples, each (n_runs, K + 1), and whether the listener ended it.
    """
    found = None if store is None else store.load(STATE_NAME, StonesReached)
    lnls = [] if found is None else list(found.lnls)
    if found is not None:
        chains.restore(found.runs)

    def save() -> None:
        if store is not None:
            runs = [chains.save(run) for run in range(options.runs)]
            store.save(STATE_NAME, StonesReached(np.array(lnls), runs))

    announce(SAMPLE_STAGE)
    here = reported = time.perf_counter()
    n_wanted, n_before = options.generations // options.sample_every, len(lnls)
    try:
        while len(lnls) < n_wanted:
            for _ in range(options.sample_every):
                chains.advance()
            states = [chains.by_heat(run) for run in range(options.runs)]
            lnls.append(np.array([[state.lnl for state in own] for own in states]))
            n, now = len(lnls), time.perf_counter()
            if now - reported >= REPORT_SECONDS or n == n_wanted:
                save()
                left = (now - here) / (n - n_before) * (n_wanted - n)
                times = now - began, options.generations, left, left
                listener(Progress(SAMPLE_STAGE, chains.generation, states[0][0].lnl, 0, 0, *times))
                reported = now
    except StopSearch:
        save()
        return lnls, True
    return lnls, False
