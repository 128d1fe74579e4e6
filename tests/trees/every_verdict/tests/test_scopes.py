"""Fixtures of wider scope live as long as they do under the entry command of the one group."""

import unittest

import pytest

from pantry import Square, area


@pytest.fixture(scope="module")
def door():
    yield area(1, 1)
    raise LookupError("the door is stuck")


def test_opens_a_door(door):
    assert door == 1


@pytest.mark.parametrize("side", [1, 2])
def test_uses_the_shelf(shelf, side):
    shelf.append(side)
    print("shelf holds", len(shelf), area(side, side))


def test_uses_a_fresh_shelf(shelf):
    assert len(shelf) == 1


def test_fills(container):
    print("fills the", container, area(1, 2))


def test_empties(container):
    print("empties the", container, area(2, 1))


class TestOuter:
    class TestInner:
        @pytest.mark.parametrize("side", [1, 2])
        def test_in_two_classes(self, side):
            assert Square(side).area() == side * side


class Unit(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.size = area(2, 2)

    def test_of_unittest(self):
        self.assertEqual(self.size, 4)
