"""What BEAGLE's library 3.1 lacks, against the oracle of all states; asynchronous answers, resources, errors."""

from types import SimpleNamespace

import numpy as np
import pytest
from helpers import random_mixture
from oracles.likelihood import derivative, pruning
from scipy.linalg import expm
from sequences import random_system

from plltool.beagle import BeagleError, Code, Flag, Instance, get_citation, get_resource_list, get_version
from plltool.beagle.buffers import read_eigensystem
from plltool.engine.opencl.arrays import DeviceArrays

FRAMEWORKS = [
    pytest.param(Flag.FRAMEWORK_CPU, id="numpy"),
    pytest.param(Flag.FRAMEWORK_OPENCL, id="opencl", marks=pytest.mark.opencl),
]
# the root is node 4; nodes 5 and 6 are inner ones: ((0, 1)5, (2, 3)6)4
EDGES = [(4, 5), (4, 6), (5, 0), (5, 1), (6, 2), (6, 3)]  # edge k has matrix k, but that of node n is `OF_NODE[n]`
OF_NODE = {child: number for number, (_, child) in enumerate(EDGES)}
CHILDREN = {4: (5, 6), 5: (0, 1), 6: (2, 3)}
STEP = 1e-3
NONE = Instance.NONE


def make(required, n_categories=4, n_patterns=7, seed=1):
    """An instance with random data on the tree above; and what the oracle needs of it."""
    rng = np.random.default_rng(seed)
    rates, weights = rng.gamma(2, 0.5, n_categories), rng.dirichlet(np.full(n_categories, 4.0))
    mixture = random_mixture(rng, 4, 1, rates=[1.0])
    states, lengths = rng.integers(0, 5, (4, n_patterns)), rng.exponential(0.3, len(EDGES))
    instance = Instance(4, 12, 4, 4, n_patterns, 1, 16, n_categories, 8, requirement_flags=required)
    for tip in range(4):
        instance.set_tip_states(tip, states[tip])
    parts = mixture.components
    instance.set_eigen_decomposition(0, parts.right[0], parts.left[0], parts.eigenvalues[0])
    instance.set_state_frequencies(0, parts.frequencies[0])
    instance.set_category_rates(rates)
    instance.set_category_weights(0, weights)
    counts = rng.integers(1, 5, n_patterns)
    instance.set_pattern_weights(counts)
    instance.update_transition_matrices(0, np.arange(len(EDGES)), None, None, lengths)
    _, pi, q = mixture.oracle[0]
    columns = np.where(states == 4, 15, 1 << np.minimum(states, 3)).T.tolist()

    def sites(at, own_q=q):
        components = [(weight, pi, own_q * rate) for weight, rate in zip(weights, rates, strict=True)]
        return pruning(EDGES, at, columns, components)

    return instance, SimpleNamespace(sites=sites, lengths=lengths, counts=counts, q=q, rates=rates)


@pytest.fixture
def instance():
    made, _ = make(Flag.FRAMEWORK_CPU)
    with made:
        yield made


def operation(node, scale=NONE):
    a, b = CHILDREN[node]
    return [node, scale, NONE, a, OF_NODE[a], b, OF_NODE[b]]


def pre_operation(node, scale=NONE):
    """The buffer above node n is n + 7."""
    parent = next(parent for parent, children in CHILDREN.items() if node in children)
    sibling = next(child for child in CHILDREN[parent] if child != node)
    return [node + 7, scale, NONE, parent + 7, OF_NODE[node], sibling, OF_NODE[sibling]]


NODES = 5, 6, 0, 1, 2, 3
ABOVE = [node + 7 for node in NODES]


