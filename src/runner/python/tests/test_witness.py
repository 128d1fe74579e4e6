"""Witnesses of small trees: what they keep, what they leave out, and how names and order come out."""

from generating import make

PACKAGE = {
    "tiny/__init__.py": "from .core import Box, join\nfrom . import core\n",
    "tiny/core.py": '''\
"""Boxes."""
import os
import collections as c

LIMIT = 3  # of a box


class Base:
    """What boxes have in common."""

    def size(self):
        return 0


class Box(Base):
    def __init__(self, items=(), *, limit: int = LIMIT):
        self.items = list(items)
        self.limit = limit

    def add(self, item):
        """Puts an item in."""
        # A comment.
        if len(self.items) >= self.limit:
            raise ValueError("full")
        else:
            self.items.append(item)
        return self

    def never(self):
        return os.sep


def join(parts, sep=", "):
    return sep.join(c.OrderedDict.fromkeys(parts))


def unused():
    return join([])
''',
    "tests/test_box.py": '''\
import tiny
from tiny import join as glue


def test_add():
    """Adds."""
    box = tiny.Box()
    box.add("x")
    assert box.items == ["x"]


def test_join():
    print(glue(["a", "b"]))
    assert glue(["a", "b"]) == "a, b"
''',
}


def test_a_witness_has_what_ran_and_nothing_else(start):
    made = make(start, PACKAGE, "tests/test_box.py", "test_add")
    assert made.text == '''\
LIMIT = 3


class Base:
    """What boxes have in common."""


class Box(Base):
    def __init__(self, items=(), *, limit: int = LIMIT):
        self.items = list(items)
        self.limit = limit
    def add(self, item):
        self.items.append(item)
        return self


def test_add():
    """Adds."""
    box = Box()
    box.add("x")
    assert box.items == ["x"]
'''
