from shelf import width


def test_deep():
    assert width(1) == 3
