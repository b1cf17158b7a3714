"""CLAs that later requests read.

An engine whose CLAs outlive a launch makes them once. One that streams patterns through the same storage makes them
again in front of every request, so that the request needs nothing from before. The caller sees no difference.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from plltool.arrays import FloatArray, IntArray
from plltool.engine import program as prog
from plltool.engine.program import Request
from plltool.engine.requests import Answer, Clas, Holder


class PreparedClas(Clas):
    """CLAs made by `program` at `lengths`, for requests that bring lengths of their own; see `Engine.prepare`.

    They are valid until the engine gets another model or runs a program that uses the same slots.

    Attributes
    ----------
    lengths : (n_branches,) or (n_parts, n_branches), those of the program that makes the CLAs; a copy
    """

    def __init__(self, engine: Holder, program: IntArray, lengths: FloatArray):
        self._engine = engine
        self._program = program
        self.lengths = np.array(lengths, dtype=np.float64)
        self.n_parts = engine.n_parts

    def extend(self, program: IntArray, lengths: FloatArray) -> PreparedClas:
        if self._engine.resident:
            self._engine.execute(Request(program), lengths)
            return self
        return PreparedClas(self._engine, *self._behind(program, lengths))

    def ask(self, request: Request, lengths: FloatArray) -> Answer:
        """Begin a program that reads the CLAs; see `Requests.execute`."""
        return self._engine.ask(*self._self_contained(request, lengths))

    def ask_sites(self, request: Request, lengths: FloatArray) -> Answer:
        return self._engine.ask_sites(*self._self_contained(request, lengths))

    def _self_contained(self, request: Request, lengths: FloatArray) -> tuple[Request, FloatArray]:
        """The request; where CLAs do not outlive a launch, with what makes those that it needs in front of it."""
        if self._engine.resident:
            return request, lengths
        program, lengths = self._behind(request.program, lengths)
        program = prog.without_unread(program)
        return replace(request, program=program, pieces=prog.one_piece(), scratch=range(0)), lengths

    def _behind(self, program: IntArray, lengths: FloatArray) -> tuple[IntArray, FloatArray]:
        """One program that makes the CLAs and then runs `program`, and its lengths: those of `program` first."""
        lengths = np.asarray(lengths, dtype=np.float64)
        rows = max(lengths.ndim, self.lengths.ndim) - 1
        if rows:
            lengths, own = (np.broadcast_to(x, (self.n_parts, x.shape[-1])) for x in (lengths, self.lengths))
        else:
            own = self.lengths
        first = lengths.shape[-1]
        making = prog.renumber_branches(self._program, lambda branches: branches + np.int32(first))
        return np.concatenate([making, program]), np.concatenate([lengths, own], axis=-1)
