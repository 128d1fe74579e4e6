"""Processes that end in the middle of a test."""

import ctypes
import os
import signal
import sys

from vault import doors


def test_clean_before():
    assert doors(2, 3) == 6


def test_leaves_by_os_exit():
    os._exit(3)


def test_leaves_by_os_exit_as_if_all_were_well():
    os._exit(0)


def test_clean_between():
    assert doors(3, 3) == 9


def test_aborts():
    os.abort()


def test_reads_address_zero():
    ctypes.string_at(0)


def test_recurses_without_end():
    def deeper():
        return deeper()

    deeper()


def test_recurses_in_c():
    nested = []
    for _ in range(10**6):
        nested = [nested]
    repr(nested)


def test_ends_itself_with_sigterm():
    os.kill(os.getpid(), signal.SIGTERM)


def test_kills_its_group():
    os.killpg(0, signal.SIGKILL)


def test_kills_its_parent():
    os.kill(os.getppid(), signal.SIGKILL)
    signal.pause()


def test_kills_its_grandparent():
    with open("/proc/%d/stat" % os.getppid()) as file:
        grandparent = int(file.read().rpartition(")")[2].split()[1])
    os.kill(grandparent, signal.SIGKILL)
    signal.pause()


def test_kills_everything_in_reach():
    os.kill(-1, signal.SIGKILL)
    signal.pause()


def test_raises_system_exit():
    sys.exit(0)


def test_raises_keyboard_interrupt():
    raise KeyboardInterrupt


def test_clean_after():
    assert doors(4, 3) == 12
