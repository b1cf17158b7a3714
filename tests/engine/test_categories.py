"""Patterns sorted by rate category: every request against the oracle at each pattern's own rate."""

from dataclasses import replace
from decimal import Decimal, localcontext
from itertools import product

import numpy as np
import pytest
from helpers import (
    FixedModel,
    evaluate_edges,
    likelihood_of,
    lnl_of_sites,
    make_tree,
    mix,
    numpy_engine,
    program_to_branch,
    program_to_node,
    random_codes,
    random_ends,
    random_mixture,
    replaced,
)
from oracles.likelihood import derivative, pruning

from plltool.engine import program as prog
from plltool.engine.base import EngineData
from plltool.engine.categories import CategoryEngine
from plltool.engine.numpy_engine import SMALL_GAP, EigenbasisEngine
from plltool.engine.program import Request
from plltool.engine.program import derivative as derivative_program
from plltool.errors import EngineError
from plltool.model.components import Components
from plltool.optimise.likelihood import TreeLikelihood

N_TAXA = 7
RATES = np.array([0.05, 0.4, 7.0, 1.0, 3.0])  # the third has no pattern
SIZES = (1, 33, 0, 3, 32)  # one pattern, one more than a block of 32, and whole blocks
RTOL = 1e-11  # the order of sums differs


class Case:
    """Patterns of mixed categories on a random tree."""

    def __init__(self, n_states=4, seed=5):
        rng = np.random.default_rng(seed)
        self.ends, self.lengths = random_ends(rng, N_TAXA)
        self.mixture = random_mixture(rng, n_states, 1, rates=[1.0])
        self.category_of = rng.permutation(np.repeat(np.arange(len(RATES)), SIZES))
        self.codes = random_codes(rng, N_TAXA, len(self.category_of), n_states)
        self.weights = rng.integers(1, 9, len(self.category_of)).astype(float)

    def components(self, rates=RATES, category_of=None):
        one = self.mixture.components
        names = ("eigenvalues", "right", "left", "frequencies", "weights")
        stacks = {name: np.repeat(getattr(one, name), len(rates), axis=0) for name in names}
        stacks["weights"] = np.ones(len(rates))
        category_of = self.category_of if category_of is None else category_of
        return Components(**stacks, rates=np.array(rates), category_of=category_of)

    def engine(self, make_engine, kind, memory=None):
        def make(data, parts):
            mixtures = [self.mixture] * len(parts)
            return make_engine(kind, 3 * N_TAXA, data.codes, data.weights, mixtures, parts, memory=memory)

        engine = CategoryEngine(make, EngineData(self.codes, self.weights), (len(self.weights),))
        engine.set_model([self.components()])
        return engine

    def site_lnl(self, lengths, rates=RATES, category_of=None):
        """lnL of each pattern at its own rate, by the oracle."""
        category_of = self.category_of if category_of is None else category_of
        lnl = np.empty(len(category_of))
        ((_, frequencies, q),) = self.mixture.oracle
        for category, rate in enumerate(rates):
            own = category_of == category
            if own.any():
                columns = self.codes[:, own].T.tolist()
                lnl[own] = pruning(self.ends.tolist(), lengths, columns, [(1.0, frequencies, q * rate)])
        return lnl


@pytest.fixture(scope="module")
def case():
    return Case()


def test_each_pattern_has_its_own_rate(case, make_engine, few_kind):
    engine = case.engine(make_engine, few_kind)
    operations, a, b = program_to_branch(case.ends, N_TAXA, 3)
    expected = case.site_lnl(case.lengths)
    assert lnl_of_sites(engine, a, b, 3, case.lengths, operations) == pytest.approx(expected, rel=RTOL)
    clas = engine.prepare(operations, case.lengths)
    assert evaluate_edges(clas, [(a, b, 3)], case.lengths) == pytest.approx(expected @ case.weights, rel=RTOL)
    assert (engine.n_parts, engine.part_patterns) == (1, (sum(SIZES),))


def test_derivatives(case, make_engine, few_kind):
    """The length of a branch multiplies each rate: the chain rule."""
    engine = case.engine(make_engine, few_kind)
    branch = 4
    operations, a, b = program_to_branch(case.ends, N_TAXA, branch)

    def lnl(length):
        return case.site_lnl(replaced(case.lengths, branch, length)) @ case.weights

    first, second = derivative(lnl, case.lengths[branch], 1e-3 * case.lengths[branch])
    program = np.concatenate([operations, derivative_program(0, a, b, branch)])
    found = engine.execute(Request(program, 3), case.lengths[None])  # as of one part
    scale = 1e-6 * case.weights.sum() / case.lengths[branch]  # the limit of the difference
    assert found[0] == pytest.approx([lnl(case.lengths[branch]), first, second], rel=1e-6, abs=scale)


