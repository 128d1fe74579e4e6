"""Files whose text the driver gives, watched imports, tests that are made to fail, and runs nobody watches."""

import pytest

from driver import outcomes
from test_tracer import PYTHONS

SUBMISSION = '''\
import importlib

try:
    import tiny.core
except ImportError:
    tiny = None

def test_a():
    try:
        importlib.import_module("tiny")
    except ImportError as error:
        print(type(error).__name__)
    import json.decoder
'''


def test_the_given_text_is_what_is_collected_and_later_files_have_their_own(start):
    runner = start({"concise.py": "", "data.txt": "x"}, world={"watched": ["tiny"]})
    runner.ask("open_directory", file="concise.py", options=[], trace="off")
    first = runner.ask("open_file", file="concise.py", text=SUBMISSION)
    assert [item["node_id"] for item in first["items"]] == ["concise.py::test_a"]
    (seen,) = first["import_attempts"]
    assert (seen["module"], seen["line"]) == ("tiny", 4) and seen["file"].endswith("/concise.py")
    done = runner.run(first, "test_a")
    assert outcomes(done) == ["passed"] and done["cases"][0]["stdout"] == "ModuleNotFoundError\n"
    assert [(one["module"], one["line"]) for one in done["imports"]] == [("tiny", 10)]
    runner.ask("close")
    second = runner.ask("open_file", file="concise.py", text="def test_b(): pass\n")
    assert [item["node_id"] for item in second["items"]] == ["concise.py::test_b"]
    assert second["import_attempts"] == []
    assert "imports" not in runner.run(second, "test_b")


def test_a_file_that_is_not_given_is_as_it_is(start):
    runner = start({"test_t.py": "def test_c(): pass\n"})
    ready = runner.open("test_t.py")
    assert [item["node_id"] for item in ready["items"]] == ["test_t.py::test_c"]
    assert "import_attempts" not in ready


def test_files_of_the_tree_that_are_opened_are_noted_and_code_is_not(start):
    files = {
        "conftest.py": "open('first.txt').close()\n",
        "first.txt": "",
        "data/second.txt": "",
        "module.py": "",
        "test_t.py": "import module\n\ndef test_a():\n    open('data/../data/second.txt').close()\n    open('/dev/null').close()\n",
    }
    runner = start(files, world={"notes_files": True})
    ready = runner.open("test_t.py")
    assert [one for one in ready["opened"] if "cache" not in one] == ["first.txt"]
    done = runner.run(ready, "test_a")
    assert outcomes(done) == ["passed"] and done["opened"] == ["data/second.txt"]


def test_conftests_and_plugins_that_ask_for_a_watched_module_are_noted(start):
    files = {"tiny.py": "", "conftest.py": "import tiny\n", "test_t.py": "def test_a(): pass\n"}
    ready = start(files, world={"watched": ["tiny"]}).open("test_t.py")
    (seen,) = ready["import_attempts"]
    assert seen["module"] == "tiny" and seen["file"].endswith("/conftest.py")


def test_an_import_says_for_which_watched_module_it_is_made(start):
    files = {
        "loads.py": "import importlib\n\ndef load(name):\n    return importlib.import_module(name)\n",
        "tiny/__init__.py": "import loads\n\ndef parts():\n    return loads.load('tiny.part')\n",
        "tiny/part.py": "",
        "tiny/late.py": "",
        "tiny/early.py": "",
        "tiny/conftest.py": "import loads\nloads.load('tiny.early')\n",
        "tiny/test_t.py": "import loads\nimport tiny\n\ndef test_a():\n    tiny.parts()\n    loads.load('tiny.late')\n",
    }
    runner = start(files, world={"watched": ["tiny"]})
    ready = runner.ask("open_directory", file="tiny/test_t.py", options=[], trace="off")
    ready = runner.ask("open_file", file="tiny/test_t.py", text="import sys; sys.path.insert(0, '.')\n" + files["tiny/test_t.py"])
    (early,) = [one for one in ready["import_attempts"] if one["module"] == "tiny.early"]
    assert early["file"].endswith("/loads.py") and "for" not in early, "a conftest is there for a submission, too"
    noted = runner.run(ready, "test_a")["imports"]
    assert [(one["module"], one["file"].rpartition("/")[2], one.get("for")) for one in noted] == [
        ("tiny.part", "loads.py", "tiny"),
        ("tiny.late", "loads.py", "tiny.test_t"),
    ]


def test_pytest_does_without_what_its_configuration_names_of_a_hidden_package(start):
    options = "[pytest]\naddopts = -p tiny.plugin\nfilterwarnings =\n    error\n    ignore:x:tiny.core.Odd\n    ignore::DeprecationWarning\n"
    text = "import warnings\n\ndef test_a():\n    warnings.warn('old', DeprecationWarning)\n"
    runner = start({"pytest.ini": options, "concise.py": ""}, world={"watched": ["tiny"], "hidden": True})
    opened = runner.ask("open_directory", file="concise.py", options=[], trace="off")
    assert opened["type"] == "directory_ready", opened
    ready = runner.ask("open_file", file="concise.py", text=text)
    noted = [(one["module"], one["file"]) for one in ready["import_attempts"]]
    assert sorted(set(noted)) == [("tiny.core.Odd", "pytest: filterwarnings"), ("tiny.plugin", "pytest: -p")]
    assert outcomes(runner.run(ready, "test_a")) == ["passed"]


