"""Files where they do not belong. What is called `hostile-mark` must be found nowhere afterwards."""

import os
import socket

import pytest

import vault
from vault import doors

ROOT = os.path.dirname(os.path.dirname(vault.__file__))
MARK = "hostile-mark"


def walk_is_clean():
    return not [name for _, folders, files in os.walk(ROOT) for name in folders + files if MARK in name]


def test_clean_before():
    assert walk_is_clean()
    assert doors(2, 3) == 6


def test_moves_away():
    os.chdir("/")
    assert doors(1, 1) == 1


def test_removes_the_directory_that_it_is_in(tmp_path):
    os.chdir(str(tmp_path))
    os.rmdir(str(tmp_path))
    assert doors(1, 1) == 1


def test_writes_wherever_it_can():
    for place in ("/", "/usr", "/etc", "/opt", "/opt/venv", "/home", "/tmp", "/var/tmp", "/dev/shm", "/run", "/proc", ROOT):
        try:
            with open(os.path.join(place, MARK), "w") as file:
                file.write(MARK)
        except OSError:
            pass
    assert doors(1, 1) == 1


@pytest.mark.parametrize("place", ["/usr/bin", "/etc", "/opt/venv/lib", "/sys/kernel", "/proc/sys/kernel"])
def test_the_system_cannot_be_written(place):
    with pytest.raises(OSError):
        open(os.path.join(place, MARK), "w")
    assert doors(1, 1) == 1


def test_writes_ten_thousand_files():
    os.mkdir(os.path.join(ROOT, MARK))
    for number in range(10_000):
        open(os.path.join(ROOT, MARK, str(number)), "w").close()
    assert doors(1, 1) == 1


def test_links_out_of_the_tree():
    here = os.path.join(ROOT, MARK)
    os.mkdir(here)
    for number, target in enumerate(["/", "/etc", "/etc/passwd", "..", "../..", "../../..", "/usr/bin", "loop", "/nowhere", "/proc/1/root"]):
        os.symlink(target, os.path.join(here, str(number)))
    os.symlink("loop", os.path.join(here, "loop"))
    os.symlink("/", os.path.join(ROOT, "tests", MARK))
    assert doors(1, 1) == 1


def test_writes_names_that_are_no_utf_8():
    here = os.fsencode(os.path.join(ROOT, MARK))
    os.mkdir(here)
    for name in (b"\xff\xfe", b"new\nline", b"\xc3\x28.py", b"-rf", b" ", b"a" * 255):
        with open(os.path.join(here, name), "w") as file:
            file.write("x")
    print(sorted(os.listdir(os.path.join(ROOT, MARK))))
    assert doors(1, 1) == 1


def test_leaves_what_is_hard_to_remove():
    here = os.path.join(ROOT, MARK)
    os.makedirs(os.path.join(here, "a/b/c"))
    os.mkfifo(os.path.join(here, "pipe"))
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(os.path.join(here, "socket"))
    open(os.path.join(here, "a/b/c/file"), "w").close()
    for folder in ("a/b/c", "a/b", "a", "."):
        os.chmod(os.path.join(here, folder), 0)
    assert doors(1, 1) == 1


def test_nests_directories_deeper_than_a_path_is_long():
    os.chdir(ROOT)
    os.mkdir(MARK)
    os.chdir(MARK)
    for _ in range(600):
        os.mkdir("a" * 100)
        os.chdir("a" * 100)
    assert doors(1, 1) == 1


def test_removes_the_repository():
    import shutil

    for name in os.listdir(ROOT):
        shutil.rmtree(os.path.join(ROOT, name), ignore_errors=True)
    assert doors(1, 1) == 1


def test_changes_what_others_import():
    with open(vault.__file__, "w") as file:
        file.write("raise RuntimeError('changed')\n")
    with open(os.path.join(ROOT, "tests", "conftest.py"), "w") as file:
        file.write("raise RuntimeError('changed')\n")
    assert doors(1, 1) == 1


def test_clean_after():
    assert walk_is_clean()
    assert not os.path.exists(os.path.join("/tmp", MARK))
    assert doors(4, 3) == 12
