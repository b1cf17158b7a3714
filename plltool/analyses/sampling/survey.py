"""Questions: what an informed move wants to know of the surroundings of a state, as a program of one launch.

The program reads the CLAs of a chain, which look towards tip 0, and makes those that look away from it on the way down
the tree. At each branch both are there, so the likelihood of any change at the branch, or its slope in the length,
takes a few instructions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plltool.analyses.sampling.tree import ROOT, Topology
from plltool.arrays import FloatArray
from plltool.engine.contract import DERIVATIVE_VALUES, Opcode

if TYPE_CHECKING:
    from plltool.analyses.sampling.state import State

N_SPARE = 2  # slots of a chain for CLAs that are read at once


def survey_slots(n_taxa: int) -> int:
    """The number of CLAs of a chain that surveys need besides those of its tree: one for each step down the tree."""
    return n_taxa - 2 + N_SPARE


class Survey:
    """Writes the program of a question.

    Parameters
    ----------
    operands : (n_nodes,) the CLA below each node: a slot, or ~tip
    others : (n_nodes,) a slot for each inner node that the question may write to
    first : the first of `survey_slots`
    rows : the program so far
    lengths : those that it reads; the branch above node u has place u
    n_values : number of values so far

    Attributes
    ----------
    operands : as given; a question may put other CLAs in their place
    places : (n_nodes,) of the lengths of branches; likewise
    spare : slots for CLAs that are read at once
    """

    def __init__(
        self,
        operands: list[int],
        others: Sequence[int],
        first: int,
        rows: list[tuple[int, ...]],
        lengths: list[float],
        n_values: int,
    ):
        n_nodes = len(operands)
        self.operands, self.others = operands, others
        self.places = list(range(n_nodes))
        self._first = first
        n_steps = n_nodes // 2 - 1
        self.spare = range(first + n_steps, first + n_steps + N_SPARE)
        self._rows, self._lengths, self._n_values = rows, lengths, n_values

    def place_length(self, length: float) -> int:
        """The place of one more length."""
        self._lengths.append(length)
        return len(self._lengths) - 1

    def newview(self, slot: int, a: int, pa: int, b: int, pb: int) -> None:
        """See `program.newview`; likewise the others."""
        self._rows.append((Opcode.NEWVIEW, slot, a, pa, b, pb, 0, 0))

    def propagate(self, slot: int, a: int, pa: int) -> None:
        self._rows.append((Opcode.PROPAGATE, slot, a, pa, 0, 0, 0, 0))

    def evaluate(self, value: int, a: int, b: int, branch: int) -> None:
        self._rows.append((Opcode.EVALUATE, self._n_values + value, a, 0, b, branch, 0, 0))

    def derivative(self, value: int, a: int, b: int, branch: int) -> None:
        self._rows.append((Opcode.DERIVATIVE, self._n_values + value, a, 0, b, branch, 0, 0))

    def insert(self, value: int, a: int, pa: int, b: int, pb: int, c: int) -> None:
        self._rows.append((Opcode.INSERT, self._n_values + value, a, pa, b, pb, c, 0))

    def rate_matrix_gradient(self, value: int, a: int, b: int, branch: int, begins: bool) -> None:
        self._rows.append((Opcode.RATE_MATRIX_GRADIENT, self._n_values + value, a, 0, b, branch, int(begins), 0))

    def mass_gradient(self, value: int, a: int, b: int, branch: int) -> None:
        self._rows.append((Opcode.MASS_GRADIENT, self._n_values + value, a, 0, b, branch, 0, 0))

    def descend(self, topology: Topology, wanted: Collection[int]) -> Iterator[tuple[int, int]]:
        """Each wanted node, with the CLA of all that is not below it, at its parent; parents come first.

        The parents of wanted nodes are wanted. The CLA of a node is there until all below the node have come.
        """
        above = [~ROOT] * topology.n_nodes
        stack = [(topology.top, -1)]
        while stack:
            node, step = stack.pop()
            if step >= 0:
                parent, sibling, slot = topology.parent[node], topology.sibling(node), self._first + step
                self.newview(slot, above[parent], self.places[parent], self.operands[sibling], self.places[sibling])
                above[node] = slot
            yield node, above[node]
            if node >= topology.n_taxa:
                children = topology.left[node], topology.right[node]
                stack += ((child, step + 1) for child in children if child in wanted)


class Question(ABC):
    """What is asked of the surroundings of a state. Questions are equal if their programs are."""

    @property
    @abstractmethod
    def n_values(self) -> int:
        """How many numbers the answer has."""

    @abstractmethod
    def write(self, state: State, survey: Survey) -> None:
        """Write the program of the answer."""

    def read(self, values: FloatArray, state: State) -> Any:
        """The answer from the values (n_values, n_parts) that the program makes: their sums over parts, as a list."""
        return values.sum(axis=1).tolist()

    def without_data(self) -> Any:
        """The answer where lnL is 0 everywhere."""
        return [0.0] * self.n_values


class Neighbours(Question):
    """The log-likelihoods of some neighbours of a state."""

    @abstractmethod
    def neighbour(self, state: State, number: int) -> tuple[Topology, list[float]]:
        """Topology and lengths of a neighbour."""


@dataclass(frozen=True)
class Slopes(Question):
    """The first and second derivatives of lnL in the length of the branch above each node but tip 0.

    The answer has lnL and both derivatives of each branch, three numbers.
    """

    n_nodes: int

    @property
    def n_values(self) -> int:
        return DERIVATIVE_VALUES * (self.n_nodes - 1)

    def write(self, state: State, survey: Survey) -> None:
        for node, above in survey.descend(state.topology, range(1, state.topology.n_nodes)):
            survey.derivative(DERIVATIVE_VALUES * (node - 1), above, survey.operands[node], survey.places[node])
