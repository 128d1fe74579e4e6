import gc
import os

import pytest

from shelf import width


def forge(kind, value):
    for report in [one for one in gc.get_objects() if type(one).__name__ == "GroupReport"]:
        report.append(kind, value)


def function(file, order, calls=2**64 - 1):
    return {"file": file, "function": "f", "line": 1, "calls": calls, "order": order, "lines": None}


def test_forges_numbers_and_paths_of_a_trace():
    forge("trace", {"functions": [function("/dev/zero", 0), function("../../pipe", 1)], "complete": True})
    assert width(1) == 3


@pytest.mark.parametrize("value", [5, None, {"index": 2**70, "outcome": "passed"}])
def test_forges_cases(value):
    forge("case", value)
    assert width(1) == 3


def test_leaves_a_report_that_is_no_text():
    report = next(one for one in gc.get_objects() if type(one).__name__ == "GroupReport")
    report.memory[64:320] = bytes(range(256))
    report.memory[0:8] = (2**64 - 1).to_bytes(8, "little")
    os._exit(0)
