"""`sample` draws trees and parameters from their posterior distribution.

For example:

    import plltool
    found = plltool.sample("primates.phy", model="GTR+FO+G4", generations=100_000)
    print(found.posterior.consensus, found.posterior.numbers["TL"])
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from os import PathLike
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from plltool.alignment.partition import Dataset
from plltool.alignment.patterns import Patterns, compress
from plltool.constants import (
    AUTO_GENERATIONS,
    CHECK_GROWTH,
    CHECKPOINT_PATIENCE,
    DEFAULT_SEED,
    ENOUGH_DEVIATION,
    ENOUGH_SIZE,
    FIRST_CHECK,
    LINKED,
    SAMPLE_STAGE,
    START_KINDS,
)
from plltool.engine.base import Engine
from plltool.engine.counters import Counters
from plltool.engine.shards import Shards
from plltool.engine.storage import Slots
from plltool.errors import InputError, check_least
from plltool.hardware import Hardware, HardwareSettings
from plltool.io.checkpoint import Checkpoint
from plltool.run.data_tests import remarks_on_data
from plltool.run.engines import open_engine, settle_share
from plltool.run.identity import describe_place, describe_start, identify_sampling
from plltool.run.inputs import AlignmentLike, ModelLike, TreeLike, as_tree, resolve_inputs
from plltool.run.keywords import takes_keywords
from plltool.run.memory import until_memory_suffices
from plltool.run.messages import announce_data, announce_engine, warn
from plltool.run.posterior import summarise
from plltool.run.results import describe_run
from plltool.run.rooting import OutgroupLike, as_outgroup
from plltool.run.sample_result import SampleResult, sample_texts
from plltool.run.seeds import SAMPLING, STARTS, generator
from plltool.sampling.chains import Chains
from plltool.sampling.kernel import make_moves
from plltool.sampling.likelihoods import EngineLikelihoods, Likelihoods, NoData, sampling_slots
from plltool.sampling.parameters import find_parameters
from plltool.sampling.samples import Samples
from plltool.sampling.settings import Priors, SampleOptions
from plltool.sampling.state import Problem, State
from plltool.sampling.tree import from_tree, to_tree
from plltool.tree.random_tree import random_tree
from plltool.tree.topology import Tree
from plltool.tree_search.parsimony import stepwise_addition
from plltool.tree_search.progress import Listener, Progress, StopSearch, announce, ignore

REPORT_SECONDS = 10.0  # between two progress reports, apart from those on convergence
SAVE_SECONDS = 1.0  # between two times that samples and state are saved, at least
STATE_NAME = "chains"

_log = logging.getLogger("plltool")


@takes_keywords(HardwareSettings)
def sample(
    alignment: AlignmentLike,
    model: ModelLike | None = None,
    *,
    options: SampleOptions | None = None,
    priors: Priors | None = None,
    start: TreeLike = "random",
    seed: int = DEFAULT_SEED,
    outgroup: OutgroupLike | None = None,
    listener: Listener = ignore,
    taken: Callable[[dict[str, str]], None] | None = None,
    checkpoint: str | PathLike[str] | None = None,
    **hardware: Unpack[HardwareSettings],
) -> SampleResult:
    """Sample trees, branch lengths and model parameters from their posterior distribution.

    Metropolis-coupled Markov chains of several runs advance together, see `plltool.sampling.chains`. Parameters of the
    model are sampled unless they have values in braces or are counted in the alignment (+F). Parts share the branch
    lengths.

    Parameters
    ----------
    alignment, model : as for `plltool.search`; a time-reversible model with +G and +I at most
    options : numbers of generations, runs and chains, and when to sample
    priors : by default those of MrBayes 3.2
    start : "random" or "parsimony", another tree for each chain, or one tree for all, as for `plltool.search`
    seed : of all random choices; the same seed, device and layout give the same samples
    outgroup : taxa that the written trees show as one clade
    listener : is called now and then; if it raises StopSearch, the samples so far are the result
    taken : is called now and then with the files of samples so far, by the ends of their names
    checkpoint : folder that keeps all samples. The same call, for as many generations or more, continues from there and
        ends with the same bits. None keeps nothing
    device, precision, vw, threads, memory : see `plltool.Hardware`

    Raises
    ------
    InputError
        If alignment, model, priors, options or start tree cannot be used, or the checkpoint is that of another run.
    DeviceError
        If the device cannot be used.
    """
    began = time.perf_counter()
    asked = Hardware.of(**hardware)
    options, priors = options or SampleOptions(), (priors or Priors()).canonical()
    options.check()
    check_least("seed", seed, 0)
    data, models = resolve_inputs(alignment, model, LINKED)
    outgroup = as_outgroup(outgroup, data.names)
    parameters = find_parameters(models, priors.of_models())
    problem = Problem(data.names, tuple(models), tuple(parameters), priors.of_lengths())
    parts = [compress(part) for part in data.alignments]
    first = start if isinstance(start, str) and start in START_KINDS else as_tree(start, data.names)
    announce_data(data, parts)
    asked = settle_share(parts, models, asked, checkpoint)
    for name, text in asdict(priors).items():
        _log.info("prior of %s: %s", name, text)
    n_chains = options.runs * options.chains
    states = [problem.start(*from_tree(tree)) for tree in _start_trees(first, parts, data, n_chains, seed)]
    identity = {"share": asked.share} | identify_sampling(
        data, models, seed, describe_start(first), asdict(priors), _fixed(options)
    )

    def attempt(hardware: Hardware) -> tuple[_Sampling, _Place]:
        """Sample to the end, from the checkpoint on if there is one."""
        with ExitStack() as stack:
            place = _open(stack, problem, parts, n_chains, options, hardware)
            chains = Chains(
                make_moves(problem, parts),
                place.likelihoods,
                states,
                options.runs,
                options.temperature,
                generator(seed, SAMPLING),
                options.tuning,
            )
            whole = identity | describe_place(place.device, place.layout)
            store = None if checkpoint is None else stack.enter_context(Checkpoint(checkpoint, whole))
            work = _Sampling(problem, chains, Samples(problem, options.runs), options, seed, listener, taken, store)
            work.go(began)
            return work, place

    work, place = until_memory_suffices(attempt, asked)
    return SampleResult(
        posterior=summarise(work.samples, data.names, work.first, outgroup),
        samples=work.samples,
        first=work.first,
        generations=work.chains.generation,
        **place.describe(data, parts),
        names=data.names,
        priors=priors,
        options=options,
        seed=seed,
        **_rates(work.chains),
        converged=work.converged,
        seconds=time.perf_counter() - began,
        models=tuple(str(own.spec) for own in models),
        warnings=warn(data, place.fallback, [*remarks_on_data(data, models, LINKED), *work.remarks()]),
        interrupted=work.interrupted,
    )


def _start_trees(first: str | Tree, parts: Sequence[Patterns], data: Dataset, n: int, seed: int) -> Iterator[Tree]:
    """Where each chain begins."""
    for number in range(n):
        if isinstance(first, Tree):
            yield first
            continue
        rng = generator(seed, STARTS, number)
        if first == "random":
            yield random_tree(data.names, rng)
        else:
            announce(f"parsimony start tree {number + 1}")
            masks = np.concatenate([part.masks for part in parts], axis=1)
            yield stepwise_addition(masks, np.concatenate([part.weights for part in parts]), data.names, rng)


@dataclass(frozen=True, eq=False)
class _Place:
    """Where chains advance: the engine, none if the prior is sampled; why it was chosen; what answers; and warnings."""

    engine: Engine | Shards | None
    reason: str
    likelihoods: Likelihoods
    fallback: list[str]

    @property
    def device(self) -> str:
        return "none: the prior is sampled" if self.engine is None else self.engine.device_name

    @property
    def layout(self) -> dict[str, object]:
        return {} if self.engine is None else self.engine.describe()

    def describe(self, data: Dataset, parts: Sequence[Patterns]) -> dict[str, Any]:
        """The fields of the result that describe the alignment, the engine and its work so far."""
        if self.engine is not None:
            return describe_run(data, self.engine, self.reason)
        size = {"n_taxa": data.n_sequences, "n_sites": data.n_sites, "n_patterns": sum(own.n_patterns for own in parts)}
        place = {"device": self.device, "driver": "", "reason": "", "layout": {}, "counters": Counters().as_dict()}
        return {"data": data, **size, **place}


def _open(
    stack: ExitStack,
    problem: Problem,
    parts: Sequence[Patterns],
    n_chains: int,
    options: SampleOptions,
    hardware: Hardware,
) -> _Place:
    """An engine with room for all chains, unless the prior is sampled."""
    if options.prior_only:
        return _Place(None, "", NoData(), [])
    announce("opening the device")
    slots = sampling_slots(len(problem.names), n_chains)
    engine, reason = open_engine(parts, problem.models, Slots(slots), hardware)
    stack.enter_context(engine)
    fallback = announce_engine(engine, reason, hardware)
    assert isinstance(engine, (Engine, Shards)), "other models are refused"
    return _Place(engine, reason, EngineLikelihoods(problem, engine, n_chains), fallback)


def _fixed(options: SampleOptions) -> dict[str, Any]:
    """The options on which each generation depends, by which a checkpoint recognises its run."""
    names = "runs", "chains", "temperature", "sample_every", "prior_only", "tuning"
    return {name: getattr(options, name) for name in names}


def _rates(chains: Chains) -> dict[str, Any]:
    """The shares of proposals and exchanges that were accepted."""
    cold = slice(0, None, chains.n_chains)
    tried, accepted = chains.tried[:, cold].sum(axis=1), chains.accepted[:, cold].sum(axis=1)
    swaps = [
        (int(chains.swaps_accepted[:, k, k + 1].sum()), int(chains.swaps_tried[:, k, k + 1].sum()))
        for k in range(chains.n_chains - 1)
    ]
    return {
        "acceptance": {
            move.name: float(a / n) if n else None for move, a, n in zip(chains.moves, accepted, tried, strict=True)
        },
        "swaps": tuple(a / n if n else None for a, n in swaps),
    }


@dataclass(frozen=True, eq=False)
class _Snapshot:
    """What a checkpoint keeps between two generations: arrays, and the tree of the first run with its lnL."""

    lnl: float
    best: Tree
    arrays: Mapping[str, npt.NDArray[Any]]

    def pack(self) -> Mapping[str, npt.NDArray[Any]]:
        """All that the rest depends on."""
        return self.arrays


class _Sampling:
    """Lets chains advance, takes samples, looks at convergence, reports and saves.

    Attributes
    ----------
    chains, samples : those that advance, and those taken so far
    interrupted : whether the listener has ended it
    converged : what the last look at convergence said; None for one run
    """

    def __init__(
        self,
        problem: Problem,
        chains: Chains,
        samples: Samples,
        options: SampleOptions,
        seed: int,
        listener: Listener,
        taken: Callable[[dict[str, str]], None] | None,
        store: Checkpoint | None,
    ):
        self.chains, self.samples = chains, samples
        self.interrupted = False
        self.converged: bool | None = None
        self._problem, self._options, self._seed = problem, options, seed
        self._listener, self._taken, self._store = listener, taken, store
        is_auto = isinstance(options.generations, str)
        self._last = AUTO_GENERATIONS if is_auto else int(options.generations)
        self._is_auto = is_auto
        self._next_check = FIRST_CHECK
        self._next_save = time.perf_counter() + SAVE_SECONDS
        kept = None if store is None else store.load(STATE_NAME)
        if kept is not None:
            chains.unpack(kept, problem)
            samples.unpack(kept)
            self._next_check = int(kept["next_check"])
            _log.info("the run goes on from generation %d", chains.generation)
            if chains.generation > self._last:
                wanted = f"expected at least {chains.generation}, which {store.folder} keeps already"  # type: ignore[union-attr]
                raise InputError(f"generations: found {self._last}, {wanted}; --redo starts over")

    @property
    def first(self) -> int:
        """The number of the first sample behind the burn-in."""
        return self.samples.first_after(self._options.tuning, self._options.burnin)

    def go(self, began: float) -> None:
        """Sample to the end, or until the listener ends it."""
        chains, every = self.chains, self._options.sample_every
        announce(SAMPLE_STAGE)
        if not len(self.samples):
            self._take()
        generations_before, resumed = chains.generation, time.perf_counter()
        reported = resumed
        enough = False
        try:
            while chains.generation < self._last and not enough:
                chains.advance()
                if chains.generation % every:
                    continue
                self._take()
                looks = len(self.samples) >= self._next_check
                if looks:
                    enough = self._look() and self._is_auto
                now = time.perf_counter()
                is_over = enough or chains.generation + every > self._last
                if is_over or now >= self._next_save:
                    self._save()
                if looks or now - reported >= REPORT_SECONDS or chains.generation >= self._last:
                    pace = (now - resumed) / (chains.generation - generations_before)
                    self._report(now - began, None if self._is_auto else pace * (self._last - chains.generation))
                    reported = now
        except StopSearch:
            self._save()
            self.interrupted = True
            return
        self._look()

    def _take(self) -> None:
        """One sample of each run."""
        self.samples.add(self.chains.generation, self._cold())

    def _cold(self) -> list[State]:
        return [self.chains.cold(run) for run in range(self._options.runs)]

    def _look(self) -> bool:
        """Whether the samples so far are enough."""
        self._next_check = max(self._next_check + 1, int(CHECK_GROWTH * len(self.samples)))
        first = self.first
        deviation = self.samples.deviation(first)
        sizes = {name: size for name, (size, _) in self.samples.convergence(first).items()}
        name, least = min(sizes.items(), key=lambda item: item[1] if np.isfinite(item[1]) else np.inf)
        _log.info("generation %d: ASDSF %.4f, least ESS %.0f (%s)", self.chains.generation, deviation, least, name)
        if self._options.runs > 1:
            known = [size for size in sizes.values() if np.isfinite(size)]
            self.converged = bool(deviation < ENOUGH_DEVIATION and len(known) > 0 and min(known) > ENOUGH_SIZE)
        return bool(self.converged)

    def _report(self, seconds: float, left: float | None) -> None:
        """Tell where the chains are."""
        n = 0 if self._is_auto else self._last
        event = Progress(SAMPLE_STAGE, self.chains.generation, self.chains.cold(0).lnl, 0, 0, seconds, n, left, left)
        self._listener(event)

    def _save(self) -> None:
        """Write the samples and save the state, which takes a small share of the time."""
        began = time.perf_counter()
        if self._taken is not None:
            self._taken(sample_texts(self.samples, self._problem.names, self._seed))
        if self._store is not None:
            kept = {"next_check": np.array(self._next_check), **self.chains.pack(), **self.samples.pack()}
            state = self.chains.cold(0)
            tree = to_tree(state.topology, state.lengths, self._problem.names)
            self._store.save(STATE_NAME, _Snapshot(state.lnl, tree, kept))
        ended = time.perf_counter()
        self._next_save = ended + max(SAVE_SECONDS, CHECKPOINT_PATIENCE * (ended - began))

    def remarks(self) -> list[str]:
        """What a user should know of the samples."""
        told = ["the run was interrupted: the samples are those so far"] if self.interrupted else []
        if self.converged is False and not self.interrupted:
            wanted = f"ASDSF below {ENOUGH_DEVIATION} and effective sizes above {ENOUGH_SIZE}"
            told.append(f"the runs have not converged by {wanted}: more generations are needed")
        if self._store is not None and self._store.problem:
            told.append(f"the last steps could not be saved: {self._store.problem}")
        return told
