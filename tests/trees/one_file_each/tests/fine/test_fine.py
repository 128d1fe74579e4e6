from shelf import width


def test_fine(books):
    assert width(books) == 12
