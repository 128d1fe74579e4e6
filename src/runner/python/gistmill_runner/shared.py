"""Memory shared between a process and the one that waits for it.

`Flight` says which request the whole stack works on, `LevelState` how far one of its servers has come: their parents answer
for the dead. `GroupReport` takes the results of a group attempt: a test may close or scribble on every descriptor, so nothing
travels over one. Records carry a length and a checksum and count only once the committed length covers them.
"""

import marshal
import mmap
import struct
from zlib import crc32 as _crc32

_marshal = marshal.dumps
_unmarshal = marshal.loads
# Native layout: each is written in one piece, while a standard layout ("<") would be written byte by byte under the
# eyes of the reader.
_number = struct.Struct("@q")


class Flight:
    """The request in flight, written by whichever process of the stack is on top."""

    IDLE, TAKING = -1, -2

    def __init__(self):
        self.memory = mmap.mmap(-1, mmap.PAGESIZE)
        self.idle()

    def idle(self):
        """The last request has its answer."""
        _number.pack_into(self.memory, 0, self.IDLE)

    def taking(self):
        """A request is about to be read: if its reader dies, nobody knows how much of it went with it."""
        _number.pack_into(self.memory, 0, self.TAKING)

    def begin(self, request):
        """Request `request` was read, and has no answer yet."""
        _number.pack_into(self.memory, 0, request)

    def read(self):
        """`IDLE`, `TAKING`, or the request in flight."""
        return _number.unpack_from(self.memory, 0)[0]


class LevelState:
    """Flags of one server process: ready or not, and the request that closed it."""

    OPEN = -2

    def __init__(self):
        self.memory = mmap.mmap(-1, mmap.PAGESIZE)
        _number.pack_into(self.memory, 8, self.OPEN)

    def ready(self):
        """The server has answered the request that it was forked for."""
        _number.pack_into(self.memory, 0, 1)

    def closing(self, request):
        """The server is about to exit because `request` says so, and its parent answers; -1 when nobody has to."""
        _number.pack_into(self.memory, 8, request)

    def read(self):
        """(ready, the request that closes it or `OPEN`)."""
        ready, closing = (_number.unpack_from(self.memory, place)[0] for place in (0, 8))
        return bool(ready), closing

    def forget(self):
        """Unmap it."""
        self.memory.close()


class GroupReport:
    """The results of one group attempt, written by the group process and read by the file process."""

    CAPACITY = 64 << 20
    _START = 64
    # Committed bytes, index of the running case or -1, its start (monotonic ns).
    _header = struct.Struct("@Qqq")
    _committed = struct.Struct("@Q")
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
