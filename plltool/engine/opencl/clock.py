"""The run time of kernels, by the driver's own clock."""

from __future__ import annotations

from typing import Any

from plltool.engine.counters import Counters

NANOSECOND = 1e-9


class KernelClock:
    """Adds the run times of kernels to the counters' `device_seconds`; does nothing where that is None.

    counters : of an engine whose queue was made with PROFILING_ENABLE
    """

    def __init__(self, counters: Counters):
        self._counters = counters
        self._running: list[Any] = []

    def watch(self, event: Any) -> None:
        """Remember the pyopencl.Event of a kernel that was enqueued; does not wait for it."""
        if self._counters.device_seconds is not None:
            self._running.append(event)

    def settle(self) -> None:
        """Add the kernels watched so far. All have ended, because something later in the queue has."""
        if self._counters.device_seconds is not None:
            ticks = sum(event.profile.end - event.profile.start for event in self._running)
            self._counters.device_seconds += ticks * NANOSECOND
            self._running.clear()
