"""Corrections for ascertainment bias: every kind of request against the oracle and its differences."""

from dataclasses import replace

import numpy as np
import pytest
from agreement import Case as RandomCase
from engine_kinds import NUMPY_KINDS
from helpers import evaluate_edges, program_to_node
from oracles.ascertainment import correction, invariable_lnl
from oracles.likelihood import derivative, mixed_derivative, pruning

from plltool.engine import program as prog
from plltool.engine.categories import AscertainedEngine
from plltool.errors import EngineError
from plltool.model.checks import Ascertainment

TOLERANCE, STEP = 1e-6, 0.01  # as in `test_derivatives`
N_TAXA, SIZES = 5, (9, 6, 11)
KINDS = [
    Ascertainment("lewis"),
    Ascertainment("felsenstein", (17.0,)),
    Ascertainment("stamatakis", (3.0, 0.0, 5.5, 2.0)),
]
LAST = Ascertainment("lewis")  # of the last part; that in the middle has none


class Case(RandomCase):
    """Three parts on a tree, each with lengths, a model and maybe a correction of its own."""

    def __init__(self, seed=3):
        super().__init__(seed, N_TAXA, SIZES)
        self.lengths = self.lengths * np.array([[1.0], [0.4], [2.5]])

    def engine(self, make_engine, kind, own, **settings):
        invariable = np.tile(1 << np.arange(4), (N_TAXA, 2))
        parts = (*SIZES, *[1] * 8)
        mixtures = [self.mixtures[part] for part in (0, 1, 2, *[0] * 4, *[2] * 4)]
        codes = np.concatenate([self.codes, invariable], axis=1)
        weights = np.concatenate([self.weights, np.ones(8)])
        engine = make_engine(kind, N_TAXA + 1, codes, weights, mixtures, parts, **settings)
        return AscertainedEngine(engine, [own, None, LAST])

    def terms(self, part, own, *changed):
        """The weighted lnL of each pattern of a part, and its correction last; `changed` as for `lnl_at`."""
        lengths = self.lengths[part].copy()
        for branch, length in changed:
            lengths[branch] = length
        branches, oracle = self.ends.tolist(), self.mixtures[part].oracle
        weights = self.weights[self.of_part(part)]
        sites = weights * pruning(branches, lengths, self.columns(part), oracle)
        if own is None:
            return np.append(sites, 0.0)
        lnl = invariable_lnl(branches, lengths, oracle, N_TAXA).tolist()
        return np.append(sites, correction(own.kind, own.unseen, lnl, weights.sum()))

    def slopes(self, part, own, branch):
        t = self.lengths[part, branch]
        return derivative(lambda x: self.terms(part, own, (branch, x)), t, STEP * t)

    def mixed(self, part, own, first, second):
        t, u = self.lengths[part, [first, second]]
        return mixed_derivative(lambda x, y: self.terms(part, own, (first, x), (second, y)), t, u, STEP * t, STEP * u)


def check(found, terms, what):
    error, size = abs(found - terms.sum()), np.abs(terms).sum()
    assert error <= TOLERANCE * size, f"{what}: {error / size:.2g}"


@pytest.fixture(scope="module")
def case():
    return Case()


@pytest.fixture(params=KINDS, ids=str)
def own(request):
    return request.param


def of_parts(case, own):
    return [(0, own), (1, None), (2, LAST)]


def test_lnl_and_derivatives_of_branches(few_kind, make_engine, case, own):
    engine = case.engine(make_engine, few_kind, own)
    for branch in (0, len(case.ends) - 1):
        program, a, b = case.to(branch)
        clas = engine.prepare(program, case.lengths)
        values = clas.derivatives([(a, b, branch)], case.lengths)[0]
        assert evaluate_edges(clas, [(a, b, branch)], case.lengths)[0] == pytest.approx(values[:, 0], rel=1e-12)
        for part, correct in of_parts(case, own):
            assert values[part, 0] == pytest.approx(case.terms(part, correct).sum(), rel=1e-12)
            for k, terms in enumerate(case.slopes(part, correct, branch)):
                check(values[part, 1 + k], terms, f"derivative {1 + k}, part {part}, branch {branch}")


