"""Where the process runs."""

import configparser
import glob
import os
import pathlib
import subprocess
import sys
import unittest

import pytest

from inventory import count, label, relative

HERE_AT_IMPORT = os.getcwd()


def read(path):
    with open(path, encoding="ascii") as file:
        return file.read().split()


def test_opens_a_relative_file():
    assert count(read("inventory/data/words.txt")) == 3


def test_opens_a_relative_path():
    assert count(pathlib.Path("inventory", "data", "words.txt").read_bytes().split()) == 3


def test_prints_where_it_is():
    print(os.getcwd(), label("here"))


def test_prints_where_it_is_by_path():
    print(pathlib.Path.cwd(), label("here"))


def test_prints_where_the_import_was():
    print(HERE_AT_IMPORT, label("here"))


def test_prints_an_absolute_path():
    print(os.path.abspath("salt.txt"), label("here"))


def test_prints_the_way_from_the_package():
    print(relative("."))


def test_lists_files():
    print(sorted(name for name in os.listdir(".") if name in ("inventory", "tests", "tools")), label("here"))


def test_finds_modules():
    assert count(glob.glob("inventory/*.py")) > 5


def test_looks_for_a_folder():
    print(os.path.isdir("inventory"), label("here"))


def test_reads_settings_if_there_are_any():
    settings = configparser.ConfigParser()
    # A file that is not there is no error.
    settings.read("tests/settings.ini")
    assert settings.get("shop", "name", fallback="") == "corner"
    assert label("salt")


def test_runs_a_script():
    command = [sys.executable, "tools/count.py", "inventory/data/words.txt"]
    assert subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout == b"%d\n" % count("abc")


def test_asks_a_child():
    code = "import inventory, os; print(inventory.label(os.getcwd()))"
    print(subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True).stdout.decode(), label("child"))


def test_asks_the_shell():
    print(subprocess.run("pwd", shell=True, stdout=subprocess.PIPE, check=True).stdout.decode(), label("here"))


@pytest.mark.parametrize("folder", [os.getcwd()])
def test_is_named_after_the_directory(folder):
    assert label(folder)


@pytest.mark.skipif(not os.path.exists("pyproject.toml"), reason="not in the checkout")
def test_is_skipped_elsewhere():
    assert label("here")


class TestList:
    @pytest.fixture
    def words(self):
        return read(os.path.join("inventory", "data", "words.txt"))

    def test_has_words(self, words):
        assert count(words) == 3


class InUnittest(unittest.TestCase):
    def setUp(self):
        self.before = os.getcwd()

    def test_moves_away_and_back(self):
        os.chdir("inventory")
        try:
            self.assertEqual(count(read("data/words.txt")), 3)
        finally:
            os.chdir(self.before)
