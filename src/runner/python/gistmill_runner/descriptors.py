"""Descriptors of the runner: numbers that tests do not expect to be theirs, closed on exec."""

import fcntl
import os
import resource

_HIGH_DESCRIPTOR = 700


def move_up(descriptor):
    """Duplicate `descriptor` to a high number, closed on exec, and close the original."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    room = limit == resource.RLIM_INFINITY or limit > _HIGH_DESCRIPTOR + 64
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _HIGH_DESCRIPTOR if room else max(3, limit - 64))
    os.close(descriptor)
    return moved


def redirect_standard_streams():
    """Standard input from the null device; output and errors into memory. Returns a descriptor of that memory."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    if null != 0:
        os.close(null)
    memory = os.memfd_create("output", os.MFD_CLOEXEC)
    fcntl.fcntl(memory, fcntl.F_SETFL, fcntl.fcntl(memory, fcntl.F_GETFL) | os.O_APPEND)
    os.dup2(memory, 1)
    os.dup2(memory, 2)
    return move_up(memory)
