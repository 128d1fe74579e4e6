"""Output that is too much, or no text."""

import os
import sys

from vault import doors


def test_clean_before():
    print("clean")
    assert doors(2, 3) == 6


def test_prints_five_megabytes():
    print("x" * 5_000_000)
    assert doors(1, 1) == 1


def test_writes_five_megabytes_to_both_streams():
    for descriptor in (1, 2):
        left = b"line of text\n" * 400_000
        while left:
            left = left[os.write(descriptor, left) :]
    assert doors(1, 1) == 1


def test_prints_what_is_no_utf_8():
    sys.stdout.buffer.write(b"\xff\xfe\x00\xc3\x28\n")
    os.write(1, b"\xed\xa0\x80 \xf8 \x80\n")
    os.write(2, bytes(range(256)))
    assert doors(1, 1) == 1


def test_fails_with_what_is_no_utf_8():
    raise ValueError("\udcff\ud800" + "\x00" + b"\xff".decode("utf-8", "surrogateescape"))


def test_fails_with_five_megabytes():
    raise ValueError("x" * 5_000_000)


def test_clean_after():
    print("clean")
    assert doors(4, 3) == 12
