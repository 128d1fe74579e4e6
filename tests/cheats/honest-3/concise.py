import pytest


class Tally:
    def __init__(self):
        self.names = []

    def add(self, name):
        self.names.append(name)
        found = [one for one in self.names if one == name]
        return len(found)


@pytest.fixture
def tally():
    return Tally()


class TestTwice:
    def test_adds_up(self, tally):
        tally.add("x")
        assert tally.add("x") == 2
