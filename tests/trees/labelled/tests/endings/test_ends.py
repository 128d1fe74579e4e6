"""Tests that do not come back, between tests that do."""

import ctypes
import os
import signal
import threading
import time

import pytest

from inventory import count


def test_before():
    assert count("ab") == 2


def test_sleeps_too_long():
    time.sleep(3600 * count("ab"))


def test_works_for_ever():
    while count("ab") == 2:
        pass


def test_waits_for_a_lock_that_it_holds():
    lock = threading.Lock()
    for _ in range(count("ab")):
        lock.acquire()


class TestDeaf:
    def test_ignores_signals_and_sleeps(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM):
            signal.signal(number, signal.SIG_IGN)
        time.sleep(3600 * count("ab"))


@pytest.fixture
def slow_to_rise():
    time.sleep(3600)


@pytest.mark.parametrize("name", ["salt"])
def test_waits_for_its_fixture(slow_to_rise, name):
    assert count(name) == 4


def test_leaves_with_an_exit_code():
    os._exit(count("abc"))


def test_leaves_as_if_all_were_well():
    os._exit(count(""))


def test_reads_address_zero():
    ctypes.string_at(count(""))


def test_aborts():
    assert count("ab") == 2
    os.abort()


def test_kills_itself():
    assert count("ab") == 2
    os.kill(os.getpid(), signal.SIGKILL)


def test_sets_an_alarm_that_nobody_hears():
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    time.sleep(count("ab"))


@pytest.mark.parametrize("code", [0, 7])
def test_leaves_in_its_second_case(code):
    if code:
        os._exit(count("x" * code))


class TestLeaves:
    def teardown_method(self):
        os._exit(count("abcd"))

    def test_in_tear_down(self):
        assert count("ab") == 2


def test_after():
    assert count("ab") == 2
