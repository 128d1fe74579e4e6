import subprocess

from patience import wait


def test_one():
    assert wait(0.2) == 0.2


def test_two():
    print("first", wait(0.3))


def test_with_a_child():
    child = subprocess.Popen(["sleep", "31"], start_new_session=True)
    assert wait(0.2) and child.poll() is None
