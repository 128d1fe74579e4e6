"""The stack of server processes: each is a fork of the one below and answers requests until it is closed.

    interpreter → directory → file → (group attempts, see `group_run`)

Only the process on top reads requests. The one below waits for its end, kills it when it is late, and answers for it
when it dies.
"""

import sys
import traceback
import warnings
from os import _exit, fork, listdir
from time import monotonic_ns

from . import children
from .protocol import EndOfRequests, printable
from .shared import Flight, LevelState, Place

_format_exc = traceback.format_exc
_listdir = listdir
EXIT_INTERNAL_ERROR = 70
EXIT_LOST_REQUEST = 71
# How much later than its own watchers the interpreter takes a discovery for hanging.
_LATER_NS = 10_000_000_000


class Forked:
    """What `Server.serve` returns in a forked child: the request that it was forked for."""

    def __init__(self, request, work):
        self.request = request
        self.work = work


class Server:
    """One process of the stack, and what it inherits to the next."""

    def __init__(self, channel):
        self.channel = channel
        self.level = "interpreter"
        self.flight = Flight()
        self.state = None
        self.place = None
        self.signals = None
        self.lost = None
        self.hello = None
        self.isolation = None
        self.reseed = None
        self.tracer = None
        self.watcher = None
        self.opened = None
        self.raw_output = None

    def serve(self, handlers):
        """Answer requests until closed (this process then exits) or until a handler forked: returns its `Forked`.

        `handlers` maps an operation to a function that takes the request and returns a `Forked` in the child, and
        None in the server itself.
        """
        self.signals = children.SignalState()
        while True:
            try:
                request = self.channel.receive(self.flight.taking)
            except EndOfRequests:
                if self.state is not None:
                    self.state.closing(-1)
                _exit(0)
            identifier, operation = request["id"], request["op"]
            self.flight.begin(identifier)
            lost, self.lost = self.lost, None
            if operation in handlers:
                forked = handlers[operation](request)
                if forked is not None:
                    return forked
            elif lost is not None:
                self.channel.send(identifier, "died", **lost)
            elif operation == "close":
                self.close(identifier)
            else:
                self.channel.send(identifier, "refused", reason="%s: not possible at level %s" % (operation, self.level))
            self.answered()

    def answered(self):
        """Note that the request in flight has its answer."""
        if self.state is not None:
            self.state.ready()
        self.flight.idle()

    def close(self, identifier):
        """Exit; the parent answers, and for the interpreter nobody but itself can."""
        if self.state is None:
            self.channel.send(identifier, "closed")
        else:
            self.state.closing(identifier)
        _exit(0)

    def finish(self):
        """Exit after an answer that ends this level (a failure, or a discovery)."""
        self.state.closing(-1)
        _exit(0)

    def abandon(self):
        """Exit, and so does all of the stack: part of a request is gone, and with it the place where the next one starts."""
        self.flight.taking()
        _exit(EXIT_LOST_REQUEST)

    def fail_internally(self, identifier):
        """Report the exception being handled as the runner's own, and exit."""
        if self.flight.read() == Flight.TAKING:
            self.abandon()
        self.channel.send(identifier, "internal_error", level=self.level, traceback=printable(_format_exc()))
        if self.state is not None:
            self.state.closing(-1)
        _exit(EXIT_INTERNAL_ERROR)

    def guarded(self, identifier, function, *arguments):
        """Call a function of the runner itself; whatever it raises is an internal error."""
        try:
            return function(*arguments)
        except BaseException:
            self.fail_internally(identifier)

    def fork(self):
        """Fork with the standard streams flushed. Returns the child's process ID, or 0 in the child."""
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                pass
        if len(_listdir("/proc/self/task")) > 1:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return fork()
        return fork()

    def fork_level(self, level, request):
        """Fork the server of the next level. True in it; the parent returns False once it has ended."""
        identifier = request["id"]
        timeout = request.get("timeout_ms")
        limit_ns = None if timeout is None else int(timeout) * 1_000_000
        deadline = None if timeout is None else monotonic_ns() + limit_ns
        self.place = place = Place() if level == "discover" else None
        spared = set() if children.none_left() else children.living()
        state = LevelState()
        random_state = self.reseed.before_fork()
        pid = self.fork()
        if pid == 0:
            children.die_with_parent()
            children.adopt_orphans()
            self.signals.restore()
            self.reseed.after_fork(random_state)
            self.level, self.state, self.lost = level, state, None
            if self.isolation is not None:
                self.guarded(identifier, self.isolation.enter_level)
            return True

        def next_deadline():
            if place is not None and limit_ns is not None:
                return place.deadline(limit_ns + _LATER_NS)
            return None if state.read()[0] else deadline

        status = children.wait(pid, next_deadline, may_stop=False)
        late = status is None
        if late:
            status = children.kill_and_wait(pid)
        _, closing = state.read()
        state.forget()
        if not children.none_left():
            children.kill_leftovers(spared)
        if self.isolation is not None:
            self.isolation.discard_level(pid)
        if closing != LevelState.OPEN:
            if closing >= 0:
                self.channel.send(closing, "closed")
        elif late:
            self.channel.send(identifier, "timed_out", level=level, place=place and place.path())
        else:
            # Of the dead server, or of one above it that was killed with it.
            in_flight = self.flight.read()
            if in_flight == Flight.TAKING:
                self.abandon()
            self.lost = {"level": level, "exit": children.exit_of(status), "place": place and place.path()}
            if in_flight != Flight.IDLE:
                self.channel.send(in_flight, "died", **self.lost)
        return False
