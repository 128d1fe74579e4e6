"""The user: home directory, name, temporary directory."""

import getpass
import os
import pathlib
import pwd
import subprocess
import sys
import tempfile
import unittest

import pytest

from inventory import config_folder, count, fingerprint, home_of, label, scratch

HOME_AT_IMPORT = os.path.expanduser("~")


def test_prints_the_folder_of_its_settings():
    print(config_folder())


def test_prints_the_home_directory():
    print(pathlib.Path.home(), label("home"))


def test_prints_the_home_directory_of_the_import():
    print(HOME_AT_IMPORT, label("home"))


def test_prints_the_name_of_the_user():
    print(label(getpass.getuser()))


def test_prints_the_variables():
    print([os.environ.get(name) for name in ("HOME", "USER", "LOGNAME")], label("home"))


def test_prints_what_the_system_knows_of_the_user():
    entry = pwd.getpwuid(os.getuid())
    print(entry.pw_name, entry.pw_dir, label("home"))


def test_prints_the_home_of_a_named_user():
    print(home_of(pwd.getpwuid(os.getuid()).pw_name))


def test_prints_the_length_of_the_temporary_directory():
    print(count(scratch()))


def test_prints_the_fingerprint_of_the_temporary_directory():
    print(fingerprint(scratch()))


def test_knows_the_temporary_directory():
    assert scratch() == "/tmp"


def test_finds_a_hard_coded_file_in_the_temporary_directory():
    with open("/tmp/inventory.txt", "w", encoding="ascii") as file:
        file.write(label("salt"))
    assert "inventory.txt" in os.listdir(scratch())


def test_splits_a_temporary_path():
    with tempfile.TemporaryDirectory() as folder:
        print(pathlib.Path(folder).parts[1:-1], label("salt"))


def test_asks_a_child():
    code = "import inventory; print(inventory.config_folder())"
    print(subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True).stdout.decode(), label("salt"))


def test_asks_the_shell():
    print(subprocess.run("cd; pwd", shell=True, stdout=subprocess.PIPE, check=True).stdout.decode(), label("salt"))


@pytest.mark.parametrize("user", [getpass.getuser()])
def test_is_named_after_the_user(user):
    assert label(user)


@pytest.mark.skipif(os.environ.get("HOME") != "/home/gistmill", reason="lives elsewhere")
def test_is_skipped_elsewhere():
    assert config_folder()


class TestSettings:
    @pytest.fixture
    def folder(self):
        return pathlib.Path(config_folder())

    def test_prints_where_they_lie(self, folder):
        sys.stderr.write("%s\n" % folder.parent)


class InUnittest(unittest.TestCase):
    def test_greets(self):
        print("Good morning,", os.environ["LOGNAME"], label("salt"))
