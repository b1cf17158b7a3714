"""The ranks of an MPI job: processes that make the same run, each with some of the patterns.

All ranks run the same deterministic program, as in ExaML (Kozlov, Aberer & Stamatakis 2015). What each finds of its own
patterns is added up over all ranks with one allreduce per request, and nothing else goes over the wire. So all ranks
see the same sums and take the same decisions. With every sum goes a mark of what was asked, by which ranks notice that
they have come apart, and whether a rank has failed.

Or they are a crew: rank 0 runs the command, and hands out its tasks to the others. Tasks are those of
`plltool.processes.workers`: climbs from start trees, bootstrap replicates, excursions of the ultrafast bootstrap,
genes, runs of chains. Nothing is divided in them, so a rank holds all patterns of a task and never waits for another.
"""

from __future__ import annotations

import atexit
import os
import pkgutil
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from plltool.errors import DeviceError, PlltoolError
from plltool.hardware import available_cores

if TYPE_CHECKING:
    from plltool.arrays import FloatArray

T = TypeVar("T")

# What MPI launchers tell the processes that they start: the number of ranks, and the rank
SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS")
NUMBERS = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
MARK_BITS = 20  # the squares of the marks of 8192 ranks add up without rounding
HEADER = 3  # numbers in front of the sums: ranks that failed, sum of the marks, sum of their squares
STOP = None  # what a worker is sent instead of a task
PAUSE = 0.01  # seconds between two looks at whether others have come
BEAT = 5.0  # seconds between two signs of life
GRACE = 5  # seconds in which the launcher of a job that is aborted should end this rank
PATIENCE = 300.0  # seconds without a sign of life after which a rank is lost; kernels may take long to build


class Ranks:
    """The ranks of a job, as seen by one of them.

    `comm` and `machine` are communicators of mpi4py, of the job and of its ranks that share a machine, and `error` is
    what mpi4py raises. This rank is ``number``, from 0, of ``size``, and ``local`` of the ``n_local`` on its machine.
    """

    def __init__(self, comm: Any, machine: Any, error: type[Exception]):
        self._comm = comm
        self._error = error
        self._ending = comm.Dup()
        self.number: int = comm.Get_rank()
        self.size: int = comm.Get_size()
        self.local: int = machine.Get_rank()
        self.n_local: int = machine.Get_size()

    def add_up(self, values: FloatArray, mark: int, error: PlltoolError | None) -> FloatArray:
        """The sum of the values of all ranks, in an order that depends on their number alone.

        MARK_BITS of the `mark` of what was asked count; `error` is why this rank has no values. Raises DeviceError if
        the ranks have not asked for the same, or one is gone. The error of a rank is raised by all.
        """
        import numpy as np

        mark &= (1 << MARK_BITS) - 1
        sent = np.concatenate([[error is not None, mark, mark * mark], values.ravel()])
        received = np.full_like(sent, np.nan)
        try:
            self._comm.Allreduce(sent, received)
        except self._error as problem:
            line = str(problem).splitlines()[0]
            raise DeviceError(f"rank {self.number} cannot exchange its sums: {line}") from problem
        if not np.isfinite(received[:HEADER]).all():
            raise DeviceError("the ranks disagree about the size of their sums")
        failed, total, squares = (int(number) for number in received[:HEADER])
        if failed:
            number, first = next((k, found) for k, found in enumerate(self.gather(error)) if found is not None)
            raise DeviceError(f"rank {number}: {first}") if type(first) is DeviceError else first
        if self.size * squares != total * total:
            raise DeviceError("the ranks disagree: they have not asked for the same; are their machines different?")
        return received[HEADER:].reshape(values.shape)

    def gather(self, own: T) -> list[T]:
        found: list[T] = self._comm.allgather(own)
        return found

    def of_first(self, make: Callable[[], T]) -> T:
        """What `make` returns on rank 0, for all ranks."""
        found: T = self._comm.bcast(make() if self.number == 0 else None)
        return found

    def all_end(self, seconds: float) -> bool:
        """Whether all ranks come here within some seconds."""
        request, end = self._ending.Ibarrier(), time.monotonic() + seconds
        while not request.Test():
            if time.monotonic() > end:
                return False
            time.sleep(PAUSE)
        return True

    def abort(self, code: int) -> None:
        _abort(self._comm, code)


