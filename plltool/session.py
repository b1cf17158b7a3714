"""From what a user gives - files, objects, strings - to an alignment, a tree, a model and an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from plltool.alignment.alignment import Alignment, make_alignment, show_name
from plltool.alignment.patterns import Patterns, empirical_frequencies
from plltool.constants import MAX_SCRATCH_BYTES, MAX_SCRATCH_SLOTS, MIN_SCRATCH_SLOTS
from plltool.engine.base import Engine
from plltool.engine.layout import Layout
from plltool.engine.opencl.device import list_devices
from plltool.engine.select import (
    NUMPY_DEFAULT_LANES,
    choose_layout,
    engine_bytes,
    find_automatic,
    find_device,
    make_engine,
)
from plltool.errors import InputError
from plltool.hardware import Hardware
from plltool.io.alignment_reader import read_alignment
from plltool.io.bridge import alignment_from_dendropy, from_dendropy
from plltool.io.newick import parse_newick, read_newick
from plltool.model.model import Model
from plltool.model.spec import ModelSpec, parse_model
from plltool.tree.duplicates import restrict_tree
from plltool.tree.operations import directed_slots
from plltool.tree.topology import Tree

if TYPE_CHECKING:
    import dendropy

AlignmentLike: TypeAlias = "str | PathLike[str] | Alignment | Mapping[str, str | bytes] | dendropy.DnaCharacterMatrix"
TreeLike: TypeAlias = "str | PathLike[str] | Tree | dendropy.Tree"
ModelLike: TypeAlias = str | ModelSpec | Model

REAL_BYTES = 8  # of a CLA entry, at most


def as_alignment(given: AlignmentLike) -> Alignment:
    """An alignment from a file, a mapping of names to sequences, a dendropy DNA matrix, or as it is.

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
        return make_alignment(list(given), list(given.values()), "the mapping given")
    names, sequences = alignment_from_dendropy(given)
    return make_alignment(names, sequences, "the dendropy matrix")


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


def as_model(given: ModelLike, alignment: Alignment) -> Model:
    """A model of its own for a run: from a string such as "GTR+F+G4", a specification, or a copy of a Model.

    Empirical frequencies are those of the whole alignment. Raises InputError for a string that is no model.
    """
    if isinstance(given, Model):
        return given.copy()
    spec = parse_model(given) if isinstance(given, str) else given
    return Model(spec, empirical_frequencies(alignment, alignment.states))


def scratch_slots(patterns: Patterns, n_states: int, n_components: int) -> int:
    """CLAs that a search holds besides `directed_slots`: as many as it can use, limited by MAX_SCRATCH_BYTES."""
    slot_bytes = patterns.n_patterns * n_states * n_components * REAL_BYTES
    useful = min(MAX_SCRATCH_SLOTS, directed_slots(patterns.n_taxa), MAX_SCRATCH_BYTES // slot_bytes)
    return max(MIN_SCRATCH_SLOTS, useful)


def search_slots(patterns: Patterns, n_states: int, n_components: int) -> int:
    """All CLAs of a search."""
    return directed_slots(patterns.n_taxa) + scratch_slots(patterns, n_states, n_components)


def open_engine(patterns: Patterns, model: Model, n_slots: int, hardware: Hardware) -> tuple[Engine, str]:
    """An engine for one part, and why its device was chosen.

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
        n_slots,
        device=hardware.device,
        precision=hardware.precision,
        vw=hardware.vw,
        threads=hardware.threads,
    )


def plan_memory(patterns: Patterns, model: Model, hardware: Hardware) -> tuple[str, int]:
    """Where a search would run, and the bytes that it would hold there, without starting one.

    Raises
    ------
    DeviceError
        If a device asked for by name is missing or cannot use the settings.
    """
    components = model.components()
    n_slots = search_slots(patterns, components.n_states, components.n_components)
    parts = (patterns.n_patterns,)
    shape = components.n_states, components.n_components, patterns.n_taxa, parts
    if hardware.device == "auto":
        devices = find_automatic()[0][:1]
    elif hardware.device == "numpy":
        devices = []
    else:
        devices = [find_device(list_devices()[0], hardware.device)]
    if not devices:
        lanes = hardware.vw or NUMPY_DEFAULT_LANES
        return "numpy", engine_bytes(Layout(*shape, lanes, precision=hardware.precision), n_slots)
    layout = choose_layout(devices[0], *shape, precision=hardware.precision, vw=hardware.vw, n_slots=n_slots)
    return devices[0].label, engine_bytes(layout, n_slots)


def start_generator(seed: int, start: int) -> np.random.Generator:
    """The source of the choices of start tree number `start`, from 0; each has its own."""
    return np.random.default_rng(np.random.SeedSequence([seed, start]))
