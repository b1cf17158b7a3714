"""From what a user gives - files, objects, strings - to an alignment, a tree, a model and an engine."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from plltool.alignment.alignment import Alignment, Sequences, to_bytes
from plltool.alignment.partition import Dataset, PartSpec, Scheme, cut_alignment, without_duplicates
from plltool.alignment.patterns import Patterns, empirical_frequencies
from plltool.alignment.states import DNA, detect_states
from plltool.constants import (
    DEFAULT_LINKAGE,
    DEFAULT_MODEL,
    DEFAULT_PROTEIN_MODEL,
    LINKAGES,
    MAX_SCRATCH_SLOTS,
    MAX_STREAMED_SCRATCH_SLOTS,
    MIN_SCRATCH_SLOTS,
    SCALED,
)
from plltool.engine.codes import MASK_STATES
from plltool.engine.layout import Layout
from plltool.engine.opencl.device import list_devices
from plltool.engine.select import DataShape, find_automatic, find_device, make_engine, plan_engine
from plltool.engine.shards import AnyEngine, Shards
from plltool.engine.storage import RequestSize, Slots, Storage, engine_bytes, numpy_bytes, plan_storage
from plltool.errors import DeviceMemoryError, InputError, show_name
from plltool.hardware import Hardware
from plltool.io.alignment_reader import read_sequences
from plltool.io.bridge import (
    DENDROPY_TREE,
    DendropyMatrix,
    alignment_from_dendropy,
    from_dendropy,
    rooted_nodes,
)
from plltool.io.constraint_reader import constraint_from_nodes, parse_constraint, read_constraint
from plltool.io.model_reader import read_model, read_scheme
from plltool.io.newick import is_newick, list_names, parse_newick
from plltool.io.part_trees import read_tree
from plltool.model.components import Components
from plltool.model.model import Model
from plltool.model.specification import ModelSpec
from plltool.search.scan import scan_limit
from plltool.tree.constraint import Constraint, make_constraint
from plltool.tree.duplicates import restrict_tree
from plltool.tree.operations import directed_slots
from plltool.tree.topology import Tree

if TYPE_CHECKING:
    import dendropy

_log = logging.getLogger("plltool")

AlignmentLike: TypeAlias = (
    "str | PathLike[str] | Sequences | Alignment | Dataset | Mapping[str, str | bytes] | DendropyMatrix"
)
TreeLike: TypeAlias = "str | PathLike[str] | Tree | dendropy.Tree"
ModelLike: TypeAlias = "str | PathLike[str] | ModelSpec | Model | Sequence[Model]"
T = TypeVar("T")


def as_data(given: AlignmentLike) -> Sequences | Alignment | Dataset:
    """An alignment from a file, a mapping of names to sequences, a dendropy matrix, or as it is.

    Files and mappings hold DNA or proteins; their letters tell.

    Raises
    ------
    InputError
        If it cannot be read or is no alignment of at least 4 taxa.
    """
    if isinstance(given, (Sequences, Alignment, Dataset)):
        return given
    if isinstance(given, (str, PathLike)):
        return read_sequences(given)
    if isinstance(given, Mapping):
        rows = tuple(map(to_bytes, given.values()))
        return Sequences(tuple(given), rows, "the mapping given", detect_states(rows))
    names, symbols, states = alignment_from_dendropy(given)
    return Sequences(names, tuple(map(to_bytes, symbols)), "the dendropy matrix", states, told=True)


def pose(
    alignment: AlignmentLike, model: ModelLike | None, brlen: str = DEFAULT_LINKAGE
) -> tuple[Dataset, list[Model]]:
    """An alignment cut into the parts that have a model of their own, and these models, for a run to change.

    Parameters
    ----------
    model : see `plltool.api.search`; models one per part go with an alignment that is cut already
    brlen : how the branch lengths of parts hang together, one of LINKAGES: where they are scaled, the models of
        several parts have scalers

    Raises
    ------
    InputError
        If either cannot be used, or not with the other.
    """
    data = as_data(alignment)
    scheme = _as_scheme(model)
    if isinstance(data, Dataset):
        return data, _make_models(model, scheme, data, brlen)
    if len(scheme) > 1 and not isinstance(model, (str, PathLike)):
        found = f"found models of {len(scheme)} parts for an alignment that is not cut"
        raise InputError(f"model: {found}, expected a file that tells their columns, such as the record of a run")
    cut = cut_alignment(data, scheme)
    return cut, _make_models(model, scheme, cut, brlen)


def as_models(given: ModelLike | None, data: Dataset, brlen: str = DEFAULT_LINKAGE) -> list[Model]:
    """Models for the parts of an alignment; arguments and errors as of `pose`.

    Empirical frequencies are those of the part.
    """
    return _make_models(given, _as_scheme(given), data, brlen)


def _make_models(given: ModelLike | None, scheme: Scheme, data: Dataset, brlen: str) -> list[Model]:
    """The models of a scheme, which `given` has been read as; errors as of `pose`."""
    if brlen not in LINKAGES:
        raise InputError(f"brlen: found {brlen!r}, expected one of: {', '.join(LINKAGES)}")
    if len(scheme) != len(data.parts):
        raise InputError(f"{data.source}: found {len(scheme)} models, expected one for each of {len(data.parts)} parts")
    if isinstance(given, Model):
        return [given.copy()]
    if not (given is None or isinstance(given, (str, PathLike, ModelSpec))):
        return [own.copy() for own in given]
    models = []
    for wanted, part in zip(scheme, data.parts, strict=True):
        states = part.alignment.states
        spec = wanted.model or read_model(DEFAULT_MODEL if states is DNA else DEFAULT_PROTEIN_MODEL)
        if spec.data != states.name:
            raise InputError(f"{data.source}: found {states.name} data, expected {spec.data} for model {str(spec)!r}")
        if len(scheme) > 1:
            spec = _link(spec, wanted, brlen)
        models.append(Model(spec, empirical_frequencies(part.alignment, states)))
    return models


def _as_scheme(given: ModelLike | None) -> Scheme:
    if given is None or isinstance(given, ModelSpec):
        return (PartSpec(given),)
    if isinstance(given, Model):
        return (PartSpec(given.spec),)
    if isinstance(given, (str, PathLike)):
        return read_scheme(fspath(given))
    if not given or not all(isinstance(model, Model) for model in given):
        raise InputError(f"model: found {given!r}, expected a string, a ModelSpec, a Model, or a Model for each part")
    return tuple(PartSpec(model.spec) for model in given)


def _link(spec: ModelSpec, wanted: PartSpec, brlen: str) -> ModelSpec:
    """The model of one of several parts, with a scaler if lengths are scaled, and only then."""
    if brlen == SCALED:
        return replace(spec, scaled=True)
    if spec.scaled:
        part = f"{wanted.where}: part {show_name(wanted.name)}"
        raise InputError(f"{part}: found a scaler (+B) in {str(spec)!r}, expected none where lengths are {brlen}")
    return spec


def as_tree(given: TreeLike, names: Sequence[str], several: bool = False) -> Tree:
    """A tree whose tips are numbered as `names`.

    It comes from a file, a Newick string (it begins with a parenthesis or a comment), a dendropy tree, or a Tree,
    which is copied; its branches keep their numbers if its tips have the right ones. With `several` a file may hold one
    tree for each part, see `read_tree`.

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
    if is_newick(given):
        return parse_newick(str(given), "the tree given", names)
    if isinstance(given, (str, PathLike)):
        return read_tree(given, names, unlinked=several)
    return from_dendropy(given, names)


