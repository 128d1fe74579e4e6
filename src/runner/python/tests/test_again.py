"""A case that is run again until it passes is one that fails, whoever runs it again."""

import pytest

from driver import outcomes

# Fails in its first call in a process, and passes in the second.
TEST = """
import pytest
calls = []

{mark}
def test_a():
    calls.append(1)
    assert len(calls) > 1, "the first time"

def test_b():
    print("b")
"""
PROTOCOL = """
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for left in (2, 1, 0):
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        if left and any(report.failed for report in reports):
            item._initrequest()
            continue
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        break
    return True
"""
CALL = """
import pytest

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    outcome = yield
    if outcome.excinfo:
        outcome.force_result(item.runtest())
"""


@pytest.mark.parametrize("conftest", [PROTOCOL, CALL])
def test_a_hook_that_runs_failed_tests_again_changes_nothing(start, conftest):
    runner = start({"conftest.py": conftest, "test_a.py": TEST.format(mark="")})
    ready = runner.open("test_a.py")
    (first,) = runner.run(ready, "test_a")["cases"]
    assert (first["outcome"], first["exception"]) == ("failed", "builtins.AssertionError")
    assert "run again" in first["message"] and "the first time" in first["message"]
    assert outcomes(runner.run(ready, "test_b")) == ["passed"]


@pytest.mark.parametrize(
    "plugin, mark",
    [
        ("pytest_retry", "@pytest.mark.flaky(retries=2)"),
        ("flaky", "@pytest.mark.flaky(max_runs=3)"),
        ("pytest_rerunfailures", "@pytest.mark.flaky(reruns=2)"),
    ],
)
def test_neither_does_a_plugin_that_stays(start, plugin, mark):
    pytest.importorskip(plugin)
    runner = start({"pytest.ini": "[pytest]\n", "test_a.py": TEST.format(mark=mark)})
    others = {"pytest_retry": "pytest-retry", "flaky": "flaky", "pytest_rerunfailures": "rerunfailures"}
    options = [word for name in others if name != plugin for word in ("-p", "no:" + others[name])]
    (first,) = runner.run(runner.open("test_a.py", options=options), "test_a")["cases"]
    assert first["outcome"] == "failed" and "run again" in first["message"]


def test_a_failure_that_was_expected_or_skipped_is_what_it_is(start):
    text = """
import unittest, pytest

@pytest.mark.xfail
def test_expected(): assert 0

def test_skips(): pytest.skip("why")

class TestUnit(unittest.TestCase):
    def test_unit_skips(self): self.skipTest("why")

    @unittest.expectedFailure
    def test_unit_expected(self): assert 0
"""
    runner = start({"test_a.py": text})
    ready = runner.open("test_a.py")
    words = {item["function"]: outcomes(runner.run(ready, item["function"])) for item in ready["items"]}
    assert words == {
        "test_expected": ["xfailed"],
        "test_skips": ["skipped"],
        "test_unit_skips": ["skipped"],
        "test_unit_expected": ["xfailed"],
    }
