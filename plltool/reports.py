"""What runs have in common to tell: log lines at their beginning, and the fields that all results share."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np

from plltool.alignment.partition import Dataset
from plltool.alignment.patterns import Patterns
from plltool.constants import DEFAULT_BRANCH_LENGTH, MIN_BRANCH_LENGTH
from plltool.engine.shards import AnyEngine
from plltool.model.model import SCALER, Model
from plltool.results import PartResult, describe_parameters, format_scheme, mean_tree, write_rooted
from plltool.tree.topology import FloatArray, Tree

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


def announce_engine(engine: AnyEngine, reason: str) -> None:
    """Log what computes it, and whether its memory is short."""
    _log.info("device: %s", reason)
    if not engine.resident:
        share = 100 * engine.held_share
        _log.info("memory: holds the conditional likelihoods of %.2g %% of the patterns at a time", share)


def warn(data: Dataset, remarks: Sequence[str]) -> tuple[str, ...]:
    """Log the remarks made during a run and return all warnings."""
    for remark in remarks:
        _log.warning(remark)
    return (*data.warnings, *remarks)


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


def describe(
    data: Dataset,
    patterns: Sequence[Patterns],
    models: Sequence[Model],
    tree: Tree,
    lnls: FloatArray,
    outgroup: Sequence[str] | None,
) -> tuple[dict[str, Any], list[str]]:
    """The fields of a result that tell of its tree, models and parts, and warnings."""
    unlinked = tree.lengths.ndim > 1
    shown = mean_tree(tree, np.array([len(part.sites) for part in data.parts]))
    newick, remarks = write_rooted(shown, outgroup)
    parts = tuple(
        PartResult(
            name=part.name,
            sites=part.ranges,
            n_sites=len(part.sites),
            n_patterns=own.n_patterns,
            model=model.to_string(),
            scaler=model.scaler,
            lnl=lnl,
            parameters=model.describe(),
            newick=write_rooted(tree.with_lengths(tree.lengths[:, number]), outgroup)[0] if unlinked else None,
        )
        for number, (part, own, model, lnl) in enumerate(zip(data.parts, patterns, models, lnls.tolist(), strict=True))
    )
    scheme = format_scheme(data, models)
    fields = {"tree": shown, "newick": newick, "model": scheme, "models": tuple(models), "parts": parts}
    return fields | {"parameters": describe_parameters(models)}, remarks


def facts(data: Dataset, engine: AnyEngine, reason: str) -> dict[str, Any]:
    """The fields that every result takes from its alignment and engine."""
    return {
        "n_taxa": data.n_taxa,
        "n_sites": data.n_sites,
        "n_patterns": engine.n_patterns,
        "device": engine.device_name,
        "driver": engine.driver,
        "reason": reason,
        "layout": engine.describe(),
        "counters": engine.counters.as_dict(),
    }
