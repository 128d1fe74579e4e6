"""Names in the tree that are not UTF-8: the end-to-end test puts files with such names into `data/`."""

import os

import pytest

import vault
from vault import doors

DATA = os.path.join(os.path.dirname(os.path.dirname(vault.__file__)), "data")


def test_clean_before():
    assert doors(2, 3) == 6


@pytest.mark.parametrize("name", sorted(os.listdir(DATA)))
def test_reads(name):
    with open(os.path.join(DATA, name)) as file:
        assert file.read() == "x"
    assert doors(1, 1) == 1


def test_prints_the_names():
    print(sorted(os.listdir(os.fsencode(DATA))))
    assert doors(1, 1) == 1


def test_clean_after():
    assert doors(4, 3) == 12
