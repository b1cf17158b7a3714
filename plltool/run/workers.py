"""Child processes that work on tasks at the same time, each with what it made when it started, such as an engine.

Python runs one thread at a time, and much of a search is work of the host. Processes therefore share the cores and the
device better than threads do. Unlike `multiprocessing`, they need no guard of the main module in a user's script.
Results come in the order of the tasks, so that nothing depends on which process is faster.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection, Pipe, wait
from types import TracebackType
from typing import Any, Self, TypeAlias

from plltool.children import child_command
from plltool.errors import DeviceError, PlltoolError, PlltoolWarning, warn_caller

HEARD, DONE, FAILED, LOGGED, WARNED = range(5)  # kinds of a child's messages
STOP = None  # what the parent sends instead of a task
GRACE = 10.0  # seconds that a child without a task has to end by itself

_log = logging.getLogger("plltool")

Task: TypeAlias = Callable[..., Any]


class Workers:
    """Child processes, for use in a ``with`` block. Leaving the block ends them, whatever they are doing.

    What a child logs or warns of appears as if this process did it.

    Parameters
    ----------
    make, arguments : there is a child for each of these arguments. ``make(*arguments)`` is called once in it and
        returns its task, which is called as ``task(*arguments, report=report)``. `report` sends a message to the parent
        and returns False once the task should end. `make` is pickled, like everything that is sent, so it must be a
        function or class of a module
    environment : variables of the children, added to those of this process
    """

    def __init__(
        self, make: Callable[..., Task], arguments: Sequence[tuple[Any, ...]], environment: Mapping[str, str]
    ):
        self._children: dict[Connection, subprocess.Popen[bytes]] = {}
        self._running: dict[Connection, int] = {}
        self._stopped = False
        for own in arguments:
            ours, theirs = Pipe()
            with theirs:
                child = subprocess.Popen(
                    child_command("plltool.run.workers:serve", str(theirs.fileno())),
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    env={**os.environ, **environment},
                )
            self._children[ours] = child
            self._send(ours, (make, own))

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
        """Begin no further task, and tell those that run to end."""
        self._stopped = True
        for connection in self._running:
            self._send(connection, STOP)

    def map(
        self, tasks: Iterable[tuple[Any, ...]], heard: Callable[[int, Any], None], ahead: int | None = None
    ) -> Iterator[Any]:
        """The result of each task, in their order; after `stop`, only of the tasks that had begun.

        Parameters
        ----------
        tasks : the arguments of each, taken from the iterable when a child is free
        heard : called with the number of the task, from 0, and what it reports
        ahead : number of tasks that may have begun whose results have not been yielded; None for any number

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
                elif kind == LOGGED:
                    _log.log(*content)
                elif kind == WARNED:
                    warn_caller(content)
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


def serve(file_number: str) -> None:
    """What a child does: make the task, then do it as often as asked, until the parent closes the connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all processes; the parent decides
    connection = Connection(int(file_number))
    _log.addHandler(_LogToParent(connection))
    _log.propagate = False
    warnings.simplefilter("always", PlltoolWarning)  # the parent has the user's filters
    warnings.showwarning = _warn_in_parent(connection, warnings.showwarning)
    with contextlib.suppress(EOFError, BrokenPipeError):  # the parent is gone
        try:
            _serve(connection)
        except Exception as error:
            if not isinstance(error, PlltoolError):
                error.add_note("in a worker process:\n" + traceback.format_exc())
            connection.send((FAILED, error))


class _LogToParent(logging.Handler):
    """Sends warnings of the log to the parent."""

    def __init__(self, connection: Connection):
        super().__init__(logging.WARNING)
        self._connection = connection

    def emit(self, record: logging.LogRecord) -> None:
        self._connection.send((LOGGED, (record.levelno, record.getMessage())))


def _warn_in_parent(connection: Connection, show: Callable[..., None]) -> Callable[..., None]:
    """A replacement of `warnings.showwarning`: sends a `PlltoolWarning` to the parent, and others to `show`."""

    def send(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, PlltoolWarning):
            connection.send((WARNED, str(message)))
        else:
            show(message, category, *where, **more)

    return send


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
