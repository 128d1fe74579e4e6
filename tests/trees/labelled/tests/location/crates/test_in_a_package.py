"""The same in a package."""

import importlib
import logging
import os
import pathlib
import sys
import unittest
import unittest.mock

import pytest

from inventory import count, label

from . import helper
from .helper import twice

log = logging.getLogger(__name__)


@pytest.fixture
def names():
    return (pathlib.Path(__file__).parent / "data" / "names.txt").read_text(encoding="ascii").split()


def test_reads_a_file_beside_itself(names):
    assert count(names) == 2


def test_prints_the_name_of_its_module():
    print(__name__, twice("salt"))


def test_prints_the_name_of_its_logger():
    print(log.name, twice("salt"))


def test_patches_itself_by_name():
    with unittest.mock.patch("crates.test_in_a_package.twice", label):
        assert twice("salt") == "<salt>"


def test_imports_itself_again():
    assert importlib.import_module("crates.test_in_a_package") is sys.modules[__name__]
    assert twice("salt")


def test_looks_for_its_file_below_tests():
    assert os.path.join("location", "crates") in __file__ and twice("salt")


class TestNames:
    @pytest.mark.parametrize("number", [0, 1])
    def test_prints(self, names, number):
        print(label(names[number]))


class InUnittest(unittest.TestCase):
    def test_prints_its_class(self):
        print(type(self), twice("salt"))


# These two are kept: whatever the module is called, its package is the same.


def test_imports_its_sibling():
    assert twice("salt") == "<salt><salt>"


def test_patches_its_sibling(monkeypatch):
    monkeypatch.setattr(helper, "label", str.upper)
    assert twice("salt") == label("salt")[1:-1].upper() * 2
