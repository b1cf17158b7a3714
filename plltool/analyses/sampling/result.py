"""What `sample` returns: samples of trees and parameters, and the files of a run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plltool.analyses.sampling.chains import RunState
from plltool.analyses.sampling.samples import FEWEST_SAMPLES, Samples, common_shares, format_numbers, format_trees
from plltool.analyses.sampling.settings import Priors, SampleOptions
from plltool.analyses.sampling.state import COLUMNS
from plltool.analyses.sampling.summaries import Posterior, Summary, TimeSummary, describe_numbers
from plltool.engine.requests import Counters
from plltool.model.describe import describe_data
from plltool.reports.blocks import Row
from plltool.reports.tree_blocks import Drawn
from plltool.run.run_result import RunResult
from plltool.schema import Keys
from plltool.tree.splits import members_of, smaller_side

MOST_TRACED = 12  # numbers whose traces are kept: those of MrBayes' first columns, then those with the least sizes
MOST_POINTS = 200  # of a trace, for each run
MOST_LOOKS = 25  # at ASDSF
MOST_CREDIBLE = 20  # topologies
DIGITS = 7  # of a value in a trace


@Keys(
    "samples:int asdsf:float? consensus:str mcc:str credible_topologies:int",
    numbers=dict[str, dict[str, float]],
    credible=[Keys("probability:float cumulative:float")],
)
def describe_posterior(found: Posterior) -> dict[str, Any]:
    """The summaries, without values that are unknown."""
    known = {name: own._asdict().items() for name, own in found.numbers.items()}
    credible = found.credible[:MOST_CREDIBLE]
    return {
        "samples": found.n_samples,
        "numbers": {name: {key: x for key, x in own if np.isfinite(x)} for name, own in known.items()},
        "asdsf": found.deviation if np.isfinite(found.deviation) else None,
        "consensus": found.consensus,
        "mcc": found.mcc,
        "credible_topologies": len(found.credible),
        "credible": [{"probability": own.probability, "cumulative": own.cumulative} for own in credible],
    }


def describe_trace(samples: Samples, numbers: dict[str, Summary]) -> dict[str, Any]:
    """Some numbers of some samples of all runs, the burn-in included: evenly spaced ones, and the last one.

    All samples have the numbers in COLUMNS. Of the others, those with the smallest effective sizes are traced.
    """
    chosen = sorted({*range(0, len(samples), -(-len(samples) // MOST_POINTS)), len(samples) - 1})
    sizes = {name: np.nan_to_num(own.size, nan=np.inf) for name, own in numbers.items() if name not in COLUMNS}
    wanted = {*COLUMNS, *sorted(sizes, key=lambda name: (sizes[name], name))[: MOST_TRACED - len(COLUMNS)]}
    values = samples.numbers()[:, chosen]
    traced = {
        name: [[float(f"{value:.{DIGITS}g}") for value in row] for row in values[:, :, k].tolist()]
        for k, name in enumerate(samples.columns)
        if name in wanted
    }
    return {"generations": [samples.generations[number] for number in chosen], "numbers": traced}


def describe_deviations(samples: Samples, tuning: int, burnin: float) -> list[dict[str, Any]]:
    """ASDSF after some of the generations, each with its burn-in left out; nothing for one run.

    Nothing is said until a run has FEWEST_SAMPLES after its burn-in, nor where no split counts.
    """
    if samples.n_runs < 2:
        return []
    ends = dict.fromkeys(np.linspace(1, len(samples), min(MOST_LOOKS, len(samples))).round().astype(int).tolist())
    firsts = {end: samples.first_after(tuning, burnin, end) for end in ends}
    found = {end: samples.deviation(first, end) for end, first in firsts.items() if end - first >= FEWEST_SAMPLES}
    known = [(samples.generations[end - 1], own) for end, own in found.items() if math.isfinite(own)]
    return [{"generation": generation, "asdsf": deviation} for generation, deviation in known]


def describe_splits(samples: Samples, names: Sequence[str], first: int) -> list[dict[str, Any]]:
    """The splits, or the clades of trees with a root, that count for ASDSF; the commonest first.

    Each has the share of the trees of each run that have it.
    """
    table = common_shares([samples.split_shares(run, first) for run in range(samples.n_runs)])
    order = sorted(table, key=lambda split: (-sum(table[split]), split))
    if samples.has_root:
        return [{"taxa": [names[bit - 1] for bit in members_of(own)], "shares": table[own]} for own in order]
    return [{"taxa": smaller_side(split, names), "shares": table[split]} for split in order]


ADVISED_SWAPS = 0.2, 0.8  # the range of rates at which neighbouring chains should swap
# the last keys of records, and the types of some of them
OF_RUN = (
    "seconds device reason driver layout counters models brlen warnings interrupted version software command:str? data"
)
TYPES: dict[str, Any] = {"counters": (Counters, Keys()), "data": describe_data}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ChainsResult(RunResult):
    """What chains found; see `RunResult` for more attributes.

    Attributes
    ----------
    generations : generations made
    swaps : the share of exchanges between neighbouring heats, or powers, that were accepted; None where there was none
    layout : layout of the engine, see `Layout.describe`; empty if the prior was sampled
    counters : launches, instructions and bytes over the bus, see `Counters`
    models : the model of each part as text
    brlen : how the branch lengths of parts are related, as for `plltool.sample`
    interrupted : whether the listener ended it
    """

    seed: int
    generations: int
    swaps: tuple[float | None, ...]
    layout: dict[str, object]
    counters: dict[str, Any]
    models: tuple[str, ...]
    brlen: str
    interrupted: bool

    def describe(self) -> list[str]:
        """Lines for people."""
        return ["interrupted: results are from the samples taken so far"] if self.interrupted else []


def swap_rates(states: Sequence[RunState]) -> tuple[float | None, ...]:
    """The share of exchanges between neighbouring chains that were accepted, of all runs; None where there was none."""
    tried, accepted = (
        np.sum([getattr(own, name) for own in states], axis=0).diagonal(1).tolist()
        for name in ("swaps_tried", "swaps_accepted")
    )
    return tuple(a / n if n else None for a, n in zip(accepted, tried, strict=True))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SampleResult(ChainsResult):
    """Samples of the posterior distribution, and what they say; see `ChainsResult` for more attributes.

    The columns of its table are number (its name) and those of `Summary`.

    Attributes
    ----------
    posterior : summaries of all runs, without the burn-in
    samples : all samples of all runs
    first : number of the first sample after the burn-in
    names : the taxa
    priors, options : as they were used
    sampled : the kinds of parameters that were sampled, by the names of their priors
    tuning : number of generations in which steps were tuned, which are part of the burn-in
    acceptance : the share of proposals that the cold chains accepted, by move; None where there was none
    temperatures : of the heated chains of each run, as they were tuned or given
    converged : whether ASDSF and effective sizes say that there are enough samples; None for one run
    time : what only samples with a clock have; None without one
    """

    posterior: Posterior
    samples: Samples
    first: int
    names: tuple[str, ...]
    priors: Priors
    sampled: frozenset[str]
    options: SampleOptions
    tuning: int
    acceptance: dict[str, float | None]
    temperatures: tuple[float, ...]
    converged: bool | None
    time: TimeSummary | None = None

    def __repr__(self) -> str:
        n = self.posterior.n_samples * self.options.runs
        return f"<SampleResult: {n} samples of {len(self.names)} taxa, {self.generations} generations>"

    def _drawn(self) -> Drawn:
        return self.posterior.consensus, ()

    def _rows(self) -> Sequence[Row]:
        return [{"number": name, **own._asdict()} for name, own in self.posterior.numbers.items()]

    @Keys(
        "n_taxa n_sites n_patterns posterior generations burnin_samples=first burnin_generation:int trace asdsf splits"
        f" priors options seed tuning acceptance swaps temperatures converged {OF_RUN}",
        posterior=describe_posterior,
        trace=Keys("generations:int[]", numbers=dict[str, list[list[float]]]),
        asdsf=[Keys("generation:int asdsf:float")],
        splits=[Keys("taxa:str[] shares:float[]")],
        priors=dict[str, str],
        maybe={"time": TimeSummary},
        **TYPES,
    )
    def as_record(self, command: str | None = None) -> dict[str, Any]:
        """All but the samples, of which a few are in it, as strings, numbers, lists and dictionaries."""
        samples = self.samples
        return {
            "burnin_generation": samples.generations[self.first],
            "trace": describe_trace(samples, self.posterior.numbers),
            "asdsf": describe_deviations(samples, self.tuning, self.options.burnin),
            "splits": describe_splits(samples, self.names, self.first),
            "priors": self.priors.of_kinds(self.sampled) | ({} if self.time is None else self.time.priors),
            **({} if self.time is None else {"time": self.time.as_record()}),
        }

    def texts(self, command: str | None = None) -> dict[str, str]:
        """The files that `plltool sample` writes, by the ends of their names; `command` as for `as_record`."""
        known = self.posterior.credible
        credible = [f"{own.probability:.6f}\t{own.cumulative:.6f}\t{own.newick}" for own in known]
        return {
            **sample_texts(self.samples, self.names, self.seed),
            "consensus.nwk": self.posterior.consensus + "\n",
            "mcc.nwk": self.posterior.mcc + "\n",
            **({} if self.time is None else {"mcc.nex": self.time.nexus}),
            "credible.tsv": "\n".join(["probability\tcumulative\ttree", *credible]) + "\n",
            "sample.json": self.to_json(command) + "\n",
        }

    def describe(self) -> list[str]:
        """Lines for people."""
        found = self.posterior
        lines = [*super().describe(), f"samples: {found.n_samples} of each run, after a burn-in of {self.first}"]
        if np.isfinite(found.deviation):
            lines.append(f"ASDSF: {found.deviation:.5f}")
        rates = ", ".join(f"{name} {rate:.2f}" for name, rate in self.acceptance.items() if rate is not None)
        lines.append(f"proposals accepted: {rates}")
        if self.swaps:
            shown = " ".join("-" if x is None else f"{x:.2f}" for x in self.swaps)
            heats = " ".join(f"{temperature:.2g}" for temperature in self.temperatures)
            lines.append(f"chain swaps accepted: {shown}, at temperature {heats}{_judge_swaps(self.swaps)}")
        n_trees = len(found.credible)
        sure = "; with one topology, low acceptance of topology moves is normal" if n_trees == 1 else ""
        lines += [*describe_numbers(found.numbers), f"topologies in the 95 % credible set: {n_trees}{sure}"]
        return lines


def _judge_swaps(swaps: Sequence[float | None]) -> str:
    """Whether the temperature should change, behind the rates of swaps."""
    known = [rate for rate in swaps if rate is not None]
    low, high = ADVISED_SWAPS
    if known and min(known) < low:
        return f" (below {low:g}: use a lower --temperature or more chains)"
    if known and min(known) > high:
        return f" (above {high:g}: no need to act; a higher --temperature would explore more)"
    return ""


def sample_texts(samples: Samples, names: Sequence[str], seed: int) -> dict[str, str]:
    """The files of samples, by the ends of their names."""
    texts, n_parts = {}, len(samples.shares)
    for run in range(samples.n_runs):
        for part in range(n_parts):
            start, which = (f"tree{part + 1}.", part) if n_parts > 1 else ("", None)
            texts[f"{start}run{run + 1}.t"] = format_trees(samples, run, seed, names, which)
        texts[f"run{run + 1}.p"] = format_numbers(samples, run, seed)
    return texts
