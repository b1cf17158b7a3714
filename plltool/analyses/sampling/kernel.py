"""The moves that sample a problem, with their weights."""

from __future__ import annotations

from collections.abc import Sequence

from plltool.alignment.patterns import Patterns
from plltool.analyses.sampling.informed_moves import InformedInterchange, InformedRegraft, QuartetDraw
from plltool.analyses.sampling.joint_moves import Directions, JointDraw, JointLangevin
from plltool.analyses.sampling.moves import Move
from plltool.analyses.sampling.parameters import ALPHA, SHARES
from plltool.analyses.sampling.parsimony_move import FitchSets, ParsimonyRegraft
from plltool.analyses.sampling.state import Problem
from plltool.analyses.sampling.topology_moves import Extension, Interchange
from plltool.analyses.sampling.value_moves import (
    BranchMultiplier,
    LengthLangevin,
    NodeSlider,
    NumberMultiplier,
    ShareSlider,
    SimplexDraw,
    SimplexSlider,
    TreeMultiplier,
)

LENGTH_WEIGHTS = ((BranchMultiplier, 3.0), (NodeSlider, 1.5), (TreeMultiplier, 1.0), (LengthLangevin, 1.5))
TOPOLOGY_WEIGHTS = (
    (Interchange, 8.0),
    (Extension, 5.0),
    (InformedInterchange, 0.5),
    (InformedRegraft, 9.0),
    (QuartetDraw, 4.0),
)
PARSIMONY_WEIGHT = 0.5
SIMPLEX_WEIGHT = 0.25  # of each of the two moves of shares
NUMBER_WEIGHT = 0.5
JOINT_WEIGHT, JOINT_LANGEVIN_WEIGHT = 5.0, 0.1


def make_moves(problem: Problem, parts: Sequence[Patterns]) -> list[Move]:
    """The moves of lengths, topology and each parameter; `parts` are the data by which some are informed."""
    moves: list[Move] = [kind(problem, weight) for kind, weight in LENGTH_WEIGHTS]
    if len(problem.names) > 3:
        moves += [kind(problem, weight) for kind, weight in TOPOLOGY_WEIGHTS]
        moves.append(ParsimonyRegraft(problem, PARSIMONY_WEIGHT, FitchSets(parts)))
    for number, parameter in enumerate(problem.parameters):
        if parameter.kind in SHARES:
            moves += [kind(problem, SIMPLEX_WEIGHT, number) for kind in (SimplexDraw, SimplexSlider)]
        elif parameter.kind == ALPHA:
            moves.append(NumberMultiplier(problem, NUMBER_WEIGHT, number))
        else:
            moves.append(ShareSlider(problem, NUMBER_WEIGHT, number))
    if problem.parameters:
        directions = Directions.of_size(problem.n_coordinates)
        moves.append(JointDraw(problem, JOINT_WEIGHT, directions))
        if have_one_shape(problem):
            moves.append(JointLangevin(problem, JOINT_LANGEVIN_WEIGHT, directions))
    return moves


def have_one_shape(problem: Problem) -> bool:
    """Whether all parts have as many states and components, so that a program makes as many slopes of each."""
    shapes = [model.components() for model in problem.models]
    return len({(own.n_states, own.n_components) for own in shapes}) == 1