def set_above_and_below(instance, scaled, n_partitions=1):
    """Partials below all nodes and above all of them."""
    below = [operation(node, node - 4 if scaled else NONE) for node in (5, 6, 4)]
    above = [pre_operation(node, 3 + node % 3 if scaled else NONE) for node in NODES]
    update, update_pre = instance.update_partials, instance.update_pre_partials
    if n_partitions > 1:
        instance.set_pattern_partitions(2, [0, 1, 1, 0, 0, 1, 0])
        below, above = ([[*row, k, NONE] for k in (1, 0) for row in rows] for rows in (below, above))
        update, update_pre = instance.update_partials_by_partition, instance.update_pre_partials_by_partition
    update(below)
    instance.set_root_pre_partials([4 + 7], [0])
    update_pre(above)


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("scaled", [False, True], ids=["unscaled", "scaled"])
@pytest.mark.parametrize("n_partitions", [1, 2])
def test_gradients_of_all_edges(framework, scaled, n_partitions):
    instance, oracle = make(framework)
    with instance:
        set_above_and_below(instance, scaled, n_partitions)
        instance.set_differential_matrix(10, oracle.rates[:, None, None] * oracle.q)
        edges = [OF_NODE[node] for node in NODES]
        sites, sums, squares = instance.calculate_edge_derivatives(NODES, ABOVE, [10] * len(NODES), [0])
        for row, edge in enumerate(edges):
            at = oracle.lengths.copy()

            def moved(length, edge=edge, at=at):
                at[edge] = length
                return oracle.sites(at)

            expected = derivative(moved, oracle.lengths[edge], STEP * oracle.lengths[edge])[0]
            np.testing.assert_allclose(sites[row], expected, rtol=1e-7, atol=1e-8)  # rounding of lnL over the step
        np.testing.assert_allclose(sums, sites @ oracle.counts, rtol=1e-12)
        np.testing.assert_allclose(squares, sites**2 @ oracle.counts, rtol=1e-12)
        if not scaled:  # each pre-order partial, with the one below, is the likelihood
            for node in NODES[:2]:
                above, below = (instance.get_partials(buffer) for buffer in (node + 7, node))
                weights = instance._weights[0][:, None, None]
                found = np.log((weights * above * below).sum(axis=(0, 2)))
                np.testing.assert_allclose(found, oracle.sites(oracle.lengths), rtol=1e-12)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_asynchronous_answers(framework):
    instance, oracle = make(framework | Flag.COMPUTATION_ASYNCH)
    with instance:
        assert Flag.COMPUTATION_ASYNCH in instance.flags
        instance.update_partials([operation(node, scale=node) for node in (5, 6, 4)], 7)
        assert instance.calculate_root_log_likelihoods([4], [0], [0], [7]) is None
        instance.reset_scale_factors(7)  # comes after the answer
        expected = oracle.sites(oracle.lengths)
        instance.calculate_edge_derivatives([5], [6], [0], [0])  # nor does it wait for what comes later
        assert instance.get_log_likelihood() == pytest.approx(expected @ oracle.counts, rel=1e-12)
        np.testing.assert_allclose(instance.get_site_log_likelihoods(), expected, rtol=1e-12)
        assert np.all(instance.get_scale_factors(7) == 0)
        instance.update_partials([operation(node) for node in (5, 6, 4)])  # takes nothing out
        instance.calculate_root_log_likelihoods([4], [0], [0], [NONE])
        np.testing.assert_allclose(instance.get_site_log_likelihoods(), expected, rtol=1e-12)
        instance.update_transition_matrices(0, [8], [9], [10], oracle.lengths[:1] + oracle.lengths[1:2])
        assert instance.calculate_edge_log_likelihoods([5], [6], [8], [9], [10], [0], [0], [NONE]) is None
        at = oracle.lengths.copy()

        def along(length):  # the root divides one edge
            at[0] = length - oracle.lengths[1]
            return oracle.sites(at)

        first, second = derivative(along, oracle.lengths[:2].sum(), STEP)
        np.testing.assert_allclose(instance.get_site_derivatives(), [first, second], rtol=1e-5, atol=1e-6)
        sums = first @ oracle.counts, second @ oracle.counts
        np.testing.assert_allclose(instance.get_derivatives(), sums, rtol=1e-5)


