"""The keeper: the one process that speaks to the driver and may mount. It runs no code but its own.

It starts the interpreter, and has it and each level above fork the next one by request. Every level has a socket of its own
to the keeper, no privileges, and no way to the driver; what it says is passed on as the answer to the request in flight, as
long as that fits, and concerns nobody else. The keeper watches the time, ends what is late or says what it cannot mean,
and takes away what a level wrote once all of its processes are gone.

The levels share one mount namespace: whoever is on top sees its overlays, and those below it wait.
"""

import os
import select
import signal
import sys
import traceback
from os import WIFEXITED, WIFSTOPPED, WNOHANG, WUNTRACED, WEXITSTATUS, WSTOPSIG, WTERMSIG
from time import monotonic

from .children import environment_at_start
from .descriptors import move_up
from .isolate import Isolation, IsolationError, become_ordinary, hide_memory
from .protocol import Driver, EndOfRequests, Misfit, encode, loads, pair, printable

EXIT_INTERNAL_ERROR = 70
EXIT_LOST_LEVEL = 71
# Seconds that a level may take to fork, and to report that one above it has ended.
_PATIENCE = 30
# Seconds that the process that watches a group may take beyond the group's limit.
_LATER = 10

# What opens a level: where, and what it is called.
_OPENS = {
    "open_directory": ("interpreter", "directory"),
    "discover": ("interpreter", "discover"),
    "open_generator": ("interpreter", "generator"),
    "open_file": ("directory", "file"),
}
# What else a level does.
_DOES = {"run": "file", "generate": "generator", "tried": "generator"}
# What each request may be answered with, and whether the level goes on after that.
_ANSWERS = {
    "hello": {"hello": True, "refused": True},
    "open_directory": {"directory_ready": True, "failed": False},
    "discover": {"discovered": False, "failed": False},
    "open_generator": {"generator_ready": True},
    "open_file": {"file_ready": True, "failed": False},
    "run": {"group_done": True},
    "generate": {"candidate": True, "generated": True},
    "tried": {"candidate": True, "generated": True},
}


class Level:
    """A process of the stack: its name, the keeper's end of its socket, and its number."""

    def __init__(self, name, link, process):
        self.name = name
        self.link = link
        self.process = process
        # How the kernel schedules it, once it is open: what is forked from it begins with the same.
        self.scheduling = None


class Gone(Exception):
    """A level is not there any more: what the driver is told about it."""

    def __init__(self, kind, **fields):
        super().__init__(kind)
        self.kind = kind
        self.fields = fields


class Apart(Exception):
    """A level has threads or child processes, which its forks would not have."""


