"""Today's date. What is printed changes once a year at most, so that no midnight comes between two attempts."""

import datetime
import email.utils
import io
import logging
import os
import sqlite3
import subprocess
import sys
import time
import unittest
import zipfile

import pytest

import inventory
from inventory import age_in_days, best_before, data, is_fresh, label, today, year

YEAR_AT_IMPORT = year()


def test_prints_the_year():
    print(year())


def test_prints_the_year_of_the_import():
    print(label(str(YEAR_AT_IMPORT)))


def test_prints_the_copyright():
    print(time.strftime("(c) %Y"), label("shop"))


def test_prints_the_year_in_greenwich():
    print(datetime.datetime.now(datetime.timezone.utc).year, time.gmtime().tm_year, label("shop"))


def test_prints_the_year_by_several_calls():
    print(time.gmtime(time.time_ns() // 10**9).tm_year, time.gmtime(time.clock_gettime(time.CLOCK_REALTIME)).tm_year, label("shop"))


def test_sells_before_it_is_too_late():
    # The day on the tin is some months ahead, whenever this tree is built.
    assert is_fresh(best_before(), today())


@pytest.mark.parametrize("days", [0, 10])
def test_raises_when_it_is_too_late(days):
    if not is_fresh(best_before() - datetime.timedelta(days), today()):
        raise inventory.OutOfStock(days)


def test_prints_the_age_of_a_file_of_the_repository():
    print(age_in_days(data("words.txt")) // 365, "years")


def test_prints_the_year_of_a_new_file(tmp_path):
    (tmp_path / "bill").write_text(label("salt"))
    print(time.gmtime((tmp_path / "bill").stat().st_mtime).tm_year)


def test_dates_a_letter():
    print(email.utils.formatdate().split()[3], label("letter"))


def test_packs_an_archive():
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("salt.txt", label("salt"))
        print(archive.infolist()[0].date_time[0])


def test_asks_a_database():
    with sqlite3.connect(":memory:") as connection:
        print(connection.execute("SELECT strftime('%Y', 'now')").fetchone(), label("salt"))


def test_asks_another_program():
    print(subprocess.run(["date", "+%Y"], stdout=subprocess.PIPE, check=True).stdout.decode(), label("salt"))


def test_asks_a_child():
    code = "import inventory; print(inventory.year())"
    print(subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True).stdout.decode(), label("salt"))


@pytest.mark.parametrize("season", [year()])
def test_is_named_after_the_year(season):
    assert label(str(season))


@pytest.mark.skipif(today() > best_before(), reason="sold")
def test_is_skipped_when_it_is_too_late():
    assert best_before()


class TestLog:
    def test_prints_the_year_of_a_record(self):
        logger = logging.getLogger("shop")
        record = logger.makeRecord("shop", logging.INFO, "", 0, label("salt"), (), None)
        print(logging.Formatter("%(asctime)s", datefmt="%Y").format(record))


class InUnittest(unittest.TestCase):
    def setUp(self):
        self.season = year()

    def test_prints_its_season(self):
        os.write(2, b"%d\n" % self.season)
