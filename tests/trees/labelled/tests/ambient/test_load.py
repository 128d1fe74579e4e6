"""Who else wants the processor. On a quiet machine a process has a core to itself, and one with burners has not.

What these show is only as repeatable as the machine is quiet; each works for 0.4 s, so that the scheduler's slices
even out.
"""

import os
import queue
import subprocess
import sys
import threading
import time
import unittest

import pytest

from inventory.pace import slowness, work

WORK = 0.4
# Between a core of one's own (1.0) and one task too many for all cores (1.5 with two cores, 2 with one).
LIMIT = 1.25


def test_works_as_fast_as_it_should():
    assert slowness(WORK) < LIMIT


def test_prints_whether_it_is_late():
    print("late" if slowness(WORK) > LIMIT else "on time")


def test_gets_its_answer_in_time():
    answers = queue.Queue()
    worker = threading.Thread(target=lambda: answers.put(work(WORK)))
    worker.start()
    try:
        answers.get(timeout=WORK * LIMIT)
    finally:
        worker.join()


def test_counts_the_turns_of_a_timed_loop():
    started, turns = time.perf_counter(), 0
    while time.perf_counter() < started + WORK:
        work(0.005)
        turns += 1
    assert turns > WORK / 0.005 / LIMIT


def test_watches_a_child():
    code = "import inventory.pace; print(inventory.pace.work(%r))" % WORK
    output = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True).stdout
    assert float(output) < WORK * LIMIT


@pytest.mark.parametrize("part", [1, 2])
def test_skips_when_it_is_late(part):
    if slowness(WORK) > LIMIT:
        pytest.skip("late")


class TestPace:
    def test_compares_the_clocks_of_the_system(self):
        before, started = os.times(), time.perf_counter()
        work(WORK)
        after = os.times()
        assert time.perf_counter() - started < LIMIT * (after.user + after.system - before.user - before.system) + 0.02


class InUnittest(unittest.TestCase):
    def test_works_as_fast_as_it_should(self):
        self.assertLess(work(WORK), WORK * LIMIT)
