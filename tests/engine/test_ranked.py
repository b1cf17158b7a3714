"""Ranks of a job, here threads with a communicator of their own: every rank gets the sums that one engine makes."""

import threading
from dataclasses import replace

import numpy as np
import pytest
from helpers import clas_facing, numpy_engine, operand
from test_several import N_TAXA, SIZES, Case

from plltool.engine import program as prog
from plltool.engine.base import EngineData
from plltool.engine.categories import CategoryEngine
from plltool.engine.program import Request
from plltool.engine.several import RankShards, of_rank
from plltool.errors import DeviceError, EngineError, InputError
from plltool.hardware import Hardware
from plltool.processes import ranks as ranks_module
from plltool.processes.ranks import Ranks

RTOL = 1e-11  # the order of sums differs
PATIENCE = 60.0  # seconds


class Job:
    """What the communicators of all ranks share."""

    def __init__(self, size):
        self.size = size
        self.barrier = threading.Barrier(size)
        self.posted = [None] * size
        self.n_sums = 0

    def exchange(self, rank, thing):
        self.posted[rank] = thing
        self.barrier.wait(PATIENCE)
        found = list(self.posted)
        self.barrier.wait(PATIENCE)
        return found


class Comm:
    """As much of a communicator of mpi4py as ranks use."""

    def __init__(self, job, rank):
        self._job, self._rank = job, rank

    def Get_rank(self):  # noqa: N802
        return self._rank

    def Get_size(self):  # noqa: N802
        return self._job.size

    def Dup(self):  # noqa: N802
        return self

    def Allreduce(self, sent, received):  # noqa: N802
        found = self._job.exchange(self._rank, sent)
        self._job.n_sums += self._rank == 0
        if len({own.size for own in found}) > 1:
            raise RuntimeError("Message truncated, error stack:\nand so on")
        received[:] = sum(found)

    def allgather(self, thing):
        return self._job.exchange(self._rank, thing)

    def bcast(self, thing):
        return self._job.exchange(self._rank, thing)[0]


