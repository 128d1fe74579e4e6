"""What pytest before 7 says otherwise: a tree of those years is installed with it."""

from types import SimpleNamespace

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
