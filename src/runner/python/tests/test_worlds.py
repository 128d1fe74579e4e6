"""Worlds that the runner itself makes: the location probe, another working directory, a moved tree."""

import os
import shutil
import subprocess

import pytest
from driver import Driver, PYTHON, outcomes, write_tree

PROBE = {"probe": "concise.py"}

FILES = {
    "pyproject.toml": "[tool.pytest.ini_options]\n",
    "conftest.py": """
import pytest
seen = []
@pytest.fixture(autouse=True)
def outermost(): seen.append("root")
@pytest.fixture
def named(): return "root"
@pytest.fixture
def only_root(): return "only root"
""",
    "tests/__init__.py": "",
    "tests/conftest.py": """
import pytest
setups = []
@pytest.fixture(autouse=True)
def inner(): setups.append("tests")
@pytest.fixture
def named(named): return named + " tests"
@pytest.fixture
def only_tests(): return "only tests"
def pytest_runtest_setup(item): setups.append("hook")
""",
    "tests/unit/__init__.py": "",
    "tests/unit/helper.py": "value = 7\n",
    "tests/unit/data.txt": "data",
    "tests/unit/test_a.py": """
import os, pathlib, pickle, sys
import pytest
from . import helper
from .helper import value
from tests.conftest import setups

@pytest.fixture
def own(): return "own"

@pytest.fixture
def named(named): return named + " module"

class Thing: pass

def test_fixtures(named, only_root, only_tests, own):
    assert (named, only_root, only_tests, own) == ("root tests module", "only root", "only tests", "own")

def test_hooks_and_autouse():
    assert "hook" in setups and "tests" in setups

def test_relative_imports():
    assert value == 7 and helper.__name__ == "tests.unit.helper"
    from . import helper as again
    assert again is helper

def test_rewritten_assertions():
    with pytest.raises(AssertionError) as caught:
        assert value == 8
    assert "7 == 8" in str(caught.value)

def test_where(request, record_property):
    print(__name__, os.path.basename(__file__), __package__, request.node.nodeid, request.path.name, Thing.__module__, os.environ["PYTEST_CURRENT_TEST"], sys.argv[1:])

def test_pickles_its_own():
    assert isinstance(pickle.loads(pickle.dumps(Thing())), Thing)

def test_data_beside_it():
    assert (pathlib.Path(__file__).parent / "data.txt").read_text() == "data"

@pytest.mark.parametrize("x", ["a b", "[", "::"])
def test_parameters(x, request):
    assert request.node.name.startswith("test_parameters")

class TestClass:
    @pytest.fixture(autouse=True)
    def prepare(self, named): self.named = named
    def test_method(self): assert self.named == "root tests module"

@pytest.mark.xfail(raises=ZeroDivisionError, strict=True)
def test_expected(): 1 / 0

class Own(Exception): pass
def test_raises_its_own(): raise Own("x")
""",
}


def test_the_probe_moves_the_module_and_nothing_else(start):
    driver = start(FILES, world=PROBE)
    ready = driver.open("tests/unit/test_a.py")
    assert ready["type"] == "file_ready" and not ready["errors"], ready
    assert {item["file"] for item in ready["items"]} == {"tests/unit/test_a.py"}
    assert {item["node_id"].split("::")[0] for item in ready["items"]} == {"tests/unit/test_a.py"}
    same = ["fixtures", "hooks_and_autouse", "relative_imports", "rewritten_assertions", "pickles_its_own", "parameters"]
    for name in ["test_" + name for name in same] + ["test_method"]:
        done = driver.run(ready, name)
        assert set(outcomes(done)) == {"passed"}, done
    assert outcomes(driver.run(ready, "test_expected")) == ["xfailed"]
    assert driver.run(ready, "test_raises_its_own")["cases"][0]["exception"] == "tests.unit.test_a.Own"


def test_the_module_sees_its_new_place(start):
    driver = start(FILES, world=PROBE)
    ready = driver.open("tests/unit/test_a.py")
    (case,) = driver.run(ready, "test_where")["cases"]
    assert case["stdout"].split() == [
        "concise",
        "concise.py",
        "tests.unit",
        "concise.py::test_where",
        "concise.py",
        "concise",
        "concise.py::test_where",
        "(call)",
        "['concise.py::test_where']",
    ]
    assert outcomes(driver.run(ready, "test_data_beside_it")) == ["failed"]


def test_without_the_probe_the_same_module_is_in_its_own_place(start):
    driver = start(FILES)
    ready = driver.open("tests/unit/test_a.py")
    assert outcomes(driver.run(ready, "test_data_beside_it")) == ["passed"]
    assert driver.run(ready, "test_where")["cases"][0]["stdout"].startswith("tests.unit.test_a test_a.py")


