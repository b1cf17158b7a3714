"""Where a search stands, as one object for each climb: what is written down so that it can be resumed.

A climb is a function of its state, the data and the plan; every step of it, a round or a perturbation, leads from one
state to the next. So a search that is begun again from any state that it once was in ends with the same bits, and the
states of several climbs need not have been saved at the same time: what is missing is done again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from plltool.arrays import IndexArray
from plltool.constants import ABANDON_FACTOR, ABANDON_MARGIN, ABANDON_STAGES
from plltool.model.model import Model
from plltool.tree.topology import Tree
from plltool.tree_search.stopping import Memory

Arrays = dict[str, npt.NDArray[Any]]

TREE_ARRAYS = ("neighbours", "edges", "ends", "lengths")


@dataclass
class Cursor:
    """What the rest of a climb depends on besides its tree and models.

    Attributes
    ----------
    lnl : reached; of the ratchet's best tree while that is at work
    marks : lnL after each stage of the climb that is over
    round : rounds of the present stage that are over; later those of the polish
    stage_over : whether they are all that the stage has
    joints : inner nodes whose subtrees the next round looks at; None for all
    wide_enough : whether a wider radius is not worth while
    memory : of the stop rule
    climbed : whether the climb is over
    given_up : whether it fell hopelessly behind another one; lnL and marks are those of that stage
    settled : whether the plan's rule ended it, so that perturbations are not worth while
    spent : perturbations of this climb and those before it, once there was one
    failures : the last so many perturbations gained nothing
    generator : the state of the source of perturbations after the last one
    best : the best tree, where the ratchet wanders elsewhere
    rest_lnl : reached by perturbations, once they have come to rest
    polished : whether nothing is left to do
    """

    lnl: float = -math.inf
    marks: tuple[float, ...] = ()
    round: int = 0
    stage_over: bool = False
    joints: IndexArray | None = None
    wide_enough: bool = False
    memory: Memory | None = None
    climbed: bool = False
    given_up: bool = False
    settled: bool = False
    spent: int | None = None
    failures: int = 0
    generator: Mapping[str, Any] | None = None
    best: Tree | None = None
    rest_lnl: float | None = None
    polished: bool = False

    @property
    def stage(self) -> int:
        """Index of the present stage of the climb."""
        return len(self.marks)

    def end_stage(self) -> None:
        """Note what the present stage has reached, and stand before the next one."""
        self.marks += (self.lnl,)
        self.round, self.stage_over, self.joints = 0, False, None


@dataclass(frozen=True, eq=False)
class ClimbState:
    """How far the search from one start tree came, apart from any engine.

    Attributes
    ----------
    tree, models : reached
    cursor : what else the rest depends on
    interrupted : whether the listener stopped it
    """

    tree: Tree
    models: list[Model]
    cursor: Cursor = field(default_factory=Cursor)
    interrupted: bool = False

    @property
    def lnl(self) -> float:
        """Of `best`."""
        return self.cursor.lnl

    @property
    def best(self) -> Tree:
        """The best tree so far."""
        return self.cursor.best or self.tree

    @property
    def climb_lnl(self) -> float:
        """Reached by the climb alone, if that is over."""
        return self.cursor.marks[-1] if self.cursor.climbed else self.lnl

    @property
    def rest_lnl(self) -> float:
        """Reached after perturbations, if there were any, without a polish."""
        return self.climb_lnl if self.cursor.rest_lnl is None else self.cursor.rest_lnl

    def judge(self, rivals: Sequence[Sequence[float]]) -> ClimbState:
        """The same, given up where it fell hopelessly behind one of `rivals`, whether or not it climbed on."""
        marks = self.cursor.marks
        hopeful = stages_with_hope(marks, rivals)
        if hopeful == len(marks):
            return self
        return replace(
            self, cursor=replace(self.cursor, lnl=marks[hopeful], marks=marks[: hopeful + 1], given_up=True)
        )

    def copy(self) -> ClimbState:
        """One that shares nothing that a search changes."""
        return ClimbState(self.tree.copy(), [model.copy() for model in self.models], replace(self.cursor))

    def pack(self) -> Arrays:
        """The state as arrays, which `unpack` reads; numbers keep every bit."""
        names = "\0".join(self.tree.names).encode("utf-8", "surrogateescape")
        packed: Arrays = {"names": np.frombuffer(names, np.uint8)} | pack_tree("tree", self.tree)
        for number, model in enumerate(self.models):
            packed |= {f"model {number} {name}": values for name, values in model.pack().items()}
        present = {name: value for name, value in vars(self.cursor).items() if value is not None}
        if "best" in present:
            packed |= pack_tree("best", present.pop("best"))
        if "generator" in present:
            present["generator"] = json.dumps(present["generator"])
        return packed | {name: np.array(value) for name, value in present.items()}

    @classmethod
    def unpack(cls, packed: Mapping[str, npt.NDArray[Any]], models: Sequence[Model]) -> ClimbState:
        """The state that was packed, with models of the specifications of `models`, which stay what they are."""
        names = packed["names"].tobytes().decode("utf-8", "surrogateescape").split("\0")
        own = [model.copy() for model in models]
        for number, model in enumerate(own):
            prefix = f"model {number} "
            model.unpack({key.removeprefix(prefix): packed[key] for key in packed if key.startswith(prefix)})
        given = {entry.name: packed[entry.name] for entry in fields(Cursor) if entry.name in packed}
        plain: dict[str, Any] = {name: value if value.ndim else value.item() for name, value in given.items()}
        plain["marks"] = tuple(given["marks"].tolist())
        if "generator" in plain:
            plain["generator"] = json.loads(plain["generator"])
        if "best lengths" in packed:
            plain["best"] = unpack_tree("best", packed, names)
        return cls(unpack_tree("tree", packed, names), own, Cursor(**plain))


def pack_tree(name: str, tree: Tree) -> Arrays:
    """A tree's arrays, with the order of its neighbours, which decides ties."""
    return {f"{name} {array}": getattr(tree, array) for array in TREE_ARRAYS}


