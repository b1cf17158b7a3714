"""Schedules: which instructions of a program run at the same time on the same patterns, and in which launch.

A *track* is a run of instructions that runs beside others, see `contract.TrackWord`.

Where a GPU has too few patterns and the program has no pieces, the program is cut into *levels*. An instruction waits
for those that make what it reads, and for those that read or make what it overwrites. Instructions that wait for
nothing more are a level. Levels are launches one after another, and the instructions of a level are tracks. A launch
takes several levels where that is faster: instructions of which one waits for the other are one track. On a stack of
slots, which is good for caches, levels would have to wait for a free slot. So where the caller does not read CLAs
afterwards, each CLA gets a slot of its own. In a sum over branches each would wait for the one before, so there are
several sums, which are added up in the end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from plltool.arrays import IndexArray, IntArray, distinct
from plltool.engine.contract import InstructionWord, Opcode, TrackWord
from plltool.engine.layout import Layout
from plltool.engine.program import Request, make_tracks, slots_read

GPU_LEVEL_SPANS = 0.25  # spans over wanted work-groups below which launches by levels are faster on an H200
GPU_LAUNCH_INSTRUCTIONS = 7, 1  # of few states, and of many, that take as long on an H200 as one launch more
GPU_LEVEL_SHARE = 0.75  # of the time of one launch that several may take; they ask more of the host
MOST_SUMS = 32  # of the gradient of a rate matrix; 500 taxa then take 92 launches by levels, not 1,049, and 65 at least
SUM_STATES = 160  # of all these sums together; those of a group take at most as much memory as its patterns in 5 CLAs


@dataclass(frozen=True, eq=False)
class Schedule:
    """A program, and the tracks of each of its launches."""

    program: IntArray  # int32 (n, INSTRUCTION_WORDS), the request's instructions in the order of the tracks
    launches: tuple[IntArray, ...]  # int32 (n_tracks, TRACK_WORDS) each


def spread_slots(program: IntArray, n_slots: int) -> IntArray:
    """The program with a separate slot for each CLA; as it is with too few slots, or if it reads CLAs of others."""
    place: dict[int, int] = {}
    n_made = 0
    rows = program.tolist()
    words = (InstructionWord.A, InstructionWord.B, InstructionWord.C)
    for row, slots in zip(rows, slots_read(program).tolist(), strict=True):
        for word, slot in zip(words, slots, strict=True):
            if slot >= 0:
                if slot not in place:
                    return program
                row[word] = place[slot]
        if row[InstructionWord.OPCODE] < Opcode.EVALUATE:
            place[row[InstructionWord.RESULT]] = n_made
            row[InstructionWord.RESULT] = n_made
            n_made += 1
    return np.array(rows, dtype=np.int32) if n_made <= n_slots else program


def spread_sums(request: Request, layout: Layout) -> tuple[Request, IndexArray]:
    """The request with several sums to which the branches of the gradient of the rate matrix add in turn.

    On GPUs alone; their number depends on the states. Returns also (n_sums, n_values) where the values of each sum are
    among those of the request; n_sums is 0 where there is nothing to spread.
    """
    nothing = request, np.empty((0, 1), dtype=np.intp)
    if not layout.lane_per_item:
        return nothing
    adding = np.flatnonzero(request.program[:, InstructionWord.OPCODE] == Opcode.RATE_MATRIX_GRADIENT)
    size, turn = layout.gradient_values, np.arange(len(adding))
    n_sums = min(len(adding), MOST_SUMS, SUM_STATES // layout.n_states)
    if n_sums < 2:
        return nothing
    program, n_values = request.program.copy(), request.n_values + size * (n_sums - 1)
    starts = np.append(program[adding[0], InstructionWord.RESULT], np.arange(request.n_values, n_values, size))
    program[adding, InstructionWord.RESULT] = starts[turn % n_sums]
    program[adding, InstructionWord.C] = turn < n_sums
    return replace(request, program=program, n_values=n_values), starts[:, None] + np.arange(size)


def find_waits(program: IntArray) -> list[set[int]]:
    """For each instruction those that it waits for directly; those that add to a sum keep their order."""
    made: dict[int, int] = {}  # for each slot, or ~value, the instruction that made it last
    read: dict[int, list[int]] = {}  # for each slot, those that have read it since
    waits = []
    for number, (row, operands) in enumerate(zip(program.tolist(), slots_read(program).tolist(), strict=True)):
        result, slots = row[InstructionWord.RESULT], {slot for slot in operands if slot >= 0}
        target = result if row[InstructionWord.OPCODE] < Opcode.EVALUATE else ~result
        waits.append({made[place] for place in (*slots, target) if place in made} | set(read.pop(target, ())))
        for slot in slots - {target}:
            read.setdefault(slot, []).append(number)
        made[target] = number
    return waits


def find_levels(waits: Sequence[set[int]]) -> list[int]:
    """The level of each instruction, one above all that it waits for."""
    levels: list[int] = []
    for own in waits:
        levels.append(1 + max((levels[number] for number in own), default=-1))
    return levels


class _Window:
    """The instructions of a launch, and which of them are one track because one waits for the other."""

    def __init__(self, parents: dict[int, int] | None = None, sizes: dict[int, int] | None = None):
        self._parents, self.sizes = dict(parents or {}), dict(sizes or {})  # sizes: of tracks, by their root

    def root(self, number: int) -> int:
        while self._parents[number] != number:
            number = self._parents[number]
        return number

    def with_level(self, members: Sequence[int], waits: Sequence[set[int]]) -> _Window:
        """The window with one more level."""
        made = _Window(self._parents, self.sizes)
        for number in members:
            roots = {made.root(own) for own in waits[number] if own in made._parents}
            root = max(roots, key=made.sizes.__getitem__, default=number)
            made._parents[number] = root
            made.sizes[root] = 1 + sum(made.sizes.pop(own) for own in roots)
            made._parents.update(dict.fromkeys(roots, root))
        return made

    @property
    def longest(self) -> int:
        return max(self.sizes.values(), default=0)


def join_levels(waits: Sequence[set[int]], makes_cla: Sequence[bool], launch_cost: int) -> tuple[list[int], list[int]]:
    """The launch of each instruction, and its track there, named by one of its instructions.

    A launch takes as many levels as make its time per level shortest: that of its longest track, and `launch_cost`
    instructions for the launch. A value that no CLA waits for comes in the launch after the CLAs that it reads, or with
    the last ones.
    """
    is_last = [not own for own in makes_cla]
    for number in range(len(waits) - 1, -1, -1):
        if not is_last[number]:
            for own in waits[number]:
                is_last[own] = False
    rows: list[list[int]] = []  # by level
    for number, level in enumerate(find_levels(waits)):
        if not is_last[number]:
            rows += [[] for _ in range(level + 1 - len(rows))]
            rows[level].append(number)
    windows, launch, track, start = [_Window()], [0] * len(waits), list(range(len(waits))), 0
    while start < len(rows):
        wider, least = _Window(), math.inf
        for end in range(start + 1, len(rows) + 1):
            wider = wider.with_level(rows[end - 1], waits)
            mean = (launch_cost + wider.longest) / (end - start)
            if mean <= least:
                least, best, kept = mean, end, wider
            elif mean > 2 * least:
                break
        windows += [kept]
        for number in (number for own in rows[start:best] for number in own):
            launch[number] = len(windows) - 2
        start = best
    windows = windows[1:] or windows
    for number, last in enumerate(is_last):
        if not last:
            track[number] = windows[launch[number]].root(number)
    room = windows[-1].longest + launch_cost
    for joins in (True, False):
        sizes = dict(windows[-1].sizes)
        for number in (number for number, last in enumerate(is_last) if last):
            first = max((launch[own] for own in waits[number]), default=0)
            tracks = {track[own] for own in waits[number] if launch[own] == first}
            root = min(tracks, default=number)
            is_alone = not any(launch[own] == first and not is_last[own] for own in waits[number])
            is_joined = joins and first == len(windows) - 1 and len(tracks) == 1 and sizes.get(root, room) < room
            launch[number] = first + (not (is_alone or is_joined))
            track[number] = number if launch[number] > first else root
            if is_joined:
                sizes[root] += 1
        if max(launch, default=0) < len(windows):
            break
    return launch, track


def plan_levels(program: IntArray, n_spans: int, wanted_groups: int, has_many_states: bool = False) -> Schedule | None:
    """Launches of one or more levels, with enough tracks to make `wanted_groups` work-groups of all spans.

    None with GPU_LEVEL_SPANS times as many spans or more, or where they would take more than GPU_LEVEL_SHARE of the
    time of one launch.
    """
    if n_spans >= GPU_LEVEL_SPANS * wanted_groups:
        return None
    most, launch_cost = -(-wanted_groups // n_spans), GPU_LAUNCH_INSTRUCTIONS[has_many_states]
    makes_cla = program[:, InstructionWord.OPCODE] < Opcode.EVALUATE
    launch, track = map(np.array, join_levels(find_waits(program), makes_cla.tolist(), launch_cost))
    order = np.lexsort((track, launch))
    is_new = np.diff(track[order], prepend=-1) != 0
    begins, ends = np.flatnonzero(is_new), np.append(np.cumsum(np.bincount(launch)), 0)
    launches, cost = [], 0
    for first, end in pairwise([0, *ends[:-1].tolist()]):
        own = begins[(begins >= first) & (begins < end)]
        n = min(len(own), most)
        wanted = first + np.arange(1, n) * (end - first) // n
        made = distinct(np.append(own[np.searchsorted(own, wanted, side="right") - 1], end))
        made = made[made > first]
        launches.append(make_tracks([first, *made[:-1]], made))
        cost += launch_cost + int(np.diff(made, prepend=first).max())
    if cost > GPU_LEVEL_SHARE * len(program):
        return None
    return Schedule(program[order], tuple(launches))


def cut_launches(schedule: Schedule, most: int) -> Schedule:
    """The same instructions in more launches, each of `most` instructions at most, or of one of each of its tracks."""
    tracks = np.concatenate(schedule.launches)
    if (tracks[:, TrackWord.END] - tracks[:, TrackWord.BEGIN]).sum() <= most:
        return schedule
    pieces = []
    for own in schedule.launches:
        sizes, step = own[:, TrackWord.END] - own[:, TrackWord.BEGIN], max(1, most // len(own))
        for first in range(0, int(sizes.max()), step):
            piece = own[sizes > first].copy()
            piece[:, TrackWord.BEGIN] += first
            piece[:, TrackWord.END] = np.minimum(piece[:, TrackWord.BEGIN] + step, piece[:, TrackWord.END])
            pieces.append(piece)
    return Schedule(schedule.program, tuple(pieces))


def plan_tracks(request: Request, n_slots: int, n_spans: int, wanted_groups: int) -> IntArray:
    """(n_tracks, TRACK_WORDS) tracks of about equal length, for `wanted_groups` work-groups if slots allow."""
    n = min(-(-wanted_groups // n_spans), len(request.pieces))
    if request.scratch:
        n = min(n, (n_slots - request.scratch.start) // len(request.scratch))
    end = len(request.program)
    if n <= 1:
        return make_tracks([0], end)
    cuts = np.arange(n) * end // n
    begins = distinct(request.pieces[np.searchsorted(request.pieces, cuts, side="right") - 1])
    return make_tracks(begins, np.append(begins[1:], end), len(request.scratch) * np.arange(len(begins)))
