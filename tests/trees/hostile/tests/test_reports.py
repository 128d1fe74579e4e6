"""What tests write into the report of their attempt, and into their trace."""

import gc
import importlib
import os
import struct
import sys
import types

import vault
from vault import doors

ROOT = os.path.dirname(os.path.dirname(vault.__file__))


def reports():
    """The report of this attempt; none in a cold run."""
    return [one for one in gc.get_objects() if type(one).__name__ == "GroupReport"]


def report():
    return reports()[0]


def leave_with(raw):
    memory = report().memory
    memory[64 : 64 + len(raw)] = raw
    struct.pack_into("@Q", memory, 0, len(raw))
    os._exit(0)


def plain():
    return doors(1, 1)


def test_clean_before():
    assert doors(2, 3) == 6


def test_appends_a_number_in_place_of_a_case():
    report().append("case", 5)
    assert doors(1, 1) == 1


def test_appends_numbers_beyond_measure():
    report().append("case", {"index": 2**70, "outcome": "passed", "duration_ms": -1.0})
    assert doors(1, 1) == 1


def test_appends_what_is_no_number():
    report().append("case", {"index": 0, "outcome": "passed", "duration_ms": float("nan")})
    assert doors(1, 1) == 1


def test_leaves_bytes():
    leave_with(bytes(range(256)))


def test_leaves_a_lone_surrogate():
    leave_with(b'["case",{"index":0,"outcome":"passed","stdout":"\\ud800"}]\n')


def test_leaves_lists_in_lists():
    leave_with(b"[" * 10**6)


def test_leaves_a_number_of_a_million_digits():
    leave_with(b'["end",{"pytest_exit":' + b"1" * 10**6 + b"}]\n")


def test_leaves_more_than_there_is():
    struct.pack_into("@Q", report().memory, 0, 2**64 - 1)
    os._exit(0)


def test_is_in_no_hurry():
    for one in reports():
        one.case_starts(-(2**63), 2**63 - 1)
    assert doors(1, 1) == 1


def test_forges_a_trace():
    function = {"file": "/dev/zero", "function": "f", "line": 1, "calls": 2**64 - 1, "order": 0, "lines": None}
    for one in reports():
        one.append("trace", {"functions": [function, {**function, "file": "../../pipe"}], "complete": True})
    assert doors(1, 1) == 1


def test_calls_a_function_whose_name_is_no_text():
    assert types.FunctionType(plain.__code__.replace(co_name="\udc80"), globals())() == 1


def test_calls_a_function_of_a_file_whose_name_is_no_text():
    with open(os.path.join(os.fsencode(ROOT), b"caf\xe9.py"), "w") as file:
        file.write("from vault import doors\ndef one(): return doors(1, 1)\n")
    importlib.invalidate_caches()
    sys.path.insert(0, ROOT)
    assert importlib.import_module(os.fsdecode(b"caf\xe9")).one() == 1


def test_clean_after():
    assert doors(4, 3) == 12
