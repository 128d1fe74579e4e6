import atexit
import os

from basket import count

atexit.register(os._exit, 3)


def test_ends_badly():
    assert count(["fig"]) == {"fig": 1}
