"""Prints what looks as if it could differ, and does not once it is normalized."""

import faulthandler
import logging
import os
import re
import subprocess
import sys
import threading
import unittest
import warnings

import pytest

import inventory
from inventory import Item, Shelf, count, data, distinct, label, root, table, total, warn_when_low, wrapped


def test_prints_an_address():
    print(object(), Shelf())
    assert count("ab") == 2


def test_prints_the_address_of_a_lambda():
    print(lambda: label("salt"))
    assert label("salt")


def test_prints_the_address_of_a_method():
    print(Shelf().value, count("ab"))


def test_prints_the_temporary_directory(tmp_path):
    print(tmp_path)
    assert count("ab") == 2


def test_prints_a_file_in_a_temporary_directory(tmp_path_factory):
    file = tmp_path_factory.mktemp("bills") / "bill.txt"
    file.write_text(label("salt"))
    print(file)


def test_prints_the_checkout():
    print(root(), data("words.txt"))


def test_prints_the_file_of_the_package():
    print(inventory.__file__, inventory.stock.count.__code__.co_filename, count("ab"))


def test_prints_its_process():
    print("process", os.getpid())
    assert count("ab") == 2


def test_prints_sorted_sets():
    print(sorted(set(distinct(["salt", "rice", "beans"]))))


def test_prints_a_set_of_small_numbers():
    print({total([number]) for number in range(8)})


def test_prints_a_dictionary():
    print({name: label(name) for name in ("salt", "rice", "beans")})


def test_prints_its_own_name(request):
    print(request.node.name, request.function.__name__, label("here"))


def test_prints_from_a_thread_before_its_answer():
    answered = threading.Event()
    threading.Thread(target=lambda: (print(label("served")), answered.set()), daemon=True).start()
    assert answered.wait(60)


@pytest.fixture
def server():
    asked, answered = threading.Event(), threading.Event()

    def serve():
        asked.wait(60)
        answered.set()
        print(label("served"), file=sys.stderr)

    thread = threading.Thread(target=serve)
    thread.start()
    yield asked, answered
    thread.join()


def test_is_answered_by_a_server_that_is_stopped(server):
    asked, answered = server
    asked.set()
    assert answered.wait(60)


def test_prints_from_threads_in_turn():
    for name in ["salt", "rice", "soap"]:
        thread = threading.Thread(target=lambda: print(label(name), file=sys.stderr))
        thread.start()
        thread.join()
        print(name)


def test_prints_the_name_of_a_thread():
    thread = threading.Thread(target=lambda: print(threading.current_thread().name, label("salt")), name="porter")
    thread.start()
    thread.join()


def test_prints_colours_and_bytes():
    print("\x1b[31m" + label("salt") + "\x1b[0m", "\x00", "☕")
    os.write(1, b"\xff\xfe raw\n")


def test_prints_much():
    for number in range(5000):
        print(number, label("salt"))


def test_prints_with_a_width_of_its_own():
    print(wrapped(width=40))
    print(table([("salt", 2), ("rice", 3)], width=30))


def test_prints_a_class_of_the_package():
    print(Item, Item("salt"), repr(inventory.OutOfStock("salt")), Item.__module__)


def test_prints_names_of_its_own_without_the_module():
    class Jar:
        pass

    def fill():
        return label("jar")

    print(Jar.__name__, Jar.__qualname__, fill.__qualname__, fill())


def test_prints_a_warning_without_its_file():
    with pytest.warns(UserWarning) as seen:
        warn_when_low({"salt": 1, "rice": 9})
    print([str(warning.message) for warning in seen])


def test_warns():
    warnings.warn(label("old salt"), DeprecationWarning)


def test_warns_from_the_package(recwarn):
    warn_when_low({"salt": 1})
    print(recwarn.pop(UserWarning).filename)


def test_logs(caplog):
    with caplog.at_level(logging.INFO, logger="inventory.stock"):
        Shelf().add(Item("salt"))
    assert caplog.messages == ["added salt"]
    # Name, level, file and line of the package, not of the test.
    print(re.sub(r":\d+", "", caplog.text))


def test_logs_to_stderr_without_a_time():
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s %(message)s"))
    log = logging.getLogger("inventory.stock")
    log.addHandler(handler)
    try:
        warn_when_low({"salt": 1})
    except UserWarning:
        pass
    finally:
        log.removeHandler(handler)


def test_reads_what_it_printed(capsys):
    print(label("salt"))
    assert capsys.readouterr().out == "<salt>\n"


def test_reads_what_a_child_printed(capfd):
    subprocess.run([sys.executable, "-c", "import inventory; print(inventory.label('salt'))"], check=True)
    assert capfd.readouterr().out == label("salt") + "\n"


def test_stops_capturing_for_a_moment(capsys):
    with capsys.disabled():
        sys.stdout.write(label("salt"))


def test_asks_whether_this_is_a_terminal():
    print(sys.stdout.isatty(), faulthandler.is_enabled(), label("salt"))


class TestInAClass:
    def test_prints_its_own_name(self, request):
        print(request.cls.__name__, request.node.name, request.node.originalname, label("here"))


class InUnittest(unittest.TestCase):
    def test_prints_its_method(self):
        print(self._testMethodName, label("here"))
        with self.assertLogs("inventory.stock", "WARNING") as seen, self.assertWarns(UserWarning):
            warn_when_low({"salt": 1})
        print(seen.output)
