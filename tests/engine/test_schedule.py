"""What one launch does at the same time: pieces of a program, and one program under several models."""

import dataclasses

import experiments
import numpy as np
import pytest
from agreement import Case, everything
from engine_kinds import Kind, as_params
from helpers import FixedModel, evaluate_edges, make_tree, program_to_branch, random_mixture

from plltool.analyses.machine.bench.items import record
from plltool.engine import program as prog
from plltool.engine.contract import INSTRUCTION_WORDS, Opcode
from plltool.engine.layout import Layout
from plltool.engine.opencl import schedule as module
from plltool.engine.program import Request
from plltool.engine.storage import tile_bytes
from plltool.errors import EngineError
from plltool.hardware import Hardware
from plltool.optimise.likelihood import TreeLikelihood
from plltool.run.memory import evaluation_slots
from plltool.tree.moves import random_tree

N_TAXA = 5
PARTS = (70, 9)
RTOL = 1e-11  # the order of sums differs
DEVICE_KINDS = [Kind("vector", 4), Kind("lanes", 32, 2, max_groups=2)]


@pytest.fixture(scope="module")
def case():
    """Five models of two parts on one tree, lengths for each of them, and their lnL by brute force."""
    case, models, expected = Case(29, N_TAXA, PARTS), [], []
    lengths = case.rng.random((5, len(PARTS), len(case.ends)))
    for case.lengths in lengths:
        case.mixtures = [random_mixture(case.rng, 4, 4) for _ in PARTS]
        models.append(case.mixtures)
        expected.append(case.sums(case.site_lnl()))
    return case.ends, models, lengths, case.codes, case.weights, np.array(expected)


def components(models):
    return [[mixture.components for mixture in model] for model in models]


@pytest.mark.parametrize("n_slots", [3, 7, 20], ids=["one_at_a_time", "two_at_a_time", "all_at_once"])
@pytest.mark.parametrize("streamed", [False, True])
def test_likelihoods_are_brute_force(few_kind, make_engine, case, n_slots, streamed):
    ends, models, lengths, codes, weights, expected = case
    layout = make_engine(few_kind, 1, codes, weights, models[0], PARTS).layout
    memory = tile_bytes(layout, n_slots) if streamed else None
    engine = make_engine(few_kind, n_slots, codes, weights, models[2], PARTS, memory=memory)
    program, a, b = program_to_branch(ends, N_TAXA, 2)
    request = Request(np.concatenate([program, prog.evaluate(0, a, b, 2)]), 1)
    for at in (0, 2):  # and the engine's own model is still there
        found = engine.likelihoods(program, (a, b, 2), lengths, components(models))
        np.testing.assert_allclose(found, expected, rtol=RTOL)
        own = engine.execute(request, lengths[at])[:, 0]
        np.testing.assert_array_equal(engine.likelihoods(program, (a, b, 2), lengths[at], components(models))[2], own)
    np.testing.assert_allclose(own, expected[2], rtol=RTOL)


@pytest.mark.opencl
@pytest.mark.parametrize("kind", as_params(DEVICE_KINDS))
def test_models_share_launches(make_engine, case, kind):
    """Of P matrices, of the traversal, and of sums if there are any."""
    ends, models, lengths, codes, weights, _ = case
    program, a, b = program_to_branch(ends, N_TAXA, 0)
    engine = make_engine(kind, 3 * len(models), codes, weights, models[0], PARTS)
    engine.likelihoods(program, (a, b, 0), lengths, components(models))
    assert engine.counters.launches == 2 + len(engine._sums.levels)
    assert engine.counters.requests == {"likelihoods": len(models)}


def test_models_that_do_not_fit(few_kind, make_engine, case):
    ends, models, lengths, codes, weights, _ = case
    engine = make_engine(few_kind, 3, codes, weights, models[0], PARTS)
    program, a, b = program_to_branch(ends, N_TAXA, 0)
    with pytest.raises(EngineError, match="2 parts"):
        engine.likelihoods(program, (a, b, 0), lengths[0], [components(models)[0][:1]])
    with pytest.raises(EngineError, match="slot 3"):
        engine.likelihoods(prog.newview(3, ~0, 0, ~1, 1), (a, b, 0), lengths[0], components(models))


