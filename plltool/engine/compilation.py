"""The time in which kernels are compiled: a run says so once, and it does not count towards a limit of time."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

ACTIVITY = "activity"  # an attribute of log records: what starts now; empty if what was before goes on
NOTICEABLE = 1.0  # seconds from which on a line tells of them

_log = logging.getLogger("plltool")


class _Clock:
    """Seconds in which this process has compiled, and whether a line has told of them."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.told = False


CLOCK = _Clock()


@contextmanager
def compiling() -> Iterator[None]:
    """Within, kernels are compiled, or taken from a cache."""
    _log.debug("now: compiling kernels", extra={ACTIVITY: "compiling kernels"})
    began = perf_counter()
    try:
        yield
    finally:
        CLOCK.seconds += perf_counter() - began
        _log.debug("now: as before", extra={ACTIVITY: ""})
    if CLOCK.seconds >= NOTICEABLE and not CLOCK.told:
        CLOCK.told = True
        _log.info("kernels are compiled for this kind of data; later runs take them from a cache")
