"""The numpy engine against brute force, OpenCL engines of every kind against the numpy engine, and properties."""

import dataclasses

import numpy as np
import pytest
from agreement import assert_engines_agree, everything, relative_errors
from engine_kinds import FEW_KINDS, WIDE, WIDEST, Kind, as_params
from helpers import (
    evaluate_edges,
    lnl_of_sites,
    numpy_engine,
    program_to_branch,
    program_to_node,
    random_codes,
    random_ends,
    random_mixture,
    random_tips,
)
from oracles.likelihood import brute_force

from plltool.engine import program as prog
from plltool.errors import EngineError

NUMPY_RTOL = 1e-12  # both double, short sums; measured: 6e-16
OPENCL_RTOL = 1e-11  # the order of sums differs; measured: 3e-15
SAME_SUM_RTOL = 1e-11  # the same sum in another order


def lnl_on(engine, ends, lengths, branch=0):
    program, a, b = program_to_branch(ends, engine.layout.n_taxa, branch)
    engine.run(program, lengths)
    return evaluate_edges(engine, [(a, b, branch)], lengths)[0]


# --- numpy engine and brute force -----------------------------------------------------------------------------


@pytest.mark.parametrize("parts", [(7,), (1, 5, 3)], ids=["1part", "3parts"])
@pytest.mark.parametrize("n_components", [1, 4])
@pytest.mark.parametrize(("n_states", "n_taxa"), [(2, 6), (3, 5), (4, 5), (8, 4)])
def test_numpy_is_brute_force(numpy_kind, n_states, n_taxa, n_components, parts):
    rng = np.random.default_rng(n_states + n_components)
    ends, lengths = random_ends(rng, n_taxa)
    mixtures = [random_mixture(rng, n_states, n_components) for _ in parts]
    codes = random_codes(rng, n_taxa, sum(parts), n_states)
    weights = rng.integers(1, 9, sum(parts)).astype(float)
    of_part = np.repeat(np.arange(len(parts)), parts)
    tree = [tuple(pair) for pair in ends.tolist()]
    expected = np.concatenate(
        [
            brute_force(tree, lengths, codes[:, of_part == p].T.tolist(), mixture.oracle)
            for p, mixture in enumerate(mixtures)
        ]
    )
    engine = numpy_engine(n_taxa - 2, codes, weights, mixtures, parts, numpy_kind.vw)
    branch = int(rng.integers(len(ends)))
    sums = np.bincount(of_part, weights * expected)
    np.testing.assert_allclose(lnl_on(engine, ends, lengths, branch), sums, rtol=NUMPY_RTOL)
    _, a, b = program_to_branch(ends, n_taxa, branch)
    np.testing.assert_allclose(lnl_of_sites(engine, a, b, branch, lengths), expected, rtol=NUMPY_RTOL)


def test_parts_may_have_their_own_lengths(few_kind, make_engine):
    rng = np.random.default_rng(4)
    ends, _ = random_ends(rng, 5)
    lengths = rng.random((2, len(ends)))
    mixtures = [random_mixture(rng, 4, 4) for _ in range(2)]
    codes = random_codes(rng, 5, 9)
    expected = [
        brute_force(ends.tolist(), lengths[p], codes[:, columns].T.tolist(), mixtures[p].oracle).sum()
        for p, columns in enumerate((slice(0, 4), slice(4, 9)))
    ]
    engine = make_engine(few_kind, 3, codes, np.ones(9), mixtures, (4, 5))
    np.testing.assert_allclose(lnl_on(engine, ends, lengths), expected, rtol=NUMPY_RTOL)


