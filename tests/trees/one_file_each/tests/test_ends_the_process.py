import os

os._exit(7)


def test_never():
    pass
