"""Small problems for tests of chains, and likelihoods by the oracle in place of an engine."""

import numpy as np
from helpers import make_alignment
from oracles.likelihood import pruning
from oracles.posteriors import SiteModel, log_likelihood, simulate
from oracles.substitution import gamma_category_means, q_matrix

from plltool.alignment.patterns import compress
from plltool.analyses.sampling.informed_moves import LENGTHS as LENGTHS_OF_QUARTETS
from plltool.analyses.sampling.informed_moves import Interchanges, Quartet
from plltool.analyses.sampling.joint_moves import CoordinateSlopes
from plltool.analyses.sampling.likelihoods import Likelihoods
from plltool.analyses.sampling.parameters import FACTORS, find_parameters
from plltool.analyses.sampling.priors import Dirichlet, Exponential, Gamma, GammaDirichlet, LogNormal, Normal, Uniform
from plltool.analyses.sampling.state import Known, StateSpace
from plltool.analyses.sampling.topology_moves import Regrafts, SplitWeights
from plltool.analyses.sampling.tree import from_tree, interchange
from plltool.model.model import Model
from plltool.model.model_string import parse_model
from plltool.tree.moves import random_tree

ONES = Dirichlet((1.0,))
PRIORS = {"rates": ONES, "frequencies": ONES, "alpha": Exponential(1.0), "pinv": Uniform(0.0, 1.0)}
LENGTHS = GammaDirichlet(2.0, 2.0, 1.0, 1.0)
_KNOWN = {}  # lnL by the oracle


def make_space(model="GTR+FO+I+G4", n_taxa=5, lengths=LENGTHS, priors=PRIORS):
    """A space with one part, or with parts that have branch lengths of their own, if there are several models."""
    models = tuple(Model(parse_model(own)) for own in ([model] if isinstance(model, str) else model))
    names = tuple(f"t{k}" for k in range(n_taxa))
    shares = (1.0,) if len(models) == 1 else tuple((np.arange(len(models)) + 1.0) / np.arange(len(models) + 1).sum())
    return StateSpace(names, models, tuple(find_parameters(models, priors)), lengths, shares=shares)


def make_parts(n_taxa=5, n_sites=12):
    """The patterns of one part with random columns, for moves that data inform."""
    drawn = np.random.default_rng(8).integers(0, 5, (n_taxa, n_sites))
    rows = ["".join("ACGTR"[state] for state in row) for row in drawn]
    return [compress(make_alignment([f"t{k}" for k in range(n_taxa)], rows, "toy"))]


def uneven_weights(n_taxa=5, seed=0):
    """Weights of splits as chains may have learnt them."""
    found = SplitWeights.of_taxa(n_taxa)
    found.weights = np.random.default_rng(seed).uniform(0.05, 1.0, len(found.weights))
    return found


def draw_number(prior, rng):
    """A number from a prior, by numpy."""
    kinds = {Exponential: "exponential", Uniform: "uniform", LogNormal: "lognormal", Gamma: "gamma", Normal: "normal"}
    values = list(vars(prior).values())
    if isinstance(prior, (Exponential, Gamma)):
        values[-1] = 1.0 / values[-1]  # numpy takes scales in place of rates
    return float(getattr(rng, kinds[type(prior)])(*values))


def draw_value(parameter, rng):
    """A possible value of a parameter of a model, from its prior."""
    while True:
        if isinstance(parameter.prior, Dirichlet):
            value = rng.dirichlet(np.full(parameter.size, parameter.prior.concentrations))
        elif parameter.kind in FACTORS:
            value = np.array([draw_number(parameter.prior, rng) for _ in range(parameter.size)])
        else:
            value = draw_number(parameter.prior, rng)
        if parameter.is_possible(value):
            return value


def draw_lengths(prior, topology, rng):
    """Branch lengths from their prior, 0 for tip 0."""
    nodes = range(1, topology.n_nodes)
    if isinstance(prior, Exponential):
        return [0.0, *rng.exponential(1.0 / prior.rate, len(nodes)).tolist()]
    at_tips = [node < topology.n_taxa or node == topology.top for node in nodes]
    shares = rng.dirichlet([prior.at_tips if is_tip else prior.at_tips * prior.ratio for is_tip in at_tips])
    return [0.0, *(rng.gamma(prior.shape, 1.0 / prior.rate) * shares).tolist()]


def draw_state(space, rng):
    """An exact draw from the prior."""
    topology = draw_topology(space, rng)
    while True:
        of_parts = [draw_lengths(space.length_prior, topology, rng)[1:] for _ in space.shares]
        lengths = [0.0, *(length for own in of_parts for length in own)]
        if space.log_prior_of(topology, lengths) > -np.inf:
            return space.state(topology, lengths, [draw_value(own, rng) for own in space.parameters])


