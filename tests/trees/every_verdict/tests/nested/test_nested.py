from .helper import double


def test_two_conftests(unit):
    assert unit == 2


def test_relative_import():
    assert double(3) == 6
