"""What is timed, and how much work it is: requests as `TreeLikelihood` and `scan` make them, recorded once.

The data are columns that evolved along random trees under random models.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

from plltool.arrays import ByteArray, FloatArray, WholeArray
from plltool.constants import MASK_STATES
from plltool.engine import program as prog
from plltool.engine.base import Engine
from plltool.engine.contract import InstructionWord, Opcode
from plltool.engine.program import Request
from plltool.engine.requests import Answer
from plltool.errors import InputError
from plltool.model.components import Components, evolve
from plltool.model.rates import gamma_means
from plltool.model.substitution import eigensystem
from plltool.optimise.likelihood import TreeLikelihood
from plltool.tree.moves import random_tree
from plltool.tree.operations import ROOT, directed_slots
from plltool.tree.topology import Tree
from plltool.tree_search.scan import all_prunes, scan

N_COMPONENTS = 4  # rate categories
ALPHA = 0.5  # of the gamma distribution of rates
MEAN_LENGTH = 0.05  # of branches, beyond SHORTEST_LENGTH; exponentially distributed
SHORTEST_LENGTH = 0.01
MAX_STATES = 128  # that the engines are tested with


class Shape(NamedTuple):
    n_taxa: int
    n_patterns: int


# The last one of each list is deep enough to rescale in double precision.
DEFAULT_SHAPES = (
    Shape(32, 1_000),
    Shape(32, 10_000),
    Shape(32, 100_000),
    Shape(8, 1_000_000),
    Shape(200, 1_000),
    Shape(2_000, 1_000),
)
QUICK_SHAPES = (Shape(32, 1_000), Shape(32, 10_000), Shape(1_000, 500))


@dataclass(frozen=True)
class FixedModel:
    """What `TreeLikelihood` asks of a model."""

    made_of: Components

    def components(self) -> Components:
        return self.made_of


def make_data(shape: Shape, n_states: int, rng: np.random.Generator) -> tuple[Components, Tree, npt.NDArray[np.int16]]:
    """A random reversible model with N_COMPONENTS gamma rates, a random tree, and columns that evolved along it.

    The columns are states (n_taxa, n_patterns).
    """
    frequencies = rng.dirichlet(np.full(n_states, 5.0))
    exchangeabilities = rng.random((n_states, n_states)) + 0.1
    arrays = *eigensystem(exchangeabilities + exchangeabilities.T, frequencies), frequencies
    eigenvalues, right, left, pi = (np.repeat(array[None], N_COMPONENTS, axis=0) for array in arrays)
    weights, rates = np.full(N_COMPONENTS, 1 / N_COMPONENTS), gamma_means(ALPHA, N_COMPONENTS)
    components = Components(eigenvalues, right, left, pi, rates, weights)
    tree = random_tree([f"t{k}" for k in range(shape.n_taxa)], rng)
    tree.lengths[:] = SHORTEST_LENGTH + rng.exponential(MEAN_LENGTH, tree.n_edges)
    return components, tree, evolve(tree, components, shape.n_patterns, rng)


def encode_states(states: npt.NDArray[np.int16], n_states: int) -> tuple[WholeArray, ByteArray | None]:
    """Tip codes of known states as the engines take them, and the table of state sets that goes with them, if any.

    Raises InputError if they cannot hold `n_states`.
    """
    if n_states > MAX_STATES:
        raise InputError(f"found {n_states} states, expected at most {MAX_STATES}, which is what the engines hold")
    if n_states <= MASK_STATES:
        return np.left_shift(1, states), None
    return states, np.eye(n_states, dtype=np.uint8)


SCANNED_JOINTS = 4
SCAN_RADIUS = 5
RESCALED_MARGIN = 32  # bits, see `count_rescaled`

# For each instruction the words that name the CLAs that it reads, and the number of values that it makes.
_READS = {
    Opcode.PROPAGATE: [InstructionWord.A],
    Opcode.NEWVIEW: [InstructionWord.A, InstructionWord.B],
    Opcode.EVALUATE: [InstructionWord.A, InstructionWord.B],
    Opcode.DERIVATIVE: [InstructionWord.A, InstructionWord.B],
    Opcode.INSERT: [InstructionWord.A, InstructionWord.B, InstructionWord.C],
}
_WRITES = (Opcode.PROPAGATE, Opcode.NEWVIEW)


def instruction_flops(opcode: int, n_states: int) -> int:
    """Floating-point operations of one instruction on one pattern and component, see the head of the module."""
    square, s = 2 * n_states**2, n_states
    return {
        Opcode.PROPAGATE: square,
        Opcode.NEWVIEW: 2 * square + s,
        Opcode.EVALUATE: square + 3 * s,
        Opcode.DERIVATIVE: 2 * square + 3 * s + 7 * (s - 1),  # both sides to the eigenbasis; lnL and two slopes there
        Opcode.INSERT: 2 * square + 4 * s,
    }[opcode]


@dataclass(frozen=True)
class Item:
    """Something to time: `run` does it once, after `prepare`; the rest is how much that is, on one pattern."""

    run: Callable[[], None]
    prepare: Callable[[], None]
    nodes: int
    cla_moves: int
    flops: int


Execution = tuple[Request, FloatArray]  # what an engine executes: a request, and the lengths for it


def record(engine: Engine, work: Callable[[], object]) -> list[Execution]:
    """What `work` has the engine execute."""
    executions: list[Execution] = []
    ask = engine.ask

    def recorder(request: Request, lengths: FloatArray) -> Answer:
        executions.append((request, np.array(lengths)))
        return ask(request, lengths)

    engine.ask = recorder  # type: ignore[method-assign]
    try:
        work()
    finally:
        del engine.ask
    return executions


def replay(engine: Engine, executions: Sequence[Execution]) -> None:
    for execution in executions:
        engine.execute(*execution)


def make_item(
    engine: Engine, executions: Sequence[Execution], preparations: Sequence[Execution] = (), changing: bool = False
) -> Item:
    """Replays `executions`; with `changing`, at other lengths every time, so that P matrices are made again."""
    longer = [(request, lengths * 1.01) for request, lengths in executions]
    turns = itertools.cycle([executions, longer] if changing else [executions])
    every = np.concatenate([request.program for request, _ in executions])
    rows = {opcode: every[every[:, 0] == opcode] for opcode in _READS}
    reads = sum(int(np.count_nonzero(rows[opcode][:, columns] >= 0)) for opcode, columns in _READS.items())
    writes = sum(len(rows[opcode]) for opcode in _WRITES)
    flops = sum(len(rows[opcode]) * instruction_flops(opcode, engine.layout.n_states) for opcode in _READS)
    return Item(
        lambda: replay(engine, next(turns)),
        lambda: replay(engine, preparations),
        len(every),
        reads + writes,
        flops * engine.layout.n_components,
    )


def engine_of(likelihood: TreeLikelihood) -> Engine:
    return cast(Engine, likelihood.engine)


def make_items(likelihood: TreeLikelihood) -> dict[str, Item]:
    engine, tree = engine_of(likelihood), likelihood.tree
    lnl = float(likelihood.all_derivatives()[0])
    directed = record(engine, likelihood.directed)
    prunes = all_prunes(likelihood, np.arange(tree.n_taxa, min(tree.n_nodes, tree.n_taxa + SCANNED_JOINTS)))
    across_root = prog.evaluate(0, ~ROOT, likelihood.view.incoming[ROOT, 0], tree.edges[ROOT, 0])

    def on_directed(work: Callable[[], object]) -> Item:
        likelihood.directed()
        return make_item(engine, record(engine, work), directed)

    return {
        "newview": make_item(engine, record(engine, likelihood.lnl)),
        "evaluate": on_directed(lambda: likelihood.directed().execute(Request(across_root, 1), tree.lengths)),
        "derivatives": make_item(engine, record(engine, likelihood.all_derivatives), changing=True),
        "scan": on_directed(lambda: scan(likelihood, prunes, SCAN_RADIUS, lnl)),
    }


def count_rescaled(likelihood: TreeLikelihood) -> int:
    """Patterns that were rescaled for certain.

    Without rescaling the CLA next to the root tip has an entry of at least 2^-SCALE_BITS, and lnL takes that times a
    frequency, a weight and an entry of P: none of these data makes the product of the three smaller than
    2^-RESCALED_MARGIN. A pattern below both was rescaled on the way.
    """
    least = -(engine_of(likelihood).layout.scale_bits + RESCALED_MARGIN) * math.log(2)
    return int(np.count_nonzero(likelihood.site_lnl() < least))


def n_slots(shape: Shape) -> int:
    """CLAs that the items need: all directed ones, and the scan's scratch."""
    return directed_slots(shape.n_taxa) + SCAN_RADIUS + 1
