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
from contextlib import nullcontext
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
from plltool.hardware import Hardware, HardwareSettings
from plltool.io.checkpoint import recorded_item
from plltool.progress import Listener, ignore
from plltool.run.data_tests import remarks_on_data
from plltool.run.identity import describe_place, describe_start
from plltool.run.inputs import AlignmentLike, ModelLike, TreeLike, as_tree, resolve_inputs
from plltool.run.keywords import takes_keywords
from plltool.run.messages import announce_engine
from plltool.run.rooting import OutgroupLike
from plltool.run.run import Run
from plltool.run.sharing import share_hardware
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
    began, asked = time.perf_counter(), Hardware.of(**hardware)
    options, priors = options or SampleOptions(), (priors or Priors()).canonical()
    options.check()
    data, models = resolve_inputs(alignment, model, LINKED)
    run = Run(data, models, LINKED, asked, began, seed=seed, all_taxa=True, outgroup=outgroup, checkpoint=checkpoint)
    distributions = priors.parsed()
    parameters = tuple(find_parameters(models, distributions))
    space = StateSpace(data.names, tuple(models), parameters, distributions["lengths"])
    first = start if isinstance(start, str) and start in START_KINDS else as_tree(start, data.names)
    run.announce_data(models if model is None else ())
    sampled = frozenset({"lengths", *(own.kind for own in parameters)})
    used = priors.of_kinds(sampled)
    for name, text in used.items():
        _log.info("prior of %s: %s", name, text)
    setup = _set_up(run, space, options, first)
    named = {f"prior of {name}": text for name, text in used.items()}
    identity = (
        {"share": run.hardware.share} | run.identity | {"start": describe_start(first)} | named | _identify(setup)
    )

    def attempt(hardware: Hardware) -> tuple[SampleCourse, dict[str, Any]]:
        with _open_runs(setup, workers, hardware) as runs:
            if runs.device.layout:
                run.fallback = announce_engine(runs.device, runs.device.reason, hardware)
            whole = identity | describe_place(runs.device.device_name, runs.device.layout)
            with run.open_checkpoint(whole) or nullcontext() as store:
                course = SampleCourse(setup, runs, listener, taken, store)
                course.go(began)
            return course, runs.device.describe(data, runs.work) | course.rates()

    course, known = run.ask(attempt)
    posterior = summarise(course.samples, data.names, course.first, run.outgroup)
    given = dict(asdict(priors).items() - asdict(Priors().canonical()).items())
    idle = [
        f"prior of {name}: the model has no such parameter to sample" for name in sorted(given.keys() - used.keys())
    ]
    remarks = [*remarks_on_data(data, models, LINKED), *course.remarks(), *posterior.warnings, *idle]
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
        tuning=setup.tuning,
        converged=course.converged,
        seconds=run.seconds,
        models=tuple(str(own.spec) for own in models),
        warnings=run.warn(remarks),
        interrupted=course.interrupted,
    )


def _set_up(run: Run, space: StateSpace, options: SampleOptions, first: Tree | str) -> RunSetup:
    """What the chains begin with; a run that goes on was perhaps tuned for fewer generations."""
    task, n_chains = run.task, options.runs * options.chains
    trees = (first if isinstance(first, Tree) else task.start_tree(first, number) for number in range(n_chains))
    starts, recorded = [from_tree(tree) for tree in trees], recorded_item(run.checkpoint, TUNING)
    tuning = options.tuning if recorded is None else int(recorded)
    return RunSetup(space, task.parts, starts, options, tuning, task.seed)


def _identify(setup: RunSetup) -> dict[str, Any]:
    """What each generation depends on besides data, start and priors, by which a checkpoint recognises its run."""
    names = "runs", "chains", "temperature", "sample_every", "prior_only"
    options = {name: getattr(setup.options, name) for name in names}
    return {"random streams": "of each run", **options, TUNING: setup.tuning, "moves": setup.move_weights}


def _open_runs(setup: RunSetup, workers: int | None, hardware: Hardware) -> ChainRuns:
    """All runs in this process, or each in one of several; without data a run costs less than a process."""
    slots = Slots(sampling_slots(len(setup.space.names), setup.options.chains))
    most = 1 if setup.options.prior_only else setup.options.runs
    shares = share_hardware(workers, most, setup.parts, list(setup.space.models), hardware, slots)
    return RunsHere(setup, shares[0]) if len(shares) == 1 else RunsInWorkers(setup, shares)
