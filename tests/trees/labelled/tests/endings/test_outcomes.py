"""Failures, errors, skips and expected failures, the same in every attempt."""

import sys
import unittest

import pytest

from inventory import Shelf, count, label, reserve, total, warn_when_low


# fails


def test_fails():
    assert total([2, 2]) == 5


def test_raises():
    reserve({}, "salt", 1)


def test_says_that_it_fails():
    if count("ab") == 2:
        pytest.fail("two are not enough")


def test_does_not_raise_what_it_should():
    with pytest.raises(ValueError):
        reserve({"salt": 2}, "salt", 1)


def test_exits():
    sys.exit(count("ab"))


@pytest.mark.xfail(strict=True, reason="nobody is that good")
def test_passes_against_strict_expectation():
    assert count("ab") == 2


@pytest.mark.filterwarnings("error")
def test_warns_where_warnings_are_errors():
    warn_when_low({"salt": 1})


@pytest.mark.parametrize("name", ["salt", "rice", "beans"])
def test_fails_in_one_case_of_three(name):
    assert label(name) != "<rice>"


@pytest.mark.parametrize("name", ["salt", pytest.param("rice", marks=pytest.mark.skip), pytest.param("beans", marks=pytest.mark.xfail)])
def test_fails_beside_skipped_and_expected_failures(name):
    assert label(name) == "<pepper>"


class TestInAClass:
    def test_fails(self):
        assert len(Shelf()) == 1


class InUnittest(unittest.TestCase):
    def test_fails(self):
        self.assertEqual(len(Shelf()), 1)

    def test_fails_in_a_subtest(self):
        for name in ["salt", "rice"]:
            with self.subTest(name=name):
                self.assertEqual(label(name), "<salt>")

    @unittest.skip("not in winter")
    def test_is_skipped(self):
        self.assertEqual(len(Shelf()), 0)

    @unittest.expectedFailure
    def test_is_expected_to_fail(self):
        self.assertEqual(len(Shelf()), 1)


# errors


@pytest.fixture
def broken_before():
    raise LookupError("no set-up")


@pytest.fixture
def broken_after():
    yield
    raise LookupError("no tear-down")


@pytest.fixture(scope="module")
def door():
    yield count("ab")
    raise LookupError("the door is stuck")


def test_errors_in_set_up(broken_before):
    assert count("ab") == 2


def test_errors_in_tear_down(broken_after):
    assert count("ab") == 2


def test_errors_when_the_module_ends(door):
    assert door == 2


def test_wants_a_fixture_that_is_not_there(ladder):
    assert count("ab") == 2


class TestClassThatCannotBeSetUp:
    @classmethod
    def setup_class(cls):
        raise LookupError("no class")

    def test_errors(self):
        assert count("ab") == 2


class UnittestThatCannotBeSetUp(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        raise LookupError("no class")

    def test_errors(self):
        self.assertEqual(count("ab"), 2)


# skipped


@pytest.mark.skip(reason="not today")
def test_is_skipped():
    assert count("ab") == 2


@pytest.mark.skipif(sys.version_info >= (3,), reason="too new")
def test_is_skipped_on_this_python():
    assert count("ab") == 2


def test_skips_itself():
    if count("ab") == 2:
        pytest.skip("two")


def test_skips_without_a_package():
    assert count("ab") == 2
    pytest.importorskip("a_package_that_nobody_has")


@pytest.fixture
def absent():
    pytest.skip("nobody is there")


@pytest.mark.parametrize("name", ["salt", "rice"])
def test_is_skipped_by_a_fixture(absent, name):
    assert label(name)


@pytest.mark.parametrize("name", [])
def test_has_no_parameters(name):
    assert label(name)


@pytest.mark.skip
class TestSkippedClass:
    def test_inside(self):
        assert count("ab") == 2


# xfails


@pytest.mark.xfail(reason="known")
def test_is_expected_to_fail():
    assert count("ab") == 3


@pytest.mark.xfail(raises=LookupError, strict=True)
def test_is_expected_to_raise():
    reserve({}, "salt", 1)


def test_expects_itself_to_fail():
    if count("ab") == 2:
        pytest.xfail("two")


@pytest.mark.xfail(run=False)
def test_is_not_even_run():
    assert count("ab") == 2


@pytest.mark.parametrize("name", ["salt", "rice"])
@pytest.mark.xfail
def test_is_expected_to_fail_in_every_case(name):
    assert label(name) == name
