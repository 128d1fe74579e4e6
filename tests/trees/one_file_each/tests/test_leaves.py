import sys

from shelf import width

if width(1) == 3:
    sys.exit("this machine has no shelf")


def test_never():
    assert width(1) == 3
