"""Builders that several test folders share: models as the engine and as the oracle see them, trees, codes, programs."""

from dataclasses import dataclass, replace
from importlib.resources import files
from itertools import pairwise

import numpy as np
from oracles.likelihood import orient
from oracles.substitution import gamma_category_means
from scipy.linalg import expm, null_space

from plltool.alignment.alignment import Sequences, to_bytes
from plltool.alignment.facts import data_warnings
from plltool.alignment.patterns import encode
from plltool.alignment.spaces import detect_states
from plltool.alignment.states import DNA
from plltool.engine import program as prog
from plltool.engine.base import EngineData
from plltool.engine.contract import INSTRUCTION_WORDS
from plltool.engine.layout import Layout
from plltool.engine.numpy_engine import NumpyEngine
from plltool.engine.storage import plan_storage
from plltool.io.alignment_reader import read_alignment
from plltool.model import proteins
from plltool.model.components import Components
from plltool.model.model import Model
from plltool.model.model_string import parse_model
from plltool.model.substitution import real_eigensystem
from plltool.optimise.likelihood import TreeLikelihood
from plltool.tree.moves import random_topology
from plltool.tree.topology import Tree

PROTEIN_SEQUENCES = {
    "a": "MKLVWYRNDCQEGHILKMFPSTAAVB",
    "b": "MKLVWYRNDCQEGHILKMFPSTAGVD",
    "c": "MKIVWFRNECQDGHLLRMFPTTSGIZ",
    "d": "MRIVWFKNECQDGNLLRMYPTSSGI-",
    "e": "MRIAWFKSECADGNLVRLYPASSGLX",
}


def make_alignment(names, sequences, source, states=DNA, positions=None):
    """Names and sequences, encoded, with what a user should know about them; `positions` are the lines of the taxa."""
    given = Sequences(tuple(names), tuple(map(to_bytes, sequences)), source, states, positions)
    alignment = encode(given, states, np.arange(given.n_sites))
    return replace(alignment, warnings=(*alignment.warnings, *data_warnings([alignment])))


@dataclass(frozen=True)
class Mixture:
    """A mixture of processes twice: for the engines, and as the oracle's (weight, frequencies, Q)."""

    components: Components
    oracle: list[tuple[float, list[float], np.ndarray]]

    @property
    def n_states(self):
        return self.components.n_states

    @property
    def n_components(self):
        return self.components.n_components

    def as_model(self):
        """What `TreeLikelihood` asks of a model, with nothing to optimise."""
        return FixedModel(self.components)


class FixedModel:
    free_parameters = ()
    has_site_rates = False

    def __init__(self, components):
        self._components = components

    def components(self):
        return self._components

    def copy(self):
        return self

    def assign(self, other):
        self._components = other.components()


def mix(processes):
    """A Mixture of (weight, frequencies, exchangeabilities (S, S), rate)."""
    weights, oracle, eigen = [], [], []
    for weight, frequencies, exchangeabilities, rate in processes:
        pi = np.asarray(frequencies, dtype=float)
        q = (np.asarray(exchangeabilities) + np.asarray(exchangeabilities).T) * pi
        np.fill_diagonal(q, 0)
        np.fill_diagonal(q, -q.sum(axis=1))
        q /= -(pi * np.diag(q)).sum()
        root = np.sqrt(pi)
        values, vectors = np.linalg.eigh(q * root[:, None] / root)
        values[-1] = 0.0  # the largest, and the one that belongs to the frequencies
        eigen.append((values, vectors / root[:, None], vectors.T * root, pi, rate))
        weights.append(weight)
        oracle.append((float(weight), pi.tolist(), q * rate))
    stacked = [np.array(column, dtype=float) for column in zip(*eigen, strict=True)]
    return Mixture(Components(*stacked, np.array(weights, dtype=float)), oracle)


def random_mixture(rng, n_states=4, n_components=1, rates=None):
    """A mixture whose components all have their own rate matrix, frequencies, rate and weight."""
    if rates is None:
        rates = rng.gamma(2.0, 0.5, n_components) + 0.05
    weights = rng.dirichlet(np.full(n_components, 5.0))
    return mix(
        [
            (weights[c], rng.dirichlet(np.full(n_states, 5.0)), rng.random((n_states, n_states)) + 0.1, rates[c])
            for c in range(n_components)
        ]
    )