# --- pieces ---------------------------------------------------------------------------------------------------


def join_taxa(slot):
    """For each taxon k but 0, in a piece of its own: taxon 0 goes to `slot`, along branch k, and meets k and slot 0."""
    pairs = [[prog.propagate(slot, ~0, k), prog.insert(k - 1, ~k, k, 0, 0, slot)] for k in range(1, N_TAXA)]
    return np.concatenate([row for pair in pairs for row in pair]), np.arange(0, 2 * len(pairs), 2, dtype=np.int32)


@pytest.mark.opencl
@pytest.mark.parametrize("wanted", [0, 2, 1000])
@pytest.mark.parametrize("kind", as_params(DEVICE_KINDS))
def test_pieces_have_scratch_of_their_own(make_engine, case, kind, wanted, monkeypatch):
    """Values do not depend on how many pieces run at once; each leaves its CLA in the slot that is its own."""
    from plltool.engine.opencl import engine as opencl_engine

    monkeypatch.setattr(opencl_engine, "CPU_GROUPS_PER_UNIT", wanted)
    monkeypatch.setattr(opencl_engine, "GPU_GROUPS_PER_UNIT", wanted)
    _, models, lengths, codes, weights, _ = case
    engine = make_engine(kind, 9, codes, weights, models[0], PARTS)
    program, pieces = join_taxa(2)
    engine.run(prog.newview(0, ~1, 1, ~2, 2), lengths[0])
    whole = engine.execute(Request(program, N_TAXA - 1), lengths[0])
    request = Request(program, N_TAXA - 1, pieces=pieces, scratch=range(2, 3))
    np.testing.assert_array_equal(engine.execute(request, lengths[0]), whole)
    if wanted == 1000:
        for k in range(1, N_TAXA):
            left = engine.execute(Request(prog.insert(0, ~k, k, 0, 0, 1 + k), 1), lengths[0])
            np.testing.assert_array_equal(left[:, 0], whole[:, k - 1])


def plan(n_pieces, wanted, n_slots=100, scratch=range(90, 95), n_spans=2):
    program = np.zeros((10 * n_pieces, INSTRUCTION_WORDS), dtype=np.int32)
    request = Request(program, pieces=10 * np.arange(n_pieces, dtype=np.int32), scratch=scratch)
    return module.plan_tracks(request, n_slots, n_spans, wanted)


@pytest.mark.parametrize(
    ("n_pieces", "wanted", "n_slots", "expected"),
    [(8, 1, 100, 1), (8, 2, 100, 1), (8, 3, 100, 2), (8, 7, 110, 4), (8, 7, 109, 3), (8, 7, 95, 1), (3, 100, 200, 3)],
)
def test_so_many_tracks_as_are_wanted_and_have_room(n_pieces, wanted, n_slots, expected):
    tracks = plan(n_pieces, wanted, n_slots)
    assert len(tracks) == expected
    assert tracks[0, 0] == 0
    assert tracks[-1, 1] == 10 * n_pieces
    assert np.array_equal(tracks[1:, 0], tracks[:-1, 1])
    assert np.all(tracks[:, 0] % 10 == 0)
    assert np.array_equal(tracks[:, 2], 5 * np.arange(expected))
    sizes = tracks[:, 1] - tracks[:, 0]
    assert sizes.max() - sizes.min() <= 10


def test_pieces_without_scratch_need_no_room():
    assert len(plan(8, 100, 95, range(0))) == 8
    assert not plan(8, 100, 95, range(0))[:, 2:].any()


def test_a_piece_longer_than_a_share_is_one_track():
    request = Request(np.zeros((12, INSTRUCTION_WORDS), dtype=np.int32), pieces=np.array([0, 9, 10], dtype=np.int32))
    assert module.plan_tracks(request, 10, 1, 3)[:, :2].tolist() == [[0, 12]]
    request = dataclasses.replace(request, pieces=np.array([0, 1, 9], dtype=np.int32))
    assert module.plan_tracks(request, 10, 1, 3)[:, :2].tolist() == [[0, 1], [1, 12]]


