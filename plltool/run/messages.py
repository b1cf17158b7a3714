"""Messages that runs share: the device, and warnings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from plltool.constants import DEFAULT_BRANCH_LENGTH, MIN_BRANCH_LENGTH
from plltool.engine.select import NUMPY_REASON
from plltool.hardware import Hardware
from plltool.model.describe import shorten_model
from plltool.model.model import SCALER, Model
from plltool.optimise.polish import Other
from plltool.progress import log
from plltool.tree.topology import Tree


class Announced(Protocol):
    """An engine, or what is known of one in another process."""

    @property
    def device_name(self) -> str: ...

    @property
    def launch_share(self) -> float: ...


def announce_engine(engine: Announced, reason: str, hardware: Hardware) -> list[str]:
    """Log the device, and whether its memory is short.

    Returns the reason if numpy replaces an OpenCL device. It is not logged, because a `PlltoolWarning` has said it.
    """
    fallback = [reason] if hardware.is_auto and reason.startswith(NUMPY_REASON) else []
    if not fallback:
        log.info("device: %s", reason)
    if engine.launch_share < 1.0:
        share = 100 * engine.launch_share
        log.info("memory: the patterns do not all fit; %.2g %% of them are processed at a time", share)
    return fallback


def remarks_on_optima(lnl: float, tree: Tree, other: Other) -> list[str]:
    """A warning if another start led to an optimum with lengths of another sum, see `plltool.optimise.polish`."""
    if np.isnan(other.lnl):
        return []
    return [
        f"lnL has two optima in the branch lengths: {lnl:.2f} with a sum of {tree.lengths.sum():.4g}, which is kept,"
        f" and about {other.lnl:.2f} with a sum of {other.length:.4g}"
    ]


def remarks_on_lengths(tree: Tree) -> list[str]:
    """A warning if all branches have the default length; branches that resolve a multifurcation do not count."""
    own = tree.lengths[tree.lengths != MIN_BRANCH_LENGTH]
    if not own.size or np.any(own != DEFAULT_BRANCH_LENGTH):
        return []
    return [f"all branch lengths are {DEFAULT_BRANCH_LENGTH}, the default; the tree may have no branch lengths"]


def remarks_on_values(models: Sequence[Model]) -> list[str]:
    """A warning for each model whose free parameters have no values, for runs that optimise none."""
    remarks = []
    for model in models:
        free = [group for group in model.free_parameters if group != SCALER]
        if free:
            listed = " and ".join(filter(None, (", ".join(free[:-1]), free[-1])))
            used = shorten_model(model.to_string())
            remarks.append(f"{model.spec.shown} has no values for {listed}; it is used as {used}")
    if any(SCALER in model.free_parameters for model in models):
        remarks.append("scalers of the branch lengths of partitions have no values; 1 is used")
    return list(dict.fromkeys(remarks))