def as_constraint(given: TreeLike, names: Sequence[str]) -> Constraint | None:
    """The constraint that a tree over some of `names` makes, nodes of any degree; None if every tree obeys it.

    The tree comes from a file, a Newick string, a dendropy tree or a Tree, as for `as_tree`.

    Raises
    ------
    InputError
        If it cannot be read, or a taxon in it occurs twice or is none of `names`.
    """
    if isinstance(given, Tree):
        unknown = sorted(set(given.names).difference(names))
        if unknown:
            raise InputError(f"taxa of the constraint that are not in the alignment: {list_names(unknown)}")
        taxa = {tip: names.index(name) for tip, name in enumerate(given.names)}
        return make_constraint(names, given.ends, taxa)
    if is_newick(given):
        return parse_constraint(str(given), "the constraint given", names)
    if isinstance(given, (str, PathLike)):
        return read_constraint(given, names)
    return constraint_from_nodes(rooted_nodes(given, DENDROPY_TREE), DENDROPY_TREE, names)


def leave_out_duplicates(
    data: Dataset, constraint: Constraint | None
) -> tuple[Dataset, list[list[int]], Constraint | None]:
    """As `without_duplicates`, minding what a constraint keeps apart; and the constraint of the taxa that stay."""
    if constraint is None:
        return (*without_duplicates(data), None)
    reduced, groups = without_duplicates(data, constraint.attachments.tolist())
    return reduced, groups, constraint.restrict(reduced.names)