def unpack_tree(name: str, packed: Mapping[str, npt.NDArray[Any]], names: Sequence[str]) -> Tree:
    """The tree that `pack_tree` was given."""
    return Tree(names, *(packed[f"{name} {array}"] for array in TREE_ARRAYS))


def pack_trees(name: str, trees: Sequence[Tree]) -> Arrays:
    """The arrays of several trees over the same taxa, one at least, tree after tree."""
    return {f"{name} {array}": np.stack([getattr(tree, array) for tree in trees]) for array in TREE_ARRAYS}


def unpack_trees(name: str, packed: Mapping[str, npt.NDArray[Any]], names: Sequence[str]) -> list[Tree]:
    """The trees that `pack_trees` was given."""
    arrays = [packed[f"{name} {array}"] for array in TREE_ARRAYS]
    return [Tree(names, *rows) for rows in zip(*arrays, strict=True)]


def stages_with_hope(marks: Sequence[float], rivals: Sequence[Sequence[float]]) -> int:
    """After how many stages a climb with these lnL may still be expected to end above each of its rivals.

    There is no hope if it has to gain by ABANDON_MARGIN more than ABANDON_FACTOR times what the rival gained from that
    stage on. The first ABANDON_STAGES tell nothing: what NNI leaves a climb behind with, SPR often makes up for.
    """
    for stage, lnl in enumerate(marks[ABANDON_STAGES:], start=ABANDON_STAGES):
        for rival in rivals:
            if lnl + ABANDON_FACTOR * (rival[-1] - rival[stage]) + ABANDON_MARGIN < rival[-1]:
                return stage
    return len(marks)


class Store(Protocol):
    """Keeps states by name, see `plltool.io.checkpoint.Checkpoint`."""

    def load(self, name: str) -> Mapping[str, npt.NDArray[Any]] | None: ...

    def save(self, name: str, state: ClimbState) -> None: ...

    def flush(self) -> None: ...


@dataclass(frozen=True, eq=False)
class ClimbStarts:
    """Where climbs begin: at their start trees, or where a store says that they stand.

    Attributes
    ----------
    make_tree : makes start tree `number`, from 0; a function of a module or a partial of one
    models : with their start values
    store : of this very search; None for none
    """

    make_tree: Callable[[int], Tree]
    models: Sequence[Model]
    store: Store | None = None

    def begin(self, number: int) -> ClimbState:
        """Where climb `number` stands."""
        saved = self.store.load(_name(number)) if self.store else None
        if saved is not None:
            return ClimbState.unpack(saved, self.models)
        return ClimbState(self.make_tree(number), [model.copy() for model in self.models])

    def saver(self, number: int) -> Callable[[ClimbState], None] | None:
        """What is told of every state of climb `number`."""
        return partial(self.store.save, _name(number)) if self.store else None


def _name(number: int) -> str:
    return f"climb-{number + 1}"
