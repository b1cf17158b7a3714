"""How tests end a run before it is over."""


class PowerCut(Exception):  # noqa: N818 - none is
    """What a listener raises in place of StopSearch: nothing hears of it, so that only what was saved is left."""


def stop_after(n_events, error=PowerCut):
    """A listener that raises an error at an event."""
    heard = []

    def listen(event):
        heard.append(event)
        if len(heard) == n_events:
            raise error

    return listen
