"""The screen of a likelihood: each pattern under the component that suits it best, by the oracle; and its moves."""

from functools import partial

import numpy as np
import pytest
from helpers import make_tree, plain_engine, random_codes, random_ends, random_mixture
from oracles.likelihood import pruning

from plltool.engine.base import EngineData
from plltool.engine.categories import CategoryEngine
from plltool.engine.composite import Composite
from plltool.engine.layout import Layout
from plltool.engine.requests import work_of
from plltool.errors import EngineError
from plltool.optimise.likelihood import TreeLikelihood
from plltool.tree.moves import prune_regraft
from plltool.tree_search.climb import find_moves
from plltool.tree_search.scan import heal

N_TAXA = 8
N_SLOTS = 3 * N_TAXA + 20
SIZES = (40, 23)
SCREENED = 1e-9  # relative; the order of sums differs


class Case:
    """Two parts whose mixtures have three components each and all parameters of their own."""

    def __init__(self, seed, unlinked=False, part_states=(4, 4)):
        rng = np.random.default_rng(seed)
        self.mixtures = [random_mixture(rng, n_states, 3) for n_states in part_states]
        self.ends, lengths = random_ends(rng, N_TAXA)
        self.lengths = np.stack([lengths, lengths * 1.7], axis=1) if unlinked else lengths
        self.codes = [random_codes(rng, N_TAXA, *shape) for shape in zip(SIZES, part_states, strict=True)]
        self.weights = [rng.integers(1, 6, size).astype(float) for size in SIZES]

    def data(self, members):
        codes = np.concatenate([self.codes[part] for part in members], axis=1)
        return EngineData(codes, np.concatenate([self.weights[part] for part in members]))

    def engine(self, shards):
        """An engine with a shard for each group of parts, which offers a screen of the same shards."""

        def plain(n_components, members, data, sizes):
            n_states = self.mixtures[members[0]].components.n_states
            return plain_engine(Layout(n_states, n_components, N_TAXA, sizes, 4), N_SLOTS, data)

        def put_together(engines):
            return engines[0] if len(engines) == 1 else Composite.of_whole_parts(engines, shards)

        def make_screen(category_of):
            own = np.split(category_of, [SIZES[0]])
            return put_together([
                CategoryEngine(
                    partial(plain, 1, members),
                    self.data(members),
                    tuple(SIZES[part] for part in members),
                    np.concatenate([own[part] for part in members]),
                )
                for members in shards
            ])  # fmt: skip

        engine = put_together(
            [plain(3, members, self.data(members), tuple(SIZES[part] for part in members)) for members in shards]
        )
        engine.make_screen = make_screen
        return engine

    def likelihood(self, shards=((0, 1),)):
        models = [mixture.as_model() for mixture in self.mixtures]
        return TreeLikelihood(make_tree(self.ends, self.lengths, N_TAXA), models, self.engine(shards))

    def component_lnl(self, tree, part, mixture=None):
        """(3, n_patterns) lnL of each pattern under each component alone, without its weight, by the oracle."""
        lengths = tree.lengths if tree.lengths.ndim == 1 else tree.lengths[:, part]
        columns = self.codes[part].T.tolist()
        processes = (mixture or self.mixtures[part]).oracle
        return np.stack([pruning(tree.ends.tolist(), lengths, columns, [(1.0, *rest)]) for _, *rest in processes])

    def shares(self, part):
        return np.log([weight for weight, *_ in self.mixtures[part].oracle])[:, None]

    def expected(self, tree, category_of, weights=None):
        """lnL of each part with one component for each pattern."""
        lnl = []
        for part, own in enumerate(np.split(category_of, [SIZES[0]])):
            each = self.component_lnl(tree, part)[own, np.arange(SIZES[part])]
            lnl.append(each @ (self.weights[part] if weights is None else np.split(weights, [SIZES[0]])[part]))
        return lnl


CASES = {
    "one engine": ((0, 1), {}),
    "unlinked": ((0, 1), {"unlinked": True}),
    "shards": (None, {"part_states": (4, 3)}),
}


@pytest.fixture(params=CASES, ids=str)
def both(request):
    members, options = CASES[request.param]
    case = Case(3, **options)
    return case, case.likelihood(((0,), (1,)) if members is None else (members,))


def test_each_pattern_has_the_component_with_the_largest_share(both):
    case, likelihood = both
    category_of = likelihood.start_screening()
    expected = [np.argmax(case.component_lnl(likelihood.tree, p) + case.shares(p), axis=0) for p in range(2)]
    assert category_of.tolist() == np.concatenate(expected).tolist()
    assert len(set(category_of.tolist())) == 3, "the case shows something"


