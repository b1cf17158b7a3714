"""How tests end a run before it is over."""

from plltool.progress import StopSearch


class PowerCut(Exception):  # noqa: N818 - none is
    """What a listener raises in place of StopSearch: nothing hears of it, so that only what was saved is left."""


class Stop:
    """A listener that notes what is `heard`, and raises an error at event number `at`, or at every event."""

    def __init__(self, at=None, error=StopSearch):
        self.heard = []
        self._at, self._error = at, error

    def __call__(self, event):
        self.heard.append(event)
        if self._at in (None, len(self.heard)):
            raise self._error


def lost(cl):
    """What NVIDIA's driver says of a device that has fallen off the bus."""
    return cl.LogicError("clEnqueueNDRangeKernel failed: INVALID_COMMAND_QUEUE")


def exhausted(cl):
    return cl.MemoryError("clEnqueueNDRangeKernel failed: MEM_OBJECT_ALLOCATION_FAILURE")
