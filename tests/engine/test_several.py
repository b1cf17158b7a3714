"""Patterns that several engines divide: every request is the sum that one engine makes."""

import numpy as np
import pytest
from agreement import Case as RandomCase
from engine_kinds import Kind
from helpers import clas_facing, numpy_engine, operand, random_codes, random_mixture
from oracles.likelihood import pruning

from plltool.engine import program as prog
from plltool.engine import several
from plltool.engine.base import EngineData
from plltool.engine.composite import Composite, Shard
from plltool.engine.layout import DataShape
from plltool.engine.program import Request
from plltool.engine.several import UsedDevice, cut_patterns, measure_shares, measure_speed
from plltool.errors import DeviceError, EngineError, InputError
from plltool.hardware import Hardware, parse_hardware, parse_share

N_TAXA = 6
SIZES = (21, 3, 40)
RTOL = 1e-11  # the order of sums differs
NUMPY, VECTOR = Kind("numpy", 4), Kind("vector", 4, 3)
PAIRS = [
    pytest.param((NUMPY, NUMPY), id="numpy-numpy"),
    pytest.param((NUMPY, VECTOR), id="numpy-opencl", marks=pytest.mark.opencl),
    pytest.param((VECTOR, VECTOR), id="opencl-opencl", marks=pytest.mark.opencl),
]


class Case(RandomCase):
    """Three parts on a random tree, with lengths of their own."""

    def __init__(self, seed=3):
        super().__init__(seed, N_TAXA, SIZES)
        self.lengths = np.stack([self.lengths, 1.5 * self.lengths, 0.5 * self.lengths])

    def gradients(self, branch):
        """A function of a layout: the request for lnL and its gradients across a branch, with all newviews."""
        program, a, b = self.to(branch)

        def make(layout):
            first = 1 + layout.gradient_values
            gradients = [prog.rate_matrix_gradient(1, a, b, branch), prog.mass_gradient(first, a, b, branch)]
            rows = [program, prog.evaluate(0, a, b, branch), *gradients]
            return Request(np.concatenate(rows), first + layout.n_components * layout.n_states)

        return make

    def alone(self):
        return numpy_engine(3 * N_TAXA, self.codes, self.weights, self.mixtures, SIZES)

    def divided(self, make_engine, kinds, shares=(0.6, 0.4), move=None):
        """The patterns in the middle part belong to two engines."""
        engines, shards = [], []
        for kind, patterns in zip(kinds, cut_patterns(SIZES, shares), strict=True):
            own = slice(patterns.start, patterns.stop)
            shard, sizes = Shard.of(SIZES, np.array(patterns))
            mixtures = [self.mixtures[part] for part in shard.parts]
            engines.append(make_engine(kind, 3 * N_TAXA, self.codes[:, own], self.weights[own], mixtures, sizes))
            shards.append(shard)
        engine = Composite(engines, shards, self.weights, SIZES, move)
        engine.set_model([mixture.components for mixture in self.mixtures])
        return engine


@pytest.fixture
def case():
    return Case()


