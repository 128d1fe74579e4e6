"""Shelves and what stands on them. Nothing here depends on anything but its arguments."""

import logging
import warnings

log = logging.getLogger("inventory.stock")


class OutOfStock(LookupError):
    """There is less of an item than was asked for."""


class Item:
    def __init__(self, name, price=1):
        self.name = name
        self.price = price

    def __eq__(self, other):
        return (self.name, self.price) == (other.name, other.price)

    def __hash__(self):
        return hash((self.name, self.price))

    def __repr__(self):
        return "Item(%r, %r)" % (self.name, self.price)


class Shelf:
    def __init__(self, items=()):
        self.items = list(items)

    def add(self, item):
        self.items.append(item)
        log.info("added %s", item.name)
        return self

    def take(self, name):
        for item in self.items:
            if item.name == name:
                self.items.remove(item)
                return item
        raise OutOfStock(name)

    def value(self):
        return total(item.price for item in self.items)

    def __len__(self):
        return len(self.items)


def count(things):
    """How many there are."""
    return sum(1 for _ in things)


def total(prices):
    """The sum of some prices."""
    return sum(prices)


def label(name):
    """
    What stands on the label.

    >>> label("salt")
    '<salt>'
    """
    return "<%s>" % name


def reserve(stock, name, amount):
    """Take some of a stock, a dictionary."""
    try:
        left = stock[name] - amount
    except KeyError as error:
        raise OutOfStock(name) from error
    if left < 0:
        raise OutOfStock(name)
    stock[name] = left
    return left


def warn_when_low(stock, limit=2):
    """Warn about what will soon be gone."""
    low = [name for name in sorted(stock) if stock[name] < limit]
    for name in low:
        warnings.warn("%s is low" % name, UserWarning)
        log.warning("%s is low", name)
    return low
