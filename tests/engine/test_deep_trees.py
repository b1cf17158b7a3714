"""Trees of thousands of taxa on which the rate category that decides in the end falls far behind on the way.

The rates of a small alpha differ by orders of magnitude. Where nothing changes, slow categories keep a likelihood near
1 and the fast one loses about two bits per taxon; where everything changes, the slow ones lose far more. A column that
is constant in one clade and saturated in the next is decided by a category that was 2^-1000 of the best one somewhere.
One scaling exponent per column is that of the best one and turns the others to 0: `scaled_pruning` shows it.
"""

from itertools import product

import numpy as np
import pytest
from agreement import Case as RandomCase
from engine_kinds import Kind, as_params
from helpers import caterpillar, make_tree, mix, random_ends
from oracles.likelihood import derivative, orient, pruning, transition_matrices

from plltool.engine import program as prog
from plltool.model.rates import gamma_means
from plltool.tree.operations import ROOT, DirectedView, directed_slots

N_CLADES = 4
SPINE = N_CLADES - 1  # the clade that is a caterpillar
FREQUENCIES = (0.28, 0.21, 0.24, 0.27)
EXCHANGEABILITIES = ((0, 1.2, 3.4, 0.8), (0, 0, 1.1, 4.1), (0, 0, 0, 1.0), (0, 0, 0, 0))
GAPS = None

RTOL = 1e-9  # of a column's lnL; powers of two round nothing
ATOL = 1e-9  # where lnL is 0: gaps only
# Of a column, in lnL, not of its lnL: the diagonals of the P matrices of slow rates are rounded to 2^-24 at every node.
# Measured with an exponent per component: 4.2e-5 with 5,000 taxa, 2.4e-5 with 1,000.
SINGLE_ATOL = 1e-4
SINGLE_RTOL = 1e-7  # of the lnL of all columns; measured: 4e-9
TOLERANCE = 1e-6  # of derivatives, of the sum of absolute contributions: the limit of the difference
STEP = 0.01  # of a length, or of the logarithm of a rate
NOISE = 1e-11  # of that difference for a rate that does not matter: lnL of 1,000 is rounded to 1e-13, over STEP