def test_scale_factors_are_logarithms_of_the_largest_entries(instance):
    instance.update_partials([operation(5)])
    plain = instance.get_partials(5)
    instance.update_partials([operation(5, scale=2)], 3)
    np.testing.assert_allclose(instance.get_scale_factors(2), np.log(plain.max(axis=(0, 2))), rtol=1e-12)
    np.testing.assert_allclose(instance.get_partials(5).max(axis=(0, 2)), 1.0, rtol=1e-12)
    np.testing.assert_allclose(instance.get_partials(5, 2), plain, rtol=1e-12)
    instance.copy_scale_factors(4, 3)
    np.testing.assert_array_equal(instance.get_scale_factors(4), instance.get_scale_factors(2))


def test_states_have_no_scale_factors():
    """Of a buffer that held scaled partials before."""
    found = []
    for is_scaled in (False, True):
        instance, _ = make(Flag.FRAMEWORK_CPU)
        with instance:
            instance.set_tip_states(3, np.zeros(7))
            if is_scaled:
                instance.update_partials([[3, 0, NONE, 0, 0, 1, 1]])
            instance.set_tip_states(3, [2] * 7)
            instance.update_partials([[5, NONE, NONE, 0, 0, 3, 3]])
            found.append(instance.calculate_root_log_likelihoods([5], [0], [0], [NONE]))
    assert found[1] == found[0]


def test_operations_that_are_refused_make_nothing(instance):
    with pytest.raises(BeagleError, match="buffer 9 holds neither"):
        instance.update_partials([operation(5), [8, NONE, NONE, 9, 0, 1, 1]])
    with pytest.raises(BeagleError, match="buffer 5 holds neither"):
        instance.get_partials(5)
    instance.update_partials([operation(5)])


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_deep_trees_do_not_underflow_without_scaling(framework):
    """A caterpillar of 3,000 operations: lnL of one site is that of the closed form of a single state."""
    instance, _ = make(framework, n_patterns=1)
    with instance:
        instance.set_transition_matrix(15, np.full((4, 4, 4), 0.25))
        instance.set_tip_states(0, [2])
        instance.update_partials([[5, NONE, NONE, 0, 15, 0, 15]])
        for _ in range(30):
            rows = [[6 - k % 2, NONE, NONE, 5 + k % 2, 15, 0, 15] for k in range(100)]
            instance.update_partials(rows)
        instance.set_pattern_weights([1])
        found = instance.calculate_root_log_likelihoods([5], [0], [0], [NONE])
        assert found == pytest.approx((3000 + 2) * np.log(0.25), rel=1e-12)


def test_tips_partials_and_matrices_come_back(instance):
    values = np.random.default_rng(3).random((4, 7, 4))
    instance.set_partials(8, values.ravel())
    np.testing.assert_array_equal(instance.get_partials(8), values)
    instance.transpose_transition_matrices([0], [11])
    np.testing.assert_array_equal(instance.get_transition_matrix(11)[2], instance.get_transition_matrix(0)[2].T)
    instance.convolve_transition_matrices([0], [1], [12])
    product = instance.get_transition_matrix(0) @ instance.get_transition_matrix(1)
    np.testing.assert_array_equal(instance.get_transition_matrix(12), product)


def too_many_edges(instance):
    instance.calculate_edge_log_likelihoods([5] * 9, [6] * 9, [8] * 9, None, None, [0] * 9, [0] * 9, [NONE] * 9)


def after_the_end(instance):
    instance.finalize()
    instance.finalize()
    instance.update_partials([operation(5)])


def nan_at_root(instance):
    instance.set_partials(8, np.full((4, 7, 4), np.nan))
    instance.calculate_root_log_likelihoods([8], [0], [0], [NONE])


def slopes_of_a_mixture(instance):
    instance.set_pattern_partitions(2, np.arange(7) % 2)
    instance.update_partials([operation(5)])
    instance.calculate_edge_log_likelihoods([5, 5], [0, 1], [0, 1], [2, 2], None, [0, 0], [0, 0], [NONE] * 2)


