"""Names of cases that other tools have stumbled over."""

import enum

import pytest

from inventory import count, label

ODD = ["a b", "[x]", "a::b", "two\nlines", "naïve ☕", "", "a/b.py", "-k", "'quoted' \"twice\"", "x" * 300, "back\\slash", "a[b]::c.py"]


@pytest.mark.parametrize("text", ODD)
def test_odd_texts(text):
    assert count(label(text)) == len(text) + 2


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@pytest.mark.parametrize("colour", list(Colour))
@pytest.mark.parametrize("number", [0, -1, 1.5, None, True])
def test_two_parameters(colour, number):
    print(colour, number, repr(colour))
    assert label(colour.name)


@pytest.mark.parametrize("thing", [object(), [], {}, len, Colour])
def test_things_without_a_name(thing):
    assert label("thing")


@pytest.mark.parametrize("name", ["salt", "rice"], ids=["same", "same"])
def test_names_given_twice(name):
    assert label(name)


@pytest.mark.parametrize("name", ["salt", pytest.param("rice", id="::")], ids=lambda name: name.upper())
def test_names_made_by_a_function(name):
    assert label(name)


@pytest.mark.parametrize("item", ["salt", "rice"], indirect=True)
def test_indirect_parameters(item):
    print(item)
    assert item.price == count(item.name)


def pytest_generate_tests(metafunc):
    if "generated" in metafunc.fixturenames:
        metafunc.parametrize("generated", range(3))


def test_generated_parameters(generated):
    assert count(range(generated)) == generated