def run(size, work):
    """What ``work(ranks)`` returns on each of the ranks, and the job; an error of a rank is returned as such."""
    job, found = Job(size), [None] * size

    def live(rank):
        comm = Comm(job, rank)
        try:
            found[rank] = work(Ranks(comm, comm, RuntimeError))
        except Exception as error:
            found[rank] = error
            if not isinstance(error, (DeviceError, EngineError, InputError)):
                job.barrier.abort()

    threads = [threading.Thread(target=live, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    return found, job


def open_engine(case, ranks, n_slots=3 * N_TAXA, data=None):
    data = data or EngineData(case.codes, case.weights)

    def make(own, sizes):
        bounds = np.cumsum((0, *SIZES))
        begin = ranks.number * sum(SIZES) // ranks.size
        parts = np.flatnonzero(bounds[1:] > begin)[: len(sizes)]
        return numpy_engine(n_slots, own.codes, own.weights, [case.mixtures[part] for part in parts], sizes)

    engine = RankShards(ranks, data, SIZES, make)
    engine.set_model([mixture.components for mixture in case.mixtures])
    return engine


def assert_close(found, expected):
    assert np.allclose(found, expected, rtol=RTOL, atol=RTOL * np.abs(expected).max())


@pytest.fixture
def case():
    return Case()


@pytest.mark.parametrize("size", [1, 2, 3, 70])
def test_all_requests(case, size):
    """70 ranks are more than there are patterns: some have none."""
    program, n_values, _ = case.everything()
    steps, a, b = case.to(2)
    at = prog.evaluate(0, a, b, 2)
    models = [[mixture.components for mixture in case.mixtures]] * 3

    def ask(engine):
        tip = int(min(case.ends[0]))
        inner = int(max(case.ends[0]))
        newviews = clas_facing(case.ends, N_TAXA, inner, 0)
        across = Request(prog.evaluate(0, operand(tip, N_TAXA), operand(inner, N_TAXA), 0), 1)
        clas = engine.prepare(newviews[:1], case.lengths).extend(newviews[1:], case.lengths)
        found = [
            engine.execute(Request(program, n_values), case.lengths),
            engine.execute_sites(Request(np.concatenate([steps, at]), 1), case.lengths),
            np.array(engine.execute_shaped(case.gradients(2), case.lengths)),
            engine.likelihoods(steps, (a, b, 2), case.lengths, models),
            clas.execute(across, case.lengths),
        ]
        engine.set_weights(2 * case.weights)
        return [*found, engine.execute(Request(np.concatenate([steps, at]), 1), case.lengths)]

    expected = ask(case.alone())
    found, _ = run(size, lambda ranks: ask(open_engine(case, ranks)))
    for own in found:
        assert not isinstance(own, Exception), own
        for values, alone, first in zip(own, expected, found[0], strict=True):
            assert_close(values, alone)
            assert np.array_equal(values, first), "all ranks see the same bits"


def test_one_sum_for_each_request(case):
    request = case.across(2)

    def ask(ranks):
        engine = open_engine(case, ranks)
        for _ in range(5):
            engine.execute(request, case.lengths)
        return engine.counters

    found, job = run(2, ask)
    for counters in found:
        assert counters.exchanges == 5
        assert counters.bytes_exchanged == 5 * 8 * (3 * 1 + 3)  # a value of each part, and what stands in front
    assert job.n_sums == 5 + 1  # one when the engine is opened


def test_what_searches_depend_on_is_the_same_on_all_ranks(case):
    def ask(ranks):
        engine = open_engine(case, ranks, n_slots=3 * N_TAXA - ranks.number)
        names = ("n_slots", "n_groups", "resident", "device_name", "n_patterns", "part_patterns")
        return tuple(getattr(engine, name) for name in names)

    found, _ = run(3, ask)
    assert len(set(found)) == 1
    assert found[0][0] == 3 * N_TAXA - 2
    assert found[0][-2:] == (sum(SIZES), SIZES)


def test_an_error_of_one_rank_is_raised_by_all(case):
    """Here the patterns of rank 0 alone have a length that is no number."""
    request = case.across(2)
    wrong = case.lengths.copy()
    wrong[0] = np.nan

    def ask(ranks):
        engine = open_engine(case, ranks)
        with pytest.raises(EngineError, match="not positive and finite"):
            engine.execute(request, wrong)
        return engine.execute(request, case.lengths)

    found, _ = run(3, ask)
    assert_close(found[2], case.alone().execute(request, case.lengths))
    assert np.array_equal(found[0], found[2])


def fail(ranks, case):
    def make(*_):
        if ranks.number == 1:
            raise DeviceError("no such device")
        return numpy_engine(4, case.codes[:, :1], case.weights[:1], case.mixtures[:1])

    RankShards(ranks, EngineData(case.codes, case.weights), SIZES, make)


def differ(ranks, case):
    codes = case.codes.copy()
    codes[0, 0] ^= ranks.number == 2
    open_engine(case, ranks, data=EngineData(codes, case.weights))


def come_apart(ranks, case):
    lengths = case.lengths * (1 + 1e-15 * (ranks.number == 1))
    open_engine(case, ranks).execute(case.across(2), lengths)


def ask_for_more(ranks, case):
    request = replace(case.across(2), n_values=1 + (ranks.number == 1))
    open_engine(case, ranks).execute(request, case.lengths)


@pytest.mark.parametrize(
    ("do", "message"),
    [
        (fail, "rank 1: no such device"),
        (differ, "rank 2 has another alignment, or another version of plltool, than rank 0"),
        (come_apart, "the ranks disagree: they have not asked for the same"),
        (ask_for_more, r"rank \d cannot exchange its sums: Message truncated, error stack:$"),
    ],
)
def test_ranks_that_fail_or_disagree(case, do, message):
    found, _ = run(3, lambda ranks: do(ranks, case))
    for error in found:
        with pytest.raises((DeviceError, InputError), match=message):
            raise error


def test_sorted_patterns_over_ranks(case):
    """Patterns change their category, and so their place on the ranks."""
    mixture = case.mixtures[0]
    components = mixture.components
    request = case.across(2)
    lengths = case.lengths[0]
    sortings = [case.rng.integers(0, components.n_components, sum(SIZES)) for _ in range(2)]

    def ask(make):
        engine = CategoryEngine(make, EngineData(case.codes, case.weights), (sum(SIZES),))
        found = []
        for category_of in sortings:
            names = ("eigenvalues", "right", "left", "frequencies", "rates", "weights")
            arrays = {name: getattr(components, name) for name in names}
            engine.set_model([type(components)(**arrays, category_of=category_of)])
            found += [engine.execute(request, lengths), engine.execute_sites(request, lengths)]
        return found

    def plain(data, sizes):
        one = type(mixture)(components.one_for_each_pattern(sortings[0]).category(0), mixture.oracle[:1])
        return numpy_engine(3 * N_TAXA, data.codes, data.weights, [one] * len(sizes), sizes)

    expected = ask(plain)
    found, _ = run(3, lambda ranks: ask(lambda data, sizes: RankShards(ranks, data, sizes, plain)))
    for own in found:
        assert not isinstance(own, Exception), own
        for values, alone in zip(own, expected, strict=True):
            assert_close(values, alone)


class TestShares:
    def test_a_device_for_each_rank_of_a_machine(self, monkeypatch):
        monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(12)))
        several = Hardware(device="0:0,0:1")
        found, _ = run(3, lambda ranks: of_rank(ranks, several))
        assert [own.device for own in found] == ["0:0", "0:1", "0:0"]
        assert {own.threads for own in found} == {4}
        assert of_rank_alone(Hardware(device="cpu", threads=2)).threads == 2
        with pytest.raises(InputError, match="share: found 1,2, expected none: ranks have equal shares"):
            of_rank_alone(Hardware(device="a,b", share=(1.0, 2.0)))

    def test_what_launchers_say(self, monkeypatch):
        for name in (*ranks_module.SIZES, *ranks_module.NUMBERS):
            monkeypatch.delenv(name, raising=False)
        assert (ranks_module.launched_size(), ranks_module.launched_number()) == (0, 0)
        monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "8")
        monkeypatch.setenv("SLURM_PROCID", "5")
        assert (ranks_module.launched_size(), ranks_module.launched_number()) == (8, 5)


def of_rank_alone(hardware):
    (found,), _ = run(1, lambda ranks: of_rank(ranks, hardware))
    if isinstance(found, Exception):
        raise found
    return found
