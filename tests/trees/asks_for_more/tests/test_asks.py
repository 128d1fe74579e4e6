import asks


def test_sign():
    assert asks.sign() == 1


def test_plain():
    assert asks.plain() == 1
