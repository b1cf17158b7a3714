"""The numpy engine against brute force, OpenCL engines of every kind against the numpy engine, and properties."""

import dataclasses

import numpy as np
import pytest
from agreement import Case, joins
from engine_kinds import FEW_KINDS, WIDE, WIDEST, Kind, as_params
from helpers import evaluate_edges, lnl_of_sites, program_to_node, random_codes, random_mixture, random_tips

from plltool.engine import program as prog
from plltool.errors import EngineError

NUMPY_RTOL = 1e-12  # both double, short sums; measured: 6e-16
OPENCL_RTOL = 1e-11  # the order of sums differs; measured: 3e-15
SAME_SUM_RTOL = 1e-11  # the same sum in another order


# --- numpy engine and brute force -----------------------------------------------------------------------------


@pytest.mark.parametrize("parts", [(7,), (1, 5, 3)], ids=["1part", "3parts"])
@pytest.mark.parametrize("n_components", [1, 4])
@pytest.mark.parametrize(("n_states", "n_taxa"), [(2, 6), (3, 5), (4, 5), (8, 4)])
def test_numpy_is_brute_force(make_engine, numpy_kind, n_states, n_taxa, n_components, parts):
    case = Case(n_states + n_components, n_taxa, parts, n_states, n_components)
    engine, expected = case.engine(make_engine, numpy_kind), case.site_lnl()
    branch = int(case.rng.integers(len(case.ends)))
    np.testing.assert_allclose(case.lnl_on(engine, branch), case.sums(expected), rtol=NUMPY_RTOL)
    np.testing.assert_allclose(case.sites_on(engine, branch), expected, rtol=NUMPY_RTOL)


def test_parts_may_have_their_own_lengths(few_kind, make_engine):
    case = Case(4, parts=(4, 5))
    case.lengths = case.rng.random((2, len(case.ends)))
    expected = case.sums(case.site_lnl())
    np.testing.assert_allclose(case.lnl_on(case.engine(make_engine, few_kind)), expected, rtol=NUMPY_RTOL)


def test_insert_and_triplet_give_the_likelihood_of_the_joined_tree(any_kind, make_engine):
    case = Case(5, 6, (5,))
    engine, n_taxa, expected = case.engine(make_engine, any_kind), case.n_taxa, case.sums(case.site_lnl())[0]
    scratch = n_taxa - 2
    for node in range(n_taxa, 2 * n_taxa - 2):
        program, around = program_to_node(case.ends, n_taxa, node)
        for turn in range(3):  # each neighbour in each role
            whole = np.concatenate([program, joins(around, scratch, turn)])
            values = engine.execute(prog.Request(whole, 11), case.lengths)
            np.testing.assert_allclose(values[0, :2], expected, rtol=OPENCL_RTOL)


def test_other_weights_change_sums_and_leave_clas_alone(any_kind, make_engine):
    case = Case(8, parts=(7,))
    engine, site, (program, a, b) = case.engine(make_engine, any_kind), case.site_lnl(), case.to()
    prepared = engine.prepare(program, case.lengths)
    other = case.rng.integers(0, 5, 7).astype(float)
    for weights in (other, np.ones(7)):
        engine.set_weights(weights)
        lnl = prepared.derivatives([(a, b, 0)], case.lengths)[0, 0, 0]
        np.testing.assert_allclose(lnl, weights @ site, rtol=OPENCL_RTOL)
        np.testing.assert_array_equal(engine.weights, weights)
    with pytest.raises(EngineError, match="cannot replace"):
        engine.set_weights(np.ones((2, 7)))


def test_ambiguity_is_the_sum_over_its_states(few_kind, make_engine):
    """A code that allows two states has the sum of their likelihoods; an undetermined tip is no tip at all."""
    case = Case(6, 4, (8,))
    others = random_codes(case.rng, 3, 1, unclear=0)
    case.codes = np.concatenate([np.array([[1, 4, 5, 1, 2, 4, 8, 15]]), np.repeat(others, 8, axis=1)])
    site = np.exp(case.sites_on(case.engine(make_engine, few_kind)))
    np.testing.assert_allclose(site[2], site[0] + site[1], rtol=1e-13)
    np.testing.assert_allclose(site[7], site[3:7].sum(), rtol=1e-13)