def slopes_of_a_mixture_of_parts(instance):
    instance.update_partials([operation(5)])
    lists = [[5, 5], [0, 1], [0, 1], [2, 2], None, [0, 0], [0, 0], [NONE] * 2, [0]]
    instance.calculate_edge_log_likelihoods_by_partition(*lists, count=2)


ONE_EDGE, SLOPES = "calculate_edge_log_likelihoods", "calculate_edge_derivatives"


@pytest.mark.parametrize(
    ("message", "call", "arguments"),
    [
        ("found tip 4, expected 0 .. 3", "set_tip_states", (4, np.zeros(7))),
        ("tip 1: found 6 states, expected 7", "set_tip_states", (1, np.zeros(6))),
        ("tip 1: found state -1, expected 0", "set_tip_states", (1, [-1] * 7)),
        ("tip 1: found .*0.7, .* expected whole", "set_tip_states", (1, [0.7] * 7)),
        ("tip 1: found .*nan, .* expected whole", "set_tip_states", (1, [np.nan] * 7)),
        ("tip 1: found 3 numbers, expected 7 x 4", "set_tip_partials", (1, np.zeros(3))),
        ("tip 1: found 'ACGTACG', expected numbers", "set_tip_partials", (1, "ACGTACG")),
        ("found buffer 16, expected 0 .. 15", "get_partials", (16,)),
        ("found matrix 16", "update_partials", ([[5, -1, -1, 0, 16, 1, 1]],)),
        ("found scale buffer 8", "update_partials", ([[5, 8, -1, 0, 0, 1, 1]],)),
        ("found scale buffer 8", "update_partials", ([[5, -1, -1, 0, 0, 1, 1]], 8)),
        ("found scale buffer 8", "update_partials_by_partition", ([[5, -1, -1, 0, 0, 1, 1, 0, 8]],)),
        ("found partition 1", "update_partials_by_partition", ([[5, -1, -1, 0, 0, 1, 1, 1, -1]],)),
        ("holds neither states nor", "update_partials", ([[5, -1, -1, 9, 0, 1, 1]],)),
        ("expected 7 each", "update_partials", ([5, -1, -1, 0],)),
        ("operations: found .* expected whole numbers", "update_partials", ([[5, -1], [0]],)),
        ("found 2 matrices above and 1 matrices below", "convolve_transition_matrices", ([0, 1], [0], [2, 3])),
        ("found no buffers, expected at least one", "calculate_root_log_likelihoods", ([], [], [], [])),
        ("found 1 buffers and 3 scale buffers", "calculate_root_log_likelihoods", ([5], [0], [0], [NONE, 1, 1])),
        ("found eigensystem 1", "set_eigen_decomposition", (1, [], [], [])),
        ("found 2 lengths", "update_transition_matrices", (0, [1], None, None, [1, 2])),
        ("found edge length -1.0, expected 0", "update_transition_matrices", (0, [1], None, None, [-1])),
        ("found 1 matrices above and 2 results", "add_transition_matrices", ([1], [2], [3, 4])),
        ("found 1 sets of buffers and 2 matrices", ONE_EDGE, ([5], [0], [0, 1], None, None, [0], [0], [NONE])),
        ("found 1 buffers and 2 frequencies", "set_root_pre_partials", ([8], [0, 0])),
        ("found 3 edges and 2 category weights", SLOPES, ([0, 1, 2], [8, 9, 10], [0] * 3, [0, 0])),
        ("found 8 partitions", "set_pattern_partitions", (2, np.zeros(8))),
    ],
)
def test_errors_of_arguments(instance, message, call, arguments):
    with pytest.raises(BeagleError, match=f"^OUT_OF_RANGE: .*{message}") as found:
        getattr(instance, call)(*arguments)
    assert found.value.code == Code.OUT_OF_RANGE


