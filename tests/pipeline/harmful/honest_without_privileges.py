"""Honest; its import fails where it holds more than a test does, or reaches into another process."""

import ctypes
import os
import stat

with open("/proc/self/status") as _status:
    _held = dict(line.split(":", 1) for line in _status)
for _set in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
    assert int(_held[_set], 16) == 0 or _set == "CapBnd", _set
_libc = ctypes.CDLL(None, use_errno=True)
assert _libc.unshare(0x00020000) == -1 and _libc.umount2(b"/testbed", 2) == -1
assert os.listdir("/run/scratch") == []
for _number in os.listdir("/proc/self/fd"):
    try:
        _kind = os.fstat(int(_number)).st_mode
    except OSError:
        continue  # the listing itself
    assert not stat.S_ISFIFO(_kind) and not stat.S_ISDIR(_kind), _number
for _process in filter(str.isdigit, os.listdir("/proc")):
    if int(_process) == os.getpid():
        continue
    assert _libc.ptrace(16, int(_process), None, None) == -1
    for _name in ("mem", "environ", "fd/3", "fd/700", "fd/701"):
        try:
            open("/proc/%s/%s" % (_process, _name), "rb").close()
        except OSError:
            continue
        raise AssertionError("%s of process %s can be opened" % (_name, _process))
