"""The search from one start tree: lengths and model, NNI and SPR rounds, perturbations, a final polish."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from plltool.constants import FUSE, MAX_BRANCH_LENGTH, MIN_BRANCH_LENGTH, PERTURB, START_EPSILON
from plltool.errors import EngineError
from plltool.optimise.lengths import smooth, try_scales
from plltool.optimise.likelihood import TreeLikelihood
from plltool.optimise.models import ModelOptimiser
from plltool.optimise.polish import POLISH_GAIN, Other, PolishRound, polish
from plltool.progress import Forecast, Listener, Move, Progress, StopSearch, announce, log
from plltool.tree.topology import Tree
from plltool.tree_search.climb import climb_round, explore_roots, move_root
from plltool.tree_search.effort import SearchPlan
from plltool.tree_search.fusing import fuse, perturb
from plltool.tree_search.state import ClimbState, Cursor, says_enough, stages_with_hope

STAGE_EPSILON = 1.0  # the next stage starts when an SPR round gains less lnL
NNI_EPSILON = 5.0  # SPR rounds start when an NNI round gains less lnL
NNI_SHARE = 1e-4  # the same as a share of lnL; the larger of the two counts
STAGE_SHARE = 1e-5  # likewise for SPR rounds
STAGE_MOST = 5.0  # lnL that this share is at most: on large trees late rounds are cheap, as they scan few places
TUNING_SHARE = 2e-4  # share of lnL; if model and lengths gain more, both are optimised again
OTHER_EPSILON = 0.1  # lnL of a round, on the way to another optimum; with larger ones flat places look like one


def planned_stages(plan: SearchPlan) -> list[tuple[str, int]]:
    """The stages of a search, each with its number of rounds, 0 if it is not known."""
    climb = stages_of_a_climb(plan)
    fusion = [(FUSE, plan.starts - 1)] if plan.starts > 1 else []
    perturb = [(PERTURB, plan.perturbations), *fusion] if plan.perturbations else []
    return [*(climb * plan.starts), *fusion, *perturb, ("polish", 0)]


def stages_of_a_climb(plan: SearchPlan) -> list[tuple[str, int]]:
    """The stages of the search from one of the start trees until the trees are fused."""
    climb = [(stage.name, 0 if stage.radius else 1) for stage in _stages(plan)]
    return [*climb, (PERTURB, plan.first_perturbations)] if plan.first_perturbations else climb


@dataclass(frozen=True)
class Stage:
    name: str  # as in `Progress`
    epsilon: float  # the stage ends when a round gains less lnL; for lengths and model, the precision
    radius: int = 0  # radius of the moves; 0 if the stage optimises lengths and model instead
    share: float = 0.0  # like `epsilon`, as a share of lnL; the larger of the two counts
    most: float = math.inf  # the lnL that the share comes to at most

    def is_over(self, gain: float, lnl: float) -> bool:
        """Whether a round that gained so much, and ended at `lnl`, is the last one."""
        return gain < max(self.epsilon, min(self.most, self.share * abs(lnl)))


def _stages(plan: SearchPlan) -> list[Stage]:
    stages = [Stage("start", START_EPSILON), Stage("nni", NNI_EPSILON, 1, share=NNI_SHARE)]
    for radius in plan.radii:
        stages.append(Stage("spr", STAGE_EPSILON, radius, STAGE_SHARE, STAGE_MOST))
        stages.append(Stage("model", plan.epsilon))
    return stages


@dataclass(eq=False)
class TreeSearch:
    """The search from one start tree; it goes on from the position `cursor`, and keeps that up to date.

    `likelihood` has the tree and the models at that position; `save` is called with every new state.
    """

    likelihood: TreeLikelihood
    plan: SearchPlan
    forecast: Forecast
    report: Listener
    cursor: Cursor
    save: Callable[[ClimbState], None] | None = None

    def climb(self, rivals: Sequence[Sequence[float]] = ()) -> ClimbState:
        """Climb from the start tree to a local optimum, or until the climb is given up.

        The stages are: rough lengths and model; NNI rounds; SPR rounds at each radius, with the model optimised after
        each, until a radius after the first gains nothing. The climb is given up after a stage in which it is
        hopelessly behind one of `rivals`, the marks of earlier climbs, see `stages_with_hope`. It ends early if
        ``plan.stop`` says so.
        """
        with self._until_stopped():
            at, stages = self.cursor, _stages(self.plan)
            if at.climbed:
                self.forecast.skip(len(stages))
                return self._state().judge(rivals)
            self.forecast.skip(at.stage)
            while not at.climbed:
                stage = stages[at.stage]
                if at.wide_enough and stage.name in ("spr", "model"):
                    self.forecast.skip(1)
                    at.end_stage()
                else:
                    self._make_rounds(stage)
                    if stage.name == "spr" and stage.radius > self.plan.radii[0]:
                        at.wide_enough = at.lnl - at.marks[-1] < max(STAGE_EPSILON, STAGE_SHARE * abs(at.lnl))
                    at.end_stage()
                    if stage.name != "model":
                        at.settled, at.memory = says_enough(self.plan.stop, self.likelihood, at.memory)
                is_lost = stages_with_hope(at.marks, rivals) < at.stage
                at.climbed = at.settled or is_lost or at.stage == len(stages)
            left = len(stages) - at.stage
            self.forecast.skip(left)
            if at.settled:
                at.marks += (at.lnl,) * left
            self._save_state()
            return self._state().judge(rivals)
        return self._state(interrupted=True)

    @contextmanager
    def _until_stopped(self) -> Iterator[None]:
        """Go on behind the block if the listener stops it; an EngineError gets the values of the models."""
        try:
            yield
        except StopSearch:
            pass
        except EngineError as error:
            values = "; ".join(model.to_string() for model in self.likelihood.models)
            raise EngineError(f"{error}; model {values}") from error

    def _state(self, interrupted: bool = False) -> ClimbState:
        return ClimbState(self.likelihood.tree, self.likelihood.models, self.cursor, interrupted)

    def fuse(self, donors: Sequence[Tree], earlier: int = 0) -> ClimbState:
        """Take from each of `donors` what is better there than in the tree of this climb, after `earlier` fusions."""
        with self._until_stopped():
            at = self.cursor
            if at.fusions > earlier:
                return self._state()
            announce(FUSE)
            for number in range(at.fused, len(donors)):
                lnl = smooth(self.likelihood)
                at.lnl, n_taken = fuse(self.likelihood, donors[number], lnl)
                at.fused = number + 1
                self._end_step(FUSE, at.fused, n_moves=n_taken)
            at.fusions, at.fused = earlier + 1, 0
            if not earlier:
                at.leave_rest()
            self._save_state()
            return self._state()
        return self._state(interrupted=True)

    def perturb(self, rng: np.random.Generator, elsewhere: int = 0, most: int | None = None) -> ClimbState:
        """Perturb until ``plan.perturbations`` are spent or ``plan.nstop`` in a row have failed.

        `elsewhere` is the number of perturbations spent on other trees, and `most` how many this tree has at most.
        """
        with self._until_stopped():
            at, plan = self.cursor, self.plan
            announce(PERTURB)
            at.category_of = self.likelihood.start_screening(at.category_of)
            if at.generator is None:
                at.lnl = smooth(self.likelihood)
            else:
                rng.bit_generator.state = at.generator
            while at.rest_lnl is None:
                before = at.lnl
                at.lnl, n_taken = perturb(self.likelihood, before, rng)
                at.failures = 0 if at.lnl - before >= plan.epsilon else at.failures + 1
                at.spent, at.generator = at.spent + 1, rng.bit_generator.state
                spent_all = elsewhere + at.spent >= plan.perturbations or at.spent == most
                if spent_all or at.failures >= plan.nstop:
                    at.rest_lnl = at.lnl
                self._end_step(PERTURB, elsewhere + at.spent, n_moves=n_taken)
            return self._state()
        return self._state(interrupted=True)

    def polish(self, start: Tree | None = None) -> ClimbState:
        """Optimise lengths, model and the place of a root until none gains; not under +PSR, whose lnL is no result.

        A `start` tree that was given takes the place of the tree if it is better.
        """
        with self._until_stopped():
            at, is_rooted = self.cursor, self.likelihood.is_rooted

            def report(done: PolishRound) -> None:
                at.lnl, at.round, at.polish = done.lnl, done.number, done
                at.polished = done.is_last and not is_rooted and start is None
                self._end_step("polish", done.number)

            self.forecast.begin(at.round)
            if at.polished or self.likelihood.has_site_rates:
                return self._state()
            groups = None if self.plan.optimise_parameters else ()
            announce("polish")
            at.lnl = self._polish_at_best_root(groups, report, at.polish)
            has_returned = start is not None and self._return_to(start, groups)
            assert at.polish is not None, "the polish has reported a round"
            if has_returned or np.isnan(at.polish.other_lnl):
                other = self._find_other(groups)
                at.polish = replace(at.polish, other_lnl=other.lnl, other_length=other.length)
            at.polished = True
            if has_returned:
                self._end_step("polish", at.round + 1)
            else:
                self._save_state()
            return self._state()
        return self._state(interrupted=True)

    def _polish_at_best_root(
        self,
        groups: Sequence[str] | None,
        report: Callable[[PolishRound], None] = lambda done: None,
        done: PolishRound | None = None,
        given: bool = False,
    ) -> float:
        """Polish, and move a root as long as that gains; arguments as in `polish`; return lnL."""
        likelihood = self.likelihood
        if likelihood.is_rooted and done is None:
            explore_roots(likelihood, likelihood.lnl(), groups)
        lnl = polish(likelihood, groups=groups, report=report, done=done, given=given)
        while likelihood.is_rooted:
            before, lnl = lnl, move_root(likelihood, lnl)
            if lnl - before < POLISH_GAIN:
                break
            lnl = polish(likelihood, groups=groups, report=report)
        return lnl

    def _return_to(self, start: Tree, groups: Sequence[str] | None) -> bool:
        """Return to the `start` tree if it is better with lengths and model optimised; whether it is.

        It is not polished if it is far behind with the lengths that fit the present model.
        """
        likelihood, found, lnl = self.likelihood, self.likelihood.fit(), self.cursor.lnl
        margin = max(START_EPSILON, TUNING_SHARE * abs(lnl))
        likelihood.set_tree(start)
        try:
            reached = smooth(likelihood, START_EPSILON)
            if likelihood.is_rooted:
                reached = move_root(likelihood, reached)
            if reached > lnl - margin:
                likelihood.set_tree(start)  # the given lengths may be those of a better optimum
                reached = self._polish_at_best_root(groups, given=True)
        except EngineError:  # some pattern cannot be represented
            reached = -math.inf
        if reached > lnl + POLISH_GAIN:
            self.cursor.lnl = reached
            log.info("the start tree is the best: the tree found has lnL %.6f", lnl)
            return True
        likelihood.restore(found)
        return False

    def _find_other(self, groups: Sequence[str] | None) -> Other:
        """Where the sum of the lengths of the first fit leads, if to another optimum; the better one is kept."""
        likelihood, lengths, at = self.likelihood, self.likelihood.tree.lengths, self.cursor
        if not Other(length=at.first_length).is_other_than(lengths):
            return Other()
        found, here = likelihood.fit(), Other(at.lnl, float(lengths.sum()))
        lengths[:] = np.clip(lengths * (at.first_length / here.length), MIN_BRANCH_LENGTH, MAX_BRANCH_LENGTH)
        optimiser = ModelOptimiser(likelihood, groups)
        try:
            before, lnl = -math.inf, optimiser.run(START_EPSILON)
            while lnl - before > OTHER_EPSILON:
                smooth(likelihood, OTHER_EPSILON)
                before, lnl = lnl, optimiser.run(OTHER_EPSILON)
        except EngineError:  # some pattern cannot be represented
            likelihood.restore(found)
            return Other()
        there = Other(lnl, float(lengths.sum()))
        if lnl > at.lnl:
            at.lnl = polish(likelihood, groups=groups)
            return here if here.is_other_than(lengths) else Other()
        likelihood.restore(found)
        return there if there.is_other_than(lengths) else Other()

    def _save_state(self) -> None:
        if self.save is not None:
            self.save(self._state().copy())

    def _end_step(
        self, stage: str, round_: int, moves: tuple[Move, ...] = (), radius: int = 0, n_moves: int | None = None
    ) -> None:
        """Save the state and then report it; in this order, because the listener may stop the search.

        `n_moves` is given if there are more changes than `moves` that can be described.
        """
        self._save_state()
        forecast = self.forecast
        times = (forecast.seconds, forecast.n_rounds, *forecast.left(round_))
        self.report(Progress(stage, round_, self.cursor.lnl, n_moves or len(moves), radius, *times, chosen=moves))

    def _make_rounds(self, stage: Stage) -> None:
        """Make the rounds of a stage that are left.

        The first round with moves scans the whole tree, and each further one the neighbourhood of the last changes. The
        stage ends with a round that gains less than its epsilon or share. The next stage scans the whole tree again.
        After the last stage nothing does, because such a scan hardly ever gains anything.
        """
        at = self.cursor
        self.forecast.begin(at.round)
        announce(f"{stage.name} radius {stage.radius}" if stage.radius else stage.name)
        if stage.radius:
            at.category_of = self.likelihood.start_screening(at.category_of)
        while not at.stage_over:
            moves: tuple[Move, ...] = ()
            before = at.lnl
            if stage.radius:
                done = climb_round(self.likelihood, at.lnl, stage.radius, at.joints)
                at.lnl, at.joints, moves = done.lnl, done.joints, done.chosen
                at.stage_over = stage.is_over(at.lnl - before, at.lnl) or not done.n_moves
            else:
                at.lnl = self._tune(stage)
                at.stage_over = True
            at.round += 1
            self._end_step(stage.name, at.round, moves, stage.radius)

    def _tune(self, stage: Stage) -> float:
        """Optimise lengths, model parameters and lengths again, and the place of a root; return lnL.

        Model and lengths take turns until they gain little, because some moves gain under a poor model that lose under
        a good one. All lengths take a common factor with the model; otherwise each would hold the other where it is.
        Both may be far from the best together, so other scales of all lengths are tried.
        """
        likelihood, epsilon = self.likelihood, stage.epsilon
        is_free = self.plan.optimise_parameters and any(model.free_parameters for model in likelihood.models)
        optimiser = ModelOptimiser(likelihood, scale=True)

        def fit_model() -> float:
            optimiser.run(epsilon)
            optimiser.explore((1.0,))
            return smooth(likelihood, epsilon)

        before, lnl = -math.inf, smooth(likelihood, epsilon)
        while is_free and lnl - before > TUNING_SHARE * abs(lnl):
            before, lnl = lnl, fit_model()
        if stage.name == "start":
            self.cursor.first_length = float(likelihood.tree.lengths.sum())
        if not likelihood.has_site_rates:  # the first categories are those of poor lengths
            before, lnl = lnl, try_scales(likelihood, lnl, epsilon)
            if is_free and lnl > before:
                lnl = fit_model()
        return move_root(likelihood, lnl) if likelihood.is_rooted else lnl
