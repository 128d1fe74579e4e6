"""Groups whose calls are counted by hand."""

import asyncio
import threading

import pytest

from pantry import Square, area, factorial, steps


def test_one_call():
    assert area(2, 3) == 6


@pytest.mark.parametrize("side", [1, 2, 3])
def test_three_cases(side):
    assert area(side, side) == side * side


def test_recursion():
    assert factorial(5) == 120


def test_generator():
    assert sum(steps(10)) == 45


def test_generator_that_never_runs():
    steps(10)
    assert area(1, 1) == 1


def test_coroutine():
    async def measure():
        width = area(1, 2)
        await asyncio.sleep(0)
        return width + area(1, 2)

    assert asyncio.run(measure()) == 4


def test_methods():
    assert Square(3).area() == 9


def test_function_in_a_function():
    def local():
        return (lambda: area(1, 1))()

    assert local() == 1


def test_threads():
    threads = [threading.Thread(target=factorial, args=(3,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_fixture(unit):
    assert unit == 1


@pytest.mark.parametrize("side", [1, 2])
def test_fixtures_of_wider_scope(shelf, side):
    assert area(side, 1) == side