@pytest.mark.parametrize(
    ("code", "message", "call"),
    [
        (Code.GENERAL, "no likelihood has been asked for", Instance.get_log_likelihood),
        (Code.FLOATING_POINT, "not a number", nan_at_root),
        (Code.NO_IMPLEMENTATION, "derivatives of a mixture", slopes_of_a_mixture),
        (Code.NO_IMPLEMENTATION, "derivatives of a mixture", slopes_of_a_mixture_of_parts),
        (Code.NO_IMPLEMENTATION, "a mixture of 9 edges, more than 8", too_many_edges),
        (Code.UNINITIALIZED_INSTANCE, "the instance has been finalized", after_the_end),
    ],
)
def test_errors(instance, code, message, call):
    with pytest.raises(BeagleError, match=f"^{code.name}: .*{message}") as found:
        call(instance)
    assert found.value.code == code


def test_what_waits_behind_a_likelihood_that_is_no_number_is_done():
    instance, _ = make(Flag.FRAMEWORK_CPU | Flag.COMPUTATION_ASYNCH)
    with instance:
        instance.update_partials([[5, 0, NONE, 0, 0, 1, 1]])
        expected = instance.get_scale_factors(0)
        instance.reset_scale_factors(0)
        nan_at_root(instance)
        instance.update_partials([[5, 0, NONE, 0, 0, 1, 1]])
        with pytest.raises(BeagleError, match="FLOATING_POINT"):
            instance.get_log_likelihood()
        assert expected.any()
        np.testing.assert_array_equal(instance.get_scale_factors(0), expected)


def test_partitions_may_be_set_again():
    instance, oracle = make(Flag.FRAMEWORK_CPU)
    with instance:
        for n in (1, 2, 3):
            partition_of = np.arange(7) % n
            instance.set_pattern_partitions(n, partition_of)
            instance.update_partials([operation(node) for node in (5, 6, 4)])
            lists = [[4] * n, [0] * n, [0] * n, [NONE] * n, np.arange(n)[::-1]]
            each, total = instance.calculate_root_log_likelihoods_by_partition(*lists)
            sites = oracle.sites(oracle.lengths) * oracle.counts
            expected = [sites[partition_of == k].sum() for k in range(n)][::-1]
            np.testing.assert_allclose(each, expected, rtol=1e-12)
            assert total == pytest.approx(sites.sum(), rel=1e-12)


SIZES = 4, 4, 4, 4, 5, 1, 4


@pytest.mark.parametrize(
    ("sizes", "more", "message"),
    [
        ((4, 4, 4, 4, 0, 1, 4), {}, "OUT_OF_RANGE: pattern_count: found 0, expected a whole number, 1 or more"),
        ((4, 4, 4, 4, 5.5, 1, 4), {}, "OUT_OF_RANGE: pattern_count: found 5.5, expected a whole number, 1 or more"),
        ((4, 4, 4, 4, 5, 1, -1), {}, "OUT_OF_RANGE: matrix_buffer_count: found -1, expected a whole number, 0 or more"),
        (SIZES, {"resource_list": []}, "NO_RESOURCE: the list of resources is empty"),
        (SIZES, {"resource_list": [99]}, "found resource 99"),
        (SIZES, {"requirement_flags": Flag.FRAMEWORK_CUDA}, "NO_RESOURCE: no resource has FRAMEWORK_CUDA"),
        (SIZES, {"requirement_flags": 1 << 40}, "NO_RESOURCE: no resource has 0x10000000000"),
    ],
)
def test_instances_that_cannot_be(sizes, more, message):
    with pytest.raises(BeagleError, match=message):
        Instance(*sizes, **more)


def test_resources():
    first, *others = get_resource_list()
    assert (first.number, first.name, first.device) == (0, "CPU", None)
    assert all(Flag.FRAMEWORK_OPENCL in one.support_flags for one in others)
    assert "plltool" in get_citation()
    assert get_version() in get_citation()
    with Instance(*SIZES, resource_list=[0]) as instance:
        assert instance.implementation_name.startswith("plltool numpy")
        assert "4 tips, 5 patterns" in repr(instance)