def neighbour(question, state, number):
    """Topology and lengths of a neighbour whose lnL a question asks for; None if it asks for something else."""
    if isinstance(question, Regrafts):
        return question.neighbour(state, number)
    if isinstance(question, Interchanges):
        return interchange(state.topology, *question.of(state.topology)[number]), state.lengths
    if isinstance(question, Quartet):
        lengths, n = state.lengths.copy(), state.topology.n_branches
        for place in range(question.lower, len(lengths), n):
            lengths[place] = LENGTHS_OF_QUARTETS[number % len(LENGTHS_OF_QUARTETS)]
        return question.topology(state.topology, number // len(LENGTHS_OF_QUARTETS)), lengths
    return None


def draw_topology(space, rng):
    """A random topology; all are equally likely."""
    return from_tree(random_tree(space.names, rng))[0]


def branches_of(state, part=0):
    """The branches and lengths of a state, as the oracle takes them."""
    parent, n = state.topology.parent, state.topology.n_branches
    return [(parent[node], node) for node in range(1, len(parent))], state.lengths[1 + part * n : 1 + (part + 1) * n]


def model_of(state, part=0):
    """The oracle's model with the values of a state."""
    model = state.models[part]
    return SiteModel(model.exchangeabilities, model.frequencies, model.alpha, model.pinv)


def lnl_of(state, codes, part=0):
    """lnL of codes (n_taxa, n_sites) by the oracle, with gamma rates and invariable sites as the model has them.

    What one engine is asked is known when the next one is.
    """
    key = part, *state.topology.parent, *state.lengths, *map(bytes, map(np.ravel, (*state.values, codes)))
    if key not in _KNOWN:
        _KNOWN[key] = _lnl_of(state, codes, part)
    return _KNOWN[key]


def _lnl_of(state, codes, part):
    own = state.models[part]
    pi, pinv = own.frequencies.tolist(), own.pinv or 0.0
    q = q_matrix(own.exchangeabilities, own.frequencies) / (1 - pinv)
    rates = [1.0] if own.alpha is None else gamma_category_means(own.alpha, 4)
    components = [((1 - pinv) / len(rates), pi, q * rate) for rate in rates] + [(pinv, pi, q * 0.0)] * (pinv > 0)
    return pruning(*branches_of(state, part), codes.T.tolist(), components).sum()


class ToyLikelihoods(Likelihoods):
    """Of each chain by `lnls`, which has the lnL of each part of its own data."""

    def with_lnl(self, chain, state):
        return state._replace(lnl=sum(self.lnls(chain, state)))

    def begin(self, states):
        return [self.with_lnl(chain, state) for chain, state in enumerate(states)]

    def ask(self, proposals):
        return [own and self._answered(chain, own.state, own.question) for chain, own in enumerate(proposals)]

    def _answered(self, chain, state, question):
        """The state with the answer to a question, by likelihoods alone.

        First derivatives in lengths are differences. Second ones, and slopes in coordinates, are not those of the
        likelihood: moves are exact with any numbers that depend on the state alone.
        """
        state = self.with_lnl(chain, state)
        if question is None:
            return state
        if neighbour(question, state, 0) is not None:
            trees = [neighbour(question, state, number) for number in range(question.n_values)]
            lnls = [self.lnls(chain, state._replace(topology=tree, lengths=at)) for tree, at in trees]
            values = question.read(np.array(lnls), state)
        elif isinstance(question, CoordinateSlopes):
            values = 2.0 * np.sin(np.arange(question.space.n_coordinates) + state.lnl)
        else:
            values = []
            for node in range(1, len(state.lengths)):
                at = state.lengths.copy()
                at[node] *= 1.001
                gain = self.with_lnl(chain, state._replace(lengths=at)).lnl - state.lnl
                slope = gain / (0.001 * state.lengths[node])
                values += [state.lnl, slope, -abs(slope)]
        return state._replace(known=Known(question, values))


class OracleLikelihoods(ToyLikelihoods):
    """Of chains that have data of their own, which are simulated from the states where they begin."""

    def __init__(self, space, rng, n_sites=6):
        self._n_taxa, self._rng, self._n_sites = len(space.names), rng, n_sites

    def begin(self, states):
        self._data = [
            [
                simulate(self._rng, *branches_of(own, part), self._n_taxa, model_of(own, part), self._n_sites)
                for part in range(len(own.models))
            ]
            for own in states
        ]
        return super().begin(states)

    def lnls(self, chain, state):
        own = enumerate(self._data[chain])
        return [log_likelihood(*branches_of(state, part), data, model_of(state, part)) for part, data in own]


class TableLikelihoods(ToyLikelihoods):
    """Of topologies alone: lnL by the sets of splits."""

    def __init__(self, table):
        self._table = table

    def lnls(self, chain, state):
        return [self._table[topology_key(state)]]


def inner_branches(topology):
    """The nodes below inner branches."""
    return [node for node in range(topology.n_taxa, topology.n_nodes) if node != topology.top]


def topology_key(state):
    """The splits of inner branches, which tell topologies apart."""
    splits = state.topology.splits()
    return frozenset(splits[node] for node in inner_branches(state.topology))


def numbers_of(state):
    """Numbers by their names that tell where a state is: lengths, values, and the topology."""
    splits = state.topology.splits()
    inner = inner_branches(state.topology)
    found = {
        "tree length": sum(state.lengths),
        "branch of tip 1": state.lengths[1],
        "branch of tip 0": state.lengths[state.topology.top],
        "longest inner branch": max(state.lengths[node] for node in inner),
        "smallest split": min(splits[node] for node in inner),
    }
    for part, own in enumerate(state.by_part[1:], start=1):
        found |= {f"tree length of part {part}": sum(own), f"branch of tip 1 in part {part}": own[1]}
    for number, value in enumerate(state.values):
        found |= {f"value {number}.{k}": float(x) for k, x in enumerate(np.ravel(value))}
    return found


class Shape:
    """What engines ask of a mixture."""

    def __init__(self, components):
        self.components = components
        self.n_states, self.n_components = components.n_states, components.n_components