def test_joins(case, make_engine, few_kind):
    """Triplets, which read what `prepare` and `extend` made."""
    engine = case.engine(make_engine, few_kind)
    operations, around = program_to_node(case.ends, N_TAXA, N_TAXA + 1)
    clas = engine.prepare(operations[:-1], case.lengths).extend(operations[-1:], case.lengths)
    found = clas.triplets([word for pair in around for word in pair], case.lengths)
    assert found.shape == (1, 1, 10)
    assert found[0, 0, 0] == pytest.approx(case.site_lnl(case.lengths) @ case.weights, rel=RTOL)


def test_other_categories(case, make_engine, few_kind):
    """Patterns are sorted again; the weights in use stay, and the work is counted on."""
    engine = case.engine(make_engine, few_kind)
    operations, a, b = program_to_branch(case.ends, N_TAXA, 0)
    weights = case.weights[::-1].copy()
    engine.set_weights(weights)
    before = engine.counters
    category_of = np.arange(len(case.category_of)) % 3
    rates = [0.3, 2.0, 1.1]
    engine.set_model([case.components(rates, category_of)])
    expected = case.site_lnl(case.lengths, rates, category_of)
    assert lnl_of_sites(engine, a, b, 0, case.lengths, operations) == pytest.approx(expected, rel=RTOL)
    clas = engine.prepare(operations, case.lengths)
    assert evaluate_edges(clas, [(a, b, 0)], case.lengths) == pytest.approx(expected @ weights, rel=RTOL)
    after = engine.counters
    assert after.launches > before.launches
    assert after.peak_bytes >= after.bytes_held > 0


def test_categories_again_are_equal_to_the_bit(case, make_engine, few_kind):
    engine = case.engine(make_engine, few_kind)
    operations, a, b = program_to_branch(case.ends, N_TAXA, 0)
    before = lnl_of_sites(engine, a, b, 0, case.lengths, operations)
    engine.set_model([case.components([1.0], np.zeros(len(case.category_of), dtype=np.intp))])
    engine.set_model([case.components()])
    assert np.array_equal(lnl_of_sites(engine, a, b, 0, case.lengths, operations), before)


def test_several_models_at_once(case, make_engine, few_kind):
    engine = case.engine(make_engine, few_kind)
    operations, a, b = program_to_branch(case.ends, N_TAXA, 0)
    models = [[case.components()], [case.components(2 * RATES)]]
    found = engine.likelihoods(operations, (a, b, 0), case.lengths, models)
    expected = [case.site_lnl(case.lengths) @ case.weights, case.site_lnl(2 * case.lengths) @ case.weights]
    assert found[:, 0] == pytest.approx(expected, rel=RTOL)
    with pytest.raises(EngineError, match="different rate categories"):
        engine.likelihoods(operations, (a, b, 0), case.lengths, [[case.components([1.0], 0 * case.category_of)]])


def test_weights_of_sorted_patterns(case, make_engine, few_kind):
    engine = case.engine(make_engine, few_kind)
    operations, a, b = program_to_branch(case.ends, N_TAXA, 0)
    weights = np.arange(len(case.weights)) % 7.0
    engine.set_weights(weights)
    found = evaluate_edges(engine.prepare(operations, case.lengths), [(a, b, 0)], case.lengths)
    assert found == pytest.approx(case.site_lnl(case.lengths) @ weights, rel=RTOL)


def test_gradients_belong_to_their_categories(case, make_engine):
    """Those of each category are those of its patterns alone; a category without patterns has none."""
    from engine_kinds import NUMPY_KINDS

    tree = make_tree(case.ends, case.lengths, N_TAXA)
    whole = TreeLikelihood(tree, [FixedModel(case.components())], case.engine(make_engine, NUMPY_KINDS[0]))
    lnl, matrices, masses = whole.rate_matrix_gradient()
    total = 0.0
    for category in range(len(RATES)):
        own = case.category_of == category
        if not own.any():
            assert not matrices[0][category].any()
            assert not masses[0][category].any()
            continue
        model = FixedModel(case.components().category(category))
        alone = likelihood_of(tree, case.codes[:, own], case.weights[own], model).rate_matrix_gradient()
        total += alone[0][0]
        assert matrices[0][category] == pytest.approx(alone[1][0][0], rel=1e-9, abs=1e-9)
        assert masses[0][category] == pytest.approx(alone[2][0][0], rel=1e-9)
    assert lnl[0] == pytest.approx(total, rel=RTOL)