def test_triplets_and_insertions(few_kind, make_engine, case, own):
    engine = case.engine(make_engine, few_kind, own)
    node = 2 * N_TAXA - 3
    program, around = program_to_node(case.ends, N_TAXA, node)
    clas = engine.prepare(program, case.lengths)
    values = clas.triplets([[word for pair in around for word in pair]], case.lengths)[0]
    (a, pa), (b, pb), (c, pc) = around
    joined = np.concatenate([prog.propagate(N_TAXA, c, pc), prog.insert(0, a, pa, b, pb, N_TAXA)])
    inserted = clas.execute(prog.Request(joined, 1, scratch=range(N_TAXA, N_TAXA + 1)), case.lengths)[:, 0]
    for part, correct in of_parts(case, own):
        assert inserted[part] == pytest.approx(case.terms(part, correct).sum(), rel=1e-12)
        assert values[part, 0] == pytest.approx(inserted[part], rel=1e-12)
        for k, branch in enumerate((pa, pb, pc)):
            first, second = case.slopes(part, correct, branch)
            check(values[part, 1 + k], first, f"gradient {k}, part {part}")
            check(values[part, 4 + k], second, f"Hessian {k}{k}, part {part}")
        for k, pair in enumerate(((pa, pb), (pa, pc), (pb, pc))):
            check(values[part, 7 + k], case.mixed(part, correct, *pair), f"mixed {k}, part {part}")


def test_site_values_share_the_correction(few_kind, make_engine, case, own):
    """Each site of a part has the same share, also of other weights; values that may be impossible have none."""
    engine = case.engine(make_engine, few_kind, own)
    request, expected = case.across(2), case.site_lnl(pruning)
    for weights in (case.weights, case.weights[::-1] * 1.5):
        engine.set_weights(weights)
        assert engine.weights.tolist() == weights.tolist()
        sums = engine.execute(request, case.lengths)[:, 0]
        found = engine.execute_sites(request, case.lengths)[0]
        plain = engine.execute_sites(replace(request, impossible=True), case.lengths)[0]
        assert plain == pytest.approx(expected, rel=1e-12)
        for part, correct in of_parts(case, own):
            patterns = case.of_part(part)
            assert weights[patterns] @ found[patterns] == pytest.approx(sums[part], rel=1e-12)
            assert np.ptp(found[patterns] - plain[patterns]) < 1e-12
            assert (found[patterns] == plain[patterns]).all() == (correct is None)


def test_one_weight_changes_the_number_of_sites(few_kind, make_engine, case):
    """-N log(1 - S) grows with N, and the oracle knows the weights."""
    engine = case.engine(make_engine, few_kind, LAST)
    program, a, b = case.to()
    engine.set_weights(np.append(case.weights[0] + 100, case.weights[1:]))
    value = evaluate_edges(engine.prepare(program, case.lengths), [(a, b, 0)], case.lengths)[0]
    other = Case()
    other.weights[0] += 100
    assert value[0] == pytest.approx(other.terms(0, LAST).sum(), rel=1e-12)
    assert value[2] == pytest.approx(case.terms(2, LAST).sum(), rel=1e-12)


def test_models_side_by_side(few_kind, make_engine, case, own):
    engine = case.engine(make_engine, few_kind, own)
    program, a, b = case.to()
    models = [[case.mixtures[part].components for part in order] for order in ((0, 1, 2), (2, 1, 0))]
    values = engine.likelihoods(program, (a, b, 0), case.lengths, models)
    assert values[0] == pytest.approx([case.terms(*pair).sum() for pair in of_parts(case, own)], rel=1e-12)
    swapped = Case()
    swapped.mixtures = swapped.mixtures[::-1]
    assert values[1] == pytest.approx([swapped.terms(*pair).sum() for pair in of_parts(case, own)], rel=1e-12)


def test_parts_that_are_not_wanted(few_kind, make_engine, case, own):
    """Sums of others may be anything, and those of unwanted invariable sites do no harm."""
    engine = case.engine(make_engine, few_kind, own)
    for wanted in ([True, False, False], [False, False, True], [False, True, False], [False] * 3):
        request = replace(case.across(), parts=np.array(wanted))
        sums = engine.execute(request, case.lengths)[:, 0]
        sites = case.weights * engine.execute_sites(request, case.lengths)[0]
        for part, correct in of_parts(case, own):
            if wanted[part]:
                expected = case.terms(part, correct).sum()
                assert sums[part] == pytest.approx(expected, rel=1e-12)
                assert sites[case.of_part(part)].sum() == pytest.approx(expected, rel=1e-12)


def test_from_the_outside_there_are_the_parts_of_the_alignment(few_kind, make_engine, case):
    engine = case.engine(make_engine, few_kind, LAST)
    assert (engine.n_parts, engine.part_patterns, engine.n_patterns) == (3, SIZES, sum(SIZES))
    assert engine.describe() == engine.engines[0].describe()


def test_a_tree_without_length_has_no_variable_sites(make_engine):
    case = Case()
    case.codes = np.ones((N_TAXA, sum(SIZES)), dtype=int)
    engine = case.engine(make_engine, NUMPY_KINDS[0], LAST)
    program, a, b = case.to()
    with pytest.raises(EngineError, match="the tree is so short that variable sites"):
        engine.prepare(program, 0 * case.lengths).derivatives([(a, b, 0)], 0 * case.lengths)
