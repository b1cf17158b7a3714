"""What all runs say: log lines at the beginning, and warnings."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np

from plltool.alignment.partition import Dataset
from plltool.alignment.patterns import Patterns
from plltool.constants import DEFAULT_BRANCH_LENGTH, MIN_BRANCH_LENGTH
from plltool.engine.shards import AnyEngine
from plltool.hardware import Hardware
from plltool.model.model import SCALER, Model
from plltool.tree.topology import Tree

_log = logging.getLogger("plltool")


def announce_data(data: Dataset, parts: Sequence[Patterns]) -> None:
    """Log what is about to be computed."""
    for warning in data.warnings:
        _log.warning(warning)
    n_patterns = sum(part.n_patterns for part in parts)
    several = f", {len(parts)} parts" if len(parts) > 1 else ""
    size = f"{data.n_taxa} taxa, {data.n_sites} sites, {n_patterns} patterns{several}"
    _log.info("alignment: %s: %s", data.source, size)
    n_duplicates = data.n_taxa - parts[0].n_taxa
    if n_duplicates:
        _log.info("%d duplicates of other sequences are left out and put back at the end", n_duplicates)


def announce_engine(engine: AnyEngine, reason: str, hardware: Hardware) -> list[str]:
    """Log what computes it, and whether its memory is short.

    Returns
    -------
    The reason if numpy had to take the place of an OpenCL device. It is not logged: a `PlltoolWarning` has told it.
    """
    fallback = [reason] if hardware.device.strip().lower() == "auto" and "numpy" in engine.device_name else []
    if not fallback:
        _log.info("device: %s", reason)
    if not engine.resident:
        share = 100 * engine.held_share
        _log.info("memory: holds the conditional likelihoods of %.2g %% of the patterns at a time", share)
    return fallback


def warn(data: Dataset, told: Sequence[str], remarks: Sequence[str]) -> tuple[str, ...]:
    """Log the remarks made during a run and return all warnings; those of the data, and `told`, are known already."""
    for remark in remarks:
        _log.warning(remark)
    return (*data.warnings, *told, *remarks)


def remarks_on_lengths(tree: Tree) -> list[str]:
    """A warning if all branches have the length that those get that have none, but for what resolves a node."""
    own = tree.lengths[tree.lengths != MIN_BRANCH_LENGTH]
    if not own.size or np.any(own != DEFAULT_BRANCH_LENGTH):
        return []
    return [f"all branch lengths are {DEFAULT_BRANCH_LENGTH}; does the tree have none?"]


def remarks_on_values(models: Sequence[Model]) -> list[str]:
    """A line for each model, of one part each, with free parameters that nobody gave a value, where none are found."""
    remarks = []
    for model in models:
        free = [group for group in model.free_parameters if group != SCALER]
        if free:
            listed = " and ".join(free)
            remarks.append(f"{str(model.spec)!r} has no values for {listed}, used as they are: {model.to_string()}")
    if any(SCALER in model.free_parameters for model in models):
        remarks.append("scalers of the branch lengths of parts have no values, used as 1")
    return list(dict.fromkeys(remarks))
