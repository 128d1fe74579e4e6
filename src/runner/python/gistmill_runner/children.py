"""Waiting for forked processes, with deadlines, and killing what they leave behind.

The process that forks groups is a *subreaper*: whatever a test starts and abandons, in new sessions or not, becomes
its child in the end and is killed. SIGCHLD is blocked while a server waits and handed back to the children as it was.
"""

import ctypes
import signal
from os import WNOHANG, WUNTRACED, getpid, kill, listdir, strerror, waitpid
from os import WEXITSTATUS, WIFEXITED, WIFSTOPPED, WSTOPSIG, WTERMSIG
from time import monotonic_ns

_getsignal = signal.getsignal
_setsignal = signal.signal
_sigmask = signal.pthread_sigmask
_sigtimedwait = signal.sigtimedwait
_SIGKILL = signal.SIGKILL
_SIGCHLD = signal.SIGCHLD
_BLOCK, _SETMASK = signal.SIG_BLOCK, signal.SIG_SETMASK
_SIG_IGN, _SIG_DFL = signal.SIG_IGN, signal.SIG_DFL
_libc = ctypes.CDLL(None, use_errno=True)
_prctl, _wait4 = _libc.prctl, _libc.wait4
_open = open

_ONLY_SIGCHLD = frozenset([_SIGCHLD])
_LONGEST_SLEEP = 0.2
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


class _Usage(ctypes.Structure):
    """`struct rusage`: two times, and 14 numbers of which the first is the most memory."""

    _fields_ = [("times", ctypes.c_long * 4), ("most_memory", ctypes.c_long), ("others", ctypes.c_long * 13)]


def adopt_orphans():
    """Become the parent of every orphaned descendant."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent():
    """Be killed when the process that forked this one ends."""
    _prctl(PR_SET_PDEATHSIG, int(_SIGKILL), 0, 0, 0)


class SignalState:
    """What a server changes about signals while it waits, so that its children can undo it."""

    def __init__(self):
        self.mask = _sigmask(_BLOCK, {_SIGCHLD})
        self.handler = _getsignal(_SIGCHLD)
        if self.handler is _SIG_IGN:
            _setsignal(_SIGCHLD, _SIG_DFL)

    def restore(self):
        """Put signals back as they were; for the child right after the fork, and for the server when it stops."""
        if self.handler is _SIG_IGN:
            _setsignal(_SIGCHLD, _SIG_IGN)
        _sigmask(_SETMASK, self.mask)


def wait(pid, next_deadline, may_stop=True):
    """Wait until process `pid` ends or a deadline passes; SIGCHLD must be blocked.

    One that may not stop is killed as soon as somebody stops it: nobody would let it go on. Its wait status says so.

    `next_deadline()` gives the nearest deadline in monotonic nanoseconds, or None for no deadline; it is asked again
    several times a second, because the child may have moved on to its next case. Returns the wait status, or None when
    the deadline has passed.
    """
    return measured_wait(pid, next_deadline, may_stop)[0]


def measured_wait(pid, next_deadline, may_stop=True):
    """The same as `wait`, with the most memory in bytes that `pid`, or one process that it waited for, had at a time."""
    options = WNOHANG if may_stop else WNOHANG | WUNTRACED
    while True:
        # `os.wait4` imports a module `resource`, which may be the tree's.
        said, usage = ctypes.c_int(), _Usage()
        changed = _wait4(pid, ctypes.byref(said), options, ctypes.byref(usage))
        if changed < 0:
            raise OSError(ctypes.get_errno(), strerror(ctypes.get_errno()))
        if changed:
            status = said.value
            if WIFSTOPPED(status):
                kill_and_wait(pid)
            # The system counts in kibibytes.
            return status, usage.most_memory * 1024
        deadline = next_deadline()
        seconds = _LONGEST_SLEEP
        if deadline is not None:
            seconds = min(seconds, (deadline - monotonic_ns()) / 1e9)
            if seconds <= 0:
                return None, None
        _sigtimedwait(_ONLY_SIGCHLD, seconds)


def kill_and_wait(pid):
    """Kill `pid`, a child of this process, and wait for its end. Returns its wait status."""
    kill(pid, _SIGKILL)
    return waitpid(pid, 0)[1]


def exit_of(status):
    """A wait status in the words of the protocol."""
    if WIFEXITED(status):
        return {"kind": "exited", "code": WEXITSTATUS(status)}
    if WIFSTOPPED(status):
        return {"kind": "signaled", "signal": WSTOPSIG(status)}
    return {"kind": "signaled", "signal": WTERMSIG(status)}


def living():
    """Process IDs of this process's children, adopted ones included."""
    found = set()
    task = "/proc/%d/task" % getpid()
    for thread in listdir(task):
        with _open("%s/%s/children" % (task, thread)) as file:
            found.update(map(int, file.read().split()))
    return found


def none_left():
    """Whether this process has no children at all: one system call, so it is worth asking first."""
    try:
        ended, _ = waitpid(-1, WNOHANG)
    except ChildProcessError:
        return True
    return False if ended == 0 else none_left()


def kill_leftovers(spared, patience_seconds=20):
    """Kill every child that is not in `spared`, and what these leave in turn. Returns how many were killed.

    Raises RuntimeError when processes appear faster than they can be killed for `patience_seconds`.
    """
    killed = 0
    deadline = monotonic_ns() + patience_seconds * 1_000_000_000
    while True:
        victims = living() - spared
        if not victims:
            return killed
        for pid in victims:
            try:
                kill(pid, _SIGKILL)
            except ProcessLookupError:
                pass
        for pid in victims:
            try:
                waitpid(pid, 0)
                killed += 1
            except ChildProcessError:
                pass
        if monotonic_ns() > deadline:
            raise RuntimeError("processes left by a test keep coming back: %d killed so far" % killed)


def environment_at_start():
    """The environment that this process was started with: Python may have added to it."""
    with _open("/proc/self/environ", "rb") as file:
        entries = [entry.split(b"=", 1) for entry in file.read().split(b"\0")]
    return {entry[0]: entry[1] for entry in entries if len(entry) == 2 and entry[0]}
