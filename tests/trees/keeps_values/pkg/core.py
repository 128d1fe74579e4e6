"""A store."""
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from os import PathLike


def load(text):
    """Loads a store.

    Args:
        text: JSON
    """
    return Store(json.loads(text))


def _check(key):
    if not key:
        raise ValueError("empty key")
    return key


class Store:
    """A store of values."""

    def __init__(self, values=None):
        self.values = dict(values or {})

    def get(self, key, default=None):
        return self.values.get(_check(key), default)

    def put(self, key, value):
        """Puts a value."""
        self.values[_check(key)] = value

    def __repr__(self):
        return "Store(%r)" % self.values