class Case(RandomCase):
    """Four clades around an inner branch, GTR+G4, and columns that treat each clade in its own way.

    Three clades have random shapes. In the fourth, a caterpillar, tips near its far end come first, so that a column
    that is constant and then random takes changes one at a time after the fast category was lost.
    """

    def __init__(self, seed, clade_taxa, alpha):
        rng = np.random.default_rng(seed)
        self.clade_taxa = clade_taxa
        self.n_taxa, self.state_sets = N_CLADES * clade_taxa, None
        self.joints = (2 * self.n_taxa - 4, 2 * self.n_taxa - 3)
        self.ends, self.lengths = self._join_clades(rng)
        self.codes = np.column_stack([*self._mosaics(rng), *self._spines(rng)])
        self.parts = (self.codes.shape[1],)
        self.weights = rng.integers(1, 9, self.codes.shape[1]).astype(float)
        self.mixture = mix([(0.25, FREQUENCIES, np.array(EXCHANGEABILITIES), r) for r in gamma_means(alpha, 4)])
        self.mixtures, self.expected = [self.mixture], self.oracle(self.lengths)

    def _join_clades(self, rng):
        """The last tip of a tree of clade_taxa + 1 becomes the joint that the clade hangs on."""
        size = self.clade_taxa
        ends, lengths = [[self.joints]], [[0.1]]
        for clade in range(N_CLADES):
            tips = clade * size + np.arange(size)
            inner = self.n_taxa + clade * (size - 1) + np.arange(size - 1)
            nodes = np.concatenate([tips, [self.joints[clade // 2]], inner])
            shape, times = random_ends(rng, size + 1)
            if clade == SPINE:
                shape = np.array(caterpillar(size + 1))
            ends.append(nodes[shape])
            lengths.append(times)
        return np.concatenate(ends), np.concatenate(lengths)

    def _mosaics(self, rng):
        """Columns whose clades have no, all or some tips with a state of their own, or gaps only."""
        size = self.clade_taxa
        rows = list(product((0, size, GAPS), repeat=N_CLADES))
        for k in (1, 2, 3, 5, 10, 20, 50, 100, 200):
            rows += [(k, 0, 0, 0), (0, k, size, size), (k, k, k, k)]
        for row in rows:
            column = np.full(self.n_taxa, 1 << rng.integers(4))
            for tips, k in zip(column.reshape(N_CLADES, size), row, strict=True):
                if k is GAPS:
                    tips[:] = 15
                else:
                    tips[rng.choice(size, k, replace=False)] = 1 << rng.integers(0, 4, k)
            yield column

    def _spines(self, rng):
        """Columns of gaps but for the caterpillar, which is constant at first and then random, or the reverse."""
        size = self.clade_taxa
        for share in (0.05, 0.1, 0.15, 0.2, 0.3, 0.5):
            k = int(share * size)
            for part in (slice(0, k), slice(size - k, size)):
                column = np.full(self.n_taxa, 15)
                spine = column[SPINE * size :]
                spine[:] = 1 << rng.integers(4)
                spine[part] = 1 << rng.integers(0, 4, k)
                yield column

    def oracle(self, lengths, components=None):
        """lnL of each column."""
        return pruning(self.ends.tolist(), lengths, self.codes.T.tolist(), components or self.mixture.oracle)

    def root_branches(self):
        """The branch between the joints, that of a tip, and one halfway along the caterpillar."""
        tip = SPINE * self.clade_taxa + self.clade_taxa // 2
        return [0, *(int(np.flatnonzero((self.ends == node).any(axis=1))[0]) for node in (0, tip))]


@pytest.fixture(scope="module")
def large():
    return Case(seed=11, clade_taxa=1250, alpha=0.05)


@pytest.fixture(scope="module")
def steep():
    return Case(seed=12, clade_taxa=250, alpha=0.02)


@pytest.fixture
def case(request):
    """The case of the name given."""
    return request.getfixturevalue(request.param)


def scaled_pruning(case, real, shared_axes):
    """lnL of each column in `real`; all of `shared_axes` of (component, state, column) share a power of two."""
    all_p = transition_matrices(case.mixture.oracle, case.lengths).astype(real)
    tips = (case.codes[:, None, None, :] >> np.arange(4)[:, None] & 1).astype(real)
    cla = {tip: (x, 0) for tip, x in enumerate(tips)}
    for parent, child, branch in reversed(orient(case.ends.tolist(), case.n_taxa)):
        below, count = cla.pop(child)
        z = all_p[:, branch] @ below
        if parent in cla:
            z, count = z * cla[parent][0], count + cla[parent][1]
        exponent = np.frexp(z.max(axis=shared_axes, keepdims=True))[1]
        cla[parent] = np.ldexp(z, -exponent), count + exponent
    z, count = cla[case.n_taxa]
    with np.errstate(divide="ignore"):
        by_state = np.log(case.mixture.components.masses()[..., None] * z) + count * np.log(2.0)
    return np.logaddexp.reduce(by_state, axis=(0, 1))


@pytest.mark.parametrize(("case", "real"), [("large", np.float64), ("steep", np.float32)], indirect=["case"])
def test_one_exponent_per_column_is_not_enough(case, real):
    """Many columns come out with likelihood 0, and some, which is worse, with a wrong one."""
    shared = scaled_pruning(case, real, shared_axes=(0, 1))
    assert np.isneginf(shared).sum() > 20  # measured: 50 and 62
    assert (np.isfinite(shared) & (shared < case.expected - 50)).sum() >= 2  # measured: 2 and 5, by up to 827
    by_component = scaled_pruning(case, real, shared_axes=1)
    np.testing.assert_allclose(by_component, case.expected, **site_tolerance(real == np.float32))


def site_tolerance(single):
    return {"rtol": 0.0, "atol": SINGLE_ATOL} if single else {"rtol": RTOL, "atol": ATOL}


KINDS = as_params([Kind("numpy", 4), Kind("vector", 4, 3), Kind("lanes", 32)])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("case", "precision"),
    [("large", "double"), *(("steep", precision) for precision in ("double", "mixed", "single"))],
    indirect=["case"],
)
def test_lnl_from_any_root_and_at_a_node(case, kind, precision, make_engine):
    """The node is where two clades and the rest of the tree meet; a large tree, for the range of doubles, has one root.

    Single CLAs reach the end of their range on the steep one.
    """
    engine = case.engine(make_engine, kind, precision=precision)
    single = precision != "double"
    branches = case.root_branches()[-1 if case.clade_taxa > 1000 else 0 :]
    for branch in branches:
        np.testing.assert_allclose(case.sites_on(engine, branch), case.expected, **site_tolerance(single))
    found = case.lnl_everywhere(engine, branches, case.joints[1])
    np.testing.assert_allclose(found, case.weights @ case.expected, rtol=SINGLE_RTOL if single else RTOL)


@pytest.fixture(scope="module")
def slopes(steep):
    """d1 and d2 of every column in the branches of the root that have subtrees of very different size."""
    return {branch: steep.slopes(branch, STEP) for branch in steep.root_branches()[1:]}


@pytest.mark.parametrize("kind", KINDS)
def test_derivatives(steep, slopes, kind, make_engine):
    engine = steep.engine(make_engine, kind)
    for branch, expected in slopes.items():
        program, a, b = steep.to(branch)
        engine.run(program, steep.lengths)
        found = engine.derivatives([(a, b, branch)], steep.lengths)[0, 0, 1:]
        for value, per_column in zip(found, expected, strict=True):
            assert abs(value - steep.weights @ per_column) < TOLERANCE * (steep.weights @ np.abs(per_column))


@pytest.fixture(scope="module")
def category_gradients(steep):
    """Each category's share of every column, and how much lnL of every column gains with the logarithm of its rate."""
    shares, gains = [], []
    for weight, *process in steep.mixture.oracle:
        alone = [(1.0, *process)]
        shares.append(weight * np.exp(steep.oracle(steep.lengths, alone) - steep.expected))

        def moved(log_factor, alone=alone):
            return steep.oracle(steep.lengths * np.exp(log_factor), alone)

        gains.append(shares[-1] * derivative(moved, 0.0, STEP)[0])
    return np.array(shares), np.array(gains)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_categories(steep, category_gradients, kind, make_engine):
    """Both gradients over all branches: d lnL / d log of each category's weight and of its rate."""
    engine = steep.engine(make_engine, kind, directed_slots(steep.n_taxa))
    tree = make_tree(steep.ends, steep.lengths, steep.n_taxa)
    view, components = DirectedView(tree), steep.mixture.components
    nodes, columns = view.preorder.T
    children = np.stack([(columns + 1) % 3, (columns + 2) % 3], axis=1).ravel()
    parents = np.repeat(nodes, 2)
    a, b, branch = ~ROOT, view.incoming[ROOT, 0], tree.edges[ROOT, 0]
    squares, masses = components.n_components * 16, components.n_components * 4
    program = [
        prog.newview(*view.sources(nodes[::-1], columns[::-1])),
        prog.newview(*view.sources(parents, children)),
        prog.rate_matrix_gradient(
            0,
            np.append(a, view.outgoing[parents, children]),
            np.append(b, view.incoming[parents, children]),
            np.append(branch, tree.edges[parents, children]),
        ),
        prog.mass_gradient(squares, a, b, branch),
    ]
    found = engine.execute(prog.Request(np.concatenate(program), squares + masses), tree.lengths)[0]
    shares, gains = category_gradients
    np.testing.assert_allclose(found[squares:].reshape(-1, 4).sum(axis=1), shares @ steep.weights, rtol=RTOL)
    by_eigenvalue = np.einsum("ckk->ck", found[:squares].reshape(-1, 4, 4))
    slopes = (by_eigenvalue * components.eigenvalues).sum(axis=1) * components.rates
    error = np.abs(slopes - gains @ steep.weights)
    assert np.all(error < TOLERANCE * (np.abs(gains) @ steep.weights) + NOISE * steep.weights.sum())