def test_a_test_that_is_inherited_from_another_file_says_where_it_is_defined(start):
    base = "import functools\n\ndef kept(f):\n    @functools.wraps(f)\n    def inner(*a):\n        return f(*a)\n    return inner\n\nclass Base:\n    @kept\n    def test_a(self): pass\n"
    files = {"shared.py": base, "test_t.py": "from shared import Base\n\nclass TestIt(Base):\n    def test_b(self): pass\n"}
    ready = start(files).open("test_t.py")
    found = {item["function"]: item.get("defined_in") for item in ready["items"]}
    assert found == {"test_a": "shared.py::Base::test_a", "test_b": None}


MADE_TO_FAIL = """\
import functools

def twice(function):
    @functools.wraps(function)
    def wrapped():
        function()
        function()
    return wrapped

@twice
def test_decorated():
    "Has a docstring."

def test_swallows():
    inner()

def inner():
    try:
        test_inside()
    except AssertionError:
        print("swallowed")

def test_inside():
    pass

test_inside()

class TestIn:
    def test_decorated(self):
        pass
"""


@pytest.mark.parametrize("trace", ["off", "lines"])
@pytest.mark.parametrize("python", PYTHONS)
def test_only_the_function_that_is_made_to_fail_fails_and_only_in_that_attempt(start, python, trace):
    runner = start({"concise.py": ""}, python=python)
    runner.ask("open_directory", file="concise.py", options=[], trace=trace)
    ready = runner.ask("open_file", file="concise.py", text=MADE_TO_FAIL)

    def of(function, classes, failing):
        items = [one["index"] for one in ready["items"] if (one["function"], one["classes"]) == (function, classes)]
        limits = {"case_timeout_ms": 10_000, "group_timeout_ms": 20_000}
        return runner.ask("run", items=items, failing=failing, untraced=True, **limits)["cases"][0]

    decorated = of("test_decorated", [], failing=10)
    assert (decorated["outcome"], decorated["exception"]) == ("failed", "builtins.AssertionError")
    assert of("test_decorated", ["TestIn"], failing=10)["outcome"] == "passed", "another of its name"
    assert of("test_decorated", ["TestIn"], failing=29)["outcome"] == "failed"
    swallowed = of("test_swallows", [], failing=23)
    assert (swallowed["outcome"], swallowed["stdout"]) == ("passed", "swallowed\n")
    assert outcomes(runner.run(ready, "test_inside")) == ["passed"]


LOOKS = """\
import sys

def watched():
    tools = getattr(sys, "monitoring", None)
    return sys.gettrace() or (tools and [tools.get_tool(one) for one in range(6) if tools.get_tool(one)])

AT_IMPORT = bool(watched())

def test_a():
    helper()
    assert AT_IMPORT and not watched()

def helper():
    return 1
"""


@pytest.mark.parametrize("python", PYTHONS)
def test_a_run_that_is_not_watched_does_not_see_what_watched_its_import(start, python):
    runner = start({"concise.py": ""}, python=python)
    runner.ask("open_directory", file="concise.py", options=[], trace="lines")
    ready = runner.ask("open_file", file="concise.py", text=LOOKS)
    unwatched = runner.run(ready, "test_a", untraced=True)
    assert outcomes(unwatched) == ["passed"] and "execution" not in unwatched
    watched = runner.run(ready, "test_a")
    assert outcomes(watched) == ["failed"]
    lines = dict(watched["execution"]["files"]["concise.py"]["lines"])
    assert {1, 3, 7, 9, 10, 11, 13, 14} <= set(lines) and watched["execution"]["complete"]
    assert outcomes(runner.run(ready, "test_a", untraced=True, failing=9)) == ["failed"]


REPLACED = {
    "conftest.py": "import thing\n",
    "thing.py": "VALUE = 'original'\n",
    "test_t.py": "import thing\n\ndef test_a():\n    print(thing.VALUE, open('thing.py').read())\n",
}


def shown_with(runner, texts):
    """What the test prints with these texts in the places of files."""
    ready = runner.ask("open_directory", file="test_t.py", options=[], texts=texts)
    assert ready["type"] == "directory_ready", ready
    done = runner.run(runner.ask("open_file", file="test_t.py"), "test_a")
    for _ in range(2):
        assert runner.ask("close")["type"] == "closed"
    return done["cases"][0]["stdout"]


@pytest.mark.parametrize("is_ahead", [False, True], ids=["not imported", "imported by the interpreter itself"])
def test_texts_take_the_places_of_files_before_anything_of_a_directory_is_imported(start, tmp_path, is_ahead):
    files = {**REPLACED, "sitecustomize.py": "import thing\n"} if is_ahead else REPLACED
    runner = start(files, environment={"PYTHONPATH": str(tmp_path / "tree0")})
    for value in ("first", "é", "third"):
        text = "VALUE = %r\n" % value
        assert shown_with(runner, {"thing.py": text}) == "%s %s\n" % (value, text)


def test_a_text_that_starts_a_thread_changes_nothing_for_the_next_one(start):
    test = "import os, thing\n\ndef test_a():\n    print(thing.PROCESS == os.getpid())\n"
    runner = start({"conftest.py": "import thing\n", "thing.py": "", "test_t.py": test})
    plain = "import os\nPROCESS = os.getpid()\n"
    thread = "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
    # Apart, each group imports for itself.
    assert shown_with(runner, {"thing.py": plain}) == "False\n"
    assert shown_with(runner, {"thing.py": plain + thread}) == "True\n"
    assert shown_with(runner, {"thing.py": plain}) == "False\n"
