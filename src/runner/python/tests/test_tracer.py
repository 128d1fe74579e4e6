"""Counted calls, on this interpreter and on those named in GISTMILL_TEST_PYTHONS (each with pytest installed)."""

import os

import pytest

from driver import PYTHON, outcomes

PYTHONS = [PYTHON] + [path for path in os.environ.get("GISTMILL_TEST_PYTHONS", "").split(":") if path]

LIBRARY = '''
import functools

class Base:
    value = (lambda: 3)()
    def __init__(self): self.v = 1
    @property
    def p(self): return self.v

def gen(n):
    for i in range(n):
        yield i
    return 5

def delegates():
    got = yield from gen(3)
    yield got

def closed():
    try:
        yield 1
    finally:
        helper()

def thrower():
    try:
        yield 1
    except KeyError:
        yield 2

def helper(): return 0

def factorial(n): return 1 if n < 2 else n * factorial(n - 1)

async def coroutine():
    await inner()

async def inner(): return 2

async def agen():
    for i in range(3):
        yield i

async def main():
    await coroutine()
    async for _ in agen():
        pass

def decorate(f):
    @functools.wraps(f)
    def wrapper(*a): return f(*a)
    return wrapper

@decorate
def decorated(a): return a

def twin(): return 1
'''

TEST = '''
import asyncio, threading
import lib, twins
import pytest

@pytest.fixture
def helped():
    yield lib.helper()
    lib.helper()

def test_calls(helped):
    lib.Base().p
    list(lib.gen(10)); list(lib.delegates())
    unstarted = lib.gen(3); unstarted.close()
    g = lib.closed(); next(g); g.close()
    g = lib.thrower(); next(g); g.throw(KeyError("x"))
    lib.factorial(10); lib.decorated(1)
    loop = asyncio.new_event_loop(); loop.run_until_complete(lib.main()); loop.close()
    thread = threading.Thread(target=lib.factorial, args=(5,)); thread.start(); thread.join()
    lib.twin(); twins.twin(); twins.twin()
    print("traced")

def test_traces_itself():
    import sys
    seen = []
    sys.setprofile(lambda frame, event, argument: seen.append(event))
    lib.helper()
    sys.setprofile(None)
    assert "call" in seen
'''

EXPECTED = {
    ("lib.py", "Base.__init__"): 1,
    ("lib.py", "Base.p"): 1,
    ("lib.py", "gen"): 2,
    ("lib.py", "delegates"): 1,
    ("lib.py", "closed"): 1,
    ("lib.py", "thrower"): 1,
    ("lib.py", "helper"): 3,
    ("lib.py", "factorial"): 15,
    ("lib.py", "decorate.<locals>.wrapper"): 1,
    ("lib.py", "decorated"): 1,
    ("lib.py", "main"): 1,
    ("lib.py", "coroutine"): 1,
    ("lib.py", "inner"): 1,
    ("lib.py", "agen"): 1,
    ("lib.py", "twin"): 1,
    ("twins.py", "twin"): 2,
    ("test_t.py", "helped"): 1,
    ("test_t.py", "test_calls"): 1,
}


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("mode", ["tree", "all"])
def test_functions_of_the_tree_are_counted(start, python, mode):
    tree = {"lib.py": LIBRARY, "twins.py": "def twin(): return 1\n", "test_t.py": TEST}
    runner = start(tree, python=python)
    ready = runner.open("test_t.py", trace=mode)
    imported = ready["import"]
    assert imported["files"] == ["lib.py", "test_t.py", "twins.py"]
    assert {f["function"]: f["calls"] for f in imported["functions"]} == {"Base.<lambda>": 1, "decorate": 1}
    for _ in range(2):
        done = runner.run(ready, "test_calls")
        trace = done["trace"]
        assert (outcomes(done), done["cases"][0]["stdout"], trace["complete"]) == (["passed"], "traced\n", True)
        assert {(f["file"], f["function"]): f["calls"] for f in trace["functions"]} == EXPECTED
        assert [f["order"] for f in trace["functions"]] == list(range(len(EXPECTED)))
        assert trace["functions"][0]["function"] == "helped"
        if mode == "all":
            assert trace["total_calls"] > sum(EXPECTED.values())
        lines = {f["function"]: f["lines"] for f in trace["functions"]}["thrower"]
        start_line = LIBRARY.split("def thrower")[0].count("\n") + 1
        assert lines in (None, [start_line + 1, start_line + 2, start_line + 3, start_line + 4])
        assert (lines is None) == (mode == "tree" and trace_is_by_profile(runner))
    assert outcomes(runner.run(ready, "test_traces_itself")) == ["passed"]


@pytest.mark.parametrize("python", PYTHONS)
def test_a_group_that_starts_threads_is_known(start, python):
    tree = {
        "test_t.py": """
import threading

def test_alone(): pass
def test_with_a_thread():
    thread = threading.Thread(target=len, args=("",)); thread.start(); thread.join()
def test_alone_again(): pass
"""
    }
    runner = start(tree, python=python)
    ready = runner.open("test_t.py", trace="all")
    names = ("test_alone", "test_with_a_thread", "test_alone_again")
    assert [runner.run(ready, name)["trace"]["starts_threads"] for name in names] == [False, True, False]


def trace_is_by_profile(runner):
    return tuple(map(int, runner.greeting["python"].split(".")[:2])) < (3, 12)
