"""Processes that work on tasks at the same time, each with what it made when it started, such as an engine.

They are child processes of this one, or the other ranks of an MPI job, see `plltool.processes.ranks`.
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
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection, Pipe, wait
from types import TracebackType
from typing import Any, Protocol, Self, TypeAlias

from plltool.errors import DeviceError, PlltoolError, PlltoolWarning, warn_caller
from plltool.processes.children import child_command
from plltool.processes.ranks import PAUSE, Crew, Line, crew
from plltool.progress import log

HEARD, DONE, FAILED, LOGGED, WARNED = range(5)  # kinds of a child's messages
STOP = None  # what the parent sends instead of a task
GRACE = 10.0  # seconds that a child without a task has to end by itself


Work: TypeAlias = Callable[..., Any]


class Worker(Protocol):
    """A process that makes and does tasks, as its parent sees it."""

    def send(self, message: Any) -> None: ...

    def receive(self) -> Any:
        """Its next message. Raises DeviceError if it is dead."""

    def end(self, is_busy: bool, error: type[BaseException] | None) -> None:
        """Let it end; `error` is why the parent ends, too."""

    def wait(self) -> None: ...

    @staticmethod
    def ready(workers: Sequence[Any]) -> Sequence[Any]:
        """Those of some workers of this kind that have a message, as soon as one has."""


class ChildProcess:
    def __init__(self, environment: Mapping[str, str]):
        self._connection, theirs = Pipe()
        with theirs, _interrupts_blocked():
            self._process = subprocess.Popen(
                child_command("plltool.processes.workers:serve_parent", str(theirs.fileno())),
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env={**os.environ, **environment},
            )

    def fileno(self) -> int:
        """What `multiprocessing.connection.wait` waits for."""
        return self._connection.fileno()

    def send(self, message: Any) -> None:
        with contextlib.suppress(OSError):  # it is dead, which `receive` will tell
            self._connection.send(message)

    def receive(self) -> Any:
        try:
            return self._connection.recv()
        except (EOFError, OSError) as problem:
            status = self._process.wait()
            how = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
            raise DeviceError(f"a worker process ended before its task did: {how}") from problem

    def end(self, is_busy: bool, error: type[BaseException] | None) -> None:
        self._connection.close()  # without a task it ends by that
        if is_busy or error is not None:
            self._process.kill()

    def wait(self) -> None:
        try:
            self._process.wait(GRACE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    @staticmethod
    def ready(workers: Sequence[ChildProcess]) -> Sequence[Any]:
        return wait(workers)  # type: ignore[arg-type]  # it takes whatever has a file number


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Let SIGINT and SIGHUP wait. A process that is started here never gets them, so that its parent decides."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Rank:
    """Another rank of the job, which serves further parents afterwards."""

    def __init__(self, members: Crew, line: Line):
        self._crew = members
        self._line = line
        self.send, self.receive, self.poll = line.send, line.recv, line.poll

    def end(self, is_busy: bool, error: type[BaseException] | None) -> None:
        """A rank cannot be killed alone, so its task ends at the next report, or when it is done."""
        if error is not None and not issubclass(error, (Exception, GeneratorExit)):
            return  # such as Ctrl-C: the job ends with this process
        if is_busy:
            self.send(STOP)
        self._line.close()
        with contextlib.suppress(EOFError):  # what nobody has read must not reach the next parent
            while True:
                self.receive()
        self._crew.idle.append(self._line)

    def wait(self) -> None:
        pass

    @staticmethod
    def ready(workers: Sequence[Rank]) -> Sequence[Rank]:
        while not (found := [worker for worker in workers if worker.poll()]):
            time.sleep(PAUSE)
        return found


def start(number: int, environment: Mapping[str, str]) -> Sequence[Worker]:
    """Workers with these variables: ranks of the crew, if this process has one, or else child processes."""
    members = crew()
    if members is None:
        return [ChildProcess(environment) for _ in range(number)]
    return [Rank(members, line) for line in members.begin("plltool.processes.workers:serve", number, environment)]


class Workers:
    """Processes that work on tasks, for use in a ``with`` block. Leaving the block ends what they are doing.

    What one of them logs or warns of appears as if this process did it. In each, ``make(*arguments)`` is called once
    and returns its task, which is called as ``task(*arguments, report=report)``. `report` sends a message to the parent
    and returns False once the task should end. `make` is pickled, like everything that is sent, so it must be a
    function or class of a module. The variables of `environment` are added to those of this process.
    """

    def __init__(self, make: Callable[..., Work], arguments: Sequence[tuple[Any, ...]], environment: Mapping[str, str]):
        self._running: dict[Worker, int] = {}
        self._stopped = False
        self._workers = start(len(arguments), environment)
        for worker, own in zip(self._workers, arguments, strict=True):
            worker.send((make, own))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        for worker in self._workers:
            worker.end(worker in self._running, kind)
        for worker in self._workers:
            worker.wait()

    def stop(self) -> None:
        """Begin no further task, and tell those that run to end."""
        self._stopped = True
        for worker in self._running:
            worker.send(STOP)

    def map(
        self, tasks: Iterable[tuple[Any, ...]], heard: Callable[[int, Any], None], ahead: int | None = None
    ) -> Iterator[Any]:
        """The result of each task, in their order; after `stop`, only of the tasks that had begun.

        `tasks` are the arguments of each, taken when a child is free. `heard` is called with the number of the task,
        from 0, and what it reports. At most `ahead` tasks may have begun whose results have not been yielded. Raises
        what a task raises, and DeviceError if a child dies.
        """
        waiting = enumerate(tasks)
        free = list(self._workers)
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
                free.pop().send(arguments)
                taken += 1
            if not self._running:
                return
            for worker in self._workers[0].ready(list(self._running)):
                number = self._running[worker]
                kind, content = worker.receive()
                if kind == FAILED:
                    del self._running[worker]
                    raise content
                if kind == HEARD:
                    heard(number, content)
                elif kind == LOGGED:
                    log.log(*content)
                elif kind == WARNED:
                    warn_caller(content)
                else:
                    results[number] = content
                    del self._running[worker]
                    free.append(worker)


def serve_parent(file_number: str) -> None:
    """The main function of a child, until the parent closes the connection."""
    serve(Connection(int(file_number)))


def serve(connection: Connection | Line) -> None:
    """Make the task, then do it as often as asked, until the other end closes the connection."""
    handler = _LogToParent(connection)
    log.addHandler(handler)
    log.propagate = False
    try:
        with warnings.catch_warnings(), contextlib.suppress(EOFError, BrokenPipeError):  # the parent is gone
            warnings.simplefilter("always", PlltoolWarning)  # the parent has the user's filters
            warnings.showwarning = _warn_in_parent(connection, warnings.showwarning)
            try:
                _serve(connection)
            except (EOFError, BrokenPipeError):
                raise
            except Exception as error:
                if not isinstance(error, PlltoolError):
                    error.add_note("in a worker process:\n" + traceback.format_exc())
                connection.send((FAILED, error))
                while True:  # until the parent closes
                    connection.recv()
    finally:
        log.removeHandler(handler)


class _LogToParent(logging.Handler):
    def __init__(self, connection: Connection | Line):
        super().__init__(logging.WARNING)
        self._connection = connection

    def emit(self, record: logging.LogRecord) -> None:
        self._connection.send((LOGGED, (record.levelno, record.getMessage())))


def _warn_in_parent(connection: Connection | Line, show: Callable[..., None]) -> Callable[..., None]:
    """A replacement of `warnings.showwarning`: sends a `PlltoolWarning` to the parent, and others to `show`."""

    def send(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, PlltoolWarning):
            connection.send((WARNED, str(message)))
        else:
            show(message, category, *where, **more)

    return send


def _serve(connection: Connection | Line) -> None:
    def report(message: Any) -> bool:
        connection.send((HEARD, message))
        return not (connection.poll() and connection.recv() is STOP)

    make, arguments = connection.recv()
    task = make(*arguments)
    while True:
        arguments = connection.recv()
        if arguments is not STOP:  # too late: the task was done
            connection.send((DONE, task(*arguments, report=report)))
