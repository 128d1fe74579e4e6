"""Dates of deliveries."""

import datetime
import os
import time

from inventory.places import data


def today():
    return datetime.date.today()


def year():
    return today().year


def clock_time(seconds):
    """Hour and minute on the wall, for seconds since 1970."""
    return time.strftime("%H:%M", time.localtime(seconds))


def age_in_days(path):
    """Days since a file was changed."""
    return int((time.time() - os.stat(path).st_mtime) // 86400)


def best_before():
    """The day that stands on the tin, counted from 1970. Who builds this tree sets it to some 200 days from now."""
    with open(data("best_before.txt"), encoding="ascii") as file:
        return datetime.date(1970, 1, 1) + datetime.timedelta(days=int(file.read()))


def is_fresh(day, on):
    return 0 <= (day - on).days < 365