def test_columns_of_gaps_only_and_taxa_of_gaps_only(any_kind, make_engine):
    case = Case(7, 4, (6,), unclear=0)
    case.codes[2] = 15  # a taxon
    case.codes[:, 3] = 15  # a column
    site = case.sites_on(case.engine(make_engine, any_kind))
    np.testing.assert_allclose(site, case.site_lnl(), atol=1e-13)
    assert abs(site[3]) < 1e-13  # the probability of no data is 1


# --- OpenCL and numpy -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("parts", [(1,), (3,), (5,), (201,), (63, 33, 5)])
def test_opencl_is_numpy(opencl_kind, make_engine, parts):
    case = Case(sum(parts), 6, parts)
    case.codes[3] = 15
    case.assert_agrees(case.engine(make_engine, opencl_kind), OPENCL_RTOL)


@pytest.mark.opencl
@pytest.mark.parametrize("kind", as_params([k for k in FEW_KINDS if k.kind != "numpy"]))
@pytest.mark.parametrize(("n_states", "n_components"), [(2, 1), (3, 1), (4, 1), (8, 1)])
def test_opencl_is_numpy_for_other_models(kind, make_engine, n_states, n_components):
    case = Case(n_states, 5, (9, 35), n_states, n_components)
    case.assert_agrees(case.engine(make_engine, kind), OPENCL_RTOL)


# Measured with the test below, at most, on PoCL 3.0, Intel's runtime and numpy: of lnL 7e-9 both, of slopes 2.9e-7 with
# single and 1.1e-7 with double sums. One rounding of 24 bits, 6e-8, per multiplication along the path, at random, and
# averaged in lnL; the limits leave room for another order of sums.
SINGLE_RTOL = {"lnl": 5e-8, "slope": 2e-6}
MIXED_RTOL = {"lnl": 5e-8, "slope": 2e-7}
SINGLE_KINDS = [Kind("numpy", 4), Kind("vector", 4, 3), WIDE, WIDEST, Kind("lanes", 32)]


def check_single_clas(make_engine, kind, n_states, record_property, precisions=("single", "mixed")):
    """Errors of lnL and of slopes with sums in single and in double, which may not be worse."""
    case = Case(11, 12, (50, 33), n_states)
    program, n_values, kinds = case.everything()
    errors = {}
    for precision in precisions:
        engine = case.engine(make_engine, kind, precision=precision)
        errors[precision] = case.errors(engine, program, n_values, kinds)
    for what in ("lnl", "slope"):
        found = {precision: errors[precision][:, kinds == what].max() for precision in precisions}
        record_property(what, ", ".join(f"{precision} {error:.1e}" for precision, error in found.items()))
        assert min(found.values()) > 1e-12  # CLAs are single indeed
        assert found["single"] < SINGLE_RTOL[what]
        if "mixed" in found:
            assert found["mixed"] <= found["single"]
            assert found["mixed"] < MIXED_RTOL[what]


@pytest.mark.parametrize("kind", as_params(SINGLE_KINDS))
def test_single_clas_are_near_double(kind, make_engine, record_property):
    check_single_clas(make_engine, kind, 4, record_property)


@pytest.mark.parametrize("n_states", [3, 5])
@pytest.mark.parametrize("kind", as_params([Kind("vector", 4, 3), WIDE, WIDEST]))
def test_tables_of_tips(kind, n_states, make_engine, record_property):
    """States fewer than a table has for 4 of them, and more; the tables are single in both precisions."""
    check_single_clas(make_engine, kind, n_states, record_property, ("single",))


# --- weights --------------------------------------------------------------------------------------------------


def test_weights_of_parts(any_kind, make_engine):
    case = Case(8, 4, (5, 68))
    weights = case.rng.integers(0, 5, 73).astype(float)
    case.weights = weights
    engine, (program, a, b) = case.engine(make_engine, any_kind), case.to(1)
    expected = case.sums(case.sites_on(engine, 1))
    engine.run(program, case.lengths)
    found = evaluate_edges(engine, [(a, b, 1), (b, a, 1)], case.lengths)
    np.testing.assert_allclose(found, [expected, expected], rtol=OPENCL_RTOL)
    weights[:5] = 0  # a bootstrap replicate may leave a part out
    engine.set_weights(weights)
    rows = [prog.evaluate(0, a, b, 1), prog.derivative(1, a, b, 1)]
    found = engine.execute(prog.Request(np.concatenate(rows), 4), case.lengths)
    assert not found[0].any()
    np.testing.assert_allclose(found[1, :2], expected[1], rtol=OPENCL_RTOL)


