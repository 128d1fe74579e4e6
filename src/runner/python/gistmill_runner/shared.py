"""Memory shared between a process and the one that waits for it.

`LevelState` says which request a server works on, so that its parent can answer for it if it dies. `GroupReport` takes
the results of a group attempt: a test may close or scribble on every descriptor, so nothing travels over one. Records
carry a length and a checksum and count only once the committed length covers them.
"""

import marshal
import mmap
import struct
from zlib import crc32 as _crc32

_marshal = marshal.dumps
_unmarshal = marshal.loads


class LevelState:
    """Flags of one server process: ready or not, the request in flight, the request that closed it."""

    _layout = struct.Struct("<BBq")
    IDLE, BUSY, CLOSING, TAKING = 0, 1, 2, 3

    def __init__(self, request):
        self.memory = mmap.mmap(-1, mmap.PAGESIZE)
        self._write(0, self.BUSY, request)

    def _write(self, ready, phase, request):
        self._layout.pack_into(self.memory, 0, ready, phase, request)

    def taking(self):
        """The server is about to read a request: if it dies, nobody knows how much of it went with it."""
        self._write(1, self.TAKING, 0)

    def begin(self, request):
        """The server starts work on `request`."""
        self._write(1, self.BUSY, request)

    def answered(self):
        """The server has answered what it worked on, and is ready for more."""
        self._write(1, self.IDLE, 0)

    def closing(self, request):
        """The server is about to exit because `request` says so; its parent answers."""
        self._write(1, self.CLOSING, request)

    def read(self):
        """(ready, phase, request)."""
        ready, phase, request = self._layout.unpack_from(self.memory, 0)
        return bool(ready), phase, request

    def forget(self):
        """Unmap it."""
        self.memory.close()


class GroupReport:
    """The results of one group attempt, written by the group process and read by the file process."""

    CAPACITY = 64 << 20
    _START = 64
    # Committed bytes, index of the running case or -1, its start (monotonic ns). Native layout: each is written in one
    # piece, while a standard layout ("<") would be written byte by byte under the eyes of the reader.
    _header = struct.Struct("@Qqq")
    _committed = struct.Struct("@Q")
    _number = struct.Struct("@q")
    _record = struct.Struct("<II")

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
        # The start is valid whenever the index is not -1: a reader in between must never see a new case with an old start.
        self._number.pack_into(self.memory, 8, -1)
        self._number.pack_into(self.memory, 16, start)
        self._number.pack_into(self.memory, 8, index)

    def running(self):
        """(index of the running case or -1, its start in monotonic nanoseconds)."""
        while True:
            (index,) = self._number.unpack_from(self.memory, 8)
            (start,) = self._number.unpack_from(self.memory, 16)
            if self._number.unpack_from(self.memory, 8)[0] == index:
                return index, start

    def append(self, record):
        """Add a record of plain values. Returns False, and adds nothing, when there is no room for it."""
        payload = _marshal(record)
        offset = self._START + self._used
        end = offset + 8 + len(payload)
        if end > self.CAPACITY:
            return False
        self._record.pack_into(self.memory, offset, len(payload), _crc32(payload))
        self.memory[offset + 8 : end] = payload
        self._used = end - self._START
        self._committed.pack_into(self.memory, 0, self._used)
        return True

    def records(self):
        """All records that were committed and are intact."""
        (self._used,) = self._committed.unpack_from(self.memory, 0)
        offset, end = self._START, min(self._START + self._used, self.CAPACITY)
        found = []
        while offset + 8 <= end:
            length, checksum = self._record.unpack_from(self.memory, offset)
            payload = self.memory[offset + 8 : offset + 8 + length]
            if len(payload) != length or _crc32(payload) != checksum:
                break
            found.append(_unmarshal(payload))
            offset += 8 + length
        return found
