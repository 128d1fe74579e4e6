"""Counts the calls of a traced group's child interpreters.

While a group is traced, a child that ``subprocess`` or ``multiprocessing`` starts with the interpreter of the group gets
a directory with a ``sitecustomize`` in front of its ``PYTHONPATH``. That takes itself out of the way, starts a tracer of
its own, follows the children of the child in the same way, and when the child ends, adds its count to memory that the
group holds. Not followed: interpreters started with ``-E``, ``-I`` or ``-S``, through a shell or ``os.exec*``, and other
interpreters; the count of one that a signal or ``os._exit`` ends is lost.
"""

import atexit
import fcntl
import json
import os
import subprocess
import sys

import _posixsubprocess

from .descriptors import move_up
from .tracer import Tracer

_VARIABLE = b"GISTMILL_FOLLOW"
_SITE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "following")
_realpath = os.path.realpath


class Children:
    """What the followed children of a group count, in memory that they share with it."""

    def __init__(self, root):
        memory = os.memfd_create("children", os.MFD_CLOEXEC)
        fcntl.fcntl(memory, fcntl.F_SETFL, fcntl.fcntl(memory, fcntl.F_GETFL) | os.O_APPEND)
        self.memory = move_up(memory)
        _intercept(root, self.memory)

    def calls(self):
        """Calls into the tree in all children that have ended so far, imports included."""
        text = os.pread(self.memory, os.fstat(self.memory).st_size, 0)
        return sum(int(line) for line in text.split() if line.isdigit())


def enter(setting):
    """In a followed child: trace it from here to its end."""
    setting = json.loads(setting)
    memory, process = setting["memory"], os.getpid()
    os.set_inheritable(memory, False)
    tracer = Tracer(setting["root"], "tree")

    def report():
        if os.getpid() == process:
            os.write(memory, b"%d\n" % tracer.import_summary()["calls"])

    atexit.register(report)
    _intercept(setting["root"], memory)


def _intercept(root, memory):
    """Have every child that this process starts from now on with its own interpreter followed."""
    start = _posixsubprocess.fork_exec
    interpreter = _realpath(sys.executable)
    setting = json.dumps({"root": root, "memory": memory}).encode()

    def fork_exec(arguments, executables, close_fds, kept, cwd, environment, *rest):
        if _is_followed(arguments, executables, interpreter):
            environment = _environment(environment, setting)
            kept = tuple(sorted(set(kept) | {memory}))
            if not close_fds:
                os.set_inheritable(memory, True)
        try:
            return start(arguments, executables, close_fds, kept, cwd, environment, *rest)
        finally:
            if not close_fds:
                os.set_inheritable(memory, False)

    _posixsubprocess.fork_exec = fork_exec
    subprocess._USE_POSIX_SPAWN = False  # the other way to start a child
    if hasattr(subprocess, "_fork_exec"):
        subprocess._fork_exec = fork_exec


def _is_followed(arguments, executables, interpreter):
    found = next((path for path in map(os.fsdecode, executables) if os.access(path, os.X_OK)), None)
    if found is None or _realpath(found) != interpreter:
        return False
    for argument in map(os.fsencode, list(arguments)[1:]):
        if argument in (b"-", b"-c", b"-m") or not argument.startswith(b"-"):
            break
        if not argument.startswith((b"-X", b"-W", b"--")) and set(argument) & set(b"EIS"):
            return False
    return True


def _environment(given, setting):
    """The child's environment: the given one (None: this process's), with what leads it to `following`."""
    if given is None:
        given = [name + b"=" + value for name, value in os.environb.items()]
    kept = [one for one in given if not one.startswith((b"PYTHONPATH=", _VARIABLE + b"="))]
    path = next((one[len(b"PYTHONPATH=") :] for one in given if one.startswith(b"PYTHONPATH=")), b"")
    site = os.fsencode(_SITE) + (os.fsencode(os.pathsep) + path if path else b"")
    return kept + [b"PYTHONPATH=" + site, _VARIABLE + b"=" + setting]
