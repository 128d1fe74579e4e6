"""Relative imports, and what conftest files of several levels give."""

import os
import unittest.mock

from inventory import total

from . import helper
from .helper import labels, priced


def test_imports_a_sibling():
    assert labels() == ["<rice>", "<salt>"]


def test_imports_inside():
    from .helper import PRICES

    assert total(PRICES.values()) == 5


def test_patches_a_sibling():
    with unittest.mock.patch.object(helper, "PRICES", {"salt": 7}):
        assert priced("salt").price == 7


def test_patches_a_sibling_by_name():
    with unittest.mock.patch("larder.helper.PRICES", {"salt": 8}):
        assert priced("salt").price == 8


def test_uses_a_fixture_of_its_folder(from_the_list):
    print(from_the_list)
    assert from_the_list == priced(from_the_list.name)


def test_uses_a_fixture_of_two_levels(unit):
    assert total([unit]) == 10


def test_uses_a_fixture_that_every_test_gets():
    assert os.environ["INVENTORY_QUIET"] == "yes" and labels()
