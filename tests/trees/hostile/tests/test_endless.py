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