def check_obedience(tree: Tree, constraint: Constraint, what: str) -> None:
    """Raise InputError if a tree, called `what`, breaks a constraint over the same taxa, numbered alike."""
    split = constraint.violated_split(tree)
    if split is not None:
        sides = " | ".join(map(list_names, split))
        raise InputError(f"{what} breaks the constraint, it lacks the split {sides}")


def link_lengths(tree: Tree, n_lengths: int) -> Tree:
    """The tree with so many lengths of each branch: 1, or unlinked as many as there are parts.

    Raises InputError if it has several, but not as many.
    """
    found = tree.lengths[0].size
    if found not in (1, n_lengths):
        several = f" or one for each of {n_lengths} parts" if n_lengths > 1 else ""
        raise InputError(f"the tree given: found lengths of {found} trees, expected those of 1{several}")
    return tree.unlink(n_lengths) if found < n_lengths else tree


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


@dataclass(frozen=True, eq=False)
class _Shard:
    """The parts that one engine holds: those of one number of states and of components.

    `share` is that of the memory of all shards that it takes.
    """

    members: tuple[int, ...]
    patterns: tuple[Patterns, ...]
    components: Components
    share: float

    def shape(self, precision: str) -> DataShape:
        sets = state_sets(self.patterns[0])
        return DataShape(
            self.components.n_states,
            self.components.n_components,
            self.patterns[0].n_taxa,
            tuple(part.n_patterns for part in self.patterns),
            precision,
            0 if sets is None else len(sets),
        )

    def memory(self, hardware: Hardware) -> int | None:
        return None if hardware.memory is None else int(self.share * hardware.memory)


def _make_shards(parts: Sequence[Patterns], models: Sequence[Model]) -> list[_Shard]:
    """In the order of their first parts."""
    members: dict[tuple[str, int], list[int]] = {}
    components = [model.components() for model in models]
    for number, (part, own) in enumerate(zip(parts, components, strict=True)):
        members.setdefault((part.states.name, own.n_components), []).append(number)
    sizes = [part.n_patterns * own.rates.size * own.n_states for part, own in zip(parts, components, strict=True)]
    return [
        _Shard(
            tuple(some),
            tuple(parts[number] for number in some),
            components[some[0]],
            sum(sizes[number] for number in some) / sum(sizes),
        )
        for some in members.values()
    ]


def open_engine(
    parts: Sequence[Patterns], models: Sequence[Model], slots: Slots, hardware: Hardware, profile: bool = False
) -> tuple[AnyEngine, str]:
    """An engine for all parts, and why its device was chosen; `profile` as in `make_engine`.

    Raises
    ------
    DeviceError
        If the device asked for is missing, fails to build the kernels or has not enough memory.
    """
    shards = _make_shards(parts, models)
    engines, reasons = [], []
    for shard in shards:
        shape = shard.shape(hardware.precision)
        engine, reason = make_engine(
            np.concatenate([part.codes for part in shard.patterns], axis=1),
            np.concatenate([part.weights for part in shard.patterns]),
            shape.n_states,
            shape.n_components,
            shape.n_taxa,
            shape.part_patterns,
            slots,
            device=hardware.device,
            precision=hardware.precision,
            vw=hardware.vw,
            threads=hardware.threads,
            memory=shard.memory(hardware),
            profile=profile,
            state_sets=state_sets(shard.patterns[0]),
            share=shard.share,
        )
        engines.append(engine)
        reasons.append(reason)
    if len(engines) == 1:
        return engines[0], reasons[0]
    return Shards(engines, [shard.members for shard in shards]), "; ".join(dict.fromkeys(reasons))


