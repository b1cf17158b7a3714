"""What `plltool bench` counts, against counts by hand; how it takes turns; how it compares two runs."""

import json
from collections import Counter
from dataclasses import asdict

import numpy as np
import pytest
from helpers import caterpillar, make_tree

from plltool.analyses.machine.bench import items, run
from plltool.analyses.machine.bench.items import FixedModel, Shape, count_rescaled, encode_states, make_data, make_items
from plltool.analyses.machine.bench.run import Benchmark, bench, describe_rows, read_benchmark
from plltool.engine.base import EngineData, Peak
from plltool.engine.layout import DataShape
from plltool.engine.select import make_engine
from plltool.engine.storage import Slots
from plltool.errors import InputError
from plltool.hardware import Hardware
from plltool.optimise.likelihood import TreeLikelihood

SHARES = ("copy_share", "multiply_add_share", "bound_share")


def likelihood_of(components, tree, states):
    """On the numpy engine, with room for a scan."""
    n_taxa, n_patterns = states.shape
    shape = DataShape(components.n_states, 4, n_taxa, (n_patterns,))
    data = EngineData(1 << states, np.ones(n_patterns))
    engine, _ = make_engine(data, shape, Slots(3 * n_taxa), Hardware("numpy"))
    return TreeLikelihood(tree, [FixedModel(components)], engine)


# --- rows -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("precision", ["double", "single"])
def test_rows(device, precision):
    shapes = [Shape(6, 50), Shape(5, 9)]
    done = bench(Hardware(device, precision), 4, shapes, repetitions=1)
    assert [(row["taxa"], row["patterns"], row["item"]) for row in done.rows] == [
        (*shape, item) for shape in shapes for item in ("newview", "evaluate", "derivatives", "scan")
    ]
    for row in done.rows:
        assert (row["states"], row["components"], row["precision"]) == (4, 4, precision)
        known = row["copy_bytes_per_second"], row["multiply_adds_per_second"]
        assert known == (None, None) if device == "numpy" else min(known) > 1e6
        for share in SHARES:
            wanted = device != "numpy" and (share != "bound_share" or row["item"] == "newview")
            assert row[share] > 0 if wanted else row[share] is None
        assert row["layout"]["precision"] == precision
        n_taxa, patterns = row["taxa"], row["patterns"]
        nodes = {"newview": n_taxa - 1, "evaluate": 1, "derivatives": 3 * (n_taxa - 2) + 2 * n_taxa - 3}
        if row["item"] in nodes:
            assert row["pattern_nodes_per_second"] * row["seconds"] == pytest.approx(nodes[row["item"]] * patterns)


@pytest.mark.parametrize("n_states", [2, 20, 61])
def test_other_numbers_of_states(n_states):
    done = bench(Hardware("numpy"), n_states, [Shape(5, 20)], repetitions=1)
    assert {row["states"] for row in done.rows} == {n_states}


def test_states_that_no_engine_holds():
    with pytest.raises(InputError, match="found 129 states, expected at most 128"):
        bench(Hardware("numpy"), 129, [Shape(5, 20)])


def test_default_shapes_fit_the_limit(monkeypatch):
    measured = []

    def note(likelihood, _):
        layout = likelihood.engine.layout
        measured.append((layout.n_taxa, layout.n_patterns))
        return []

    monkeypatch.setattr(run, "_measure", note)
    monkeypatch.setattr(run, "MAX_CLA_BYTES", 96 * 1_000 * 4 * (4 * 8 + 4))  # 90 directed CLAs and the scan's 6
    bench(Hardware("numpy"))
    assert measured == [(32, 1_000)]


# --- counts -----------------------------------------------------------------------------------------------------------


def test_counts_of_a_tree_of_four_taxa():
    """The first newview joins two tips, the second one that CLA and a tip; the root tip is at one end of its branch."""
    components, _, codes = make_data(Shape(4, 10), 4, np.random.default_rng(1))
    tree = make_tree(caterpillar(4), np.full(5, 0.1), 4)
    items = make_items(likelihood_of(components, tree, codes))
    newview = 2 * (4 * 4 + 4 * 4) + 4  # a multiply-add is two
    evaluate = 2 * 4 * 4 + 3 * 4
    assert (items["newview"].nodes, items["newview"].cla_moves) == (3, 1 + 2 + 1)
    assert items["newview"].flops == 4 * (2 * newview + evaluate)
    assert (items["evaluate"].nodes, items["evaluate"].cla_moves, items["evaluate"].flops) == (1, 1, 4 * evaluate)
    derivative = 2 * 2 * 4 * 4 + 3 * 4 + 3 * (1 + 3 * 2)
    assert items["derivatives"].nodes == 6 + 5
    assert items["derivatives"].flops == 4 * (6 * newview + 5 * derivative)


def test_the_bound_is_a_twentieth_of_the_vectors_of_eight():
    vectors_per_second = 3e9
    assert run.newview_bound(4, 4, 8 * vectors_per_second) == pytest.approx(vectors_per_second / 20)


def test_items_ask_for_what_they_are_named_after():
    components, tree, codes = make_data(Shape(9, 10), 4, np.random.default_rng(2))
    likelihood = likelihood_of(components, tree, codes)
    for name, item in make_items(likelihood).items():
        before = likelihood.engine.counters.instructions
        item.run()
        assert likelihood.engine.counters.instructions - before == item.nodes, name


# --- data -------------------------------------------------------------------------------------------------------------


