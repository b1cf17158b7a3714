"""Minima within bounds of sums of functions that hardly share variables, such as the likelihoods of parts.

Each function has an approximation of its own Hessian, by the update of Broyden, Fletcher, Goldfarb and Shanno, damped
(Powell 1978) so that it stays positive definite; together they are that of the sum (Griewank and Toint 1982). Functions
without a common variable are minimised in lock-step: an evaluation has a point of each, and each takes, shortens or
ends its steps on its own. Steps are projected onto the bounds (Bertsekas 1982).

All but the small matrices of `LimitedMemory` is done without numpy's matrix routines, whose bits may depend on the
number of threads.
"""

from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

from plltool.arrays import BoolArray, FloatArray, IndexArray, distinct
from plltool.codec import saved
from plltool.constants import MAX_BACKTRACKS

LEAST_CURVATURE = 0.2  # share of the curvature along a step that an update of the Hessian keeps at least (Powell 1978)
SUFFICIENT_DECREASE = 1e-4  # share of the gain promised by the gradient that a step must reach (Armijo)
LEAST_SCALE = 1e-3  # of a guess; curvatures of lnL are that much smaller than expected where branches are very long
REMEMBERED_STEPS = 6  # of many variables, which tell how they interact; 12 need as many

Function = Callable[[FloatArray, BoolArray], tuple[FloatArray, Sequence[FloatArray]]]


@saved("matrices")
class Curvatures:
    """Approximate Hessians of some functions; a later minimisation of nearly the same functions may go on with them.

    Those in `matrices` are (k, k) for k variables, positive definite; None while nothing is known.
    """

    guessed: frozenset[int] = frozenset()  # the functions whose matrices are guesses, until a step tells more

    def __init__(self, n_functions: int):
        self.matrices: list[FloatArray | None] = [None] * n_functions
        self.is_final = False  # whether the last minimisation ended because no step promised more

    def copy(self) -> "Curvatures":
        """Others with the same matrices; matrices are replaced and never changed, so the two may share them."""
        same = Curvatures(0)
        same.matrices = list(self.matrices)
        return same

    def guess(self, number: int, matrix: FloatArray) -> None:
        """Begin with a matrix (k, k) whose proportions are about right; the first step tells its size."""
        self.matrices[number] = matrix
        self.guessed |= {number}

    def forget_guesses(self) -> None:
        """Forget the matrices that no step has tried."""
        for number in self.guessed:
            self.matrices[number] = None
        self.guessed = frozenset()

    def update(self, number: int, change: FloatArray, turn: FloatArray) -> None:
        """Learn that the gradient (k,) of a function turned by `turn` where its variables changed by `change`."""
        matrix, found = self.matrices[number], float(change @ turn)
        if matrix is None:
            if found <= np.finfo(float).eps * (turn @ turn):
                return
            matrix = (turn @ turn) / found * np.eye(len(change))
        ahead = (matrix * change).sum(axis=1)
        expected = float(change @ ahead)
        if expected == 0.0:
            return
        if number in self.guessed:  # its size is that along the first step
            scale = min(1.0, max(found / expected, LEAST_SCALE))
            matrix, ahead, expected = scale * matrix, scale * ahead, scale * expected
            self.guessed -= {number}
        if found < LEAST_CURVATURE * expected:
            share = (1 - LEAST_CURVATURE) * expected / (expected - found)
            turn = share * turn + (1 - share) * ahead
        self.matrices[number] = matrix - np.outer(ahead, ahead) / expected + np.outer(turn, turn) / (change @ turn)