def test_lnl_of_the_screen(both):
    """Also after changes of lengths, topology, weights and models."""
    case, likelihood = both
    category_of = likelihood.start_screening()
    assert likelihood.screen.part_lnl() == pytest.approx(case.expected(likelihood.tree, category_of), rel=SCREENED)
    likelihood.tree.lengths[:] *= 1.3
    assert likelihood.screen.part_lnl() == pytest.approx(case.expected(likelihood.tree, category_of), rel=SCREENED)
    other = np.random.default_rng(8)
    likelihood.tree.assign(make_tree(random_ends(other, N_TAXA)[0], likelihood.tree.lengths, N_TAXA))
    likelihood.topology_changed()
    assert likelihood.screen.part_lnl() == pytest.approx(case.expected(likelihood.tree, category_of), rel=SCREENED)
    weights = other.integers(0, 4, sum(SIZES)).astype(float)
    with likelihood.reweighted(weights):
        assert likelihood.screen.part_lnl() == pytest.approx(
            case.expected(likelihood.tree, category_of, weights), rel=SCREENED
        )
    case.mixtures = Case(9, part_states=[mixture.components.n_states for mixture in case.mixtures]).mixtures
    likelihood.models = [mixture.as_model() for mixture in case.mixtures]
    likelihood.model_changed()
    assert likelihood.screen.part_lnl() == pytest.approx(case.expected(likelihood.tree, category_of), rel=SCREENED)


def test_given_components(both):
    case, likelihood = both
    category_of = np.arange(sum(SIZES)) % 3
    assert likelihood.start_screening(category_of) is category_of
    assert likelihood.screen.part_lnl() == pytest.approx(case.expected(likelihood.tree, category_of), rel=SCREENED)
    assert likelihood.start_screening(category_of[::-1].copy())[0] == category_of[-1]
    expected = case.expected(likelihood.tree, category_of[::-1])
    assert likelihood.screen.part_lnl() == pytest.approx(expected, rel=SCREENED)


def test_moves_have_the_lnl_of_all_components(both):
    """Moves are found with the screen, but their lnL is that of the tree after the move under the whole mixtures."""
    case, likelihood = both
    likelihood.start_screening()
    tree, lnl = likelihood.tree, likelihood.lnl()
    moves = find_moves(likelihood, lnl, 3)
    assert moves.healed == pytest.approx(heal(likelihood, moves.joints, moves.columns), rel=1e-12)
    gaining = np.flatnonzero(moves.lnl > lnl)
    assert len(gaining) >= 3, "the case shows something"
    for k in gaining[::3]:
        joint, column, branch = int(moves.joints[k]), int(moves.columns[k]), int(moves.branches[k])
        toward, away, hanging = np.moveaxis(moves.lengths[k], -1, 0)
        first, second = (toward, away) if moves.toward_gap[k] else (away, toward)
        moved = tree.copy()
        subtree = int(tree.neighbours[joint, column])
        prune_regraft(moved, joint, subtree, branch, moves.healed[k], (first, second, hanging))
        expected = 0.0
        for part in range(2):
            each = np.logaddexp.reduce(case.component_lnl(moved, part) + case.shares(part), axis=0)
            expected += each @ case.weights[part]
        assert moves.lnl[k] == pytest.approx(expected, rel=SCREENED)


def test_what_single_precision_cannot_represent(both, monkeypatch):
    """Then moves are found without the screen."""
    _, likelihood = both
    lnl = likelihood.lnl()
    expected = find_moves(likelihood, lnl, 3)
    likelihood.start_screening()

    def fail(*arguments):
        raise EngineError("pattern 1 has likelihood 0")

    monkeypatch.setattr(likelihood.screen.engine, "execute", fail)
    found = find_moves(likelihood, lnl, 3)
    assert found.branches.tolist() == expected.branches.tolist()
    assert found.lnl == pytest.approx(expected.lnl, rel=SCREENED)


def test_without_an_offer():
    case = Case(5)
    likelihood = case.likelihood()
    likelihood.engine.make_screen = None
    assert likelihood.start_screening() is None
    assert likelihood.screen is None
    with pytest.raises(EngineError, match="no screen"):
        likelihood.engine.open_screen(np.zeros(sum(SIZES), dtype=np.intp))


def test_work_and_memory_count(both):
    _, likelihood = both
    engine = likelihood.engine
    likelihood.start_screening()
    likelihood.screen.lnl()
    screen = engine.screen
    assert work_of(engine).launches == engine.counters.launches + screen.counters.launches
    assert screen.counters.launches > 0
    assert screen.cla_bytes < engine.cla_bytes / 2
    lnl = likelihood.screen.lnl()
    engine.release_clas()
    assert screen.counters.bytes_held < screen.cla_bytes
    assert likelihood.screen.lnl() == lnl
    engine.close()
