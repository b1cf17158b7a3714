"""The protocol of the likelihood engines.

An engine owns tip codes, pattern weights, a model per part and a set of CLA slots. It knows no tree and no search:
it executes programs (`program.py`) over branch lengths that come with them. Subclasses implement `_execute`,
`_site_values` and the setters; the requests here are thin batches on top, identical for all engines.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plltool.engine import program as prog
from plltool.engine.layout import Layout
from plltool.errors import EngineError
from plltool.model.components import Components

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int32]


@dataclass
class Counters:
    """Work done so far; no CLA is ever among the bytes.

    Attributes
    ----------
    launches : kernels enqueued
    instructions, newviews : executed, over all patterns at once
    bytes_to_device, bytes_from_device : over the bus
    requests : how often each kind of request was made
    request_instructions : instructions in all requests of each kind; over `requests`, the mean batch
    """

    launches: int = 0
    instructions: int = 0
    newviews: int = 0
    bytes_to_device: int = 0
    bytes_from_device: int = 0
    requests: dict[str, int] = field(default_factory=dict)
    request_instructions: dict[str, int] = field(default_factory=dict)

    def count(self, request: str, program: IntArray) -> None:
        """Add one request."""
        self.instructions += len(program)
        self.newviews += int(np.count_nonzero(program[:, 0] == prog.NEWVIEW))
        self.requests[request] = self.requests.get(request, 0) + 1
        self.request_instructions[request] = self.request_instructions.get(request, 0) + len(program)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class Tables(NamedTuple):
    """What a program reads of each branch besides its P matrix and decays."""

    slopes: bool = False
    responses: bool = False

    def cover(self, other: Tables) -> bool:
        """Whether these are all that `other` asks for."""
        return self.slopes >= other.slopes and self.responses >= other.responses


class Engine(ABC):
    """Base of the numpy and the OpenCL engine.

    Parameters
    ----------
    layout : shapes and padding
    n_slots : number of CLA slots to hold
    codes : unsigned integers (n_taxa, n_patterns), sets of states as bits, parts one after another
    weights : float64 (n_patterns,) or (n_weight_sets, n_patterns)
    """

    name = ""

    def __init__(self, layout: Layout, n_slots: int, codes: npt.NDArray[np.integer], weights: FloatArray):
        if codes.shape != (layout.n_taxa, layout.n_patterns):
            raise EngineError(f"codes have shape {codes.shape}, the layout {(layout.n_taxa, layout.n_patterns)}")
        weights = np.atleast_2d(np.asarray(weights, dtype=np.float64))
        if weights.shape[1] != layout.n_patterns:
            raise EngineError(f"{weights.shape[1]} weights for {layout.n_patterns} patterns")
        self.layout = layout
        self.n_slots = n_slots
        self.n_weight_sets = len(weights)
        self.counters = Counters()

    @property
    @abstractmethod
    def device_name(self) -> str:
        """The hardware that does the arithmetic."""

    @abstractmethod
    def set_model(self, parts: Sequence[Components]) -> None:
        """Use one model per part from now on; CLAs made before are stale.

        Raises EngineError if the number of parts, states or components differs from the layout's.
        """

    @abstractmethod
    def _execute(
        self, program: IntArray, lengths: FloatArray, n_values: int, weight_set: int, tables: Tables
    ) -> FloatArray:
        """Run `program`; lengths (n_parts, n_branches); returns sums per part (n_parts, n_values)."""

    @abstractmethod
    def _site_values(self, program: IntArray, lengths: FloatArray) -> FloatArray:
        """Run a program that ends in one EVALUATE; returns lnL per pattern (n_patterns,)."""

    def close(self) -> None:  # noqa: B027 (nothing to free is a valid answer)
        """Free what the engine holds on its device."""

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def execute(
        self, program: IntArray, lengths: FloatArray, n_values: int = 0, weight_set: int = 0, request: str = "run"
    ) -> FloatArray:
        """Run a program in one launch (one per memory chunk).

        Parameters
        ----------
        program : int32 (n, 8), see `program.py`
        lengths : (n_branches,) or (n_parts, n_branches), expected substitutions per site
        n_values : how many numbers the program makes
        weight_set : the weights that sums are taken with
        request : what the counters file this under

        Returns
        -------
        float64 (n_parts, n_values), sums over the patterns of each part.

        Raises
        ------
        EngineError
            If a pattern's likelihood is not positive and finite; names the pattern.
        """
        lengths = np.asarray(lengths, dtype=np.float64)
        if lengths.ndim == 1:
            lengths = np.broadcast_to(lengths, (self.layout.n_parts, len(lengths)))
        self.counters.count(request, program)
        opcodes = program[:, 0]
        tables = Tables(bool(np.any(opcodes == prog.TRIPLET)), bool(np.any(opcodes == prog.GRADIENT)))
        return self._execute(np.ascontiguousarray(program), lengths, n_values, weight_set, tables)

    def run(self, operations: IntArray, lengths: FloatArray) -> None:
        """Make CLAs: `operations` are PROPAGATE and NEWVIEW instructions."""
        self.execute(operations, lengths)

    def evaluate(self, edges: npt.ArrayLike, lengths: FloatArray) -> FloatArray:
        """lnL across each edge.

        `edges` is int (n, 3): a, b, branch. Returns (n, n_parts, n_weight_sets).
        """
        rows = np.asarray(edges).reshape(-1, 3)
        program = prog.evaluate(np.arange(len(rows)), rows[:, 0], rows[:, 1], rows[:, 2])
        sets = [
            self.execute(program, lengths, len(rows), weight_set=s, request="evaluate")
            for s in range(self.n_weight_sets)
        ]
        return np.stack(sets, axis=-1).transpose(1, 0, 2)

    def site_lnl(self, a: int, b: int, branch: int, lengths: FloatArray) -> FloatArray:
        """lnL of each pattern (n_patterns,) across one edge, not weighted."""
        lengths = np.asarray(lengths, dtype=np.float64)
        if lengths.ndim == 1:
            lengths = np.broadcast_to(lengths, (self.layout.n_parts, len(lengths)))
        return self._site_values(prog.evaluate(0, a, b, branch), lengths)

    def derivatives(self, edges: npt.ArrayLike, lengths: FloatArray) -> FloatArray:
        """lnL, d1, d2 in the length of each edge.

        `edges` is int (n, 3): a, b, branch. Returns (n, n_parts, 3).
        """
        rows = np.asarray(edges).reshape(-1, 3)
        n = prog.DERIVATIVE_VALUES
        program = prog.derivative(n * np.arange(len(rows)), rows[:, 0], rows[:, 1], rows[:, 2])
        values = self.execute(program, lengths, n * len(rows), request="derivatives")
        return values.reshape(self.layout.n_parts, len(rows), n).transpose(1, 0, 2)

    def triplets(self, joins: npt.ArrayLike, lengths: FloatArray) -> FloatArray:
        """lnL, gradient and Hessian in the three lengths around each join.

        `joins` is int (n, 6): a, pa, b, pb, c, pc. Returns (n, n_parts, 10), see `program.triplet`.
        """
        rows = np.asarray(joins).reshape(-1, 6)
        n = prog.TRIPLET_VALUES
        program = prog.triplet(n * np.arange(len(rows)), *rows.T)
        values = self.execute(program, lengths, n * len(rows), request="triplets")
        return values.reshape(self.layout.n_parts, len(rows), n).transpose(1, 0, 2)

    def _check_parts(self, parts: Sequence[Components]) -> None:
        shapes = {(part.n_states, part.n_components) for part in parts}
        if len(parts) != self.layout.n_parts or shapes != {(self.layout.n_states, self.layout.n_components)}:
            raise EngineError(
                f"the layout holds {self.layout.n_parts} parts of {self.layout.n_states} states and "
                f"{self.layout.n_components} components, the models are {sorted(shapes)} for {len(parts)} parts"
            )
        if any(np.any(part.eigenvalues[:, -1] != 0.0) for part in parts):
            raise EngineError("the last eigenvalue of every component must be exactly 0")

    def _check_finite(self, values: FloatArray, bad_lane: int | None) -> None:
        """Raise if a sum is not finite; `bad_lane` is the padded index of a pattern that caused it, if known."""
        if np.all(np.isfinite(values)):
            return
        where = "an unknown pattern"
        if bad_lane is not None:
            hits = np.flatnonzero(self.layout.lane_of_pattern == bad_lane)
            where = f"pattern {int(hits[0])}" if len(hits) else f"padding lane {bad_lane}"
        raise EngineError(f"the likelihood of {where} is not positive and finite")
