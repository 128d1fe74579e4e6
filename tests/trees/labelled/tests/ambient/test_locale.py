"""The locale of the user. Some machines have no other than C: then only variables and modes differ."""

import calendar
import locale
import os
import subprocess
import sys
import time
import unittest

import pytest

from inventory import count, grouped, label


@pytest.fixture
def user_locale():
    before = locale.setlocale(locale.LC_ALL)
    yield locale.setlocale(locale.LC_ALL, "")
    locale.setlocale(locale.LC_ALL, before)


def test_groups_a_large_number(user_locale):
    print(grouped(1234567.891))


def test_compares_a_grouped_number(user_locale):
    assert grouped(1234567.891) == "1234567.89"


def test_names_a_month(user_locale):
    print(time.strftime("%A %B", time.gmtime(0)), label("open"))


def test_prints_days_of_the_week(user_locale):
    print(*calendar.day_name, label("open"))


def test_sorts_names(user_locale):
    print(*sorted(map(label, ["Zucker", "zimt", "äpfel", "Apfel", "o", "ö"]), key=locale.strxfrm))


def test_prints_the_name_of_the_locale(user_locale):
    print(user_locale.split(";")[0], count("ab"))


def test_prints_the_variables():
    print(os.environ.get("LC_ALL"), os.environ.get("LANG"), count("ab"))


def test_prints_the_language_of_the_environment():
    print(next(filter(None, map(os.environ.get, ("LC_ALL", "LC_MESSAGES", "LANG"))), None), count("ab"))


def test_asks_a_child_for_its_environment():
    code = "import inventory, os; print(inventory.label(os.environ['LC_ALL']))"
    print(subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True).stdout.decode(), label("child"))


@pytest.mark.parametrize("name", [os.environ.get("LC_ALL", "")])
def test_is_named_after_the_locale(name):
    assert label(name)


@pytest.mark.skipif(os.environ.get("LC_ALL") != "C.UTF-8", reason="speaks no other language")
def test_is_skipped_abroad():
    assert count("ab") == 2


class TestEncodings:
    def test_prints_the_preferred_one(self):
        print(locale.getpreferredencoding(), sys.flags.utf8_mode, count("ab"))


class InUnittest(unittest.TestCase):
    def test_speaks_the_language_that_the_shop_is_used_to(self):
        self.assertEqual(os.environ.get("LC_ALL"), "C.UTF-8")
        self.assertEqual(count("ab"), 2)
