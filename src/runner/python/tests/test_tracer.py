"""Counted calls, on this interpreter and on those named in GISTMILL_TEST_PYTHONS (each with pytest installed)."""

import os

import pytest

from driver import PYTHON, outcomes, write_tree
from gistmill_runner.tree_files import TreeFiles

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


CALLING = '''
import functools
import threading

def top():
    return sorted([2, 1], key=lambda one: inner(one)), functools.reduce(added, [1, 2]), inner(3)

def inner(one): return one

def added(one, other): return one + other

def again(n): return n and again(n - 1)

def numbers():
    yield inner(0)

def through_a_thread():
    thread = threading.Thread(target=inner, args=(1,))
    thread.start()
    thread.join()

def late():
    import lately
'''
CALLS = '''
import lib
import pytest

@pytest.fixture
def given():
    return lib.inner(7)

def test_calls(given):
    lib.top()
    lib.again(2)
    list(lib.numbers())
    lib.through_a_thread()
    lib.late()
'''


@pytest.mark.parametrize("python", PYTHONS)
def test_callers_in_the_tree_are_known(start, python):
    tree = {"lib.py": CALLING, "lately.py": "import lib\nlib.added(1, 2)\n", "test_t.py": CALLS}
    runner = start(tree, python=python)
    ready = runner.open("test_t.py", trace="tree")
    for _ in range(2):
        functions = runner.run(ready, "test_calls")["trace"]["functions"]
        names = [function["function"] for function in functions]
        callers = {function["function"]: [names[order] for order in function["callers"]] for function in functions}
        assert callers == {
            "given": [],
            "inner": ["given", "top", "top.<locals>.<lambda>", "numbers"],  # a thread's first function has no caller
            "test_calls": [],
            "top": ["test_calls"],
            "top.<locals>.<lambda>": ["top"],
            "added": ["top"],  # and the body of a module
            "again": ["test_calls", "again"],
            "numbers": ["test_calls"],
            "through_a_thread": ["test_calls"],
            "late": ["test_calls"],
        }
    runner = start(tree, python=python)
    functions = runner.run(runner.open("test_t.py", trace="all"), "test_calls")["trace"]["functions"]
    assert {function["callers"] for function in functions} == {None}


@pytest.mark.parametrize("mode", ["tree", "all"])
@pytest.mark.parametrize("python", PYTHONS)
def test_a_group_that_starts_threads_is_known(start, python, mode):
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
    ready = runner.open("test_t.py", trace=mode)
    names = ("test_alone", "test_with_a_thread", "test_alone_again")
    assert [runner.run(ready, name)["trace"]["starts_threads"] for name in names] == [False, True, False]



AGAIN = """
import threading

def work(n):
    class Made:
        v = n
    if n > 1:
        thread = threading.Thread(target=len, args=("",)); thread.start(); thread.join()
    return Made.v

assert work(2) == 2

def test_works(): work(2)
def test_works_alone(): work(1)
"""


@pytest.mark.parametrize("mode", ["tree", "all"])
@pytest.mark.parametrize("python", PYTHONS)
def test_what_ran_at_import_is_seen_again_by_each_group(start, python, mode):
    runner = start({"test_again.py": AGAIN}, python=python)
    ready = runner.open("test_again.py", trace=mode)
    for name, lines in (("test_works", {5, 7, 8, 9}), ("test_works_alone", {5, 7, 9})) * 2:
        trace = runner.run(ready, name)["trace"]
        assert [function["function"] for function in trace["functions"]] == [name, "work"]
        assert [body["name"] for body in trace["bodies"]] == ["work.<locals>.Made"]
        assert trace["starts_threads"] == (8 in lines)
        if mode == "all" or not trace_is_by_profile(runner):
            assert set(trace["functions"][1]["lines"]) == lines
            assert 6 in trace["bodies"][0]["lines"]


CHILD = """
import os, sys
import lib

def test_children():
    import subprocess
    run = lambda *command, **options: subprocess.run([sys.executable, *command], check=True, capture_output=True, text=True, **options)
    code = "import lib; lib.factorial(4); import os, sys; print(sorted(k for k in os.environ if 'GIST' in k), os.environ.get('PYTHONPATH'), [p for p in sys.path if 'gistmill' in p])"
    assert run("-c", code).stdout == "[] None []\\n"  # 4 calls, and 2 while lib is imported
    assert run("-c", code, env={"PYTHONPATH": "/x:/y"}).stdout == "[] /x:/y []\\n"  # 6
    run("child.py", close_fds=False, cwd=os.getcwd())  # itself, 2 at import, 5, and 6 of its own child
    subprocess.run([sys.executable, "-c", code], check=True, close_fds=False)  # 6
    assert run("-I", "-c", "import os; print(sorted(k for k in os.environ if 'GIST' in k))").stdout == "[]\\n"  # not followed
    subprocess.run(["sh", "-c", "true"], check=True)
    lib.factorial(1)

def test_none():
    lib.factorial(2)
"""