class Keeper:
    """The stack of levels, the lowest first."""

    def __init__(self, driver):
        self.driver = driver
        self.levels = []
        self.isolation = None
        self.lost = None
        self.directory = None
        self.is_apart = False
        self.apart = set()
        self._wake, wakes = os.pipe()
        for descriptor in (self._wake, wakes):
            os.set_blocking(descriptor, False)
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def serve(self):
        """Answer requests until the driver closes; does not return."""
        try:
            self._begin(loads(self.driver.receive()))
            while True:
                content = self.driver.receive()
                request = loads(content)
                try:
                    self._handle(request, content)
                except (IsolationError, OSError):
                    self._tell(request, "internal_error", traceback=traceback.format_exc())
                    os._exit(EXIT_INTERNAL_ERROR)
        except EndOfRequests:
            os._exit(0)

    def _tell(self, request, kind, **fields):
        self.driver.send(request["id"], kind, encode(fields))

    # The interpreter.

    def _begin(self, request):
        """The first request: lay the overlays out and start the interpreter."""
        self.driver.token = request.pop("token")
        environment = environment_at_start()
        hide_memory()
        settings = request.pop("isolation", None)
        try:
            if settings:
                self.isolation = Isolation(settings)
            link, theirs = pair()
            process = os.fork()
        except OSError:
            self._tell(request, "internal_error", traceback=traceback.format_exc())
            os._exit(EXIT_INTERNAL_ERROR)
        if process == 0:
            _become_interpreter(theirs, bool(settings), environment)
        theirs.close()
        os.chdir("/")
        self.levels.append(Level("interpreter", link, process))
        request["isolated"] = bool(settings)
        link.send("hello", encode(request))
        try:
            self._conclude(request, None)
        except Gone as gone:
            self._tell(request, "internal_error", traceback="the interpreter: %s" % gone.fields)
            os._exit(EXIT_INTERNAL_ERROR)
        self.levels[0].scheduling = _scheduling(process)

    def _interpreter_ended(self):
        """Whether the lowest level is gone; nothing can go on without it."""
        process, status = os.waitpid(self.levels[0].process, WNOHANG | WUNTRACED)
        if process == 0:
            return
        if WIFEXITED(status):
            os._exit(WEXITSTATUS(status) or EXIT_INTERNAL_ERROR)
        os._exit(128 + (WSTOPSIG(status) if WIFSTOPPED(status) else WTERMSIG(status)))

    # Requests.

    def _handle(self, request, content):
        operation, top = request["op"], self.levels[-1]
        try:
            self._look()
        except Gone as gone:
            self.lost = gone
            top = self.levels[-1]
        lost, self.lost = self.lost, None
        try:
            if _OPENS.get(operation, (None,))[0] == top.name:
                self._open_suitably(request, content)
            elif _DOES.get(operation) == top.name:
                self._do(request, content)
            elif lost is not None:
                raise lost
            elif operation == "close":
                self._close(request)
            else:
                self._tell(request, "refused", reason="%s: not possible at level %s" % (operation, top.name))
        except Gone as gone:
            self._tell(request, gone.kind, **gone.fields)

    def _open_suitably(self, request, content):
        """Open a level; apart from all that has run code of the repository (`apart`) where a fork would lack part of that."""
        operation = request["op"]
        if operation not in ("open_directory", "open_file"):
            return self._open(request, content)
        folder = os.path.dirname(request["file"]) + "/"
        is_directory = operation == "open_directory"
        if is_directory and request.get("texts"):
            self.apart.clear()  # what another text started says nothing of this one
        is_apart = folder in self.apart or (not is_directory and request["file"] in self.apart)
        if is_directory:
            self.directory = request
            return self._open_directory(is_apart, folder)
        if is_apart != self.is_apart:
            self._reopen(is_apart)
        try:
            self._open(request, content)
        except Apart:
            self.apart.add(request["file"])
            self._reopen(True)
            self._open(request, content)

    def _open_directory(self, is_apart, folder, passes_on=True):
        self.is_apart = is_apart
        request = {**self.directory, "apart": is_apart}
        try:
            self._open(request, encode(request), passes_on)
        except Apart:
            self.apart.add(folder)
            self._close_directory()
            self._open_directory(True, folder, passes_on)

    def _reopen(self, is_apart):
        """Open the directory on top anew; the driver has been told that it is open."""
        self._close_directory()
        self._open_directory(is_apart, os.path.dirname(self.directory["file"]) + "/", passes_on=False)

    def _close_directory(self):
        try:
            self._end(1, "closed")
        except Gone as gone:
            if gone.kind != "closed":
                raise

    def _open(self, request, content, passes_on=True):
        """Have the level on top fork the next one, which is given the request."""
        depth, (_, name) = len(self.levels), _OPENS[request["op"]]
        if self.isolation is not None:
            try:
                self.isolation.enter_level()
            except OSError as error:
                self.isolation.leave_level()
                self._spoilt(depth - 1, error)
        limit = request.get("timeout_ms")
        link, theirs = pair()
        self.levels[-1].link.send("fork", encode({"level": name, "limit_ms": limit}), theirs.fileno())
        theirs.close()
        self._add(name, link)
        link.send(request["op"], content)
        deadline = None if limit is None or name == "discover" else monotonic() + limit / 1000
        self._conclude(request, deadline, passes_on)
        if depth < len(self.levels):
            self.levels[depth].scheduling = _scheduling(self.levels[depth].process)
        if name == "file" and self.isolation is not None:
            self._apart(depth, self.isolation.enter_attempts, is_asked=False)

    def _add(self, name, link):
        depth = len(self.levels) - 1
        try:
            said, content = self._message(monotonic() + _PATIENCE)
            process = loads(content)["process"] if said == "forked" else None
            if type(process) is not int or process <= 1 or process == os.getpid():
                raise Misfit("%s: an answer that does not fit" % said)
        except (Misfit, ValueError, KeyError, TypeError, RecursionError) as misfit:
            link.close()
            self._leave_overlays()
            self._end(depth, "broken", reason=str(misfit))
        except Gone:
            link.close()
            self._leave_overlays()
            raise
        self.levels.append(Level(name, link, process))

    def _leave_overlays(self):
        if self.isolation is not None:
            self.isolation.leave_level()

    def _do(self, request, content):
        """Have the level on top do what it is there for, as often as the request says."""
        depth, left = len(self.levels) - 1, request.get("repeat", 1)
        limit = request.get("group_timeout_ms")
        request["again"] = request["op"] == "run"
        while left:
            self._scheduled_as_before()
            deadline = None if limit is None else monotonic() + limit / 1000 + _LATER
            self.levels[depth].link.send(request["op"], content)
            left -= self._conclude(request, deadline)
            if request["op"] == "run" and self.isolation is not None:
                self._apart(depth, self.isolation.discard_attempt, is_asked=left > 0)

    def _apart(self, depth, action, is_asked):
        """Keep what a level wrote apart from what comes. Where that does not work, the level ends; whoever `is_asked` for
        more of it is told now, else with the next request."""
        try:
            action()
        except OSError as error:
            try:
                self._spoilt(depth, error)
            except Gone as gone:
                if is_asked:
                    raise
                self.lost = gone

    def _spoilt(self, depth, error):
        """What goes wrong with overlays is the trouble of the level that wrote there; the interpreter writes nothing."""
        if depth == 0:
            raise error
        self._end(depth, "broken", reason="what it wrote cannot be kept apart: %s" % error)

    def _close(self, request):
        if len(self.levels) > 1:
            try:
                self._end(len(self.levels) - 1, "closed")
            except Gone as closed:
                self._tell(request, closed.kind, **closed.fields)
                return
        self._tell(request, "closed")
        os._exit(0)

    def _conclude(self, request, deadline, passes_on=True):
        """Pass on what the level on top answers. Gives False where it asks, once, to be asked again. Raises `Gone` when it
        does not answer, and `Apart` when it asks for that."""
        answers = _ANSWERS[request["op"]]
        depth = len(self.levels) - 1
        while True:
            try:
                kind, content = self._message(deadline)
            except Misfit as misfit:
                self._end(depth, "broken", reason=str(misfit))
            if kind == "collecting" and request["op"] == "discover":
                self.driver.send(request["id"], kind, content)
            elif kind == "broken" and depth == 0:
                self._tell(request, "internal_error", traceback=_traceback(content))
                os._exit(EXIT_INTERNAL_ERROR)
            elif kind == "broken":
                self._end(depth, "broken", reason=_traceback(content))
            elif kind == "apart" and request["op"] in ("open_directory", "open_file") and not self.is_apart:
                raise Apart
            elif kind == "again" and request.pop("again", False):
                return False
            elif kind not in answers or (not passes_on and not answers[kind]):
                self._end(depth, "broken", reason="an answer that does not fit")
            elif answers[kind]:
                if passes_on:
                    self.driver.send(request["id"], kind, content)
                return True
            else:
                try:
                    self._end(depth, kind)
                except Gone as gone:
                    if gone.kind != kind:
                        raise
                self.driver.send(request["id"], kind, content)
                return True

    # Levels and their ends.

    def _look(self):
        """Take note of levels that ended while nothing was asked of them."""
        for level in self.levels:
            level.link.pull()
        self._interpreter_ended()
        self._ended()
        self._scheduled_as_before()

    def _scheduled_as_before(self):
        """Any process of a user may change how another one is scheduled, and what is forked from that inherits it. Ends
        what was changed, as if it had been killed. Raises `Gone`."""
        for depth, level in enumerate(self.levels):
            if level.scheduling is not None and _scheduling(level.process) not in (level.scheduling, None):
                if depth == 0:
                    os._exit(128 + signal.SIGKILL)
                self._end(depth, "broken", reason="a process above it changed how it is scheduled")

    def _ended(self):
        """Raise `Gone` when a process that waits for the one above it says that this has ended."""
        for depth, level in enumerate(self.levels[:-1]):
            try:
                message = level.link.take()
                if message is None:
                    continue
                kind, content = message
                if kind != "ended" or len(content) > 1 << 16:
                    raise Misfit("%s: an answer that does not fit" % kind)
                said = loads(content)
                exit, late, place = said["exit"], bool(said["late"]), said["place"]
            except (Misfit, ValueError, KeyError, TypeError, RecursionError) as misfit:
                level.link.silence()
                self._end(depth, "broken", reason=str(misfit))
            name = self.levels[depth + 1].name
            self._drop(depth + 1)
            if late:
                raise Gone("timed_out", level=name, place=place)
            raise Gone("died", level=name, exit=exit, place=place)

    def _message(self, deadline):
        """The next message of the level on top, as (name, content). Raises `Gone` when a level ends, or has taken too
        long; `Misfit` for what is no message."""
        while True:
            self._interpreter_ended()
            self._ended()
            message = self.levels[-1].link.take()
            if message is not None:
                return message
            if deadline is not None and monotonic() >= deadline:
                top = self.levels[-1]
                self._end(len(self.levels) - 1, "timed_out", level=top.name)
            self._wait(deadline)

    def _wait(self, deadline):
        """Sleep until one of the levels says something, or ends, or the deadline has come."""
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        poll.register(self.driver.requests, 0)
        for level in self.levels:
            if not level.link.ended:
                poll.register(level.link.fileno(), select.POLLIN)
        timeout = None if deadline is None else max(0, deadline - monotonic()) * 1000 + 1
        ready = {descriptor for descriptor, _ in poll.poll(timeout)}
        if self.driver.requests in ready:
            os._exit(0)  # the driver has gone
        if self._wake in ready:
            try:
                os.read(self._wake, 4096)
            except BlockingIOError:
                pass
        for level in self.levels:
            if level.link.fileno() in ready:
                level.link.pull()

    def _end(self, depth, kind, reason=None, **fields):
        """Kill a level and all above it, and wait until they are gone. Raises `Gone`, of this kind."""
        if depth == 0:
            os._exit(EXIT_INTERNAL_ERROR)
        level = self.levels[depth]
        if reason is not None:
            fields.update(level=level.name, traceback=printable(reason))
        try:
            os.kill(level.process, signal.SIGKILL)
        except ProcessLookupError:
            pass
        deadline = monotonic() + _PATIENCE
        while len(self.levels) > depth:
            self._interpreter_ended()
            try:
                self._ended()
            except Gone:
                if len(self.levels) < depth:
                    raise  # one below it is gone as well
                continue
            if monotonic() >= deadline:
                os._exit(EXIT_LOST_LEVEL)
            self._wait(deadline)
        raise Gone(kind, **fields)

    def _drop(self, depth):
        """Forget levels whose processes are gone, with what they wrote."""
        for level in self.levels[depth:]:
            level.link.close()
            self._leave_overlays()
        del self.levels[depth:]


