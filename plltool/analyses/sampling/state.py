"""The state of a chain: a tree and the values of all parameters, and what may be asked of its surroundings.

An informed move asks a question, which is a program of one launch. It reads the CLAs of a chain, which look towards tip
0, and makes those that look away from it on the way down the tree. At each branch both are there, so the likelihood of
any change at the branch, or its slope in the length, takes a few instructions.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from plltool.analyses.sampling.parameters import Parameter, Value
from plltool.analyses.sampling.priors import LengthPrior
from plltool.analyses.sampling.tree import ROOT, TimePoint, Topology, lengths_by_part, to_tree
from plltool.arrays import FloatArray
from plltool.constants import MAX_BRANCH_LENGTH, MIN_BRANCH_LENGTH
from plltool.engine.contract import DERIVATIVE_VALUES, Opcode
from plltool.model.model import Model
from plltool.tree.topology import Tree


class Known(NamedTuple):
    """The answer to a question, as `Question.read` gives it."""

    question: Any
    values: Any


class State(NamedTuple):
    """A point of the space that chains walk through; nothing in it is changed in place."""

    topology: Topology  # which node is above which
    # (n_nodes,) length of the branch above each node, 0 for tip 0; expected substitutions per site. If parts have their
    # own, more of them, see `plltool.analyses.sampling.tree`
    lengths: list[float]
    values: tuple[Value, ...]  # the value of each parameter
    value_priors: tuple[float, ...]  # the logarithm of the prior density of each
    length_prior: float  # that of the lengths, -inf if one is out of bounds; or that of the time tree and its clock
    models: tuple[Model, ...]  # of the parts, with these values
    packed: Any = None  # what `Engine.pack_models` made of them; None before an engine has seen them
    lnl: float = 0.0  # log-likelihood
    known: Known | None = None  # what was asked of the surroundings; None if nothing was
    time: TimePoint | None = None  # the time tree that topology and lengths follow from, if there is a clock

    @property
    def by_part(self) -> list[list[float]]:
        """The lengths (n_nodes,) of each part; only one list if parts share them."""
        return lengths_by_part(self.topology, self.lengths)

    @property
    def log_prior(self) -> float:
        """The logarithm of the prior density without the topology's, which is the same for all."""
        return self.length_prior + math.fsum(self.value_priors)

    @property
    def answer(self) -> Known:
        """What was asked of the surroundings."""
        assert self.known is not None, "it was asked for"
        return self.known

    @property
    def log_posterior(self) -> float:
        """Up to a constant."""
        return self.lnl + self.log_prior


COLUMNS = "LnL", "LnPr", "TL"  # as in the files of MrBayes, in front of the parameters


class Sample(NamedTuple):
    """What is kept of the state of a chain: the numbers of all columns, and the tree.

    A tree in time has a root, heights in place of lengths, and with a relaxed clock the rates of its branches.
    """

    numbers: list[float]
    topology: Topology
    lengths: list[float]
    rates: Sequence[float] = ()  # (n_nodes,) per site and year


