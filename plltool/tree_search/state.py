"""The state of a search, one object per climb, which is saved so that the search can be resumed.

A climb is a function of its state, the data and the plan. Every step, a round or a perturbation, leads from one state
to the next. So a search that is resumed from any earlier state ends with the same bits, and the states of several
climbs need not be saved at the same time: missing steps are repeated.

A climb may end early, by a rule about what its last stage changed, or at the end of a limited time.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from plltool.arrays import AnyArray, FloatArray, IndexArray
from plltool.codec import saved
from plltool.constants import PERTURB
from plltool.model.model import Model
from plltool.optimise.likelihood import TreeLikelihood
from plltool.optimise.polish import PolishRound
from plltool.progress import CLOCK, Forecast
from plltool.tree.splits import rf_distance
from plltool.tree.topology import Tree

KH_QUANTILE = 1.645  # of the standard normal distribution: gains with a one-sided p-value below 5 % count
RF_SHARE = 0.01  # of the inner branches that a stage of a climb must change (RAxML's -D)

Memory = AnyArray


def says_enough(rule: str, likelihood: TreeLikelihood, before: Memory | None) -> tuple[bool, Memory | None]:
    """Whether a rule ends a climb with the stage that has just ended, and what it remembers of it for the next stage.

    "epsilon" never ends a climb before its last stage; "rf" ends it after a stage that changed at most RF_SHARE of the
    inner branches (RAxML's -D); "kh" after a stage whose gain may be due to chance, see `is_significant`. For "rf" the
    memory is the ends of the branches, and for "kh" the lnL of each pattern. There is none `before` the first stage,
    which is never the last one.
    """
    tree = likelihood.tree
    if rule == "rf":
        least = RF_SHARE * 2 * (tree.n_taxa - 3)
        is_same = before is not None and rf_distance(Tree.from_edges(tree.names, before), tree) <= least
        return is_same, tree.ends.copy()
    if rule == "kh":
        lnl = likelihood.site_lnl()
        return before is not None and not is_significant(before, lnl, likelihood.engine.weights), lnl
    return False, None


class Deadline(Forecast):
    """The end of a search that may take `limit` seconds, without those in which kernels are compiled, and its forecast.

    A perturbation is expected to take as long as the longest one before, a round of a climb likewise, and the polish at
    the end as long as the first stage of a climb, which also optimises lengths and model.
    """

    def __init__(self, limit: float, began: float):
        super().__init__(())
        self.limit = limit
        self._began = began - CLOCK.seconds
        self._used_before = 0.0
        self._step_ended = 0.0
        self._longest: dict[str, float] = {}  # steps of each kind
        self._step = self._polish = 0.0  # expected

    def resume(self, used: float) -> None:
        """Count what the search had used when the state was saved from which it goes on, in this process or another."""
        self._used_before = max(0.0, used - self._elapsed)
        self._step_ended = self.seconds

    def end_step(self, stage: str) -> None:
        """Note that a step of a stage has ended, and another one begins."""
        took, self._step_ended = self.seconds - self._step_ended, self.seconds
        kind = PERTURB if stage == PERTURB else ""
        self._step = self._longest[kind] = max(took, self._longest.get(kind, 0.0))
        if stage == "start":
            self._polish = max(self._polish, took)

    @property
    def seconds(self) -> float:
        """Seconds since the beginning, including earlier processes."""
        return self._used_before + self._elapsed

    @property
    def seconds_left(self) -> float:
        """Negative if it is too late."""
        return self.limit - self.seconds

    @property
    def is_due(self) -> bool:
        """Whether another step would leave too little time for the polish."""
        return self.seconds_left <= self._step + self._polish

    def begin(self, rounds_before: int = 0) -> None:
        """Start another stage; how many there will be is not known."""

    def left(self, round_: int) -> tuple[float | None, float | None]:
        """The end of a stage cannot be foreseen; the search ends at the deadline."""
        return None, max(0.0, self.seconds_left)

    @property
    def _elapsed(self) -> float:
        return time.perf_counter() - CLOCK.seconds - self._began


def is_significant(before: FloatArray, after: FloatArray, weights: FloatArray) -> bool:
    """Whether the gain in lnL exceeds KH_QUANTILE standard errors of itself (Kishino & Hasegawa 1989).

    `before` and `after` (n_patterns,) are lnL of each pattern on the two trees; sites are treated as independent draws.
    """
    n_sites = float(weights.sum())
    difference = after - before
    gain = float(weights @ difference)
    variance = float(weights @ (difference - gain / n_sites) ** 2) / max(1.0, n_sites - 1)
    return gain > KH_QUANTILE * math.sqrt(n_sites * variance)


STATE_NAME = "climb-{}"  # in the store
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

    def judge(self, rivals: Sequence[Sequence[float]]) -> Self:
        """The state, given up at the stage after which the climb was hopelessly behind one of `rivals`, if any."""
        marks = self.cursor.marks
        hopeful = stages_with_hope(marks, rivals)
        if hopeful == len(marks):
            return self
        lost = replace(self.cursor, lnl=marks[hopeful], marks=marks[: hopeful + 1], given_up=True, spent=0)
        return replace(self, cursor=lost)

    def copy(self) -> "ClimbState":
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


@dataclass(frozen=True, eq=False)
class ClimbStarts:
    """Where climbs start: from their start trees, or from states saved in a store."""

    # makes start tree `number`, from 0; it can be pickled: a function of a module, or a partial of one
    make_tree: Callable[[int], Tree]
    make_rng: Callable[[int], np.random.Generator]  # makes the source of the perturbations of climb `number`, likewise
    models: Sequence[Model]  # with their start values
    store: Any = None  # a `plltool.io.checkpoint.Checkpoint` with the saved states of this search, if there is one
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
        state = self.store.load(STATE_NAME.format(number + 1), ClimbState) if self.store else None
        if state is None:
            return None
        models = [model.copy() for model in self.models]
        for model, kept in zip(models, state.models, strict=True):
            model.assign(kept)
        return replace(state, models=models)

    def save(self, number: int, state: ClimbState) -> None:
        """Save a state of climb `number` in the store."""
        if self.deadline is not None:
            state.cursor.seconds = self.deadline.seconds
        self.store.save(STATE_NAME.format(number + 1), state)