def test_insert_and_triplet_give_the_likelihood_of_the_joined_tree(any_kind, make_engine):
    rng = np.random.default_rng(5)
    n_taxa, n_patterns = 6, 5
    ends, lengths = random_ends(rng, n_taxa)
    mixture = random_mixture(rng, 4, 4)
    codes = random_codes(rng, n_taxa, n_patterns)
    weights = rng.integers(1, 9, n_patterns).astype(float)
    expected = weights @ brute_force(ends.tolist(), lengths, codes.T.tolist(), mixture.oracle)
    engine = make_engine(any_kind, n_taxa - 1, codes, weights, [mixture])
    scratch = n_taxa - 2
    for node in range(n_taxa, 2 * n_taxa - 2):
        program, around = program_to_node(ends, n_taxa, node)
        for turn in range(3):  # each neighbour in each role
            (a, pa), (b, pb), (c, pc) = (around[(turn + k) % 3] for k in range(3))
            joins = [
                prog.propagate(scratch, c, pc),
                prog.insert(10, a, pa, b, pb, scratch),
                prog.triplet(0, a, pa, b, pb, c, pc),
            ]
            values = engine.execute(prog.Request(np.concatenate([program, *joins]), 11), lengths)
            np.testing.assert_allclose(values[0, [0, 10]], expected, rtol=OPENCL_RTOL)


def test_other_weights_change_sums_and_leave_clas_alone(any_kind, make_engine):
    rng = np.random.default_rng(8)
    ends, lengths = random_ends(rng, 5)
    mixture = random_mixture(rng, 4, 4)
    codes = random_codes(rng, 5, 7)
    site = brute_force(ends.tolist(), lengths, codes.T.tolist(), mixture.oracle)
    engine = make_engine(any_kind, 3, codes, np.ones(7), [mixture])
    program, a, b = program_to_branch(ends, 5, 0)
    prepared = engine.prepare(program, lengths)
    other = rng.integers(0, 5, 7).astype(float)
    for weights in (other, np.ones(7)):
        engine.set_weights(weights)
        lnl = prepared.derivatives([(a, b, 0)], lengths)[0, 0, 0]
        np.testing.assert_allclose(lnl, weights @ site, rtol=OPENCL_RTOL)
        np.testing.assert_array_equal(engine.weights, weights)
    with pytest.raises(EngineError, match="cannot replace"):
        engine.set_weights(np.ones((2, 7)))


def test_ambiguity_is_the_sum_over_its_states(few_kind, make_engine):
    """A code that allows two states has the sum of their likelihoods; an undetermined tip is no tip at all."""
    rng = np.random.default_rng(6)
    ends, lengths = random_ends(rng, 4)
    mixture = random_mixture(rng, 4, 4)
    others = random_codes(rng, 3, 1, unclear=0)
    codes = np.concatenate([np.array([[1, 4, 5, 1, 2, 4, 8, 15]]), np.repeat(others, 8, axis=1)])
    engine = make_engine(few_kind, 2, codes, np.ones(8), [mixture])
    program, a, b = program_to_branch(ends, 4, 0)
    engine.run(program, lengths)
    site = np.exp(lnl_of_sites(engine, a, b, 0, lengths))
    np.testing.assert_allclose(site[2], site[0] + site[1], rtol=1e-13)
    np.testing.assert_allclose(site[7], site[3:7].sum(), rtol=1e-13)


def test_columns_of_gaps_only_and_taxa_of_gaps_only(any_kind, make_engine):
    rng = np.random.default_rng(7)
    ends, lengths = random_ends(rng, 4)
    mixture = random_mixture(rng, 4, 4)
    codes = random_codes(rng, 4, 6, unclear=0)
    codes[2] = 15  # a taxon
    codes[:, 3] = 15  # a column
    engine = make_engine(any_kind, 2, codes, np.ones(6), [mixture])
    program, a, b = program_to_branch(ends, 4, 0)
    engine.run(program, lengths)
    site = lnl_of_sites(engine, a, b, 0, lengths)
    np.testing.assert_allclose(site, brute_force(ends.tolist(), lengths, codes.T.tolist(), mixture.oracle), atol=1e-13)
    assert abs(site[3]) < 1e-13  # the probability of no data is 1


