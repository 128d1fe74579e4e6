"""Messages: between the driver and the keeper, and between the keeper and the processes that run foreign code.

Requests of the driver are a 4-byte big-endian length and JSON in UTF-8. Answers to it are single lines that carry the token
of the first request, the number and kind of the answer, and JSON:

    ``\\n@gistmill <token> <request> <kind> <length> <json>\\n``

The keeper alone reads and writes these, and alone knows the token. It talks to every other process over a socket of that
process's own: a message there is two lengths (2 and 4 bytes, big endian), a name and JSON. What arrives on such a socket is
passed on as bytes and never looked into by the keeper, which says itself what it is and whose.
"""

import json.encoder
import select
import struct
from os import close as _close
from os import read as _read
from os import write as _write

import _socket

_loads = json.JSONDecoder().decode
# The encoder behind `json.dumps`, made once: what a test does to the module does not reach it.
_make_encoder = json.encoder.c_make_encoder or json.encoder.py_make_encoder
_chunks = _make_encoder(None, None, json.encoder.encode_basestring_ascii, None, ":", ",", False, False, True)
_unpack_length = struct.Struct(">I").unpack
_lengths = struct.Struct(">HI")
_descriptor = struct.Struct("@i")
_ROOM = _socket.CMSG_SPACE(_descriptor.size)
# Bytes of the longest name and of the longest content of a message that the keeper takes from a process that runs foreign
# code: the memory of a report is a quarter of that.
_LONGEST_NAME = 32
_LONGEST_CONTENT = 256 << 20


class EndOfRequests(Exception):
    """The other side closed its end."""


class Misfit(Exception):
    """A message that no part of the runner can have sent."""


class Driver:
    """The two descriptors to the driver, and the token that marks what the keeper says."""

    def __init__(self, requests, answers):
        self.requests = requests
        self.answers = answers
        self.token = "-"

    def receive(self):
        """The next request, as bytes of JSON. Blocks; raises `EndOfRequests` when the driver has gone."""
        (length,) = _unpack_length(self._read_exactly(4))
        return self._read_exactly(length)

    def send(self, identifier, kind, content):
        """Write one answer, whole, to request `identifier`; `content` is JSON as bytes."""
        head = "\n@gistmill %s %d %s %d " % (self.token, identifier, kind, len(content))
        for part in (head.encode("ascii"), content, b"\n"):
            view = memoryview(part)
            while view:
                view = view[_write(self.answers, view) :]

    def _read_exactly(self, size):
        parts = []
        while size:
            part = _read(self.requests, min(size, 1 << 20))
            if not part:
                raise EndOfRequests
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def loads(content):
    """JSON of the driver's or the keeper's."""
    return _loads(content.decode("utf-8"))


def message(name, content):
    """A message as it travels between the keeper and another process."""
    return _lengths.pack(len(name), len(content)) + name.encode("ascii") + content


class Link:
    """The keeper's end of the socket to another process. What comes from it is hostile."""

    # Seconds that the other process may take to read what it was sent.
    PATIENCE = 30

    def __init__(self, socket):
        self.socket = socket
        self.socket.setblocking(False)
        self.ended = False
        self._buffer = bytearray()

    def fileno(self):
        """For `poll`."""
        return self.socket.fileno()

    def send(self, name, content, descriptor=None):
        """Send a message, perhaps with a descriptor. One that does not take it will say no more, which its waiter sees."""
        data, more = memoryview(message(name, content)), []
        if descriptor is not None:
            more = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, _descriptor.pack(descriptor))]
        room = select.poll()
        room.register(self.socket.fileno(), select.POLLOUT)
        while data and room.poll(self.PATIENCE * 1000):
            try:
                data, more = data[self.socket.sendmsg([data], more) :], []
            except BlockingIOError:
                continue
            except OSError:
                return

    def pull(self):
        """Take in what has arrived, without waiting for more."""
        if self.ended:
            return
        try:
            data = self.socket.recv(1 << 20)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if data:
            self._buffer += data
        else:
            self.ended = True

    def take(self):
        """The next whole message as (name, content), or None. Raises `Misfit`."""
        if len(self._buffer) < _lengths.size:
            return None
        name, content = _lengths.unpack_from(self._buffer)
        if name > _LONGEST_NAME or content > _LONGEST_CONTENT:
            self.silence()
            raise Misfit("a message is too long")
        end = _lengths.size + name + content
        if len(self._buffer) < end:
            return None
        text = bytes(self._buffer[_lengths.size : end])
        del self._buffer[:end]
        return text[:name].decode("ascii", "replace"), text[name:]

    def silence(self):
        """Nothing more is taken from it."""
        self.ended = True
        self._buffer.clear()

    def close(self):
        """The other process is gone."""
        self.socket.close()


def pair():
    """A new socket for another process: the keeper's `Link`, and the other end."""
    ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
    return Link(ours), theirs


class Channel:
    """The end of such a socket in the process that it belongs to."""

    def __init__(self, descriptor):
        self._socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, descriptor)

    def receive(self):
        """The next request, as a dictionary whose `op` is the name of the message; the descriptor that came along is
        `descriptor`. Blocks; raises `EndOfRequests` when the keeper has gone."""
        data, more, _, _ = self._socket.recvmsg(_lengths.size, _ROOM, _socket.MSG_CMSG_CLOEXEC)
        if not data:
            raise EndOfRequests
        name, content = _lengths.unpack(data + self._read_exactly(_lengths.size - len(data)))
        name = self._read_exactly(name).decode("ascii")
        request = loads(self._read_exactly(content))
        request["op"] = name
        for level, kind, one in more:
            if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
                (request["descriptor"],) = _descriptor.unpack(one)
        return request

    def send(self, kind, **fields):
        """Send one message, whole."""
        self._socket.sendall(message(kind, encode(fields)))

    def close(self):
        """This process is not the channel's any more."""
        _close(self.detach())

    def detach(self):
        """Gives the descriptor away."""
        return self._socket.detach()

    def _read_exactly(self, size):
        parts = []
        while size:
            part = self._socket.recv(min(size, 1 << 20))
            if not part:
                raise EndOfRequests
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def encode(value):
    """Plain values as JSON that every reader can take: ASCII, without lone surrogates."""
    text = "".join(_chunks(value, 0))
    if "\\ud" in text:
        text = "".join(_chunks(_cleaned(value), 0))
    return text.encode("ascii")


def _cleaned(value):
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {_cleaned(key): _cleaned(one) for key, one in value.items()}
    return [_cleaned(one) for one in value] if isinstance(value, (list, tuple)) else value


def clean(text):
    """`text` as something that every JSON reader can take, and whether that lost anything.

    Lone surrogates (undecodable bytes of file names, mostly) become backslash escapes.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode("utf-8"), True
    return text, False


def printable(text):
    """`text` without lone surrogates."""
    return clean(text)[0]
