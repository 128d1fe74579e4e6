from collections import Counter

import pytest


class Tally(Counter):
    def add(self, name):
        self[name] += 1
        return self[name]


@pytest.fixture
def tally():
    return Tally()


class TestTwice:
    def test_adds_up(self, tally):
        tally.add("x")
        assert tally.add("x") == 2