@pytest.mark.opencl
def test_the_preferred_resource_is_taken():
    assert Instance(*SIZES, preference_flags=Flag.FRAMEWORK_CPU).resource.number == 0
    assert Instance(*SIZES).resource.device is not None


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("is_complex", [False, True], ids=["real", "complex"])
@pytest.mark.parametrize("n_states", [4, 5, 20])
def test_matrices_and_derivatives(framework, n_states, is_complex):
    """Pairs of complex eigenvalues may begin at any place."""
    right, left, values, _ = random_system(np.random.default_rng(n_states), n_states, is_complex)
    b = np.diag(values[:n_states])
    if is_complex:
        assert np.any(values[n_states:] != 0)
        for k in np.flatnonzero(values[n_states:] > 0):
            b[k, k + 1], b[k + 1, k] = values[n_states + k], -values[n_states + k]
    q = right @ b @ left
    times, rates = np.array([0.1, 1.5, 0.0]), np.array([0.3, 0.0, 2.0, 1.0])
    flags = framework | (Flag.EIGEN_COMPLEX if is_complex else Flag.EIGEN_REAL)
    with Instance(3, 2, 3, n_states, 5, 2, 12, 4, requirement_flags=flags) as instance:
        instance.set_eigen_decomposition(1, right, left, values)
        instance.set_category_rates_with_index(1, rates)
        places = [7, 2, 3], [8, 0, 5], [1, 11, 9]
        instance.update_transition_matrices_with_multiple_models([1] * 3, [1] * 3, *places, times)
        for order, own in enumerate(places):
            for t, place in zip(times, own, strict=True):
                for rate, matrix in zip(rates, instance.get_transition_matrix(place), strict=True):
                    expected = np.linalg.matrix_power(q * rate, order) @ expm(q * rate * t)
                    np.testing.assert_allclose(matrix, expected, rtol=1e-10, atol=1e-12)
        assert not instance.get_transition_matrix(10).any()


def test_pairs_may_begin_at_any_place():
    system = read_eigensystem(np.eye(4), np.eye(4), np.array([0.0, -1, -1, -2, 0, 3, -3, 0]))
    assert (system.eigenvalues.ravel().tolist(), system.rotations.ravel().tolist()) == ([-1, -1, 0, -2], [3, -3, 0, 0])
    np.testing.assert_array_equal(system.right[0, 0], np.eye(4)[:, [1, 2, 0, 3]])
    np.testing.assert_array_equal(system.left[0, 0], np.eye(4)[[1, 2, 0, 3]])


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("n_states", [4, 20])
def test_matrices_of_matrices(framework, n_states):
    """Products, sums and transposes, also into their own place, and what a tip makes of one."""
    rng = np.random.default_rng(2)
    given = rng.random((5, 4, n_states, n_states))
    with Instance(3, 2, 3, n_states, 5, 1, 6, 4, requirement_flags=framework) as instance:
        instance.set_transition_matrices([5, 0, 1, 2, 3], given)
        instance.convolve_transition_matrices([5, 0], [1, 2], [4, 0])
        instance.add_transition_matrices([1], [2], [1])
        instance.transpose_transition_matrices([3, 2], [2, 3])
        expected = {4: given[0] @ given[2], 0: given[1] @ given[3], 1: given[2] + given[3]}
        expected |= {2: given[4].swapaxes(1, 2), 3: given[3].swapaxes(1, 2), 5: given[0]}
        for place, matrix in expected.items():
            np.testing.assert_allclose(instance.get_transition_matrix(place), matrix, rtol=1e-13)
        states = rng.integers(0, n_states + 1, (2, 5))
        for tip in (0, 1):
            instance.set_tip_states(tip, states[tip])
        instance.update_partials([[3, NONE, NONE, 0, 4, 1, 2]])
        sets = np.vstack([np.eye(n_states), np.ones(n_states)])
        ends = [np.einsum("cij,pj->cpi", expected[of], sets[own]) for of, own in zip((4, 2), states, strict=True)]
        np.testing.assert_allclose(instance.get_partials(3), ends[0] * ends[1], rtol=1e-12)


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("scaled", [False, True], ids=["unscaled", "scaled"])
def test_cross_products(framework, scaled):
    """With any matrix that commutes with Q, they give the derivative of lnL in that direction of Q."""
    instance, oracle = make(framework)
    with instance:
        set_above_and_below(instance, scaled)
        lengths = oracle.lengths[[OF_NODE[node] for node in NODES]]
        products = instance.calculate_cross_product_derivative(NODES, ABOVE, [0], [0], lengths)
        for direction in (oracle.q, oracle.q @ oracle.q, np.linalg.matrix_power(oracle.q, 3)):

            def moved(step, direction=direction):
                return oracle.sites(oracle.lengths, oracle.q + step * direction)

            expected = derivative(moved, 0.0, STEP)[0] @ oracle.counts
            assert np.sum(products * direction) == pytest.approx(expected, rel=1e-5)  # rounding of lnL over the step


