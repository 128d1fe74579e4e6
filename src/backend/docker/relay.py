"""A service of the driver at the loopback of a job in a container. Stands in front of `inside.py`, as part of it.

Connections of the job travel over the stream of the container. A piece is a kind (1 byte), the number of a connection (4
bytes, big endian) and bytes; to the driver it is a frame of the kind n, from the driver it stands behind its length.

    o  a new connection (to the driver)
    d  what was sent
    a  so many of the bytes that were sent have been passed on (4 bytes, big endian)
    h  nothing more will be sent in this direction
    r  the job broke the connection off (to the driver)
    z  the driver is done with the connection, and its number is forgotten (from the driver)

Neither side sends more than WINDOW bytes of a connection that the other has not passed on yet, so that nothing piles up, and
a connection that stands still stops no other.
"""

import select
import socket
import struct

MOST_CONNECTIONS = 64
WINDOW = 256 << 10
PIECE = 64 << 10


class Line:
    """One connection of the job."""

    def __init__(self, number, stream):
        self.number, self.stream = number, stream
        # Bytes that may still go to the driver.
        self.credit = WINDOW
        # From the driver, for the job.
        self.unsent = bytearray()
        self.job_done = self.service_done = self.closed_for_job = self.over = False

    def events(self):
        wanted = select.POLLIN if self.credit and not self.job_done else 0
        return wanted | (select.POLLOUT if self.unsent else 0)


class Relay:
    """Listens in the container and passes on what connections say. `emit` writes a frame."""

    def __init__(self, port, emit, watched):
        self.emit, self.watched = emit, watched
        self.lines, self.by_descriptor, self.count = {}, {}, 0
        self.arrived = bytearray()
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", port))
        self.listener.listen(128)
        self.listener.setblocking(False)
        self.watched.register(self.listener, select.POLLIN)

    def say(self, kind, line, data=b""):
        self.emit(b"n", struct.pack(">cI", kind, line.number) + data)

    def owns(self, descriptor):
        return descriptor == self.listener.fileno() or descriptor in self.by_descriptor

    def handle(self, descriptor):
        """Goes on with a descriptor that is ready."""
        line = self.by_descriptor.get(descriptor)
        if line is None:
            self.accept()
            return
        try:
            if line.credit and not line.job_done:
                self.from_job(line)
            if line.unsent:
                self.to_job(line)
        except BlockingIOError:
            pass
        except OSError:
            self.break_off(line)
        self.settle(line)

    def accept(self):
        try:
            stream, _ = self.listener.accept()
        except OSError:
            return
        stream.setblocking(False)
        self.count += 1
        line = self.lines[self.count] = Line(self.count, stream)
        self.by_descriptor[stream.fileno()] = line
        self.say(b"o", line)
        self.settle(line)
        if len(self.lines) >= MOST_CONNECTIONS:
            self.watched.unregister(self.listener)

    def from_job(self, line):
        try:
            data = line.stream.recv(min(PIECE, line.credit))
        except BlockingIOError:
            return
        if data:
            line.credit -= len(data)
            self.say(b"d", line, data)
        else:
            line.job_done = True
            self.say(b"h", line)

    def to_job(self, line):
        count = line.stream.send(memoryview(line.unsent)[:PIECE])
        del line.unsent[:count]
        self.say(b"a", line, struct.pack(">I", count))

    def break_off(self, line):
        line.job_done = line.closed_for_job = True
        line.unsent = bytearray()
        self.say(b"r", line)

    def settle(self, line):
        """After every step: closes what is done, and waits for the right events."""
        if line.unsent:
            pass
        elif line.over:
            self.forget(line)
            return
        elif line.service_done and not line.closed_for_job:
            line.closed_for_job = True
            try:
                line.stream.shutdown(socket.SHUT_WR)
            except OSError:
                pass
        # A connection that nothing is wanted of would still report its end, again and again.
        try:
            self.watched.unregister(line.stream)
        except KeyError:
            pass
        if line.events():
            self.watched.register(line.stream, line.events())

    def forget(self, line):
        try:
            self.watched.unregister(line.stream)
        except KeyError:
            pass
        full = len(self.lines) >= MOST_CONNECTIONS
        del self.lines[line.number], self.by_descriptor[line.stream.fileno()]
        line.stream.close()
        if full:
            self.watched.register(self.listener, select.POLLIN)

    def take(self, data):
        """Takes in what the driver sent, however it is cut."""
        self.arrived += data
        while len(self.arrived) >= 4:
            end = 4 + struct.unpack_from(">I", self.arrived)[0]
            if len(self.arrived) < end:
                return
            kind, number = struct.unpack_from(">cI", self.arrived, 4)
            content = bytes(self.arrived[9:end])
            del self.arrived[:end]
            if number in self.lines:
                self.from_driver(kind, self.lines[number], content)

    def from_driver(self, kind, line, content):
        if kind == b"d" and not line.closed_for_job:
            line.unsent += content
        elif kind == b"a":
            line.credit += struct.unpack(">I", content)[0]
        elif kind == b"h":
            line.service_done = True
        elif kind == b"z":
            line.over = True
        self.settle(line)


