"""Processes that tests start and forget."""

import os
import signal
import subprocess
import sys
import time

from vault import doors


def test_clean_before():
    assert doors(2, 3) == 6


def test_forks_and_both_return_through_pytest():
    if os.fork():
        os.wait()
    assert doors(1, 1) == 1


def test_starts_a_daemon_in_a_new_session():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)
            time.sleep(86_431)
        os._exit(0)
    os.wait()
    assert doors(1, 1) == 1


def test_starts_a_program_that_stays():
    subprocess.Popen(["sleep", "86431"], start_new_session=True)
    assert doors(1, 1) == 1


def test_starts_a_program_that_keeps_its_output_open():
    subprocess.Popen(["sh", "-c", "trap '' TERM HUP; sleep 86431 & sleep 86431"])
    assert doors(1, 1) == 1


def test_starts_one_that_starts_another_again_and_again():
    code = "import os, time\nwhile os.fork() == 0: time.sleep(0.01)\ntime.sleep(0.02)"
    subprocess.Popen([sys.executable, "-S", "-c", code], start_new_session=True)
    assert doors(1, 1) == 1


def test_starts_more_and_more():
    while True:
        if os.fork() == 0:
            time.sleep(86_431)


def test_clean_after():
    assert doors(4, 3) == 12