# --- OpenCL and numpy -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("parts", [(1,), (3,), (5,), (201,), (63, 33, 5)])
def test_opencl_is_numpy(opencl_kind, make_engine, parts):
    rng = np.random.default_rng(sum(parts))
    n_taxa = 6
    ends, lengths = random_ends(rng, n_taxa)
    mixtures = [random_mixture(rng, 4, 4) for _ in parts]
    codes = random_codes(rng, n_taxa, sum(parts))
    codes[3] = 15
    weights = rng.integers(1, 9, sum(parts)).astype(float)
    program, n_values, kinds = everything(rng, ends, n_taxa)
    engine = make_engine(opencl_kind, n_taxa - 1, codes, weights, mixtures, parts)
    assert_engines_agree(engine, program, n_values, kinds, lengths, codes, weights, mixtures, parts, OPENCL_RTOL)


@pytest.mark.opencl
@pytest.mark.parametrize("kind", as_params([k for k in FEW_KINDS if k.kind != "numpy"]))
@pytest.mark.parametrize(("n_states", "n_components"), [(2, 1), (3, 1), (4, 1), (8, 1)])
def test_opencl_is_numpy_for_other_models(kind, make_engine, n_states, n_components):
    rng = np.random.default_rng(n_states)
    parts, n_taxa = (9, 35), 5
    ends, lengths = random_ends(rng, n_taxa)
    mixtures = [random_mixture(rng, n_states, n_components) for _ in parts]
    codes = random_codes(rng, n_taxa, sum(parts), n_states)
    weights = rng.integers(1, 9, sum(parts)).astype(float)
    program, n_values, kinds = everything(rng, ends, n_taxa)
    engine = make_engine(kind, n_taxa - 1, codes, weights, mixtures, parts)
    assert_engines_agree(engine, program, n_values, kinds, lengths, codes, weights, mixtures, parts, OPENCL_RTOL)


# Measured with the test below, at most, on PoCL 3.0, Intel's runtime and numpy: of lnL 7e-9 both, of slopes 2.9e-7 with
# single and 1.1e-7 with double sums. One rounding of 24 bits, 6e-8, per multiplication along the path, at random, and
# averaged in lnL; the limits leave room for another order of sums.
SINGLE_RTOL = {"lnl": 5e-8, "slope": 2e-6}
MIXED_RTOL = {"lnl": 5e-8, "slope": 2e-7}
SINGLE_KINDS = [Kind("numpy", 4), Kind("vector", 4, 3), WIDE, WIDEST, Kind("lanes", 32)]


def check_single_clas(make_engine, kind, n_states, record_property, precisions=("single", "mixed")):
    """Errors of lnL and of slopes with sums in single and in double, which may not be worse."""
    rng = np.random.default_rng(11)
    parts, n_taxa = (50, 33), 12
    ends, lengths = random_ends(rng, n_taxa)
    mixtures = [random_mixture(rng, n_states, 4) for _ in parts]
    codes = random_codes(rng, n_taxa, sum(parts), n_states)
    weights = rng.integers(1, 9, sum(parts)).astype(float)
    program, n_values, kinds = everything(rng, ends, n_taxa)
    errors = {}
    for precision in precisions:
        engine = make_engine(kind, n_taxa - 1, codes, weights, mixtures, parts, precision=precision)
        errors[precision] = relative_errors(engine, program, n_values, kinds, lengths, codes, weights, mixtures, parts)
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
    rng = np.random.default_rng(8)
    parts, n_taxa = (5, 68), 4
    ends, lengths = random_ends(rng, n_taxa)
    mixtures = [random_mixture(rng, 4, 4) for _ in parts]
    codes = random_codes(rng, n_taxa, sum(parts))
    weights = rng.integers(0, 5, sum(parts)).astype(float)
    engine = make_engine(any_kind, n_taxa - 2, codes, weights, mixtures, parts)
    program, a, b = program_to_branch(ends, n_taxa, 1)
    engine.run(program, lengths)
    site = lnl_of_sites(engine, a, b, 1, lengths)
    found = evaluate_edges(engine, [(a, b, 1), (b, a, 1)], lengths)
    expected = [weights[:5] @ site[:5], weights[5:] @ site[5:]]
    np.testing.assert_allclose(found, [expected, expected], rtol=OPENCL_RTOL)
    weights[:5] = 0  # a bootstrap replicate may leave a part out
    engine.set_weights(weights)
    rows = [prog.evaluate(0, a, b, 1), prog.derivative(1, a, b, 1)]
    found = engine.execute(prog.Request(np.concatenate(rows), 4), lengths)
    assert not found[0].any()
    np.testing.assert_allclose(found[1, :2], expected[1], rtol=OPENCL_RTOL)


