from shelf import width


def test_width():
    assert width(2) == 6


def test_no_books():
    assert width(0) == 0
