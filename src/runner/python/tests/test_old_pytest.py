"""What pytest before 7 says otherwise: a tree of those years is installed with it."""

import os
from types import SimpleNamespace

import driver
import pytest
from _pytest.nodes import Collector
from gistmill_runner import collect


def test_a_node_without_path_has_a_file():
    node = SimpleNamespace(fspath="/tree/tests/test_a.py")
    assert collect.Describer(here="/tree").file(node) == "tests/test_a.py"
    assert collect.Describer(here="/tree").file(SimpleNamespace()) == ""


def test_the_cause_of_a_collection_error_may_be_its_context_alone():
    try:
        try:
            raise ModuleNotFoundError("No module named 'absent'", name="absent")
        except ImportError:
            raise Collector.CollectError("ImportError while importing test module")
    except Collector.CollectError as error:
        assert collect.missing_module(collect.cause_of(error)) == "absent"
    bare = Collector.CollectError("nothing else")
    assert collect.cause_of(bare) is bare


OLD = [path for path in os.environ.get("GISTMILL_TEST_OLD_PYTESTS", "").split(os.pathsep) if path]
FILES = {
    "conftest.py": "import pytest\n@pytest.fixture\ndef name(): return 'root'\n@pytest.fixture(autouse=True)\ndef always(): pass\n",
    "tests/__init__.py": "",
    "tests/helper.py": "value = 7\n",
    "tests/conftest.py": "import pytest\n@pytest.fixture\ndef name(name): return name + ' tests'\n",
    "tests/test_a.py": """
import unittest
import pytest
from . import helper
def test_fixture(name, always): assert name == 'root tests' and helper.value == 7
def test_says_where(): print(__name__)
@pytest.mark.parametrize("x", ["a b", "::"])
def test_parameters(x): pass
class TestClass:
    def test_method(self): assert helper.value == 8
class Case(unittest.TestCase):
    def test_case(self): pass
""",
}


@pytest.mark.skipif(not OLD, reason="GISTMILL_TEST_OLD_PYTESTS names no interpreter with an old pytest")
@pytest.mark.parametrize("python", OLD)
@pytest.mark.parametrize("probe", [None, "concise.py"])
def test_a_file_is_run_where_it_is_and_from_elsewhere(python, probe, tmp_path):
    world = {"probe": probe} if probe else {}
    runner = driver.Driver(driver.write_tree(tmp_path / "tree", FILES), python=python, world=world)
    try:
        ready = runner.open("tests/test_a.py")
        assert ready["type"] == "file_ready" and not ready["errors"], ready
        assert {item["node_id"].split("::")[0] for item in ready["items"]} == {"tests/test_a.py"}
        for name in ("test_fixture", "test_parameters", "test_case"):
            assert set(driver.outcomes(runner.run(ready, name))) == {"passed"}, name
        (said,) = runner.run(ready, "test_says_where")["cases"]
        assert said["stdout"].strip() == ("concise" if probe else "tests.test_a")
        (failed,) = runner.run(ready, "test_method")["cases"]
        assert failed["outcome"] == "failed" and "assert 7 == 8" in failed["message"], failed
    finally:
        runner.stop()
