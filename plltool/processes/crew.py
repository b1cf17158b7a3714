"""The ranks of an MPI job as a crew: rank 0 runs the command, and hands out its tasks to the others.

Tasks are those of `plltool.processes.workers`: climbs from start trees, bootstrap replicates,
excursions of the ultrafast bootstrap, genes, runs of chains.
Nothing is divided in them, so a rank holds all patterns of a task and never waits for another.
"""

from __future__ import annotations

import atexit
import os
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from plltool.hardware import available_cores
from plltool.processes.ranks import enter_job


class Line:
    """Messages between this rank and another one, with the methods of a `multiprocessing.connection.Connection`."""

    def __init__(self, comm: Any, other: int):
        self._comm = comm
        self._other = other

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
        self.idle = [Line(comm, number) for number in range(1, len(seats) + 1)]

    def begin(self, target: str, number: int, environment: Mapping[str, str]) -> list[Line]:
        """Lines to idle ranks, each of which sets the variables and then calls a function with its end of the line.

        The function is named as "plltool.module:function". It returns when the line is closed. The rank then closes its
        end, after which nothing more comes; whoever has read that gives the line back to `idle`.
        """
        lines, self.idle = self.idle[:number], self.idle[number:]
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
        self._comm.Abort(code)


_crew: Crew | None = None


def crew() -> Crew | None:
    """The crew that this process hands its tasks to; None if it has none."""
    return _crew


def form(lost: Callable[[str], None]) -> Line | None:
    """Make a crew of the job that a launcher has started; on rank 0 None, on the others the line to rank 0.

    The argument and errors are as for `enter_job`.
    """
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
