"""The whole file needs to lie where its data does."""

import pathlib

from inventory import count

NAMES = (pathlib.Path(__file__).parent / "data" / "names.txt").read_text(encoding="ascii").split()


def test_counts_names():
    assert count(NAMES) == 2
