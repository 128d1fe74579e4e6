import builtins
import colorsys
import os

import changed
import hashed
import iniconfig
import nspkg
import nspkg.one
import plain
import pluggy


def test_report():
    with open(os.path.join(os.path.dirname(plain.__file__), "report.txt")) as report:
        print(report.read())
    assert plain.value()


def test_says_what_the_source_says():
    print("plain", plain.value(), "hashed", hashed.value(), "changed", changed.value())
    assert plain.value()


def test_finds_what_is_pinned_and_installed():
    places = [builtins, colorsys, iniconfig, nspkg, pluggy]
    print("one", nspkg.one.value(), "poisoned", [place.__name__ for place in places if hasattr(place, "poison")])
    assert nspkg.one.value()


def test_finds_what_was_generated():
    try:
        from pkg_version import version
    except ImportError:
        version = "unknown"
    print("version", version)
    assert version and plain.value()
