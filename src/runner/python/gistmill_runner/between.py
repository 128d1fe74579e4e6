"""What other threads print between the phases of a case, when pytest does not capture: it goes to the next phase.

A server that is stopped at the end of a test prints its last line where the test is being called, torn down, or between the
two. Where it is seen would be a matter of luck.
"""

from _thread import get_ident


class Outside:
    """The stream that is in place between phases: what else is asked of it, it asks the one that had the place."""

    def __init__(self, stream, captured):
        """`captured` is where a phase writes."""
        self.stream = stream
        self.captured = captured
        self.own = get_ident()

    def write(self, text):
        return (self.stream if get_ident() == self.own else self.captured).write(text)

    def writelines(self, lines):
        for line in lines:
            self.write(line)

    def __getattr__(self, name):
        return getattr(self.stream, name)

    @property
    def __class__(self):
        return type(self.stream)


def captures(config):
    """What pytest captures standard output and standard error with; None for what it does not capture."""
    manager = config.pluginmanager.getplugin("capturemanager")
    capture = getattr(manager, "_global_capturing", None)
    return getattr(capture, "out", None), getattr(capture, "err", None)


def route(config):
    """From now on, in this process: the calling thread is the one that runs tests."""
    for stream in captures(config):
        switched = getattr(stream, "syscapture", stream)
        old, captured = getattr(switched, "_old", None), getattr(stream, "tmpfile", None)
        if captured is not None and hasattr(old, "write"):
            switched._old = Outside(old, captured)
