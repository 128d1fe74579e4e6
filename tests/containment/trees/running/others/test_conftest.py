import plain
from conftest import FOUND, look


def test_what_the_conftest_reached():
    print("\n".join(sorted(set(FOUND))))
    assert plain.value()


def test_what_a_test_reaches():
    FOUND.clear()
    look()
    print("\n".join(sorted(set(FOUND))))
    assert plain.value()
