"""Begins an answer of a hundred million bytes, and is silent from then on."""

import os
import struct
import time

for _descriptor in range(3, 1000):
    try:
        os.write(_descriptor, struct.pack(">HI", 10, 99_999_999) + b"file_ready{")
    except OSError:
        pass
time.sleep(3600)
