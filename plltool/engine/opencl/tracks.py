"""Tracks: what the work-groups of one launch do at the same time, on the same patterns.

A row of the table is a track: its first instruction and the one behind its last, and by how much the slots it writes to
and reads from, its P set and its values lie behind those that the instructions name.

Where patterns are too few for a GPU and a program has no pieces, its *levels* take their place: an instruction waits
for those that make what it reads and for those that read or make what it overwrites, and all that wait for nothing more
are a level. Levels are launches one after another, and the instructions of a level are tracks. Levels would wait for
the slots of a stack, which spares caches: where nobody asks for CLAs afterwards, each gets a slot of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plltool.constants import GPU_LEVEL_WIDTH
from plltool.engine.program import EVALUATE, INSERT, PROPAGATE, TRIPLET, Request

IntArray = npt.NDArray[np.int32]

TRACK_WORDS = 5


@dataclass(frozen=True, eq=False)
class Schedule:
    """What runs at the same time, and what after it.

    Attributes
    ----------
    program : int32 (n, N_WORDS), the request's in the order of the tracks
    tracks : (n_tracks, TRACK_WORDS)
    launches : the tracks of each launch
    """

    program: IntArray
    tracks: IntArray
    launches: tuple[range, ...]


def one_launch(program: IntArray, tracks: IntArray) -> Schedule:
    """All tracks at the same time."""
    return Schedule(program, tracks, (range(len(tracks)),))


def read_words(opcode: int) -> tuple[int, ...]:
    """The words of an instruction that name what it reads."""
    return (2,) if opcode == PROPAGATE else (2, 4, 6) if opcode in (INSERT, TRIPLET) else (2, 4)


def spread_slots(program: IntArray, n_slots: int) -> IntArray:
    """The program with another slot for each CLA that it makes; as it is if there are not so many slots.

    Nor is it changed if it reads a CLA that it has not made.
    """
    place: dict[int, int] = {}
    n_made = 0
    rows = program.tolist()
    for row in rows:
        for word in read_words(row[0]):
            if row[word] >= 0:
                if row[word] not in place:
                    return program
                row[word] = place[row[word]]
        if row[0] < EVALUATE:
            place[row[1]] = n_made
            row[1] = n_made
            n_made += 1
    return np.array(rows, dtype=np.int32) if n_made <= n_slots else program


def find_levels(program: IntArray) -> IntArray:
    """(n,) the level of each instruction: one more than the highest of those that it has to wait for.

    A sum that several instructions add to is made in their order.
    """
    made: dict[int, int] = {}  # the level that made a slot, or ~value, last
    read: dict[int, int] = {}  # the highest level that has read a slot since
    levels = []
    for row in program.tolist():
        slots = [row[word] for word in read_words(row[0]) if row[word] >= 0]
        target = row[1] if row[0] < EVALUATE else ~row[1]
        before = [made.get(slot, -1) for slot in slots] + [made.get(target, -1), read.get(target, -1)]
        level = 1 + max(before)
        for slot in slots:
            read[slot] = max(read.get(slot, -1), level)
        made[target] = level
        levels.append(level)
    return np.array(levels, dtype=np.int32)


def plan_levels(program: IntArray, n_spans: int, wanted_groups: int) -> Schedule | None:
    """A launch for each level, its instructions on so many tracks that all spans make `wanted_groups`.

    None where spans are enough without, or where levels have less than GPU_LEVEL_WIDTH instructions on average.
    """
    most = -(-wanted_groups // n_spans)
    if most < GPU_LEVEL_WIDTH:
        return None
    levels = find_levels(program)
    sizes = np.bincount(levels)
    if len(program) < GPU_LEVEL_WIDTH * len(sizes):
        return None
    cuts = [0]
    launches = []
    for size in sizes.tolist():
        n = min(size, most)
        launches.append(range(len(cuts) - 1, len(cuts) - 1 + n))
        cuts += (cuts[-1] + np.arange(1, n + 1) * size // n).tolist()
    tracks = np.zeros((len(cuts) - 1, TRACK_WORDS), dtype=np.int32)
    tracks[:, 0], tracks[:, 1] = cuts[:-1], cuts[1:]
    return Schedule(program[np.argsort(levels, kind="stable")], tracks, tuple(launches))


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
