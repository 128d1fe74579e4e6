import digits


def test_the_crate_was_compiled():
    assert digits.largest() == 2**64 - 1
