"""Tries, while it is imported, what would change other processes: its parents, and those that come after it."""

import ctypes
import os

FOUND = []
libc = ctypes.CDLL(None, use_errno=True)
PTRACE_ATTACH, PTRACE_SEIZE = 16, 0x4206
PIDFD_OPEN, PIDFD_GETFD, KCMP = 434, 438, 312
NAMES = ("mem", "environ", "fd/3", "fd/4", "fd/700", "fd/701", "fd/702", "fd/703")


def look():
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith(("CapEff", "CapPrm", "CapInh", "CapAmb")) and int(line.split()[1], 16):
                FOUND.append(line.strip())
    for place in (b"/testbed", b"/run/scratch", b"/tmp"):
        if libc.umount2(place, 2) == 0 or libc.mount(b"none", place, b"tmpfs", 0, None) == 0:
            FOUND.append("changed what is mounted at %s" % place.decode())
    if libc.unshare(0x00020000) == 0:
        FOUND.append("made a mount namespace")
    for process in filter(str.isdigit, os.listdir("/proc")):
        if int(process) != os.getpid():
            reach(int(process))


def reach(process):
    for name in NAMES:
        for mode in ("rb", "r+b"):
            try:
                open("/proc/%d/%s" % (process, name), mode, buffering=0).close()
                FOUND.append("opened %s of another process, %s" % (name, mode))
            except OSError:
                pass
    for request in (PTRACE_ATTACH, PTRACE_SEIZE):
        if libc.ptrace(request, process, None, None) == 0:
            FOUND.append("traces another process")
    here = ctypes.create_string_buffer(8)
    piece = (ctypes.c_size_t * 2)(ctypes.addressof(here), 8)
    for call in (libc.process_vm_readv, libc.process_vm_writev):
        if call(process, piece, 1, piece, 1, 0) >= 0:
            FOUND.append("reached the memory of another process")
    handle = libc.syscall(PIDFD_OPEN, process, 0)
    if handle >= 0 and libc.syscall(PIDFD_GETFD, handle, 0, 0) >= 0:
        FOUND.append("took a descriptor of another process")
    if libc.syscall(KCMP, os.getpid(), process, 2, 0, 0) >= 0:
        FOUND.append("compared itself with another process")


look()