def directed_mix(processes):
    """A Mixture of (weight, rates (S, S), rate) of processes that need not be reversible."""
    weights, oracle, stacks = [], [], []
    for weight, rates, rate in processes:
        q = np.array(rates, dtype=float)
        np.fill_diagonal(q, 0)
        np.fill_diagonal(q, -q.sum(axis=1))
        pi = null_space(q.T)[:, 0]
        pi /= pi.sum()
        q /= -(pi * np.diag(q)).sum()
        eigenvalues, rotations, right, left = real_eigensystem(q, pi)
        stacks.append((eigenvalues, right, left, pi, rate, rotations))
        weights.append(weight)
        oracle.append((float(weight), pi.tolist(), q * rate))
    *stacked, rotations = [np.array(column, dtype=float) for column in zip(*stacks, strict=True)]
    return Mixture(Components(*stacked, np.array(weights, dtype=float), rotations=rotations), oracle)


def random_directed_mixture(rng, n_states=4, n_components=1):
    """A mixture of processes that circle through the states, so that most eigenvalues are complex."""
    circle = np.roll(np.eye(n_states), 1, axis=1) * n_states
    weights, rates = rng.dirichlet(np.full(n_components, 5.0)), rng.gamma(2.0, 0.5, n_components) + 0.05
    return directed_mix(
        [(weights[c], rng.random((n_states, n_states)) + 0.1 + circle, rates[c]) for c in range(n_components)]
    )


def jukes_cantor_mixture(n_states=4, n_components=1):
    """All components are the same."""
    process = np.full(n_states, 1 / n_states), np.ones((n_states, n_states)), 1.0
    return mix([(1 / n_components, *process)] * n_components)


def random_codes(rng, n_taxa, n_patterns, n_states=4, unclear=0.3):
    """Sets of up to 8 states as bit masks: mostly single ones, some ambiguous or undetermined."""
    codes = 1 << rng.integers(0, n_states, (n_taxa, n_patterns))
    sets = rng.integers(1, 1 << n_states, (n_taxa, n_patterns))
    return np.where(rng.random((n_taxa, n_patterns)) < unclear, sets, codes)


def random_tips(rng, n_taxa, n_patterns, n_states, unclear=0.3, n_ambiguous=5, graded=False):
    """Codes and the table of state sets (None up to 8 states) that they index, in no order: mostly single states.

    The first ambiguous set has two states, others have any number; half of the unclear cells are undetermined. `graded`
    ones have a likelihood for each state in place of 1.
    """
    if n_states <= 8 and not graded:
        return random_codes(rng, n_taxa, n_patterns, n_states, unclear), None
    ambiguous = (rng.random((n_ambiguous, n_states)) < rng.random((n_ambiguous, 1))).astype(np.uint8)
    ambiguous[:, 0], ambiguous[:, 1], ambiguous[0, 2:] = 1, 1, 0
    if graded:
        ambiguous = ambiguous * rng.random(ambiguous.shape)
    table = np.concatenate([np.eye(n_states, dtype=np.uint8), np.ones((1, n_states), dtype=np.uint8), ambiguous])
    order = rng.permutation(len(table))
    codes = rng.integers(0, n_states, (n_taxa, n_patterns))
    undetermined = rng.random(codes.shape) < 0.5
    sets = np.where(undetermined, n_states, rng.integers(n_states, len(table), codes.shape))
    codes = np.where(rng.random(codes.shape) < unclear, sets, codes)
    return np.argsort(order)[codes], table[order]


def as_masks(codes, state_sets):
    """What the oracle takes: codes as bit masks, integers of any size; likelihoods of states if not all are 1."""
    if state_sets is None:
        return codes
    if not np.isin(state_sets, (0, 1)).all():
        return state_sets[codes]
    masks = [sum(1 << int(state) for state in np.flatnonzero(row)) for row in state_sets]
    return np.array(masks, dtype=object)[codes]