def test_the_model_is_reversible_and_of_rate_one():
    components, _, _ = make_data(Shape(4, 1), 7, np.random.default_rng(3))
    pi = components.frequencies[0]
    q = (components.right[0] * components.eigenvalues[0]) @ components.left[0]
    np.testing.assert_allclose(pi[:, None] * q, (pi[:, None] * q).T, atol=1e-12)
    assert -(pi @ np.diag(q)) == pytest.approx(1.0)
    assert components.rates @ components.weights == pytest.approx(1.0)


def test_codes_are_sets_of_one_state():
    for n_states in (4, 8, 9, 128):
        codes, sets = encode_states(np.arange(n_states, dtype=np.int16)[None], n_states)
        assert (sets is None) == (n_states <= 8)
        expanded = (codes[0, :, None] >> np.arange(n_states)) & 1 if sets is None else sets[codes[0]]
        assert expanded.tolist() == np.eye(n_states).tolist()


def test_rescaled_patterns():
    """As the engine's own scaling counts say; near the threshold some go unnoticed, none is made up."""
    components, tree, codes = make_data(Shape(700, 60), 4, np.random.default_rng(5))
    likelihood = likelihood_of(components, tree, codes)
    found = count_rescaled(likelihood)
    root = int(likelihood._likelihood_program()[-2, 1])
    counts = likelihood.engine._scales[root].max(axis=1)  # of every component: the best one was rescaled, too
    truly = np.count_nonzero(counts.ravel()[likelihood.engine.layout.lane_of_pattern])
    assert 0 < found <= truly
    assert count_rescaled(likelihood_of(*make_data(Shape(8, 60), 4, np.random.default_rng(5)))) == 0


@pytest.mark.parametrize("shape", [items.DEFAULT_SHAPES[-1], items.QUICK_SHAPES[-1]])
def test_a_shape_really_rescales(shape):
    data = make_data(shape, 4, np.random.default_rng([1, 4, *shape]))
    assert count_rescaled(likelihood_of(*data)) > 0


# --- time -------------------------------------------------------------------------------------------------------------


def test_all_take_turns(monkeypatch):
    """On a clock that only work moves: `a` takes 10 ms a call, `b` 4 ms and, from the eighth call on, 8 ms."""
    now, done = [0.0], []

    def work(name, seconds):
        def run():
            done.append(name)
            now[0] += seconds(Counter(done)[name])

        return Peak(run, 1.0)

    monkeypatch.setattr(run.time, "perf_counter", lambda: now[0])
    works = {"a": work("a", lambda _: 0.01), "b": work("b", lambda call: 0.004 if call < 8 else 0.008)}
    found = run.time_in_turn(works, 3)
    assert "".join(done) == "aa" + "bb" + 3 * ("aaa" + "bbbbbb")  # samples of 20 ms, a call before each
    assert found == pytest.approx({"a": 0.01, "b": 0.008})


# --- two runs ---------------------------------------------------------------------------------------------------------


def row(item, patterns, rate):
    key = {"item": item, "states": 4, "components": 4, "precision": "double", "taxa": 32, "patterns": patterns}
    return key | {"pattern_nodes_per_second": rate}


def test_ratios():
    new = [row("newview", 1000, 300.0), row("scan", 1000, 50.0), row("newview", 500, 1.0)]
    old = [row("scan", 1000, 100.0), row("evaluate", 1000, 7.0), row("newview", 1000, 200.0)]
    _, _, *told = Benchmark("", "", "", tuple(new)).describe_ratios(old, "old.json")
    found = [f"{line.split()[0]} {line[60:].strip()}" for line in told]
    assert found == ["newview, 1.500", "scan, 0.500", "newview, not in the file", "evaluate, in the file only"]


def test_there_and_back(tmp_path):
    done = bench(Hardware("numpy"), 4, [Shape(5, 9)], repetitions=1)
    record = done.as_record("plltool bench")
    assert set(run.BENCHMARK_KEYS) <= record.keys()
    path = tmp_path / "x.json"
    path.write_text(json.dumps(record, allow_nan=False))
    assert read_benchmark(path) == list(done.rows)


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ("", "something other than JSON"),
        ("[]", "a JSON list, expected the output of `plltool bench`"),
        ('{"rows": []}', "it lacks benchmark, version, date, device, driver"),
        ({"rows": 3}, "rows: found a JSON int"),
        ({"rows": [row("scan", 1, 1.0), {"item": "scan"}]}, "row 2 lacks states, components"),
        ({"rows": [3]}, "row 1 lacks item"),
        ({"rows": [row("scan", 1, 0.0)]}, "row 1: found pattern_nodes_per_second 0.0"),
        ({"rows": [row("scan", 1, "fast")]}, "row 1: found pattern_nodes_per_second 'fast'"),
    ],
)
def test_what_is_no_benchmark(tmp_path, content, part):
    if isinstance(content, dict):
        content = json.dumps(dict.fromkeys(run.BENCHMARK_KEYS, "") | content)
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(InputError, match=str(path)) as caught:
        read_benchmark(path)
    assert part in str(caught.value)


def test_the_hardware_asked_for_is_used():
    done = bench(Hardware("numpy", "single", vw=2), 4, [Shape(5, 9)], repetitions=1)
    assert done.rows[0]["layout"]["vw"] == 2
    assert done.reason.startswith("numpy")
    assert asdict(done)["driver"] == f"numpy {np.__version__}"


@pytest.mark.parametrize("share", [None, 0.9, 9.571])
def test_shares_above_all_are_explained(share):
    (made,) = bench(Hardware("numpy"), 4, [Shape(5, 9)], repetitions=1).rows[:1]
    lines = describe_rows([made | {"copy_share": share, "multiply_add_share": None, "bound_share": None}])
    assert ("above 100 %: the data stay in the caches" in lines[-1]) == (share == 9.571)