class LimitedMemory(Curvatures):
    """The Hessian of one function of many variables: a start, and what the last steps add to it (Nocedal 1980).

    The start is a positive `diagonal` for the first variables, and positive definite `blocks` for those that follow.
    """

    def __init__(self, diagonal: FloatArray, blocks: Sequence[FloatArray]):
        super().__init__(1)
        self._diagonal, self._inverses = diagonal, [np.linalg.inv(block) for block in blocks]
        self._pairs: deque[tuple[FloatArray, FloatArray]] = deque(maxlen=REMEMBERED_STEPS)
        self.matrices[0] = diagonal  # it is known

    def update(self, number: int, change: FloatArray, turn: FloatArray) -> None:
        """Remember a step, unless the function is concave along it."""
        if self.matrices[0] is None:
            self._pairs.clear()
        if (change * turn).sum() > 0.0:
            self._pairs.append((change, turn))
            self.matrices[0] = self._diagonal

    def solve(self, gradient: FloatArray, free: BoolArray) -> FloatArray:
        """The inverse of the Hessian of the `free` variables times their gradient; 0 for the others."""
        left, used = np.where(free, gradient, 0.0), []
        for change, turn in reversed(self._pairs if self.matrices[0] is not None else ()):
            change, turn = np.where(free, change, 0.0), np.where(free, turn, 0.0)
            curvature = (change * turn).sum()
            if curvature > 0.0:
                share = (change * left).sum() / curvature
                left = left - share * turn
                used.append((change, turn, curvature, share))
        ends = np.cumsum([len(self._diagonal), *map(len, self._inverses)])
        first, *others = np.split(left, ends[:-1])
        blocks = [(inverse * own).sum(axis=1) for inverse, own in zip(self._inverses, others, strict=True)]
        left = np.where(free, np.concatenate([first / self._diagonal, *blocks]), 0.0)
        for change, turn, curvature, share in reversed(used):
            left = left + (share - (turn * left).sum() / curvature) * change
        return left


class _Descent:
    """Functions that are linked by common variables, or a single one: they go down one line together.

    It `is_done` at the minimum, as far as can be told, and `is_blind` while no curvature is known.
    """

    def __init__(
        self,
        functions: Sequence[int],
        members: Sequence[IndexArray],
        bounds: FloatArray,
        curvatures: Curvatures,
        epsilon: float,
    ):
        self.functions = list(functions)  # their numbers
        self.variables = distinct(np.concatenate([members[number] for number in functions]))
        self._places = [np.searchsorted(self.variables, members[number]) for number in functions]
        self._is_shared = np.bincount(np.concatenate(self._places)) > 1
        self._low, self._high = bounds[self.variables].T
        self._curvatures = curvatures
        self._epsilon = epsilon

    def begin(self, point: FloatArray, values: FloatArray, gradients: Sequence[FloatArray]) -> None:
        """Choose the first line, from `point`; values and gradients are for all functions."""
        self._go(point[self.variables], values, gradients)
        self._choose_line(np.inf)

    @property
    def trial(self) -> FloatArray:
        """The point to evaluate next."""
        return np.clip(self.point + self._share * self._step, self._low, self._high)

    def judge(self, values: FloatArray, gradients: Sequence[FloatArray]) -> None:
        """Go to the trial point if it is low enough, otherwise shorten the step; arguments as for `begin`."""
        trial = self.trial
        change, before = trial - self.point, self._gradients
        reached, promised = float(values[self.functions].sum()), float(self._gradient @ change)
        if not reached <= self._value + SUFFICIENT_DECREASE * promised:
            parabola = -promised / (2 * (reached - self._value - promised))  # its minimum, from slope and both values
            self._share *= min(0.5, max(0.1, parabola))
            self._n_tried += 1
            if self._n_tried == MAX_BACKTRACKS:
                self._give_up()
            return
        for number, places, old in zip(self.functions, self._places, before, strict=True):
            self._curvatures.update(number, change[places], gradients[number] - old)
        gain = np.inf if self.is_blind else self._value - reached
        self._go(trial, values, gradients)
        self._choose_line(gain)

    def _go(self, point: FloatArray, values: FloatArray, gradients: Sequence[FloatArray]) -> None:
        self.point, self._value = point, float(values[self.functions].sum())
        self._gradients = [gradients[number] for number in self.functions]
        self._gradient = np.zeros(len(self.variables))
        for gradient, places in zip(self._gradients, self._places, strict=True):
            self._gradient[places] += gradient

    def _choose_line(self, gain: float) -> None:
        """A quasi-Newton step of the variables that are free to move; done if it and the last `gain` are small."""
        down, up = (self.point <= self._low) & (self._gradient >= 0), (self.point >= self._high) & (self._gradient <= 0)
        self.is_blind = any(self._curvatures.matrices[number] is None for number in self.functions)
        free = ~(down | up)
        self._step = self._quasi_newton(free)
        self._share, self._n_tried = 1.0, 0
        promised = float(self._gradient @ (self.trial - self.point))
        is_small = gain < self._epsilon and -promised / 2 < self._epsilon
        self.is_done = not promised < 0 or (is_small and not self.is_blind)
        if not promised < 0 and not self.is_blind and self._gradient[free].any():  # rounding has spoilt the Hessian
            self._give_up()

    def _quasi_newton(self, free: BoolArray) -> FloatArray:
        """Minus the inverse of the Hessian of the `free` variables times their gradient; 0 for the others.

        The variables that only one function has are eliminated one function after another, the shared ones at last.
        """
        if isinstance(self._curvatures, LimitedMemory):
            return -self._curvatures.solve(self._gradient, free)
        guess = max(1.0, float(np.abs(self._gradient[free]).sum()))  # of a curvature that is not known: a short step
        shared = np.flatnonzero(self._is_shared & free)
        left = np.column_stack([np.zeros((len(shared), len(shared))), -self._gradient[shared]])
        eliminated = []
        for number, places in zip(self.functions, self._places, strict=True):
            matrix = self._curvatures.matrices[number]
            matrix = guess * np.eye(len(places)) if matrix is None else matrix
            own, common = (np.flatnonzero(free[places] & (self._is_shared[places] == kind)) for kind in (False, True))
            order = np.append(own, common)
            right = np.where(self._is_shared[places], 0.0, -self._gradient[places])
            rows = np.column_stack([matrix[np.ix_(order, order)], right[order]])
            _eliminate(rows, len(own))
            into = np.searchsorted(shared, places[common])
            left[np.ix_(into, np.append(into, len(shared)))] += rows[len(own) :, len(own) :]
            eliminated.append((rows[: len(own)], places[own], places[common]))
        step = np.zeros(len(free))
        _eliminate(left, len(shared))
        for rows, own, common in [(left, shared, shared[:0]), *eliminated]:
            for k in range(len(own) - 1, -1, -1):
                later = np.concatenate([own[k + 1 :], common])
                step[own[k]] = rows[k, -1] - rows[k, k + 1 : -1] @ step[later]
        return step

    def _give_up(self) -> None:
        """Try steepest descent, unless that was tried already."""
        was_blind = self.is_blind
        for number in self.functions:
            self._curvatures.matrices[number] = None
        self._choose_line(np.inf)
        self.is_done |= was_blind


