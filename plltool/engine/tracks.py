"""Tracks: programs that run beside each other in one launch, each with branch lengths and a model of its own.

The chains of a sampler differ in topology, lengths and parameters and share nothing but the tips. Each is a track: it
names slots of its own, and its CLAs outlive the launch, so that the next one makes only those that a proposal changed.
P matrices are those of the branches that a track's program reads; a program that makes few CLAs needs few.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plltool.arrays import FloatArray, IntArray

PACKED_LENGTH = 1.0  # of branches that a track does not read, where others read more


@dataclass(frozen=True, eq=False)
class Track:
    """A program that makes values, numbered from 0 on."""

    # (n, INSTRUCTION_WORDS), the words of each instruction; no other track of the launch may use the slots that it
    # writes to
    program: Sequence[Sequence[int]]
    lengths: Sequence[float]  # (n_branches,), expected substitutions per site, the same for all parts
    model: Any  # what `Engine.pack_models` made of the models of the parts
    n_values: int = 1  # how many numbers the program makes


def join_programs(tracks: Sequence[Track]) -> IntArray:
    """int32 (n, INSTRUCTION_WORDS) the instructions of all tracks, track by track."""
    return np.array([row for track in tracks for row in track.program], dtype=np.int32)


def stack_lengths(tracks: Sequence[Track], n_parts: int) -> FloatArray:
    """(n_tracks * n_parts, n_branches) the lengths of all tracks, part by part, as many as the longest has."""
    n = max(len(track.lengths) for track in tracks)
    rows = [[*track.lengths, *[PACKED_LENGTH] * (n - len(track.lengths))] for track in tracks for _ in range(n_parts)]
    return np.array(rows, dtype=np.float64)
