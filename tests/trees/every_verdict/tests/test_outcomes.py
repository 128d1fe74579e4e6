import pytest

from pantry import area


@pytest.fixture
def broken_before():
    raise LookupError("no set-up")


@pytest.fixture
def broken_after():
    yield
    raise LookupError("no tear-down")


def test_fails():
    assert area(2, 2) == 5


@pytest.mark.parametrize("side", [1, 2, 3])
def test_fails_in_one_case_of_three(side):
    assert area(side, side) != 4


def test_errors_in_set_up(broken_before):
    assert area(1, 1) == 1


def test_errors_in_tear_down(broken_after):
    assert area(1, 1) == 1


@pytest.mark.skip(reason="not today")
def test_is_skipped():
    assert area(1, 1) == 1


@pytest.mark.xfail(reason="known")
def test_is_expected_to_fail():
    assert area(1, 1) == 2


@pytest.mark.parametrize("side", [1, pytest.param(2, marks=pytest.mark.skip), pytest.param(3, marks=pytest.mark.xfail)])
def test_passes_beside_skipped_and_expected_failures(side):
    assert area(side, side) == 1


@pytest.mark.xfail(reason="wrong about that")
def test_passes_against_expectation():
    assert area(2, 3) == 6


def test_calls_only_the_standard_library():
    assert len("four") == 4
