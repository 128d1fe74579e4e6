from shelf import width


def test_below():
    assert width(1) == 3
