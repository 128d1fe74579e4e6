import pytest

from tally import Tally, total


@pytest.fixture
def tally():
    return Tally()


def test_starts_empty(tally):
    assert total(tally) == 0


@pytest.mark.parametrize("names", ["a", "ab", "aba"])
def test_counts_each_name(tally, names):
    for name in names:
        print(name, tally.add(name))
    assert total(tally) == len(names)


class TestTwice:
    def test_adds_up(self, tally):
        tally.add("x")
        assert tally.add("x") == 2


def test_is_wrong(tally):
    assert tally.add("x") == 2
