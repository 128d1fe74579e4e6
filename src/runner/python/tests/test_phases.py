"""What is reported between the phases of cases belongs to no test; what a test writes past the capture does."""

import pytest

from driver import outcomes

REPORTS = """
import sys, time
import pytest

class Reporter:
    def pytest_runtest_logstart(self): print("starts")
    def pytest_runtest_logreport(self, report): print("reports", report.when, time.time())
    def pytest_runtest_logfinish(self): sys.stderr.write("is over\\n")
    def pytest_sessionfinish(self): print("Results (%fs)" % time.perf_counter())

def pytest_configure(config):
    config.pluginmanager.register(Reporter())
"""

TESTS = """
import os, sys

def test_is_quiet(): pass

def test_prints(): print("captured")

def test_passes_the_capture(capsys):
    with capsys.disabled():
        print("loud")
        os.write(2, b"and directly\\n")

def test_replaces_both_streams(capfd):
    with capfd.disabled():
        os.write(1, b"before ")
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)

def test_leaves(capfd):
    with capfd.disabled():
        os.write(1, b"last words")
        os._exit(3)
"""


@pytest.fixture
def reporting(start):
    driver = start({"conftest.py": REPORTS, "test_it.py": TESTS})
    return driver, driver.open("test_it.py")


@pytest.mark.parametrize(
    "function, raw",
    [
        ("test_is_quiet", ""),
        ("test_prints", ""),
        ("test_passes_the_capture", "and directly\nloud\n"),
        ("test_leaves", "last words"),
    ],
)
def test_output_past_the_capture_is_that_of_the_phases(reporting, function, raw):
    driver, file = reporting
    done = driver.run(file, function)
    assert sorted(done["raw_output"].splitlines()) == sorted(raw.splitlines()), done


def test_a_test_that_takes_the_streams_away_keeps_what_it_wrote(reporting):
    driver, file = reporting
    done = driver.run(file, "test_replaces_both_streams")
    assert done["raw_output"].startswith("before ") and outcomes(done) == ["passed"], done


def test_without_a_capture_all_output_of_the_test_is_past_it(start):
    driver = start({"conftest.py": REPORTS, "test_it.py": TESTS})
    file = driver.open("test_it.py", options=["-s"])
    done = driver.run(file, "test_prints")
    assert done["raw_output"] == "captured\n", done
