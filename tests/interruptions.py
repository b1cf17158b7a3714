"""How tests end a run before it is over."""

from contextlib import suppress

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


def assert_pieces_make(whole, sample, each):
    """A run of chains that is killed at every event of which the number divides by `each` ends as the whole one does.

    `sample` is called with a listener until the run is over, and goes on from what it has saved.
    """
    heard = []

    def kill(event):
        heard.append(event.round)
        if len(heard) % each == 0:
            raise KeyboardInterrupt

    for _ in range(30):
        with suppress(KeyboardInterrupt):
            pieces = sample(kill)
            break
    assert len(heard) > 4
    assert (pieces.samples.numbers() == whole.samples.numbers()).all()
    trees = [{name: text for name, text in own.texts().items() if name.endswith(".t")} for own in (pieces, whole)]
    assert trees[0] == trees[1]
    assert pieces.acceptance == whole.acceptance


def lost(cl):
    """What NVIDIA's driver says of a device that has fallen off the bus."""
    return cl.LogicError("clEnqueueNDRangeKernel failed: INVALID_COMMAND_QUEUE")


def exhausted(cl):
    return cl.MemoryError("clEnqueueNDRangeKernel failed: MEM_OBJECT_ALLOCATION_FAILURE")
