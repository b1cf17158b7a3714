"""The identity of a run: all that its result depends on, by which a checkpoint recognises its own run."""

from __future__ import annotations

import hashlib
import platform
from contextlib import suppress
from importlib import metadata
from typing import Any

import numpy as np
import numpy.typing as npt

from plltool.processes.ranks import current
from plltool.tree.constraint import Constraint
from plltool.tree.topology import Tree
from plltool.tree_search.effort import SearchPlan

DIGEST_LETTERS = 16
LIBRARIES = ("numpy", "scipy", "pyopencl")
RECORDED_APART = ("version", "alignment", "brlen", "seed")  # items of an identity that a record has under other names


def describe_start(start: str | Tree) -> str:
    """The kind of start tree, or a digest of the tree that was given."""
    if isinstance(start, str):
        return start
    return "tree " + _digest_arrays(start.neighbours, start.edges, start.ends, start.lengths)


def describe_plan(plan: SearchPlan) -> dict[str, Any]:
    """The fields of a plan by their names, and a digest of the constraint."""
    return vars(plan) | describe_constraint(plan.constraint)


def describe_constraint(constraint: Constraint | None) -> dict[str, Any]:
    digest = None if constraint is None else "tree " + _digest_arrays(constraint.tips, constraint.parents)
    return {"constraint": digest}


def _digest_arrays(*arrays: npt.NDArray[Any]) -> str:
    content = b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)
    return hashlib.sha256(content).hexdigest()[:DIGEST_LETTERS]


def describe_place(device: str, layout: object) -> dict[str, Any]:
    """Where a run takes place. An MPI job may go on with another number of ranks, and so on other devices."""
    return {"device": device, "layout": layout} if current() is None else {"device": "ranks", "layout": "ranks"}


def software_versions() -> dict[str, str]:
    """Versions of Python and of the libraries on which digits may depend."""
    found = {"Python": platform.python_version()}
    for library in LIBRARIES:
        with suppress(metadata.PackageNotFoundError):
            found[library] = metadata.version(library)
    return found
