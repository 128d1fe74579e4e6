"""Different only where two dimensions differ at once; neither does it alone."""

import datetime
import os
import shutil
import sys

import pytest

from inventory import best_before, count, is_fresh, label, today, wrapped


def far_away():
    """Whether local time differs from Greenwich time, in winter or summer."""
    offsets = [datetime.datetime(2026, month, 1).astimezone().utcoffset() for month in (1, 7)]
    return any(offsets)


def test_fails_with_another_time_zone_and_another_locale():
    assert not (far_away() and os.environ.get("LC_ALL") != "C.UTF-8")
    assert count("ab") == 2


@pytest.mark.parametrize("name", ["salt", "rice"])
def test_prints_with_another_hash_seed_and_another_width(name):
    salted, wide = sys.flags.hash_randomization, shutil.get_terminal_size().columns != 80
    print(label(name), "on another shelf" if salted and wide else "")


class TestPair:
    @pytest.mark.skipif(os.environ.get("HOME") != "/home/gistmill" and far_away(), reason="abroad")
    def test_is_skipped_with_another_home_and_another_time_zone(self):
        assert wrapped("salt", width=80) == "salt"


def test_fails_with_another_year_and_another_home():
    # The day on the tin is some months ahead, whenever this tree is built.
    assert is_fresh(best_before(), today()) or os.environ["HOME"] == "/home/gistmill"
