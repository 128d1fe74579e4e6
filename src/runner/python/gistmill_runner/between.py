"""What other threads print between the phases of a case, when pytest does not capture: it goes to the next phase.

A server that is stopped at the end of a test prints its last line where the test is being called, torn down, or between the
two. Where it is seen would be a matter of luck. And pytest takes what was captured by going to the start of its file, reading
and emptying it: what another thread writes meanwhile is written over, or lost.
"""

from _thread import _count, get_ident
from os import fstat, pread


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


class Taken:
    """Takes what was captured since the last time without moving the place at which others write."""

    def __init__(self, capture):
        """`capture` is pytest's, of a descriptor or of a stream alone; its file has what is captured."""
        self.file, self.original = capture.tmpfile, capture.snap
        self.is_in_memory = hasattr(self.file, "getvalue")
        self.bytes = 0

    def snap(self):
        is_alone = _count() == 0
        if is_alone and self.bytes == 0:
            return self.original()
        text = self._rest()
        self.bytes += len(text)
        if is_alone:
            self.file.seek(0)
            self.file.truncate()
            self.bytes = 0
        return text.decode("utf-8", "replace")

    def _rest(self):
        if self.is_in_memory:
            return self.file.buffer.getvalue()[self.bytes :]
        descriptor = self.file.fileno()
        return pread(descriptor, max(0, fstat(descriptor).st_size - self.bytes), self.bytes)


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
        if hasattr(captured, "buffer") and hasattr(stream, "snap"):
            stream.snap = Taken(stream).snap
        if captured is not None and hasattr(old, "write"):
            switched._old = Outside(old, captured)
