"""Where the checkout lies. Paths into it are masked where they are printed whole; what follows from them is not."""

import base64
import os
import pathlib
import subprocess
import sys
import textwrap
import unittest
import uuid

import pytest

import inventory
from inventory import count, data, fingerprint, label, relative, root

PARTS_AT_IMPORT = root().parts


def test_prints_the_length_of_the_path():
    print(count(str(root())))


def test_prints_the_name_of_the_root():
    print(root().name)


def test_knows_the_name_of_the_root():
    assert root().name == "testbed"


def test_prints_the_number_of_folders_above():
    print(count(root().parents))


def test_prints_the_parts_of_the_path():
    print(PARTS_AT_IMPORT, label("parts"))


def test_prints_the_fingerprint_of_a_file_name():
    print(fingerprint(inventory.__file__))


def test_prints_a_uuid_of_the_path():
    print(uuid.uuid5(uuid.NAMESPACE_URL, str(data("words.txt"))))


def test_encodes_the_path():
    print(base64.b64encode(str(root()).encode()))


def test_prints_the_way_to_the_system():
    print(relative("/usr"))


def test_prints_the_path_from_the_top():
    print(os.path.relpath(str(data("words.txt")), "/"))


def test_wraps_a_message_with_the_path():
    print(textwrap.fill("Salt, rice and beans are listed in %s, one word after the other, and in no other file." % data("words.txt"), 60))


def test_fills_a_column_with_the_path():
    print(str(root()).ljust(100) + "|", label("salt"))


def test_cuts_the_path():
    print(str(data("words.txt"))[:20], label("salt"))


@pytest.mark.parametrize("name", [root().name])
def test_is_named_after_the_root(name):
    assert label(name)


def test_asks_a_child():
    code = "import inventory; print(inventory.count(str(inventory.root())))"
    print(subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True).stdout.decode(), label("child"))


def test_uses_the_checkout_of_a_fixture(checkout):
    sys.stderr.write("%s\n" % label(checkout.name))


@pytest.mark.skipif(len(root().parts) > 2, reason="too deep")
def test_is_skipped_deep_down():
    assert count("ab") == 2


class TestConfigured:
    def test_prints_the_length_of_the_configured_root(self, request):
        print(count(str(request.config.rootpath)))


class InUnittest(unittest.TestCase):
    def test_counts_parts(self):
        self.assertEqual(count(pathlib.Path(inventory.__file__).parts), 4)