def simulate_codes(rng, ends, lengths, n_taxa, n_patterns, mixture):
    """Columns that evolved on a tree, one state per tip."""
    p = [[np.cumsum(expm(q * t), axis=1) for t in lengths] for _, _, q in mixture.oracle]
    codes = np.empty((n_taxa, n_patterns), dtype=np.int64)
    oriented = orient([tuple(pair) for pair in np.asarray(ends).tolist()], n_taxa)
    for column in range(n_patterns):
        c = rng.choice(len(p), p=mixture.components.weights)
        state = {n_taxa: rng.choice(mixture.n_states, p=mixture.components.frequencies[c])}
        for parent, child, branch in oriented:
            drawn = np.searchsorted(p[c][branch][state[parent]], rng.random())
            state[child] = min(int(drawn), mixture.n_states - 1)
        codes[:, column] = [1 << state[tip] for tip in range(n_taxa)]
    return codes


def random_ends(rng, n_taxa, scale=0.2):
    """Branches and lengths of a random tree, as arrays."""
    ends = random_topology(n_taxa, rng)
    return ends, rng.exponential(scale, len(ends)) + 0.01


def caterpillar(n_taxa):
    """Branches of the most unbalanced tree: inner node n + i carries tip i + 1."""
    inner = [n_taxa + i for i in range(n_taxa - 2)]
    spine = list(pairwise(inner))
    return [(0, inner[0]), (n_taxa - 1, inner[-1])] + spine + [(i + 1, node) for i, node in enumerate(inner)]


