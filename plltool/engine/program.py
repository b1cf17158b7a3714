"""Instruction lists, and requests to execute them: what an engine does in one launch.

An instruction is eight int32: opcode, result, a, pa, b, pb, c, pc. ``a``, ``b`` and ``c`` name CLAs: a slot (>= 0)
or a tip (``~taxon``). ``pa``, ``pb`` and ``pc`` are branches: indices into the lengths that go with the program.
``result`` is a slot for instructions that make a CLA, and an index into the answer for those that make numbers.
The builders below broadcast their arguments and return int32 arrays (n, 8), to be joined with ``np.concatenate``.
`kernels/traverse.cl` gives the formula of each.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int32]
Ints = npt.ArrayLike

PROPAGATE, NEWVIEW, EVALUATE, DERIVATIVE, INSERT, TRIPLET, GRADIENT, ROOT = range(8)
N_WORDS = 8
BRANCHES = [3, 5]  # the words pa and pb: all branches of every instruction but TRIPLET

DERIVATIVE_VALUES = 3  # lnL, d1, d2
TRIPLET_VALUES = 10  # lnL, gradient (3), Hessian aa bb cc ab ac bc


def one_piece() -> IntArray:
    """The pieces of a program that cannot be cut."""
    return np.zeros(1, dtype=np.int32)


@dataclass(frozen=True, eq=False)
class Request:
    """A program and what is wanted of it.

    Attributes
    ----------
    program : int32 (n, N_WORDS)
    n_values : how many numbers it makes
    kind : what the counters file it under
    sets : the weight sets that EVALUATE sums with, a value each; other instructions use the first one only
    keep : whether the CLAs made are wanted afterwards; if not, all CLAs are stale then, and the engine may work in
        memory that stays in cache
    pieces : int32 (n_pieces,) first instructions of pieces of the program that do not read what another piece makes, so
        that they may run at the same time; the first is 0
    scratch : the slots that pieces write to; a piece does not mind if they are those of the same number further on
    impossible : whether patterns may have likelihood 0; of requests for sites only
    """

    program: IntArray
    n_values: int = 0
    kind: str = "run"
    sets: range = range(1)
    keep: bool = True
    pieces: IntArray = field(default_factory=one_piece)
    scratch: range = range(0)
    impossible: bool = False


def branches_at_tips(program: IntArray, n_branches: int) -> npt.NDArray[np.uint8]:
    """1 for each branch through which a NEWVIEW reads a tip, else 0; (n_branches,)."""
    newviews = program[program[:, 0] == NEWVIEW]
    found = np.zeros(n_branches, dtype=np.uint8)
    found[newviews[:, [3, 5]][newviews[:, [2, 4]] < 0]] = 1
    return found


def _instructions(opcode: int, *words: Ints) -> IntArray:
    columns = np.broadcast_arrays(*[np.asarray(w, dtype=np.int32) for w in words])
    program = np.zeros((columns[0].size, N_WORDS), dtype=np.int32)
    program[:, 0] = opcode
    for k, column in enumerate(columns):
        program[:, k + 1] = column.ravel()
    return program


def propagate(slot: Ints, a: Ints, pa: Ints) -> IntArray:
    """CLA[slot] = P(pa) a."""
    return _instructions(PROPAGATE, slot, a, pa)


def newview(slot: Ints, a: Ints, pa: Ints, b: Ints, pb: Ints) -> IntArray:
    """CLA[slot] = (P(pa) a) * (P(pb) b); `slot` may be a or b itself."""
    return _instructions(NEWVIEW, slot, a, pa, b, pb)


def evaluate(value: Ints, a: Ints, b: Ints, branch: Ints) -> IntArray:
    """One value for each weight set asked for: lnL across `branch` between a and b."""
    return _instructions(EVALUATE, value, a, 0, b, branch)


def derivative(value: Ints, a: Ints, b: Ints, branch: Ints) -> IntArray:
    """Three values: lnL and its first and second derivative in the length of `branch` between a and b."""
    return _instructions(DERIVATIVE, value, a, 0, b, branch)


def insert(value: Ints, a: Ints, pa: Ints, b: Ints, pb: Ints, c: Ints) -> IntArray:
    """One value: lnL of the tree in which P(pa) a, P(pb) b and the propagated slot c meet at one node."""
    return _instructions(INSERT, value, a, pa, b, pb, c)


def triplet(value: Ints, a: Ints, pa: Ints, b: Ints, pb: Ints, c: Ints, pc: Ints) -> IntArray:
    """Ten values: lnL, gradient and Hessian in the three lengths around the node where a, b and c meet."""
    return _instructions(TRIPLET, value, a, pa, b, pb, c, pc)


def gradient(value: int, a: Ints, b: Ints, branch: Ints) -> IntArray:
    """components * states^2 values, the sum over all branches given: how lnL answers to each rate matrix.

    `a` is on the side of the root where `root` is asked.
    """
    program = _instructions(GRADIENT, value, a, 0, b, branch)
    program[0, 6] = 1  # the first of the sum
    return program


def root(value: int, a: int, b: int, branch: int) -> IntArray:
    """components * states values: how lnL answers to relative changes of weights and frequencies at a."""
    return _instructions(ROOT, value, a, 0, b, branch)
