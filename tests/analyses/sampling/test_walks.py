"""Walks on the device: the same moves as those of Python, drawn by the same numbers, and what they keep."""

import math

import numpy as np
import pytest
from helpers import make_alignment
from sampling.test_sampling_moves import assert_prior, draws
from sampling.toys import LENGTHS, PRIORS, draw_state, uneven_weights

from plltool.alignment.patterns import compress
from plltool.alignment.states import DNA, PROTEIN
from plltool.analyses.sampling.chains import Chains, Heated
from plltool.analyses.sampling.likelihoods import EngineLikelihoods
from plltool.analyses.sampling.moves import BranchMultiplier, NodeSlider, TreeMultiplier
from plltool.analyses.sampling.parameters import find_parameters
from plltool.analyses.sampling.priors import Exponential, GammaDirichlet
from plltool.analyses.sampling.runs import make_moves
from plltool.analyses.sampling.state import Proposal, StateSpace, sampling_slots
from plltool.analyses.sampling.topology_moves import Extension, Interchange
from plltool.engine.storage import Slots
from plltool.hardware import Hardware
from plltool.model.model import Model
from plltool.model.model_string import parse_model
from plltool.run.engines import open_engine

STEPS = BranchMultiplier, NodeSlider, TreeMultiplier, Interchange, Extension
UNEVEN = GammaDirichlet(3.0, 0.5, 0.7, 2.0)


class Numbers:
    """SplitMix64 as its paper has it, with the methods of numpy's generators that moves call."""

    def __init__(self, seed):
        self.state = seed

    def random(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) % 2**64
        z = self.state
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        return ((z ^ (z >> 31)) >> 11) / 2**53

    def integers(self, low, high=None):
        low, high = (0, low) if high is None else (low, high)
        return low if high - low == 1 else low + int(self.random() * (high - low))


def make_problem(models, n_taxa, n_sites, lengths, unlinked=False):
    """A space, and data of its parts, which may have lengths of their own."""
    rng, names = np.random.default_rng(n_taxa), [f"t{k}" for k in range(n_taxa)]
    states, letters = (PROTEIN, "ARNDCQEGHILKMFPSTWYVX-") if models[0].startswith("LG") else (DNA, "ACGTR-")
    parts = []
    for _ in models:
        rows = ["".join(letters[state] for state in row) for row in rng.integers(0, len(letters), (n_taxa, n_sites))]
        parts.append(compress(make_alignment(names, rows, "toy", states)))
    made = tuple(Model(parse_model(own)) for own in models)
    shares = (1.0 / len(made),) * len(made) if unlinked else (1.0,)
    return StateSpace(tuple(names), made, tuple(find_parameters(made, PRIORS)), lengths, shares=shares), parts


def open_chains(space, parts, n_chains, device):
    slots = Slots(sampling_slots(len(space.names), n_chains))
    engine, _ = open_engine(parts, space.models, slots, Hardware(device=device, threads=2))
    return engine, EngineLikelihoods(space, engine, n_chains)


def walk_slowly(moves, likelihoods, chain, state, heats, steps, seed, n):
    """A walk by the moves in Python, one likelihood after another; heats of lnL and prior."""
    rng, weights = Numbers(seed), np.cumsum([move.weight for move in moves])
    counts = np.zeros((len(moves), 2), dtype=int)
    for _ in range(n):
        drawn = rng.random() * weights[-1]
        kind = next(k for k, bound in enumerate(weights) if drawn < bound)
        counts[kind, 0] += 1
        proposal = moves[kind].propose(state, steps[kind], rng)
        if proposal is None or proposal.state.log_prior == -math.inf:
            continue
        asked = [proposal if number == chain else None for number in range(len(likelihoods._sides))]
        new = likelihoods.ask(asked)[chain]
        gain = heats[0] * (new.lnl - state.lnl) + heats[1] * (new.log_prior - state.log_prior) + proposal.log_ratio
        if rng.random() < math.exp(min(0.0, gain)):
            counts[kind, 1] += 1
            state = new
            likelihoods.accept(chain)
    return state, counts


