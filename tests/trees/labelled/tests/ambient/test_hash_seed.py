"""Python's hashes of texts, and the order of sets that follows from them."""

import os
import pickle
import subprocess
import sys
import unittest

import pytest

from inventory import Item, bucket, count, distinct, fingerprint, first, label

NAMES = ["name-%d" % number for number in range(40)]
FIRST_AT_IMPORT = first(NAMES)


def test_prints_a_set():
    print(set(NAMES), count(NAMES))


def test_prints_names_in_the_order_of_a_set():
    print(*distinct(NAMES))


def test_prints_the_hash_of_an_item():
    print(hash(Item("salt", 2)))


def test_prints_the_first_of_many():
    print(FIRST_AT_IMPORT, count(NAMES))


def test_prints_the_fingerprint_of_a_pickled_set():
    print(fingerprint(pickle.dumps(frozenset(NAMES), protocol=2).hex()))


def test_joins_what_a_set_operation_left():
    print(fingerprint(", ".join(set(NAMES) - {"name-1"} | {"other"})))


def test_copies_the_order_of_a_set_into_a_dictionary():
    print({name: label(name) for name in frozenset(NAMES)})


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.xfail
def test_finds_names_in_the_lower_buckets(name):
    assert bucket(name, 1000) < 500


@pytest.mark.parametrize("name", NAMES)
def test_skips_names_in_the_lower_buckets(name):
    if bucket(name, 1000) < 500:
        pytest.skip("lower")


@pytest.mark.skipif(sys.flags.hash_randomization == 1, reason="hashes are salted")
def test_wants_hashes_without_salt():
    assert bucket("salt", 1) == 0


@pytest.mark.parametrize("number", [hash("salt")])
def test_is_named_after_a_hash(number):
    assert bucket("salt", 1) == 0


def test_asks_a_child_for_a_hash():
    code = "import inventory; print(inventory.bucket('salt', 1 << 60))"
    print(subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True).stdout.decode(), label("child"))


class TestBuckets:
    @pytest.fixture
    def fullest(self):
        return max(NAMES, key=lambda name: bucket(name, 1 << 60))

    def test_prints_the_fullest(self, fullest):
        sys.stderr.write("%s\n" % fullest)


class InUnittest(unittest.TestCase):
    def test_has_the_seed_that_the_shop_is_used_to(self):
        self.assertEqual(bucket("salt", 1), 0)
        self.assertEqual(os.environ["PYTHONHASHSEED"], "0")
