"""More than there is."""

import ctypes
import os

from vault import doors


def test_clean_before():
    assert doors(2, 3) == 6


def test_allocates_64_gigabytes():
    bytearray(64 << 30)


def test_allocates_without_end():
    taken = []
    while True:
        taken.append(bytearray(256 << 20))


def test_asks_the_system_for_memory():
    malloc = ctypes.CDLL(None).malloc
    malloc.restype, malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    assert malloc(64 << 30) is None
    assert doors(1, 1) == 1


def test_fills_the_temporary_directory(tmp_path):
    written = 0
    try:
        for number in range(1 << 20):
            with open(str(tmp_path / str(number)), "wb", buffering=0) as file:
                written += file.write(b"\0" * (16 << 20))
    except OSError:
        pass
    assert written < 1 << 31
    assert doors(1, 1) == 1


def test_fills_shared_memory():
    written = 0
    try:
        for number in range(1 << 20):
            with open("/dev/shm/%d" % number, "wb", buffering=0) as file:
                written += file.write(b"\0" * (16 << 20))
    except OSError:
        pass
    assert written < 1 << 31
    assert doors(1, 1) == 1


def test_writes_one_file_without_end(tmp_path):
    with open(str(tmp_path / "large"), "wb", buffering=0) as file:
        while True:
            file.write(b"\0" * (1 << 20))


def test_clean_after(tmp_path):
    (tmp_path / "small").write_text("small")
    assert os.listdir(str(tmp_path)) == ["small"]
    assert doors(4, 3) == 12
