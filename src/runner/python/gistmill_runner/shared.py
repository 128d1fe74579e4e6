"""Memory shared between a process and the one that waits for it.

`GroupReport` takes the results of a group attempt: a test may close or scribble on every descriptor, so nothing travels over
one. Records count only once the committed length covers them. What a test wrote over them is not looked into here: the driver
reads it, and takes nothing in it for granted. `Place` says what is being imported.
"""

import mmap
import os
import struct
from time import monotonic_ns

from .protocol import encode

# Native layout: each is written in one piece, while a standard layout ("<") would be written byte by byte under the
# eyes of the reader.
_number = struct.Struct("@q")


class Place:
    """What a discovery imports: a test file or a conftest, by its path in the tree, and since when."""

    LONGEST = 8192

    def __init__(self):
        self.memory = mmap.mmap(-1, 16 + self.LONGEST)
        self.begins("")

    def begins(self, path):
        """`path` is about to be imported; an empty one for what pytest itself does in between."""
        name = os.fsencode(path)[: self.LONGEST]
        _number.pack_into(self.memory, 0, monotonic_ns())
        _number.pack_into(self.memory, 8, 0)
        self.memory[16 : 16 + len(name)] = name
        _number.pack_into(self.memory, 8, len(name))

    def path(self):
        """What is being imported, or an empty text."""
        return os.fsdecode(self.memory[16 : 16 + _number.unpack_from(self.memory, 8)[0]])

    def deadline(self, limit_ns):
        """When it has taken too long, in monotonic nanoseconds."""
        return _number.unpack_from(self.memory, 0)[0] + limit_ns


class GroupReport:
    """The results of one group attempt, written by the group process and read by the file process."""

    CAPACITY = 64 << 20
    _START = 64
    # Committed bytes, index of the running case or -1, its start (monotonic ns).
    _header = struct.Struct("@Qqq")
    _committed = struct.Struct("@Q")

    def __init__(self):
        self.memory = mmap.mmap(-1, self.CAPACITY)
        self._used = 0

    def reset(self):
        """Forget everything; before a group is forked."""
        if self._used > (1 << 20):
            self.memory.madvise(mmap.MADV_REMOVE, 0, self.CAPACITY)
        self._used = 0
        self._header.pack_into(self.memory, 0, 0, -1, 0)

    def case_starts(self, index, start):
        """Case `index` starts at monotonic nanosecond `start`; -1 for none."""
        # The start is valid whenever the index is not -1: a reader in between must never see a new case with an old
        # start.
        _number.pack_into(self.memory, 8, -1)
        _number.pack_into(self.memory, 16, start)
        _number.pack_into(self.memory, 8, index)

    def running(self):
        """(index of the running case or -1, its start in monotonic nanoseconds)."""
        while True:
            (index,) = _number.unpack_from(self.memory, 8)
            (start,) = _number.unpack_from(self.memory, 16)
            if _number.unpack_from(self.memory, 8)[0] == index:
                return index, start

    def append(self, kind, value):
        """Add a record of plain values, as a line of JSON. Returns False, and adds nothing, when there is no room."""
        line = encode([kind, value]) + b"\n"
        offset = self._START + self._used
        end = offset + len(line)
        if end > self.CAPACITY:
            return False
        self.memory[offset:end] = line
        self._used = end - self._START
        self._committed.pack_into(self.memory, 0, self._used)
        return True

    def text(self):
        """All lines that were committed, or None when they are no printable ASCII, and therefore not the runner's."""
        (committed,) = self._committed.unpack_from(self.memory, 0)
        end = min(self._START + committed, self.CAPACITY)
        self._used = end - self._START
        try:
            text = self.memory[self._START : end].decode("ascii")
        except UnicodeDecodeError:
            return None
        return text if all(line.isprintable() for line in text.split("\n")) else None
