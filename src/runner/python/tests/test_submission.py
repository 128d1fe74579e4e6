"""Files whose text the driver gives, and watched imports."""

from driver import outcomes

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
