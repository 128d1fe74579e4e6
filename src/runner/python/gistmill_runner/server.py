"""The stack of server processes: each is a fork of the one below, and answers the keeper until that ends it.

    interpreter → directory → file → (group attempts, see `group_run`)

Each has a socket of its own to the keeper, and no other way out. The process below one waits for its end, ends what it left
behind, and says how it ended. From when a process serves, its memory is out of reach for those above it.
"""

import os
import sys
import traceback
import warnings
from os import _exit, fork, listdir
from signal import pause
from time import monotonic_ns

from . import children
from .isolate import hide_memory
from .protocol import Channel, EndOfRequests, printable
from .shared import Place

_format_exc = traceback.format_exc
_listdir, _chdir, _close, _getcwd = listdir, os.chdir, os.close, os.getcwd
_pause = pause
EXIT_INTERNAL_ERROR = 70
# How much later than its own watchers the interpreter takes a discovery for hanging.
_LATER_NS = 10_000_000_000


class Server:
    """One process of the stack, and what it inherits to the next."""

    def __init__(self, channel):
        self.channel = channel
        self.isolated = False
        self.here = None
        self.place = None
        self.signals = None
        self.hello = None
        self.reseed = None
        self.tracer = None
        self.watcher = None
        self.opened = None
        self.raw_output = None

    def serve(self, handlers):
        """Answer requests until this process is ended, or returns in a forked child: the first request of a level, or what
        a handler gave.

        `handlers` maps an operation to a function that takes the request and returns something in a forked child, and None
        in the server itself.
        """
        self.signals = children.SignalState()
        while True:
            try:
                request = self.channel.receive()
            except EndOfRequests:
                _exit(0)
            if request["op"] == "fork":
                forked = self._fork_level(request)
            else:
                forked = handlers[request["op"]](request)
            if forked is not None:
                return forked

    def ready(self):
        """All foreign code of this level has run: remember where, and let none above it look in here."""
        try:
            self.here = _getcwd()
        except OSError:
            self.here = None  # it is not there any more
        hide_memory()

    def go_here(self):
        """In a fork: what is mounted at the working directory may be another overlay now."""
        if self.isolated and self.here is not None:
            try:
                _chdir(self.here)
            except OSError:
                pass

    def finish(self):
        """Wait to be ended, after an answer that ends this level (a failure, or a discovery)."""
        while True:
            _pause()

    def fail_internally(self):
        """Report the exception being handled as the runner's own, and wait to be ended."""
        self.channel.send("broken", traceback=printable(_format_exc()))
        self.finish()

    def guarded(self, function, *arguments):
        """Call a function of the runner itself; whatever it raises is an internal error."""
        try:
            return function(*arguments)
        except BaseException:
            self.fail_internally()

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

    def _fork_level(self, request):
        """Fork the server of the next level: its first request in it, and None here, once it has ended."""
        descriptor, limit = request["descriptor"], request["limit_ms"]
        self.place = place = Place() if request["level"] == "discover" else None
        spared = set() if children.none_left() else children.living()
        random_state = self.reseed.before_fork()
        pid = self.fork()
        if pid == 0:
            children.die_with_parent()
            children.adopt_orphans()
            self.signals.restore()
            self.reseed.after_fork(random_state)
            self.channel.close()
            self.channel = Channel(descriptor)
            hide_memory(False)
            self.go_here()
            return self.channel.receive()
        _close(descriptor)
        self.channel.send("forked", process=pid)

        def next_deadline():
            # The keeper watches the time of all others.
            return None if place is None or limit is None else place.deadline(limit * 1_000_000 + _LATER_NS)

        status = children.wait(pid, next_deadline, may_stop=False)
        late = status is None
        if late:
            status = children.kill_and_wait(pid)
        if not children.none_left():
            children.kill_leftovers(spared)
        self.channel.send("ended", exit=children.exit_of(status), late=late, place=place and printable(place.path()))
        return None