def balanced(n_taxa):
    """Branches of a tree that halves its tips at every node; n_taxa is a power of two."""
    nodes, ends, free = list(range(n_taxa)), [], n_taxa
    while len(nodes) > 2:
        parents = list(range(free, free + len(nodes) // 2))
        ends += [(node, parents[k // 2]) for k, node in enumerate(nodes)]
        nodes, free = parents, free + len(parents)
    return [*ends, tuple(nodes)]


def as_sequences(codes):
    """Rows of DNA by name, of codes of one base each; any other code is a `?`."""
    letters = np.array(list("?AC?G???T???????"))
    return {f"t{tip}": "".join(row) for tip, row in enumerate(letters[codes])}


def replaced(vector, k, value):
    """A copy of an array with another value at one place."""
    moved = vector.copy()
    moved[k] = value
    return moved


def make_tree(ends, lengths, n_taxa):
    return Tree.from_edges([f"t{i}" for i in range(n_taxa)], ends, lengths)


def operand(node, n_taxa):
    """What an instruction calls a node: ~tip, or the slot of an inner node."""
    return ~node if node < n_taxa else node - n_taxa


def clas_facing(ends, n_taxa, node, branch):
    """Newviews (n, 8) of `node` and all inner nodes behind it, looking across `branch`; slot = node - n_taxa."""
    kept = [tuple(pair) if index != branch else (-1, -2) for index, pair in enumerate(np.asarray(ends).tolist())]
    children = {}
    for parent, child, index in orient(kept, node):
        children.setdefault(parent, []).append((operand(child, n_taxa), index))
    rows = [prog.newview(parent - n_taxa, *a, *b) for parent, (a, b) in reversed(children.items())]
    return np.concatenate([*rows, np.zeros((0, INSTRUCTION_WORDS), dtype=np.int32)])


def program_to_branch(ends, n_taxa, branch):
    """Newviews that look across a branch from both sides, and its two operands."""
    a, b = (int(node) for node in ends[branch])
    program = np.concatenate([clas_facing(ends, n_taxa, node, branch) for node in (a, b)])
    return program, operand(a, n_taxa), operand(b, n_taxa)


def program_to_node(ends, n_taxa, node):
    """Newviews that look at an inner node from all sides, and its neighbours as (operand, branch)."""
    program, around = [], []
    for branch, pair in enumerate(np.asarray(ends).tolist()):
        if node in pair:
            other = pair[0] if pair[1] == node else pair[1]
            program.append(clas_facing(ends, n_taxa, other, branch))
            around.append((operand(other, n_taxa), branch))
    return np.concatenate(program), around


def plain_engine(layout, n_slots, data, memory=None):
    """A numpy engine without a model."""
    return NumpyEngine(layout, plan_storage(layout, n_slots, memory), data)


def numpy_engine(n_slots, codes, weights, mixtures, part_patterns=None, vw=1, state_sets=None, memory=None, **layout):
    """A numpy engine with its models set; one part unless told otherwise."""
    parts = (codes.shape[1],) if part_patterns is None else tuple(part_patterns)
    first = mixtures[0]
    n_codes = 0 if state_sets is None else len(state_sets)
    reversible = first.components.is_reversible
    shape = Layout(
        first.n_states, first.n_components, len(codes), parts, vw, n_codes=n_codes, reversible=reversible, **layout
    )
    engine = plain_engine(shape, n_slots, EngineData(codes, weights, state_sets), memory)
    engine.set_model([mixture.components for mixture in mixtures])
    return engine


def evaluate_edges(engine, edges, lengths):
    """lnL across each of the edges (n, 3) a, b, branch: (n, n_parts)."""
    a, b, branch = np.asarray(edges).reshape(-1, 3).T
    n = len(a)
    program = prog.evaluate(np.arange(n), a, b, branch)
    request = prog.Request(program, n, "evaluate", pieces=np.arange(n, dtype=np.int32))
    return engine.execute(request, lengths).T


def lnl_of_sites(engine, a, b, branch, lengths, operations=None):
    """lnL of each pattern (n_patterns,) across one edge, not weighted; `operations` are run first."""
    program = prog.evaluate(0, a, b, branch)
    if operations is not None:
        program = np.concatenate([operations, program])
    return engine.execute_sites(prog.Request(program, 1), lengths)[0]


def likelihood_of(tree, codes, weights, model, n_scratch=12, n_slots=None, state_sets=None):
    """A TreeLikelihood on the numpy engine; `model` is a Mixture or a Model; slots as for a search, unless told."""
    model = model.as_model() if isinstance(model, Mixture) else model
    components = model.components()
    n_codes = 0 if state_sets is None else len(state_sets)
    shape = components.n_states, components.n_components, tree.n_taxa, (codes.shape[1],), 4
    layout = Layout(*shape, n_codes=n_codes, reversible=components.is_reversible)
    engine = plain_engine(layout, n_slots or 3 * (tree.n_taxa - 2) + n_scratch, EngineData(codes, weights, state_sets))
    return TreeLikelihood(tree, [model], engine)


def many_taxa(model, n_taxa=120):
    """The likelihood of many taxa under a model string, at the lengths along which they evolved under JC+G4{0.5}."""
    rng, n_sites = np.random.default_rng(31), 40
    ends, lengths = random_ends(rng, n_taxa, 0.05)
    mixture = mix([(0.25, [0.25] * 4, np.ones((4, 4)), rate) for rate in gamma_category_means(0.5, 4)])
    codes = simulate_codes(rng, ends, lengths, n_taxa, n_sites, mixture)
    return likelihood_of(make_tree(ends, lengths, n_taxa), codes, np.ones(n_sites), Model(parse_model(model)))


def assert_valid_tree(tree):
    """Every array of the tree agrees with the others, and it is connected."""
    assert sum(1 for _ in tree.directed_from(0)) == tree.n_edges
    for branch, (a, b) in enumerate(tree.ends.tolist()):
        assert tree.edge_between(a, b) == tree.edge_between(b, a) == branch
    for node in range(tree.n_nodes):
        used = 1 if tree.is_tip(node) else 3
        assert len(set(tree.neighbours[node, :used].tolist())) == used
        assert np.all(tree.neighbours[node, used:] == -1)
        assert np.all(tree.edges[node, used:] == -1)


def cherries(tree):
    """The names of each two tips that hang on one node."""
    tips = [
        [tree.names[other] for other in row if tree.is_tip(other)] for row in tree.neighbours[tree.n_taxa :].tolist()
    ]
    return {frozenset(pair) for pair in tips if len(pair) == 2}


def figure_source(name):
    """Where the figures of a protein model were published, as their file says; empty for models without figures."""
    first = next(iter(proteins.MIXTURES.get(name, [name])))
    folder = files("plltool.model") / "figures"
    names = ("matrices.txt", "profiles.txt", "directed.txt")
    lines = [line for name in names for line in (folder / name).read_text().splitlines()]
    return next((line.removeprefix(f"[{first}] ") for line in lines if line.startswith(f"[{first}] ")), "")


def read_states(path, states=None):
    """An alignment of one kind of data from a file, encoded."""
    given = read_alignment(path, states)
    return make_alignment(
        given.names, given.rows, given.source, given.states or detect_states(given.rows), given.positions
    )
