"""Child processes: results in order, reports, an end on request, and what becomes of failures."""

import logging
import os
import signal
import time
from queue import Queue
from threading import Thread

import pytest

from plltool.errors import DeviceError, InputError, PlltoolWarning, warn_caller
from plltool.processes import ranks as crew_module
from plltool.processes.workers import Workers


class Task:
    """Does what its first argument names."""

    def __init__(self, base):
        self.base = base

    def __call__(self, what, number, report):
        return getattr(self, what)(number, report)

    def add(self, number, report):
        time.sleep(0.01 * (5 - number))  # the first take longest
        report(f"working at {number}")
        return self.base + number, os.getpid()

    def variable(self, name, _report):
        return os.environ.get(name)

    def until_told(self, number, report):
        while report(number):
            time.sleep(0.01)
        return "told"

    def warn(self, number, _report):
        warn_caller(f"warning {number}")
        logging.getLogger("plltool").warning("logged %d", number)

    def refuse(self, number, _report):
        raise InputError(f"found {number}")

    def fail(self, number, _report):
        return number / 0

    def die(self, number, _report):
        os.kill(os.getpid(), number)


def workers(number=2, **environment):
    return Workers(Task, [(100,)] * number, environment)


def ignore(_number, _message):
    pass


def test_results_come_in_the_order_of_the_tasks_from_all_children():
    heard = []
    with workers() as children:
        found = list(children.map([("add", k) for k in range(5)], lambda *message: heard.append(message)))
    assert [value for value, _ in found] == [100, 101, 102, 103, 104]
    assert len({pid for _, pid in found}) == 2
    assert os.getpid() not in {pid for _, pid in found}
    assert sorted(heard) == [(k, f"working at {k}") for k in range(5)]


@pytest.mark.parametrize(("number", "ahead"), [(1, None), (2, 1)])
def test_a_task_is_taken_when_a_child_is_free_and_earlier_results_are_known(number, ahead):
    """With more children it may have to wait for them."""
    seen, known = [], []

    def tasks():
        for _ in range(5):
            known.append(len(seen))
            yield "add", 4

    with workers(number) as children:
        for result in children.map(tasks(), ignore, ahead):
            seen.append(result)
    assert known == [0, 1, 2, 3, 4]


def test_children_have_the_environment_given():
    with workers(PLLTOOL_TEST="yes") as children:
        assert list(children.map([("variable", "PLLTOOL_TEST")], ignore)) == ["yes"]


def test_stop_ends_what_runs_and_begins_nothing():
    def heard(_number, _message):
        children.stop()

    with workers() as children:
        assert list(children.map([("until_told", k) for k in range(9)], heard)) == ["told", "told"]


def test_what_a_task_raises_is_raised():
    with workers() as children, pytest.raises(InputError, match="found 7"):
        list(children.map([("refuse", 7)], ignore))
    with workers() as children, pytest.raises(ZeroDivisionError) as caught:
        list(children.map([("fail", 7)], ignore))
    assert "in fail" in "".join(caught.value.__notes__)


def test_warnings_appear_in_this_process(caplog, capfd):
    with workers(1) as children, pytest.warns(PlltoolWarning, match="warning 3") as caught:
        list(children.map([("warn", 3)], ignore))
    assert caught[0].filename == __file__
    assert caplog.messages == ["logged 3"]
    assert capfd.readouterr().err == ""


def test_a_dead_child_is_told():
    with workers() as children, pytest.raises(DeviceError, match="signal SIGKILL"):
        list(children.map([("die", signal.SIGKILL)], ignore))


def test_no_child_outlives_the_block():
    with workers() as children:
        results = children.map([("add", 4), ("until_told", 0), ("until_told", 0)], ignore)
        _, pid = next(results)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


class Wires:
    """As much of a communicator of mpi4py as a crew uses; its ranks are threads."""

    def __init__(self, rank, queues):
        self._rank, self._queues = rank, queues

    def send(self, message, other):
        self._queues[self._rank, other].put(message)

    def recv(self, source):
        return self._queues[source, self._rank].get(timeout=20)

    def iprobe(self, source):
        return not self._queues[source, self._rank].empty()


def refuse_to_begin():
    raise InputError("found no task")


def test_what_a_rank_said_unheard_does_not_reach_its_next_parent(monkeypatch):
    monkeypatch.setattr(logging.getLogger("plltool"), "propagate", True)  # this process is also the rank, which ends it
    queues = {(a, b): Queue() for a in range(2) for b in range(2)}
    served = Thread(target=crew_module.serve, args=(crew_module.Line(Wires(1, queues), 0),), daemon=True)
    served.start()
    crew = crew_module.Crew(Wires(0, queues), [crew_module.Seat(0, 1, 1)])
    monkeypatch.setattr(crew_module, "_crew", crew)
    with Workers(refuse_to_begin, [()], {}):
        assert not crew.is_idle
    with workers(1) as ranks:
        assert [value for value, _ in ranks.map([("add", 4)], ignore)] == [104]
    assert crew.is_idle
    crew.dismiss()
    served.join(20)
    assert not served.is_alive()