@pytest.mark.opencl
def test_cross_products_of_all_edges_share_launches():
    """One of likelihoods, one of products, and those of sums, whatever the number of edges."""
    instance, _ = make(Flag.FRAMEWORK_OPENCL)
    with instance:
        set_above_and_below(instance, False)
        engine = instance._blocks()[0].engine
        for nodes in (NODES[:1], NODES):
            before = engine.counters.launches
            instance.calculate_cross_product_derivative(nodes, [n + 7 for n in nodes], [0], [0], [0.1] * len(nodes))
            assert engine.counters.launches - before == 2 + len(engine._sums.levels)


@pytest.mark.opencl
@pytest.mark.parametrize("n_patterns", [7, 500])
def test_sums_alone_leave_the_device(monkeypatch, n_patterns):
    """Bytes and number of copies, of any number of patterns."""
    copies = []
    receive = DeviceArrays.receive
    monkeypatch.setattr(DeviceArrays, "receive", lambda *given: copies.append(1) or receive(*given))
    instance, oracle = make(Flag.FRAMEWORK_OPENCL, n_patterns=n_patterns)
    with instance:
        counters = instance._blocks()[0].engine.counters

        def moved(work):
            down, up, n = counters.bytes_to_device, counters.bytes_from_device, len(copies)
            work()
            return counters.bytes_from_device - up, len(copies) - n, counters.bytes_to_device - down

        def likelihood():
            instance.update_transition_matrices(0, np.arange(len(EDGES)), None, None, oracle.lengths)
            instance.reset_scale_factors(7)
            instance.update_partials([operation(node, scale=node) for node in (5, 6, 4)], 7)
            instance.calculate_root_log_likelihoods([4], [0], [0], [7])

        for _ in range(2):  # from the second on, what was taken out before is put back first
            assert moved(likelihood)[:2] == (8, 1)
        oracle.lengths *= 1.1
        assert moved(likelihood) == (8, 1, 8 * len(EDGES))  # the lengths go down, and lnL comes back

        def edge():
            instance.update_transition_matrices(0, [8], [9], [10], [0.1])
            instance.calculate_edge_log_likelihoods([5], [6], [8], [9], [10], [0], [0], [NONE])

        assert moved(edge)[:2] == (3 * 8, 1)
        before = counters.launches
        instance.update_partials([operation(node, scale=node) for node in (5, 6)])
        assert counters.launches == before
        instance.wait_for_partials([5])
        assert counters.launches == before + 2  # a program and its scale factors
        instance.update_partials([operation(node, scale=node) for node in (5, 6)])
        instance.accumulate_scale_factors([5, 6], 7)
        instance.calculate_edge_log_likelihoods([5], [6], [8], None, None, [0], [0], [7])
        assert counters.launches <= before + 6  # sums of groups and of parts as well
        instance.set_differential_matrix(10, oracle.rates[:, None, None] * oracle.q)
        set_above_and_below(instance, scaled=True)

        def gradient(want_sites):
            instance.calculate_edge_derivatives(NODES, ABOVE, [10] * len(NODES), [0], want_sites)

        assert moved(lambda: gradient(False))[:2] == (2 * 8 * len(NODES), 1)
        lanes = instance._blocks()[0].engine.layout.n_lanes
        assert moved(lambda: gradient(True))[:2] == (2 * 8 * len(NODES) * (1 + lanes), 2)
