"""The course of a sampler: it takes samples, looks whether they are enough, reports and saves."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plltool.analyses.sampling.chains import RunState
from plltool.analyses.sampling.result import sample_texts
from plltool.analyses.sampling.runs import ChainRuns, RunSetup
from plltool.analyses.sampling.samples import FEWEST_SAMPLES, Sample, Samples
from plltool.analyses.sampling.tree import to_tree
from plltool.codec import saved
from plltool.constants import (
    AUTO_GENERATIONS,
    CHECK_GROWTH,
    CHECKPOINT_PATIENCE,
    ENOUGH_DEVIATION,
    ENOUGH_SIZE,
    FIRST_CHECK,
    SAMPLE_STAGE,
)
from plltool.errors import InputError
from plltool.io.checkpoint import Checkpoint
from plltool.progress import Listener, Progress, StopSearch, announce
from plltool.tree.topology import Tree

REPORT_SECONDS = 1.0  # between two progress reports, apart from those on convergence
SAVE_SECONDS = 1.0  # between two times that samples and state are saved, at least
STATE_NAME = "chains"

_log = logging.getLogger("plltool")


@saved("next_check", "enough", "runs", "samples")
@dataclass(frozen=True, eq=False)
class Snapshot:
    """What a checkpoint keeps between two generations, and the tree of the first run with its lnL."""

    lnl: float
    best: Tree
    next_check: int  # number of samples at which they are judged next
    enough: bool  # whether they were enough at the last time
    runs: Sequence[RunState]
    samples: Samples


class SampleCourse:
    """Lets runs advance, from where a checkpoint has them if there is one.

    `interrupted` says whether the listener has ended it, and `converged` whether there were enough samples at the last
    look; None for one run. `listener` and `taken` are as for `plltool.sample`.
    """

    def __init__(
        self,
        setup: RunSetup,
        runs: ChainRuns,
        listener: Listener,
        taken: Callable[[dict[str, str]], None] | None,
        store: Checkpoint | None,
    ):
        options = setup.options
        self.samples = Samples(setup.space, options.runs)
        self.interrupted = False
        self.converged: bool | None = None
        self._setup, self._runs, self._options = setup, runs, options
        self._listener, self._taken, self._store = listener, taken, store
        self._is_auto = isinstance(options.generations, str)
        self._last = AUTO_GENERATIONS if isinstance(options.generations, str) else options.generations
        self._next_check = max(FIRST_CHECK, setup.tuning // options.sample_every + FEWEST_SAMPLES + 1)
        self._next_save = 0.0  # the first sample is saved at once, so that other data are refused from then on
        self._enough = self._looked = False  # whether there are enough samples, and the last one was looked at
        self._missing: list[str] = []  # what was not enough at the last look
        snapshot = None if store is None else store.load(STATE_NAME, Snapshot)
        if snapshot is not None:
            self.samples, self._next_check = snapshot.samples, snapshot.next_check
            self._enough = self._is_auto and snapshot.enough
            runs.restore(snapshot.runs)
            _log.info("resuming from generation %d", self.generation)
            if self.generation > self._last:
                wanted = f"expected at least {self.generation}, which {store.folder} keeps already"  # type: ignore[union-attr]
                raise InputError(f"generations: found {self._last}, {wanted}; --redo starts over")

    @property
    def generation(self) -> int:
        """The generation of the last sample."""
        return self.samples.generations[-1]

    @property
    def first(self) -> int:
        """The number of the first sample behind the burn-in."""
        return self.samples.first_after(self._setup.tuning, self._options.burnin)

    def go(self, began: float) -> None:
        """Sample to the end, or until the listener ends it."""
        announce(SAMPLE_STAGE)
        if self._setup.tuning and not len(self.samples):
            _log.info("step sizes are tuned until generation %d; samples before it are discarded", self._setup.tuning)
        self._began, self._resumed = began, time.perf_counter()
        self._reported, self._n_before = self._resumed, len(self.samples)
        try:
            while not self._enough and (generations := self._generations_left()):
                if self._is_auto:
                    generations = generations[: max(1, self._next_check - len(self.samples))]
                self._runs.advance(generations, self._pace, self._take)
        except StopSearch:
            self.interrupted = True
            self._save()
        if not self._looked:
            self._look()

    def _generations_left(self) -> range:
        """Those that are still to be sampled; the chains go no further than the last one."""
        every = self._options.sample_every
        return range(self.generation + every if len(self.samples) else 0, self._last + 1, every)

    @property
    def _pace(self) -> float:
        """The seconds that a sample takes; infinite before there is one."""
        n = len(self.samples) - self._n_before
        return (time.perf_counter() - self._resumed) / n if n else math.inf

    def _take(self, generations: range, taken: Sequence[Sequence[Sample]]) -> None:
        """Take the samples of all runs at some generations, and see what has to be done after them."""
        looks = False
        for generation, own in zip(generations, taken, strict=True):
            self.samples.add(generation, own)
            self._looked = len(self.samples) >= self._next_check
            if self._looked:
                self._enough = self._look() and self._is_auto
                looks = True
        now, n_left = time.perf_counter(), len(self._generations_left())
        if self._enough or not n_left or now >= self._next_save:
            self._save()
        if looks or not n_left or now - self._reported >= REPORT_SECONDS:
            self._report(now - self._began, None if self._is_auto else self._pace * n_left)
            self._reported = now

    def _look(self) -> bool:
        """Whether the samples so far are enough."""
        self._next_check = max(self._next_check + 1, int(CHECK_GROWTH * len(self.samples)))
        found, self._missing = self._judge()
        _log.info("generation %d: %s", self.generation, ", ".join(found))
        if self._options.runs > 1:
            self.converged = not self._missing
        return bool(self.converged)

    def _judge(self) -> tuple[list[str], list[str]]:
        """The measures that judge the samples, and what is not enough."""
        found, missing = [], []
        if self._options.runs > 1:
            deviation = self.samples.deviation(self.first)
            found.append(f"ASDSF {deviation:.4f}" if math.isfinite(deviation) else "too few samples for ASDSF")
            if deviation >= ENOUGH_DEVIATION:
                missing.append(f"{found[-1]}, expected below {ENOUGH_DEVIATION}")
        convergence = self.samples.convergence(self.first)
        if known := [(size, name) for name, (size, _) in convergence.items() if math.isfinite(size)]:
            least, name = min(known)
            found.append(f"smallest ESS {least:.0f} ({name})")
            if not least > ENOUGH_SIZE:
                missing.append(f"{found[-1]}, expected above {ENOUGH_SIZE}")
        else:
            found.append("too few samples for an ESS")
            missing.append(found[-1])
        return found, missing

    def _report(self, seconds: float, left: float | None) -> None:
        """Tell where the chains are."""
        n, lnl = 0 if self._is_auto else self._last, self.samples.latest(0).numbers[0]
        self._listener(Progress(SAMPLE_STAGE, self.generation, lnl, 0, 0, seconds, n, left, left))

    def _save(self) -> None:
        """Write the samples and save the state, which takes a small share of the time."""
        began = time.perf_counter()
        names = self._setup.space.names
        if self._taken is not None:
            self._taken(sample_texts(self.samples, names, self._setup.seed))
        if self._store is not None:
            numbers, topology, lengths = self.samples.latest(0)
            best, looks = to_tree(topology, lengths, names), (self._next_check, self._enough)
            kept = Snapshot(numbers[0], best, *looks, self._runs.save(), self.samples.copy())
            self._store.save(STATE_NAME, kept)
        ended = time.perf_counter()
        self._next_save = ended + max(SAVE_SECONDS, CHECKPOINT_PATIENCE * (ended - began))

    def rates(self) -> dict[str, Any]:
        """The shares of proposals and exchanges that were accepted, in the cold chains of all runs."""
        states = self._runs.save()
        tried = np.sum([own.tried[:, 0] for own in states], axis=0)
        accepted = np.sum([own.accepted[:, 0] for own in states], axis=0)
        swaps_tried = np.sum([own.swaps_tried for own in states], axis=0).diagonal(1).tolist()
        swaps_accepted = np.sum([own.swaps_accepted for own in states], axis=0).diagonal(1).tolist()
        moves = zip(self._setup.move_weights, accepted, tried, strict=True)
        return {
            "acceptance": {name: float(a / n) if n else None for name, a, n in moves},
            "swaps": tuple(a / n if n else None for a, n in zip(swaps_accepted, swaps_tried, strict=True)),
        }

    def remarks(self) -> list[str]:
        """What a user should know of the samples."""
        told = []
        if self.interrupted:
            further = "" if self._store is None else "; the same command resumes from here"
            told.append(f"the run was interrupted: the results are from the samples taken so far{further}")
        if self._missing and not self.interrupted:
            told.append(f"not enough generations yet: {'; '.join(self._missing)}")
        options, tuning = self._options, self._setup.tuning
        if tuning < options.tuning:
            told.append(
                f"step sizes were tuned for only {tuning} generations, because the run began with fewer; a new run"
                f" (--redo) tunes for {options.tuning} and may need fewer samples"
            )
        elif tuning == 0:
            told.append("step sizes were not tuned, because there is no burn-in: more samples may be needed")
        if self._store is not None and self._store.problem:
            told.append(f"the last steps could not be saved: {self._store.problem}")
        return told