# --- levels ---------------------------------------------------------------------------------------------------


def touched(instruction):
    """(what it writes, what it reads): slots, and values by name."""
    opcode, result, a, _, b, _, c, _ = instruction
    operands = {Opcode.PROPAGATE: {a}, Opcode.INSERT: {a, b, c}, Opcode.TRIPLET: {a, b, c}}.get(opcode, {a, b})
    written = result if opcode in (Opcode.PROPAGATE, Opcode.NEWVIEW) else f"value {result}"
    return {written}, {slot for slot in operands if slot >= 0}


def slow_levels(program):
    """Every instruction is compared with every one before it."""
    levels = []
    rows = [touched(row) for row in program.tolist()]
    for n, (writes, reads) in enumerate(rows):
        waits = [levels[k] for k, (written, read) in enumerate(rows[:n]) if written & (reads | writes) or read & writes]
        levels.append(1 + max(waits, default=-1))
    return levels


@pytest.mark.parametrize("seed", range(20))
def test_levels_of_random_programs(seed):
    """Few slots, tips, and sums that several instructions add to."""
    rng = np.random.default_rng(seed)
    program = np.zeros((80, INSTRUCTION_WORDS), dtype=np.int32)
    program[:, 0] = rng.integers(0, 8, 80)
    program[:, 1] = rng.integers(0, 7, 80)
    program[:, [2, 4, 6]] = rng.integers(-6, 7, (80, 3))
    assert module.find_levels(module.find_waits(program)) == slow_levels(program)


def test_every_cla_of_a_stack_has_a_slot_of_its_own():
    """Two cherries on a stack of two slots, joined and measured; a second PROPAGATE in the same slot."""
    rows = [
        prog.newview(0, ~0, 0, ~1, 1), prog.newview(1, ~2, 2, ~3, 3), prog.newview(0, 0, 4, 1, 5),
        prog.propagate(1, 0, 6), prog.insert(0, ~4, 7, 1, 8, 0), prog.propagate(1, 1, 9), prog.evaluate(1, 1, ~4, 7),
    ]  # fmt: skip
    expected = [
        prog.newview(0, ~0, 0, ~1, 1), prog.newview(1, ~2, 2, ~3, 3), prog.newview(2, 0, 4, 1, 5),
        prog.propagate(3, 2, 6), prog.insert(0, ~4, 7, 3, 8, 2), prog.propagate(4, 3, 9), prog.evaluate(1, 4, ~4, 7),
    ]  # fmt: skip
    program = np.concatenate(rows)
    np.testing.assert_array_equal(module.spread_slots(program, 5), np.concatenate(expected))
    assert module.find_levels(module.find_waits(np.concatenate(expected))) == [0, 0, 1, 2, 3, 3, 4]
    assert module.spread_slots(program, 4) is program
    incomplete = program[2:]  # which reads what it does not make
    assert module.spread_slots(incomplete, 5) is incomplete