def _abort(comm: Any, code: int) -> None:
    """End all ranks. The launcher may never answer, and nothing but the alarm ends a process that aborts."""
    if hasattr(signal, "alarm"):
        signal.alarm(GRACE)
    comm.Abort(code)


def watch(comm: Any, lost: Callable[[str], None]) -> None:
    """Tell the next rank every BEAT seconds that this one lives, and call `lost` if the one before is silent.

    MPI itself may wait for ever for a machine that is gone, or out of reach since a link was cut. Beats, not seconds,
    are counted, so that a job that is suspended as a whole can go on. `lost` gets the reason before the job is aborted.
    """
    own, is_over = comm.Dup(), threading.Event()
    farewells: list[Any] = []
    number, size = comm.Get_rank(), comm.Get_size()
    before, after = (number - 1) % size, (number + 1) % size

    def run() -> None:
        silent, beat = 0, None
        while not is_over.wait(BEAT):
            if beat is None or beat.test()[0]:
                beat = own.isend(True, after)
            silent += 1
            while own.iprobe(source=before):
                silent = 0
                if not own.recv(source=before):
                    return
            if silent * BEAT > PATIENCE:
                found = f"rank {before} gave no sign of life for {PATIENCE:.0f} s"
                lost(f"{found}, its machine or the link is gone; the same command resumes from the checkpoint")
                _abort(own, 1)

    thread = threading.Thread(target=run, daemon=True)

    def end() -> None:
        """Take leave of the next rank before MPI ends."""
        is_over.set()
        thread.join()
        farewells.append(own.isend(False, after))  # kept until it has arrived

    thread.start()
    atexit.register(end)


_joined: Ranks | None = None


def current() -> Ranks | None:
    """The ranks of the job that this process has joined; None if it runs alone."""
    return _joined


def launched_size() -> int:
    """The number of ranks that the launcher of this process has started; 0 if there was none."""
    return max((int(text) for name in SIZES if (text := os.environ.get(name, "")).isdecimal()), default=0)


def launched_number() -> int:
    """The rank of this process, as its launcher says."""
    return max((int(text) for name in NUMBERS if (text := os.environ.get(name, "")).isdecimal()), default=0)


def enter_job(lost: Callable[[str], None]) -> tuple[Any, Any]:
    """mpi4py's module MPI and the communicator of the job that a launcher has started; `lost` as for `watch`.

    Raises DeviceError if mpi4py or an MPI library is missing, or belongs to another launcher.
    """
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        found = f"found {launched_size()} ranks of an MPI job, but no mpi4py ({error})"
        raise DeviceError(f"{found}; `pip install 'plltool[mpi]'` installs it") from error
    comm = MPI.COMM_WORLD
    expected = launched_size()
    if comm.Get_size() != expected:
        found = f"MPI finds {comm.Get_size()} ranks, the launcher has started {expected}"
        raise DeviceError(f"{found}; are mpiexec and mpi4py of the same MPI?")
    if expected > 1 and MPI.Query_thread() == MPI.THREAD_MULTIPLE:
        watch(comm, lost)
    return MPI, comm


def join(lost: Callable[[str], None]) -> Ranks:
    """Join the job that a launcher has started; argument and errors as for `enter_job`."""
    global _joined
    MPI, comm = enter_job(lost)
    _joined = Ranks(comm, comm.Split_type(MPI.COMM_TYPE_SHARED), MPI.Exception)
    return _joined


