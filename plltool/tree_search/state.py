"""The state of a search, one object per climb, which is saved so that the search can be resumed.

A climb is a function of its state, the data and the plan. Every step, a round or a perturbation, leads from one state
to the next. So a search that is resumed from any earlier state ends with the same bits, and the states of several
climbs need not be saved at the same time: missing steps are repeated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from plltool.arrays import IndexArray
from plltool.codec import saved
from plltool.model.model import Model
from plltool.optimise.polish import PolishRound
from plltool.tree.topology import Tree
from plltool.tree_search.stopping import Deadline, Memory

ABANDON_STAGES = 3  # start, NNI, SPR at the first radius: no climb is given up before these stages are over
ABANDON_FACTOR = 2.0  # times the gain of the leader from a stage on: a climb further behind it there is given up
ABANDON_MARGIN = 5.0  # lnL that the climb may be behind in addition


@saved()
@dataclass
class Cursor:
    """The position of a climb: all that the rest of it depends on, besides tree and models."""

    lnl: float = -math.inf  # current lnL; it never falls
    marks: tuple[float, ...] = ()  # lnL at the end of each finished stage of the climb
    round: int = 0  # number of finished rounds of the current stage, later of the polish
    stage_over: bool = False  # whether the current stage needs no more rounds
    joints: IndexArray | None = None  # inner nodes whose subtrees the next round scans; None for all
    wide_enough: bool = False  # whether a wider radius is not worthwhile
    memory: Memory | None = None  # what the stop rule remembers
    # (n_patterns,) the component of each pattern in the screen, see `TreeLikelihood`; None before the first round of
    # moves
    category_of: IndexArray | None = None
    climbed: bool = False  # whether the climb is over
    given_up: bool = False  # whether it fell hopelessly behind another climb; lnL and marks are those of that stage
    settled: bool = False  # whether the stop rule ended the climb, so that perturbations are not worthwhile
    fused: int = 0  # number of other climbs that the tree was fused with in the current fusion
    fusions: int = 0  # number of finished fusions with all others; after the first one perturbations begin again
    spent: int = 0  # number of perturbations
    failures: int = 0  # number of perturbations without gain since the last success
    generator: Mapping[str, Any] | None = None  # state of the random numbers after the last perturbation
    rest_lnl: float | None = None  # lnL at the end of the perturbations; None until then
    first_length: float = math.nan  # sum of the lengths when lengths and model were fitted for the first time
    polish: PolishRound | None = None  # the last round of the polish; None before the first
    polished: bool = False  # whether the search is finished
    seconds: float = 0.0  # that a search with a limited time had used

    @property
    def stage(self) -> int:
        """Index of the current stage of the climb."""
        return len(self.marks)

    @property
    def has_moved(self) -> bool:
        """Whether a round of moves has ended, or the climb without one."""
        return self.climbed or self.stage > 1 or (self.stage == 1 and self.round > 0)

    def end_stage(self) -> None:
        """Finish the current stage and move on to the next one."""
        self.marks += (self.lnl,)
        self.round, self.stage_over, self.joints = 0, False, None

    def come_to_rest(self) -> None:
        """End the climb and the perturbations, wherever they are, so that the polish can follow."""
        if not self.climbed:
            self.end_stage()
            self.climbed = True
        self.rest_lnl = self.lnl

    def leave_rest(self) -> None:
        """Begin to perturb again."""
        self.rest_lnl, self.failures, self.round, self.polish = None, 0, 0, None


@saved()
@dataclass(frozen=True, eq=False)
class ClimbState:
    """The state of the search from one start tree, independent of any engine."""

    tree: Tree  # the current one, and the best so far
    models: list[Model]  # likewise
    cursor: Cursor = field(default_factory=Cursor)  # the position of the climb
    interrupted: bool = False  # whether the listener stopped the search

    @property
    def lnl(self) -> float:
        return self.cursor.lnl

    @property
    def best(self) -> Tree:
        """The tree, as a checkpoint asks for it."""
        return self.tree

    def judge(self, rivals: Sequence[Sequence[float]]) -> ClimbState:
        """The state, given up at the stage after which the climb was hopelessly behind one of `rivals`, if any."""
        marks = self.cursor.marks
        hopeful = stages_with_hope(marks, rivals)
        if hopeful == len(marks):
            return self
        lost = replace(self.cursor, lnl=marks[hopeful], marks=marks[: hopeful + 1], given_up=True, spent=0)
        return replace(self, cursor=lost)

    def copy(self) -> ClimbState:
        """A copy that does not change when the search goes on."""
        return ClimbState(self.tree.copy(), [model.copy() for model in self.models], replace(self.cursor))


def stages_with_hope(marks: Sequence[float], rivals: Sequence[Sequence[float]]) -> int:
    """The number of stages until the climb with these `marks` is hopelessly behind a rival; all stages if it never is.

    It is hopeless if, to catch up with the end of the rival, the climb must gain more than ABANDON_FACTOR times what
    the rival gained from that stage on, plus ABANDON_MARGIN. The first ABANDON_STAGES are not judged, because SPR often
    makes up for what a climb lost in NNI. Nor is the last one: a climb that has ended costs nothing more, and fusing
    takes from it what is better there.
    """
    for stage, lnl in enumerate(marks[ABANDON_STAGES:], start=ABANDON_STAGES):
        for rival in rivals:
            hoped = lnl + ABANDON_FACTOR * (rival[-1] - rival[stage]) + ABANDON_MARGIN
            if hoped < rival[-1] and stage + 1 < len(rival):
                return stage
    return len(marks)


class Store(Protocol):
    """Saves states by name, see `plltool.io.checkpoint.Checkpoint`."""

    def load(self, name: str, kind: type[ClimbState]) -> ClimbState | None: ...

    def save(self, name: str, state: ClimbState) -> None: ...

    def flush(self) -> None: ...


@dataclass(frozen=True, eq=False)
class ClimbStarts:
    """Where climbs start: from their start trees, or from states saved in a store."""

    # makes start tree `number`, from 0; it can be pickled: a function of a module, or a partial of one
    make_tree: Callable[[int], Tree]
    make_rng: Callable[[int], np.random.Generator]  # makes the source of the perturbations of climb `number`, likewise
    models: Sequence[Model]  # with their start values
    store: Store | None = None  # the saved states of this search, if there are any
    deadline: Deadline | None = None  # of a search with a limited time
    single: bool = False  # whether there is one start tree only

    def begin(self, number: int) -> ClimbState:
        """The state from which climb `number` starts or continues."""
        return self._load(number) or ClimbState(self.make_tree(number), [model.copy() for model in self.models])

    def saved(self) -> list[ClimbState]:
        """The states in the store of the climbs from the first start tree on, up to one that has none."""
        states: list[ClimbState] = []
        while state := self._load(len(states)):
            states.append(state)
        return states

    def _load(self, number: int) -> ClimbState | None:
        state = self.store.load(_name(number), ClimbState) if self.store else None
        if state is None:
            return None
        models = [model.copy() for model in self.models]
        for model, kept in zip(models, state.models, strict=True):
            model.assign(kept)
        return replace(state, models=models)

    def saver(self, number: int) -> Callable[[ClimbState], None] | None:
        """The function that saves every state of climb `number`; None without a store."""
        return partial(self._save, self.store, number) if self.store else None

    def _save(self, store: Store, number: int, state: ClimbState) -> None:
        if self.deadline is not None:
            state.cursor.seconds = self.deadline.seconds
        store.save(_name(number), state)


def _name(number: int) -> str:
    return f"climb-{number + 1}"