def test_a_weight_counts_as_so_many_columns(few_kind, make_engine):
    rng = np.random.default_rng(9)
    ends, lengths = random_ends(rng, 5)
    mixture = random_mixture(rng, 4, 4)
    codes = random_codes(rng, 5, 6)
    weights = np.array([3.0, 1.0, 2.0, 1.0, 4.0, 1.0])
    once = make_engine(few_kind, 3, codes, weights, [mixture])
    written_out = np.repeat(codes, weights.astype(int), axis=1)
    often = make_engine(few_kind, 3, written_out, np.ones(12), [mixture])
    np.testing.assert_allclose(lnl_on(once, ends, lengths), lnl_on(often, ends, lengths), rtol=SAME_SUM_RTOL)


# --- properties -----------------------------------------------------------------------------------------------


@pytest.fixture
def case():
    rng = np.random.default_rng(10)
    n_taxa, n_patterns = 9, 143
    ends, lengths = random_ends(rng, n_taxa)
    return {
        "ends": ends,
        "lengths": lengths,
        "mixture": random_mixture(rng, 4, 4),
        "codes": random_codes(rng, n_taxa, n_patterns),
        "weights": rng.integers(1, 9, n_patterns).astype(float),
    }


def case_lnl(make_engine, kind, case, branch=0, **changes):
    at = {**case, **changes}
    n_taxa = len(at["codes"])
    engine = make_engine(kind, n_taxa - 2, at["codes"], at["weights"], [at["mixture"]])
    return lnl_on(engine, at["ends"], at["lengths"], branch)[0]


def test_the_root_does_not_matter(any_kind, make_engine, case):
    found = [case_lnl(make_engine, any_kind, case, branch) for branch in range(len(case["ends"]))]
    np.testing.assert_allclose(found, found[0], rtol=SAME_SUM_RTOL)


def test_the_order_of_taxa_does_not_matter(few_kind, make_engine, case):
    n_taxa = len(case["codes"])
    order = np.random.default_rng(1).permutation(n_taxa)
    renamed = np.concatenate([np.argsort(order), np.arange(n_taxa, 2 * n_taxa - 2)])
    found = case_lnl(make_engine, few_kind, case, ends=renamed[case["ends"]], codes=case["codes"][order])
    np.testing.assert_allclose(found, case_lnl(make_engine, few_kind, case), rtol=SAME_SUM_RTOL)


def test_the_order_of_columns_does_not_matter(few_kind, make_engine, case):
    order = np.random.default_rng(2).permutation(len(case["weights"]))
    found = case_lnl(make_engine, few_kind, case, codes=case["codes"][:, order], weights=case["weights"][order])
    np.testing.assert_allclose(found, case_lnl(make_engine, few_kind, case), rtol=SAME_SUM_RTOL)