@dataclass(frozen=True, eq=False)
class StateSpace:
    """What is sampled: the space of states, and the prior."""

    names: tuple[str, ...]  # the taxa
    models: tuple[Model, ...]  # of the parts, with the values of what is not sampled
    parameters: tuple[Parameter, ...]  # what is sampled of them
    length_prior: LengthPrior  # of branch lengths; if parts have their own, of those of each
    # the share of each part in the sites, if it has branch lengths of its own
    shares: tuple[float, ...] = field(default=(1.0,), kw_only=True)

    @cached_property
    def shape(self) -> tuple[int, int]:
        """The numbers of components and states, C and S, of the models, if all parts share them."""
        components = self.models[0].components()
        return components.n_components, components.n_states

    @property
    def n_coordinates(self) -> int:
        """The number of free values of all parameters, and of lengths of trees."""
        return sum(own.n_coordinates for own in self.parameters) + len(self.shares)

    @property
    def n_tips(self) -> int:
        """The number of tips of the trees that are sampled."""
        return len(self.names)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the numbers of a sample."""
        n = len(self.shares)
        of_trees = COLUMNS if n == 1 else (*COLUMNS[:-1], *(f"{COLUMNS[-1]}{{{part + 1}}}" for part in range(n)))
        return (*of_trees, *(name for own in self.parameters for name in own.columns))

    def sample(self, state: State) -> Sample:
        """A sample of a state."""
        shown = [x for own in self.parameters for x in own.shown(state.models)]
        numbers = [state.lnl, state.log_prior, *map(sum, state.by_part), *shown]
        return Sample(numbers, state.topology, state.lengths)

    def tree_of(self, topology: Topology, lengths: Sequence[float]) -> Tree:
        """The tree of a sample as an object."""
        return to_tree(topology, lengths, self.names)

    def point(self, state: State) -> tuple[Any, ...]:
        """What a state is made of, to be saved."""
        return state.topology, state.lengths, state.values

    def at(self, point: tuple[Any, ...]) -> State:
        """The state that was saved."""
        return self.state(*point)

    def state(
        self, topology: Topology, lengths: list[float], values: Sequence[Value], prior: float | None = None
    ) -> State:
        """A state with its models and a prior density, by default the one of the lengths, without its likelihood."""
        prior = self.log_prior_of(topology, lengths) if prior is None else prior
        priors = tuple(own.log_prior(value) for own, value in zip(self.parameters, values, strict=True))
        models = tuple(model.copy() for model in self.models)
        for parameter, value in zip(self.parameters, values, strict=True):
            parameter.assign(value, models)
        return State(topology, lengths, tuple(values), priors, prior, models)

    def start(self, topology: Topology, lengths: list[float]) -> State:
        """A state with the lengths and the values that the models have, or some near them that are possible."""
        inside = [0.0, *(min(max(length, MIN_BRANCH_LENGTH), MAX_BRANCH_LENGTH) for length in lengths[1:])]
        return self.state(topology, inside, [own.start_in(self.models) for own in self.parameters])

    def log_prior_of(self, topology: Topology, lengths: list[float]) -> float:
        """The logarithm of the prior density of branch lengths; -inf if one is out of bounds."""
        if min(lengths[1:]) < MIN_BRANCH_LENGTH or max(lengths) > MAX_BRANCH_LENGTH:
            return -math.inf
        return sum(
            self.length_prior.log_density_of_lengths(topology, own) for own in lengths_by_part(topology, lengths)
        )

    def moved(self, state: State, topology: Topology, lengths: list[float]) -> State:
        """The state with another topology or other lengths."""
        prior = self.log_prior_of(topology, lengths)
        return state._replace(topology=topology, lengths=lengths, length_prior=prior, known=None)

    def revalued(self, state: State, changes: Mapping[int, Value]) -> State:
        """The state with other values of some parameters; its models stay as they are if a value is impossible."""
        values, priors, models = list(state.values), list(state.value_priors), list(state.models)
        for number, value in changes.items():
            values[number], priors[number] = value, self.parameters[number].log_prior(value)
        if all(priors[number] > -math.inf for number in changes):
            for part in {part for number in changes for part in self.parameters[number].parts}:
                models[part] = models[part].copy()
            for number, value in changes.items():
                self.parameters[number].assign(value, models)
        return state._replace(values=tuple(values), value_priors=tuple(priors), models=tuple(models), known=None)


ALL_NODES = None  # of `Proposal.stale`: every CLA has to be made again


class Proposal(NamedTuple):
    """A state that a move proposes."""

    state: State  # the new state with its prior density; what an engine says of it is that of the old one
    log_ratio: float  # the logarithm of the Hastings ratio, or of what the move knows of it before the answer
    stale: tuple[int, ...] | None  # inner nodes whose CLAs, and those of all above them, change; ALL_NODES for all
    revalued: bool = False  # whether the value of a parameter of a model changes
    question: Question | None = None  # what to ask of the surroundings of the new state; None for nothing
    # log-likelihood of the new state if the move knows it, so that an engine is asked only if it is accepted
    lnl: float | None = None
    trajectory: Any = None  # what a move with several legs carries to the next one


N_SPARE = 2  # slots of a chain for CLAs that are read at once


def sampling_slots(n_taxa: int, n_chains: int) -> int:
    """The number of CLAs of chains: two for each inner node, and one for each step of questions down the tree."""
    return (3 * (n_taxa - 2) + N_SPARE) * n_chains


@dataclass(eq=False)
class QuestionProgram:
    """Writes the program of a question; `write` adds an instruction, whose operands are as in `plltool.engine.program`.

    A question may put other CLAs and places in those of `operands` and `places`, which are by node, and writes to the
    slots `others` of inner nodes and to `spare`, for CLAs that are read at once. Each part has lengths, or all parts
    share one list.
    """

    operands: list[int]  # (n_nodes,) the CLA below each node: a slot, or ~tip
    others: Sequence[int]
    first: int  # slot of those for questions
    rows: list[tuple[int, ...]]  # the program so far, which makes one value
    lengths: list[list[float]]  # those that it reads, by part; the branch above node u has place u

    def __post_init__(self) -> None:
        self.places = list(range(len(self.operands)))
        spare = self.first + len(self.operands) // 2 - 1
        self.spare = range(spare, spare + N_SPARE)

    def place_length(self, lengths: Sequence[float]) -> int:
        """The place of one more branch, with its length in each part."""
        for own, length in zip(self.lengths, lengths, strict=True):
            own.append(length)
        return len(self.lengths[0]) - 1

    def write(self, opcode: int, *fields: int) -> None:
        """Add an instruction; the first field is a slot, or else the number of its first value in the answer."""
        first = fields[0] if opcode in (Opcode.NEWVIEW, Opcode.PROPAGATE) else 1 + fields[0]
        self.rows.append((opcode, first, *fields[1:], *(0,) * (7 - len(fields))))

    def newview(self, slot: int, a: int, pa: int, b: int, pb: int) -> None:
        self.write(Opcode.NEWVIEW, slot, a, pa, b, pb)

    def evaluate(self, value: int, a: int, b: int, branch: int) -> None:
        self.write(Opcode.EVALUATE, value, a, 0, b, branch)

    def at_branch(self, opcode: int, value: int, above: int, node: int, flag: int = 0) -> None:
        """Add an instruction on the branch above a node, with the CLA of all that is not below it."""
        self.write(opcode, value, above, 0, self.operands[node], self.places[node], flag)

    def descend(self, topology: Topology, wanted: Collection[int]) -> Iterator[tuple[int, int]]:
        """Each wanted node, with the CLA of all that is not below it, at its parent; parents come first.

        The parents of wanted nodes are wanted. The CLA of a node is there until all below the node have come.
        """
        above = [~ROOT] * topology.n_nodes
        stack = [(topology.top, -1)]
        while stack:
            node, step = stack.pop()
            if step >= 0:
                parent, sibling, slot = topology.parent[node], topology.sibling(node), self.first + step
                self.newview(slot, above[parent], self.places[parent], self.operands[sibling], self.places[sibling])
                above[node] = slot
            yield node, above[node]
            if node >= topology.n_taxa:
                children = topology.left[node], topology.right[node]
                stack += ((child, step + 1) for child in children if child in wanted)


class Question(ABC):
    """What is asked of the surroundings of a state. Questions are equal if their programs are."""

    is_by_part = False  # whether parts that have their own branch lengths have answers of their own

    @property
    @abstractmethod
    def n_values(self) -> int:
        """How many numbers the answer has."""

    @abstractmethod
    def write(self, state: State, program: QuestionProgram) -> None:
        """Write the program of the answer."""

    def read(self, values: FloatArray, state: State) -> Any:
        """The answer from the values (n_values, n_parts) of the program, as a list: sums over parts, or all by part."""
        by_part = self.is_by_part and len(state.by_part) > 1
        return values.T.ravel().tolist() if by_part else values.sum(axis=1).tolist()


@dataclass(frozen=True)
class Slopes(Question):
    """The first and second derivatives of lnL in the length of the branch above each node but tip 0.

    The answer has three numbers for each branch, if parts have their own lengths by part: lnL above the top, 0 above
    other nodes, and both derivatives.
    """

    n_nodes: int
    is_by_part = True

    @property
    def n_values(self) -> int:
        return DERIVATIVE_VALUES * (self.n_nodes - 1)

    def write(self, state: State, program: QuestionProgram) -> None:
        top = state.topology.top  # the first
        for node, above in program.descend(state.topology, range(1, state.topology.n_nodes)):
            program.at_branch(Opcode.DERIVATIVE, DERIVATIVE_VALUES * (node - 1), above, node, int(node != top))
