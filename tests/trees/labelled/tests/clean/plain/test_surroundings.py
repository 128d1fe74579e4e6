"""Touches what tests should not touch, and leaves it as it was, or brings its own."""

import datetime
import getpass
import locale
import os
import pathlib
import random
import shutil
import sys
import tempfile
import time
import unittest
import unittest.mock
import uuid

import pytest

import inventory
from inventory import (
    age_in_days, best_before, clock_time, config_folder, count, data, distinct, first, grouped, is_fresh, label, parser, root, scratch,
    table, today, total, wrapped, year,
)


# the hash seed


def test_sorts_what_comes_out_of_a_set():
    print(sorted(distinct(["salt", "rice", "beans"])))


def test_uses_a_set_of_one():
    print(first(["salt", "salt"]))


def test_compares_hashes_of_equal_things():
    assert hash(inventory.Item("salt")) == hash(inventory.Item("salt"))


def test_hashes_numbers():
    print(hash(total([1, 2])), hash((1, total([2]))) == hash((1, 2)))


# the time zone


def test_brings_its_own_time_zone(monkeypatch):
    monkeypatch.setenv("TZ", "XYZ-3:30")
    time.tzset()
    try:
        print(clock_time(0), time.tzname)
    finally:
        monkeypatch.undo()
        time.tzset()


def test_keeps_to_greenwich_time():
    print(datetime.datetime.fromtimestamp(total([1767268800]), datetime.timezone.utc))


def test_goes_to_local_time_and_back():
    moment = datetime.datetime(2026, 7, 1, 12)
    assert datetime.datetime.fromtimestamp(moment.timestamp()) == moment and label("salt")


# the locale


def test_brings_its_own_locale():
    before = locale.setlocale(locale.LC_ALL)
    locale.setlocale(locale.LC_ALL, "C")
    try:
        print(grouped(1234567.891))
    finally:
        locale.setlocale(locale.LC_ALL, before)


def test_formats_without_the_locale():
    print("{:,.2f}".format(total([1234567.891])), time.strftime("%d.%m.%Y", time.gmtime(0)))


def test_prints_other_alphabets():
    print(label("соль"), label("塩"), sorted(["ö", "o", "z"]))


def test_writes_and_reads_other_alphabets(tmp_path):
    (tmp_path / "salt.txt").write_text(label("соль"), encoding="utf-8")
    assert (tmp_path / "salt.txt").read_text(encoding="utf-8") == "<соль>"


# the clock


def test_compares_times():
    before = datetime.datetime.now()
    label("salt")
    assert datetime.timedelta(0) <= datetime.datetime.now() - before < datetime.timedelta(minutes=2)


def test_compares_the_time_of_a_new_file(tmp_path):
    before = time.time()
    (tmp_path / "bill").write_text(label("salt"))
    # File systems take the time of their last tick.
    assert -1 < (tmp_path / "bill").stat().st_mtime - before < 120
    assert age_in_days(tmp_path / "bill") in (-1, 0)


def test_compares_the_times_of_two_files(tmp_path):
    for name in ("old", "new"):
        (tmp_path / name).write_text(label("salt"))
        time.sleep(0.02)
    assert os.path.getmtime(str(tmp_path / "old")) <= os.path.getmtime(str(tmp_path / "new"))


def test_compares_the_time_of_an_open_file():
    with tempfile.TemporaryFile() as file:
        file.write(label("salt").encode())
        file.flush()
        assert abs(os.fstat(file.fileno()).st_mtime - time.time()) < 120


def test_sets_the_time_of_a_file(tmp_path):
    file = tmp_path / "bill"
    file.write_text(label("salt"))
    for moment in (0, 1000000000, int(time.time())):
        os.utime(str(file), (moment, moment))
        assert file.stat().st_mtime == moment


def test_touches_a_file(tmp_path):
    file = tmp_path / "bill"
    file.write_text(label("salt"))
    os.utime(str(file), (0, 0))
    os.utime(str(file))
    assert abs(file.stat().st_mtime - time.time()) < 120


def test_copies_the_time_of_a_file(tmp_path):
    shutil.copy2(str(data("words.txt")), str(tmp_path / "words.txt"))
    assert int((tmp_path / "words.txt").stat().st_mtime) == int(data("words.txt").stat().st_mtime)


def test_holds_the_clock():
    class Held(datetime.date):
        @classmethod
        def today(cls):
            return cls(2020, 2, 29)

    with unittest.mock.patch("inventory.dates.datetime.date", Held):
        print(today(), year())


def test_holds_the_time(monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 86400 * 365.0)
    print(time.time(), label("salt"))


def test_asks_whether_it_is_fresh():
    assert is_fresh(best_before(), best_before() - datetime.timedelta(days=1))


