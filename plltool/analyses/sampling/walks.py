"""Walks: many moves of every chain in one launch, on a device that can (`kernels/walks.cl`).

A walk is made of the moves of `STEPS`, which change the tree alone and ask for its likelihood alone, drawn by their
weights. In Python a move takes longer than the likelihood of a small alignment, so a walk saves most of the time. It
keeps what a chain samples, as its moves do. A likelihood that is not finite, which is an error elsewhere, rejects a
move.
"""

from collections.abc import Sequence

import numpy as np

from plltool.analyses.sampling.moves import BranchMultiplier, Move, NodeSlider, TreeMultiplier
from plltool.analyses.sampling.priors import LengthPrior
from plltool.analyses.sampling.state import State, StateSpace
from plltool.analyses.sampling.topology_moves import Extension, Interchange, SplitWeights
from plltool.analyses.sampling.tree import Topology
from plltool.arrays import FloatArray
from plltool.constants import MAX_BRANCH_LENGTH, MIN_BRANCH_LENGTH
from plltool.engine.contract import N_SPLIT_KEYS, N_WALK_MOVES, WALK_ROWS, WalkRow, WalkWord
from plltool.engine.requests import Walkers

STEPS = BranchMultiplier, NodeSlider, TreeMultiplier, Interchange, Extension  # in the order of `WalkMove`


def find_steps(moves: Sequence[Move]) -> list[int | None]:
    """The number of the move of each of `STEPS`; None if it is not there."""
    numbers = {type(move): number for number, move in enumerate(moves)}
    return [numbers.get(kind) for kind in STEPS]


def begin_walks(
    states: Sequence[State], prior: LengthPrior, numbers: FloatArray, seeds: list[int], splits: Sequence[SplitWeights]
) -> Walkers:
    """Walkers at these states; `numbers` say which moves they make."""
    n_taxa, n_nodes = states[0].topology.n_taxa, states[0].topology.n_nodes
    trees = np.zeros((len(states), WALK_ROWS, n_nodes), dtype=np.int32)
    trees[:, :3] = [(own.topology.parent, own.topology.left, own.topology.right) for own in states]
    if splits:
        trees[:, WalkRow.KEY, :n_taxa] = splits[0].tips  # all runs have the same
    tables = np.stack([own.weights for own in splits]) if splits else np.zeros((1, N_SPLIT_KEYS))
    lengths = np.zeros((len(states), len(states[0].by_part), 2, n_nodes))
    lengths[:, :, 0] = [own.by_part for own in states]
    numbers[:, WalkWord.LNL] = [own.lnl for own in states]
    powers = prior.powers_of_lengths(n_taxa)
    numbers[:, WalkWord.TIP_POWER], numbers[:, WalkWord.INNER_POWER], numbers[:, WalkWord.TREE_POWER] = powers
    numbers[:, WalkWord.RATE] = prior.rate
    numbers[:, WalkWord.LEAST_LENGTH], numbers[:, WalkWord.LARGEST_LENGTH] = MIN_BRANCH_LENGTH, MAX_BRANCH_LENGTH
    return Walkers(trees, lengths, numbers, np.array(seeds, dtype=np.uint64), tables)


def end_walk(walkers: Walkers, number: int, space: StateSpace, state: State) -> State:
    """Where a walker has gone to from a state."""
    tree, lengths = walkers.trees[number], walkers.lengths[number]
    rows = tree[[WalkRow.PARENT, WalkRow.LEFT, WalkRow.RIGHT]].tolist()
    found = lengths[:, tree[WalkRow.PLACE_SIDE], np.arange(tree.shape[1])][:, 1:].ravel().tolist()
    moved = space.moved(state, Topology(state.topology.n_taxa, *rows), [0.0, *found])
    return moved._replace(lnl=float(walkers.numbers[number, WalkWord.LNL]))


def of_steps(numbers: FloatArray, first: int) -> FloatArray:
    """(n_walkers, N_WALK_MOVES) the words that begin with this one, to be read or set."""
    return numbers[:, first : first + N_WALK_MOVES]
