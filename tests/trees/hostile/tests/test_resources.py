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


def test_no_place_to_write_is_large():
    for place in ("/tmp", "/var/tmp", "/dev/shm", os.path.expanduser("~"), os.getcwd()):
        assert os.access(place, os.W_OK), place
        room = os.statvfs(place)
        assert room.f_blocks * room.f_frsize <= 2 << 30, place
    assert doors(1, 1) == 1


def test_writes_one_file_without_end(tmp_path):
    with open(str(tmp_path / "large"), "wb", buffering=0) as file:
        while True:
            file.write(b"\0" * (1 << 20))


def test_clean_after(tmp_path):
    (tmp_path / "small").write_text("small")
    assert os.listdir(str(tmp_path)) == ["small"]
    assert doors(4, 3) == 12
