"""Framed messages between the driver and whichever process of the fork tree is on top.

Requests are a 4-byte big-endian length and JSON in UTF-8, read with ``os.read`` and never ahead, because several
processes take turns on one pipe; a process waits for input before it reads, so that one that is killed while it is idle
takes nothing away from the next. Answers are single lines that carry the token of the first request, so that whatever
else lands on the pipe can be skipped:

    ``\\n@gistmill <token> <length> <json>\\n``
"""

import json.encoder
import select
import struct
from os import read as _read
from os import write as _write

_poll, _POLLIN = select.poll, select.POLLIN
_loads = json.JSONDecoder().decode
# The encoder behind `json.dumps`, made once: what a test does to the module does not reach it.
_make_encoder = json.encoder.c_make_encoder or json.encoder.py_make_encoder
_chunks = _make_encoder(None, None, json.encoder.encode_basestring_ascii, None, ":", ",", False, False, True)
_unpack_length = struct.Struct(">I").unpack


class EndOfRequests(Exception):
    """The driver closed its end of the request pipe."""


class Channel:
    """The two descriptors to the driver, and the token that marks what the runner itself says."""

    def __init__(self, requests, answers):
        self.requests = requests
        self.answers = answers
        self.token = "-"

    def receive(self, taking=None):
        """The next request, as a dictionary. Blocks; raises `EndOfRequests` when the driver has gone.

        `taking` is called when there is something to read, before any of it is read.
        """
        ready = _poll()
        ready.register(self.requests, _POLLIN)
        ready.poll()
        if taking is not None:
            taking()
        (length,) = _unpack_length(self._read_exactly(4))
        return _loads(self._read_exactly(length).decode("utf-8"))

    def send(self, identifier, kind, **fields):
        """Write one answer, whole, to request `identifier`."""
        fields["id"] = identifier
        fields["type"] = kind
        body = encode(fields)
        line = b"\n@gistmill %s %d %s\n" % (self.token.encode("ascii"), len(body), body)
        view = memoryview(line)
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
