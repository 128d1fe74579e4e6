import os
import signal
import time

from shelf import width


def parent(process):
    with open("/proc/%d/stat" % process) as file:
        return int(file.read().rpartition(")")[2].split()[1])


def test_before():
    assert width(1) == 3


def test_stops_its_parent():
    os.kill(os.getppid(), signal.SIGSTOP)
    time.sleep(3600)


def test_stops_everything_above():
    above = parent(os.getpid())
    while above > 1:
        os.kill(above, signal.SIGSTOP)
        above = parent(above)
    time.sleep(3600)


def test_after():
    assert width(3) == 9
