"""CLAs that later requests read.

An engine whose CLAs outlive a launch makes them once. One that streams patterns through the same storage makes them
anew in front of every request, which thereby becomes self-contained; whoever asks does not see the difference.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from plltool.engine import program as prog
from plltool.engine.program import Request

if TYPE_CHECKING:
    from plltool.engine.base import Engine

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int32]


class Requests(ABC):
    """Thin batches on top of `execute`."""

    n_parts: int

    @abstractmethod
    def execute(self, request: Request, lengths: FloatArray) -> FloatArray:
        """Run a program, see `Engine.execute`."""

    @abstractmethod
    def execute_sites(self, request: Request, lengths: FloatArray) -> FloatArray:
        """Run a program of which every value is an EVALUATE, pattern by pattern.

        Returns
        -------
        float64 (n_values, n_patterns), lnL, not weighted; -inf where the request allows patterns to be impossible.

        Raises
        ------
        EngineError
            As `Engine.execute`.
        """

    def site_lnl(
        self, a: int, b: int, branch: int, lengths: FloatArray, operations: IntArray | None = None
    ) -> FloatArray:
        """lnL of each pattern (n_patterns,) across one edge, not weighted; `operations` are run first."""
        program = prog.evaluate(0, a, b, branch)
        if operations is not None:
            program = np.concatenate([operations, program])
        return self.execute_sites(Request(program, 1, "site lnl"), lengths)[0]

    def _each(self, program: IntArray, n_values: int, lengths: FloatArray, kind: str) -> FloatArray:
        """(n, n_parts, n_values) for instructions that make `n_values` numbers each, one after another."""
        n = len(program)
        request = Request(program, n_values * n, kind, pieces=np.arange(n, dtype=np.int32))
        return self.execute(request, lengths).reshape(self.n_parts, n, n_values).transpose(1, 0, 2)

    def derivatives(self, edges: npt.ArrayLike, lengths: FloatArray) -> FloatArray:
        """lnL, d1, d2 in the length of each edge.

        `edges` is int (n, 3): a, b, branch. Returns (n, n_parts, 3).
        """
        rows = np.asarray(edges).reshape(-1, 3)
        n = prog.DERIVATIVE_VALUES
        program = prog.derivative(n * np.arange(len(rows)), rows[:, 0], rows[:, 1], rows[:, 2])
        return self._each(program, n, lengths, "derivatives")

    def triplets(self, joins: npt.ArrayLike, lengths: FloatArray) -> FloatArray:
        """lnL, gradient and Hessian in the three lengths around each join.

        `joins` is int (n, 6): a, pa, b, pb, c, pc. Returns (n, n_parts, 10), see `program.triplet`.
        """
        rows = np.asarray(joins).reshape(-1, 6)
        n = prog.TRIPLET_VALUES
        program = prog.triplet(n * np.arange(len(rows)), *rows.T)
        return self._each(program, n, lengths, "triplets")


class PreparedClas(Requests):
    """CLAs made by `program` at `lengths`, for requests whose lengths are their own; see `Engine.prepare`.

    They are good until the engine gets another model or runs a program that uses the same slots.

    Attributes
    ----------
    lengths : (n_branches,) or (n_parts, n_branches) those of the program that makes the CLAs; a copy
    """

    def __init__(self, engine: Engine, program: IntArray, lengths: FloatArray):
        self._engine = engine
        self._program = program
        self.lengths = np.array(lengths, dtype=np.float64)
        self.n_parts = engine.layout.n_parts

    def extend(self, program: IntArray, lengths: FloatArray) -> PreparedClas:
        """These CLAs and those that `program` makes of them at lengths of its own, in other slots."""
        if self._engine.resident:
            self._engine.run(program, lengths)
            return self
        return PreparedClas(self._engine, *self._behind(program, lengths))

    def execute(self, request: Request, lengths: FloatArray) -> FloatArray:
        """Run a program that reads the CLAs, see `Engine.execute`."""
        return self._engine.execute(*self._self_contained(request, lengths))

    def execute_sites(self, request: Request, lengths: FloatArray) -> FloatArray:
        return self._engine.execute_sites(*self._self_contained(request, lengths))

    def _self_contained(self, request: Request, lengths: FloatArray) -> tuple[Request, FloatArray]:
        """The request, and where CLAs do not outlive a launch what makes them in front of it."""
        if self._engine.resident:
            return request, lengths
        program, lengths = self._behind(request.program, lengths)
        return replace(request, program=program, pieces=prog.one_piece(), scratch=range(0)), lengths

    def _behind(self, program: IntArray, lengths: FloatArray) -> tuple[IntArray, FloatArray]:
        """One program that makes the CLAs and then runs `program`, and its lengths: those of `program` first."""
        lengths = np.asarray(lengths, dtype=np.float64)
        rows = max(lengths.ndim, self.lengths.ndim) - 1
        if rows:
            lengths, own = (np.broadcast_to(x, (self.n_parts, x.shape[-1])) for x in (lengths, self.lengths))
        else:
            own = self.lengths
        making = self._program.copy()
        making[:, prog.BRANCHES] += lengths.shape[-1]
        return np.concatenate([making, program]), np.concatenate([lengths, own], axis=-1)
