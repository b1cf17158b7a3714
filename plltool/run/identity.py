"""The identity of a run: all that its result depends on, by which a checkpoint recognises its own run."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from plltool.alignment.facts import digest_data
from plltool.arrays import FloatArray
from plltool.constants import LINKED, VERSION
from plltool.io.checkpoint import Checkpoint
from plltool.model.model import Model
from plltool.model.partition import Dataset
from plltool.processes.ranks import current
from plltool.run.memory import MemoryPlan
from plltool.run.rooting import mean_tree, write_rooted
from plltool.tree.constraint import Constraint
from plltool.tree.duplicates import restore_duplicates
from plltool.tree.topology import Tree
from plltool.tree_search.effort import SearchPlan

DIGEST_LETTERS = 16
RECORDED_APART = ("version", "alignment", "brlen", "seed")  # items of an identity that a record has under other names

_log = logging.getLogger("plltool")


def describe_start(start: str | Tree) -> str:
    """The kind of start tree, or a digest of the tree that was given."""
    if isinstance(start, str):
        return start
    return "tree " + _digest_arrays(start.neighbours, start.edges, start.ends, start.lengths)


def describe_plan(plan: SearchPlan) -> dict[str, Any]:
    """The fields of a plan by their names, and a digest of the constraint."""
    described = {entry.name: getattr(plan, entry.name) for entry in fields(plan)}
    return described | describe_constraint(plan.constraint)


def describe_constraint(constraint: Constraint | None) -> dict[str, Any]:
    """A digest of a constraint."""
    digest = None if constraint is None else "tree " + _digest_arrays(constraint.tips, constraint.parents)
    return {"constraint": digest}


def _digest_arrays(*arrays: npt.NDArray[Any]) -> str:
    content = b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)
    return hashlib.sha256(content).hexdigest()[:DIGEST_LETTERS]


def identify_search(
    data: Dataset,
    models: Sequence[Model],
    plan: SearchPlan,
    start: str | Tree,
    seed: int,
    brlen: str,
) -> dict[str, Any]:
    """All that the result of a search depends on besides the place, as `Checkpoint` takes it.

    Memory and threads are not among it, because they change no bit.
    """
    return {**_identify_task(data, models, plan, seed, brlen), "start": describe_start(start)}


def identify_replicates(
    data: Dataset, models: Sequence[Model], plan: SearchPlan, rapid: bool, seed: int, brlen: str, place: MemoryPlan
) -> dict[str, Any]:
    """All that bootstrap replicates depend on, apart from their number; `place` is the device that makes them."""
    return {
        **_identify_task(data, models, plan, seed, brlen),
        "rapid": rapid,
        **describe_place(place.device_name, place.layouts),
    }


def identify_ultrafast(
    data: Dataset,
    models: Sequence[Model],
    place: MemoryPlan,
    tree: Tree,
    constraint: Constraint | None,
    replicates: int,
    seed: int,
    brlen: str,
) -> dict[str, Any]:
    """All that the ultrafast bootstrap of a tree depends on; `place` is the device that makes the excursions."""
    return {
        **_identify_data(data, models, seed, brlen),
        "tree": describe_start(tree),
        **describe_constraint(constraint),
        "replicates": replicates,
        **describe_place(place.device_name, place.layouts),
    }


def identify_sampling(
    data: Dataset,
    models: Sequence[Model],
    seed: int,
    start: str,
    priors: dict[str, str],
    options: dict[str, Any],
) -> dict[str, Any]:
    """What samples depend on, apart from their number and the place; `start` as `describe_start` describes it."""
    named = {f"prior of {name}": text for name, text in priors.items()}
    return {**_identify_data(data, models, seed, LINKED), "start": start, **named, **options}


def describe_place(device: str, layout: object) -> dict[str, Any]:
    """Where a run takes place. An MPI job may go on with another number of ranks, and so on other devices."""
    return {"device": device, "layout": layout} if current() is None else {"device": "ranks", "layout": "ranks"}


def _identify_task(data: Dataset, models: Sequence[Model], plan: SearchPlan, seed: int, brlen: str) -> dict[str, Any]:
    return {**_identify_data(data, models, seed, brlen), **describe_plan(plan)}


def _identify_data(data: Dataset, models: Sequence[Model], seed: int, brlen: str) -> dict[str, Any]:
    return {
        "version": VERSION,
        "names": data.names_are,
        "constant sites": list(data.constant_sites) or None,
        "alignment": digest_data(data.alignments),
        "parts": "; ".join(f"{part.name}: {part.ranges}" for part in data.parts),
        "model": "; ".join(str(model.spec) for model in models),
        "model values": "; ".join(model.to_string() for model in models),
        "brlen": brlen,
        "seed": seed,
    }


def show_tree(
    tree: Tree, names: Sequence[str], groups: list[list[int]], sites: FloatArray, outgroup: str | Sequence[str] | None
) -> str:
    """A tree without duplicates as Newick text with all `names`; arguments as for `restore_duplicates`, `mean_tree`."""
    whole = tree if tree.n_taxa == len(names) else restore_duplicates(tree, names, groups)
    return write_rooted(mean_tree(whole, sites), outgroup)[0]


def open_checkpoint(
    folder: str | os.PathLike[str] | None,
    identity: dict[str, Any],
    data: Dataset,
    groups: list[list[int]],
    outgroup: str | Sequence[str] | None,
) -> AbstractContextManager[Checkpoint | None]:
    """The checkpoint of a search; the best tree so far that it shows has all taxa. Errors as for `Checkpoint`.

    Parameters
    ----------
    folder : None for no checkpoint
    identity : see `identify_search`
    data : the alignment
    groups : taxa of the whole alignment that each searched taxon stands for
    outgroup : taxa that the best tree so far shows as one clade, if they are one
    """
    if folder is None:
        return nullcontext()
    sites = np.array([part.n_sites for part in data.parts])
    show = partial(show_tree, names=data.names, groups=groups, sites=sites, outgroup=outgroup)
    checkpoint = Checkpoint(folder, identity, show)
    if checkpoint.resumed:
        _log.info("resuming the search from %s", checkpoint.folder)
    return checkpoint