def until_memory_suffices(attempt: Callable[[Hardware], T], hardware: Hardware) -> T:
    """What `attempt` returns, made anew with half as much memory for CLAs as long as a request has too little.

    Answers keep every bit. Where not even one tile fits, `open_engine` says so.

    Parameters
    ----------
    attempt : opens an engine, or a `Likelihood`, in a ``with`` block and asks it; begins each time with the same
    hardware : of the first attempt
    """
    while True:
        try:
            return attempt(hardware)
        except DeviceMemoryError as error:
            held = error.cla_bytes
            if held is None:
                raise
            _log.warning("%s; trying with %d bytes for conditional likelihoods instead of %d", error, held // 2, held)
            hardware = replace(hardware, memory=held // 2)


@dataclass(frozen=True)
class MemoryPlan:
    """What a search would take.

    Attributes
    ----------
    device, kind : where it would run; "numpy", "cpu", "gpu" or what else the device calls itself
    device_name, layouts : what digits depend on: the device without its index, and the layout of each shard
    n_bytes : memory that it would hold there at most
    resident : whether all CLAs fit at once; otherwise patterns are streamed through the memory that there is
    full_bytes : memory of all CLAs at once
    offered_bytes : memory that CLAs may take
    """

    device: str
    kind: str
    device_name: str
    layouts: tuple[dict[str, object], ...]
    n_bytes: int
    resident: bool
    full_bytes: int
    offered_bytes: int


def plan_memory(parts: Sequence[Patterns], models: Sequence[Model], hardware: Hardware) -> MemoryPlan:
    """Where a search would run, and the memory that it would hold there, without starting one.

    Raises
    ------
    DeviceError
        If a device asked for by name is missing, cannot use the settings or has too little memory.
    """
    if hardware.device == "auto":
        devices = find_automatic()[0][:1]
    elif hardware.device == "numpy":
        devices = []
    else:
        devices = [find_device(list_devices()[0], hardware.device)]
    device = devices[0] if devices else None
    slots = search_slots(parts[0].n_taxa)
    plans = []
    for shard in _make_shards(parts, models):
        shape = shard.shape(hardware.precision)
        plan = plan_engine(device, shape, slots, hardware.vw, shard.memory(hardware), shard.share)
        layout, storage = plan.layout, plan.storage
        if device is None:
            n_bytes = numpy_bytes(layout, storage)
        else:
            n_bytes = engine_bytes(layout, storage, requests=search_requests(layout, storage))
        full = plan_storage(layout, slots.choose(layout, sys.maxsize)).n_bytes(layout)
        plans.append((layout.describe(), n_bytes, storage.resident, full, plan.memory))
    layouts, held, resident, full_bytes, offered = zip(*plans, strict=True)
    return MemoryPlan(
        device.label if device else "numpy",
        device.kind if device else "numpy",
        device.full_name if device else "numpy",
        layouts,
        sum(held),
        all(resident),
        sum(full_bytes),
        sum(offered),
    )


STARTS, PERTURBATIONS, DIFFICULTY, BOOTSTRAP, BOOTSTOP, SUPPORTS, TESTS, SIMULATION, ULTRAFAST, RAPID = range(10)


def generator(seed: int, purpose: int, number: int = 0) -> np.random.Generator:
    """The source of choices for a purpose; each start tree has its own, from 0, whatever else a run does."""
    return np.random.default_rng(np.random.SeedSequence([seed, number, purpose]))
