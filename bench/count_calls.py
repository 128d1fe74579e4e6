"""A pytest plugin that counts, in a few lines and knowing nothing of gistmill, the calls into the tree while cases run.

COUNT_BY is `profile` (sys.setprofile) or `monitoring` (sys.monitoring); COUNT_TO names the file for the result.
"""

import dis
import inspect
import json
import os
import sys
import threading
from collections import Counter

import pytest

CALLS = Counter()
ROOT = os.path.realpath(os.getcwd()) + os.sep
RESUMABLE = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
STARTS = {}


def start_of(code):
    """Offset at which the body of a generator begins; a later one is where it goes on."""
    if code not in STARTS:
        found = [one.offset for one in dis.get_instructions(code) if one.opname == "RESUME"]
        STARTS[code] = found[0] if found else -1
    return STARTS[code]


def profile(frame, event, argument):
    code = frame.f_code
    if event == "call" and (not code.co_flags & RESUMABLE or frame.f_lasti <= start_of(code)):
        CALLS[code] += 1


def started(code, offset):
    CALLS[code] += 1


def begin():
    if os.environ["COUNT_BY"] == "profile":
        threading.setprofile(profile)
        sys.setprofile(profile)
    else:
        sys.monitoring.use_tool_id(sys.monitoring.PROFILER_ID, "count")
        sys.monitoring.register_callback(sys.monitoring.PROFILER_ID, sys.monitoring.events.PY_START, started)
        sys.monitoring.set_events(sys.monitoring.PROFILER_ID, sys.monitoring.events.PY_START)


def end():
    if os.environ["COUNT_BY"] == "profile":
        sys.setprofile(None)
        threading.setprofile(None)
    else:
        sys.monitoring.set_events(sys.monitoring.PROFILER_ID, 0)


def in_tree(code):
    path = os.path.realpath(code.co_filename)
    is_function = code.co_flags & inspect.CO_OPTIMIZED  # neither a module's body nor a class's
    return is_function and path.startswith(ROOT) and not code.co_filename.startswith("<")


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtestloop(session):
    begin()
    yield
    end()
    counted = [(code, calls) for code, calls in CALLS.items() if in_tree(code)]
    files = {os.path.realpath(code.co_filename)[len(ROOT) :] for code, _ in counted}
    names = Counter()
    for code, calls in counted:
        names["%s:%d:%s" % (os.path.realpath(code.co_filename)[len(ROOT) :], code.co_firstlineno, code.co_name)] += calls
    with open(os.environ["COUNT_TO"], "w") as out:
        json.dump({"calls": sum(names.values()), "files": sorted(files), "functions": names}, out)
