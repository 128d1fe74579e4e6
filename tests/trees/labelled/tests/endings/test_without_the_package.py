"""All of these pass, and none runs a function of the package."""

import asyncio
import unittest

import pytest

import inventory


def test_calls_only_the_standard_library():
    assert len("four") == 4


def test_looks_at_the_package():
    assert "count" in dir(inventory) and callable(inventory.count)


@pytest.fixture
def own():
    return helper(2)


def helper(number):
    return number * 2


@pytest.mark.parametrize("number", [1, 2])
def test_calls_helpers_of_its_own(own, number):
    assert helper(number) <= own


class TestInAClass:
    def test_nothing(self):
        print("nothing")


class InUnittest(unittest.TestCase):
    def test_nothing(self):
        self.assertTrue(issubclass(inventory.OutOfStock, LookupError))


def test_waits():
    asyncio.run(asyncio.sleep(0.01))
