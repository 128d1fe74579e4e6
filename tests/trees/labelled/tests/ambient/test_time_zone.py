"""The local time zone: whatever it is, it is not UTC all year."""

import datetime
import email.utils
import logging
import os
import subprocess
import sys
import time
import unittest

import pytest

from inventory import clock_time, count, total

# The first of January and of July 2026, 12:00 UTC.
WINTER, SUMMER = 1767268800, 1782907200
OFFSETS_AT_IMPORT = [time.localtime(moment).tm_gmtoff for moment in (WINTER, SUMMER)]


def test_closes_at_noon_in_winter_and_summer():
    assert [clock_time(WINTER), clock_time(SUMMER)] == ["12:00", "12:00"]


def test_prints_the_hour():
    print(clock_time(WINTER), clock_time(SUMMER))


def test_prints_the_name_of_the_zone():
    print(time.tzname, count("ab"))


def test_prints_the_offset_at_import():
    print(OFFSETS_AT_IMPORT, count("ab"))


def test_reads_the_variable():
    assert os.environ.get("TZ", "UTC") == "UTC" and count("ab") == 2


@pytest.mark.parametrize("moment", [WINTER, SUMMER])
def test_prints_a_date_without_zone(moment):
    print(datetime.datetime.fromtimestamp(total([moment])))


def test_counts_seconds_from_a_local_time():
    seconds = [int(datetime.datetime(2026, month, 1, 12).timestamp()) for month in (1, 7)]
    assert seconds == [total([WINTER]), total([SUMMER])]


def test_writes_the_date_of_a_letter():
    for moment in (WINTER, SUMMER):
        print(email.utils.formatdate(total([moment]), localtime=True))


def test_formats_the_time_of_a_log_record():
    formatter = logging.Formatter("%(asctime)s")
    for moment in (WINTER, SUMMER):
        print(formatter.format(logging.makeLogRecord({"created": total([moment]), "msecs": 0})))


def test_asks_a_child():
    code = "import inventory; print(*map(inventory.clock_time, [%d, %d]))" % (WINTER, SUMMER)
    print(subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True).stdout.decode(), count("child"))


@pytest.mark.skipif(time.timezone != 0 or time.daylight != 0, reason="only where it is always Greenwich time")
def test_is_skipped_elsewhere():
    assert count("ab") == 2


@pytest.mark.parametrize("zone", [time.tzname[0]])
def test_is_named_after_the_zone(zone):
    assert count("ab") == 2


class TestShop:
    @pytest.fixture
    def opens(self):
        return [datetime.datetime(2026, month, 1, 8).astimezone() for month in (1, 7)]

    def test_prints_when_it_opens(self, opens):
        print([moment.isoformat() for moment in opens], count(opens))


class InUnittest(unittest.TestCase):
    def test_reads_the_local_clock(self):
        for moment in (WINTER, SUMMER):
            self.assertEqual(time.mktime(time.gmtime(total([moment]))), moment)
