import os
import random
import time
import uuid

import pytest

from pantry import area


@pytest.mark.parametrize("toss", range(40))
def test_tosses_coins(toss):
    assert area(1, os.urandom(1)[0]) < 128


def test_prints_a_random_number():
    print(area(1, random.random()))


def test_prints_a_uuid():
    print(uuid.uuid4(), area(1, 1))


def test_prints_the_time():
    print(time.time_ns(), area(1, 1))


def test_prints_to_stderr_what_the_system_drew():
    os.write(2, os.urandom(8).hex().encode())
    assert area(1, 1) == 1


class Odd(Exception):
    pass


class Even(Exception):
    pass


@pytest.mark.parametrize("toss", [pytest.param(toss, marks=pytest.mark.xfail) for toss in range(40)] + [40])
def test_raises_one_of_two_exceptions(toss):
    if toss < 40:
        raise (Odd if area(1, os.urandom(1)[0]) % 2 else Even)


def test_seeds_its_randomness():
    random.seed(7)
    print(area(1, random.random()))