@pytest.mark.parametrize(("n_states", "n_sums"), [(4, 7), (20, 7), (61, 2), (122, 1)])
def test_branches_add_to_several_sums_in_turn(n_states, n_sums):
    """Seven branches and the value before the sum; more states take fewer sums, for these are large."""
    layout = Layout(n_states, 1, N_TAXA, PARTS, 32, lane_per_item=True)
    size = n_states**2
    across = prog.rate_matrix_gradient(1, np.arange(7), ~0, np.arange(7))
    request = Request(np.concatenate([prog.evaluate(0, 0, ~1, 0), across]), 1 + size)
    spread, sums = module.spread_sums(request, layout)
    added = {}  # to the sum that begins at a value, by branch
    for _, result, _, _, _, branch, begins, _ in spread.program[1:].tolist():
        assert begins == (result not in added)
        added.setdefault(result, []).append(branch)
    assert list(added) == [1 + n * size for n in range(n_sums)]
    assert sums[:, 0].tolist() == (list(added) if n_sums > 1 else [])
    assert sorted(k for own in added.values() for k in own) == list(range(7))
    assert max(map(len, added.values())) == -(-7 // n_sums)
    assert spread.n_values == max(added) + size
    assert module.spread_sums(Request(request.program[:1], 1), layout)[0].n_values == 1


def check_schedule(program, found):
    """All instructions, and each after those that it waits for: in a later launch, or later in the same track."""
    expected, where = program.tolist(), {}
    assert sorted(found.program.tolist()) == sorted(expected)
    tracks = np.concatenate(found.launches)
    assert not tracks[:, 2:].any()
    assert np.array_equal(tracks[:, 0], [0, *tracks[:-1, 1]])
    for number, launch in enumerate(found.launches):
        for track, (begin, end, *_) in enumerate(launch.tolist()):
            for place in range(begin, end):
                where.setdefault(tuple(found.program[place].tolist()), []).append((number, track, place))
    rows, places = [touched(row) for row in expected], [where[tuple(row)].pop(0) for row in expected]
    for n, (writes, reads) in enumerate(rows):
        for k, (written, read) in enumerate(rows[:n]):
            if written & (reads | writes) or read & writes:
                (first, track, place), (later, own, own_place) = places[k], places[n]
                assert first < later or (first == later and track == own and place < own_place)


@pytest.mark.parametrize("wanted", [40, 1000])
@pytest.mark.parametrize("seed", range(20))
def test_launches_of_random_programs_keep_the_order(seed, wanted, monkeypatch):
    """Few slots, tips, and sums that several instructions add to; every instruction another branch."""
    monkeypatch.setattr(module, "GPU_LEVEL_SHARE", 100)
    rng = np.random.default_rng(seed)
    program = np.zeros((80, INSTRUCTION_WORDS), dtype=np.int32)
    program[:, 0] = rng.choice([0, 1, 1, 1, 2, 3, 4, 5, 6, 7], 80)
    program[:, 1] = rng.integers(0, 25, 80)
    program[:, [2, 4, 6]] = rng.integers(-20, 25, (80, 3))
    program[:, 3] = np.arange(80)
    check_schedule(program, module.plan_levels(program, 1, wanted))


@pytest.mark.parametrize(("n_taxa", "most"), [(8, 3), (100, 12)])
def test_launches_of_a_tree_keep_the_order(n_taxa, most, monkeypatch):
    """All branches, and the gradient of the rate matrix with its sums; 100 taxa have 30 levels and more."""
    monkeypatch.setattr(module, "GPU_LEVEL_SHARE", 100)
    likelihood, _ = experiments.make_likelihood(n_taxa, 9, 4, 4, Hardware("numpy"))
    for ask in (likelihood.all_derivatives, likelihood.rate_matrix_gradient):
        ((request, _),) = record(likelihood.engine, ask)
        spread, _ = module.spread_sums(request, Layout(4, 4, n_taxa, (9,), 32, lane_per_item=True))
        program = module.spread_slots(spread.program, 10 * n_taxa)
        found = module.plan_levels(program, 1, 1000)
        check_schedule(program, found)
        assert len(found.launches) <= most


@pytest.mark.parametrize("ask", [TreeLikelihood.lnl, TreeLikelihood.all_derivatives])
def test_an_evaluation_has_slots_enough_for_levels(ask):
    """Of 100 taxa on a GPU with 132 multiprocessors; with few slots levels wait for each other."""
    layout = Layout(4, 4, 100, (9,), 32, lane_per_item=True)
    likelihood, _ = experiments.make_likelihood(100, 9, 4, 4, Hardware("numpy"))
    ((request, _),) = record(likelihood.engine, lambda: ask(likelihood))
    slots = evaluation_slots(100, lnl_only=ask is TreeLikelihood.lnl)
    assert slots.choose(dataclasses.replace(layout, lane_per_item=False), 1 << 30) == slots.least
    found = [module.spread_slots(request.program, number) for number in (slots.least, slots.choose(layout, 1 << 30))]
    assert [module.plan_levels(program, 1, 2112) is not None for program in found] == [False, True]


def two_cherries(n):
    """n NEWVIEWs of tips, and n / 2 that join them by twos."""
    first = prog.newview(np.arange(n), -1 - np.arange(n), 0, -2 - np.arange(n), 1)
    left = 2 * np.arange(n // 2)
    return np.concatenate([first, prog.newview(np.arange(n, n + n // 2), left, 2, left + 1, 3)])


@pytest.mark.parametrize(("wanted", "sizes"), [(4, None), (8, None), (9, [3, 6, 3, 6, 6]), (1000, [3] * 8)])
def test_so_many_tracks_of_a_launch_as_are_wanted(wanted, sizes):
    """Two levels are one launch: each join comes behind the two that it joins, or two of these joins are a track."""
    if (found := module.plan_levels(two_cherries(16), 2, wanted)) is None:
        assert sizes is None
        return
    assert len(found.launches) == 1
    assert (found.launches[0][:, 1] - found.launches[0][:, 0]).tolist() == sizes


@pytest.mark.parametrize(("wide", "launches"), [(2, 1), (3, 2)])
def test_a_level_that_joins_long_tracks_has_its_own_launch(wide, launches, monkeypatch):
    """One NEWVIEW reads what two chains made. With chains of w: (7 + 2 w + 1) / (w + 1) > (7 + w) / w from w = 3 on."""
    monkeypatch.setattr(module, "GPU_LEVEL_SHARE", 100)
    chain = prog.newview(np.arange(1, 1 + wide), np.arange(wide), 0, ~0, 1)
    own_slots = np.array([0, 100, 100, 0, 0, 0, 0, 0], dtype=np.int32)
    program = np.concatenate([chain, chain + own_slots, prog.newview(200, wide, 0, 100 + wide, 1)])
    found = module.plan_levels(program, 1, 1000)
    assert len(found.launches) == launches
    assert len(np.concatenate(found.launches)) == (1 if launches == 1 else 3)


@pytest.mark.parametrize(("n_chains", "is_cut"), [(1, False), (2, False), (3, True), (7, True)])
def test_few_chains_are_one_launch(n_chains, is_cut):
    """Chains of 8 instructions side by side take as long as 7 + 8 one after another, and the host."""
    chain = prog.newview(np.arange(1, 9), np.arange(8), 0, ~0, 1)
    own_slots = np.array([0, 9, 9, 0, 0, 0, 0, 0], dtype=np.int32)
    found = module.plan_levels(np.concatenate([chain + k * own_slots for k in range(n_chains)]), 1, 1000)
    assert (found is not None) == is_cut


@pytest.fixture
def sequential_and_levels(monkeypatch):
    """A function that answers twice: by a program in its order, and by levels; and how many launches each took."""
    from plltool.engine.opencl import engine as opencl_engine

    def answer(make, ask, per_launch=-1):  # few instructions per launch make many launches
        answers, launches = [], []
        for wanted in (0, 1000):
            monkeypatch.setattr(opencl_engine, "GPU_GROUPS_PER_UNIT", wanted)
            monkeypatch.setattr(module, "GPU_LEVEL_SHARE", 100)
            monkeypatch.setattr(module, "GPU_LAUNCH_INSTRUCTIONS", 2 * (per_launch,))
            engine = make()
            before = engine.counters.launches
            answers.append(ask(engine))
            launches.append(engine.counters.launches - before)
        return answers, launches

    return answer


LEVEL_KINDS = [Kind("lanes", 32), Kind("lanes", 64, 2), Kind("lanes", 32, max_groups=2)]


@pytest.mark.opencl
@pytest.mark.parametrize("kind", as_params(LEVEL_KINDS))
def test_levels_keep_every_bit(make_engine, case, kind, sequential_and_levels):
    """Every kind of instruction, in slots that are used again and again."""
    ends, models, lengths, codes, weights, _ = case
    program, n_values, _ = everything(np.random.default_rng(1), ends, N_TAXA)
    answers, launches = sequential_and_levels(
        lambda: make_engine(kind, N_TAXA - 1, codes, weights, models[0], PARTS),
        lambda engine: engine.execute(Request(program, n_values), lengths[0]),
    )
    np.testing.assert_array_equal(*answers)
    assert launches[1] - launches[0] > 3


@pytest.mark.opencl
def test_clas_that_are_kept_stay_in_their_slots(make_engine, case, sequential_and_levels):
    _, models, lengths, codes, weights, _ = case

    def ask(engine):
        engine.run(np.concatenate([prog.newview(5, ~1, 1, ~2, 2), prog.newview(2, ~3, 3, ~4, 4)]), lengths[0])
        return evaluate_edges(engine, [(5, 2, 0), (2, ~0, 0)], lengths[0])

    answers, _ = sequential_and_levels(lambda: make_engine(Kind("lanes", 32), 9, codes, weights, models[0], PARTS), ask)
    np.testing.assert_array_equal(*answers)


@pytest.mark.opencl
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("kind", as_params([Kind("lanes", 32)]))
def test_trees_by_levels(make_engine, case, kind, streamed, sequential_and_levels):
    """What search and optimisers ask for, with sums over all branches."""
    ends, models, lengths, codes, weights, _ = case
    tree = make_tree(ends, lengths[0, 0], N_TAXA)
    fixed = [FixedModel(mixture.components) for mixture in models[0]]
    n_slots = 4 * N_TAXA  # one for every CLA that a round makes

    def make():
        layout = kind.layout(4, fixed[0].components().n_components, N_TAXA, PARTS)
        memory = tile_bytes(layout, n_slots) if streamed else None
        return make_engine(kind, n_slots, codes, weights, models[0], PARTS, memory=memory)

    def ask(engine):
        likelihood = TreeLikelihood(tree, fixed, engine)
        lnl, slopes = likelihood.all_derivatives()
        return [likelihood.lnl(), lnl, slopes, *likelihood.rate_matrix_gradient(), likelihood.site_lnl()]

    answers, launches = sequential_and_levels(make, ask)
    for sequential, by_levels in zip(*answers, strict=True):
        np.testing.assert_array_equal(sequential, by_levels)
    assert launches[1] > launches[0]


@pytest.mark.opencl
def test_a_gradient_takes_little_more_launches_than_all_branches_alone(make_engine, case, sequential_and_levels):
    """100 taxa: 197 branches whose terms add up, and 197 that have values of their own."""
    rng = np.random.default_rng(3)
    tree = random_tree([f"t{number}" for number in range(100)], rng)
    codes, fixed = 1 << rng.integers(0, 4, (100, 9)), [FixedModel(case[1][0][0].components)]

    def ask(engine):
        likelihood = TreeLikelihood(tree, fixed, engine)
        counts = [engine.counters.launches]
        for request in (likelihood.all_derivatives, likelihood.rate_matrix_gradient):
            request()
            counts.append(engine.counters.launches)
        return np.diff(counts)

    (_, by_levels), _ = sequential_and_levels(
        lambda: make_engine(Kind("lanes", 32), 400, codes, np.ones(9), case[1][0][:1], (9,)), ask
    )
    assert by_levels[1] <= by_levels[0] + 197 / module.MOST_SUMS + 1


@pytest.mark.opencl
@pytest.mark.parametrize("keep", [False, True])
def test_tiles_in_the_same_slots_are_not_cut_into_levels(make_engine, case, keep, sequential_and_levels):
    """Of a span's tiles the next one would come to a level before the last one has left its slots."""
    ends, models, lengths, codes, weights, _ = case
    program, a, b = program_to_branch(ends, N_TAXA, 0)
    program = np.concatenate([program, prog.evaluate(0, a, b, 0)])
    answers, launches = sequential_and_levels(
        lambda: make_engine(Kind("lanes", 32, max_groups=2), 3, codes, weights, models[0], PARTS),
        lambda engine: engine.execute(Request(program, 1, keep=keep), lengths[0]),
    )
    np.testing.assert_array_equal(*answers)
    assert (launches[1] > launches[0]) == keep