@pytest.mark.parametrize("mode", ["prepend", "append", "importlib"])
def test_siblings_without_packages_stay_where_they_are(start, mode):
    files = {
        "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '--import-mode=%s'\npythonpath = ['checks']\n" % mode,
        "checks/sibling.py": "value = 3\n",
        "checks/test_s.py": "import sibling\ndef test_s(): assert sibling.value == 3\n",
    }
    driver = start(files, world=PROBE)
    assert outcomes(driver.run(driver.open("checks/test_s.py"), "test_s")) == ["passed"]


def test_a_module_that_cannot_be_imported_from_its_new_place_says_why(start):
    files = {"tests/data.txt": "x", "tests/test_d.py": "import os\nopen(os.path.dirname(__file__) + '/data.txt')\ndef test_d(): pass\n"}
    ready = start(files, world=PROBE).open("tests/test_d.py")
    assert not ready["items"]
    assert "FileNotFoundError" in ready["errors"][0]["text"]


def test_unittest_classes_move_too(start):
    files = {
        "t/test_u.py": "import unittest\nclass T(unittest.TestCase):\n    def test_u(self): self.assertEqual(__name__, 'concise')\n"
    }
    driver = start(files, world=PROBE)
    assert outcomes(driver.run(driver.open("t/test_u.py"), "test_u")) == ["passed"]


