"""A run: what an analysis works on and where, how it goes on with less memory, and what its result says of it."""

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from time import perf_counter
from typing import Any, TypeVar

import numpy as np

from plltool.alignment.facts import digest_data
from plltool.arrays import FloatArray
from plltool.constants import DEFAULT_SEED, VERSION
from plltool.engine.requests import Holder, work_of
from plltool.errors import PlltoolWarning, count
from plltool.hardware import Hardware
from plltool.io.checkpoint import Checkpoint
from plltool.model.describe import describe_model, describe_parameters, format_scheme
from plltool.model.model import Model
from plltool.model.partition import Dataset
from plltool.processes.ranks import current
from plltool.progress import log
from plltool.run.engines import settle_share
from plltool.run.inputs import TreeLike
from plltool.run.likelihood import Likelihood
from plltool.run.memory import plan_memory, until_answered
from plltool.run.messages import Announced, announce_engine
from plltool.run.results import PartResult
from plltool.run.rooting import OutgroupLike, as_outgroup, mean_tree, write_rooted
from plltool.run.task import Task
from plltool.tree.topology import Tree

T = TypeVar("T")


class Run:
    """One run of an analysis.

    Parameters
    ----------
    data, models : the alignment, and the models of its parts with their start values
    brlen, seed, constraint, all_taxa : see `Task.of`, also for errors
    hardware : what the user asks for
    began : when the run began, by `perf_counter`
    outgroup : see `as_outgroup`, also for errors
    checkpoint : folder that keeps what is reached; None keeps nothing

    Attributes
    ----------
    task : what the engines of the run hold
    known : the fields of a result that tell of the engine, as far as it has been used
    fallback : why numpy replaces an OpenCL device, if it does
    """

    def __init__(
        self,
        data: Dataset,
        models: list[Model],
        brlen: str,
        hardware: Hardware,
        began: float,
        *,
        seed: int = DEFAULT_SEED,
        constraint: TreeLike | None = None,
        all_taxa: bool = False,
        outgroup: OutgroupLike | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ):
        self.data, self.brlen, self.checkpoint = data, brlen, checkpoint
        self.outgroup = as_outgroup(outgroup, data.names)
        self.task = Task.of(data, models, seed, brlen, constraint, all_taxa)
        self.known: dict[str, Any] = {}
        self.fallback: list[str] = []
        self._place: dict[str, Any] = {}
        self._has_double = True
        self._asked = hardware
        self._began = began
        self._part_sites = np.array([part.n_sites for part in data.parts])

    @cached_property
    def hardware(self) -> Hardware:
        """What the user asks for, with the shares by which several devices divide the patterns, see `settle_share`."""
        return settle_share(self.task.parts, self.task.models, self._asked, self.checkpoint)

    @property
    def seconds(self) -> float:
        return perf_counter() - self._began

    def announce_data(self, defaults: Sequence[Model] = ()) -> None:
        """Log the size of the data, warnings about them, and the models if they are the defaults."""
        data, n_parts, n_patterns = self.data, len(self.task.parts), self.task.n_patterns
        for warning in data.warnings:
            log.warning(warning)
        several = f", {n_parts} partitions" if n_parts > 1 else ""
        n_added = sum(data.constant_sites)
        added = f" with {n_added} constant ones added" if n_added else ""
        weighted = f" in {data.n_columns} columns with weights" if data.is_weighted else ""
        size = f"{data.n_sequences} taxa, {data.n_sites} sites{weighted}{added}"
        log.info("alignment: %s: %s, %s%s", data.source, size, count(n_patterns, "pattern"), several)
        n_duplicates = data.n_taxa - len(self.task.names)
        if n_duplicates:
            what = "1 duplicate sequence is" if n_duplicates == 1 else f"{n_duplicates} duplicate sequences are"
            log.info("%s left out of the search and added back at the end", what)
        if defaults:
            shown = ", ".join(dict.fromkeys(str(model.spec) for model in defaults))
            log.info("model: %s, the default; search --model auto chooses one", shown)

    def ask(self, attempt: Callable[[Hardware], T]) -> T:
        """What `attempt` returns, see `until_answered`; the next begins with the memory and device that answered."""

        def here(hardware: Hardware) -> T:
            self.hardware = hardware
            return attempt(hardware)

        return until_answered(here, self.hardware, self._asked)

    def ask_likelihood(self, ask: Callable[[Likelihood], T], tree: TreeLike, models: Sequence[Model], **held: Any) -> T:
        """What `ask` returns of the likelihood of a tree of all taxa, which holds what these keywords say."""

        def attempt(hardware: Hardware) -> T:
            with Likelihood(self.data, tree, models, brlen=self.brlen, **held, **asdict(hardware)) as likelihood:
                return ask(likelihood)

        return self.ask(attempt)

    def _lnl_in_double(self, tree: Tree, models: Sequence[Model]) -> tuple[FloatArray, str]:
        """The lnL of the parts, computed in double precision, and the device that did: the best one, or numpy."""

        def attempt(hardware: Hardware) -> tuple[FloatArray, str]:
            how: dict[str, Any] = {"brlen": self.brlen, "lnl_only": True, **asdict(hardware)}
            with Likelihood(self.data, tree, models, **how) as likelihood:
                return likelihood.part_lnl(), likelihood.engine.device_name

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PlltoolWarning)  # it suffices if there is numpy
            hardware = replace(self._asked, device="auto", precision="double", vw=None, share=None)
            lnls, device = until_answered(attempt, hardware)
        log.info("lnL in double precision: %.6f, on %s", lnls.sum(), device)
        return lnls, device

    def engine_opened(self, engine: Announced, reason: str, hardware: Hardware) -> None:
        """Log the device of an engine, and why it was chosen."""
        self.fallback = announce_engine(engine, reason, hardware)
        self.known = {"device": engine.device_name, "driver": engine.driver, "reason": reason}

    def engine_used(self, engine: Holder) -> None:
        """Keep what a result tells of the data and of an engine that has done its work."""
        self.known |= {
            "data": self.data,
            "n_patterns": engine.n_patterns,
            "layout": engine.describe(),
            "counters": work_of(engine).as_dict(),
        }
        self._has_double = engine.has_double

    @property
    def identity(self) -> dict[str, Any]:
        """What every result depends on, besides the place."""
        data, models = self.data, self.task.models
        return {
            "version": VERSION,
            "names": data.names_are,
            "constant sites": list(data.constant_sites) or None,
            "alignment": digest_data(data.alignments),
            "parts": "; ".join(f"{part.name}: {part.ranges}" for part in data.parts),
            "model": "; ".join(str(model.spec) for model in models),
            "model values": "; ".join(model.to_string() for model in models),
            "brlen": self.brlen,
            "seed": self.task.seed,
        }

    def place(self, device_name: str, layout: object) -> dict[str, Any]:
        """Where the run takes place; after a device has been lost, where it did before.

        So a device that takes over goes on from the checkpoint, and an MPI job with another number of ranks.
        """
        if current() is not None:
            device_name = layout = "ranks"
        self._place = self._place or {"share": self.hardware.share, "device": device_name, "layout": layout}
        return self._place

    @property
    def planned_place(self) -> dict[str, Any]:
        """The `place` of the engines of a search, before they are opened."""
        plan = plan_memory(self.task.parts, self.task.models, self.hardware)
        return self.place(plan.device_name, plan.layouts)

    def open_checkpoint(self, identity: dict[str, Any], shows_best: bool = False) -> Checkpoint | None:
        """The checkpoint of a run with this identity, which may show the best tree so far, with all taxa.

        None if nothing is to be kept. Errors as for `Checkpoint`.
        """
        if self.checkpoint is None:
            return None
        return Checkpoint(self.checkpoint, identity, self._show if shows_best else None)

    def _show(self, tree: Tree) -> str:
        return write_rooted(mean_tree(self.task.whole(tree), self._part_sites), self.outgroup)[0]

    def describe(
        self,
        tree: Tree,
        models: Sequence[Model],
        part_lnls: FloatArray,
        first: Sequence[str] = (),
        then: Sequence[str] = (),
    ) -> dict[str, Any]:
        """The fields of a `Result` that tell of its tree, of the engine and of the run.

        If the engine had no double precision, they are the lnL as well, computed again where there is. Warnings are
        logged: the `first` ones, one of the outgroup, and the others.
        """
        lnl: dict[str, Any] = {}
        if not self._has_double:
            part_lnls, device = self._lnl_in_double(tree, models)
            lnl = {"lnl": float(part_lnls.sum()), "lnl_device": device}
        described, rooting = self._describe_tree(tree, models, part_lnls)
        warnings = self.warn([*first, *rooting, *then])
        return {**described, **lnl, **self.known, "brlen": self.brlen, "seconds": self.seconds, "warnings": warnings}

    def _describe_tree(self, tree: Tree, models: Sequence[Model], lnls: FloatArray) -> tuple[dict[str, Any], list[str]]:
        """The fields that tell of the tree, of its models and of the parts, and warnings of the outgroup."""
        shown, parts = mean_tree(tree, self._part_sites), []
        newick, remarks = write_rooted(shown, self.outgroup)
        own_trees: list[str | None] = [None] * len(models)
        if tree.lengths.ndim > 1:
            own_trees = [write_rooted(tree.with_lengths(own), self.outgroup)[0] for own in tree.lengths.T]
        of_parts = zip(self.data.parts, self.task.parts, models, lnls.tolist(), own_trees, strict=True)
        for part, patterns, model, lnl, own in of_parts:
            sizes = part.name, part.ranges, part.n_sites, patterns.n_patterns
            parts.append(PartResult(*sizes, model.to_string(), model.scaler, lnl, describe_model(model), own))
        fields = {"tree": shown, "newick": newick, "model": format_scheme(self.data, models), "models": tuple(models)}
        fields |= {"parts": tuple(parts), "parameters": describe_parameters(models), "outgroup": self.outgroup}
        return fields, remarks

    def warn(self, remarks: Sequence[str]) -> tuple[str, ...]:
        """Log the remarks; returns all warnings of the run."""
        for remark in remarks:
            log.warning(remark)
        return (*self.data.warnings, *self.fallback, *remarks)
