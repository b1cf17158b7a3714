"""What `sample` returns: samples of trees and parameters, and the files of a run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from plltool.constants import VERSION
from plltool.pages.blocks import Drawn, Row
from plltool.pages.shown import Shown
from plltool.run.posterior import (
    Posterior,
    as_record,
    describe_numbers,
    format_credible,
    format_numbers,
    format_trees,
)
from plltool.run.software import software_versions
from plltool.sampling.samples import Samples
from plltool.sampling.settings import Priors, SampleOptions


@dataclass(frozen=True, eq=False, repr=False)
class SampleResult(Shown):
    """Samples of the posterior distribution, and what they say.

    The columns of its table are number (its name) and those of `Summary`.

    Attributes
    ----------
    posterior : summaries of all runs, without the burn-in
    samples : all samples of all runs
    first : number of the first sample behind the burn-in
    generations : generations made
    names : the taxa
    priors, options, seed : as they were used
    acceptance : the share of proposals that the cold chains accepted, by move; None where there was none
    swaps : (n_chains - 1,) the share of exchanges between neighbouring heats that were accepted; None likewise
    converged : whether ASDSF and effective sizes say that there are enough samples; None for one run
    seconds : wall time of this call
    device : what did the arithmetic
    counters : launches, instructions and bytes over the bus, see `Counters`
    models : the model of each part as text
    warnings : what a user should know, one line each
    interrupted : whether the listener ended it
    """

    posterior: Posterior
    samples: Samples
    first: int
    generations: int
    names: tuple[str, ...]
    priors: Priors
    options: SampleOptions
    seed: int
    acceptance: dict[str, float | None]
    swaps: tuple[float | None, ...]
    converged: bool | None
    seconds: float
    device: str
    counters: dict[str, Any]
    models: tuple[str, ...]
    warnings: tuple[str, ...]
    interrupted: bool

    def __repr__(self) -> str:
        n = self.posterior.n_samples * self.options.runs
        return f"<SampleResult: {n} samples of {len(self.names)} taxa, {self.generations} generations>"

    def _drawn(self) -> Drawn:
        return self.posterior.consensus, ()

    def _rows(self) -> Sequence[Row]:
        return [{"number": name, **own._asdict()} for name, own in self.posterior.numbers.items()]

    def as_record(self, command: str | None = None) -> dict[str, Any]:
        """All but the samples as strings, numbers, lists and dictionaries."""
        return {
            "posterior": as_record(self.posterior),
            "generations": self.generations,
            "burnin_samples": self.first,
            "priors": asdict(self.priors),
            "options": asdict(self.options),
            "seed": self.seed,
            "acceptance": self.acceptance,
            "swaps": list(self.swaps),
            "converged": self.converged,
            "seconds": round(self.seconds, 3),
            "device": self.device,
            "counters": self.counters,
            "models": list(self.models),
            "warnings": list(self.warnings),
            "interrupted": self.interrupted,
            "version": VERSION,
            "software": software_versions(),
            "command": command,
        }

    def texts(self, command: str | None = None) -> dict[str, str]:
        """The files that `plltool sample` writes, by the ends of their names; `command` as for `as_record`."""
        return {
            **sample_texts(self.samples, self.names, self.seed),
            "consensus.nwk": self.posterior.consensus + "\n",
            "mcc.nwk": self.posterior.mcc + "\n",
            "credible.tsv": format_credible(self.posterior.credible),
            "sample.json": json.dumps(self.as_record(command), indent=1, allow_nan=False) + "\n",
        }

    def describe(self) -> list[str]:
        """Lines for people."""
        found = self.posterior
        lines = ["interrupted: the samples so far"] if self.interrupted else []
        lines.append(f"samples: {found.n_samples} of each run behind the burn-in of {self.first}")
        if np.isfinite(found.deviation):
            lines.append(f"ASDSF: {found.deviation:.5f}")
        rates = ", ".join(f"{name} {rate:.2f}" for name, rate in self.acceptance.items() if rate is not None)
        lines.append(f"accepted: {rates}")
        if self.swaps:
            lines.append("exchanges accepted: " + " ".join("-" if x is None else f"{x:.2f}" for x in self.swaps))
        return [*lines, *describe_numbers(found.numbers), f"topologies in the credible set: {len(found.credible)}"]


def sample_texts(samples: Samples, names: Sequence[str], seed: int) -> dict[str, str]:
    """The files of samples, by the ends of their names."""
    texts = {}
    for run in range(samples.n_runs):
        texts[f"run{run + 1}.t"] = format_trees(samples, run, seed, names)
        texts[f"run{run + 1}.p"] = format_numbers(samples, run, seed)
    return texts