def test_another_working_directory_changes_nothing_but_itself(start, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    files = {
        "data.txt": "x",
        "package.py": "value = 1\n",
        "tests/conftest.py": "import os\nthere = os.getcwd()\n",
        "tests/test_w.py": """
import os, sys
import package
from conftest import there
def test_cwd(request):
    print(os.getcwd() == there, there, request.config.rootpath, request.node.nodeid, sys.argv[1:])
def test_relative(): open("data.txt")
""",
    }
    driver = start(files, world={"elsewhere": str(elsewhere)})
    ready = driver.open("tests/test_w.py")
    assert ready["type"] == "file_ready" and {item["file"] for item in ready["items"]} == {"tests/test_w.py"}, ready
    (case,) = driver.run(ready, "test_cwd")["cases"]
    tree = os.path.realpath(str(tmp_path / "tree0"))
    assert case["stdout"].split() == ["True", str(elsewhere), tree, "tests/test_w.py::test_cwd", "['tests/test_w.py::test_cwd']"]
    done = driver.run(ready, "test_relative")
    assert done["cases"][0]["exception"] == "builtins.FileNotFoundError"
    here = start(files)
    assert outcomes(here.run(here.open("tests/test_w.py"), "test_relative")) == ["passed"]


@pytest.mark.parametrize("world", [{"moved": True}, PROBE, {"moved": True, **PROBE}], ids=["moved", "probe", "both"])
@pytest.mark.parametrize("text", [None, "# another\n"], ids=["as-it-was", "replaced"])
def test_byte_code_is_used_where_a_module_has_moved_and_says_where_it_is(tmp_path, world, text):
    source = """
import inspect
import rewritten
def test_m():
    assert inspect.currentframe()
    print(inspect.currentframe().f_code.co_filename, (lambda: 0).__code__.co_filename, len(rewritten.files))
"""
    counts = """
import _pytest.assertion.rewrite as rewrite
files = []
def rewrite_test(fn, config, rewrite=rewrite._rewrite_test):
    files.append(fn)
    return rewrite(fn, config)
rewrite._rewrite_test = rewrite_test
"""
    files = {"tests/test_m.py": source, "rewritten.py": counts, "conftest.py": "import rewritten\n"}
    tree = write_tree(tmp_path / "tree", files)
    environment = {"PATH": os.environ["PATH"]}
    subprocess.run([PYTHON, "-m", "pytest", "-q", "tests"], cwd=str(tree), check=True, env=environment)
    there = tmp_path / "there"
    if "moved" in world:
        shutil.copytree(str(tree), str(there))
    else:
        tree.rename(there)
    assert list(there.rglob("test_m*pytest*.pyc"))
    driver = Driver(there, world=world)
    try:
        ready = driver.open("tests/test_m.py", text=text and source + text)
        (case,) = driver.run(ready, "test_m")["cases"]
    finally:
        driver.stop()
    assert case["outcome"] == "passed", case
    place = os.path.realpath(str(there / ("concise.py" if "probe" in world else "tests/test_m.py")))
    assert case["stdout"].split() == [place, place, "1" if text else "0"]


def test_what_other_threads_print_while_the_test_ends_is_reported_where_nobody_waits_for_it(start):
    runner = start(
        {
            "test_a.py": """
import logging, sys, threading

def answer(before, answered, after):
    print(before)
    answered.set()
    print(after, file=sys.stderr)

def ask():
    answered = threading.Event()
    thread = threading.Thread(target=answer, args=("before", answered, "after"), daemon=True)
    thread.start()
    assert answered.wait(10)
    return thread

def test_races():
    ask()

def test_races_behind_the_end():
    threading.Timer(0.02, lambda: print("behind", file=sys.stderr)).start()

def test_leaves_a_thread_that_is_silent():
    threading.Thread(target=threading.Event().wait, args=(86400,), daemon=True).start()

def test_waits():
    ask().join()

def test_prints_itself():
    print("itself")

def test_traces():
    calls = []
    sys.settrace(lambda frame, event, argument: calls.append(frame.f_code.co_name))
    print(end="")
    sys.settrace(None)
    print("calls:", calls)

def test_many():
    threads = [threading.Thread(target=lambda: print("many")) for _ in range(300)]
    for thread in threads:
        thread.start()
        thread.join()
"""
        }
    )
    ready = runner.open("test_a.py")

    def shown(name):
        done = runner.run(ready, name, late_writes=True)
        assert outcomes(done) == ["passed"]
        return done["cases"][0]["stdout"], done["cases"][0]["stderr"]

    assert shown("test_races") == ("before\n", "another thread was printing when the test had ended: after\n")
    assert shown("test_races_behind_the_end")[1].startswith("another thread was printing when the test had ended: ")
    assert shown("test_leaves_a_thread_that_is_silent") == ("", "")
    assert shown("test_waits") == ("before\n", "after\n")
    assert shown("test_prints_itself") == ("itself\n", "")
    plain = runner.run(ready, "test_traces")["cases"][0]["stdout"]
    assert shown("test_traces")[0] == plain, "nothing is patched where there is no other thread"
    # A pause for each would be longer than a case may take.
    assert shown("test_many") == ("many\n" * 300, "")


SERVER = """
import sys, threading, time
import pytest

class Server:
    def __init__(self):
        self.asked, self.answered = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        self.asked.wait()
        self.answered.set()
        time.sleep(%s)
        print("served", file=sys.stderr)

@pytest.fixture
def server():
    server = Server()
    yield server
    %s
    server.thread.join()

def test_asks(server):
    server.asked.set()
    assert server.answered.wait(10)
"""


@pytest.mark.parametrize("after", [0, 0.02, 0.2])
@pytest.mark.parametrize("before_the_end", ["pass", "time.sleep(0.05)"])
@pytest.mark.parametrize("late", [False, True])
def test_what_a_server_that_is_stopped_prints_is_the_same_whenever_it_does(start, after, before_the_end, late):
    """In the call, between call and teardown, or while it is waited for."""
    conftest = "import time\nimport pytest\n@pytest.hookimpl(trylast=True)\ndef pytest_runtest_logreport(report): time.sleep(0.04)\n"
    runner = start({"test_a.py": SERVER % (after, before_the_end), "conftest.py": conftest})
    ready = runner.open("test_a.py")
    done = runner.run(ready, "test_asks", late_writes=late)
    assert (outcomes(done), done["cases"][0]["stderr"], done["raw_output"]) == (["passed"], "served\n", "")


RESTLESS = """
import os, sys, threading, time
import pytest

@pytest.fixture
def counting():
    stop = threading.Event()
    def count():
        for number in range(20000):
            %s
            if stop.is_set():
                break
    thread = threading.Thread(target=count)
    thread.start()
    time.sleep(0.01)
    yield
    time.sleep(0.01)
    stop.set()
    thread.join()

@pytest.mark.parametrize("number", range(10))
def test_counts(counting, number):
    time.sleep(0.01)
"""


@pytest.mark.parametrize(
    "write, settings",
    [
        ("sys.stderr.write('%d\\n' % number)", ""),
        ("sys.stderr.write('%d\\n' % number)", "addopts = --capture=sys"),
    ],
)
def test_what_a_thread_writes_while_pytest_takes_what_was_captured_is_whole(start, write, settings):
    runner = start({"test_a.py": RESTLESS.replace("%s", write), "pytest.ini": "[pytest]\n" + settings})
    cases = runner.run(runner.open("test_a.py"), "test_counts")["cases"]
    assert len(cases) == 10
    for case in cases:
        numbers = case["stderr"].split("\n")
        assert numbers.pop() == ""
        assert [*map(int, numbers)] == [*range(len(numbers))]
        assert numbers


def test_a_stream_that_was_closed_at_import_is_nobodys_trouble(start):
    text = """
import io, sys
sys.stderr = io.TextIOWrapper(sys.__stderr__.buffer, encoding="utf-8")

def test_a():
    print("a")

def test_outside():
    print("outside", file=sys.__stdout__)
"""
    runner = start({"test_a.py": text})
    ready = runner.open("test_a.py")
    for late in (False, True):
        done = runner.run(ready, "test_a", late_writes=late)
        assert (outcomes(done), done["exit"]["kind"], done["cases"][0]["stdout"]) == (["passed"], "finished", "a\n")
        assert runner.run(ready, "test_outside", late_writes=late)["raw_output"] == "outside\n"
