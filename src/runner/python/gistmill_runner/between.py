"""What other threads print between the phases of a case, when pytest does not capture: it goes to the next phase.

A server that is stopped at the end of a test prints its last line where the test is being called, torn down, or between the
two. Where it is seen would be a matter of luck.
"""

import io
from _thread import get_ident


class Outside(io.TextIOWrapper):
    """The stream that is in place between phases."""

    def __init__(self, stream, captured):
        """`stream` has the place now, and `captured` is where a phase writes."""
        stream.flush()
        super().__init__(stream.buffer, stream.encoding, stream.errors, write_through=True)
        self.stream = stream  # it would close the buffer
        self.captured = captured
        self.own = get_ident()

    def write(self, text):
        if get_ident() != self.own:
            return self.captured.write(text)
        return super().write(text)


def route(config):
    """From now on, in this process: the calling thread is the one that runs tests."""
    manager = config.pluginmanager.getplugin("capturemanager")
    capture = getattr(manager, "_global_capturing", None)
    for stream in (getattr(capture, "out", None), getattr(capture, "err", None)):
        switched = getattr(stream, "syscapture", stream)
        old, captured = getattr(switched, "_old", None), getattr(stream, "tmpfile", None)
        if captured is not None and hasattr(old, "buffer"):
            switched._old = Outside(old, captured)