def test_lives_after_the_year_2020():
    assert year() >= 2020


# home, user and temporary directory


def test_brings_its_own_home(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    print(config_folder())


def test_brings_its_own_name(monkeypatch):
    monkeypatch.setenv("LOGNAME", "keeper")
    print(label(getpass.getuser()))


def test_writes_at_home():
    folder = pathlib.Path(config_folder())
    folder.mkdir(parents=True)
    (folder / "settings").write_text(label("salt"))
    assert (folder / "settings").read_text() == "<salt>"


def test_writes_into_a_temporary_directory():
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "bill").write_text(label("salt"))
        assert os.listdir(folder) == ["bill"]
    assert not os.path.exists(folder)


def test_prints_where_temporary_files_go():
    print(scratch())


def test_reads_a_variable_with_a_default():
    print(os.environ.get("INVENTORY_SHOP", "corner"), label("salt"))


def test_changes_the_environment():
    os.environ["INVENTORY_LEFT_BEHIND"] = label("salt")


def test_sees_no_changed_environment():
    assert "INVENTORY_LEFT_BEHIND" not in os.environ and label("salt")


# the terminal


def test_brings_its_own_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")
    parser().print_help()
    print(wrapped())


def test_wraps_help_itself():
    help_text = parser(formatter_class=lambda prog: __import__("argparse").HelpFormatter(prog, width=60)).format_help()
    print(help_text)
    print(table([("salt", 1)], width=20))


def test_does_not_mind_how_help_is_wrapped():
    print(" ".join(parser().format_help().split()).count("shelf"))


# the checkout, the working directory, the file


def test_reads_data_of_the_package():
    assert count(data("words.txt").read_text(encoding="ascii").split()) == 3


def test_reads_data_of_the_package_by_its_file():
    assert count((pathlib.Path(inventory.__file__).parent / "data" / "words.txt").read_bytes().split()) == 3


def test_reads_data_of_the_package_by_its_name():
    resources = pytest.importorskip("importlib.resources")
    if hasattr(resources, "files"):
        text = (resources.files("inventory") / "data" / "words.txt").read_text(encoding="ascii")
    else:
        text = data("words.txt").read_text(encoding="ascii")
    assert count(text.split()) == 3


def test_prints_a_path_in_the_package_as_seen_from_it():
    print(inventory.relative(data("words.txt")), inventory.relative(root()))


def test_moves_away(tmp_path):
    os.chdir(str(tmp_path))
    print(os.getcwd(), label("here"))


def test_moves_away_for_a_moment(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    pathlib.Path("bill").write_text(label("salt"))
    print(os.path.abspath("bill"), os.listdir("."))


def test_moves_into_the_package(monkeypatch):
    monkeypatch.chdir(pathlib.Path(inventory.__file__).parent)
    with open("data/words.txt", encoding="ascii") as words:
        assert count(words.read().split()) == 3


def test_writes_into_the_checkout_and_cleans_up():
    file = root() / "bill.txt"
    file.write_text(label("salt"))
    try:
        assert file.read_text() == "<salt>"
    finally:
        file.unlink()


def test_leaves_a_file_in_the_checkout():
    (root() / "left_behind.txt").write_text(label("salt"))
    (pathlib.Path(inventory.__file__).parent / "left_behind.py").write_text("raise RuntimeError")


def test_finds_nothing_left_in_the_checkout():
    assert not (root() / "left_behind.txt").exists()
    assert not (pathlib.Path(inventory.__file__).parent / "left_behind.py").exists()


def test_finds_the_tests_from_the_package():
    assert (root() / "tests" / "conftest.py").is_file()


def test_imports_the_package_only_once():
    assert __import__("inventory").stock is sys.modules["inventory.stock"] and label("salt")


# chance


def test_seeds_its_randomness():
    random.seed(7)
    print(total([random.random()]), random.sample(range(100), 5))


def test_brings_its_own_generator():
    generator = random.Random("salt")
    print(generator.randrange(10**9), label("salt"))


def test_prints_a_uuid_of_a_name():
    print(uuid.uuid5(uuid.NAMESPACE_DNS, label("salt")))


def test_replaces_what_the_system_draws(monkeypatch):
    monkeypatch.setattr(uuid, "uuid4", lambda: uuid.UUID(int=7))
    print(uuid.uuid4(), label("salt"))


class InUnittest(unittest.TestCase):
    def setUp(self):
        self.before = dict(os.environ)
        self.addCleanup(self.restore)

    def restore(self):
        os.environ.clear()
        os.environ.update(self.before)

    def test_restores_the_environment(self):
        os.environ.update(TZ="XYZ+5", COLUMNS="20", HOME="/nowhere")
        print(config_folder(), wrapped())