def main(arguments):
    """Serve the driver on the given descriptors; does not return."""
    options = dict(zip(arguments[::2], arguments[1::2]))
    requests, answers = (move_up(int(options[name])) for name in ("--in-fd", "--out-fd"))
    Keeper(Driver(requests, answers)).serve()


def _traceback(content):
    """The words of a level that says that it failed, as far as they are any."""
    try:
        said = loads(content[: 1 << 20])
        return str(said["traceback"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return "the process failed, and cannot say how"


def _scheduling(process):
    """How the kernel schedules a process: its processors, priority and policy. None where it is gone."""
    try:
        return os.sched_getaffinity(process), os.getpriority(os.PRIO_PROCESS, process), os.sched_getscheduler(process)
    except OSError:
        return None


def _become_interpreter(socket, isolated, environment):
    """In a new process: start the interpreter in which pytest is imported, without privileges."""
    try:
        if isolated:
            become_ordinary()
        os.set_inheritable(socket.fileno(), True)
        main = os.path.join(os.path.dirname(os.path.abspath(__file__)), "__main__.py")
        os.execve(sys.executable, [sys.executable, main, "--link", str(socket.fileno())], environment)
    except BaseException:
        traceback.print_exc()
        os._exit(EXIT_INTERNAL_ERROR)

