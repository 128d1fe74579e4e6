import unittest

import pytest
import trio
from hypothesis import given, strategies

from runners import double, later


class TestPlain(unittest.TestCase):
    def test_subtests(self):
        for number in range(3):
            with self.subTest(number):
                self.assertEqual(double(number), number + number)


@pytest.mark.asyncio
async def test_asyncio():
    assert await later(2) == 4


@pytest.mark.trio
async def test_trio():
    await trio.sleep(0)
    assert await later(2) == 4


@given(strategies.integers())
def test_any_number(number):
    assert double(number) % 2 == 0


@pytest.mark.parametrize("word", sorted({"a", "b", "c"}))
def test_order(word):
    print(double(word))


@pytest.mark.parametrize("word", {"pear", "plum", "fig", "lime"})
def test_parameters_out_of_a_set(word):
    print(double(word))
