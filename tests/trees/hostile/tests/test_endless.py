"""Tests that do not come back by themselves."""

import os
import signal
import sys
import threading

from vault import doors


def test_clean_before():
    assert doors(2, 3) == 6


def test_loops_in_c():
    sum(iter(int, 1))


def test_stops_itself():
    os.kill(os.getpid(), signal.SIGSTOP)


def parent(process):
    with open("/proc/%d/stat" % process) as file:
        return int(file.read().rpartition(")")[2].split()[1])


def test_stops_its_parent():
    os.kill(os.getppid(), signal.SIGSTOP)
    threading.Event().wait()


def test_stops_its_parent_and_passes():
    os.kill(os.getppid(), signal.SIGSTOP)
    assert doors(1, 1) == 1


def test_stops_its_grandparent():
    os.kill(parent(os.getppid()), signal.SIGSTOP)
    threading.Event().wait()


def test_stops_everything_in_reach():
    os.kill(-1, signal.SIGSTOP)
    threading.Event().wait()


def test_waits_for_ever_and_blocks_every_signal():
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    threading.Event().wait()


def test_prints_without_end():
    while True:
        os.write(1, b"more and more and more and more\n" * 2048)


def test_prints_without_end_through_python():
    while True:
        print("more and more and more and more\n" * 2048)


def test_clean_after():
    print("still here", file=sys.stderr)
    assert doors(4, 3) == 12