CHILD_PROGRAM = """
import multiprocessing, subprocess, sys
import lib

def main():
    lib.factorial(5)
    subprocess.run([sys.executable, "-c", "import lib; lib.factorial(4)"], check=True)

if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("mode", ["tree", "all"])
def test_child_interpreters_are_followed(start, python, mode):
    runner = start({"lib.py": LIBRARY, "child.py": CHILD_PROGRAM, "test_t.py": CHILD}, python=python)
    ready = runner.open("test_t.py", trace=mode)
    done = runner.run(ready, "test_children")
    assert outcomes(done) == ["passed"], done["cases"]
    assert done["trace"]["child_calls"] == 6 + 6 + (1 + 2 + 5 + 6) + 6
    own = {f["function"]: f["calls"] for f in done["trace"]["functions"]}
    assert own["factorial"] == 1
    assert runner.run(ready, "test_none")["trace"]["child_calls"] == 0


ODD_NAMES = """
import os, sys, types
sys.path.insert(0, os.getcwd())
with open(b"caf\\xe9.py", "w") as file:
    file.write("def odd(): return 1\\n")
import importlib
odd = importlib.import_module(os.fsdecode(b"caf\\xe9")).odd
def plain(): return 1

def test_odd_names():
    named = types.FunctionType(plain.__code__.replace(co_name="\\udc80"), {})
    assert odd() + named() == 2
"""


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("mode", ["tree", "all"])
def test_names_that_are_no_text_are_escaped(start, python, mode):
    runner = start({"test_t.py": ODD_NAMES}, python=python)
    ready = runner.open("test_t.py", trace=mode)
    assert "caf\\udce9.py" in ready["import"]["files"]
    done = runner.run(ready, "test_odd_names")
    assert outcomes(done) == ["passed"], done["cases"]
    called = {(f["file"], f["function"].replace("plain", "\\udc80")) for f in done["trace"]["functions"]}
    assert {("caf\\udce9.py", "odd"), ("test_t.py", "\\udc80")} <= called, called


def trace_is_by_profile(runner):
    return tuple(map(int, runner.greeting["python"].split(".")[:2])) < (3, 12)


BODIES = {
    "lib.py": '''\
import os

if os.sep == "?":
    never = 1

class Outer:
    x = 1
    if not x:
        y = 2
    class Inner:
        z = 3

def make():
    class Made:
        v = 4
    return Made
''',
    "test_bodies.py": "import lib\n\ndef test_a():\n    assert lib.make().v == 4\n",
}


@pytest.mark.parametrize("mode", ["tree", "all"])
@pytest.mark.parametrize("python", PYTHONS)
def test_lines_of_module_and_class_bodies(start, python, mode):
    runner = start(BODIES, python=python)
    ready = runner.open("test_bodies.py", trace=mode)
    imported = {(body["file"], body["name"]): body["lines"] for body in ready["import"]["bodies"]}
    done = runner.run(ready, "test_a")
    assert set(imported) == {
        ("test_bodies.py", "<module>"),
        ("lib.py", "<module>"),
        ("lib.py", "Outer"),
        ("lib.py", "Outer.Inner"),
    }
    (made,) = done["trace"]["bodies"]
    assert (made["file"], made["name"]) == ("lib.py", "make.<locals>.Made")
    if mode == "all" or not trace_is_by_profile(runner):
        assert set(imported["lib.py", "<module>"]) == {1, 3, 6, 13}
        assert set(imported["lib.py", "Outer"]) >= {7, 8, 10} and 9 not in imported["lib.py", "Outer"]
        assert set(imported["lib.py", "Outer.Inner"]) >= {11}
        assert set(made["lines"]) >= {15}
    else:
        assert list(imported.values()) == [None] * 4 and made["lines"] is None


def test_files_of_the_tree_are_known_by_what_their_links_lead_to(tmp_path, monkeypatch):
    root = write_tree(tmp_path / "tree", {"real/a.py": "", "b.py": ""})
    write_tree(tmp_path / "outside", {"c.py": ""})
    (root / "linked").symlink_to("real")
    (root / "link.py").symlink_to("real/a.py")
    (root / "out.py").symlink_to("../outside/c.py")
    (root / "folder").symlink_to("../outside")
    (tmp_path / "way").symlink_to("tree")
    files = TreeFiles(str(root))
    names = ["b.py", "real/a.py", "linked/a.py", "link.py", "out.py", "folder/c.py", "real/../b.py", "linked/..", "absent.py"]
    found = [files[str(tmp_path / "way" / name)] for name in names]
    assert found == ["b.py", "real/a.py", "real/a.py", "real/a.py", None, None, "b.py", None, "absent.py"]
    assert files["<string>"] is None
    monkeypatch.chdir(root)
    assert files["b.py"] == "b.py"
    monkeypatch.chdir(tmp_path / "outside")
    assert files["c.py"] is None, "another working directory"