def test_the_layout_does_not_matter(any_kind, make_engine, case):
    expected = case_lnl(make_engine, Kind("numpy", 1), case)
    np.testing.assert_allclose(case_lnl(make_engine, any_kind, case), expected, rtol=SAME_SUM_RTOL)


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
    rng = np.random.default_rng(12)
    parts, n_taxa = (143, 70), 6
    ends, lengths = random_ends(rng, n_taxa)
    mixtures = [random_mixture(rng, 4, 4) for _ in parts]
    codes = random_codes(rng, n_taxa, sum(parts))
    weights = rng.integers(1, 9, sum(parts)).astype(float)
    program, n_values, _ = everything(rng, ends, n_taxa)
    whole = make_engine(kind, n_taxa - 1, codes, weights, mixtures, parts)
    layout = whole.layout
    tile_bytes = layout.tile_blocks * layout.block_values * 8 * whole.n_slots
    for tiles in (int(layout.groups[:, 1].max()), int(layout.groups[:, 1].max()) + 2):
        small = dataclasses.replace(opencl_device, max_allocation=tiles * tile_bytes)
        split = make_engine(kind, n_taxa - 1, codes, weights, mixtures, parts, device=small)
        assert len(whole._chunks) == 1
        assert len(split._chunks) > 1
        assert max(chunk.storage["clas"].n_bytes for chunk in split._chunks) <= small.max_allocation
        expected = whole.execute(prog.Request(program, n_values), lengths)
        assert np.array_equal(split.execute(prog.Request(program, n_values), lengths), expected)
        newviews, a, b = program_to_branch(ends, n_taxa, 0)
        for engine in (whole, split):
            engine.run(newviews, lengths)
        assert np.array_equal(lnl_of_sites(split, a, b, 0, lengths), lnl_of_sites(whole, a, b, 0, lengths))


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
    n_taxa = len(case["codes"])
    ends, lengths = case["ends"], case["lengths"]
    engine = make_engine(few_kind, n_taxa - 2, case["codes"], case["weights"], [case["mixture"]])
    program, a, b = program_to_branch(ends, n_taxa, 0)
    before = engine.execute(prog.Request(np.concatenate([program, prog.evaluate(0, a, b, 0)]), 1), lengths)[0, 0]
    many = np.concatenate([lengths, np.full(3000, lengths[0])])
    edges = np.column_stack([np.full(3000, a), np.full(3000, b), len(lengths) + np.arange(3000)])
    found = evaluate_edges(engine, edges, many)
    assert np.all(found == before)


def test_what_is_not_kept_has_the_same_bits(any_kind, make_engine, case):
    """Programs that keep their CLAs and programs that do not, in turns, with several tiles to a work-group."""
    n_taxa = len(case["codes"])
    ends, lengths = case["ends"], case["lengths"]
    kind = dataclasses.replace(any_kind, max_groups=2)
    engine = make_engine(kind, n_taxa - 1, case["codes"], case["weights"], [case["mixture"]])
    program, n_values, _ = everything(np.random.default_rng(15), ends, n_taxa)
    newviews, a, b = program_to_branch(ends, n_taxa, 0)
    expected = [engine.execute(prog.Request(program, n_values), at) for at in (lengths, 2 * lengths)]
    assert not np.array_equal(*expected)
    edge = engine.execute(prog.Request(np.concatenate([newviews, prog.evaluate(0, a, b, 0)]), 1), lengths)
    for at, keep in ((0, False), (1, False), (1, True), (0, True), (0, False)):
        found = engine.execute(prog.Request(program, n_values, keep=keep), (1 + at) * lengths)
        np.testing.assert_array_equal(found, expected[at])
        engine.run(newviews, lengths)  # CLAs of every tile are there again
        np.testing.assert_array_equal(evaluate_edges(engine, [(a, b, 0)], lengths)[0], edge[:, 0])


def test_set_model_replaces_the_model(few_kind, make_engine, case):
    rng = np.random.default_rng(13)
    other = random_mixture(rng, 4, 4)
    n_taxa = len(case["codes"])
    engine = make_engine(few_kind, n_taxa - 2, case["codes"], case["weights"], [other])
    before = lnl_on(engine, case["ends"], case["lengths"])[0]
    engine.set_model([case["mixture"].components])
    expected = case_lnl(make_engine, few_kind, case)
    assert before != expected
    assert lnl_on(engine, case["ends"], case["lengths"])[0] == expected


def test_counters(few_kind, make_engine, case):
    n_taxa = len(case["codes"])
    engine = make_engine(few_kind, n_taxa - 2, case["codes"], case["weights"], [case["mixture"]])
    lnl_on(engine, case["ends"], case["lengths"])
    counted = engine.counters.as_dict()
    assert counted["newviews"] == n_taxa - 2
    assert counted["instructions"] == n_taxa - 1
    assert counted["requests"] == {"run": 1, "evaluate": 1}
    assert counted["launches"] > 0