class Line:
    """Messages between this rank and another one, with the methods of a `multiprocessing.connection.Connection`.

    For rank 0 the other one is a worker as well, see `plltool.processes.workers`, which serves further parents
    afterwards: it is then one of the `idle` again.
    """

    def __init__(self, comm: Any, other: int, idle: list[Line] | None = None):
        self._comm, self._other, self._idle = comm, other, [] if idle is None else idle

    def send(self, message: Any) -> None:
        self._comm.send((True, message), self._other)

    def recv(self) -> Any:
        """The next message. Raises EOFError where the other rank has called `close`."""
        is_message, message = self._comm.recv(source=self._other)
        if not is_message:
            raise EOFError
        return message

    def poll(self) -> bool:
        found: bool = self._comm.iprobe(source=self._other)
        return found

    def close(self) -> None:
        """End what the other rank does with the messages so far; it can be sent others afterwards."""
        self._comm.send((False, None), self._other)

    def end(self, is_busy: bool, error: type[BaseException] | None) -> None:
        """A rank cannot be killed alone, so its task ends at the next report, or when it is done."""
        if error is not None and not issubclass(error, (Exception, GeneratorExit)):
            return  # such as Ctrl-C: the job ends with this process
        if is_busy:
            self.send(STOP)
        self.close()
        with suppress(EOFError):  # what nobody has read must not reach the next parent
            while True:
                self.recv()
        self._idle.append(self)

    def wait(self) -> None:
        """It goes on."""

    @staticmethod
    def ready(lines: Sequence[Any]) -> Sequence[Any]:
        """Those of some lines that have a message, as soon as one has."""
        while not (found := [line for line in lines if line.poll()]):
            time.sleep(PAUSE)
        return found


class Seat(NamedTuple):
    """Where a rank of the crew works: its number among the ranks of its machine, how many there are, and its cores."""

    local: int
    n_local: int
    cores: int


class Crew:
    """The other ranks, as rank 0 sees them: their seats, from rank 1 on, and lines to those that are idle."""

    def __init__(self, comm: Any, seats: Sequence[Seat]):
        self._comm = comm
        self.seats = tuple(seats)
        self.idle: list[Line] = []
        self.idle += [Line(comm, number, self.idle) for number in range(1, len(seats) + 1)]

    def begin(self, target: str, number: int, environment: Mapping[str, str]) -> list[Line]:
        """Lines to idle ranks, each of which sets the variables and then calls a function with its end of the line.

        The function is named as "plltool.module:function". It returns when the line is closed. The rank then closes its
        end, after which nothing more comes.
        """
        lines = self.idle[:number]
        del self.idle[:number]
        for line in lines:
            line.send((target, dict(environment)))
        return lines

    @property
    def is_idle(self) -> bool:
        return len(self.idle) == len(self.seats)

    def dismiss(self) -> None:
        """Let the ranks end. One that still has a task would not hear of it: the job is aborted."""
        if not self.is_idle:
            self.abort(1)
        for line in self.idle:
            line.close()

    def abort(self, code: int) -> None:
        _abort(self._comm, code)


_crew: Crew | None = None


def crew() -> Crew | None:
    """The crew that this process hands its tasks to; None if it has none."""
    return _crew


def form(lost: Callable[[str], None]) -> Line | None:
    """Make a crew of the job, see `enter_job`; returns None on rank 0, and on the others the line to rank 0."""
    global _crew
    MPI, comm = enter_job(lost)
    is_worker = comm.Get_rank() > 0
    machine = comm.Split_type(MPI.COMM_TYPE_SHARED)
    workers = machine.Split(is_worker)  # those of this machine without rank 0
    seats = comm.gather(Seat(workers.Get_rank(), workers.Get_size(), available_cores()))
    if is_worker:
        return Line(comm, 0)
    _crew = Crew(comm, seats[1:])
    atexit.register(_crew.dismiss)  # before mpi4py's own, which waits for all ranks
    return None


def serve(line: Line) -> None:
    """Do what rank 0 says until it dismisses the crew, see `Crew.begin`."""
    with suppress(EOFError):
        while True:
            target, environment = line.recv()
            os.environ.update(environment)
            pkgutil.resolve_name(target)(line)
            line.close()
