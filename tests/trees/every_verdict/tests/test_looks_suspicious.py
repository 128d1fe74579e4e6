"""Nothing here depends on anything: every group is kept."""

import os
import pathlib
import subprocess
import sys
import threading
import warnings

import pantry
from pantry import Square, area, words

CHECKOUT = pathlib.Path(pantry.__file__).parent.parent


def test_prints_an_address():
    print(Square(2), object())
    assert area(1, 1) == 1


def test_prints_its_process():
    print("process", os.getpid())
    assert area(1, 1) == 1


def test_prints_the_temporary_directory(tmp_path):
    print(tmp_path)
    assert area(1, 1) == 1


def test_prints_the_checkout():
    print(CHECKOUT, pathlib.Path(pantry.__file__).name)
    assert area(1, 1) == 1


def test_changes_the_environment(monkeypatch):
    monkeypatch.setenv("PANTRY", "open")
    os.environ["PANTRY_LEFT"] = "open"
    assert area(1, 1) == 1


def test_sees_no_changed_environment():
    assert "PANTRY" not in os.environ and "PANTRY_LEFT" not in os.environ
    assert area(1, 1) == 1


def test_moves_away(tmp_path):
    os.chdir(tmp_path)
    assert area(1, 1) == 1


def test_writes_into_the_checkout():
    (CHECKOUT / "left_behind.txt").write_text(str(area(1, 1)))
    (CHECKOUT / "pantry/left_behind.py").write_text("raise RuntimeError")


def test_finds_nothing_left_in_the_checkout():
    assert not (CHECKOUT / "left_behind.txt").exists()
    assert not (CHECKOUT / "pantry/left_behind.py").exists()
    assert area(1, 1) == 1


def test_joins_its_threads():
    threads = [threading.Thread(target=area, args=(side, side)) for side in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_starts_python():
    code = "import pantry; print(pantry.area(3, 4))"
    output = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True).stdout
    assert int(output) == area(4, 3)


def test_leaves_a_daemon_behind():
    subprocess.Popen(["sleep", "86421"], start_new_session=True)
    assert area(1, 1) == 1


def test_warns():
    warnings.warn("old shelf", DeprecationWarning)
    assert area(1, 1) == 1


def test_reads_package_data():
    assert words() == ["salt", "rice", "beans"]
    assert area(1, 1) == 1


def test_writes_bytes_that_are_no_text():
    os.write(1, b"\xff\xfe raw\n")
    assert area(1, 1) == 1
