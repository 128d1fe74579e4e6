"""A process that is a command before its first line, with what the command imports of others already imported: its attempts
are forks of it, and need not import that again.

What that is, the command's first attempt says, which has nothing imported ahead: modules of the standard library and of other
distributions, never of the tree. They are imported in the same order, with the arguments, variables, folder and main module of
the command. Where that shows anywhere (it prints, starts a thread or a process, leaves a file, finds other modules), or
the first attempt on top of it differs from the one without, the command stays as it was.

This process has run code of others, and attempts are not its children: the one below it stays apart from both.
"""

import gc
import importlib
import os
import select
import struct
import sys
from time import monotonic_ns

import _socket

from . import children
from .descriptors import move_up
from .isolate import hide_memory
from .protocol import loads
from .tree_files import TreeFiles

_MOST = 5000
_number = struct.Struct("@q")
_listdir = os.listdir
_import_module = importlib.import_module


class Warm:
    """That process, for the one that forks it. One that does not answer is ended, and is of no use any more."""

    def __init__(self, process, link):
        self.process = process
        self.link = link

    @classmethod
    def fork(cls, server, become):
        """Fork it. Returns it, and None in the fork, with what `become` gives there for its end of the link."""
        ours, theirs = (move_up(one.detach()) for one in _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM))
        process = server.fork()
        if process == 0:
            os.close(ours)
            return None, become(theirs)
        os.close(theirs)
        return cls(process, ours), None

    def answer(self, deadline):
        """A number that it sends until then, in monotonic nanoseconds; None where it is of no use."""
        left = max(0, deadline - monotonic_ns()) / 1e9
        if select.select([self.link], [], [], left)[0]:
            try:
                data = os.read(self.link, _number.size)
            except OSError:
                data = b""
            if len(data) == _number.size:
                return _number.unpack(data)[0]
        return None

    def attempt(self, deadline):
        """The process ID of a new attempt, which is a child of this process; None where there is none."""
        try:
            os.write(self.link, b"a")
        except OSError:
            return None
        process = self.answer(deadline)
        return process if process in children.living() and process != self.process else None

    def end(self):
        """Have it end."""
        os.close(self.link)
        try:
            children.kill_and_wait(self.process)
        except (ProcessLookupError, ChildProcessError):
            pass


def imported(known, root):
    """What was imported since the modules were those in `known`: names, and of these the ones that may be imported ahead."""
    files, names, ahead = TreeFiles(root), [], []
    for name, module in list(sys.modules.items()):
        if name in known:
            continue
        names.append(name)
        specification = getattr(module, "__spec__", None)
        origin = getattr(specification, "origin", None)
        if getattr(specification, "name", None) == name and isinstance(origin, str) and files[origin] is None:
            ahead.append(name)
    return {"names": names[:_MOST], "ahead": ahead[:_MOST]}


def modules_of(lines):
    """What `imported` gave, of the lines of a report; None where there is nothing of the kind, or a connection was tried."""
    if any(line.startswith('["connections",') for line in lines):
        return None
    for line in lines:
        if line.startswith('["modules",'):
            try:
                names, ahead = (loads(line.encode("ascii"))[1][key] for key in ("names", "ahead"))
            except (ValueError, KeyError, TypeError, IndexError, RecursionError):
                return None
            return {"names": set(map(str, names)), "ahead": list(map(str, ahead))}
    return None


def import_ahead(modules, root):
    """Import modules of others in a command's surroundings. Gives whether nothing but the modules came of it."""
    known, places = set(sys.modules), set(sys.path_importer_cache)
    files, names = TreeFiles(root), modules["names"]
    for name in modules["ahead"]:
        _import_module(name)
    for place in set(sys.path_importer_cache) - places:
        del sys.path_importer_cache[place]  # what is in a folder of the tree is looked up anew
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name not in known and (name not in names or (isinstance(file, str) and files[file] is not None)):
            return False
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    is_silent = os.fstat(1).st_size == os.fstat(2).st_size == 0
    return is_silent and children.none_left() and len(_listdir("/proc/self/task")) == 1


def serve(link, reseed, place):
    """Fork attempts for who asks for them; returns in each, with what it is to know of ``random``. `place` is shared memory
    of one number."""
    # No collection of an attempt looks at what is there already, and copies the memory that it is in.
    gc.collect()
    gc.freeze()
    hide_memory()
    os.write(link, _number.pack(1))
    while os.read(link, 1):
        random_state = reseed.before_fork()
        between = os.fork()
        if between == 0:
            between = os.getpid()
            process = os.fork()
            if process:
                _number.pack_into(place, 0, process)
                os._exit(0)
            while os.getppid() == between:
                os.sched_yield()
            return random_state
        os.waitpid(between, 0)
        os.write(link, _number.pack(*_number.unpack_from(place)))
    os._exit(0)