@pytest.mark.parametrize("kinds", PAIRS)
class TestRequests:
    def test_everything(self, case, make_engine, kinds):
        engine = case.divided(make_engine, kinds, (0.5, 0.5))
        case.lengths = case.lengths[0]
        case.assert_agrees(engine, RTOL)

    def test_gradients(self, case, make_engine, kinds):
        make = case.gradients(2)
        found = case.divided(make_engine, kinds).execute_shaped(make, case.lengths)
        for own, expected in zip(found, case.alone().execute_shaped(make, case.lengths), strict=True):
            assert np.allclose(own, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())

    def test_sites_and_other_models(self, case, make_engine, kinds):
        engine = case.divided(make_engine, kinds)
        program, a, b = case.to(2)
        request, expected = case.across(2), case.site_lnl(pruning)
        assert np.allclose(engine.execute_sites(request, case.lengths)[0], expected, rtol=RTOL)
        sums = case.sums(expected)
        models = [[mixture.components for mixture in case.mixtures]] * 5
        found = engine.likelihoods(program, (a, b, 2), case.lengths, models)
        assert np.allclose(found, sums, rtol=RTOL)
        engine.set_weights(2 * case.weights)
        assert np.allclose(engine.execute(request, case.lengths)[:, 0], 2 * sums, rtol=RTOL)
        assert np.array_equal(engine.weights, 2 * case.weights)

    def test_prepared_clas_move_with_their_shard(self, case, make_engine, kinds):
        """The first engine fails at every point of the sequence in turn; the answers are always the same."""
        tip = int(case.ends[0][0]) if case.ends[0][0] < N_TAXA else int(case.ends[0][1])
        neighbour = int(sum(case.ends[0])) - tip
        steps = clas_facing(case.ends, N_TAXA, neighbour, 0)
        at = operand(tip, N_TAXA), operand(neighbour, N_TAXA), 0
        half = len(steps) // 2
        request = Request(prog.evaluate(0, *at), 1)
        alone = case.alone()
        expected = alone.prepare(steps, case.lengths).execute(request, case.lengths)

        def ask(engine):
            clas = engine.prepare(steps[:half], case.lengths).extend(steps[half:], case.lengths)
            return [clas.execute(request, case.lengths), clas.execute(request, case.lengths)]

        for survived in range(6):
            told = []

            def move(number, error, told=told):
                told.append(number)
                assert "out of order" in str(error)
                own = cut_patterns(SIZES, (0.6, 0.4))[number]
                (shard, sizes), patterns = Shard.of(SIZES, np.array(own)), slice(own.start, own.stop)
                mixtures = [case.mixtures[part] for part in shard.parts]
                return make_engine(NUMPY, 3 * N_TAXA, case.codes[:, patterns], np.ones(len(own)), mixtures, sizes)

            engine = case.divided(make_engine, kinds, move=move)
            fail_after(engine.engines[0], survived)
            for values in ask(engine):
                assert np.allclose(values, expected, rtol=RTOL)
            assert told == ([0] if survived < 4 else [])
            whole = Request(np.concatenate([steps, request.program]), 1)
            assert np.allclose(engine.execute(whole, case.lengths), expected, rtol=RTOL)

    def test_an_error_of_one_leaves_no_answer_behind(self, case, make_engine, kinds):
        engine = case.divided(make_engine, kinds)
        good = case.across(2)
        expected = engine.execute(good, case.lengths)
        wrong = case.lengths.copy()
        wrong[0] = np.nan
        with pytest.raises(EngineError, match="not positive and finite"):
            engine.execute(good, wrong)
        assert np.array_equal(engine.execute(good, case.lengths), expected)


def fail_after(engine, n):
    """Let an engine answer n requests, and no more."""
    ask, left = engine.ask, [n]

    def counted(request, lengths):
        left[0] -= 1
        if left[0] < 0:
            raise DeviceError("out of order")
        return ask(request, lengths)

    engine.ask = counted


def test_all_are_asked_before_any_is_waited_for(case, make_engine):
    engine = case.divided(make_engine, (NUMPY, NUMPY))
    order = []
    for number, own in enumerate(engine.engines):

        def ask(request, lengths, number=number, own=own.ask):
            order.append(f"ask {number}")
            answer = own(request, lengths)
            return lambda: (order.append(f"fetch {number}"), answer())[1]

        own.ask = ask
    engine.execute(case.across(2), case.lengths)
    assert order == ["ask 0", "ask 1", "fetch 0", "fetch 1"]
    wrong = case.lengths.copy()
    wrong[0] = np.nan
    with pytest.raises(EngineError, match="not positive and finite"):
        engine.execute(case.across(2), wrong)
    assert order[4:] == order[:4], "the second one is waited for although the first one has failed"


def test_without_another_device_the_error_is_raised(case, make_engine):
    engine = case.divided(make_engine, (NUMPY, NUMPY))
    fail_after(engine.engines[1], 0)
    with pytest.raises(DeviceError, match="out of order"):
        engine.execute(case.across(2), case.lengths)