def test_a_weight_counts_as_so_many_columns(few_kind, make_engine):
    case = Case(9, parts=(6,))
    case.weights = np.array([3.0, 1.0, 2.0, 1.0, 4.0, 1.0])
    once = case.lnl_on(case.engine(make_engine, few_kind))
    case.codes, case.weights, case.parts = np.repeat(case.codes, case.weights.astype(int), axis=1), np.ones(12), (12,)
    np.testing.assert_allclose(once, case.lnl_on(case.engine(make_engine, few_kind)), rtol=SAME_SUM_RTOL)


# --- properties -----------------------------------------------------------------------------------------------


@pytest.fixture
def case():
    return Case(10, 9, (143,))


def case_lnl(make_engine, kind, case):
    return case.lnl_on(case.engine(make_engine, kind))[0]


def test_the_root_and_the_layout_do_not_matter(any_kind, make_engine, case):
    expected = case_lnl(make_engine, Kind("numpy", 1), case)
    engine = case.engine(make_engine, any_kind)
    found = [case.lnl_on(engine, branch)[0] for branch in range(len(case.ends))]
    np.testing.assert_allclose(found, expected, rtol=SAME_SUM_RTOL)


@pytest.mark.parametrize("of", ["taxa", "columns"])
def test_the_order_does_not_matter(few_kind, make_engine, case, of):
    expected = case_lnl(make_engine, few_kind, case)
    if of == "taxa":
        order = np.random.default_rng(1).permutation(case.n_taxa)
        renamed = np.concatenate([np.argsort(order), np.arange(case.n_taxa, 2 * case.n_taxa - 2)])
        case.ends, case.codes = renamed[case.ends], case.codes[order]
    else:
        order = np.random.default_rng(2).permutation(len(case.weights))
        case.codes, case.weights = case.codes[:, order], case.weights[order]
    np.testing.assert_allclose(case_lnl(make_engine, few_kind, case), expected, rtol=SAME_SUM_RTOL)


@pytest.mark.opencl
@pytest.mark.parametrize("max_groups", [1, 2, 3, 64])
@pytest.mark.parametrize("kind", as_params([Kind("vector", 4), Kind("vector", 2, 3), Kind("lanes", 32)]))
def test_the_number_of_groups_does_not_matter(make_engine, case, kind, max_groups):
    expected = case_lnl(make_engine, Kind("numpy", 1), case)
    found = case_lnl(make_engine, dataclasses.replace(kind, max_groups=max_groups), case)
    np.testing.assert_allclose(found, expected, rtol=SAME_SUM_RTOL)


@pytest.mark.opencl
@pytest.mark.parametrize("kind", as_params([Kind("vector", 4), Kind("vector", 2, 3, 4), Kind("lanes", 32)]))
def test_the_split_into_buffers_changes_no_bit(make_engine, opencl_device, kind):
    """A device that holds few tiles per buffer: the same instructions on the same groups, so the same bits."""
    case = Case(12, 6, (143, 70))
    program, n_values, _ = case.everything()
    whole = case.engine(make_engine, kind)
    layout = whole.layout
    tile_bytes = layout.tile_blocks * layout.block_values * 8 * whole.n_slots
    for tiles in (int(layout.groups[:, 1].max()), int(layout.groups[:, 1].max()) + 2):
        small = dataclasses.replace(opencl_device, max_allocation=tiles * tile_bytes)
        split = case.engine(make_engine, kind, device=small)
        assert len(whole._chunks) == 1
        assert len(split._chunks) > 1
        assert max(chunk.storage["clas"].size for chunk in split._chunks) <= small.max_allocation
        expected = whole.execute(prog.Request(program, n_values), case.lengths)
        assert np.array_equal(split.execute(prog.Request(program, n_values), case.lengths), expected)
        newviews, a, b = case.to()
        for engine in (whole, split):
            engine.run(newviews, case.lengths)
        sites = (lnl_of_sites(engine, a, b, 0, case.lengths) for engine in (whole, split))
        assert np.array_equal(*sites)


