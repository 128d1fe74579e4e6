"""Where the file of the tests itself lies, and what its module is called. This folder is no package."""

import inspect
import logging
import os
import pathlib
import pickle
import sys
import traceback
import unittest
import unittest.mock
import warnings

import pytest

import inventory
from inventory import Item, count, label, relative

NAME_AT_IMPORT = __name__
PRICE = 2


class Jar:
    pass


def test_reads_a_file_beside_itself():
    with open(os.path.join(os.path.dirname(__file__), "data", "names.txt"), encoding="ascii") as file:
        assert count(file.read().split()) == 2


@pytest.mark.parametrize("name", ["salt", "rice"])
def test_finds_a_name_in_a_file_beside_itself(name):
    assert label(name)[1:-1] in (pathlib.Path(__file__).resolve().parent / "data" / "names.txt").read_text()


def test_prints_its_file():
    print(__file__, label("here"))


def test_prints_the_name_of_its_file():
    print(label(os.path.basename(__file__)))


def test_prints_the_way_from_the_package():
    print(relative(__file__))


def test_prints_the_name_of_its_module():
    print(label(__name__))


def test_prints_the_name_that_its_module_had():
    sys.stderr.write(label(NAME_AT_IMPORT))


def test_prints_the_module_of_a_class():
    print(Jar.__module__, Jar, label("jar"))


def test_prints_an_object_of_its_own():
    print(Jar(), label("jar"))


def test_prints_the_file_of_a_function():
    print(inspect.getfile(test_prints_its_file), label("here"))


def test_prints_the_file_of_its_code():
    print(sys._getframe().f_code.co_filename, label("here"))


def test_prints_its_caller():
    print(inspect.stack()[0].filename, label("here"))


def test_prints_a_pickled_object():
    print(pickle.dumps([Jar(), Item("salt")], protocol=2))


def test_prints_a_traceback():
    try:
        inventory.reserve({}, "salt", 1)
    except inventory.OutOfStock:
        traceback.print_exc()


def test_prints_a_warning_about_itself():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        warnings.warn(label("old salt"), DeprecationWarning)
    print(seen[0].filename, seen[0].message)


def test_patches_itself_by_name():
    with unittest.mock.patch("test_own_location.PRICE", 5):
        assert PRICE * count("ab") == 10


def test_imports_itself():
    module = __import__("test_own_location")
    assert module.Jar is Jar and count("ab") == 2


def test_finds_itself_in_the_folder_of_tests():
    assert pathlib.Path(__file__).parent.name == "location" and count("ab") == 2


def test_prints_its_node(request):
    print(request.node.nodeid, label("here"))


def test_prints_the_path_of_its_request(request):
    print(request.path, label("here"))


def test_prints_its_module_as_pytest_sees_it(request):
    print(request.module.__name__, label("here"))


def test_prints_the_variable_that_pytest_sets():
    print(os.environ["PYTEST_CURRENT_TEST"].split("::")[0], label("here"))


def test_logs_its_module(caplog):
    logging.getLogger("shop").warning(label("salt"))
    print(caplog.records[0].module, caplog.records[0].filename)


@pytest.mark.parametrize("path", [__file__])
def test_is_named_after_its_file(path):
    assert label(path)


@pytest.mark.skipif(__name__ != "test_own_location", reason="not under this name")
def test_is_skipped_under_another_name():
    assert label(__name__)


class TestJars:
    def test_prints_itself(self):
        print(self, label("jar"))

    def test_prints_the_file_of_its_class(self):
        print(inspect.getsourcefile(type(self)), label("jar"))


class InUnittest(unittest.TestCase):
    def test_prints_its_id(self):
        print(self.id(), label("here"))
