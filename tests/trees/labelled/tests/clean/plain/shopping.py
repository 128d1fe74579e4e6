"""Beside the tests of a folder that is no package: imported by its plain name."""

from inventory import Item


def basket(*names):
    return [Item(name) for name in names]
