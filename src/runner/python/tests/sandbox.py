"""Runs a command where overlays can be mounted: new user and mount namespaces, the tree bound read-only.

    python sandbox.py ROOT TREE SCRATCH COMMAND…

ROOT, SCRATCH and TREE are existing directories. Exit code 77 says that the machine does not allow it.
"""

import ctypes
import os
import sys

CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
CAP_DAC_OVERRIDE, CAP_SYS_ADMIN = 1, 21
libc = ctypes.CDLL(None, use_errno=True)
libc.mount.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p]


def check(result):
    if result != 0:
        sys.exit(77)


def main(root, tree, scratch, *command):
    user, group = os.geteuid(), os.getegid()
    check(libc.unshare(CLONE_NEWUSER | CLONE_NEWNS))
    try:
        with open("/proc/self/setgroups", "w") as file:
            file.write("deny")
        with open("/proc/self/uid_map", "w") as file:
            file.write("1000 %d 1" % user)
        with open("/proc/self/gid_map", "w") as file:
            file.write("1000 %d 1" % group)
    except OSError:
        sys.exit(77)
    check(libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None))
    check(libc.mount(tree.encode(), root.encode(), None, MS_BIND, None))
    check(libc.mount(None, root.encode(), None, MS_BIND | MS_REMOUNT | MS_RDONLY, None))
    check(libc.mount(b"none", scratch.encode(), b"tmpfs", 0, None))
    capabilities = 1 << CAP_DAC_OVERRIDE | 1 << CAP_SYS_ADMIN
    check(libc.capset((ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)(*[capabilities] * 3)))
    for capability in (CAP_DAC_OVERRIDE, CAP_SYS_ADMIN):
        check(libc.prctl(47, 2, capability, 0, 0))
    os.chdir(root)
    os.execvp(command[0], command)


main(*sys.argv[1:])
