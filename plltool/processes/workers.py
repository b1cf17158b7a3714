"""Processes that work on tasks at the same time, each with what it made when it started, such as an engine.

They are child processes of this one, or the other ranks of an MPI job, see `plltool.processes.ranks`.
Python runs one thread at a time, and much of a search is work of the host. Processes therefore share the cores and the
device better than threads do. Unlike `multiprocessing`, they need no guard of the main module in a user's script.
Results come in the order of the tasks, so that nothing depends on which process is faster.

A child process imports the plltool of its parent, and nothing from the current folder. One that was started with
``python -m`` or ``python -c`` would look there first, and find in a checkout the folder ``plltool``.
"""

import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias

from plltool.errors import DeviceError, PlltoolError, PlltoolWarning, warn_caller
from plltool.processes.ranks import STOP, Line, crew
from plltool.progress import log

HEARD, DONE, FAILED, LOGGED, WARNED = range(5)  # kinds of a child's messages
GRACE = 10.0  # seconds that a child without a task has to end by itself
HOME = str(Path(__file__).absolute().parents[2])  # the folder that holds plltool
START = """\
import json, pkgutil, sys
path, target, arguments = json.loads(sys.argv[1])
sys.path[:] = path
import plltool  # found in the first folder of the path, which has nothing else to offer
del sys.path[0]
sys.exit(pkgutil.resolve_name(target)(*arguments))
"""

Work: TypeAlias = Callable[..., Any]


def child_command(target: str, *arguments: str) -> list[str]:
    """The command line of a child process that calls a function, and exits with what it returns.

    The child imports what this process would import, except from folders that are named relative to the current one.
    The function is named as "plltool.module:function". Raises DeviceError if there is no Python interpreter to start,
    see `can_start_children`.
    """
    executable = _find_interpreter()
    if executable is None:
        hint = "name an interpreter with multiprocessing.set_executable(), or use one worker"
        raise DeviceError(f"this program has no Python interpreter that child processes can run in; {hint}")
    path = [HOME, *(folder for folder in sys.path if os.path.isabs(folder))]
    return [executable, "-P", "-c", START, json.dumps([path, target, arguments])]


def can_start_children() -> bool:
    """Whether this process knows a Python interpreter. A frozen program, or one that embeds Python, may not."""
    return _find_interpreter() is not None


def _find_interpreter() -> str | None:
    from multiprocessing import spawn

    executable = os.fsdecode(spawn.get_executable() or "")
    is_program = getattr(sys, "frozen", False) and executable == sys.executable  # a child would be the program again
    return None if is_program or not executable else executable


class ChildProcess:
    """A worker of this process alone, with the methods that a `Line` to another rank has."""

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
        with contextlib.suppress(OSError):  # it is dead, which `recv` will tell
            self._connection.send(message)

    def recv(self) -> Any:
        """The next message. Raises DeviceError if the process is dead."""
        try:
            return self._connection.recv()
        except (EOFError, OSError) as problem:
            status = self._process.wait()
            how = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
            raise DeviceError(f"a worker process ended before its task did: {how}") from problem

    def end(self, is_busy: bool, error: type[BaseException] | None) -> None:
        """Let it end; `error` is why its parent ends, too."""
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
    def ready(workers: Sequence[Any]) -> Sequence[Any]:
        """Those of some child processes that have a message, as soon as one has."""
        return wait(workers)


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Let SIGINT and SIGHUP wait. A process that is started here never gets them, so that its parent decides."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Workers:
    """Processes that work on tasks, for use in a ``with`` block. Leaving the block ends what they are doing.

    What one of them logs or warns of appears as if this process did it. In each, ``make(*arguments)`` is called once
    and returns its task, which is called as ``task(*arguments, report=report)``. `report` sends a message to the parent
    and returns False once the task should end. `make` is pickled, like everything that is sent, so it must be a
    function or class of a module. The variables of `environment` are added to those of this process.
    """

    def __init__(self, make: Callable[..., Work], arguments: Sequence[tuple[Any, ...]], environment: Mapping[str, str]):
        self._running: dict[ChildProcess | Line, int] = {}
        self._stopped = False
        self._workers: Sequence[ChildProcess | Line]
        if (members := crew()) is None:
            self._workers = [ChildProcess(environment) for _ in arguments]
        else:
            self._workers = members.begin("plltool.processes.workers:serve", len(arguments), environment)
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
                kind, content = worker.recv()
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
    handler, show = _LogToParent(connection), warnings.showwarning

    def warn(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, PlltoolWarning):
            connection.send((WARNED, str(message)))
        else:
            show(message, category, *where, **more)

    log.addHandler(handler)
    log.propagate = False
    try:
        with warnings.catch_warnings(), contextlib.suppress(EOFError, BrokenPipeError):  # the parent is gone
            warnings.simplefilter("always", PlltoolWarning)  # the parent has the user's filters
            warnings.showwarning = warn
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