@pytest.mark.parametrize("n_states", [4, 20])
def test_a_newview_may_overwrite_its_source(few_kind, make_engine, n_states):
    """As chains of insertions do: the same bits as with a slot for each."""
    rng = np.random.default_rng(14)
    n_taxa = 7
    mixture = random_mixture(rng, n_states, 4 if n_states == 4 else 2)
    codes, state_sets = random_tips(rng, n_taxa, 71, n_states)
    engine = make_engine(few_kind, n_taxa, codes, np.ones(71), [mixture], state_sets=state_sets)
    lengths = rng.exponential(0.3, 2 * n_taxa)
    found = []
    for slots in (range(n_taxa), [0] * n_taxa):
        rows = [prog.newview(slots[0], ~0, 0, ~1, 1)]
        rows += [prog.newview(slots[k], slots[k - 1], 2 * k, ~(k + 1), 2 * k + 1) for k in range(1, n_taxa - 2)]
        last = slots[n_taxa - 3]
        program = np.concatenate([*rows, prog.evaluate(0, last, ~(n_taxa - 1), 3)])
        found.append(engine.execute(prog.Request(program, 1), lengths))
    np.testing.assert_array_equal(found[0], found[1])


def test_the_same_request_gives_the_same_bits(any_kind, make_engine, case):
    first, second = (case_lnl(make_engine, any_kind, case) for _ in range(2))
    assert first == second


def test_a_growing_program_keeps_its_clas(few_kind, make_engine, case):
    """Buffers that hold lengths, matrices and results grow between launches; CLAs stay."""
    engine, (_, a, b) = case.engine(make_engine, few_kind), case.to()
    before = engine.execute(case.across(), case.lengths)[0, 0]
    many = np.concatenate([case.lengths, np.full(3000, case.lengths[0])])
    edges = np.column_stack([np.full(3000, a), np.full(3000, b), len(case.lengths) + np.arange(3000)])
    assert np.all(evaluate_edges(engine, edges, many) == before)


def test_what_is_not_kept_has_the_same_bits(any_kind, make_engine, case):
    """Programs that keep their CLAs and programs that do not, in turns, with several tiles to a work-group."""
    engine, lengths = case.engine(make_engine, dataclasses.replace(any_kind, max_groups=2)), case.lengths
    case.rng = np.random.default_rng(15)
    program, n_values, _ = case.everything()
    newviews, a, b = case.to()
    expected = [engine.execute(prog.Request(program, n_values), at) for at in (lengths, 2 * lengths)]
    assert not np.array_equal(*expected)
    edge = engine.execute(case.across(), lengths)
    for at, keep in ((0, False), (1, False), (1, True), (0, True), (0, False)):
        found = engine.execute(prog.Request(program, n_values, keep=keep), (1 + at) * lengths)
        np.testing.assert_array_equal(found, expected[at])
        engine.run(newviews, lengths)  # CLAs of every tile are there again
        np.testing.assert_array_equal(evaluate_edges(engine, [(a, b, 0)], lengths)[0], edge[:, 0])


def test_set_model_replaces_the_model(few_kind, make_engine, case):
    expected, own = case_lnl(make_engine, few_kind, case), case.mixtures
    case.mixtures = [random_mixture(np.random.default_rng(13), 4, 4)]
    engine = case.engine(make_engine, few_kind)
    assert case.lnl_on(engine)[0] != expected
    engine.set_model([own[0].components])
    assert case.lnl_on(engine)[0] == expected


def test_counters(few_kind, make_engine, case):
    engine = case.engine(make_engine, few_kind)
    case.lnl_on(engine)
    counted = engine.counters.as_dict()
    assert counted["newviews"] == case.n_taxa - 2
    assert counted["instructions"] == case.n_taxa - 1
    assert counted["requests"] == {"run": 1, "evaluate": 1}
    assert counted["launches"] > 0