@pytest.mark.opencl
@pytest.mark.parametrize(
    ("models", "n_taxa", "n_sites", "lengths", "powered", "unlinked"),
    [
        (("JC",), 8, 40, Exponential(10.0), False, False),
        (("GTR+FO+I+G4",), 12, 150, LENGTHS, False, False),
        (("HKY+FO+G4", "GTR+FO+G4"), 7, 90, UNEVEN, True, False),
        (("HKY+FO+G4", "GTR+FO+G4", "JC+G4"), 9, 60, UNEVEN, False, True),
        (("JC",), 4, 10, UNEVEN, False, False),
        (("JC",), 5, 10, Exponential(3e5), False, False),
        (("K80+G4",), 3, 30, LENGTHS, False, False),
        (("LG+G2",), 6, 30, LENGTHS, False, False),
    ],
    ids=["JC", "GTR", "two parts", "unlinked", "four taxa", "lengths at a bound", "three taxa", "proteins"],
)
def test_walks_are_those_of_the_moves(models, n_taxa, n_sites, lengths, powered, unlinked):
    """Chains of two runs with other heats; on numpy, move by move, with the same numbers."""
    space, parts = make_problem(models, n_taxa, n_sites, lengths, unlinked)
    both = [[move for move in make_moves(space, parts) if type(move) in STEPS] for _ in range(2)]
    for run, moves in enumerate(both):
        for move in moves:
            if isinstance(move, Interchange):
                move.learnt = uneven_weights(n_taxa, run)
            if isinstance(move, Extension):
                move.weight *= 3  # the longest code
                move.extension = 0.7  # the ratio is not always 1
    rng, n_chains, n_steps = np.random.default_rng(5), 4, 60
    starts = [draw_state(space, rng) for _ in range(n_chains)]
    slow_engine, slow = open_chains(space, parts, n_chains, "numpy")
    engine, likelihoods = open_chains(space, parts, n_chains, "cpu")
    with slow_engine, engine:
        assert engine.can_walk
        assert not slow_engine.can_walk
        target = Heated(0.5, 2, [1.0, 0.3] if powered else ())
        rngs = [np.random.default_rng(6), np.random.default_rng(7)]
        chains = Chains(both, likelihoods, starts, target, np.random.default_rng(8), rngs)
        steps = [0.5 + 0.1 * k for k in range(len(moves))]
        for own in chains.runs:
            own.steps = [[step] * 2 for step in steps]
        generators = [np.random.default_rng(6), np.random.default_rng(7)]
        seeds = [
            [int(rng.integers(1 << 64, dtype=np.uint64)) for rng in generators for _ in range(2)] for _ in range(2)
        ]
        likelihoods.walk_steps = n_steps
        chains._walk()
        chains._walk()
        expected, total = slow.begin(starts), 0
        for chain, (first, second) in enumerate(zip(*seeds, strict=True)):
            heat, moves = chains.runs[0].heats[chain % 2], both[chain // 2]
            heats = (heat, 1.0 if powered else heat)
            state, counts = walk_slowly(moves, slow, chain, expected[chain], heats, steps, first, n_steps)
            state, more = walk_slowly(moves, slow, chain, state, heats, steps, second, n_steps)
            found, counts = chains.states[chain], counts + more
            assert found.topology == state.topology
            # a few roundings of exp and log for each move
            assert found.lengths == pytest.approx(state.lengths, rel=1e-11)
            assert found.lnl == pytest.approx(state.lnl, rel=1e-11)
            assert found.log_prior == pytest.approx(state.log_prior, rel=1e-11)
            own, rank = chains.runs[chain // 2], chain % 2
            assert own.tried[:, rank].tolist() == counts[:, 0].tolist()
            assert own.accepted[:, rank].tolist() == counts[:, 1].tolist()
            total += counts[:, 0]
        assert np.all(total > 0)
        # the CLAs that the walk leaves are those of the states; asked without and with all of them made again
        again = likelihoods.ask([Proposal(state, 0.0, ()) for state in chains.states])
        whole = likelihoods.ask([Proposal(state, 0.0, None) for state in chains.states])
        assert [state.lnl for state in again] == [state.lnl for state in whole]
        assert [state.lnl for state in chains.states] == [state.lnl for state in whole]


@pytest.mark.opencl
def test_walks_keep_the_prior():
    """Of 300 exact draws, where data say nothing."""
    model, rng = "JC", np.random.default_rng(2)
    names = tuple(f"t{k}" for k in range(5))
    space = StateSpace(names, (Model(parse_model(model)),), (), UNEVEN)
    parts = [compress(make_alignment(names, ["N"] * 5, "toy"))]
    moves = [move for move in make_moves(space, parts) if type(move) in STEPS]
    states = draws(space, 300, rng)
    engine, likelihoods = open_chains(space, parts, len(states), "cpu")
    with engine:
        chains = Chains([moves] * len(states), likelihoods, states, Heated(0.1, 1), rng, [rng] * len(states))
        for own in chains.runs:
            own.steps = [[4 * step for step in steps] for steps in own.steps]
        likelihoods.walk_steps = 60
        chains._walk()
        assert_prior(chains.states, model, UNEVEN)


@pytest.mark.opencl
def test_walks_are_tuned_and_stand_beside_other_moves():
    """A generation has a walk where it would have one of its moves; steps approach their targets in the tuning."""
    space, parts = make_problem(["HKY+FO+G4"], 8, 60, LENGTHS)
    rng, moves = np.random.default_rng(3), make_moves(space, parts)
    engine, likelihoods = open_chains(space, parts, 2, "cpu")
    with engine:
        likelihoods.walk_steps = 10
        states = [draw_state(space, rng) for _ in range(2)]
        chains = Chains([moves], likelihoods, states, Heated(0.1, 2), rng, [np.random.default_rng(4)], tuning=600)
        for _ in range(1200):
            chains.advance()
    own, n_walked = chains.runs[0], 0
    for number, move in enumerate(moves):
        tried = own.tried[number].sum()
        if type(move) in STEPS:
            n_walked += tried
        else:
            assert tried % (2 * move.repeats) == 0
        if type(move) in STEPS[:3]:
            assert own.accepted[number].sum() / tried == pytest.approx(move.target, abs=0.12), move.name
    assert n_walked % 20 == 0
    share = n_walked / 20 / 600
    assert share == pytest.approx(
        sum(m.weight for m in moves if type(m) in STEPS) / sum(m.weight for m in moves), abs=0.1
    )
