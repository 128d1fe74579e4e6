"""The width of the terminal."""

import os
import shutil
import subprocess
import sys
import textwrap
import unittest

import pytest

from inventory import count, label, parser, table, wrapped
from inventory.report import STORY

WIDTH_AT_IMPORT = shutil.get_terminal_size().columns


def test_prints_the_width():
    print(shutil.get_terminal_size().columns, label("shelf"))


def test_prints_the_width_of_the_import():
    print("-" * WIDTH_AT_IMPORT, label("shelf"))


def test_prints_help():
    parser().print_help()


def test_compares_help():
    # 80 columns; two of them are left free by argparse.
    assert STORY[:70] in parser().format_help()
    assert textwrap.fill(STORY, 78) in parser().format_help()


def test_prints_usage_for_a_bad_argument():
    shop = parser()
    for number in range(20):
        shop.add_argument("--shelf-%d" % number)
    with pytest.raises(SystemExit):
        shop.parse_args(["--no-such-thing", "and more"])


def test_prints_a_story():
    print(wrapped())


def test_counts_lines():
    assert count(wrapped().splitlines()) == 2


@pytest.mark.parametrize("name", ["salt", "rice"])
def test_prints_a_table(name):
    print(table([(name, 2)]))


def test_reads_the_variable():
    assert os.environ.get("COLUMNS") == "80" and count("ab") == 2


def test_asks_a_child():
    code = "import inventory; inventory.parser().print_help()"
    print(subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True).stdout.decode(), label("salt"))


@pytest.mark.parametrize("columns", [shutil.get_terminal_size().columns])
def test_is_named_after_the_width(columns):
    assert wrapped(width=columns)


@pytest.mark.skipif(shutil.get_terminal_size().columns != 80, reason="made for 80 columns")
def test_is_skipped_on_other_terminals():
    assert wrapped()


class TestRuler:
    def test_prints(self):
        print("".join(str(column % 10) for column in range(shutil.get_terminal_size().columns)), label("ruler"))


class InUnittest(unittest.TestCase):
    def test_centres(self):
        sys.stderr.write(label("salt").center(shutil.get_terminal_size().columns) + "\n")
