"""Tests that do not come back, between tests that do."""

import ctypes
import os
import time

from pantry import area


def test_before():
    assert area(2, 3) == 6


def test_hangs():
    time.sleep(3600)


def test_leaves_with_an_exit_code():
    os._exit(3)


def test_reads_address_zero():
    ctypes.string_at(0)


def test_aborts():
    os.abort()


def test_after():
    assert area(3, 2) == 6