def minimise(
    function: Function,
    start: FloatArray,
    bounds: FloatArray,
    members: Sequence[IndexArray],
    epsilon: float,
    max_evaluations: int,
    curvatures: Curvatures | None = None,
) -> FloatArray:
    """The best point met on the way from `start` to a minimum of a sum of functions within `bounds` (n, 2).

    function : called with a vector (n,) and whether each function is wanted (n_functions,); returns their values
        (n_functions,) and their gradients, each in its own variables. Those of functions not wanted are not read
    members : of each function the numbers of its variables, ascending
    epsilon : stop when an iteration decreases the sum by less, and the next one is not expected to decrease it by more;
        functions that share no variable with others have equal shares of it and stop on their own
    curvatures : of the functions, as an earlier call left them; they are updated
    """
    curvatures = curvatures or Curvatures(len(members))
    linked = _link(members)
    descents = [_Descent(functions, members, bounds, curvatures, epsilon / len(linked)) for functions in linked]
    best = np.clip(start, *bounds.T)
    wanted = np.array([len(variables) > 0 for variables in members])
    if not descents:
        return best
    values, gradients = function(best, wanted)
    for descent in descents:
        descent.begin(best, values, gradients)
    for _ in range(max_evaluations - 1):
        moving = [descent for descent in descents if not descent.is_done]
        if not moving:
            break
        trial = best.copy()
        wanted[:] = False
        for descent in moving:
            trial[descent.variables], wanted[descent.functions] = descent.trial, True
        values, gradients = function(trial, wanted)
        for descent in moving:
            descent.judge(values, gradients)
            best[descent.variables] = descent.point
    curvatures.forget_guesses()
    curvatures.is_final = all(one.is_done and not one.is_blind for one in descents)
    return best


def _eliminate(rows: FloatArray, count: int) -> None:
    """Eliminate the first variables of linear equations in place; each row holds coefficients and a right-hand side."""
    for k in range(count):
        rows[k, k + 1 :] /= rows[k, k]
        rows[k + 1 :, k + 1 :] -= rows[k + 1 :, k, None] * rows[k, k + 1 :]


def _link(members: Sequence[IndexArray]) -> list[list[int]]:
    """The numbers of the functions that have variables; those together that share some."""
    blocks: list[tuple[set[int], list[int]]] = []
    for number, variables in enumerate(members):
        own = set(variables.tolist())
        common = [block for block in blocks if block[0] & own]
        blocks = [block for block in blocks if not block[0] & own]
        if own:
            functions = [other for _, others in common for other in others]
            blocks.append((own.union(*(shared for shared, _ in common)), [*functions, number]))
    return [functions for _, functions in blocks]
