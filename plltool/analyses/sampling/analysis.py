"""`sample` draws trees and parameters from their posterior distribution.

For example:

    import plltool
    found = plltool.sample("primates.phy", model="GTR+FO+G4", options=plltool.SampleOptions(generations=100_000))
    print(found.posterior.consensus, found.posterior.numbers["TL"])
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from os import PathLike
from typing import Any, Unpack

from plltool.analyses.sampling.course import SampleCourse
from plltool.analyses.sampling.likelihoods import sampling_slots
from plltool.analyses.sampling.parameters import find_parameters
from plltool.analyses.sampling.posterior import summarise
from plltool.analyses.sampling.result import SampleResult
from plltool.analyses.sampling.runs import ChainRuns, RunSetup, RunsHere, RunsInWorkers
from plltool.analyses.sampling.settings import Priors, SampleOptions
from plltool.analyses.sampling.state import StateSpace
from plltool.analyses.sampling.tree import from_tree
from plltool.constants import DEFAULT_SEED, LINKED, START_KINDS
from plltool.engine.storage import Slots
from plltool.errors import check_least
from plltool.hardware import Hardware, HardwareSettings
from plltool.io.checkpoint import Checkpoint, recorded_item
from plltool.progress import Listener, ignore
from plltool.run.data_tests import remarks_on_data
from plltool.run.engines import settle_share
from plltool.run.identity import describe_place, describe_start, identify_sampling
from plltool.run.inputs import AlignmentLike, ModelLike, TreeLike, as_tree, resolve_inputs
from plltool.run.keywords import takes_keywords
from plltool.run.memory import until_memory_suffices
from plltool.run.messages import announce_data, announce_engine, warn
from plltool.run.rooting import OutgroupLike, as_outgroup
from plltool.run.sharing import share_hardware
from plltool.run.task import Task
from plltool.tree.topology import Tree

TUNING = "tuning"  # an item of the identity of a run

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
    workers: int | None = None,
    outgroup: OutgroupLike | None = None,
    listener: Listener = ignore,
    taken: Callable[[dict[str, str]], None] | None = None,
    checkpoint: str | PathLike[str] | None = None,
    **hardware: Unpack[HardwareSettings],
) -> SampleResult:
    """Sample trees, branch lengths and model parameters from their posterior distribution.

    Metropolis-coupled Markov chains of several runs advance, see `plltool.analyses.sampling.chains`. Parameters of the
    model are sampled unless they have values in braces or are counted in the alignment (+F). Parts share the branch
    lengths.

    Parameters
    ----------
    alignment, model : as for `plltool.search`; a time-reversible model with +G and +I at most
    options : numbers of generations, runs and chains, and when to sample
    priors : by default those of MrBayes 3.2
    start : "random" or "parsimony", another tree for each chain, or one tree for all, as for `plltool.search`
    seed : of all random choices; the same seed, device and layout give the same samples
    workers : number of runs that advance at the same time, each in a process of its own; by default as many as threads,
        on a GPU 1. It changes no bit
    outgroup : taxa that the written trees show as one clade
    listener : is called about once a second; if it raises StopSearch, the samples so far are the result
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
    space = StateSpace(data.names, tuple(models), tuple(parameters), priors.of_lengths())
    task = Task.of(data, models, seed, all_taxa=True)
    parts = task.parts
    first = start if isinstance(start, str) and start in START_KINDS else as_tree(start, data.names)
    announce_data(data, parts, models if model is None else ())
    asked = settle_share(parts, models, asked, checkpoint)
    sampled = frozenset({"lengths", *(own.kind for own in parameters)})
    used = priors.of_kinds(sampled)
    for name, text in used.items():
        _log.info("prior of %s: %s", name, text)
    given = asdict(priors).items() - asdict(Priors().canonical()).items()
    idle = sorted(name for name, _ in given if name not in sampled)
    n_chains = options.runs * options.chains
    trees = (first if isinstance(first, Tree) else task.start_tree(first, number) for number in range(n_chains))
    starts = [from_tree(tree) for tree in trees]
    recorded = recorded_item(checkpoint, TUNING)  # of fewer generations, which may have been tuned for a shorter time
    tuning = options.tuning if recorded is None else int(recorded)
    setup = RunSetup(space, parts, starts, options, tuning, seed)
    fixed = _fixed(options) | {TUNING: tuning, "moves": setup.move_weights}
    identity = {"share": asked.share} | identify_sampling(data, models, seed, describe_start(first), used, fixed)

    def attempt(hardware: Hardware) -> tuple[SampleCourse, dict[str, Any], list[str]]:
        """Sample to the end, from the checkpoint on if there is one."""
        slots = Slots(sampling_slots(len(space.names), options.chains))
        most = 1 if options.prior_only else options.runs  # without data a run costs less than a process
        shares = share_hardware(workers, most, parts, models, hardware, slots)
        runs: ChainRuns = RunsHere(setup, shares[0]) if len(shares) == 1 else RunsInWorkers(setup, shares)
        with ExitStack() as stack:
            place = stack.enter_context(runs).place
            fallback = announce_engine(place, place.reason, hardware) if place.layout else []
            whole = identity | describe_place(place.device_name, place.layout)
            store = None if checkpoint is None else stack.enter_context(Checkpoint(checkpoint, whole))
            course = SampleCourse(setup, runs, listener, taken, store)
            course.go(began)
            return course, place.describe(data, runs.work) | course.rates(), fallback

    course, known, fallback = until_memory_suffices(attempt, asked)
    posterior = summarise(course.samples, data.names, course.first, outgroup)
    remarks = [*remarks_on_data(data, models, LINKED), *course.remarks(), *posterior.warnings]
    remarks += [f"prior of {name}: the model has no such parameter to sample" for name in idle]
    return SampleResult(
        posterior=posterior,
        samples=course.samples,
        first=course.first,
        generations=course.generation,
        **known,
        names=data.names,
        priors=priors,
        sampled=sampled,
        options=options,
        seed=seed,
        tuning=tuning,
        converged=course.converged,
        seconds=time.perf_counter() - began,
        models=tuple(str(own.spec) for own in models),
        warnings=warn(data, fallback, remarks),
        interrupted=course.interrupted,
    )


def _fixed(options: SampleOptions) -> dict[str, Any]:
    """The options on which each generation depends, by which a checkpoint recognises its run, and its form."""
    names = "runs", "chains", "temperature", "sample_every", "prior_only"
    return {"random streams": "of each run"} | {name: getattr(options, name) for name in names}
