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