def test_categories_of_other_patterns(case, make_engine):
    from engine_kinds import NUMPY_KINDS

    engine = case.engine(make_engine, NUMPY_KINDS[0])
    with pytest.raises(EngineError, match="categories of 3 patterns, expected 69"):
        engine.set_model([case.components(category_of=np.zeros(3, dtype=np.intp))])


@pytest.mark.parametrize("scale", [1e-4, 1.0, 30.0])  # of lengths: near 0 the gaps of exponents are small
def test_the_eigenbasis_in_place_of_p_matrices(case, scale):
    """Every request as on the numpy engine, for parts with the same rates and eigensystems of their own."""
    rng, lengths, sizes = np.random.default_rng(8), scale * case.lengths, (1, 2, 1, 65)
    processes = [(rng.dirichlet(np.full(4, 5.0)), rng.random((4, 4)) + 0.1) for _ in sizes]
    rates = ((0.2, 0.0), (0.5, 0.3), (0.3, 3.0))  # with their weights
    mixtures = [mix([(weight, pi, own, rate) for weight, rate in rates]) for pi, own in processes]
    plain = numpy_engine(3 * N_TAXA, case.codes, case.weights, mixtures, sizes)
    engine = EigenbasisEngine(plain.layout, plain.storage, EngineData(case.codes, case.weights))
    engine.set_model([mixture.components for mixture in mixtures])
    found, expected = (requests_of(case, own, lengths) for own in (engine, plain))
    for own, other in zip(found, expected, strict=True):
        size = np.abs(other).max()
        assert own == pytest.approx(other, rel=1e-9, abs=1e-11 * size)  # P has 16 digits of 1, this of its change


@pytest.mark.parametrize("length", [0.02, 3.0])
@pytest.mark.parametrize("gap", [0.0, 0.1, 0.5, 0.99, 1.01, 3.0, 1e3])  # (x - y) t, in units of SMALL_GAP
def test_divided_differences_in_the_eigenbasis(case, gap, length):
    """(exp(x t) - exp(y t)) / (x - y) of all pairs of exponents against 60 digits; t exp(x t) where x = y."""
    exponents = [-1.3, -2.0, -2.0 - gap * SMALL_GAP / length, 0.0]
    mixture = mix([(1.0, np.full(4, 0.25), np.ones((4, 4)), 1.0)])
    plain = numpy_engine(3 * N_TAXA, case.codes, case.weights, [mixture])
    engine = EigenbasisEngine(plain.layout, plain.storage, EngineData(case.codes, case.weights))
    engine.set_model([replace(mixture.components, eigenvalues=np.array([exponents]))])
    engine._branch_tables(np.full((1, 1), length), {})
    t = Decimal(length)
    with localcontext() as context:
        context.prec = 60
        for (i, x), (j, y) in product(enumerate(map(Decimal, exponents)), repeat=2):
            expected = t * (x * t).exp() if x == y else ((x * t).exp() - (y * t).exp()) / (x - y)
            found = engine._table_on("divided_differences", 0)[0, 0, 0, i, j]
            assert found == pytest.approx(float(expected), rel=1e-12)  # see SMALL_GAP


def requests_of(case, engine, lengths):
    """Derivatives of a branch, the gradient of the model there, a join, and an insertion."""
    n = engine.layout.n_components * 4
    operations, a, b = program_to_branch(case.ends, N_TAXA, 3)
    at_branch = [derivative_program(0, a, b, 3), prog.rate_matrix_gradient(3, a, b, 3)]
    program = np.concatenate([operations, *at_branch, prog.mass_gradient(3 + 4 * n, a, b, 3)])
    values = [engine.execute(Request(program, 3 + 5 * n), lengths)]
    operations, around = program_to_node(case.ends, N_TAXA, N_TAXA + 1)
    join = [word for pair in around for word in pair]
    program = np.concatenate([operations, prog.triplet(0, *join), prog.insert(10, *join[:5])])
    return [*values, engine.execute(Request(program, 11), lengths)]
