"""Child processes that work at tasks side by side, each with whatever it made at its start, such as an engine.

Python runs one thread at a time, and a search is host work for a good part: processes share the cores, and the device,
better than threads would. Unlike `multiprocessing` this needs no guard of the main module in a user's script.
Results come in the order of the tasks, so that nothing depends on which process was faster.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from multiprocessing.connection import Connection, Pipe, wait
from types import TracebackType
from typing import Any, Self, TypeAlias

from plltool.errors import DeviceError, PlltoolError

HEARD, DONE, FAILED = range(3)  # what a child's message tells
STOP = None  # what the parent sends instead of a task
SERVE = "from plltool.run.workers import serve; serve()"  # the program of a child
GRACE = 10.0  # seconds for a child without a task to end by itself

Task: TypeAlias = Callable[..., Any]


class Workers:
    """So many child processes, for use in a ``with`` block; leaving it ends them, whatever they are at.

    Parameters
    ----------
    number : of processes
    make, arguments : called once in each child, ``make(*arguments)`` returns its task, to be called as
        ``task(*arguments, report=report)``. `report` sends a message to the parent, and returns False once the task
        should come to an end. As all that travels `make` is pickled, so that it is a function or class of a module
    environment : of the children, on top of this process's
    """

    def __init__(
        self, number: int, make: Callable[..., Task], arguments: tuple[Any, ...], environment: Mapping[str, str]
    ):
        self._children: dict[Connection, subprocess.Popen[bytes]] = {}
        self._running: dict[Connection, int] = {}
        self._stopped = False
        for _ in range(number):
            ours, theirs = Pipe()
            with theirs:
                child = subprocess.Popen(
                    [sys.executable, "-P", "-c", SERVE, str(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    env={**os.environ, **environment},
                )
            self._children[ours] = child
            self._send(ours, (make, arguments))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        for connection, child in self._children.items():
            connection.close()  # a child without a task ends by that
            if kind is not None or connection in self._running:
                child.kill()
        for child in self._children.values():
            try:
                child.wait(GRACE)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()

    def stop(self) -> None:
        """Begin no further task, and let those that run know that they should come to an end."""
        self._stopped = True
        for connection in self._running:
            self._send(connection, STOP)

    def map(
        self, tasks: Iterable[tuple[Any, ...]], heard: Callable[[int, Any], None], ahead: int | None = None
    ) -> Iterator[Any]:
        """The result of each task, in their order; after `stop` of those only that had begun.

        Parameters
        ----------
        tasks : the arguments of each, taken from the iterable only when a child is free for it
        heard : called with the number of the task, from 0, and what it reports
        ahead : a task is taken once the results of all but the last so many before it have been yielded; by default
            as soon as a child is free

        Raises
        ------
        DeviceError
            If a child dies. What a task raises is raised here.
        """
        waiting = enumerate(tasks)
        free = list(self._children)
        results: dict[int, Any] = {}
        due = taken = 0
        while True:
            while due in results:
                yield results.pop(due)
                due += 1
            while free and not self._stopped and (ahead is None or taken < due + ahead):
                if (task := next(waiting, None)) is None:
                    break
                self._running[free[-1]], arguments = task
                self._send(free.pop(), arguments)
                taken += 1
            if not self._running:
                return
            for connection in wait(list(self._running)):
                assert isinstance(connection, Connection)
                number = self._running[connection]
                kind, content = self._receive(connection)
                if kind == FAILED:
                    raise content
                if kind == HEARD:
                    heard(number, content)
                else:
                    results[number] = content
                    del self._running[connection]
                    free.append(connection)

    @staticmethod
    def _send(connection: Connection, message: Any) -> None:
        with contextlib.suppress(OSError):  # the child is dead, which `_receive` will tell
            connection.send(message)

    def _receive(self, connection: Connection) -> tuple[int, Any]:
        try:
            message: tuple[int, Any] = connection.recv()
        except (EOFError, OSError) as error:
            status = self._children[connection].wait()
            how = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
            raise DeviceError(f"a worker process ended before its task did: {how}") from error
        return message


def serve() -> None:
    """The life of a child: make the task, then do it as often as asked, until the parent closes the connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all; the parent decides
    connection = Connection(int(sys.argv[1]))
    with contextlib.suppress(EOFError, BrokenPipeError):  # the parent is gone
        try:
            _serve(connection)
        except Exception as error:
            if not isinstance(error, PlltoolError):
                error.add_note("in a worker process:\n" + traceback.format_exc())
            connection.send((FAILED, error))


def _serve(connection: Connection) -> None:
    def report(message: Any) -> bool:
        connection.send((HEARD, message))
        return not (connection.poll() and connection.recv() is STOP)

    make, arguments = connection.recv()
    task = make(*arguments)
    while True:
        arguments = connection.recv()
        if arguments is not STOP:  # too late: the task was done
            connection.send((DONE, task(*arguments, report=report)))
