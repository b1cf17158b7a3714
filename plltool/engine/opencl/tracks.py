"""Tracks: what the work-groups of one launch do at the same time, on the same patterns.

A row of the table is a track: its first instruction and the one behind its last, and by how much the slots it writes to
and reads from, its P set and its values lie behind those that the instructions name.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plltool.engine.program import Request

IntArray = npt.NDArray[np.int32]

TRACK_WORDS = 5


def plan_tracks(request: Request, n_slots: int, n_spans: int, wanted_groups: int) -> IntArray:
    """(n, TRACK_WORDS) tracks of about equally many instructions: so many that all spans make `wanted_groups`.

    Each track writes to scratch of its own, so that there are no more than the slots have room for.
    """
    n = min(-(-wanted_groups // n_spans), len(request.pieces))
    if request.scratch:
        n = min(n, (n_slots - request.scratch.start) // len(request.scratch))
    end = len(request.program)
    cuts = np.arange(max(n, 1)) * end // max(n, 1)
    begins = np.unique(request.pieces[np.searchsorted(request.pieces, cuts, side="right") - 1])
    tracks = np.zeros((len(begins), TRACK_WORDS), dtype=np.int32)
    tracks[:, 0], tracks[:, 1] = begins, np.append(begins[1:], end)
    tracks[:, 2] = len(request.scratch) * np.arange(len(begins))
    return tracks


def model_tracks(n_instructions: int, n_models: int, n_slots: int, n_parts: int) -> IntArray:
    """(n_models, TRACK_WORDS): the whole program under each model, in slots of its own; it makes one value."""
    return np.array([[0, n_instructions, m * n_slots, m * n_parts, m] for m in range(n_models)], dtype=np.int32)