class TestCuts:
    @pytest.mark.parametrize(
        ("sizes", "shares", "expected"),
        [
            ((100,), (0.6, 0.4), [(0, 60), (60, 100)]),
            ((100,), (0.0, 1.0), [(0, 0), (0, 100)]),
            ((100,), (1.0, 0.0), [(0, 100), (100, 100)]),
            ((49, 51), (0.5, 0.5), [(0, 49), (49, 100)]),  # parts stay whole
            ((40, 60), (0.5, 0.5), [(0, 50), (50, 100)]),  # too far away
            ((33, 33, 34), (0.34, 0.33, 0.33), [(0, 33), (33, 66), (66, 100)]),
            ((1,), (0.5, 0.3, 0.2), [(0, 0), (0, 1), (1, 1)]),
            ((3,), (0.2, 0.2, 0.6), [(0, 1), (1, 1), (1, 3)]),
        ],
    )
    def test_known(self, sizes, shares, expected):
        assert [(own.start, own.stop) for own in cut_patterns(sizes, shares)] == expected

    def test_every_pattern_once_and_near_its_share(self):
        rng = np.random.default_rng(8)
        for _ in range(200):
            sizes = rng.integers(1, 60, rng.integers(1, 6))
            shares = rng.dirichlet(np.ones(rng.integers(1, 5)))
            ranges = cut_patterns(sizes, shares)
            assert [n for own in ranges for n in own] == list(range(sizes.sum()))
            held = [Shard.of(sizes, np.array(own)) for own in ranges if len(own)]
            total = sum(np.bincount(own.parts, n, minlength=len(sizes)) for own, n in held)
            assert total.tolist() == sizes.tolist()
            for own, share in zip(ranges, shares, strict=True):
                assert abs(len(own) - share * sizes.sum()) <= 0.1 * share * sizes.sum() + 1


class TestSpeeds:
    def test_shares_follow_the_speeds(self, caplog):
        places = [UsedDevice(Hardware(device=name), None, 0.5) for name in ("a", "b", "c")]
        speeds = {"a": 3e8, "b": 1e8, "c": 1e5}
        assert measure_shares(places, lambda hardware: speeds[hardware.device]) == (0.75, 0.25, 0.0)

    def test_speed_is_that_of_newviews(self, monkeypatch):
        """With a clock that says 2 s for each run: 50 patterns, 3 newviews."""
        clock = iter(np.arange(0, 100, 2))
        monkeypatch.setattr(several, "perf_counter", lambda: next(clock))
        rng = np.random.default_rng(1)
        data = EngineData(random_codes(rng, 5, 50, 4), np.ones(50))
        components = random_mixture(rng, 4, 4).components
        shape = DataShape(4, 4, 5, (50,))
        assert measure_speed(data, shape, components, Hardware(device="numpy")) == 50 * 3 / 2


class TestSettings:
    def test_devices_and_shares(self):
        hardware = parse_hardware("0:0,numpy:share=0.7,0.3:threads=2")
        assert hardware == Hardware(device="0:0,numpy", share=(0.7, 0.3), threads=2)
        assert hardware.words == ("0:0", "numpy")
        assert hardware.is_several
        assert Hardware.of(device=["0:0", "numpy"], share=[0.7, 0.3], threads=2) == hardware
        assert parse_share("3,1") == (3.0, 1.0)

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"share": (1.0,)}, "share: found 1 for device 'auto', expected several devices"),
            ({"device": "a,b", "share": (1.0,)}, "share: found 1 for device 'a,b', expected 2: one for each device"),
            ({"device": "a,b", "share": (0.0, 0.0)}, "share: found 0,0, expected numbers of 0 or more"),
            ({"device": "a,b", "share": (-1.0, 2.0)}, "share: found -1,2, expected numbers of 0 or more"),
            ({"device": "a,b", "share": (float("nan"), 2.0)}, "share: found nan,2, expected numbers of 0 or more"),
        ],
    )
    def test_wrong_shares(self, settings, message):
        with pytest.raises(InputError, match=message):
            Hardware(**settings)

    @pytest.mark.parametrize("text", ["", "a", "0.5,", "1;2", "-1,2", "1e3,2", "nan,1"])
    def test_wrong_text(self, text):
        with pytest.raises(InputError, match=r"share: found .*, expected a number for each device, such as 0.6,0.4"):
            parse_share(text)
