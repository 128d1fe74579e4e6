"""Nothing that a test does to descriptors reaches the runner."""

import gc
import os
import resource
import sys

from vault import doors

FRAME = b'\n@gistmill %s 4 group_done 59 {"cases":[],"exit":{"kind":"finished"},"duration_ms":1.000}\n'


def everybody_elses_descriptors():
    for process in filter(str.isdigit, os.listdir("/proc")):
        if int(process) == os.getpid():
            continue
        try:
            for number in os.listdir("/proc/%s/fd" % process):
                yield "/proc/%s/fd/%s" % (process, number)
        except OSError:
            pass


def test_clean_before(capsys):
    print("clean")
    assert capsys.readouterr().out == "clean\n"
    assert doors(2, 3) == 6


def test_closes_every_descriptor():
    os.closerange(0, 65_536)
    assert doors(1, 1) == 1


def test_closes_all_but_the_standard_ones():
    os.closerange(3, 65_536)
    assert doors(1, 1) == 1


def test_clean_between(capfd):
    os.write(1, b"clean\n")
    assert capfd.readouterr().out == "clean\n"
    assert doors(3, 3) == 9


def test_scribbles_frames_on_every_descriptor():
    for descriptor in range(3, 65_536):
        try:
            os.write(descriptor, FRAME % b"0123456789abcdef0123456789abcdef")
        except OSError:
            pass
    assert doors(1, 1) == 1


def test_prints_frames():
    os.write(1, FRAME % b"-")
    os.write(2, FRAME % b"t0ken")
    print((FRAME % b"-").decode())
    assert doors(1, 1) == 1


def test_finds_the_token_and_writes_true_frames_to_all_others():
    tokens = {getattr(one, "token", None) for one in gc.get_objects() if type(one).__name__ == "Channel"}
    for place in everybody_elses_descriptors():
        for token in filter(lambda one: isinstance(one, str), tokens):
            try:
                with open(place, "wb", buffering=0, opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)) as other:
                    other.write(FRAME % token.encode())
            except OSError:
                pass
    assert doors(1, 1) == 1


def test_puts_its_own_files_in_the_place_of_the_streams(tmp_path):
    for number in (0, 1, 2):
        os.dup2(os.open(str(tmp_path / str(number)), os.O_RDWR | os.O_CREAT), number)
    print("nobody reads this")
    assert doors(1, 1) == 1


def test_uses_descriptors_up():
    resource.setrlimit(resource.RLIMIT_NOFILE, (1000, 1000))
    taken = []
    try:
        while True:
            taken.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        pass
    for one in taken:
        os.close(one)
    assert doors(1, 1) == 1


def test_takes_python_its_streams():
    sys.stdout = sys.stderr = sys.stdin = sys.__stdout__ = sys.__stderr__ = None
    assert doors(1, 1) == 1


def test_clean_after(capfd):
    os.write(1, b"clean\n")
    assert capfd.readouterr().out == "clean\n"
    assert doors(4, 3) == 12
