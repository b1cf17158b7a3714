"""From what a user gives - files, objects, strings - to an alignment, a tree, a model and an engine."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from plltool.alignment.alignment import Alignment, make_alignment, show_name
from plltool.alignment.patterns import Patterns, empirical_frequencies
from plltool.alignment.states import DNA, detect_states
from plltool.constants import (
    DEFAULT_MODEL,
    DEFAULT_PROTEIN_MODEL,
    MAX_SCRATCH_SLOTS,
    MAX_STREAMED_SCRATCH_SLOTS,
    MIN_SCRATCH_SLOTS,
)
from plltool.engine.base import Engine
from plltool.engine.codes import MASK_STATES
from plltool.engine.layout import Layout
from plltool.engine.opencl.device import list_devices
from plltool.engine.select import DataShape, find_automatic, find_device, make_engine, plan_engine
from plltool.engine.storage import RequestSize, Slots, Storage, engine_bytes, numpy_bytes, plan_storage
from plltool.errors import InputError
from plltool.hardware import Hardware
from plltool.io.alignment_reader import read_alignment
from plltool.io.bridge import DendropyMatrix, alignment_from_dendropy, from_dendropy
from plltool.io.model_reader import read_model
from plltool.io.newick import parse_newick, read_newick
from plltool.model.model import Model
from plltool.model.specification import ModelSpec
from plltool.search.scan import scan_limit
from plltool.tree.duplicates import restrict_tree
from plltool.tree.operations import directed_slots
from plltool.tree.topology import Tree

if TYPE_CHECKING:
    import dendropy

AlignmentLike: TypeAlias = "str | PathLike[str] | Alignment | Mapping[str, str | bytes] | DendropyMatrix"
TreeLike: TypeAlias = "str | PathLike[str] | Tree | dendropy.Tree"
ModelLike: TypeAlias = str | ModelSpec | Model


def as_alignment(given: AlignmentLike) -> Alignment:
    """An alignment from a file, a mapping of names to sequences, a dendropy matrix, or as it is.

    Files and mappings hold DNA or proteins; their letters tell.

    Raises
    ------
    InputError
        If it cannot be read or is no alignment of at least 4 taxa.
    """
    if isinstance(given, Alignment):
        return given
    if isinstance(given, (str, PathLike)):
        return read_alignment(given)
    if isinstance(given, Mapping):
        sequences = [row.encode("utf-8", "surrogateescape") if isinstance(row, str) else row for row in given.values()]
        return make_alignment(list(given), sequences, "the mapping given", detect_states(sequences))
    names, symbols, states = alignment_from_dendropy(given)
    return make_alignment(names, symbols, "the dendropy matrix", states)


def as_tree(given: TreeLike, names: Sequence[str]) -> Tree:
    """A tree whose tips are numbered as `names`.

    It comes from a file, a Newick string (it begins with a parenthesis or a comment), a dendropy tree, or a Tree,
    which is copied; its branches keep their numbers if its tips have the right ones.

    Raises
    ------
    InputError
        If it cannot be read, is not binary, or its taxa are not `names`.
    """
    if isinstance(given, Tree):
        differing = sorted(set(given.names) ^ set(names))
        if differing:
            where = "the alignment" if differing[0] in given.names else "the tree"
            missing = f"{show_name(differing[0])} is missing from {where}"
            raise InputError(f"the taxa of the tree are not those of the alignment: {missing}")
        return given.copy() if given.names == tuple(names) else restrict_tree(given, names)
    if isinstance(given, str) and given.lstrip().startswith(("(", "[")):
        return parse_newick(given, "the tree given", names)
    if isinstance(given, (str, PathLike)):
        return read_newick(given, names)
    return from_dendropy(given, names)


def as_model(given: ModelLike | None, alignment: Alignment) -> Model:
    """A model of its own for a run: from a string such as "GTR+F+G4", a specification, or a copy of a Model.

    A string may also name a file, see `read_model`; None is the usual model of the data. Empirical frequencies are
    those of the whole alignment. Raises InputError for a string that is no model, and for a model of other data.
    """
    if given is None:
        given = DEFAULT_MODEL if alignment.states is DNA else DEFAULT_PROTEIN_MODEL
    if isinstance(given, str):
        given = read_model(given)
    spec = given.spec if isinstance(given, Model) else given
    if spec.data != alignment.states.name:
        raise InputError(
            f"{alignment.source}: found {alignment.states.name} data, expected {spec.data} for model {str(spec)!r}"
            " (--data-type says what the data are, if they were taken for something else)"
        )
    if isinstance(given, Model):
        return given.copy()
    return Model(spec, empirical_frequencies(alignment, alignment.states))


def state_sets(patterns: Patterns) -> npt.NDArray[np.bool_] | None:
    """The table of state sets that the codes index, as an engine takes it; None where codes are bit masks."""
    return patterns.states.state_sets if patterns.states.n_states > MASK_STATES else None


CHAIN_LENGTH = 4  # newviews from the gap to an insertion that is optimised


def search_slots(n_taxa: int) -> Slots:
    """CLAs of a search: all directed ones and scratch, with more of which more insertions share a launch."""
    directed = directed_slots(n_taxa)
    extra, streamed = (
        max(0, min(most, directed) - MIN_SCRATCH_SLOTS) for most in (MAX_SCRATCH_SLOTS, MAX_STREAMED_SCRATCH_SLOTS)
    )
    return Slots(directed + MIN_SCRATCH_SLOTS, extra, streamed)


def search_requests(layout: Layout, storage: Storage) -> list[RequestSize]:
    """The largest requests of a search, by kind.

    How far walks go depends on the data: as many newviews as insertions, and chains of CHAIN_LENGTH, are typical.
    """
    n = layout.n_taxa
    branches, directed = 2 * n - 3, directed_slots(n)
    scratch = storage.n_slots - directed
    scan_lengths = 2 * branches + directed
    # what comes along where CLAs do not outlive a launch
    newviews, lengths = (0, 0) if storage.resident else (directed, branches)
    chains, chain_lengths = (0, 0) if storage.resident else (CHAIN_LENGTH * scratch, scan_lengths)
    squares = layout.n_components * layout.n_states**2
    steps = min(scan_limit(n, len(layout.groups)), 4 * (n - 2) * (n - 3))  # all insertions of all prunes
    return [
        RequestSize(newviews + directed, lengths + directed, 3 * directed, decays=True),
        RequestSize(newviews + directed + 2 * steps, lengths + scan_lengths, steps),
        RequestSize(newviews + chains + scratch, lengths + chain_lengths + 3 * scratch, 10 * scratch, slopes=True),
        RequestSize(directed + branches, branches, 3 * branches, decays=True),
        RequestSize(directed + branches, branches, 1 + squares + squares // layout.n_states, True, responses=True),
    ]


def open_engine(
    patterns: Patterns, model: Model, slots: Slots, hardware: Hardware, profile: bool = False
) -> tuple[Engine, str]:
    """An engine for one part, and why its device was chosen; `profile` as in `make_engine`.

    Raises
    ------
    DeviceError
        If the device asked for is missing, fails to build the kernels or has not enough memory.
    """
    components = model.components()
    return make_engine(
        patterns.codes,
        patterns.weights,
        components.n_states,
        components.n_components,
        patterns.n_taxa,
        (patterns.n_patterns,),
        slots,
        device=hardware.device,
        precision=hardware.precision,
        vw=hardware.vw,
        threads=hardware.threads,
        memory=hardware.memory,
        profile=profile,
        state_sets=state_sets(patterns),
    )


@dataclass(frozen=True)
class MemoryPlan:
    """What a search would take.

    Attributes
    ----------
    device : where it would run
    n_bytes : memory that it would hold there at most
    resident : whether all CLAs fit at once; otherwise patterns are streamed through the memory that there is
    full_bytes : memory of all CLAs at once
    """

    device: str
    n_bytes: int
    resident: bool
    full_bytes: int


def plan_memory(patterns: Patterns, model: Model, hardware: Hardware) -> MemoryPlan:
    """Where a search would run, and the memory that it would hold there, without starting one.

    Raises
    ------
    DeviceError
        If a device asked for by name is missing, cannot use the settings or has too little memory.
    """
    components = model.components()
    parts = (patterns.n_patterns,)
    n_codes = 0 if state_sets(patterns) is None else patterns.states.n_codes
    shape = DataShape(components.n_states, components.n_components, patterns.n_taxa, parts, hardware.precision, n_codes)
    if hardware.device == "auto":
        devices = find_automatic()[0][:1]
    elif hardware.device == "numpy":
        devices = []
    else:
        devices = [find_device(list_devices()[0], hardware.device)]
    device = devices[0] if devices else None
    slots = search_slots(patterns.n_taxa)
    plan = plan_engine(device, shape, slots, hardware.vw, hardware.memory)
    layout, storage = plan.layout, plan.storage
    if device is None:
        name, n_bytes = "numpy", numpy_bytes(layout, storage)
    else:
        name, n_bytes = device.label, engine_bytes(layout, storage, requests=search_requests(layout, storage))
    full = plan_storage(layout, slots.choose(layout, sys.maxsize))
    return MemoryPlan(name, n_bytes, storage.resident, full.n_bytes(layout))


STARTS, PERTURBATIONS, DIFFICULTY = range(3)  # what randomness is for


def generator(seed: int, purpose: int, number: int = 0) -> np.random.Generator:
    """The source of choices for a purpose; each start tree has its own, from 0, whatever else a run does."""
    return np.random.default_rng(np.random.SeedSequence([seed, number, purpose]))
