"""Different from attempt to attempt in one and the same world."""

import logging
import os
import random
import secrets
import socket
import sys
import tempfile
import threading
import time
import unittest
import uuid

import pytest

from inventory import Item, count, label, total

MANY = range(40)
DRAWN_AT_IMPORT = os.urandom(8).hex()


def coin():
    """Heads or tails, drawn by the system."""
    return os.urandom(1)[0] < 128


# outcomes


@pytest.mark.parametrize("toss", MANY)
def test_tosses_coins(toss):
    assert total([coin()])


@pytest.mark.parametrize("toss", MANY)
def test_rarely_passes(toss):
    assert count(range(random.SystemRandom().randrange(10))) < 2


@pytest.mark.parametrize("toss", MANY)
def test_skips_by_chance(toss):
    if total([coin()]):
        pytest.skip("tails")


@pytest.fixture
def loose_shelf():
    assert total([coin()])


@pytest.mark.parametrize("toss", MANY)
def test_errors_by_chance(loose_shelf, toss):
    assert label(str(toss))


@pytest.mark.parametrize("toss", MANY)
@pytest.mark.xfail
def test_is_expected_to_fail_and_does_so_by_chance(toss):
    assert total([coin()])


@pytest.mark.parametrize("toss", MANY)
def test_looks_at_the_last_digits_of_the_time(toss):
    time.sleep(0.0001 * random.random())
    assert total([time.time_ns() // 100]) % 2


@pytest.mark.parametrize("toss", MANY)
def test_draws_without_a_seed(toss):
    assert total([random.random()]) < 0.5


class TestInAClass:
    @pytest.mark.parametrize("toss", MANY)
    def test_tosses_coins(self, toss):
        assert total([coin()])


# outputs


def test_prints_a_uuid():
    print(uuid.uuid4(), label("salt"))


def test_prints_a_random_number():
    print(total([random.random()]))


def test_prints_the_time():
    print(total([time.time()]))


def test_prints_how_long_it_took():
    started = time.perf_counter_ns()
    print(label("salt"), "in", time.perf_counter_ns() - started, "ns")
    print(time.process_time_ns())


def test_prints_to_stderr_what_the_system_drew():
    sys.stderr.write(label(secrets.token_hex(8)) + "\n")


def test_writes_past_the_capture():
    os.write(1, label(os.urandom(8).hex()).encode())


def test_prints_a_number_for_an_object():
    print(id(Item("salt")), total([1]))


def test_prints_the_number_of_a_thread():
    thread = threading.Thread(target=label, args=("salt",))
    thread.start()
    print(thread.ident)
    thread.join()


def test_prints_a_temporary_name():
    with tempfile.NamedTemporaryFile() as file:
        print(file.name, total([1]))


def test_prints_a_port():
    with socket.socket() as one, socket.socket() as two:
        for end in (one, two):
            end.bind(("127.0.0.1", 0))
            print(end.getsockname()[1], total([1]))


def test_prints_what_was_drawn_at_import():
    print(DRAWN_AT_IMPORT, total([1]))


def test_logs_the_time():
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(created)f %(message)s"))
    log = logging.getLogger("shop")
    log.addHandler(handler)
    try:
        log.error(label("salt"))
    finally:
        log.removeHandler(handler)


def test_shuffles():
    names = [str(number) for number in range(20)]
    random.shuffle(names)
    print(*map(label, names))


@pytest.fixture
def lot():
    print("lot", os.urandom(8).hex())
    return total([1])


@pytest.mark.parametrize("name", ["salt", "rice"])
def test_uses_a_fixture_that_draws(lot, name):
    assert lot == 1


class Odd(Exception):
    pass


class Even(Exception):
    pass


@pytest.mark.parametrize("toss", [pytest.param(toss, marks=pytest.mark.xfail) for toss in MANY] + ["none"])
def test_raises_one_of_two_exceptions(toss):
    if toss != "none":
        raise (Odd if total([coin()]) else Even)


class InUnittest(unittest.TestCase):
    def test_prints_a_token(self):
        print(secrets.token_hex(), total([1]))


class TestPrints:
    def test_a_password(self):
        print(secrets.token_urlsafe(), total([1]))


@pytest.mark.parametrize("drawn", [os.urandom(8).hex()])
def test_has_another_name_each_time(drawn):
    assert count(drawn) == 16


# threads that print: what is printed after the answer races with the end of the test


def answers_then_prints(answered):
    answered.set()
    print(label("served"))


def test_a_thread_prints_after_its_answer():
    answered = threading.Event()
    threading.Thread(target=answers_then_prints, args=(answered,), daemon=True).start()
    assert answered.wait(60) and label("salt")
    time.sleep(0.01)


def test_a_thread_that_is_a_server_prints_after_its_answer():
    answered = threading.Event()
    threading.Thread(target=lambda: (answered.set(), print(label("late"), file=sys.stderr)), daemon=True).start()
    assert answered.wait(60) and total([1])
    time.sleep(0.01)
